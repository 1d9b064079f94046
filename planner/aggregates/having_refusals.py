"""Refusals of aggregates in HAVING and of their thresholds, with hints about what to ask instead."""

from fractions import Fraction

from sqlglot import exp

from planner.catalog.catalog import Column, Computed
from planner.errors import KeyholeError, cut_at_word
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.values.decimals import convert_to_decimal

_VARIANCES: dict[type[exp.Expr], str] = {
    exp.Variance: "variance",
    exp.VariancePop: "var_pop",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev_samp",
    exp.StddevPop: "stddev_pop",
}


def refuse_type(column: Column, node: exp.Expr) -> KeyholeError:
    """Return KH204 for a column whose type Keyhole does not know."""
    return KeyholeError(
        "KH204",
        f'column "{column.name}" has type {column.declared}, which aggregates cannot use',
        hint="Compare count(*), or ask the owner to expose the column as a number, text, date or timestamp in a view.",
        position=find_position(node),
    )


def refuse_unknown_range(column: Column, *, position: int | None, hint: str | None = None) -> KeyholeError:
    """Return KH203 for a computed column without bounds. `hint` is the question to ask instead."""
    assert isinstance(column.derivation, Computed)
    written, (low, high) = column.comment or column.name, column.derivation.ends
    ends = " and ".join(end for end, known in (("least", low), ("greatest", high)) if known is None)
    names = column.derivation.unbounded_columns
    have, of = ("has", "it") if len(names) == 1 else ("have", "them")
    detail = (
        f"{' and '.join(map(spell_name, names))} {have} no bounds, and neither WHERE nor FILTER limits {of} enough."
    )
    return KeyholeError(
        "KH203",
        f"the {ends} value of {cut_at_word(written)} {'are' if ' and ' in ends else 'is'} not known",
        detail=detail if names else "Its divisor may be near 0, by declared bounds and by what WHERE and FILTER say.",
        hint=hint or _ask_for_range(column, column.derivation),
        position=position,
    )


def _ask_for_range(column: Column, derivation: Computed) -> str:
    """Return a hint that shows how to declare the missing ends: by a condition, or by a clip for a quotient."""
    written, (low, high) = column.comment or column.name, derivation.ends
    if derivation.term.function == "/":
        clipped = written if low is not None else f"greatest({written}, -1000)"
        clipped = clipped if high is not None else f"least({clipped}, 1000)"
        return f"Say how far it counts, with numbers of your own: {clipped}, FILTER (WHERE {written} IS NOT NULL)."
    most = "864000" if "EPOCH" in written.upper() else "1000"
    least = f"-{most}" if " - " in written else "0"  # a difference has values of both signs
    said = f"<= {most}" if low is not None else f">= -{most}" if high is not None else f"BETWEEN {least} AND {most}"
    return f"Say which values count, with numbers of your own: FILTER (WHERE {written} {said})."


def refuse_variable_threshold(node: exp.Expr, *, hint: str, detail: str | None = None) -> KeyholeError:
    """Return KH208 for a threshold that is not constant."""
    return KeyholeError(
        "KH208",
        f"{write_short(node)} is not a constant threshold",
        detail=detail,
        hint=hint,
        position=find_position(node),
    )


def refuse_threshold_type(node: exp.Expr) -> KeyholeError:
    """Return KH208 for a constant threshold of the wrong type."""
    return KeyholeError(
        "KH208",
        f"the threshold {write_short(node)} is not a number",
        hint="Compare with a number, such as count(*) > 100.",
        position=find_position(node),
    )


def refuse_arithmetic(node: exp.Expr, *, hint: str | None) -> KeyholeError:
    """Return KH204 for arithmetic over aggregates that is neither a sum, a mean nor a ratio.

    `hint` replaces the general hint if more is known.
    """
    return KeyholeError(
        "KH204",
        f"{write_short(node)} is not supported",
        detail="HAVING compares sums of aggregates times constants, a mean, or a ratio, with a constant.",
        hint=hint
        or "Compare sums of aggregates, a mean or a ratio with a constant, for example "
        f"{_find_askable_aggregate(node)} > 40.",
        position=find_position(node),
    )


