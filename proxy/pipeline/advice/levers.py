"""The changes that make a question cheaper: other settings, or a larger minimum group size.

Each is planned before it is shown.

Each of `keyhole.min_rows` (for means), `keyhole.min_base` (for growth), `keyhole.tolerance` and `keyhole.fnr` is tried
alone, the smallest change of the answer first. If none suffices, two are tried together. A count that bounds group
sizes may get a larger number. No tolerance above `MOST_TOLERANCE` is offered, and no rate above `MOST_MISSES`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal
from math import ceil
from typing import TypeAlias

from mechanisms.formula import list_literals
from planner.catalog.catalog import Catalog
from planner.catalog.tolerance import BOUNDS_SUFFIX, parse_tolerances, quote_literal, set_amount, widen_tolerances
from planner.errors import KeyholeError
from planner.extract.hints.cheaper_text import raise_number
from planner.plan.affordable_settings import (
    MOST_MISSES,
    MOST_TOLERANCE,
    AffordableValue,
    CostLimit,
    find_cost,
    find_smallest_fnr,
    find_smallest_number,
    find_smallest_tolerance,
)
from planner.plan.expected_time import find_size
from planner.question.plan import Plan
from planner.question.question import Accuracy, Question, write_aggregate
from proxy.pipeline.messages import Asked, read_bare_question

ALL = 0.9
"""Of what is left: a question that costs more leaves too little for a second one like it."""
_MOST_LITERALS = 12  # of a formula for which two settings are tried: larger ones take a refusal's time to calibrate
_TOGETHER = (Decimal("1.5"), Decimal(2), Decimal(3), Decimal(5), Decimal(10))  # factors tried on two settings at once
_MOST_ROWS = 10**9  # that a hint asks of a group of a table of unknown size
_WIDER = Decimal(2)  # times the tolerance in force: what people accept first; more is offered if that is not enough
_Accurately: TypeAlias = Callable[[Accuracy], Question]


@dataclass(frozen=True, slots=True)
class Offer:
    """Settings that together make a question fit.

    `epsilon` is the worst-case loss then, `factor` the size of the change.
    """

    settings: tuple[str, ...]
    epsilon: float
    factor: float

    @property
    def statements(self) -> str:
        """Return the SET statements of these settings."""
        return " ".join(f"SET {setting};" for setting in self.settings)

    @property
    def text(self) -> str:
        """The settings in EXPLAIN's spelling."""
        return " and ".join(self.settings)

    @property
    def is_less_accurate(self) -> bool:
        """Return True if answers come with wider tolerances or more misses than before."""
        return any(setting.startswith(("keyhole.tolerance", "keyhole.fnr")) for setting in self.settings)


def find_offers(asked: Asked, catalog: Catalog, plan: Plan, target: CostLimit) -> tuple[Offer, ...]:
    """Return settings with which a question fits a target: a largest cost, or another condition.

    Larger groups come first, then a wider tolerance, then more misses.

    Parameters:
        plan: the plan of the question as it was asked.
    """
    accuracy = asked.read_accuracy(catalog)

    def read_with_accuracy(changed: Accuracy) -> Question:
        return asked.read_question(catalog, changed)

    found = (
        _make_offer(
            "keyhole.min_rows = {}",
            _find_group_size(read_with_accuracy, accuracy, plan, target, most=_find_rows(plan, catalog)),
        ),
        _make_offer("keyhole.min_base = {}", _find_base(read_with_accuracy, accuracy, plan, target)),
        find_tolerance(asked, catalog, target)
        or _offer_ranking_tolerance(read_with_accuracy, accuracy, plan, target)
        or _offer_difference_tolerances(read_with_accuracy, accuracy, plan, target),
        _make_offer(
            "keyhole.fnr = {}",
            find_smallest_fnr(lambda rate: read_with_accuracy(replace(accuracy, fnr=rate)), target, now=accuracy.fnr),
        ),
    )
    alone = tuple(offer for offer in found if offer is not None)
    return alone or _combine_two_levers(read_with_accuracy, accuracy, plan, target)


