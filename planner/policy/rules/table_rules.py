"""Rules for one table: keys without meaning, its privacy units and their bounds."""

from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.catalog.refresh import REFRESH_CHOICES, parse_refresh
from planner.policy.expression_totals import find_range_faults, find_total_faults
from planner.policy.rules.band_rules import find_table_bands_faults
from planner.policy.rules.budgets import find_shared_cap_faults
from planner.policy.rules.columns import find_column_faults
from planner.policy.rules.groupings import find_grouping_faults, find_key_faults
from planner.policy.rules.unit_paths import find_path_faults
from planner.policy.sections import PolicyDocument, TableSection

_TABLE_BOUNDING = (
    "max_groups_per_unit",
    "rows_per_unit",
    "max_rows_per_group",
    "groupings",
    "totals",
    "joined_rows_per_unit",
    "cut_rows",
)
_OF_UNITS = ("privacy_unit", *_TABLE_BOUNDING, "same_unit_as", "unique")
_ARRIVAL = ("append_only", "arrived")
_TABLE_CAPS = ("epsilon_per_table", "approval_above_epsilon")


def find_public_table_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    """Yield a fault for each key of a public table that only private tables may have."""
    of_private = (*_OF_UNITS, "bands", "ranges", "groupable", "immutable", *_ARRIVAL, *_TABLE_CAPS, "seed")
    for key in of_private:
        if getattr(table, key) not in (None, (), {}, False) or (key == "groupable" and table.groupable is not None):
            yield (*place, key), Fault("KH002", "has no meaning in a public table", hint="Remove it.")
    if table.refresh is not None:
        hint = "Remove it: a public table changes when keyhole check --confirm says so."
        yield (*place, "refresh"), Fault("KH002", "has no meaning in a public table", hint=hint)
    for name, column in table.columns.items():
        for key in sorted(column.model_fields_set - {"comment"}):
            hint = "Remove it: a public table's columns may carry a comment and nothing else."
            yield (*place, "columns", name, key), Fault("KH002", "has no meaning in a public table", hint=hint)


def find_private_table_faults(place: tuple[str, ...], table: TableSection, policy: PolicyDocument) -> Faults:
    """Yield a fault for each gap, contradiction or meaningless key in a private table and its columns."""
    if table.privacy_unit is None:
        hint = 'Add privacy_unit = "patient_id", ["patient_id", "day"] or "row" (each row by itself).'
        yield (*place, "privacy_unit"), Fault("KH005", "is missing", hint=hint)
        return
    yield from _find_row_unit_faults(place, table) if not table.privacy_unit else _find_bounding_faults(place, table)
    if table.privacy_unit:
        yield from find_grouping_faults((*place, "groupings"), table)
        yield from find_total_faults((*place, "totals"), table)
        yield from find_key_faults((*place, "cut_rows"), table.cut_rows, table)
    if table.path is not None:
        yield from find_path_faults(place, table.path, table, policy)
    elif table.same_unit_as is not None:
        yield from _find_same_unit_faults((*place, "same_unit_as"), table, policy)
    for key, fault in find_shared_cap_faults(table):
        yield (*place, key), fault
    yield from _find_refresh_faults((*place, "refresh"), table.refresh)
    for name, column in table.columns.items():
        yield from find_column_faults((*place, "columns", name), column, table, policy.public_tables)
    yield from find_table_bands_faults(place, table)
    yield from find_range_faults((*place, "ranges"), table)


def _find_refresh_faults(place: tuple[str, ...], refresh: str | None) -> Faults:
    """Yield a missing refresh.

    There is no default, because noise is refined only while the owner promises that the data stay unchanged.
    """
    if refresh is None:
        yield place, Fault("KH002", "is missing, and has no default", hint=REFRESH_CHOICES)
        return
    try:
        parse_refresh(refresh)
    except Fault as fault:
        yield place, fault


def find_unit_root(policy: PolicyDocument, name: str) -> str | None:
    """Return the table at the end of a chain of `same_unit_as` and paths. Return None if the chain is a circle."""
    seen: list[str] = []
    while (other := policy.private_tables[name].leads_to) in policy.private_tables and other is not None:
        seen.append(name)
        if other in seen:
            return None
        name = other
    return name


def _find_same_unit_faults(place: tuple[str, ...], table: TableSection, policy: PolicyDocument) -> Faults:
    """Yield violations of the conditions under which two tables have the same units.

    Their columns' types are checked with the source.
    """
    called, own = str(table.same_unit_as), table.unit_columns
    other = policy.private_tables.get(called)
    if other is None:
        hint = "Name another table with a privacy_unit of as many columns. " + suggest_nearest_name(
            called, policy.private_tables
        )
        yield place, Fault("KH005", "is not a private table", hint=hint)
    elif find_unit_root(policy, place[1]) is None:
        hint = "Let one of the tables have no same_unit_as, and the others name it."
        yield place, Fault("KH005", "leads back to the table itself", hint=hint)
    elif not own or not other.privacy_unit:
        hint = "Remove it: rows that are units by themselves have nothing in common with other tables'."
        yield place, Fault("KH005", 'has no meaning when privacy_unit = "row"', hint=hint)
    elif other.path is None and len(own) != len(other.unit_columns):
        hint = "Name the same people by columns in the same order in both, or remove it."
        problem = f"has a privacy unit of {len(other.unit_columns)} columns, this table of {len(own)}"
        yield place, Fault("KH005", problem, hint=hint)


def _find_row_unit_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    for key in _TABLE_BOUNDING:
        if getattr(table, key) not in (None, {}):
            hint = "Remove it: a row is in one group and counts once."
            yield (*place, key), Fault("KH005", 'has no meaning when privacy_unit = "row"', hint=hint)


def _find_bounding_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    if table.max_groups_per_unit is None:
        hint = "Add it: in how many groups of one question a unit may count; further ones are dropped."
        yield (*place, "max_groups_per_unit"), Fault("KH005", "is missing", hint=hint)
    if table.rows_per_unit is None and table.max_rows_per_group is None:
        hint = "Add rows_per_unit = 20 (a unit's COUNT per group is clipped to it), or max_rows_per_group."
        yield (*place, "rows_per_unit"), Fault("KH005", "is missing", hint=hint)
    if table.rows_per_unit is not None and table.max_rows_per_group is not None:
        hint = "Keep rows_per_unit (totals are clipped) or max_rows_per_group (rows are chosen)."
        yield (*place, "max_rows_per_group"), Fault("KH005", "bounds the same thing as rows_per_unit", hint=hint)
