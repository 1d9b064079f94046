"""Rules for the bounds of certain groups: they name keys and measures, and bound what the table bounds."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal

from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.policy.rules.columns import find_range_faults
from planner.policy.sections import GroupingSection, TableSection, split_keys


def find_grouping_faults(place: tuple[str, ...], table: TableSection) -> Faults:
    """Yield a fault for each contradiction or meaningless key in a table's groupings, if units have several rows."""
    faulty = list(find_key_faults(place, table.groupings, table, allows_expressions=True))
    yield from faulty
    for named, grouping in table.groupings.items():
        here = (*place, named)
        if any(other == here for other, _ in faulty):
            continue
        if not grouping.model_fields_set:
            hint = "Add max_groups = 53, rows = 20 or per_unit = { cost = [0, 500] }, or remove it."
            yield here, Fault("KH005", "bounds nothing", hint=hint)
        elif any(not _is_name(key, table) for key in split_keys(named)) and grouping.model_fields_set != {"max_groups"}:
            hint = "Keep only max_groups: rows and totals of such a group have the bounds of its declared keys."
            yield here, Fault("KH005", "has more than max_groups, and one of its keys is computed", hint=hint)
        else:
            yield from _find_bound_faults(here, grouping, table)


def find_key_faults(
    place: tuple[str, ...], named_keys: Iterable[str], table: TableSection, *, allows_expressions: bool = False
) -> Faults:
    """Yield a fault for each set of keys that are not keys of the table, or that occurs twice.

    Parameters:
        allows_expressions: True if the sets may contain expressions.
    """
    keys = [name for name, column in table.columns.items() if column.key is not None]
    seen: dict[frozenset[str], str] = {}
    for named in named_keys:
        here, columns = (*place, named), split_keys(named)
        unknown = next(
            (one for one in columns if one not in keys and (not allows_expressions or _is_name(one, table))), None
        )
        if unknown is not None:
            hint = 'Name columns with a key, such as "ward" or "ward, day". ' + suggest_nearest_name(unknown, keys)
            yield here, Fault("KH005", f'names "{unknown}", which is not a key of the table', hint=hint)
        elif len(set(columns)) < len(columns):
            yield here, Fault("KH005", "names a key twice", hint="Name each key once.")
        elif (other := seen.setdefault(frozenset(columns), named)) != named:
            yield here, Fault("KH005", f'names the same keys as "{other}"', hint="Keep one of them.")


def _is_name(text: str, table: TableSection) -> bool:
    """Return True if a text is a column's name, and not an expression."""
    return text.isidentifier() or text in table.columns


def _find_bound_faults(place: tuple[str, ...], grouping: GroupingSection, table: TableSection) -> Faults:
    """Yield the faults of one grouping's bounds of rows and totals, also for coarser keys."""
    times = grouping.max_groups or 1
    for column in table.columns.values():
        if grouping.rows is not None and column.bounds is not None and column.bounds[0] < column.bounds[1]:
            yield from find_range_faults(
                (*place, "rows"), column.bounds, column.grid or Decimal(1), grouping.rows * times
            )
    for name, ends in grouping.per_unit.items():
        measure, here = table.columns.get(name), (*place, "per_unit", name)
        if measure is None or measure.bounds is None:
            known = [known for known, column in table.columns.items() if column.bounds is not None]
            yield (
                here,
                Fault("KH004", "is not a measure of the table", hint="Name one. " + suggest_nearest_name(name, known)),
            )
        elif table.max_rows_per_group is not None:
            hint = "Remove it: the table chooses rows, and clips no totals."
            yield here, Fault("KH004", "has no meaning here", hint=hint)
        elif not ends[0] <= 0 <= ends[1]:
            hint = "Include 0, the total of a unit that is absent, such as [0, 8000]."
            yield here, Fault("KH004", "does not contain 0", hint=hint)
        else:
            grid = measure.grid or Decimal(1)
            yield from find_range_faults(here, ends, grid, 1)
            yield from find_range_faults(here, (ends[0] * times, ends[1] * times), grid, 1)


def describe_grouping_doubts(tables: Mapping[str, TableSection]) -> Iterator[str]:
    """Yield a sentence for each bound that another grouping of the same table makes unreachable."""
    for table, section in tables.items():
        for named, grouping in section.groupings.items():
            for other, finer in section.groupings.items():
                if not set(split_keys(named)) < set(split_keys(other)):
                    continue
                if grouping.max_groups is not None and (finer.max_groups or grouping.max_groups) < grouping.max_groups:
                    yield (
                        f'tables.{table}.groupings says that a unit is in {grouping.max_groups} groups by "{named}", '
                        f'and in no more than {finer.max_groups} by "{other}", which are finer: the smaller number '
                        "holds for both."
                    )
                if grouping.rows is not None and (finer.rows or grouping.rows) > grouping.rows:
                    yield (
                        f'tables.{table}.groupings says that a unit has {finer.rows} rows in a group by "{other}", and '
                        f'no more than {grouping.rows} in one by "{named}", which holds several of these: the smaller '
                        "number holds for both."
                    )
