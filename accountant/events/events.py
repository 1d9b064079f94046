"""The ledger's events and their records: canonical JSON with a fixed meaning, chained by hash.

The number `"v"` of a payload fixes the meaning of its fields for good. A new meaning needs a new number. Key values are
stored once, under the SHA-256 of their canonical JSON (`domains`), so that a charge over a million keys is one row.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accountant.charges import Charge, PathState, Spent, Wording
from accountant.errors import LedgerMisuse, LedgerUnavailable
from accountant.events.digests import Domain, digest, write_canonical
from accountant.events.monitor_events import (
    MonitorEvent,
    MonitorWindowClosed,
    find_monitor_subject,
    make_monitor_payload,
    parse_monitor_event,
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
    find_subject,
)
from accountant.events.payloads import (
    Payload,
    add_wording,
    make_charge_payload,
    make_grant_payload,
    make_spent_payload,
    make_states_payload,
    parse_charge,
    parse_grant,
    parse_spent,
    parse_states,
    parse_wording,
)

# what events may be written as: every version that was ever written is read for good
PAYLOAD_VERSIONS = (1, 2, 3, 4, 5, 6)
NEWEST_VERSIONS = {"Reserved": 6, "Committed": 3}  # of the others 2
GENESIS = "0" * 64
_OF_PUBLISHED = ("table", "version", "method", "file", "file_hash", "statement")


@dataclass(frozen=True, slots=True)
class Reserved:
    """The reservation of a question's worst case, which counts as spent from here on. `wording` is for people only."""

    reservation: str
    at: datetime
    charge: Charge
    wording: Wording | None = None


@dataclass(frozen=True, slots=True)
class Committed:
    """The commit of a reservation, whose ex-post loss is `spent`.

    `answer` is the SHA-256 of the released answer, if it was stored. `reads` is the reservation whose stored answer was
    read instead of running. `paths` has the identities of the stored noise paths, with the SHA-256 of each. `reading`
    are the states of paths from which it was answered without data.
    """

    reservation: str
    at: datetime
    spent: Spent
    answer: str | None
    reads: str | None
    paths: tuple[tuple[str, str], ...] = ()
    reading: tuple[PathState, ...] = ()


@dataclass(frozen=True, slots=True)
class Released:
    """The release of a reservation, which costs nothing: its question never touched data."""

    reservation: str
    at: datetime


Event = Reserved | Committed | Released | OwnerEvent | MonitorEvent

