"""Snapshots of the balances as bytes, so that a long ledger opens fast. `verify` compares them with a fold of the log.

The same balances always give the same bytes: one line of canonical JSON, then all arrays.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from math import prod
from typing import Any

import numpy as np

from accountant.balances.account import Account
from accountant.balances.cell_sums import CellAxis, CellSums
from accountant.balances.curve_sums import NOTHING, CurveSums
from accountant.balances.fold import Balances
from accountant.balances.monitor_balances import MonitorAccount, MonitorRuns, OpenWindow
from accountant.balances.noise_paths import NoisePaths, PathHead, Refund
from accountant.charges import Charge, NanoArray, Reservation, Spent
from accountant.errors import DeclineReason, LedgerMisuse, LedgerUnavailable
from accountant.events.digests import Domain, write_canonical
from accountant.events.owner_events import Grant
from accountant.events.payloads import make_charge_payload, make_grant_payload, parse_charge, parse_grant
from accountant.monitor_model import MonitorState, WindowAxis
from accountant.unit_balance import UnitLoss

# one more whenever what is written changes: older ones are not read, the log is folded instead
SNAPSHOT_FORMAT = 9

Json = dict[str, Any]


def pack_balances(balances: Balances) -> bytes:
    """Return the snapshot of balances as bytes. They are a fold over the newest budget window."""
    writer = _SnapshotWriter()
    document = {
        "format": SNAPSHOT_FORMAT,
        "shared": writer.write_account(balances.shared),
        "worst": writer.write_account(balances.worst_case),
        "refunds": [[name, writer.write_account(account)] for name, account in balances.refunds.items()],
        "analysts": [[name, writer.write_account(account)] for name, account in balances.analysts.items()],
        "open": [writer.write_reservation(item) for item in balances.open_reservations.values()],
        "held": [[*key, reservation] for key, reservation in balances.paid_answers.items()],
        "heads": [
            [*key, head.table, head.committed_by, head.question_count, head.drawn_by, head.continued_by]
            for key, head in balances.paths.heads.items()
        ],
        "path_refunds": [[name, writer.write_refund(refund)] for name, refund in balances.paths.refunds.items()],
        "grants": [[name, make_grant_payload(grant)] for name, grant in balances.grants.items()],
        "approved": sorted(balances.approved),
        "declined": [[question, one.at.isoformat(), one.why] for question, one in balances.declined.items()],
        "ended": [[name, writer.write_charge(charge)] for name, charge in balances.cut_continuations.items()],
        "monitors": [writer.write_monitor(account) for account in balances.monitors.runs.values()],
    }
    document["domains"] = [list(values) for values in writer.domains]
    document["blobs"] = [len(blob) for blob in writer.blobs]
    return b"".join([write_canonical(document).encode(), b"\n", *writer.blobs])


def unpack_balances(content: bytes) -> Balances:
    """Parse a snapshot of `pack_balances`. Raise `LedgerUnavailable` for any other bytes."""
    header, _, rest = content.partition(b"\n")
    try:
        document = json.loads(header)
        if document["format"] != SNAPSHOT_FORMAT:
            raise LedgerUnavailable("a snapshot of another format")
        return _SnapshotReader(document, rest).read_balances(document)
    except (KeyError, TypeError, ValueError, IndexError, LedgerMisuse) as error:
        raise LedgerUnavailable("a snapshot cannot be read") from error


def is_older(content: bytes) -> bool:
    """Return True if a snapshot has an older format, which is not read. The log is folded instead."""
    try:
        return bool(json.loads(content.partition(b"\n")[0])["format"] < SNAPSHOT_FORMAT)
    except (KeyError, TypeError, ValueError):
        return False


def _choose_number_type(classes: int) -> str:
    """Return the smallest type for the number of one of so many classes."""
    return next(one for one in ("<u1", "<u2", "<u4") if classes <= 1 << 8 * np.dtype(one).itemsize)


class _SnapshotWriter:
    """Writer of a snapshot's parts. It collects key values (each tuple once) and arrays beside the JSON document."""

    def __init__(self) -> None:
        self.domains: dict[Domain, str] = {}
        self.blobs: list[bytes] = []

    def write_account(self, account: Account) -> Json:
        return {
            "tables": [
                [
                    table,
                    [
                        [[[label.column, label.unit, label.version] for label in partition], *self.write_sums(sums)]
                        for partition, sums in partitions.items()
                    ],
                ]
                for table, partitions in account.tables.items()
            ],
            "curves": [
                [
                    table,
                    [
                        [[[label.column, label.unit, label.version] for label in partition], *self.write_curves(sums)]
                        for partition, sums in partitions.items()
                    ],
                ]
                for table, partitions in account.curves.items()
            ],
            "unit_nano": account.unit_loss.pure_nano,
            "unit_in_curve_nano": account.unit_loss.in_curve_nano,
            "unit_curve": list(account.unit_loss.curve),
            "table_nano": list(account.table_nano.items()),
        }

    def write_sums(self, sums: CellSums) -> tuple[list[str], int]:
        axes = [self.add_domain(values) for values in sums.axes]
        return axes, self.add_blob(np.ascontiguousarray(sums.array, dtype="<i8").tobytes())

    def write_curves(self, sums: CurveSums) -> tuple[list[str], int, int]:
        axes = [self.add_domain(values) for values in sums.numbers.axes]
        numbers = np.ascontiguousarray(sums.numbers.array, dtype=_choose_number_type(len(sums.rows)))
        rows = self.add_blob(np.ascontiguousarray(sums.rows, dtype="<i8").tobytes())
        return axes, self.add_blob(numbers.tobytes()), rows

    def write_reservation(self, reservation: Reservation) -> list[Any]:
        return [reservation.id, reservation.reserved_at.isoformat(), self.write_charge(reservation.charge)]

    def write_charge(self, charge: Charge) -> Json:
        for _, values in charge.cells.columns:
            self.add_domain(values)
        return make_charge_payload(charge, self.domains)

    def write_refund(self, refund: Refund) -> Json:
        return {
            "charge": self.write_charge(refund.charge),
            "spent": self.write_spent(refund.spent),  # not as it is kept: what zlib writes is not the same everywhere
            "heads": refund.path_count,
            "held_by": sorted(refund.continuing_reservations),
        }

    def write_spent(self, spent: Spent) -> list[int | None]:
        keys = None if spent.keys is None else self.add_blob(spent.keys)
        return [spent.epsilon_nano, spent.unit_epsilon_nano, keys]

    def write_monitor(self, account: MonitorAccount) -> Json:
        axis = account.windows
        return {
            "run": account.run,
            "monitor": account.monitor,
            "fingerprint": account.fingerprint,
            "charge": self.write_charge(account.charge),
            "windows": None if axis is None else [axis.column, axis.overlap, axis.first],
            "started_at": account.started_at.isoformat(),
            "reason": account.reason,
            "state": account.state.value,
            "looks": [account.looks_made, account.last_look],
            "open": [[window, one.look, one.state] for window, one in sorted(account.open_windows.items())],
            "closed": [
                [window, None if spent is None else self.write_spent(spent)]
                for window, spent in sorted(account.closed_windows.items())
            ],
            "readers": sorted(account.readers),
            "anew": account.is_restarted,
        }

    def add_domain(self, values: Domain) -> str:
        return self.domains.setdefault(values, str(len(self.domains)))

    def add_blob(self, content: bytes) -> int:
        self.blobs.append(content)
        return len(self.blobs) - 1