def _find_askable_aggregate(node: exp.Expr) -> str:
    """Return the first aggregate of an expression that can be asked about by itself, or else a count."""
    for found in node.find_all(exp.Count, exp.Sum, exp.Avg):
        counted = isinstance(found, exp.Count) and isinstance(found.this, exp.Star | exp.Distinct)
        if counted or isinstance(found.this, exp.Column):
            return write_node(found)
    return "count(*)"


def refuse_distinct_divisor(ratio: exp.Div, *, hint: str | None) -> KeyholeError:
    """Return KH204 for an aggregate divided by a count of different values.

    `hint` replaces the usual hint if the count is of privacy units.
    """
    return KeyholeError(
        "KH204",
        f"{write_short(ratio)} divides by a count of different values",
        detail="Such a quotient cannot be rewritten as a sum over rows. A mean per privacy unit is the mean over a "
        "subquery that groups by the unit.",
        hint=hint or f"Compare both aggregates with constants, for example {_find_askable_aggregate(ratio)} > 40.",
        position=find_position(ratio),
    )


def refuse_aggregate(call: exp.Expr) -> KeyholeError:
    """Return KH204 for an unsupported aggregate, with a supported one to ask instead."""
    column = next((write_node(found) for found in call.find_all(exp.Column)), "x")
    if type(call) in _VARIANCES:
        detail = "A variance or standard deviation, times a constant, is compared with a constant, and not rounded."
        hint = f"Compare it alone: {_VARIANCES[type(call)]}({column}) > 10."
    elif isinstance(call, exp.Max | exp.Min):
        detail = "max and min pick one value and are no sums over rows: each is compared with a constant, by itself."
        hint = f"Compare each by itself, max({column}) and min({column}), with constants of your own."
    elif isinstance(call, exp.Median) or isinstance(call.this, exp.PercentileCont | exp.PercentileDisc):
        detail = "Percentiles pick one value and are no sums over rows: each is compared with a constant, by itself."
        hint = f"Compare it with a constant, for example percentile_disc(0.5) WITHIN GROUP (ORDER BY {column}) > 50."
    elif isinstance(call.this, exp.Mode):
        detail = "The most frequent value is no sum over rows."
        above = call.parent
        value = write_node(above.expression) if isinstance(above, exp.EQ) else "40"
        hint = f"Instead you can ask: count(*) FILTER (WHERE {column} = {value}) > 1000, how many rows have a value."
    elif (both := _read_column_pair(call)) is not None:
        detail = "How two columns go together is no sum over rows, nor a mean or a ratio of sums."
        one, other = both
        hint = (
            f"Instead you can ask: avg({one}) FILTER (WHERE {other} > 10) > avg({one}) FILTER (WHERE {other} <= 10), "
            f"with a middle value of {other} in the place of 10."
        )
    else:
        detail = "HAVING may use count, sum, avg, max, min, percentiles, bool_and and bool_or, each with FILTER."
        counted = "*" if column == "x" else column
        hint = f"Instead you can ask: count({counted}) > 40, or sum(x) or avg(x) of a column x that has bounds."
    return KeyholeError(
        "KH204",
        f"{write_short(call)} is not supported",
        detail=detail,
        hint=hint,
        position=find_position(call),
    )


def _read_column_pair(call: exp.Expr) -> tuple[str, str] | None:
    """Return the two columns of a correlation, a covariance or a regression."""
    named = type(call).__name__.lower() if not isinstance(call, exp.Anonymous) else str(call.this).lower()
    columns = [write_node(found) for found in call.find_all(exp.Column)]
    return (columns[0], columns[1]) if named.startswith(("corr", "covar", "regr")) and len(columns) > 1 else None


