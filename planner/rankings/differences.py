"""Tolerances at a fixed price for differences of two sides, if the analyst set none.

`sum(a) > 1.2 * sum(b)` is `sum(a) - 1.2 sum(b) > 0`. Its threshold is 0, and a percentage of 0 is 0. So a tolerance in
percent of all thresholds does not apply. The tolerance is then the amount at which its tests cost a quarter of
`epsilon_per_query`, shared by all such differences of a question. A difference from other groups may also have a
number, as in `count(*) > lag(count(*)) + 10`. The number says how far both sides are apart, not how large they are. So
its tolerance is that amount if it is larger than the percentage of the number.

Guarantee: the amounts are functions of the question and the policy, never of remaining balances. A difference with its
own amount, part of the bounds or percentage is unchanged.

Proof: docs/proofs/optimal_test.md, "An amount at a fixed price".
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from mechanisms.formula import TRUE
from mechanisms.keyhole.cell_readings import find_affordable_tolerance
from mechanisms.protocol import Unachievable
from mechanisms.threshold.one_shot import find_least_rate
from planner.aggregates.aggregate import identify_sum
from planner.aggregates.comparison import Comparison, Having, Slack, SpreadComparison
from planner.catalog.catalog import Table
from planner.catalog.key_space import KeySpace
from planner.catalog.tolerance import Tolerances, parse_tolerances, quote_literal, set_amount
from planner.errors import KeyholeError
from planner.functionals.cell_readings import list_cell_sums, read_functional
from planner.functionals.cells import find_cell_reach
from planner.functionals.functional import find_grid, make_functional
from planner.functionals.row_range import find_row_range
from planner.question.condition import Condition
from planner.question.question import Accuracy, Functional, Measure, Question, UnitRows
from planner.question.unit_groups import count_unit_groups
from planner.rankings.ranked import PRICE
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits

_MOST_STEPS = 1 << 61  # values lie within +-2**62
_DIRECTIONS: Mapping[str, frozenset[bool]] = {
    ">": frozenset((True,)),
    ">=": frozenset((True,)),
    "<": frozenset((False,)),
    "<=": frozenset((False,)),
    "=": frozenset((True, False)),
}
"""By operator, True for a literal that values above a threshold meet."""


def price_differences(
    formulas: Sequence[Having],
    *,
    table: Table,
    keys: KeySpace,
    where: Condition,
    per_unit: UnitRows | None,
    accuracy: Accuracy,
    per_query: float,
) -> tuple[tuple[Having, ...], tuple[tuple[str, Decimal], ...]]:
    """Set a tolerance by price for each difference such as `sum(a) > sum(b)` that has none.

    Return the formulas with them, and the tolerances.

    Parameters:
        per_query: the cost that one question may have.
    """
    said = parse_tolerances(accuracy.tolerance)
    found: dict[object, tuple[Functional, Fraction]] = {}
    parts: dict[object, Fraction] = {}  # the least percentage of the numbers that one is compared with
    directions: dict[object, frozenset[bool]] = {}
    for leaf in _find_differences(formulas, said):
        try:
            if leaf.cell_sums:
                made, size = read_functional(leaf, table=table, where=where)
            else:
                made, size = make_functional(leaf, table=table, min_rows=accuracy.min_rows, where=where)
        except KeyholeError:  # it is refused with the rest of its formula
            continue
        if made.cell_reads or _can_change_sign(made, table, where):
            meaning, part = _identify(leaf), _compute_part(leaf, said)
            found[meaning], parts[meaning] = (made, size), min(part, parts.get(meaning, part))
            directions[meaning] = directions.get(meaning, frozenset()) | _DIRECTIONS[leaf.operator]
    plain = Question(
        table=table,
        keys=keys,
        where=where,
        functionals=(),
        atoms=(),
        formula=TRUE,
        accuracy=accuracy,
        warnings=(),
        per_unit=per_unit,
    )
    amounts = _find_amounts(found, directions, plain, per_query)
    dear = {meaning: one for meaning, one in found.items() if not parts[meaning] or amounts[meaning] > parts[meaning]}
    if len(dear) < len(found):
        amounts = _find_amounts(dear, directions, plain, per_query)  # the others take no share of the price
    priced: dict[str, Decimal] = {}

    def settle(leaf: Comparison | SpreadComparison) -> Having:
        if not isinstance(leaf, Comparison) or not _is_difference(leaf, said):
            return leaf
        amount = amounts.get(_identify(leaf))
        if amount is None or (leaf.threshold and amount <= _compute_part(leaf, said)):
            return leaf
        if amount:
            priced[leaf.left_text] = convert_to_decimal(amount)
        return replace(leaf, fixed_tolerance=amount)

    return tuple(formula.map_comparisons(settle) for formula in formulas), tuple(priced.items())


def _find_amounts(
    found: Mapping[object, tuple[Functional, Fraction]],
    directions: Mapping[object, frozenset[bool]],
    plain: Question,
    per_query: float,
) -> Mapping[object, Fraction]:
    """Return the amount of each difference with which they cost a quarter of `per_query` together.

    Parameters:
        found: the functional of each, and the worth of one of its steps.
        directions: the directions in which each is compared, as in `_DIRECTIONS`.
        plain: the question, without its formula.
    """
    if not found:
        return {}
    question = replace(plain, functionals=tuple(made for made, _ in found.values()))
    losses = find_cell_reach(question).count_losses(count_unit_groups(question))
    number, accuracy = len(found), question.accuracy
    amounts: dict[object, Fraction] = {}
    for place, (meaning, (made, size)) in enumerate(found.items()):
        epsilon, fnr, fpr = per_query / PRICE / losses / number, accuracy.fnr / number, accuracy.fpr / number
        if made.cell_reads:
            ways = directions[meaning]
            amounts[meaning] = _find_amount_beside(
                question, place, size, epsilon=epsilon, fnr=fnr, fpr=fpr, is_above=ways
            )
        else:
            amounts[meaning] = _find_amount(question, place, size, epsilon=epsilon, fnr=fnr, fpr=fpr)
    return amounts


def _identify(leaf: Comparison) -> object:
    return leaf.cell_sums or identify_sum(leaf.summands)


def _find_differences(formulas: Sequence[Having], said: Tolerances) -> Iterator[Comparison]:
    for formula in formulas:
        for leaf in formula.list_comparisons():
            if isinstance(leaf, Comparison) and _is_difference(leaf, said):
                yield leaf


def _compute_part(leaf: Comparison, said: Tolerances) -> Fraction:
    """Return the percentage of a comparison's own number."""
    amount = said.find_amount(leaf.names)
    return Fraction(0) if amount is None else amount.compute_size(threshold=leaf.threshold, bounds=Fraction(0))


