"""EXPLAIN VERBOSE's table: the formula as typed and as evaluated, each literal's rates and price, and the sum."""

from collections.abc import Iterator, Mapping
from fractions import Fraction

from mechanisms.keyhole.common_sums import look_parts
from mechanisms.keyhole.one_shot import Keyhole, cheaper_alone
from mechanisms.protocol import FunctionalTest
from planner.explain.cost_breakdown import (
    Together,
    common_noise,
    expected_losses,
    one_shot,
    separate_sums,
    sets_together,
    share_of_worst_case,
    with_one_step,
)
from planner.explain.literal_labels import (
    Named,
    idle,
    in_users_unit,
    letter_literals,
    letters,
    order_formula,
    spell_formula,
    typed_letters,
)
from planner.explain.rounded_numbers import at_most, plain, share
from planner.question.plan import APART, Plan
from planner.question.question import Functional, Measure
from planner.values.decimals import decimal

MOST_ROWS = 12  # of the table; the others are in JSON
MOST_SETS = 4  # lines of one screen for what JSON has in full
LONGEST_FORMULA = 300  # characters, some three lines of a terminal; JSON has the whole
COMPARED = {"probe": "ProBE", "naive": "Naive (equal split)"}
_MORE = "EXPLAIN (FORMAT JSON)"


def formula_lines(plan: Plan) -> Iterator[str]:
    """Yield the formula in letters, minimal and as typed.

    A line for every literal follows, the most expensive ones if there are many.
    """
    named = letter_literals(plan)
    spelled = [
        spell_formula(order_formula(one, named), letters(named), both="and", either="or") for one in plan.canonical
    ]
    typed = [spell_formula(one, typed_letters(plan, named), both="and", either="or") for one in plan.asked.formulas]
    for name, one, formula in zip(_names(plan), plan.canonical, spelled, strict=True):
        ways = "folded, not minimised"
        if one.exact:
            ways = f"minimal; {_ways(len(one.implicants))} to be true, {_ways(len(one.clauses))} to be false"
        yield f"  {name}{shorten_formula(formula)}        {ways}"
    listed = _dearest(plan, named)
    rows = [_literal_cells(plan, one, named) for one in listed]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(listed) < len(named):
        yield f"  ... {len(named) - len(listed)} more literals: {_MORE}"
    yield from _guard_lines(listed)
    for name, formula, written in zip(_names(plan), spelled, typed, strict=True):
        if written != formula:
            yield f"  As typed: {name}{shorten_formula(written)}"
    without = idle(plan, named)
    for letter, text in without[:MOST_SETS]:
        yield f"  {letter}  {text}   does not matter, costs nothing"
    if len(without) > MOST_SETS:
        yield f"  ... {len(without) - MOST_SETS} more literals that do not matter: {_MORE}"


def _names(plan: Plan) -> tuple[str, ...]:
    """Return the heading of each formula: its decision, if there are several."""
    if not plan.predicates:
        return ("",)
    return ("Rows: ", *(f"{name}: " for name in plan.asked.predicate_names))


def _guard_lines(listed: tuple[Named, ...]) -> Iterator[str]:
    """Yield which counts set the group sizes for which the tolerances of means are meant."""
    guarded: dict[tuple[str, int], list[str]] = {}
    for one in listed:
        if one.guard:
            guarded.setdefault((one.guard, one.rows), []).append(one.letter)
    for (guard, rows), meant in guarded.items():
        yield (
            f"  {', '.join(meant)}: at least {rows} rows, as a group with fewer fails {guard} even with its tolerance "
            "(keyhole.min_rows would set another number)"
        )


def shorten_formula(formula: str) -> str:
    """Cut a formula to a few lines of a terminal."""
    return formula if len(formula) <= LONGEST_FORMULA else f"{formula[: LONGEST_FORMULA - 30]} ...: {_MORE}"


def _dearest(plan: Plan, named: tuple[Named, ...]) -> tuple[Named, ...]:
    """Return the literals on the functionals that cost most, in the order of their letters."""
    if len(named) <= MOST_ROWS:
        return named
    places = sorted(range(len(named)), key=lambda place: -plan.calibration.tests[named[place].cut.functional].epsilon)
    return tuple(named[place] for place in sorted(places[:MOST_ROWS]))


