"""The owner's bands as SQL: the aggregate that they are of, and in which of them a group is."""

from collections.abc import Collection, Sequence
from decimal import Decimal

from sqlglot import exp

from planner.catalog.catalog import BandColumn, Bands, Column, Table
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import strip_parentheses
from planner.scope.name_resolution import Scope, find_column


def aggregate_sql(shown: BandColumn, table: Table, *, qualifier: str = "") -> str:
    """Return the SQL of the aggregate that bands are of; `qualifier` stands before each column, with its dot."""
    match shown.bands.aggregate:
        case "rows":
            return "count(*)"
        case "units":
            unit = ", ".join(f"{qualifier}{spell_name(column)}" for column in table.unit)
            return f"count(DISTINCT {unit})" if len(table.unit) == 1 else f"count(DISTINCT ({unit}))"
        case aggregate:
            return f"{aggregate}({qualifier}{spell_name(shown.measure or '')})"


def band_sql(aggregate: str, bands: Bands) -> str:
    """Return SQL for the number of thresholds that an aggregate reaches.

    An average has to be above a threshold, since one that `>=` lets pass is refused where there may be no values. A
    group without values lies at each threshold, so that noise alone says in which band it is. A warning says how often,
    and which count in HAVING leaves such groups out: a guard of Keyhole's own would cost every question. A sum of
    nothing is 0: thresholds up to 0 are asked from below, and a group without rows is in the band of 0.
    """
    thresholds = bands.thresholds
    if bands.aggregate == "avg":
        return _cases(above=[f"{aggregate} > {number:f}" for number in thresholds])
    below = [f"{aggregate} < {number:f}" for number in thresholds if number <= 0]
    if not below:
        return f"width_bucket({aggregate}, ARRAY[{', '.join(f'{number:f}' for number in thresholds)}])"
    return _cases(below=below, above=[f"{aggregate} >= {number:f}" for number in thresholds[len(below) :]])


def at_least(aggregate: str, bands: Bands, band: int) -> str:
    """Return SQL for the test that a group is in that band or a higher one; `band` is from 1 on."""
    number = bands.thresholds[band - 1]
    return f"{aggregate} {'>' if bands.aggregate == 'avg' else '>='} {number:f}"


def below(aggregate: str, bands: Bands, band: int) -> str:
    """Return SQL for the test that a group is in a lower band than that one, and has values; `band` is from 1 on."""
    number = bands.thresholds[band - 1]
    return f"{aggregate} {'<=' if bands.aggregate == 'avg' else '<'} {number:f}"


def _cases(*, above: Sequence[str], below: Sequence[str] = ()) -> str:
    """Return the number of the band, by conditions on its lower ends that hold from below, and from above."""
    arms = [f"WHEN {condition} THEN {band}" for band, condition in enumerate(below)]
    numbered = list(enumerate(above, start=len(below) + 1))
    arms += [f"WHEN {condition} THEN {band}" for band, condition in reversed(numbered)]
    return f"CASE {' '.join(arms)} ELSE {len(below)} END"


def describe_bands(bands: Bands) -> str:
    """Return the thresholds in words, by the beginning of each band."""
    word = "above" if bands.aggregate == "avg" else "from"
    first, *others = [f"{band} {word} {number:f}" for band, number in enumerate(bands.thresholds, start=1)]
    return ", ".join((f"0 {'up to' if word == 'above' else 'below'} {bands.thresholds[0]:f}", first, *others))


def find_bands(node: exp.Expr, scope: Scope, keys: Collection[str]) -> Bands | None:
    """Return the bands of the aggregate that a call is, with or without FILTER; None if the owner declared none.

    Parameters:
        keys: the names of the columns that the question groups by.
    """
    match without_condition(node):
        case exp.Count(this=exp.Distinct(expressions=counted)):
            parts = [part for one in counted for part in (strip_parentheses(one).expressions or [one])]
            counted_units = set(scope.table.unit).difference(keys) <= _names(parts, scope) <= set(scope.table.unit)
            return _of_table("units", scope) if counted_units else None
        case exp.Count(this=exp.Star() | exp.Literal()):
            return _of_table("rows", scope)
        case exp.Sum(this=exp.Column() as measure):
            return _of_measure("sum", measure, scope)
        case exp.Avg(this=exp.Column() as measure):
            return _of_measure("avg", measure, scope)
    return None


def without_condition(node: exp.Expr) -> exp.Expr:
    """Return an aggregate of all rows in the place of one of some. FILTER and, in what tools write, CASE choose them.

    `sum(CASE WHEN gift THEN amount ELSE 0 END)` gives sum(amount), and of ones, or `count(CASE ...)`, count(*).
    """
    call = node.this if isinstance(node, exp.Filter) else node
    inner = call.this if isinstance(call, exp.Sum | exp.Count) else None
    if isinstance(inner, exp.Case):
        results = [arm.args["true"] for arm in inner.args["ifs"]] + [inner.args.get("default")]
        added = {one for one in results if one is not None and not isinstance(one, exp.Null) and not _is(one, 0)}
        if isinstance(call, exp.Count) or all(_is(one, 1) for one in added):
            return exp.Count(this=exp.Star())
        return exp.Sum(this=added.pop()) if len(added) == 1 else call
    return exp.Count(this=exp.Star()) if isinstance(call, exp.Sum) and inner is not None and _is(inner, 1) else call


def _is(node: exp.Expr, number: int) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and Decimal(node.name) == number


def middle_threshold(bands: Bands) -> Decimal:
    """Return one threshold of several."""
    return bands.thresholds[len(bands.thresholds) // 2]


def _of_table(aggregate: str, scope: Scope) -> Bands | None:
    return next((bands for bands in scope.table.bands if bands.aggregate == aggregate), None)


def _of_measure(aggregate: str, measure: exp.Column, scope: Scope) -> Bands | None:
    column = _column(measure, scope)
    return next((bands for bands in column.bands if bands.aggregate == aggregate), None) if column else None


def _names(parts: Sequence[exp.Expr], scope: Scope) -> set[str]:
    columns = [_column(part, scope) for part in parts]
    return {column.name for column in columns if column is not None}


def _column(node: exp.Expr, scope: Scope) -> Column | None:
    try:
        return find_column(node, scope)
    except KeyholeError:
        return None
