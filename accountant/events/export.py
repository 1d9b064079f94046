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
from mechanisms.threshold.renyi import Curve

_OF_PUBLISHED = ("by", "why", "table", "version", "method", "file", "file_hash", "statement")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedEvent:
    """One event as a flat record. Fields that its kind does not have are None. Amounts are in 1e-9 epsilon.

    `about` is the id of the reservation, grant, window, question, pruning or publication. `keys` is the number of
    charged keys. For a `Reserved` event the amounts are its worst case, for a `Committed` one its loss. `epsilon_nano`
    is the largest loss of a key, and `unit_epsilon_nano` that of a unit. `shared_epsilon_nano` and
    `shared_unit_epsilon_nano` are the parts that nobody had learned before. `renyi_nano` has the Rényi divergences of a
    unit, by order, if its balance counts these, and `cell_renyi_nano` those of a cell. `text` is the question's text,
    as far as the policy allows it to be kept. `guarantee`, `fnr` and `fpr` are the promise of its answer. For a
    monitor, `run` is the reservation that pays for it, `window` the number of a window, `look` the number of a look
    over the horizon, and `looked_at` the number of
    windows in that look. Alerts and clearings are answers, so they are not exported. `anew`: the run draws its own
    noise for windows that earlier runs had begun. For a publication, `method` says how the file was made, `file` and
    `file_hash` identify it, and `statement` says what it discloses.
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
    cell_renyi_nano: str | None = None
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


def _write_curve(curve: Curve | None) -> str | None:
    return None if curve is None else " ".join(map(str, curve))


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
                    "renyi_nano": _write_curve(charge.renyi),
                    "cell_renyi_nano": _write_curve(charge.cell_renyi),
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
