"""The ledger's events, and their records: canonical JSON with a frozen meaning, chained by hash.

A payload's `"v": 1` fixes what its fields mean for ever; a new meaning is a new number beside the old one. Key values
are stored once, under the SHA-256 of their canonical JSON (`domains`), so that a charge over a million keys is one row.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from accountant.errors import LedgerUnavailable
from accountant.model import Cells, Charge, Family, Spent

PAYLOAD_VERSION = 1
GENESIS = "0" * 64

Domain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reserved:
    """The worst case of a question is spent from here on."""

    reservation: str
    at: datetime
    charge: Charge


@dataclass(frozen=True, slots=True)
class Committed:
    """The reservation cost `spent` after all. `answer` is the SHA-256 of the released answer, if it was stored;
    `reads` the reservation whose stored answer was read instead of running."""

    reservation: str
    at: datetime
    spent: Spent
    answer: str | None
    reads: str | None


@dataclass(frozen=True, slots=True)
class Released:
    """Data was never touched: the reservation costs nothing."""

    reservation: str
    at: datetime


Event = Reserved | Committed | Released


@dataclass(frozen=True, slots=True)
class Record:
    """One row of the events table. `spent_keys` is the per-key loss as bytes; its digest stands in the payload."""

    id: int
    kind: str
    reservation: str
    at: str
    payload: str
    spent_keys: bytes | None
    previous_hash: str
    hash: str


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no floating-point numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: bytes) -> str:
    """SHA-256 as hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def domain_body(values: Domain) -> bytes:
    """What is hashed and stored for a tuple of key values."""
    return canonical(list(values)).encode()


def chained(
    *, number: int, kind: str, reservation: str, at: str, payload: str, spent_keys: bytes | None, previous_hash: str
) -> Record:
    """The record with its hash over everything in it and the hash before it."""
    content = canonical([number, kind, reservation, at, payload, previous_hash])
    return Record(number, kind, reservation, at, payload, spent_keys, previous_hash, digest(content.encode()))


def record_of(event: Event, *, number: int, previous_hash: str, domains: Mapping[Domain, str]) -> Record:
    """Write an event as record `number`; `domains` gives the digest of each tuple of key values in it."""
    spent_keys = None
    match event:
        case Reserved(charge=charge):
            payload = _charge_payload(charge, domains)
        case Committed(spent=spent, answer=answer, reads=reads):
            spent_keys = spent.keys
            payload = {
                "epsilon_nano": spent.epsilon_nano,
                "unit_epsilon_nano": spent.unit_epsilon_nano,
                "keys": None if spent_keys is None else digest(spent_keys),
                "answer": answer,
                "reads": reads,
            }
        case Released():
            payload = {}
    return chained(
        number=number,
        kind=type(event).__name__,
        reservation=event.reservation,
        at=event.at.astimezone(UTC).isoformat(timespec="microseconds"),
        payload=canonical({"v": PAYLOAD_VERSION, **payload}),
        spent_keys=spent_keys,
        previous_hash=previous_hash,
    )


def _charge_payload(charge: Charge, domains: Mapping[Domain, str]) -> dict[str, Any]:
    family = charge.family
    return {
        "question": charge.question,
        "analyst": charge.analyst,
        "family": {
            "table": family.table,
            "unit": family.unit,
            "columns": list(family.columns),
            "filter": family.filter,
            "version": family.version,
            "immutable": sorted(family.immutable),
        },
        "cells": [[name, domains[values]] for name, values in charge.cells.columns],
        "epsilon_nano": charge.epsilon_nano,
        "unit_epsilon_nano": charge.unit_epsilon_nano,
        "shared": charge.shared,
    }


def domain_digests(record: Record) -> list[str]:
    """The digests of the key values that a record refers to."""
    if record.kind != Reserved.__name__:
        return []
    return [domain for _, domain in json.loads(record.payload).get("cells", ())]


def event_of(record: Record, *, domains: Mapping[str, Domain]) -> Event:
    """Read a record back; `domains` gives the key values by digest. Raises `LedgerUnavailable` on anything foreign."""
    try:
        payload = json.loads(record.payload)
        if payload["v"] != PAYLOAD_VERSION:
            raise LedgerUnavailable(f"event {record.id} was written by a newer version")
        at = datetime.fromisoformat(record.at)
        if record.kind == Reserved.__name__:
            return Reserved(record.reservation, at, _charge(payload, domains))
        if record.kind == Committed.__name__:
            keys = payload["keys"]
            if keys != (None if record.spent_keys is None else digest(record.spent_keys)):
                raise LedgerUnavailable(f"the losses per key of event {record.id} are not the ones it was written with")
            spent = Spent(payload["epsilon_nano"], payload["unit_epsilon_nano"], record.spent_keys)
            return Committed(record.reservation, at, spent, payload["answer"], payload["reads"])
        if record.kind == Released.__name__:
            return Released(record.reservation, at)
    except (KeyError, TypeError, ValueError) as error:
        raise LedgerUnavailable(f"event {record.id} cannot be read") from error
    raise LedgerUnavailable(f"event {record.id} is of an unknown kind")


def _charge(payload: Mapping[str, Any], domains: Mapping[str, Domain]) -> Charge:
    family = payload["family"]
    return Charge(
        question=payload["question"],
        analyst=payload["analyst"],
        family=Family(
            table=family["table"],
            unit=family["unit"],
            columns=tuple(family["columns"]),
            filter=family["filter"],
            version=family["version"],
            immutable=frozenset(family["immutable"]),
        ),
        cells=Cells(tuple((name, domains[values]) for name, values in payload["cells"])),
        epsilon_nano=payload["epsilon_nano"],
        unit_epsilon_nano=payload["unit_epsilon_nano"],
        shared=payload["shared"],
    )


def check_chain(records: Iterable[Record], *, last_id: int, last_hash: str) -> None:
    """Raise `LedgerUnavailable` unless the records continue the chain after `last_id`: none missing, none altered."""
    for record in records:
        again = chained(
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
