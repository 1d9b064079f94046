"""Guards that Keyhole adds to comparisons which groups without values would pass, although SQL gives NULL there.

`avg(x) >= 20` becomes `avg(x) >= 20 AND count(x) >= 50`. The question is then about groups with at least 50 values, and
a NOTICE says so. The number is `keyhole.min_rows` if the analyst set it. Otherwise it is the policy's number, or a
larger one. It is larger if the tolerance of a smaller count, or of the mean in smaller groups, were worth less than a
few units' rows.

Guarantee: the formula is the one that an analyst gets by typing the guards. A group that qualifies, with at least that
many values, is missed at most `fnr` of the time. A group is returned at most `fpr` of the time if it has fewer values
than the guard's tolerance admits. The same holds if it misses the threshold by more than its tolerance. That tolerance
is meant for groups that pass the guard with the guard's own tolerance, which `find_group_sizes` finds.

Proof: docs/proofs/group_sizes.md.
"""

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, floor

from planner.aggregates.aggregate import identify_sum
from planner.aggregates.comparison import (
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    Slack,
    SpreadComparison,
    require_count,
)
from planner.aggregates.row_expression import RequiredValues, SumPart
from planner.catalog.catalog import Table
from planner.catalog.tolerance import Tolerances, quote_literal, set_amount
from planner.errors import KeyholeError
from planner.functionals.functional import make_functional
from planner.functionals.guard_remedy import WORTH, Remedy, find_next_round, find_only_column, find_slack_share
from planner.functionals.guards import ComparisonPlace, Guarded, implies
from planner.parser.lexer import spell_name
from planner.question.condition import ALWAYS, Condition
from planner.question.condition_text import write_canonical
from planner.question.question import Accuracy, Measure, Term
from planner.values.decimals import round_up_to_two_digits
from planner.values.operators import FLIPPED_OPERATORS