def find_tolerance(asked: Asked, catalog: Catalog, target: CostLimit) -> Offer | None:
    """Return the smallest single tolerance with which the question fits the target. It replaces all other tolerances.

    The tolerance is a percentage of each threshold. It is a percentage of the declared bounds if the old tolerance was
    one, or if a threshold is 0. Try up to twice the old tolerance first, then up to `MOST_TOLERANCE`.
    """
    accuracy = asked.read_accuracy(catalog)
    default = parse_tolerances(accuracy.tolerance).default_tolerance

    def with_tolerance(text: str) -> Question:
        return asked.read_question(catalog, replace(accuracy, tolerance=text))

    form = (
        BOUNDS_SUFFIX
        if (default is not None and default.refers_to_bounds) or _is_refused(with_tolerance, "100%")
        else "%"
    )
    alike = default is not None and default.number and default.text.endswith(form)
    now = default.number if default is not None and alike else Decimal(10)
    most = min(_WIDER * now, MOST_TOLERANCE)
    fit = find_smallest_tolerance(with_tolerance, target, now=now, form=form, most=most)
    if fit is None and most < MOST_TOLERANCE:
        fit = find_smallest_tolerance(with_tolerance, target, now=now, form=form)
    return _make_offer("keyhole.tolerance = '{}'", fit)


def _is_refused(with_tolerance: Callable[[str], Question], text: str) -> bool:
    try:
        with_tolerance(text)
    except KeyholeError:
        return True
    return False


def _make_offer(setting: str, fit: AffordableValue | None) -> Offer | None:
    return None if fit is None else Offer((setting.format(fit.text),), fit.epsilon, fit.factor)


def _offer_ranking_tolerance(ask_with: _Accurately, accuracy: Accuracy, plan: Plan, target: CostLimit) -> Offer | None:
    """Return an offer with the smallest sufficient tolerance of a ranking, as an amount.

    Groups that differ by less may stand in either order. No threshold limits the amount.
    """
    ranked = plan.asked_question.ranked
    if ranked is None:
        return None

    def write_tolerance(amount: int | str) -> str:
        return set_amount(accuracy.tolerance, write_aggregate(ranked.functional), str(amount))

    fit = find_smallest_number(
        lambda amount: ask_with(replace(accuracy, tolerance=write_tolerance(amount))),
        target,
        now=max(1, ceil(ranked.tolerance_value)),
    )
    return _make_offer("keyhole.tolerance = '{}'", fit and replace(fit, text=quote_literal(write_tolerance(fit.text))))


def _offer_difference_tolerances(
    ask_with: _Accurately, accuracy: Accuracy, plan: Plan, target: CostLimit
) -> Offer | None:
    """Return an offer of larger tolerances for differences.

    All amounts are multiplied by the smallest sufficient factor.
    """
    if not plan.asked_question.priced_differences:
        return None

    def write_tolerance(times: int) -> str:
        text = accuracy.tolerance
        for name, amount in plan.asked_question.priced_differences:
            text = set_amount(text, name, f"{amount * times:f}")
        return text

    fit = find_smallest_number(
        lambda times: ask_with(replace(accuracy, tolerance=write_tolerance(times))), target, now=1
    )
    return _make_offer(
        "keyhole.tolerance = '{}'", fit and replace(fit, text=quote_literal(write_tolerance(int(fit.text))))
    )


def _find_tolerance_rows(plan: Plan) -> int | None:
    """Return the largest group size on which one of the question's tolerances depends, or None."""
    rows = max((functional.rows for functional in plan.question.functionals), default=1)
    return rows if rows > 1 else None


def _find_rows(plan: Plan, catalog: Catalog) -> int:
    """Return the declared approximate number of rows of the table. No group can be larger."""
    size = find_size(plan.question.table, dict(catalog.sizes))
    return _MOST_ROWS if size is None else int(size[0])


def _find_group_size(
    ask_with: _Accurately, accuracy: Accuracy, plan: Plan, target: CostLimit, *, most: int
) -> AffordableValue | None:
    rows = _find_tolerance_rows(plan)
    if rows is None:
        return None
    return find_smallest_number(
        lambda number: ask_with(replace(accuracy, min_rows=number, is_min_rows_set=True)), target, now=rows, most=most
    )