def refuse_integer_quotient(node: exp.Div) -> KeyholeError:
    """Return KH204 for a quotient of whole numbers."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} divides integers, which drops the remainder",
        detail="In SQL 3 / 4 is 0.",
        hint="Make one side a decimal: "
        f"1.0 * {write_parenthesised(node.this)} / {write_parenthesised(node.expression)}",
        position=find_position(node),
    )


def write_parenthesised(node: exp.Expr) -> str:
    """Return an expression as SQL, in parentheses if an operator before or after it could bind more tightly."""
    return f"({write_node(node)})" if isinstance(node, exp.Binary) else write_node(node)


def refuse_key_factor(node: exp.Expr) -> KeyholeError:
    """Return KH204 for an aggregate times a number that a key determines."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} multiplies or divides an aggregate by a number that differs between groups",
        detail="A number that a key determines may be the threshold, or be added to or subtracted from a threshold.",
        hint="Move it to the other side: count(*) > 0.8 * capacity.",
        position=find_position(node),
    )


def refuse_divisor(node: exp.Div) -> KeyholeError:
    """Return KH204 for a ratio whose divisor is not one sum."""
    return KeyholeError(
        "KH204",
        f"{write_short(node.expression)} is not one count or sum, so nothing can be divided by it",
        detail="A ratio is tested by multiplying its divisor out.",
        hint="Divide by count(*), or by one sum such as sum(x), or a positive multiple of these.",
        position=find_position(node.expression),
    )


def refuse_zero_mean(quotient: exp.Div, operator: str, threshold: exp.Expr, node: exp.Expr) -> KeyholeError:
    """Return KH204 for a quotient of means over different rows, if the divisor may be 0 or less by its bounds."""
    divisor, select = write_node(quotient.expression), node.find_ancestor(exp.Select)
    by = strip_parentheses(quotient.expression)
    divided = by.this if isinstance(by, exp.Nullif) else by
    hint = "Compare each mean with a number of its own."
    if select is not None and isinstance(node, exp.GT | exp.GTE | exp.LT | exp.LTE) and not node.find_ancestor(exp.Not):
        product = f"{write_parenthesised(threshold)} * {write_node(divided)}"
        instead = f"{write_node(quotient.this)} {operator} {product}"
        hint = f"Instead you can ask: {write_node(select).replace(write_node(node), instead, 1)};"
    return KeyholeError(
        "KH204",
        f"{divisor[:80]} may be 0, and it is a mean over other rows than its numerator",
        detail="A quotient is multiplied out, which needs a divisor whose bounds are above 0.",
        hint=hint,
        position=find_position(quotient.expression),
    )


def refuse_ratio_without_base(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a ratio by a sum that may be 0, if the replacement of NULL passes or the threshold is 0."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} divides by a sum that may be 0",
        detail="Keyhole compares this ratio with a threshold other than 0, in groups whose divisor is large enough.",
        hint="Compare the ratio itself with a number above 0, or its numerator with 0.",
        position=find_position(node),
    )


def refuse_sum_with_coalesce(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a term that is added to a COALESCE of a mean or ratio."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} adds to a COALESCE of a mean or ratio",
        hint="Compare COALESCE by itself with a constant: coalesce(avg(x), 0) > 40.",
        position=find_position(node),
    )


def refuse_mean_against_key(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a mean, ratio or COALESCE compared with a number that a key determines."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} compares more than a count, sum or mean with a number that differs between groups",
        detail="A ratio, a COALESCE, or a mean in a sum is compared with one number for all groups.",
        hint="Instead you can ask: avg(x) > target, or count(*) > 0.8 * capacity.",
        position=find_position(node),
    )


def _write_sum(node: exp.Expr) -> str:
    """Write a sum or count of the expression's argument."""
    for found in node.find_all(exp.Sum, exp.Avg):
        if isinstance(found.this, exp.Column):
            return f"sum({write_node(found.this)})"
    return "count(*)"