def _is_difference(leaf: Comparison, said: Tolerances) -> bool:
    """Return True for a sum compared with 0, or a difference from other groups, if only a percentage of all is set.

    Return False for `<>`, which every group would pass with any amount.
    """
    amount = said.find_amount(leaf.names)
    unsaid = amount is not None and amount is said.default_tolerance and amount.is_percent
    plain = (
        leaf.slack is Slack.THRESHOLD
        and leaf.per_row is None
        and leaf.key_thresholds is None
        and leaf.fixed_tolerance is None
    )
    whole = not leaf.ratio_base and leaf.other_mean is None and not leaf.divides_by_units
    whole = whole and leaf.measure in (Measure.TOTAL, Measure.UNIT_SUM)
    from_groups = len({one.factor > 0 for one in leaf.cell_sums}) > 1 and amount is not None and amount.number > 0
    return (
        unsaid
        and plain
        and whole
        and (from_groups or leaf.right_value == leaf.threshold == 0)
        and leaf.operator != "<>"
    )


def _can_change_sign(made: Functional, table: Table, where: Condition) -> bool:
    """Return True if rows may raise the sum above 0 and lower it below.

    Otherwise bounds decide, or groups without rows lie at the end of its range.
    """
    if made.unit_range is not None and (made.off_each_unit or made.measure is Measure.UNIT_SUM):
        return made.unit_range[0] < 0 < made.unit_range[1]
    ranges = {name: find_grid(table.get_column(name), table, position=None)[1:] for name in made.summed}
    low, high = find_row_range(made.terms, ranges=ranges, table=table, among=where)
    least, most = made.unit_range or (low, high)
    return max(low, least) < 0 < min(high, most)


def _find_amount_beside(
    question: Question,
    place: int,
    size: Fraction,
    *,
    epsilon: float,
    fnr: float,
    fpr: float,
    is_above: frozenset[bool],
) -> Fraction:
    """Return the tolerance of a comparison with other groups whose test costs about `epsilon`, rounded up."""
    try:
        common = list_cell_sums(question)[1]
        steps = find_affordable_tolerance(common, place, epsilon=epsilon, fnr=fnr, fpr=fpr, is_above=is_above)
    except Unachievable:  # refused when the question is planned
        return Fraction(0)
    return round_up_to_two_digits(steps * size)


def _find_amount(question: Question, place: int, size: Fraction, *, epsilon: float, fnr: float, fpr: float) -> Fraction:
    """Return the least tolerance with which one test costs `epsilon` at most, rounded up to two digits."""
    sensitivity = question.functionals[place].sensitivity

    def is_dear(steps: int) -> bool:
        return sensitivity * find_least_rate(tolerance=steps, fnr=fnr, fpr=fpr).rate > epsilon

    low, high = -1, 0
    while high < _MOST_STEPS and is_dear(high):
        low, high = high, 2 * high + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if is_dear(middle) else (low, middle)
    return round_up_to_two_digits(high * size)


def describe_priced_differences(
    formulas: Sequence[Having], priced: Sequence[tuple[str, Decimal]], accuracy: Accuracy
) -> Iterator[str]:
    """Yield a sentence for each difference whose tolerance was set: amount, reason, and the setting to change."""
    shared = f", shared by {len(priced)} such comparisons," if len(priced) > 1 else ""
    said, listed = parse_tolerances(accuracy.tolerance), [leaf for one in formulas for leaf in one.list_comparisons()]
    for name, amount in priced:
        half = quote_literal(set_amount(accuracy.tolerance, name, f"{amount / 2:f}"))
        numbers = {
            leaf.threshold
            for leaf in listed
            if isinstance(leaf, Comparison) and leaf.left_text == name and _compute_part(leaf, said) < amount
        }
        spelled = " and ".join(f"{convert_to_decimal(one):f}" for one in sorted(numbers))
        reason = "that says nothing of the size of its sides" if any(numbers) else "0 has no percentage"
        yield (
            f"{name} may err where it is within {amount:f} of {spelled}, since {reason}, and a fixed price of a "
            f"quarter of epsilon_per_query{shared} allows this; SET keyhole.tolerance = '{half}'; halves it for "
            "more epsilon"
        )
