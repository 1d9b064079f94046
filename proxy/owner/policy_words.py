"""A compiled policy in words, for `keyhole check` and the console."""

from collections.abc import Iterator

from planner.catalog.catalog import Bands, Catalog, Column, Grouping, Table, TableCaps


def describe_table(table: Table) -> tuple[str, ...]:
    """Return sentences about a private table: whom it protects, how units are bounded, its keys and measures."""
    protected = "each row by itself" if table.is_row_unit else f"each ({table.unit_text}) as a whole"
    groups = f"{table.groups_per_unit} group{'' if table.groups_per_unit == 1 else 's'}"
    bounds = "" if table.is_row_unit else f", in at most {groups} of an answer"
    if table.path is not None:
        protected += f", found in {table.path.text}"
    if table.root is not None:
        bounds += f"; the same as those of {table.root.table}, and charged with them"
    return (
        f"private table {table.name}: protects {protected}{bounds}; data version by refresh = {table.refresh}",
        *(f"  by {_name_keys(grouping)}: {', '.join(_describe_bounds(grouping))}" for grouping in table.groupings),
        *(f"  {column.name}: {', '.join(roles)}" for column in table.columns if (roles := _list_roles(column))),
        *(f"  {_describe_bands(bands)}" for bands in table.bands),
    )


def _name_keys(grouping: Grouping) -> str:
    return ", ".join((*grouping.keys, *grouping.computed))


def _describe_bounds(grouping: Grouping) -> Iterator[str]:
    if grouping.groups is not None:
        yield f"in at most {grouping.groups:,} group{'' if grouping.groups == 1 else 's'}"
    if grouping.rows is not None:
        yield f"at most {grouping.rows:,} row{'' if grouping.rows == 1 else 's'} in one"
    for name, (low, high) in grouping.per_unit:
        yield f"a unit's total of {name} in one from {low:f} to {high:f}"


def _list_roles(column: Column) -> list[str]:
    roles = []
    if column.domain is not None:
        roles.append(f"key with {len(column.domain):,} public values")
    if column.bounds is not None:
        roles.append(f"measure clipped to {column.bounds[0]:f}..{column.bounds[1]:f} in steps of {column.grid:f}")
    if column.per_unit is not None:
        roles.append(f"a unit's total per group to {column.per_unit[0]:f}..{column.per_unit[1]:f}")
    return [*roles, *map(_describe_bands, column.bands)]


def _describe_bands(bands: Bands) -> str:
    return f"bands of {bands.aggregate}: {', '.join(f'{threshold:f}' for threshold in bands.thresholds)}"


def describe_budget(catalog: Catalog) -> tuple[str, ...]:
    """Return sentences about the policy's caps and its threshold for approval."""
    budget = catalog.budget
    of_unit = "" if budget.delta is None else f" (with delta {budget.delta:g})"
    unit = "" if budget.per_unit is None else f", a unit over everything {budget.per_unit:g}{of_unit}"
    table = "" if budget.per_table is None else f", all questions on one table {budget.per_table:g}"
    but = "" if budget.delta_per_cell is None else f" (with delta {budget.delta_per_cell:g})"
    group = f"a group may lose {budget.per_predicate:g} epsilon{but}"
    caps = f"budget: {group}, one question {budget.per_query:g}{unit}{table}"
    above = budget.approval_above
    return (
        caps,
        *(() if above is None else (f"approval: a question above {above:g} waits for keyhole approve",)),
        *(f"caps of {own.table}: {'; '.join(_describe_own_caps(own))}" for own in budget.tables),
    )


def _describe_own_caps(own: TableCaps) -> Iterator[str]:
    if own.per_table is not None:
        yield f"all questions on it together {own.per_table:g}"
    if own.approval_above is not None:
        yield f"a question above {own.approval_above:g} waits for keyhole approve"