@dataclass(frozen=True, slots=True)
class GuardAdder:
    """The table, accuracy and tolerances from which guards are made."""

    table: Table
    accuracy: Accuracy
    tolerances: Tolerances

    def add(
        self, formula: Having, missing: Collection[tuple[Guarded, RequiredValues]]
    ) -> tuple[Having, tuple[str, ...]] | None:
        """Return the formula with a guard beside each comparison that needs one, and a sentence about each guard.

        Return None if such a comparison is inside a `Complement`. There a group without values passes, and a group
        with few values would pass as well.
        """
        wanted: dict[ComparisonPlace | None, dict[RequiredValues, None]] = {}
        largest: dict[
            RequiredValues, Remedy
        ] = {}  # one number for all that need the same values, so that they share a count
        for guarded, values in missing:
            wanted.setdefault(guarded.source, {})[values] = None
            known = (largest.get(values), guarded.remedy or Remedy())
            largest[values] = max((one for one in known if one is not None), key=lambda one: one.least_count)
        said: dict[tuple[str, str, str], dict[str, None]] = {}

        def add_guards(leaf: Comparison | SpreadComparison) -> Having:
            needed = wanted.get(ComparisonPlace.from_comparison(leaf), {})
            added = [self.make_guard(leaf, values, largest[values]) for values in _drop_implied_values(tuple(needed))]
            for guard, called, reason in added:
                said.setdefault((guard.text, called, reason), {})[leaf.text] = None
            return Conjunction((leaf, *dict.fromkeys(guard for guard, *_ in added))) if added else leaf

        if any(ComparisonPlace.from_comparison(leaf) in wanted for leaf in list_complemented_comparisons(formula)):
            return None
        made = flatten(formula.map_comparisons(add_guards))
        sentences = (_describe_guard(tuple(of), *guard, usual=self.accuracy.min_rows) for guard, of in said.items())
        return (made, tuple(sentences)) if said else None

    def make_guard(
        self, leaf: Comparison | SpreadComparison, values: RequiredValues, remedy: Remedy
    ) -> tuple[Comparison, str, str]:
        """Return the guarding count, words for the groups that pass it, and the reason if its number is raised."""
        least, reason = self.accuracy.min_rows, ""
        by_units = self._counts_units(leaf)
        wanted = find_next_round(ceil(WORTH / find_slack_share(self.tolerances))) if by_units else remedy.least_count
        if wanted > least and not self.accuracy.is_min_rows_set:
            least, reason = wanted, self._explain_number(for_mean=remedy.is_for_mean and not by_units)
        if by_units:
            part, measure = SumPart(Fraction(1), None, values.rows, 0), Measure.UNITS
            counted = f"count(DISTINCT {_write_unit(self.table.unit)})"
            known = remedy.spell_rows(values)
            counted += f" FILTER (WHERE {known})" if known else ""
            called = f"values of at least {least:,} ({self.table.unit_text.strip('()')})"
        else:
            least = max(least, values.least_rows)
            column = find_only_column(values)
            alone = column if column and implies(Term(1, column, ALWAYS, 0), values) else None
            named = alone or values.column
            part = SumPart(
                Fraction(1),
                None if named is None else self.table.get_column(named),
                ALWAYS if alone else values.condition,
                0,
            )
            measure, counted = Measure.ROWS, remedy.spell_count(values, plain_column=alone)
            called = f"at least {least:,} {'rows' if named is None and part.condition == ALWAYS else 'values'}"
        tolerance = Fraction(min(floor(least * find_slack_share(self.tolerances)), least - 1))
        made = require_count(
            counted, least, measure=measure, parts=(part,), tolerance=tolerance, position=leaf.position
        )
        return made, called, reason

    def _counts_units(self, leaf: Comparison | SpreadComparison) -> bool:
        """Return True if the guard counts privacy units.

        Many rows of one unit may count then, so the number of rows does not decide how large the comparison's tolerance
        is.
        """
        if isinstance(leaf, SpreadComparison) or leaf.per_row is not None or leaf.slack is Slack.ROWS:
            return False
        table = self.table
        return not (table.is_row_unit or table.members) and (table.row_cap is None or table.row_cap.rows > 1)

    def _explain_number(self, *, for_mean: bool) -> str:
        unit = "row" if self.table.is_row_unit else f"({self.table.unit_text})"
        moved = "it" if for_mean else "their number"
        return f"In smaller ones one {unit} could move {moved} by more than a fifth of its tolerance"


def _describe_guard(compared: tuple[str, ...], guard: str, called: str, reason: str, *, usual: int) -> str:
    """Return a sentence that says which guard was added to which comparisons, what it changes and how to change it."""
    smaller = f"{reason}: SET keyhole.min_rows = {usual}; includes them, for more epsilon. " if reason else ""
    return (
        f"{' and '.join(compared)}: of groups with {called}. AND {guard} was added, since groups without values would "
        f"pass; smaller groups count as false. {smaller}SET keyhole.guard = 'refuse'; adds nothing"
    )


def _drop_implied_values(needed: tuple[RequiredValues, ...]) -> tuple[RequiredValues, ...]:
    """Return the required values without those that must exist wherever as many of the others exist."""
    kept = list(needed)
    for values in needed:
        others = (one for one in kept if one is not values and one.least_rows >= values.least_rows)
        if any(implies(Term(1, one.column, one.condition, 0), values) for one in others):
            kept.remove(values)
    return tuple(kept)


def _write_unit(unit: Iterable[str]) -> str:
    names = ", ".join(map(spell_name, unit))
    return f"({names})" if ", " in names else names


def list_complemented_comparisons(formula: Having) -> Iterable[Comparison | SpreadComparison]:
    """Yield the comparisons inside the complements of a formula."""
    match formula:
        case Complement(inner):
            yield from inner.list_comparisons()
        case Conjunction(children) | Disjunction(children):
            for child in children:
                yield from list_complemented_comparisons(child)
        case _:
            pass