class _SnapshotReader:
    def __init__(self, document: Json, rest: bytes) -> None:
        if sum(document["blobs"]) != len(rest):
            raise LedgerUnavailable("a snapshot is cut off")
        self.domains: Mapping[str, Domain] = {
            str(index): tuple(values) for index, values in enumerate(document["domains"])
        }
        self.blobs: list[bytes] = []
        start = 0
        for length in document["blobs"]:
            self.blobs.append(rest[start : start + length])
            start += length

    def read_balances(self, document: Json) -> Balances:
        balances = Balances(
            worst_case=self.read_account(document["worst"]),
            refunds={name: self.read_account(account) for name, account in document["refunds"]},
            analysts={name: self.read_account(account) for name, account in document["analysts"]},
            open_reservations={item[0]: self.read_reservation(item) for item in document["open"]},
            paid_answers={(analyst, question, version): paid for analyst, question, version, paid in document["held"]},
            paths=NoisePaths(
                heads={(identity, version): PathHead(*head) for identity, version, *head in document["heads"]},
                refunds={name: self.read_refund(refund) for name, refund in document["path_refunds"]},
            ),
            grants={name: self.read_grant(grant) for name, grant in document["grants"]},
            approved=set(document["approved"]),
            declined={
                question: DeclineReason(datetime.fromisoformat(at), why) for question, at, why in document["declined"]
            },
            cut_continuations={name: parse_charge(charge, self.domains) for name, charge in document["ended"]},
            monitors=MonitorRuns({item["run"]: self.read_monitor(item) for item in document["monitors"]}),
        )
        balances.shared = self.read_account(document["shared"])
        return balances

    def read_account(self, document: Json) -> Account:
        unit = UnitLoss(document["unit_nano"], document["unit_in_curve_nano"], tuple(document["unit_curve"]))
        account = Account(unit_loss=unit, table_nano=dict(document["table_nano"]))
        for table, partitions in document["tables"]:
            account.tables[table] = {
                tuple(CellAxis(*label) for label in partition): self.read_sums(axes, blob)
                for partition, axes, blob in partitions
            }
        for table, partitions in document["curves"]:
            account.curves[table] = {
                tuple(CellAxis(*label) for label in partition): self.read_curves(axes, blob, rows)
                for partition, axes, blob, rows in partitions
            }
        return account

    def read_curves(self, axes: list[str], blob: int, rows_blob: int) -> CurveSums:
        rows: NanoArray = np.frombuffer(self.blobs[rows_blob], dtype="<i8").astype(np.int64).reshape(-1, len(NOTHING))
        return CurveSums.from_classes(self.read_sums(axes, blob, dtype=_choose_number_type(len(rows))), rows)

    def read_sums(self, axes: list[str], blob: int, *, dtype: str = "<i8") -> CellSums:
        values = [self.domains[axis] for axis in axes]
        array: NanoArray = np.frombuffer(self.blobs[blob], dtype=dtype).astype(np.int64)
        sums = CellSums(dimensions=len(axes))
        if prod(map(len, values)) != array.size:
            raise LedgerUnavailable("a snapshot's sums do not match their keys")
        sums.add(values, array.reshape([len(axis) for axis in values]))
        return sums

    def read_reservation(self, document: list[Any]) -> Reservation:
        identity, at, charge = document
        return Reservation(identity, parse_charge(charge, self.domains), datetime.fromisoformat(at))

    def read_refund(self, document: Json) -> Refund:
        charge = parse_charge(document["charge"], self.domains)
        refund = Refund.from_loss(charge, self.read_spent(document["spent"]), heads=document["heads"])
        refund.continuing_reservations.update(document["held_by"])
        return refund

    def read_spent(self, document: list[Any]) -> Spent:
        epsilon_nano, unit_epsilon_nano, keys = document
        return Spent(epsilon_nano, unit_epsilon_nano, None if keys is None else self.blobs[keys])

    def read_monitor(self, document: Json) -> MonitorAccount:
        looks_made, last_look = document["looks"]
        return MonitorAccount(
            run=document["run"],
            monitor=document["monitor"],
            fingerprint=document["fingerprint"],
            charge=parse_charge(document["charge"], self.domains),
            windows=None if document["windows"] is None else WindowAxis(*document["windows"]),
            started_at=datetime.fromisoformat(document["started_at"]),
            reason=document["reason"],
            state=MonitorState(document["state"]),
            looks_made=looks_made,
            last_look=last_look,
            open_windows={window: OpenWindow(look, state) for window, look, state in document["open"]},
            closed_windows={
                window: None if spent is None else self.read_spent(spent) for window, spent in document["closed"]
            },
            readers=set(document["readers"]),
            is_restarted=document["anew"],
        )

    def read_grant(self, document: Json) -> Grant:
        return parse_grant(document)