def refuse_ranking(node: exp.Expr) -> KeyholeError:
    """Return KH204 for an expression by which keys cannot be ranked."""
    return KeyholeError(
        "KH204",
        f"groups cannot be ranked by {write_short(node)}",
        detail="A ranking takes counts, sums, sums and multiples of these, and means per counted row or unit.",
        hint=f"Rank by a sum or count, for example ORDER BY {_write_sum(node)} DESC, or compare it in HAVING.",
        position=find_position(node),
    )


def refuse_ranking_by_groups(text: str, position: int | None) -> KeyholeError:
    """Return KH204 for a value of other groups by which keys cannot be ranked."""
    return KeyholeError(
        "KH204",
        f"groups cannot be ranked by {text}",
        detail="A ranking takes differences from earlier or later groups along one key.",
        hint="Rank by n - lag(n) OVER (ORDER BY month), or compare with the total or mean in WHERE around the groups.",
        position=position,
    )


def refuse_ranking_by_growth(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a quotient of groups by which keys cannot be ranked. The hint shows the difference."""
    compared = next(one for one in node.find_all(exp.Div) if contains_type(one.expression, exp.Window))
    divided, before = _strip_scale(compared.this), _strip_scale(compared.expression)
    own, difference = divided, divided
    if isinstance(divided, exp.Sub) and contains_type(divided.expression, exp.Window):
        own = divided.this
    elif not contains_type(divided, exp.Window):
        difference = exp.Sub(this=divided.copy(), expression=before.copy())
    return KeyholeError(
        "KH204",
        f"groups cannot be ranked by the quotient {write_short(node)}",
        detail="A small divisor makes a quotient of any size, so that no noise would keep the order.",
        hint=f"Rank by the difference: ORDER BY {write_node(difference)} DESC NULLS LAST. "
        f"Or compare: {write_node(own)} > 1.2 * {write_node(before)} AND {write_node(before)} >= 1000.",
        position=find_position(node),
    )


def _strip_scale(node: exp.Expr) -> exp.Expr:
    """Return a value without casts, `nullif(x, 0)`, and numbers that multiply it."""
    node = strip_parentheses(node)
    while True:
        match node:
            case exp.Cast() | exp.Nullif():
                node = strip_parentheses(node.this)
            case exp.Mul(this=exp.Literal(), expression=scaled) | exp.Mul(this=scaled, expression=exp.Literal()):
                node = strip_parentheses(scaled)
            case _:
                return node


def refuse_self_comparison(node: exp.Expr) -> KeyholeError:
    """Return KH204 for the same aggregate on both sides."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} compares an aggregate with itself",
        hint="Compare it with a constant.",
        position=find_position(node),
    )