MAY_HAVE_LOSSES_PER_KEY = frozenset({Committed.__name__, MonitorWindowClosed.__name__})
"""Kinds of events beside which losses per key may stand."""


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the events table.

    `reservation` identifies the event's subject (a question's reservation, a grant, ...). `spent_keys` is the per-key
    loss as bytes; its digest is in the payload.
    """

    id: int
    kind: str
    reservation: str
    at: str
    payload: str
    spent_keys: bytes | None
    previous_hash: str
    hash: str


def chain_record(
    *, number: int, kind: str, reservation: str, at: str, payload: str, spent_keys: bytes | None, previous_hash: str
) -> Record:
    """Return the record with its hash, over its content and the previous hash."""
    content = write_canonical([number, kind, reservation, at, payload, previous_hash])
    return Record(number, kind, reservation, at, payload, spent_keys, previous_hash, digest(content.encode()))


def make_record(event: Event, *, number: int, previous_hash: str, domains: Mapping[Domain, str]) -> Record:
    """Return an event as record `number`. `domains` gives the digest of each tuple of key values in it."""
    spent_keys = None
    match event:
        case Reserved(reservation=about, charge=charge, wording=wording):
            payload = add_wording(make_charge_payload(charge, domains), wording)
        case Committed(reservation=about):
            payload, spent_keys = _make_committed_payload(event)
        case Released(reservation=about):
            payload = {"v": 1}
        case _ if isinstance(event, MonitorEvent):
            about = find_monitor_subject(event)
            payload, spent_keys = make_monitor_payload(event)
        case _:
            about, payload = find_subject(event), _make_owner_payload(event)
    return chain_record(
        number=number,
        kind=type(event).__name__,
        reservation=about,
        at=event.at.astimezone(UTC).isoformat(timespec="microseconds"),
        payload=write_canonical(payload),
        spent_keys=spent_keys,
        previous_hash=previous_hash,
    )


def _make_committed_payload(event: Committed) -> tuple[Payload, bytes | None]:
    payload, spent_keys = make_spent_payload(event.spent)
    payload |= {"answer": event.answer, "reads": event.reads}
    if payload["v"] >= 2 or event.paths or event.reading:
        payload = {
            **payload,
            "v": max(payload["v"], 2),
            "fresh": payload.get("fresh"),
            "paths": dict(event.paths),
            "reading": make_states_payload(event.reading),
        }
    return payload, spent_keys


def _make_owner_payload(event: OwnerEvent) -> Payload:
    payload: Payload = {"v": 1, "by": event.by, "why": event.why}
    match event:
        case Granted(grant=grant):
            payload |= make_grant_payload(grant)
        case Settled(untouched=untouched):
            payload["untouched"] = untouched
        case Pruned(table=table, version=version):
            payload |= {"table": table, "version": version}
        case Declined(question=question):
            payload["question"] = question
        case Published():
            payload |= {name: getattr(event, name) for name in _OF_PUBLISHED}
        case Revoked() | WindowOpened() | Approved():
            pass
    return payload


def list_domain_digests(record: Record) -> list[str]:
    """Return the digests of the key values that a record refers to."""
    if record.kind != Reserved.__name__:
        return []
    return [domain for _, domain in json.loads(record.payload).get("cells", ())]


def parse_event(record: Record, *, domains: Mapping[str, Domain]) -> Event:
    """Parse a record. `domains` gives the key values by digest. Raise `LedgerUnavailable` if no version wrote it."""
    try:
        payload = json.loads(record.payload)
        if payload["v"] not in PAYLOAD_VERSIONS or payload["v"] > NEWEST_VERSIONS.get(record.kind, 2):
            raise LedgerUnavailable(f"event {record.id} was written by a newer version")
        return _parse_payload(record, payload, datetime.fromisoformat(record.at), domains)
    except (KeyError, TypeError, ValueError, LedgerMisuse) as error:
        raise LedgerUnavailable(f"event {record.id} cannot be read") from error


def _parse_payload(record: Record, payload: Mapping[str, Any], at: datetime, domains: Mapping[str, Domain]) -> Event:
    about = record.reservation
    match record.kind:
        case "Reserved":
            return Reserved(about, at, parse_charge(payload, domains), parse_wording(payload))
        case "Committed":
            spent = parse_spent(payload, record.spent_keys)
            if spent is None:
                raise LedgerUnavailable(f"the losses per key of event {record.id} are not the ones it was written with")
            if payload["v"] == 1:
                return Committed(about, at, spent, payload["answer"], payload["reads"])
            paths = tuple(sorted(payload["paths"].items()))
            reading = parse_states(payload["reading"])
            return Committed(about, at, spent, payload["answer"], payload["reads"], paths, reading)
        case "Released":
            return Released(about, at)
        case kind if kind.startswith("Monitor"):
            event = parse_monitor_event(kind, about, payload, at, record.spent_keys)
            if event is None:
                raise LedgerUnavailable(f"event {record.id} is not what was written, or by a newer version")
            return event
        case _:
            return _parse_owner_payload(record, payload, at)


def _parse_owner_payload(record: Record, payload: Mapping[str, Any], at: datetime) -> OwnerEvent:
    if payload["v"] != 1:
        raise LedgerUnavailable(f"event {record.id} was written by a newer version")
    about, by, why = record.reservation, payload["by"], payload["why"]
    match record.kind:
        case "Granted":
            return Granted(about, at, by, why, parse_grant(payload))
        case "Revoked":
            return Revoked(about, at, by, why)
        case "Settled":
            return Settled(about, at, by, why, untouched=payload["untouched"])
        case "WindowOpened":
            return WindowOpened(about, at, by, why)
        case "Approved":
            return Approved(about, at, by, why)
        case "Declined":
            return Declined(about, at, by, why, question=payload["question"])
        case "Pruned":
            return Pruned(about, at, by, why, table=payload["table"], version=payload["version"])
        case "Published":
            return Published(about, at, by, why, **{name: payload[name] for name in _OF_PUBLISHED})
    raise LedgerUnavailable(f"event {record.id} is of an unknown kind")


def check_chain(records: Iterable[Record], *, last_id: int, last_hash: str) -> None:
    """Raise `LedgerUnavailable` unless the records continue the chain after `last_id`: none missing, none altered."""
    for record in records:
        again = chain_record(
            number=record.id,
            kind=record.kind,
            reservation=record.reservation,
            at=record.at,
            payload=record.payload,
            spent_keys=record.spent_keys,
            previous_hash=last_hash,
        )
        if record.id != last_id + 1 or again != record:
            raise LedgerUnavailable(f"the chain of events is broken at event {last_id + 1}")
        last_id, last_hash = record.id, record.hash
