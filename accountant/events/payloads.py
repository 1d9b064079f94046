"""The JSON of charges, losses and an owner's decisions inside events. A version number fixes the meaning of fields.

Version 1: charges that continue nothing, losses that are all fresh. Version 2 adds `continuing` to a charge, and
`fresh`, `paths` and `reading` to a loss. Without any of these, version 1 is still written. Version 3 adds `wording`
to the charge of version 2, whose `continuing` may then be null. Version 4 adds `renyi` to the charge of version 3,
whose `wording` may then be null: the Rényi divergences of one unit, in 1e-9, at the orders 2, 3, 4, 5, 6, 8, 10, 12,
16, 24, 40 and 80, which the unit's balance may count in the place of its pure loss. Version 5 adds `cell_renyi` to
the charge of version 4, whose `renyi` may then be null: the same of one cell, for the balances of cells. Version 6 adds
`looks` to the charge of version 5, whose `cell_renyi` may then be null: what one cell has lost after each look. Version
3 of a loss adds to version 2 `renyi`, the unit's divergences in the looks that ran.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from accountant.charges import (
    Amounts,
    Cells,
    Charge,
    Family,
    PathContinuation,
    PathState,
    Spent,
    Wording,
)
from accountant.errors import BalanceScope
from accountant.events.digests import Domain, digest
from accountant.events.owner_events import Grant
from accountant.look_losses import LossAfterLooks
from mechanisms.threshold.renyi import Curve

Payload = dict[str, Any]


def make_charge_payload(charge: Charge, domains: Mapping[Domain, str]) -> Payload:
    """Return the payload of a charge; `domains` gives the digest of each tuple of key values in it."""
    family = charge.family
    payload: Payload = {
        "v": 1,
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
    if charge.renyi is not None:
        payload |= {"v": 4, "continuing": None, "wording": None, "renyi": list(charge.renyi)}
    if charge.cell_renyi is not None:
        unit = _make_curve_payload(charge.renyi)
        payload |= {"v": 5, "continuing": None, "wording": None, "renyi": unit, "cell_renyi": list(charge.cell_renyi)}
    if charge.looks:
        looks = [[look.epsilon_nano, _make_curve_payload(look.cell_renyi)] for look in charge.looks]
        payload |= {"v": 6, "cell_renyi": _make_curve_payload(charge.cell_renyi), "looks": looks}
    if charge.path_continuation is not None:
        payload["v"] = 2
        payload["continuing"] = {
            "paths": make_states_payload(charge.path_continuation.paths),
            "shared": _make_amounts_payload(charge.path_continuation.shared_loss),
            "known": _make_amounts_payload(charge.path_continuation.public_loss),
        }
    return payload


def parse_charge(payload: Mapping[str, Any], domains: Mapping[str, Domain]) -> Charge:
    """Parse a payload of `make_charge_payload`; `domains` gives the key values by digest."""
    family = payload["family"]
    version = family["version"]
    continuing = payload["continuing"] if payload["v"] >= 2 else None
    return Charge(
        question=payload["question"],
        analyst=payload["analyst"],
        family=Family(
            table=family["table"],
            unit=family["unit"],
            columns=tuple(family["columns"]),
            filter=family["filter"],
            version=version,
            immutable=frozenset(family["immutable"]),
        ),
        cells=Cells(tuple((name, domains[values]) for name, values in payload["cells"])),
        epsilon_nano=payload["epsilon_nano"],
        unit_epsilon_nano=payload["unit_epsilon_nano"],
        shared=payload["shared"],
        renyi=_parse_curve(payload["renyi"] if payload["v"] >= 4 else None),
        cell_renyi=_parse_curve(payload["cell_renyi"] if payload["v"] >= 5 else None),
        looks=tuple(LossAfterLooks(nano, _parse_curve(curve)) for nano, curve in payload["looks"])
        if payload["v"] >= 6
        else (),
        path_continuation=None
        if continuing is None
        else PathContinuation(
            paths=parse_states(continuing["paths"]),
            shared_loss=Amounts(*continuing["shared"]),
            public_loss=Amounts(*continuing["known"]),
        ),
    )


def add_wording(payload: Payload, wording: Wording | None) -> Payload:
    """Return a charge's payload with the wording of its question."""
    if wording is None:
        return payload
    told = {"text": wording.text, "guarantee": wording.guarantee, "fnr": wording.fnr, "fpr": wording.fpr}
    return {**payload, "v": max(payload["v"], 3), "continuing": payload.get("continuing"), "wording": told}