def refuse_true_coalesce(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a COALESCE that makes a comparison true by itself."""
    names = dict.fromkeys(write_node(found) for found in node.find_all(exp.Column)) or {"*": None}
    return KeyholeError(
        "KH204",
        f"{write_short(node)} is true for groups without values, because of COALESCE alone",
        detail="The value that replaces NULL passes the threshold, and the aggregate over no rows does not.",
        hint="Leave COALESCE out, or ask " + " AND ".join(f"count({name}) < 1" for name in names) + " as a "
        "condition of its own, joined by OR.",
        position=find_position(node),
    )


def refuse_several_keys(node: exp.Expr) -> KeyholeError:
    """Return KH208 for a threshold that no single key determines."""
    return KeyholeError(
        "KH208",
        f"the threshold {write_short(node)} is not determined by one key",
        detail="A threshold that differs between groups is looked up by one of the GROUP BY keys.",
        hint="Compare with columns of a public table that is joined by one of the keys.",
        position=find_position(node),
    )


def refuse_descending_percentile(node: exp.Expr, ordered: exp.Expr, *, share: Fraction) -> KeyholeError:
    """Return KH204 for a percentile of a descending order. `share` is the share that it counts from above."""
    column = write_node(ordered.this)
    return KeyholeError(
        "KH204",
        f"{write_short(node)} takes a percentile in descending order",
        detail="percentile_disc takes the next value in its own order, so the two directions differ by up to a row.",
        hint=f"Order ascending and take 1 - p: "
        f"percentile_disc({convert_to_decimal(1 - share)}) WITHIN GROUP (ORDER BY {column}) > 40.",
        position=find_position(ordered),
    )


def refuse_variance_argument(call: exp.Expr) -> KeyholeError:
    """Return KH204 for the variance of anything but a linear expression of one column."""
    return KeyholeError(
        "KH204",
        f"{write_short(call)} is not the variance of one column",
        detail="A variance is taken of one column, times and plus constants, among the rows of its FILTER.",
        hint="Leave out rows without a value, which a variance does not count anyway, or ask the owner to expose the "
        "expression as a column of a view, with bounds.",
        position=find_position(call),
    )


def refuse_extreme(shown: exp.Expr) -> KeyholeError:
    """Return KH204 for the largest or least of rows, which a single row decides."""
    return KeyholeError(
        "KH204",
        f"{write_short(shown)} is a single row's value",
        detail="Noise must hide each row, so the largest and the least of them stay unknown.",
        hint="Ask for a percentile such as 0.01 or 0.99, or write the column's declared bound.",
        position=find_position(shown),
    )


def refuse_group_comparison(text: str, position: int | None, place: str) -> KeyholeError:
    """Return KH204 for a comparison with other groups in a place where some groups of the question may be missing."""
    return KeyholeError(
        "KH204",
        f"{text} compares a group with others, {place}",
        detail="A total, a mean or a neighbour is taken over all groups of the question.",
        hint="Ask the comparison with other groups in a question of its own, and write the other conditions around it.",
        position=position,
    )


def refuse_group_quotient(node: exp.Expr) -> KeyholeError:
    """Return KH204 for a quotient of means whose divisor may be 0."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} divides by the mean of other groups, which may be 0",
        detail="Means of other groups are compared with a group's own mean, each times a number.",
        hint="Multiply out: avg(x) > 1.1 * lag(avg(x)) OVER (ORDER BY month).",
        position=find_position(node),
    )


def refuse_group_divisor(node: exp.Expr) -> KeyholeError:
    """Return KH204 for arithmetic with a total or neighbour that is no sum of multiples."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} divides a total or a neighbour, or divides by one beside other sums",
        detail="A comparison with other groups compares sums, each times a number.",
        hint="Instead you can ask: sum(x) > 0.1 * sum(sum(x)) OVER (), a share as a multiple of the total.",
        position=find_position(node),
    )


def refuse_missing_key(node: exp.Window) -> KeyholeError:
    """Return KH204 for a window partitioned or ordered by something other than the question's keys."""
    return KeyholeError(
        "KH204",
        f"{write_short(node)} is partitioned or ordered by something other than a key of the question",
        detail="PARTITION BY takes keys, or expressions of one key such as its year. "
        "ORDER BY takes one key of numbers or times.",
        hint=_suggest_parts(node) or "Use the columns of GROUP BY.",
        position=find_position(node),
    )


def _suggest_parts(node: exp.Window) -> str:
    """Return a hint for a window in the order of several keys; an empty text for others."""
    order = node.args.get("order")
    keys = [write_node(one.this) for one in order.expressions] if order is not None else []
    if len(keys) < 2:
        return ""
    return (
        f"Instead you can ask: PARTITION BY {', '.join(keys[1:])} ORDER BY {keys[0]}. Or group by one key of times, "
        "such as a month, in the place of these."
    )


def refuse_window(node: exp.Window) -> KeyholeError:
    """Return KH204 for a window that no threshold can be compared with."""
    return KeyholeError(
        "KH204",
        f"{write_node(node)[:80]} is a window that thresholds cannot be compared with",
        detail="Thresholds are compared with totals and means of all groups, and with earlier and later groups.",
        hint="Instead you can ask: sum(...) OVER (PARTITION BY ...), avg(...) OVER (), lag(...) OVER (ORDER BY month).",
        position=find_position(node),
    )
