"""The export of the log as flat records for a file. Pure.

It is for owners, as its losses are exact. It has no true aggregate, no noisy value and no answer.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, assert_never

from accountant.charges import Charge
from accountant.events.events import Committed, Event, Record, Released, Reserved
from accountant.events.monitor_events import (
    MonitorEnded,
    MonitorEvent,
    MonitorLooked,
    MonitorPaused,
    MonitorResumed,
    MonitorStarted,
    MonitorWindowBegun,
    MonitorWindowClosed,
)
from accountant.events.owner_events import (
    Approved,
    Declined,
    Granted,
    OwnerEvent,
    Pruned,
    Published,
    Revoked,
    Settled,
    WindowOpened,
)

_OF_PUBLISHED = ("by", "why", "table", "version", "method", "file", "file_hash", "statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEvent:
    """One event as a flat record. Fields that its kind does not have are None. Amounts are in 1e-9 epsilon.

    `about` is the reservation, grant, window, question, pruning or publication; `keys` the number of keys charged; the
    amounts of a Reserved are its worst case, of a Committed its loss: `epsilon_nano` the largest of a key and
    `unit_epsilon_nano` of a unit, and `shared_...` what of it was news to everybody together. `renyi_nano` has the
    Rényi divergences of a unit, by order, where its balance counts these. `text` is the question's, as far as the
    policy let it be kept, `guarantee`, `fnr` and `fpr` what its answer promises. Of a monitor `run` is the reservation
    that pays for it, `window` the number of a window, `look` that of a look over the horizon and `looked_at` in how
    many windows; its alerts, and what was cleared of them, are answers, and not here. `anew`: the run draws noise of
    its own for windows that earlier ones had begun. Of a publication `method` says how it was
    made, `file` and `file_hash` which file it is, and `statement` what that gives away.
    """

    event: int
    kind: str
    at: str
    about: str
    analyst: str | None = None
    question: str | None = None
    table: str | None = None
    unit: str | None = None
    columns: str | None = None
    filter: str | None = None
    version: str | None = None
    keys: int | None = None
    shared: bool | None = None
    epsilon_nano: int | None = None
    unit_epsilon_nano: int | None = None
    shared_epsilon_nano: int | None = None
    shared_unit_epsilon_nano: int | None = None
    renyi_nano: str | None = None
    reads: str | None = None
    paths: int | None = None
    text: str | None = None
    guarantee: str | None = None
    fnr: str | None = None
    fpr: str | None = None
    by: str | None = None
    why: str | None = None
    scope: str | None = None
    untouched: bool | None = None
    monitor: str | None = None
    run: str | None = None
    window: int | None = None
    look: int | None = None
    looked_at: int | None = None
    anew: bool | None = None
    method: str | None = None
    file: str | None = None
    file_hash: str | None = None
    statement: str | None = None
    hash: str


def export_events(log: Iterable[tuple[Record, Event]]) -> Iterator[ExportedEvent]:
    """Yield every event, oldest first."""
    charges: dict[str, Charge] = {}
    for record, event in log:
        known: dict[str, Any] = {}
        match event:
            case Reserved(reservation=reservation, charge=charge, wording=wording):
                charges[reservation] = charge
                known = {
                    "analyst": charge.analyst,
                    "question": charge.question,
                    "table": charge.family.table,
                    "unit": charge.family.unit,
                    "columns": ",".join(charge.family.columns),
                    "filter": charge.family.filter,
                    "version": charge.family.version,
                    "keys": charge.cells.key_count,
                    "shared": charge.shared,
                    "epsilon_nano": charge.epsilon_nano,
                    "unit_epsilon_nano": charge.unit_epsilon_nano,
                    "shared_epsilon_nano": charge.shared_amounts.epsilon_nano,
                    "shared_unit_epsilon_nano": charge.shared_amounts.unit_epsilon_nano,
                    "renyi_nano": None if charge.renyi is None else " ".join(map(str, charge.renyi)),
                    "paths": 0 if charge.path_continuation is None else len(charge.path_continuation.paths),
                }
                if wording is not None:
                    known |= asdict(wording)
            case Committed(reservation=reservation, spent=spent, reads=reads):
                news = spent.find_shared_part(charges[reservation])
                known = {
                    "epsilon_nano": spent.epsilon_nano,
                    "unit_epsilon_nano": spent.unit_epsilon_nano,
                    "shared_epsilon_nano": news.epsilon_nano,
                    "shared_unit_epsilon_nano": news.unit_epsilon_nano,
                    "reads": reads,
                    "paths": len(event.paths),
                }
            case Released():
                pass
            case _ if isinstance(event, MonitorEvent):
                known = _flatten_monitor_event(event, charges)
            case _:
                known = _flatten_owner_event(event)
        yield ExportedEvent(
            event=record.id, kind=record.kind, at=record.at, about=record.reservation, hash=record.hash, **known
        )


def _flatten_owner_event(event: OwnerEvent) -> dict[str, Any]:
    match event:
        case Granted(by=by, why=why, grant=grant):
            return {
                "by": by,
                "why": why,
                "scope": grant.scope.value,
                "epsilon_nano": grant.amount_nano,
                "table": grant.table,
                "analyst": grant.analyst,
            }
        case Settled(by=by, why=why, untouched=untouched):
            return {"by": by, "why": why, "untouched": untouched}
        case Pruned(by=by, why=why, table=table, version=version):
            return {"by": by, "why": why, "table": table, "version": version}
        case Declined(by=by, why=why, question=question):
            return {"by": by, "why": why, "question": question}
        case Published():
            return {field: getattr(event, field) for field in _OF_PUBLISHED}
        case Revoked(by=by, why=why) | WindowOpened(by=by, why=why) | Approved(by=by, why=why):
            return {"by": by, "why": why}
        case _:
            assert_never(event)


def _flatten_monitor_event(event: MonitorEvent, charges: Mapping[str, Charge]) -> dict[str, Any]:
    match event:
        case MonitorStarted():
            known = {"by": event.by, "why": event.why, "monitor": event.monitor, "question": event.fingerprint}
            return {**known, "anew": True} if event.is_restarted else known
        case MonitorWindowBegun(run=run, window=window):
            return {"run": run, "window": window}
        case MonitorLooked(run=run, number=number, windows=windows):
            return {"run": run, "look": number, "looked_at": len(windows)}
        case MonitorWindowClosed(run=run, window=window, spent=spent):
            loss = charges[run].epsilon_nano if spent is None else spent.epsilon_nano
            return {"run": run, "window": window, "epsilon_nano": loss}
        case MonitorPaused(run=run) | MonitorResumed(run=run):
            return {"by": event.by, "why": event.why, "run": run}
        case MonitorEnded(spent=amounts):
            told = {"epsilon_nano": amounts.epsilon_nano, "unit_epsilon_nano": amounts.unit_epsilon_nano}
            return {"by": event.by, "why": event.why, **told}
