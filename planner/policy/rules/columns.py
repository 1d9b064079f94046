"""Rules for one exposed column: its key domain, and as a measure its bounds, grid and total per unit."""

from collections.abc import Mapping
from decimal import Decimal

from planner.catalog.derived_columns import parse_derivation
from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.policy.rules.band_rules import find_column_bands_faults
from planner.policy.sections import ColumnSection, KeySection, TableSection

_LARGEST = 2**53  # bounds in grid units stay exact in double precision
_LARGEST_TOTAL = 2**62  # and a unit's total in a bigint


def find_column_faults(
    place: tuple[str, ...], column: ColumnSection, table: TableSection, public: Mapping[str, TableSection]
) -> Faults:
    """Yield a fault for each contradiction or gap in the roles of one column: key, filter, measure."""
    if column.key is not None:
        yield from _find_key_faults((*place, "key"), column.key, public)
    if column.expression is not None:
        try:
            parse_derivation(column.expression)
        except Fault as fault:
            yield (*place, "expression"), fault
    roles = [key for key in ("key", "bounds", "grid", "per_unit", "bands") if getattr(column, key) is not None]
    if column.filter is False:
        hint = "Leave the column out to hide it, or write filter = true."
        yield (*place, "filter"), Fault("KH002", "has no meaning: every listed column may be filtered", hint=hint)
    if column.filter and roles:
        hint = f"Remove it: a column with {roles[0]} may be used in filters anyway."
        yield (*place, "filter"), Fault("KH002", f"says filters only, but {roles[0]} is given", hint=hint)
    if column.expression is not None and column.bounds is not None:
        hint = "Give bounds to a column of the table itself."
        yield (*place, "bounds"), Fault("KH004", "a derived column cannot be a measure", hint=hint)
    yield from _find_measure_faults(place, column, table)
    yield from find_column_bands_faults(place, column)


def _find_key_faults(place: tuple[str, ...], key: KeySection, public: Mapping[str, TableSection]) -> Faults:
    given = [name for name in ("values", "values_from", "range") if getattr(key, name) is not None]
    if len(given) != 1:
        hint = 'Write { values = [...] }, { values_from = "table.column" } or { range = [first, last], step = ... }.'
        yield place, Fault("KH003", "needs exactly one of values, values_from and range", hint=hint)
        return
    if key.step is not None and key.range is None:
        yield (*place, "step"), Fault("KH003", "has no meaning without a range", hint="Remove it.")
    if key.range is not None and len(key.range) != 2:
        hint = "Write the first and the last value, such as [1, 12]."
        yield (*place, "range"), Fault("KH003", "needs two ends", hint=hint)
    if key.values_from is not None:
        table, _, column = key.values_from.partition(".")
        if not column or table not in public:
            hint = "Name a column of a table with public = true. " + suggest_nearest_name(table, public)
            yield (*place, "values_from"), Fault("KH003", "is not a public table's column", hint=hint)


def _find_measure_faults(place: tuple[str, ...], column: ColumnSection, table: TableSection) -> Faults:
    if column.bounds is None:
        for key in ("grid", "per_unit"):
            if getattr(column, key) is not None:
                hint = "Add bounds = [lowest, highest]: every value is clipped to them."
                yield (*place, key), Fault("KH004", "needs bounds", hint=hint)
        return
    grid = column.grid
    if grid is not None and grid <= 0:
        yield (*place, "grid"), Fault("KH004", "is not positive", hint="Write the step to round to, such as 0.01.")
        return
    rows = table.rows_per_unit or (table.max_rows_per_group.rows if table.max_rows_per_group else 1)
    yield from find_range_faults((*place, "bounds"), column.bounds, grid or Decimal(1), rows)
    yield from _find_per_unit_faults(place, column, table, grid or Decimal(1))


def find_range_faults(place: tuple[str, ...], ends: tuple[Decimal, Decimal], grid: Decimal, rows: int) -> Faults:
    """Yield the faults of a measure's bounds and grid.

    A unit's total is the sum of at most `rows` values, and must fit into an integer.
    """
    low, high = ends
    if low >= high:
        yield place, Fault("KH004", "the lower end is not below the upper end", hint=f"Write [{high}, {low}]?")
    elif max(abs(low), abs(high), high - low) / grid >= _LARGEST:
        hint = "Choose a coarser grid or narrower bounds."
        yield place, Fault("KH004", f"spans more than 2^53 steps of grid = {grid}", hint=hint)
    elif low % grid or high % grid:
        hint = f"Choose ends that are multiples of grid = {grid}."
        yield place, Fault("KH004", "the ends are not on the grid", hint=hint)
    elif (high - low) / grid * rows >= _LARGEST_TOTAL:
        hint = "Choose a coarser grid, narrower bounds or fewer rows per unit."
        yield place, Fault("KH004", "a unit's total does not fit into 2^62 steps of the grid", hint=hint)


def _find_per_unit_faults(place: tuple[str, ...], column: ColumnSection, table: TableSection, grid: Decimal) -> Faults:
    clipped = bool(table.privacy_unit) and table.max_rows_per_group is None
    if column.per_unit is None:
        if clipped:
            hint = "Add per_unit = [lowest, highest]: a unit's total per group is clipped to it."
            yield (*place, "per_unit"), Fault("KH004", "is missing", hint=hint)
        return
    if not clipped:
        hint = "Remove it: the table chooses rows or protects single rows, and clips no totals."
        yield (*place, "per_unit"), Fault("KH004", "has no meaning here", hint=hint)
        return
    low, high = column.per_unit
    if not low <= 0 <= high:
        hint = "Include 0, the total of a unit that is absent, such as [0, 8000]."
        yield (*place, "per_unit"), Fault("KH004", "does not contain 0", hint=hint)
        return
    yield from find_range_faults((*place, "per_unit"), column.per_unit, grid, 1)