def flatten(formula: Having) -> Having:
    """Return the formula with nested conjunctions merged into one.

    A comparison and its guard have to be children of one conjunction.
    """
    if not isinstance(formula, Conjunction):
        return formula
    parts: dict[Having, None] = {}
    for child in map(flatten, formula.children):
        parts.update(dict.fromkeys(child.children if isinstance(child, Conjunction) else (child,)))
    return Conjunction(tuple(parts))


_WORTH_OF_RATIO = 3
"""How many units a ratio's tolerance is worth at a base by a sum: both then cost up to 2 epsilon at usual error rates,
which most policies let one question cost. At `WORTH` it is half of that, of groups nearly twice as large."""
_OPPOSITE = "-"  # before a divisor that is below 0
_SCALED = re.compile(r"\([\d.]+ \* (.+)\)")  # one sum times a constant, as a divisor is written


@dataclass(frozen=True, slots=True)
class RatioBases:
    """The builder of a *base* for each ratio: a threshold for its divisor that groups must reach.

    It holds the question's table, filter, accuracy and tolerances. If sum(b) is above 0, `sum(a) / sum(b) > c` means
    `sum(a) - c sum(b) > 0`. If sum(b) of a group is small, noise hides the ratio. So groups must reach a base, `sum(b)
    >= B`. If the analyst typed such a base beside the ratio, that is used. Otherwise B is chosen, rounded to two
    digits, so that the base's tolerance is worth `WORTH` units and the ratio's tolerance `_WORTH_OF_RATIO` units.

    Let g be the base's tolerance. The difference gets the ratio's tolerance times `B - g`. So no group that passes the
    base within its tolerance is misjudged by more. A group that reaches the base has values of b and needs no count of
    them. A count of privacy units has a base of `keyhole.min_rows` units if the analyst set that.
    """

    table: Table
    where: Condition
    accuracy: Accuracy
    tolerances: Tolerances

    def add_bases(self, formula: Having, *, warn: Callable[[str], None]) -> Having:
        """Return the formula with a base beside each ratio that needs one.

        Raise KH204 for a ratio in a complement, KH304 for a ratio without tolerance.
        """
        if not any(isinstance(leaf, Comparison) and leaf.ratio_base for leaf in formula.list_comparisons()):
            return formula
        for leaf in list_complemented_comparisons(formula):
            if isinstance(leaf, Comparison) and leaf.ratio_base:
                raise KeyholeError(
                    "KH204",
                    f"{leaf.text} divides by a sum that may be 0, where the complement counts",
                    hint="Ask for the groups that pass, and compare around the question.",
                    position=leaf.position,
                )
        return flatten(self._add_bases_within(formula, (), warn))

    def _add_bases_within(self, formula: Having, beside: tuple[Comparison, ...], warn: Callable[[str], None]) -> Having:
        match formula:
            case Conjunction(children):
                typed = (*beside, *(child for child in children if isinstance(child, Comparison)))
                return Conjunction(tuple(self._add_bases_within(child, typed, warn) for child in children))
            case Disjunction(children):
                return Disjunction(tuple(self._add_bases_within(child, (), warn) for child in children))
            case Comparison() if formula.ratio_base:
                return self._add_bases_to_ratio(formula, beside, warn)
            case _:
                return formula

    def _add_bases_to_ratio(
        self, ratio: Comparison, beside: tuple[Comparison, ...], warn: Callable[[str], None]
    ) -> Having:
        """Return a ratio with its base. If the divisor may have either sign, both signs are asked, joined by OR."""
        sides = [ratio]
        if ratio.has_either_sign:
            sides = [side for side in (ratio, _negate_ratio(ratio)) if self._can_reach_base(side)] or sides
        typed = [side for side in sides if any(_is_base(one, side) for one in _flip_negative_thresholds(beside))]
        made = [self._add_base_to_ratio(side, _flip_negative_thresholds(beside), warn) for side in typed or sides]
        return Disjunction(tuple(made)) if len(made) > 1 else made[0]

    def _add_base_to_ratio(
        self, ratio: Comparison, beside: tuple[Comparison, ...], warn: Callable[[str], None]
    ) -> Having:
        amount = self.tolerances.find_amount(ratio.names)
        if amount is None or amount.refers_to_bounds:
            wanted = quote_literal(set_amount(self.accuracy.tolerance, ratio.left_text, "10%"))
            raise KeyholeError(
                "KH304",
                f"{ratio.text} divides by a sum that may be 0: its tolerance is a part of the threshold, or an amount",
                hint=f"SET keyhole.tolerance = '{wanted}';",
                position=ratio.position,
            )
        tolerance = Fraction(amount.compute_size(threshold=ratio.threshold, bounds=Fraction(0)))
        typed = [one for one in beside if _is_base(one, ratio)]
        if typed:
            least = max(typed, key=lambda one: one.right_value)
            known = self.tolerances.find_amount(least.names)
            slack = Fraction(0) if known is None else known.compute_size(threshold=least.threshold, bounds=Fraction(0))
            reached = max(least.right_value - Fraction(slack), Fraction(0))
            made = replace(
                ratio,
                ratio_base=(),
                divisor_rows=None,
                fixed_tolerance=tolerance * reached,
                display_factor=max(reached, Fraction(1)),
            )
            return replace(made, required_values=_keep_needed_values(ratio, tolerance)) if reached else made
        base = self._make_base(ratio, tolerance)
        if not self.accuracy.adds_guards:
            raise KeyholeError(
                "KH206",
                f"{ratio.text} divides by a sum that may be 0",
                detail="A small divisor has relatively large noise, so groups must reach a least divisor.",
                hint=f"Add: AND {base.text}",
                position=ratio.position,
            )
        smaller = f"{base.left_text} {base.operator} {_write_half(base.right_value)}"
        warn(
            f"{ratio.text}: AND {base.text} was added, since at a smaller divisor the ratio drowns in noise. For "
            f"divisors half as large, write AND {smaller} (more epsilon), or a wider keyhole.tolerance of the ratio "
            "(same epsilon)"
        )
        assert base.fixed_tolerance is not None
        reached = abs(base.right_value) - base.fixed_tolerance
        made = replace(
            ratio, ratio_base=(), divisor_rows=None, fixed_tolerance=tolerance * reached, display_factor=reached
        )
        return Conjunction((replace(made, required_values=_keep_needed_values(ratio, tolerance)), base))

    def _can_reach_base(self, ratio: Comparison) -> bool:
        """Return False if no unit can add to the base within the declared bounds."""
        made, _ = make_functional(_make_base_of_one(ratio), table=self.table, min_rows=1, where=self.where)
        return made.unit_range is None or made.unit_range[1] > 0

    def _make_base(self, ratio: Comparison, tolerance: Fraction) -> Comparison:
        share = find_slack_share(self.tolerances, of="count" if ratio.divides_by_units else "sum")
        by_units = ratio.divides_by_units
        plain, moved = _make_base_of_one(ratio), []
        for one in (plain, replace(ratio, ratio_base=())):
            made, step = make_functional(one, table=self.table, min_rows=1, where=self.where)
            moved.append(made.sensitivity * step)
        most = moved[1] / (tolerance * (1 - share)) if tolerance else Fraction(0)
        number = Fraction(ceil(round_up_to_two_digits(max(WORTH * moved[0] / share, _WORTH_OF_RATIO * most))))
        if by_units:
            number = Fraction(find_next_round(ceil(WORTH * max(moved[0] / share, most))))
            least = Fraction(self.accuracy.min_rows)
            number = least if self.accuracy.is_min_rows_set else max(number, least)
        base = replace(plain, right_value=number, threshold=number, fixed_tolerance=number * share)
        base = _flip_threshold(base, plain.names[0]) if plain.left_text.startswith(_OPPOSITE) else base
        return replace(base, text=f"{base.left_text} {base.operator} {base.right_value}")