def _ways(count: int) -> str:
    return f"{count} way{'' if count == 1 else 's'}"


def _literal_cells(plan: Plan, one: Named, named: tuple[Named, ...]) -> tuple[str, ...]:
    index = one.cut.functional
    test = plan.calibration.tests[index]
    band = one.band
    together = plan.calibration.whole_question
    first = next(other for other in named if together or other.cut.functional == index)
    promised = plan.question.accuracy
    rates = f"fnr {share(test.fnr, of=promised.fnr)}", f"fpr {share(test.fpr, of=promised.fpr)}"
    if first != one:
        sharing = "decided together with" if together else "same noise as"
        return f"{one.letter}  {one.text}", band, "", "", f"{sharing} {first.letter}", ""
    if test.beside is not None:
        beside = next(other for other in named if _reads_same_sum(plan, other.cut.functional, index))
        if beside != one:
            return f"{one.letter}  {one.text}", band, *rates, f"read off the sums of {beside.letter}", ""
    part = "" if together else f"{share_of_worst_case(plan, index):.0%} of it"
    return f"{one.letter}  {one.text}", band, *rates, f"epsilon {at_most(test.epsilon)}", part


def _reads_same_sum(plan: Plan, one: int, other: int) -> bool:
    common = plan.calibration.task.common
    return common is not None and common.readings[one][0] == common.readings[other][0]


def _common_noise_lines(plan: Plan, named: tuple[Named, ...]) -> Iterator[str]:
    """Yield, for every common sum, its terms, its readers, and its cost."""
    looks = len(look_parts(plan.calibration))
    often = f"; looks {looks} times at most, at all sums together" if looks > 1 else ""
    for noise in common_noise(plan):
        users = ", ".join(one.letter for one in named if one.cut.functional in noise.functionals)
        moved = plain(noise.sum.sensitivity * noise.sum.unit_size)
        clipped = describe_clipping(plan, noise.sum, **_name_unit(plan))
        bounded = "" if clipped is None else f"; {clipped}"
        yield (
            f"  Noise of {users}: {noise.sum.name}; epsilon {at_most(noise.epsilon)}, "
            f"sensitivity {moved}{bounded}{often}"
        )


def noise_lines(plan: Plan) -> Iterator[str]:
    """Yield, for every noisy value, its owner, its change by one privacy unit, and its looks."""
    named = letter_literals(plan)
    if plan.calibration.task.common is not None:
        yield from _common_noise_lines(plan, named)
        return
    indices = list(dict.fromkeys(one.cut.functional for one in _dearest(plan, named)))
    for index in indices[:1] if plan.calibration.whole_question else indices:
        functional, test = plan.question.functionals[index], plan.calibration.tests[index]
        users = ", ".join(one.letter for one in named if one.cut.functional == index)
        yield f"  Noise of {users}: {'; '.join(_notes(plan, functional, test))}"


def _notes(plan: Plan, functional: Functional, test: FunctionalTest) -> Iterator[str]:
    yield f"sensitivity {plain(functional.sensitivity * functional.unit_size)}"
    clipped = describe_clipping(plan, functional, **_name_unit(plan))
    if clipped:
        yield clipped
    if test.block > 1:
        yield f"noise on blocks of {test.block} steps"
    index = plan.question.functionals.index(functional)
    shared = plan.sharing is not None and index in plan.sharing.functionals
    if shared:
        yield "noise on the sum, so that other thresholds can share it"
    if test.looks:
        first = test.epsilon * float(test.looks[0].rate / test.rate)
        yield f"looks {len(test.looks) + 1} times at most, first at epsilon {at_most(first)}"
    alone = None if shared else _alone(plan).get(index)
    if alone is not None:
        yield f"one threshold alone would cost {at_most(alone)}"


def _alone(plan: Plan) -> Mapping[int, float]:
    """Return the cost of a functional without several thresholds on its noisy value, if that is less."""
    return cheaper_alone(plan.calibration) if plan.calibration.mechanism == Keyhole.name else {}


def _name_unit(plan: Plan) -> Mapping[str, str]:
    unit = f"one ({plan.question.table.unit_text})"
    return {"unit": unit, "total": f"the total of {unit}"}


