"""The owner's bands as SQL: their aggregate, and the band that contains a group."""

from collections.abc import Collection, Sequence
from decimal import Decimal

from sqlglot import exp

from planner.catalog.catalog import BandColumn, Bands, Column, Table
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import strip_parentheses
from planner.scope.name_resolution import Scope, find_column


def write_aggregate(shown: BandColumn, table: Table, *, qualifier: str = "") -> str:
    """Return the SQL of the aggregate whose values the bands divide. `qualifier` precedes each column, with its dot."""
    match shown.bands.aggregate:
        case "rows":
            return "count(*)"
        case "units":
            unit = ", ".join(f"{qualifier}{spell_name(column)}" for column in table.unit)
            return f"count(DISTINCT {unit})" if len(table.unit) == 1 else f"count(DISTINCT ({unit}))"
        case aggregate:
            return f"{aggregate}({qualifier}{spell_name(shown.measure or '')})"


def write_band(aggregate: str, bands: Bands) -> str:
    """Return SQL for the number of thresholds that an aggregate reaches.

    An average has to be above a threshold, because `>=` is refused if there may be no values. For a group without
    values only noise decides the band. A warning gives the probability, and a count for HAVING that leaves such groups
    out. An automatic guard would raise the cost of every question. A sum of nothing is 0: thresholds up to 0 are tested
    from below, and a group without rows is in the band of 0.
    """
    thresholds = bands.thresholds
    if bands.aggregate == "avg":
        return _write_cases(above=[f"{aggregate} > {number:f}" for number in thresholds])
    below = [f"{aggregate} < {number:f}" for number in thresholds if number <= 0]
    if not below:
        return f"width_bucket({aggregate}, ARRAY[{', '.join(f'{number:f}' for number in thresholds)}])"
    return _write_cases(below=below, above=[f"{aggregate} >= {number:f}" for number in thresholds[len(below) :]])


def write_at_least(aggregate: str, bands: Bands, band: int) -> str:
    """Return SQL for the test that a group is in the given band or a higher one. `band` is at least 1."""
    number = bands.thresholds[band - 1]
    return f"{aggregate} {'>' if bands.aggregate == 'avg' else '>='} {number:f}"


def write_below(aggregate: str, bands: Bands, band: int) -> str:
    """Return SQL for the test that a group has values and is in a band below the given one. `band` is at least 1."""
    number = bands.thresholds[band - 1]
    return f"{aggregate} {'<=' if bands.aggregate == 'avg' else '<'} {number:f}"


def _write_cases(*, above: Sequence[str], below: Sequence[str] = ()) -> str:
    """Return SQL for the number of the band, by conditions on its lower ends that hold from below, and from above."""
    arms = [f"WHEN {condition} THEN {band}" for band, condition in enumerate(below)]
    numbered = list(enumerate(above, start=len(below) + 1))
    arms += [f"WHEN {condition} THEN {band}" for band, condition in reversed(numbered)]
    return f"CASE {' '.join(arms)} ELSE {len(below)} END"


def describe_bands(bands: Bands) -> str:
    """Return the thresholds in words: where each band begins."""
    word = "above" if bands.aggregate == "avg" else "from"
    first, *others = [f"{band} {word} {number:f}" for band, number in enumerate(bands.thresholds, start=1)]
    return ", ".join((f"0 {'up to' if word == 'above' else 'below'} {bands.thresholds[0]:f}", first, *others))


def find_bands(node: exp.Expr, scope: Scope, keys: Collection[str]) -> Bands | None:
    """Return the bands of an aggregate call, with or without FILTER. Return None if the owner declared none for it.

    Parameters:
        keys: the names of the columns that the question groups by.
    """
    match strip_condition(node):
        case exp.Count(this=exp.Distinct(expressions=counted)):
            parts = [part for one in counted for part in (strip_parentheses(one).expressions or [one])]
            counted_units = set(scope.table.unit).difference(keys) <= _list_names(parts, scope) <= set(scope.table.unit)
            return _find_table_bands("units", scope) if counted_units else None
        case exp.Count(this=exp.Star() | exp.Literal()):
            return _find_table_bands("rows", scope)
        case exp.Sum(this=exp.Column() as measure):
            return _find_measure_bands("sum", measure, scope)
        case exp.Avg(this=exp.Column() as measure):
            return _find_measure_bands("avg", measure, scope)
    return None


def strip_condition(node: exp.Expr) -> exp.Expr:
    """Return an aggregate without the condition on its rows: a FILTER or, in texts of tools, a CASE.

    `sum(CASE WHEN gift THEN amount ELSE 0 END)` gives sum(amount). A sum of ones, or `count(CASE ...)`, gives count(*).
    """
    call = node.this if isinstance(node, exp.Filter) else node
    inner = call.this if isinstance(call, exp.Sum | exp.Count) else None
    if isinstance(inner, exp.Case):
        results = [arm.args["true"] for arm in inner.args["ifs"]] + [inner.args.get("default")]
        added = {one for one in results if one is not None and not isinstance(one, exp.Null) and not _is_number(one, 0)}
        if isinstance(call, exp.Count) or all(_is_number(one, 1) for one in added):
            return exp.Count(this=exp.Star())
        return exp.Sum(this=added.pop()) if len(added) == 1 else call
    return (
        exp.Count(this=exp.Star()) if isinstance(call, exp.Sum) and inner is not None and _is_number(inner, 1) else call
    )


def _is_number(node: exp.Expr, number: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and Decimal(node.name) == number


def choose_middle_threshold(bands: Bands) -> Decimal:
    """Return the middle one of the bands' thresholds."""
    return bands.thresholds[len(bands.thresholds) // 2]


def _find_table_bands(aggregate: str, scope: Scope) -> Bands | None:
    return next((bands for bands in scope.table.bands if bands.aggregate == aggregate), None)


def _find_measure_bands(aggregate: str, measure: exp.Column, scope: Scope) -> Bands | None:
    column = _find_column(measure, scope)
    return next((bands for bands in column.bands if bands.aggregate == aggregate), None) if column else None


def _list_names(parts: Sequence[exp.Expr], scope: Scope) -> set[str]:
    columns = [_find_column(part, scope) for part in parts]
    return {column.name for column in columns if column is not None}


def _find_column(node: exp.Expr, scope: Scope) -> Column | None:
    try:
        return find_column(node, scope)
    except KeyholeError:
        return None