def _make_base_of_one(ratio: Comparison) -> Comparison:
    """Return the base that asks for a divisor of at least 1."""
    divisor, by_units = ratio.left_text.rpartition(" / ")[2], ratio.divides_by_units
    sign = _OPPOSITE if divisor.startswith(_OPPOSITE) else ""
    scaled = _SCALED.fullmatch(summed := divisor.removeprefix(sign))
    summed = summed if scaled is None else scaled[1]  # a threshold of the sum itself, whatever it is times
    return Comparison(
        text="",
        left_text=f"{sign}{summed}",
        names=("count" if by_units else summed,),
        measure=Measure.UNITS if by_units else Measure.TOTAL,
        summands=ratio.ratio_base,
        operator=">=",
        right_value=Fraction(1),
        threshold=Fraction(1),
        origin=Fraction(0),
        per_row=None,
        required_values=()
        if by_units
        else tuple(one for one in ratio.required_values if _are_summed(one, ratio.ratio_base)),
        slack=Slack.THRESHOLD,
        position=ratio.position,
    )


def _are_summed(values: RequiredValues, parts: tuple[SumPart, ...]) -> bool:
    """Return True if a sum adds up these values and nothing else, so that it is NULL without them."""
    known = {(None if part.column is None else part.column.name, write_canonical(part.condition)) for part in parts}
    return known == {(values.column, write_canonical(values.condition))}