def _find_base(ask_with: _Accurately, accuracy: Accuracy, plan: Plan, target: CostLimit) -> AffordableValue | None:
    """Return the least size of other groups, larger than every base of the question, that the target affords."""
    read = plan.asked_question.functionals
    guards = [atom.guard for atom in plan.asked_question.atoms if atom.guard and read[atom.functional].cell_reads]
    bases = [number for guard in guards for number in _list_numbers(guard)]
    if not bases:
        return None
    return find_smallest_number(
        lambda number: ask_with(replace(accuracy, min_base=Decimal(number))), target, now=max(bases)
    )


def _combine_two_levers(ask_with: _Accurately, accuracy: Accuracy, plan: Plan, target: CostLimit) -> tuple[Offer, ...]:
    """Return an offer of two changes by the smallest sufficient factor: a wider tolerance and one other setting.

    The other setting is a larger group size for means, and otherwise a higher rate of misses.
    """
    rows = _find_tolerance_rows(plan)
    if sum(1 for formula in plan.question.formulas for _ in list_literals(formula)) > _MOST_LITERALS:
        return ()
    widened = [widen_tolerances(accuracy.tolerance, factor) for factor in _TOGETHER if factor <= _WIDER]
    acceptable = [tolerance for tolerance in widened if _find_percentage(tolerance) <= MOST_TOLERANCE]
    if not acceptable:
        return ()
    for step, factor in enumerate(_TOGETHER):
        tolerance = acceptable[min(step, len(acceptable) - 1)]
        wider = replace(accuracy, tolerance=tolerance)
        if rows is not None:
            number = int((rows * factor).to_integral_value(ROUND_UP))
            wider, other = replace(wider, min_rows=number, is_min_rows_set=True), f"keyhole.min_rows = {number}"
        else:
            rate = max(Decimal(str(accuracy.fnr)), min(Decimal(str(accuracy.fnr)) * factor, MOST_MISSES))
            wider, other = replace(wider, fnr=float(rate)), f"keyhole.fnr = {rate.normalize():f}"
        cost = find_cost(lambda wider=wider: ask_with(wider), target)  # type: ignore[misc]
        if cost is not None:
            return (Offer((other, f"keyhole.tolerance = '{quote_literal(tolerance)}'"), cost, float(factor)),)
    return ()


def _find_percentage(tolerance: str) -> Decimal:
    """Return the largest percentage in a tolerance's text; 0 if it has none."""
    found = parse_tolerances(tolerance)
    amounts = (
        *((found.default_tolerance,) if found.default_tolerance is not None else ()),
        *(amount for _, amount in found.named_tolerances),
    )
    return max((one.number for one in amounts if one.is_percent or one.refers_to_bounds), default=Decimal(0))


def raise_group_minimum(asked: Asked, catalog: Catalog, plan: Plan, target: CostLimit) -> str | None:
    """Return the question's text with a larger minimum in its condition on group size.

    Return None if no minimum makes the question fit, or if the text does not write the minimum as one number.
    """
    guards = [
        (atom.text, number) for atom in plan.asked_question.atoms if atom.guard for number in _list_numbers(atom.guard)
    ]
    if len({number for _, number in guards}) != 1:
        return None
    number = guards[0][1]
    accuracy = asked.read_accuracy(catalog)

    def with_number(larger: int) -> Question:
        text = raise_number(asked.question, number, to=larger)
        if text is None:
            raise KeyholeError("KH106", "the number stands elsewhere")
        changed = replace(asked, question=read_bare_question(text, catalog))
        return changed.read_question(catalog, accuracy)

    if raise_number(asked.question, number, to=number) is None:
        return None
    fit = find_smallest_number(with_number, target, now=number, most=_find_rows(plan, catalog))
    guard = next(atom.guard for atom in plan.asked_question.atoms if atom.guard)
    return None if fit is None else f"ask for larger groups: {guard.replace(str(number), fit.text)}"


def _list_numbers(guard: str) -> Iterator[int]:
    """Yield the numbers in a condition that a count is compared with."""
    written = guard.rpartition(" ")[2]
    if written.isdigit():
        yield int(written)