def describe_clipping(plan: Plan, functional: Functional, *, unit: str, total: str) -> str | None:
    """Return how far one unit counts, named by `unit` and its `total`; None if the policy clips no total per unit."""
    if functional.unit_range is None or functional.measure is Measure.UNITS:
        return None
    low, high = functional.unit_range
    if functional.measure is Measure.VALUES:
        return f"{unit} counts at most {high} different value{'' if high == 1 else 's'}, drawn by a hash"
    if functional.measure is Measure.ROWS:
        return f"{unit} counts at most {high} rows"
    if functional.off_each_unit or functional.measure is Measure.UNIT_SUM:
        edges = (f"{decimal(Fraction(edge) * Fraction(functional.unit_size)):f}" for edge in (low, high))
        return f"{unit} moves it by {' .. '.join(edges)}"
    if len(functional.terms) > 1 and any(not term.power for term in functional.terms):
        return f"{unit} counts at most {plan.question.table.rows_per_unit} rows"
    edges = (plain(in_users_unit(functional, edge)) for edge in (low, high))
    return f"{total} is clipped to {' .. '.join(edges)}"


def cost_lines(plan: Plan) -> Iterator[str]:
    """Yield the worst case beside the reservations of others, who is affected together, and most groups' loss."""
    whole = plan.calibration.whole_question
    others = [] if whole or not plan.question.functionals else [f"separate sums {at_most(separate_sums(plan))}"]
    single = one_shot(plan)
    if single is not None:
        others.append(f"one-shot {Keyhole.name} {at_most(single)}")
    if APART in plan.calibration.compared:
        others.append(f"each threshold on noise of its own {at_most(plan.calibration.compared[APART])}")
    if plan.sharing is not None:
        others.append(f"with keyhole.reuse = off {at_most(plan.sharing.epsilon_in_blocks)}")
    others += [f"{label} {at_most(plan.compared[name])}" for name, label in COMPARED.items() if name in plan.compared]
    mechanism = plan.calibration.mechanism + (", for all groups together" if whole else "")
    if plan.ranking is not None:
        mechanism = f"{mechanism} and ranking" if plan.question.functionals else "ranking"
    compared = f" ({'; '.join(others)})" if others else ""
    yield f"  Worst case {at_most(plan.worst_case_epsilon)} with mechanism {mechanism}{compared}"
    yield from _joint_lines(plan)
    wider = with_one_step(plan)
    if wider is not None:
        yield f"  A tolerance of one step where there is none would bring it to {at_most(wider)}"
    expected = expected_losses(plan)
    if expected:
        distances = ", ".join(str(tolerances) for tolerances, _ in expected)
        losses = ", ".join(at_most(epsilon) for _, epsilon in expected)
        yield f"  Most groups stop early: {distances} tolerances short of the thresholds, one loses about {losses}"


def _joint_lines(plan: Plan) -> Iterator[str]:
    """Yield the literals that one privacy unit can change together, if these are not all."""
    groups = sets_together(plan)
    plain_sum = len(groups) < 2 and all(part == 1 for group in groups for part in group.parts)
    if plain_sum or plan.calibration.whole_question or plan.calibration.task.common is not None:
        return
    first: dict[int, str] = {}
    for one in letter_literals(plan):
        first.setdefault(one.cut.functional, one.letter)
    listed = [f"{_spell_sum(group, first)} = {at_most(group.epsilon)}" for group in groups[:MOST_SETS]]
    more = f", ... ({len(groups) - MOST_SETS} more)" if len(groups) > MOST_SETS else ""
    unit = "row" if plan.question.table.is_row_unit else f"({plan.question.table.unit_text})"
    whole = " in full" if any(len(group.functionals) == len(first) for group in groups) else ""
    yield f"  No {unit} changes all of them{whole}: the most expensive of {', '.join(listed)}{more} is the worst case"


def _spell_sum(group: Together, first: Mapping[int, str]) -> str:
    """Return letters with the part by which one unit changes each: `A + 0.05 C`."""
    paired = zip(group.functionals, group.parts, strict=True)
    parts = sorted((len(first[index]), first[index], part) for index, part in paired)
    return " + ".join(letter if part == 1 else f"{at_most(float(part))} {letter}" for _, letter, part in parts)