def parse_wording(payload: Mapping[str, Any]) -> Wording | None:
    """Parse the wording in a payload of `add_wording`."""
    told = payload["wording"] if payload["v"] >= 3 else None
    if told is None:
        return None
    return Wording(text=told["text"], guarantee=told["guarantee"], fnr=told["fnr"], fpr=told["fpr"])


def make_spent_payload(spent: Spent) -> tuple[Payload, bytes | None]:
    """Return the payload of a question's loss, and the bytes of its losses per key.

    These bytes are stored in a column of their own: first the losses in `spent`, then those in `spent.fresh`.
    """
    payload: Payload = {"v": 1, **make_loss_payload(spent)}
    if spent.renyi is not None:
        return payload | {"v": 3, "fresh": None, "renyi": list(spent.renyi)}, spent.keys
    if spent.fresh is None:
        return payload, spent.keys
    payload |= {"v": 2, "fresh": make_loss_payload(spent.fresh)}
    kept = [keys for keys in (spent.keys, spent.fresh.keys) if keys is not None]
    return payload, b"".join(kept) if kept else None


def parse_spent(payload: Mapping[str, Any], keys: bytes | None) -> Spent | None:
    """Parse a payload of `make_spent_payload`. Return None if its losses per key do not match the digest.

    Raise `LedgerMisuse` if the written largest loss is not that of the losses per key.
    """
    fresh = payload["fresh"] if payload["v"] >= 2 else None
    own_keys, fresh_keys = keys, None
    if fresh is not None and fresh["keys"] is not None:
        own_keys, fresh_keys = None, keys
        if payload["keys"] is not None and keys is not None:
            own_keys, fresh_keys = keys[: len(keys) // 2], keys[len(keys) // 2 :]
    own = parse_loss(payload, own_keys)
    if own is not None and payload["v"] >= 3:
        return Spent(own.epsilon_nano, own.unit_epsilon_nano, own.keys, renyi=tuple(payload["renyi"]))
    if fresh is None or own is None:
        return own
    fresh_loss = parse_loss(fresh, fresh_keys)
    return None if fresh_loss is None else Spent(own.epsilon_nano, own.unit_epsilon_nano, own.keys, fresh_loss)


def make_loss_payload(spent: Spent) -> Payload:
    """Return the payload of a loss, with the digest of its losses per key. The loss in `spent.fresh` is left out."""
    return {
        "epsilon_nano": spent.epsilon_nano,
        "unit_epsilon_nano": spent.unit_epsilon_nano,
        "keys": None if spent.keys is None else digest(spent.keys),
    }


def parse_loss(payload: Mapping[str, Any], keys: bytes | None) -> Spent | None:
    """Parse a payload of `make_loss_payload`. Return None if its losses per key do not match the digest."""
    if payload["keys"] != (None if keys is None else digest(keys)):
        return None
    spent = Spent(payload["epsilon_nano"], payload["unit_epsilon_nano"], keys)
    spent.check_keys()
    return spent


def make_grant_payload(grant: Grant) -> Payload:
    """Return the payload of a grant."""
    return {
        "scope": grant.scope.value,
        "amount_nano": grant.amount_nano,
        "table": grant.table,
        "analyst": grant.analyst,
    }


def parse_grant(payload: Mapping[str, Any]) -> Grant:
    """Parse a payload of `make_grant_payload`."""
    return Grant(
        scope=BalanceScope(payload["scope"]),
        amount_nano=payload["amount_nano"],
        table=payload["table"],
        analyst=payload["analyst"],
    )


def make_states_payload(states: Iterable[PathState]) -> list[list[str]]:
    """Return the payload of path states: identity, version and reservation of each."""
    return [[state.identity, state.version, state.reservation] for state in states]


def parse_states(payload: Iterable[Iterable[str]]) -> tuple[PathState, ...]:
    """Parse a payload of `make_states_payload`."""
    return tuple(PathState(*state) for state in payload)


def _make_curve_payload(curve: Curve | None) -> list[int] | None:
    return None if curve is None else list(curve)


def _parse_curve(payload: list[int] | None) -> Curve | None:
    return None if payload is None else tuple(payload)


def _make_amounts_payload(amounts: Amounts) -> list[int]:
    return [amounts.epsilon_nano, amounts.unit_epsilon_nano]
