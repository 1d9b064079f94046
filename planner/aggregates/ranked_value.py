"""What keys are ranked by: a sum over rows, as a comparison with 0 says it."""

from dataclasses import replace
from fractions import Fraction

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope
from planner.aggregates.arithmetic import linear
from planner.aggregates.comparison import Comparison
from planner.aggregates.intervals import length_in_seconds
from planner.aggregates.linear_comparison import compare_with_zero
from planner.aggregates.refusals import not_ranked
from planner.catalog.model import ComputedName
from planner.errors import KeyholeError
from planner.parser.lexer import readable
from planner.parser.tree import bare, contains, position, write_node
from planner.scope.names import find_column
from planner.values.decimals import decimal


def ranked_value(node: exp.Expr, within: GroupScope) -> Comparison:
    """The expression but for constants that are added to it, as `sum > 0` where it rises with that sum, and `sum < 0`
    where it falls.

    Raises KH204 for what is no sum over rows: means and ratios, values picked by rank, numbers of keys, constants.
    """
    try:
        return _read(node, within)
    except KeyholeError as error:
        if error.code == "KH204" and not contains(node, exp.Div):  # a division of integers is told what to write
            raise not_ranked(node, instead=_compare_mean(node, within)) from None
        raise


def _compare_mean(node: exp.Expr, within: GroupScope) -> str | None:
    """The question for the groups whose mean is above a number; None where what is ranked by is no mean of a column."""
    mean, select = bare(node), node.find_ancestor(exp.Select)
    called = mean.this if isinstance(mean, exp.Filter) else mean
    column = find_column(called.this, within.scope) if isinstance(called, exp.Avg) else None
    if column is None or column.bounds is None or select is None or any(map(select.args.get, ("distinct", "joins"))):
        return None
    if not within.keys or any(isinstance(key.name, ComputedName) for key in within.keys):
        return None
    low, high = map(Fraction, column.bounds)
    width = (high - low) / 10
    power = Fraction(10) ** (len(str(int(width))) - 1 if width >= 1 else -len(str(int(1 / width))))
    threshold = decimal(round((low + width) / power) * power)
    keys = [exp.column(key.name, quoted=readable(key.name) != key.name) for key in within.keys]
    question = exp.Select(expressions=keys, group=exp.Group(expressions=keys))
    for part in ("from_", "where", "having"):
        question.set(part, select.args.get(part))
    having = exp.GT(this=mean.copy(), expression=exp.Literal.number(f"{threshold:f}"))
    return f"Instead you can ask: {write_node(question.copy().having(having, copy=False))};"


def _read(node: exp.Expr, within: GroupScope) -> Comparison:
    found = linear(length_in_seconds(node, within), within)
    if found is None or not found.summands or found.own is not None or any(one.per for one, _ in found.summands):
        raise not_ranked(node)
    if found.missing is not None and found.missing != found.constant:
        raise not_ranked(node)
    bare_sum = replace(found, constant=Fraction(0), missing=None)
    made = compare_with_zero(bare_sum, ">", node, position(node), within)
    assert isinstance(made, Comparison)
    return made