def _keep_needed_values(ratio: Comparison, tolerance: Fraction) -> tuple[RequiredValues, ...]:
    """Return the values without which a ratio beside its base is NULL and could pass.

    A ratio that must exceed a number larger than its tolerance needs no values whose absence makes its numerator 0.
    """
    if ratio.operator not in (">", ">=") or ratio.threshold <= tolerance:
        return ratio.required_values
    divisors = 0 if ratio.divides_by_units else len(ratio.ratio_base)
    above = ratio.summands[: len(ratio.summands) - divisors]
    counted = [Term(1, None if part.column is None else part.column.name, part.condition, 0) for part in above]
    return tuple(one for one in ratio.required_values if not all(implies(term, one) for term in counted))


def _negate_ratio(ratio: Comparison) -> Comparison:
    """Return the same ratio with both sums negated."""
    above, _, below = ratio.left_text.rpartition(" / ")
    left = f"-{above} / {_OPPOSITE}{below}"
    parts, base = (tuple(part.multiply(Fraction(-1)) for part in sums) for sums in (ratio.summands, ratio.ratio_base))
    return replace(ratio, left_text=left, summands=parts, ratio_base=base)


def _flip_negative_thresholds(beside: tuple[Comparison, ...]) -> tuple[Comparison, ...]:
    """Return the thresholds, with `sum < -c` written as `-sum > c`."""
    below = ("<", "<=")
    return tuple(
        _flip_threshold(one, f"{_OPPOSITE}{one.left_text}")
        if one.operator in below and one.right_value < 0 and one.measure is Measure.TOTAL
        else one
        for one in beside
    )


def _flip_threshold(one: Comparison, left: str) -> Comparison:
    """Return the same threshold on the negated sum, which is named `left`."""
    parts = tuple(part.multiply(Fraction(-1)) for part in one.summands)
    operator, threshold = FLIPPED_OPERATORS[one.operator], -one.threshold
    return replace(
        one, left_text=left, summands=parts, operator=operator, right_value=-one.right_value, threshold=threshold
    )


def _write_half(number: Fraction) -> Fraction:
    """Return half of a base as an analyst types it, at least 1 away from 0."""
    return min(number / 2, Fraction(-1)) if number < 0 else max(number / 2, Fraction(1))


def _is_base(one: Comparison, ratio: Comparison) -> bool:
    """Return True if groups must reach this threshold on the ratio's divisor."""
    above = (
        one.operator in (">", ">=")
        and one.right_value > 0
        and one.key_thresholds is None
        and one.per_row is None
        and not one.ratio_base
    )
    above = above and not one.unit_deduction
    units = (one.measure is Measure.UNITS) == ratio.divides_by_units
    return above and units and identify_sum(one.summands) == identify_sum(ratio.ratio_base)
