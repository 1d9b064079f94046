"""Bases of comparisons with other groups: how large the other side is, of which a percentage is the tolerance.

`n > 1.2 * lag(n)` is `n - 1.2 lag(n) > 0`, and a percentage of 0 is 0. Where AND joins it with a *base*,
`lag(n) >= 500`, a tolerance of 10 % is 10 % of the right side at the base. The base is tested with a tolerance of its
own, so that groups down to 450 pass it, and the amount is 10 % of 1.2 * 450. `keyhole.min_base` adds a base to every
such comparison without one as large. Both read the same noisy values of the groups.

Guarantee: a group that passes the minimal formula with all literals relaxed on their sums passes it with each such
comparison within the percentage of its right side. The base decides as a count does of a mean's group size.

Proof: docs/proofs/group_sizes.md
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from mechanisms.protocol import Deviation
from planner.aggregates.aggregate import identify_sum
from planner.aggregates.comparison import (
    FAILS,
    HOLDS,
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    Slack,
)
from planner.catalog.tolerance import Tolerances, parse_tolerances
from planner.functionals.added_guards import flatten
from planner.functionals.atoms.read_atoms import MOST_LITERALS
from planner.functionals.guard_remedy import find_slack_share
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import Accuracy, Measure
from planner.values.decimals import convert_to_decimal, round_up_to_two_digits

_Weights: TypeAlias = frozenset[tuple[int, Fraction]]
"""The sums of cells that a comparison adds up, by number, each with its factor."""
_UPWARD, _DOWNWARD = (">", ">="), ("<", "<=")


@dataclass(frozen=True, slots=True)
class _Base:
    """A base of one comparison: the literal, the least value that passes it relaxed, and the tolerance that follows."""

    literal: Comparison
    least_value: Fraction
    tolerance: Fraction


def set_bases(formulas: Sequence[Having], accuracy: Accuracy) -> tuple[tuple[Having, ...], tuple[str, ...]]:
    """Return the formulas with a tolerance for each comparison that has a base, and a sentence about each tolerance.

    With `keyhole.min_base`, that base is added to each comparison whose own base is smaller or missing.
    """
    if not _may_have_bases(formulas):
        return tuple(formulas), ()
    setter = _BaseSetter(accuracy, parse_tolerances(accuracy.tolerance))
    made = tuple(map(setter.set_in_formula, formulas))
    return made, tuple(setter.messages)


def propose_base(formulas: Sequence[Having], priced: Mapping[str, Decimal], accuracy: Accuracy) -> tuple[str, ...]:
    """Return a sentence about the base at which the percentage tolerance would equal the tolerance of a fixed price.

    Return none if several bases are needed, or if one is set.

    Parameters:
        priced: the tolerances with a fixed price, by the left side of their comparison.
    """
    amount = parse_tolerances(accuracy.tolerance).default_tolerance
    if not priced or accuracy.min_base is not None or amount is None or not amount.is_percent or not amount.number:
        return ()
    if not _may_have_bases(formulas):
        return ()
    setter, found = _BaseSetter(accuracy, parse_tolerances(accuracy.tolerance)), dict[str, Fraction]()
    for leaf in (leaf for formula in formulas for leaf in formula.list_comparisons()):
        if not isinstance(leaf, Comparison) or not _is_growth(leaf) or leaf.left_text not in priced:
            continue
        base = setter.make_base(leaf, Fraction(1))
        if base is None or base.fixed_tolerance is None or base.fixed_tolerance >= 1:
            return ()
        times = _divide(setter.weigh(leaf), setter.weigh(base))
        assert times is not None
        share = Fraction(amount.number) / 100 * abs(times) * (1 - base.fixed_tolerance)
        found[base.left_text] = max(Fraction(priced[leaf.left_text]) / share, found.get(base.left_text, Fraction(0)))
    if len(found) != 1:
        return ()
    (side, least), *_ = found.items()
    number = f"{convert_to_decimal(round_up_to_two_digits(least)):f}"
    return (
        f"SET keyhole.min_base = {number}; compares only where {side} is at least {number}, "
        f"with {amount.text} of its side as the tolerance",
    )


def _may_have_bases(formulas: Sequence[Having]) -> bool:
    """Return True if a comparison needs a base. Return False for formulas that are refused as too long."""
    listed = [tuple(formula.list_comparisons()) for formula in formulas]
    if any(len(one) > MOST_LITERALS for one in listed):
        return False
    return any(isinstance(leaf, Comparison) and _is_growth(leaf) for one in listed for leaf in one)


@dataclass(frozen=True, slots=True)
class _BaseSetter:
    """The settings of a question, what is said about its bases, and the sums of cells that it reads, each numbered."""

    accuracy: Accuracy
    tolerances: Tolerances
    messages: dict[str, None] = field(default_factory=dict)
    _numbers: dict[object, int] = field(default_factory=dict)
    _weighed: dict[int, tuple[Comparison, _Weights]] = field(default_factory=dict)

    def set_in_formula(self, formula: Having) -> Having:
        """Return one formula with a tolerance for each comparison beside a base."""
        if self.accuracy.min_base is not None:
            formula = flatten(self._add_bases(formula, (), Fraction(self.accuracy.min_base)))
        formula = self._drop_implied(formula, ())
        bases = self._find_bases(formula)

        def settle(leaf: Having) -> Having:
            if not isinstance(leaf, Comparison) or not _is_growth(leaf):
                return leaf
            base = bases.get(self.weigh(leaf))
            if base is None:
                return leaf
            if base.tolerance:
                self.messages[self._describe(leaf, base)] = None
            return replace(leaf, fixed_tolerance=base.tolerance, base_text=base.literal.text)

        return formula.map_comparisons(settle)

    def weigh(self, leaf: Comparison) -> _Weights:
        """Return the sums of cells of a comparison, each once, with their factors."""
        known = self._weighed.get(id(leaf))
        if known is None:
            factors: dict[int, Fraction] = {}
            for one in leaf.cell_sums:
                meaning = one.cells, one.measure, identify_sum(one.summands)
                number = self._numbers.setdefault(meaning, len(self._numbers))
                factors[number] = factors.get(number, Fraction(0)) + one.factor
            weights = frozenset((number, factor) for number, factor in factors.items() if factor)
            known = self._weighed[id(leaf)] = leaf, weights  # with the comparison, since another may get its id
        return known[1]

    def make_base(self, leaf: Comparison, least: Fraction) -> Comparison | None:
        """Return the base on the side with other groups. Return None if that side adds some and subtracts others."""
        side = tuple(one for one in leaf.cell_sums if one.cells != OWN_GROUP_ALONE)
        if len(side) == len(leaf.cell_sums):
            side = side[1:]  # a neighbour against another: the first is on the left
        # beside a mean of groups, their deviation is part of a limit whose size the mean says
        side = tuple(one for one in side if not isinstance(one.cells.statistic, Deviation)) or side
        if len({one.factor > 0 for one in side}) != 1:
            return None
        whole = sum(one.factor for one in side)  # the mean of several
        scaled = tuple(replace(one, factor=one.factor / whole) for one in side)
        left = " + ".join(one.text if one.factor == 1 else f"{_write(one.factor)} * {one.text}" for one in scaled)
        called = "count" if all(one.measure is Measure.ROWS for one in side) else "sum"
        return Comparison(
            text=f"{left} >= {_write(least)}",
            left_text=left,
            names=(left, called),
            measure=Measure.TOTAL,
            summands=(),
            operator=">=",
            right_value=least,
            threshold=least,
            origin=Fraction(0),
            per_row=None,
            required_values=(),
            slack=Slack.THRESHOLD,
            position=leaf.position,
            fixed_tolerance=least * find_slack_share(self.tolerances, of=called),
            cell_sums=scaled,
        )

    def _add_bases(self, formula: Having, beside: tuple[Comparison, ...], least: Fraction) -> Having:
        """Return the formula with a base beside each comparison that has no larger one, except inside complements."""
        match formula:
            case Conjunction(children) | Disjunction(children):
                known = (*beside, *_list_bases(children)) if isinstance(formula, Conjunction) else beside
                return replace(formula, children=tuple(self._add_bases(child, known, least) for child in children))
            case Comparison() if _is_growth(formula):
                base = self.make_base(formula, least)
                if base is None:
                    self.messages[
                        f"keyhole.min_base does not apply to {formula.left_text}, which adds some of the other "
                        "groups and subtracts others; write AND with the least size of one of them"
                    ] = None
                    return formula
                if any(self.weigh(one) == self.weigh(base) and one.right_value >= least for one in beside):
                    return formula
                self.messages[
                    f"compares only where {base.left_text} is at least {_write(least)}, as keyhole.min_base says; "
                    "other groups count as false"
                ] = None
                return Conjunction((formula, base))
            case _:
                return formula

    def _drop_implied(self, formula: Having, beside: tuple[Comparison, ...]) -> Having:
        """Return the formula without the literals that a base beside them decides: the sign of a divisor."""
        match formula:
            case Conjunction(children):
                known = (*beside, *_list_bases(children))
                kept = tuple(self._drop_implied(child, known) for child in children)
                return FAILS if FAILS in kept else Conjunction(tuple(child for child in kept if child != HOLDS))
            case Disjunction(children):
                kept = tuple(self._drop_implied(child, beside) for child in children)
                return HOLDS if HOLDS in kept else Disjunction(tuple(child for child in kept if child != FAILS))
            case Comparison() if (
                formula.cell_sums and formula.right_value == 0 and formula.operator in (*_UPWARD, *_DOWNWARD)
            ):
                multiples = (self._find_multiple(formula, base) for base in beside)
                times = next((one for one in multiples if one is not None), None)
                if times is None:
                    return formula
                return HOLDS if (formula.operator in _UPWARD) is (times > 0) else FAILS
            case _:
                return formula

    def _find_multiple(self, leaf: Comparison, base: Comparison) -> Fraction | None:
        """Return the number of times that a comparison's sum is the base's. Return None if it is no multiple of it."""
        weights, by = self.weigh(leaf), self.weigh(base)
        return _divide(weights, by) if len(weights) == len(by) else None

    def _find_bases(self, formula: Having) -> Mapping[_Weights, _Base]:
        """Return the base of each comparison that has one wherever it is typed: the smallest over these places."""
        literals, relaxed = tuple(_list_literals(formula)), dict[tuple[_Weights, Fraction, bool], Fraction]()
        found = dict[_Weights, _Base | None]()
        for leaf, beside in _pair_with_bases(formula, (), is_implied=True):
            share = self._find_percentage(leaf)
            if share is None:
                continue
            weights, here = self.weigh(leaf), list[_Base]()
            for base, is_implied in beside:
                by = self.weigh(base)
                times = _divide(weights, by) if len(by) < len(weights) else None
                if times is None:
                    continue
                if (by, base.right_value, is_implied) not in relaxed:
                    relaxed[by, base.right_value, is_implied] = self._relax(base, literals, is_implied=is_implied)
                least = relaxed[by, base.right_value, is_implied]
                if least:
                    here.append(_Base(base, least, share * abs(times) * least))
            best = max(here, key=lambda one: one.tolerance, default=None)
            before = found.get(weights, best)
            lost = best is None or before is None
            found[weights] = None if lost else min(best, before, key=lambda one: one.tolerance)
        return {weights: base for weights, base in found.items() if base is not None}

    def _relax(self, base: Comparison, literals: Sequence[tuple[Comparison, bool]], *, is_implied: bool) -> Fraction:
        """Return the least value that passes a base with its tolerance, or 0 if groups with less may qualify.

        Parameters:
            literals: all on other groups, each True if it stands in a complement.
            is_implied: True if the whole formula implies the base.
        """
        same = [
            (one, times, is_outside)
            for one, is_outside in literals
            if (times := self._find_multiple(one, base)) is not None
        ]
        rises = all(one.operator in _UPWARD and times > 0 and not is_outside for one, times, is_outside in same)
        if not (rises or is_implied):
            return Fraction(0)
        reached = [
            (abs(one.right_value) - self._find_slack(one)) / abs(times)
            for one, times, _ in same
            if one.right_value / times >= base.right_value
        ]
        return max(Fraction(0), min(reached))

    def _find_slack(self, leaf: Comparison) -> Fraction:
        """Return the tolerance of a base in its own unit."""
        if leaf.fixed_tolerance is not None:
            return leaf.fixed_tolerance
        amount = self.tolerances.find_amount(leaf.names)
        if amount is None or amount.refers_to_bounds:  # without a tolerance it is refused
            return abs(leaf.threshold)
        return amount.compute_size(threshold=leaf.threshold, bounds=Fraction(0))

    def _find_percentage(self, leaf: Comparison) -> Fraction | None:
        """Return the tolerance of a comparison as a part of a side. Return None if it is an amount."""
        amount = self.tolerances.find_amount(leaf.names)
        if leaf.fixed_tolerance is not None or amount is None or not amount.is_percent:
            return None
        return Fraction(amount.number) / 100

    def _describe(self, leaf: Comparison, base: _Base) -> str:
        """Return how sharp a comparison is: its tolerance in its own unit, and in points of its base."""
        numbers = {number for number, _ in self.weigh(base.literal)}
        beside = [abs(factor) for number, factor in self.weigh(leaf) if number not in numbers]
        points = 100 * base.tolerance / base.least_value / (beside[0] if len(beside) == 1 else 1)
        sharp = f"{_write(points)} point{'' if points == 1 else 's'}"
        least = f"{_write(base.least_value)}, {_write(base.literal.right_value)} less its tolerance"
        return (
            f"{leaf.left_text} may err where it is within {_write(base.tolerance)} of 0: by up to {sharp} where "
            f"{base.literal.left_text} is {least}, and by fewer above"
        )


def _is_growth(leaf: Comparison) -> bool:
    """Return True for a comparison of two sides, with other groups on one of them, and no number."""
    return (
        len(leaf.cell_sums) > 1
        and leaf.right_value == leaf.threshold == 0
        and leaf.operator != "<>"
        and not leaf.key_thresholds
    )


def _divide(weights: _Weights, by: _Weights) -> Fraction | None:
    """Return the number of times that some of the sums are others. Return None if they are no multiple of them."""
    known = dict(weights)
    ratios = {known[number] / factor if number in known else Fraction(0) for number, factor in by}
    ratio = ratios.pop() if len(ratios) == 1 else Fraction(0)
    return ratio or None


def _list_bases(children: Sequence[Having]) -> Iterator[Comparison]:
    """Yield the literals among the children of a conjunction that other groups reach at least a positive number."""
    for child in children:
        if isinstance(child, Conjunction):
            yield from _list_bases(child.children)
        elif isinstance(child, Comparison) and child.cell_sums and child.operator in _UPWARD and child.right_value > 0:
            yield child


def _list_literals(formula: Having, *, is_outside: bool = False) -> Iterator[tuple[Comparison, bool]]:
    """Yield the literals that read other groups. Each comes with True if it is inside a complement."""
    match formula:
        case Complement(inner):
            yield from _list_literals(inner, is_outside=True)
        case Conjunction(children) | Disjunction(children):
            for child in children:
                yield from _list_literals(child, is_outside=is_outside)
        case Comparison() if formula.cell_sums:
            yield formula, is_outside
        case _:
            pass


def _pair_with_bases(
    formula: Having, above: tuple[tuple[Comparison, bool], ...], *, is_implied: bool
) -> Iterator[tuple[Comparison, tuple[tuple[Comparison, bool], ...]]]:
    """Yield each comparison of two sides, with the bases joined to it by AND.

    Each comes with True if the whole formula implies it.
    """
    match formula:
        case Conjunction(children):
            beside = (*above, *((base, is_implied) for base in _list_bases(children)))
            for child in children:
                yield from _pair_with_bases(child, beside, is_implied=is_implied)
        case Disjunction(children):
            for child in children:
                yield from _pair_with_bases(child, above, is_implied=False)
        case Complement(inner):
            yield from ((leaf, ()) for leaf, _ in _list_literals(inner) if _is_growth(leaf))
        case Comparison() if _is_growth(formula):
            yield formula, above
        case _:
            pass


def _write(number: Fraction) -> str:
    return f"{convert_to_decimal(number):f}"
