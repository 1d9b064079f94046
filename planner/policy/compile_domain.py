"""A key's public domain, as the policy and the pinned public tables give it, held against what was pinned."""

from planner.catalog.derived_columns import possible
from planner.catalog.domains import KEY_TYPES, counted, encoded, listed, taken
from planner.catalog.fault import Fault
from planner.catalog.model import Derivation, SqlType, Value
from planner.catalog.pins import PinnedDomain, Pins
from planner.policy.file import Policy
from planner.policy.sections import KeySection

REPIN = "Run keyhole check to see the difference, and keyhole check --confirm to let it take effect."


def key_domain(
    policy: Policy, place: tuple[str, ...], key: KeySection, kind: SqlType, derivation: Derivation | None, pins: Pins
) -> tuple[Value, ...]:
    """A key's public values, as the policy and the pinned public tables give them now."""
    where = (*place, "key")

    def values() -> tuple[Value, ...]:
        if kind not in KEY_TYPES:
            hint = "Group by a column of type text, integer, boolean, date or timestamp."
            raise Fault("KH003", f"a column of type {kind.value} cannot be a key", hint=hint)
        if key.values is not None:
            domain = listed(key.values, kind)
        elif key.range is not None:
            domain = counted(key.range[0], key.range[1], key.step, kind)
        else:
            domain = _from_public(str(key.values_from), kind, pins)
        if len(domain) > policy.limits.max_keys:
            hint = f"Narrow the domain, or raise limits.max_keys = {policy.limits.max_keys}."
            raise Fault("KH003", f"the domain has {len(domain):,} values", hint=hint)
        for value in domain:
            if derivation is not None and not possible(derivation, value):
                hint = f"List only values that {derivation.function} of {derivation.part or 'a timestamp'} can give."
                raise Fault("KH003", f"{encoded(value)} is never a value of the expression", hint=hint)
        return domain

    return policy.at(where, values)


def _from_public(values_from: str, kind: SqlType, pins: Pins) -> tuple[Value, ...]:
    name, _, column = values_from.partition(".")
    table = pins.table(name)
    if table is None:
        hint = "Run keyhole check: it copies the table."
        raise Fault("KH007", f"public table {name} is not pinned yet", hint=hint)
    values = table.values(column)
    if table.kind(column) is not kind:
        problem = f"{values_from} is of type {table.kind(column).value}, the key column of type {kind.value}"
        raise Fault("KH003", problem, hint="Take the values from a column of the same type.")
    return taken(values, kind)


def check_pinned(policy: Policy, place: tuple[str, ...], digest: str, pinned: PinnedDomain | None) -> None:
    """Raises KH007 unless the domain is the one that was pinned."""
    if pinned is None:
        hint = "Run keyhole check: it pins every key domain."
        raise policy.refuse((*place, "key"), Fault("KH007", "is not pinned yet", hint=hint))
    if pinned.digest != digest:
        raise policy.refuse((*place, "key"), Fault("KH007", "is not the domain that was pinned", hint=REPIN))
