"""The public dependencies between the ledger's columns, from pinned tables or the calendar.

Guarantee: a dependency holds for every row of every data version, as long as the ledger has the columns' labels. A
label has the digest of the pinned data, or the derivation and its base column. Labels that the current catalog does
not explain (older pins, dropped columns) are in no dependency.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from accountant.balances.dependencies import MOST_VALUES, Dependency, Knowledge
from planner.bind.lookup_columns import JOINED_TYPES, NotUnique, make_lookup_column
from planner.catalog.catalog import Catalog, Column, Derivation, Lookup, PublicTable, Table, Value
from planner.catalog.derived_columns import find_calendar_step, is_derivable
from planner.catalog.key_space import format_value
from planner.values.datetimes import extract_part, truncate_to_unit


def find_all_dependencies(catalog: Catalog) -> Knowledge:
    """Return a function that finds the dependencies between labels of a ledger's table."""

    @lru_cache(maxsize=256)
    def find_dependencies(table: str, columns: frozenset[str]) -> Sequence[Dependency]:
        members = [one for one in catalog.tables if one.ledger_root.table == table]
        known = [column for member in members for column in member.columns]
        calendar = tuple(one for member in members for one in _find_calendar_dependencies(member, columns))
        pinned = tuple(
            one
            for label in sorted(columns)
            for member in members
            for one in _find_pinned_lookup(label, member, catalog)
        )
        unique = {
            (one.determined_column, one.base_column): one
            for one in (*calendar, *pinned, *_compose_pinned_lookups(pinned, calendar))
        }
        own = {column.label for column in known}
        return tuple(one for one in unique.values() if one.base_column in columns or one.base_column in own)

    return find_dependencies


def _compose_pinned_lookups(pinned: Sequence[Dependency], calendar: Sequence[Dependency]) -> Iterator[Dependency]:
    """Yield dependencies of looked-up columns on a derived key's base column, through both steps together."""
    for last in pinned:
        for first in calendar:
            if last.base_column == first.determined_column:
                values = {
                    base: None if via is None else last.determined_values.get(via)
                    for base, via in first.determined_values.items()
                }
                yield Dependency(last.determined_column, first.base_column, values, is_complete=False)


def _find_pinned_lookup(label: str, table: Table, catalog: Catalog) -> Iterator[Dependency]:
    """Yield the dependency of the looked-up column with this label, if the current pinned data has it."""
    for public in catalog.public_tables:
        at = label.find(f"={public.name}.")
        if at < 0 or public.digest not in label:
            continue
        for column, base in _list_lookups(label[at + 1 :], table, catalog):
            if column.label == label and isinstance(column.derivation, Lookup):
                if len(column.derivation.pairs) > MOST_VALUES:
                    return  # the ledger would leave it alone
                values = {
                    format_value(known): None if value is None else format_value(value)
                    for known, value in column.derivation.pairs
                }
                yield Dependency(label, base.label, values, is_complete=True)
                return


def _list_lookups(source: str, table: Table, catalog: Catalog) -> Iterator[tuple[Column, Column]]:
    """Yield the columns that `source` looks up, each with the private column from which the lookup starts."""
    for public in catalog.public_tables:
        for found in public.columns:
            for key in public.columns:
                head = f"{public.name}.{found.name} by {key.name} {public.digest} of "
                if not source.startswith(head):
                    continue
                own = (
                    (replace(column, ledger=ledger), column)
                    for column in table.columns
                    for ledger in _list_names(column)
                )
                for base, first in (*own, *_list_lookups(source.removeprefix(head), table, catalog)):
                    made = _look_up_key(public, found.name, key=key, base=base, table=table)
                    if made is not None:
                        yield made, first


def _list_names(column: Column) -> tuple[str, ...]:
    """Return the names that the ledger may use for a base column: its own, or its label if a join renames it."""
    return tuple(dict.fromkeys((column.ledger, column.label)))


def _look_up_key(public: PublicTable, found: str, *, key: Column, base: Column, table: Table) -> Column | None:
    if key.sql_type is not base.sql_type or key.sql_type not in JOINED_TYPES:
        return None
    try:
        return make_lookup_column(found, public, found, key=key.name, base=base, table=table)
    except NotUnique:
        return None


def _find_calendar_dependencies(table: Table, columns: frozenset[str]) -> Iterator[Dependency]:
    """Yield dependencies of columns derived from a time, such as a month, on finer columns or the time itself."""
    for base in table.columns:
        if base.domain is None or base.label not in columns:
            continue
        for determined in table.columns:
            derived = determined.derivation
            if (
                determined.label not in columns
                or not isinstance(derived, Derivation)
                or not is_derivable(derived, base)
            ):
                continue
            found = {
                value: _derive_value(derived, _make_moment(value)) for value in base.domain if isinstance(value, date)
            }
            values = {format_value(value): format_value(part) for value, part in found.items()}
            counts = Counter(found.values())
            closed = frozenset(
                format_value(value)
                for value, count in counts.items()
                if count == _count_times(derived, value, step=find_calendar_step(base))
            )
            yield Dependency(determined.label, base.label, values, is_complete=False, excluded_values=closed)


def _make_moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime.combine(value, time())


def _derive_value(derivation: Derivation, moment: datetime) -> Value:
    match derivation.function:
        case "date":
            return moment.date()
        case "extract":
            return extract_part(derivation.part, moment)
        case _:
            start = truncate_to_unit(moment, derivation.part)
            return start if derivation.part == "hour" else start.date()


def _count_times(derivation: Derivation, value: Value, *, step: str | None) -> int | None:
    """Return how many times, one `step` apart, have this derived value, or None if unknown."""
    part = "day" if derivation.function == "date" else derivation.part
    if derivation.function == "extract":
        if part != "year" or not isinstance(value, int):
            return None
        value = date(value, 1, 1)
    if not isinstance(value, date) or step is None:
        return None
    start = _make_moment(value)
    if start.year == datetime.max.year:
        return None
    long = {"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366}.get(part)
    if long is None:
        return None
    days = (truncate_to_unit(start + timedelta(days=long), part) - start).days if part not in ("day", "week") else long
    months = {"month": 1, "quarter": 3, "year": 12}.get(part)
    match step:
        case "hour":
            return 24 * days
        case "day":
            return days
        case "month" if months is not None:
            return months
        case "quarter" if months is not None and months >= 3:
            return months // 3
        case _:
            return None
