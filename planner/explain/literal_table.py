"""EXPLAIN VERBOSE's table: the formula as typed and as evaluated, each literal's rates and price, and the sum."""

from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction

from mechanisms.keyhole.common_sums import list_look_parts
from mechanisms.keyhole.one_shot import Keyhole, list_cheaper_block_prices
from mechanisms.protocol import FunctionalTest
from planner.explain.cost_breakdown import (
    JointCost,
    compute_one_shot_cost,
    compute_one_step_cost,
    compute_worst_case_share,
    list_common_sums,
    list_expected_losses,
    list_joint_costs,
    sum_separate_costs,
)
from planner.explain.groups_read import count_groups_read
from planner.explain.literal_labels import (
    NamedLiteral,
    convert_to_users_unit,
    letter_literals,
    list_idle_literals,
    map_letters,
    map_typed_letters,
    order_formula,
    spell_formula,
)
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_share
from planner.question.plan import APART, Plan
from planner.question.question import Functional, Measure
from planner.values.decimals import convert_to_decimal

MOST_ROWS = 12  # of the table; the others are in JSON
MOST_SETS = 4  # lines of one screen for what JSON has in full
LONGEST_FORMULA = 300  # characters, some three lines of a terminal; JSON has the whole
COMPARED = {"probe": "ProBE", "naive": "Naive (equal split)"}
_OMITTED = "EXPLAIN (FORMAT JSON)"


def write_formula_lines(plan: Plan) -> Iterator[str]:
    """Yield the formula in letters, minimal and as typed, and a line for every literal.

    If there are many literals, only the most expensive ones have a line.
    """
    named = letter_literals(plan)
    spelled = [
        spell_formula(order_formula(one, named), map_letters(named), both="and", either="or") for one in plan.canonical
    ]
    typed = [
        spell_formula(one, map_typed_letters(plan, named), both="and", either="or")
        for one in plan.asked_question.formulas
    ]
    for name, one, formula in zip(_list_headings(plan), plan.canonical, spelled, strict=True):
        ways = "folded, not minimised"
        if one.is_minimal:
            ways = (
                f"minimal; {_count_ways(len(one.implicants))} to be true, {_count_ways(len(one.clauses))} to be false"
            )
        yield f"  {name}{shorten_formula(formula)}        {ways}"
    listed = _choose_most_expensive(plan, named)
    rows = [_write_cells(plan, one, named) for one in listed]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if len(listed) < len(named):
        yield f"  ... {len(named) - len(listed)} more literals: {_OMITTED}"
    yield from _write_guard_lines(listed)
    for name, formula, written in zip(_list_headings(plan), spelled, typed, strict=True):
        if written != formula:
            yield f"  As typed: {name}{shorten_formula(written)}"
    without = list_idle_literals(plan, named)
    for letter, text in without[:MOST_SETS]:
        yield f"  {letter}  {text}   does not matter, costs nothing"
    if len(without) > MOST_SETS:
        yield f"  ... {len(without) - MOST_SETS} more literals that do not matter: {_OMITTED}"


def _list_headings(plan: Plan) -> tuple[str, ...]:
    """Return the heading of each formula: the name of its decision, if there are several."""
    if not plan.predicates:
        return ("",)
    return ("Rows: ", *(f"{name}: " for name in plan.asked_question.predicate_names))


def _write_guard_lines(listed: tuple[NamedLiteral, ...]) -> Iterator[str]:
    """Yield lines that name the counts that set the group sizes for which tolerances of means are meant."""
    guarded: dict[tuple[str, int], list[str]] = {}
    for one in listed:
        if one.guard and one.rows > 1:  # a warning tells of the others
            guarded.setdefault((one.guard, one.rows), []).append(one.letter)
    for (guard, rows), meant in guarded.items():
        yield (
            f"  {', '.join(meant)}: at least {rows} rows, as a group with fewer fails {guard} even with its tolerance "
            "(keyhole.min_rows would set another number)"
        )


def shorten_formula(formula: str) -> str:
    """Cut a formula's text to a few lines of a terminal."""
    return formula if len(formula) <= LONGEST_FORMULA else f"{formula[: LONGEST_FORMULA - 30]} ...: {_OMITTED}"


def _choose_most_expensive(plan: Plan, named: tuple[NamedLiteral, ...]) -> tuple[NamedLiteral, ...]:
    """Return the literals on the functionals that cost most, in the order of their letters."""
    if len(named) <= MOST_ROWS:
        return named
    places = sorted(range(len(named)), key=lambda place: -plan.calibration.tests[named[place].cut.functional].epsilon)
    return tuple(named[place] for place in sorted(places[:MOST_ROWS]))


def _count_ways(count: int) -> str:
    return f"{count} way{'' if count == 1 else 's'}"


def _write_cells(plan: Plan, one: NamedLiteral, named: tuple[NamedLiteral, ...]) -> tuple[str, ...]:
    index = one.cut.functional
    test = plan.calibration.tests[index]
    band = one.band
    together = plan.calibration.whole_question
    first = next(other for other in named if together or other.cut.functional == index)
    promised = plan.question.accuracy
    rates = f"fnr {write_share(test.fnr, of=promised.fnr)}", f"fpr {write_share(test.fpr, of=promised.fpr)}"
    if first != one:
        sharing = "decided together with" if together else "charged with" if test.table else "same noise as"
        return f"{one.letter}  {one.text}", band, "", "", f"{sharing} {first.letter}", ""
    if test.beside is not None:
        beside = next(other for other in named if _reads_same_sum(plan, other.cut.functional, index))
        if beside != one:
            return f"{one.letter}  {one.text}", band, *rates, f"read off the sums of {beside.letter}", ""
    noisy = next((other for other in named if _reads_same_noise(plan, other.cut.functional, index)), one)
    if noisy != one:
        return f"{one.letter}  {one.text}", band, *rates, f"read off the noise of {noisy.letter}", ""
    part = "" if together else f"{compute_worst_case_share(plan, index):.0%} of it"
    return f"{one.letter}  {one.text}", band, *rates, f"epsilon {write_ceiling(test.epsilon)}", part


def _reads_same_sum(plan: Plan, one: int, other: int) -> bool:
    common = plan.calibration.task.common
    return common is not None and common.readings[one][0] == common.readings[other][0]


def _reads_same_noise(plan: Plan, one: int, other: int) -> bool:
    """Return True if two readings of groups read the same sums, and so the same noise."""
    common = plan.calibration.task.common
    if common is None or not common.cells:
        return False
    sums = [{place for place, _ in common.readings[index]} for index in (one, other)]
    return sums[0] == sums[1]


def _write_common_noise(plan: Plan, named: tuple[NamedLiteral, ...]) -> Iterator[str]:
    """Yield a line for every common sum: its terms, its readers, and its cost. The bins of a quantile share a line."""
    if not plan.worst_case_epsilon:
        return  # every sum cancels out
    looks = len(list_look_parts(plan.calibration))
    often = f"; looks {looks} times at most, at all sums together" if looks > 1 else ""
    lines = list[str]()
    for place, noise in enumerate(list_common_sums(plan)):
        users = ", ".join(one.letter for one in named if one.cut.functional in noise.functionals)
        moved = spell_number(noise.sum.sensitivity * noise.sum.unit_size)
        clipped = describe_clipping(plan, noise.sum, **_name_unit(plan))
        bounded = "" if clipped is None else f"; {clipped}"
        groups = count_groups_read(plan, place)
        read = "" if groups is None else f"; {groups.text}"
        lines.append(
            f"  Noise of {users}: {noise.sum.name}; epsilon {write_ceiling(noise.epsilon)}, "
            f"sensitivity {moved}{bounded}{read}{often}"
        )
    for line, times in Counter(lines).items():
        yield line if times == 1 else f"{line}; {times} bins, of which a row is in one"


def write_noise_lines(plan: Plan) -> Iterator[str]:
    """Yield a line for every noisy value: the literals that read it, its change by one privacy unit, and its looks."""
    named = letter_literals(plan)
    if plan.calibration.task.common is not None:
        yield from _write_common_noise(plan, named)
        return
    indices = list(dict.fromkeys(one.cut.functional for one in _choose_most_expensive(plan, named)))
    for index in indices[:1] if plan.calibration.whole_question else indices:
        functional, test = plan.question.functionals[index], plan.calibration.tests[index]
        users = ", ".join(one.letter for one in named if one.cut.functional == index)
        drawn = "Noise" if test.table is None else "Look" if len(users) == 1 else "Looks"
        yield f"  {drawn} of {users}: {'; '.join(_write_notes(plan, functional, test))}"


def _write_notes(plan: Plan, functional: Functional, test: FunctionalTest) -> Iterator[str]:
    yield f"sensitivity {spell_number(functional.sensitivity * functional.unit_size)}"
    clipped = describe_clipping(plan, functional, **_name_unit(plan))
    if clipped:
        yield clipped
    if test.block > 1:
        yield f"noise on blocks of {test.block} steps"
    if test.table is not None and test.table.block > 1:
        yield f"a table of blocks of {test.table.block} steps"
    index = plan.question.functionals.index(functional)
    shared = plan.sharing is not None and index in plan.sharing.functionals
    if shared:
        yield "noise on the sum, so that other thresholds can share it"
    if test.looks:
        first = test.epsilon * float(test.looks[0].rate / test.rate)
        yield f"looks {len(test.looks) + 1} times at most, first at epsilon {write_ceiling(first)}"
    alone = None if shared else _compute_separate_costs(plan).get(index)
    if alone is not None:
        yield f"one threshold alone would cost {write_ceiling(alone)}"


def _compute_separate_costs(plan: Plan) -> Mapping[int, float]:
    """Return the cost of a functional if each of its thresholds had noise of its own, where that is less."""
    return list_cheaper_block_prices(plan.calibration) if plan.calibration.mechanism == Keyhole.name else {}


def _name_unit(plan: Plan) -> Mapping[str, str]:
    unit = f"one ({plan.question.table.unit_text})"
    return {"unit": unit, "total": f"the total of {unit}"}


def describe_clipping(plan: Plan, functional: Functional, *, unit: str, total: str) -> str | None:
    """Return a clause on the range to which one unit's contribution is clipped.

    Return None if the policy clips no total per unit. `unit` names the unit, and `total` its total.
    """
    if functional.unit_range is None or functional.measure is Measure.UNITS:
        return None
    low, high = functional.unit_range
    if functional.measure is Measure.VALUES:
        return f"{unit} counts at most {high} different value{'' if high == 1 else 's'}, drawn by a hash"
    if functional.measure is Measure.ROWS:
        return f"{unit} counts at most {high} rows"
    if functional.off_each_unit or functional.measure is Measure.UNIT_SUM:
        edges = (f"{convert_to_decimal(Fraction(edge) * Fraction(functional.unit_size)):f}" for edge in (low, high))
        return f"{unit} moves it by {' .. '.join(edges)}"
    if len(functional.terms) > 1 and any(not term.power for term in functional.terms):
        return f"{unit} counts at most {plan.question.table.rows_per_unit} rows"
    edges = (spell_number(convert_to_users_unit(functional, edge)) for edge in (low, high))
    return f"{total} is clipped to {' .. '.join(edges)}"


def write_cost_lines(plan: Plan) -> Iterator[str]:
    """Yield lines on the cost: worst cases of other mechanisms, joint costs of one unit, and losses of far groups."""
    whole = plan.calibration.whole_question
    others = (
        [] if whole or not plan.question.functionals else [f"separate sums {write_ceiling(sum_separate_costs(plan))}"]
    )
    single = compute_one_shot_cost(plan)
    if single is not None:
        others.append(f"one-shot {Keyhole.name} {write_ceiling(single)}")
    if APART in plan.calibration.compared:
        others.append(f"each threshold on noise of its own {write_ceiling(plan.calibration.compared[APART])}")
    if plan.sharing is not None:
        others.append(f"with keyhole.reuse = off {write_ceiling(plan.sharing.epsilon_in_blocks)}")
    others += [
        f"{label} {write_ceiling(plan.compared[name])}" for name, label in COMPARED.items() if name in plan.compared
    ]
    mechanism = plan.calibration.mechanism + (", for all groups together" if whole else "")
    if plan.ranking is not None:
        mechanism = f"{mechanism} and ranking" if plan.question.functionals else "ranking"
    compared = f" ({'; '.join(others)})" if others else ""
    yield f"  Worst case {write_ceiling(plan.worst_case_epsilon)} with mechanism {mechanism}{compared}"
    if plan.compared_tests is not None:
        yield f"  Tests: {plan.compared_tests.sentence}"
    yield from _write_joint_lines(plan)
    wider = compute_one_step_cost(plan)
    if wider is not None:
        yield f"  With a tolerance of one step for literals without one, the worst case would be {write_ceiling(wider)}"
    expected = list_expected_losses(plan)
    if expected:
        distances = ", ".join(str(tolerances) for tolerances, _ in expected)
        losses = ", ".join(write_ceiling(epsilon) for _, epsilon in expected)
        yield f"  Most groups stop early: a group {distances} tolerances short of its thresholds loses about {losses}"


def _write_joint_lines(plan: Plan) -> Iterator[str]:
    """Yield the literals that one privacy unit can change together, if these are not all."""
    groups = list_joint_costs(plan)
    plain_sum = len(groups) < 2 and all(part == 1 for group in groups for part in group.parts)
    if plain_sum or plan.calibration.whole_question or plan.calibration.task.common is not None:
        return
    first: dict[int, str] = {}
    for one in letter_literals(plan):
        first.setdefault(one.cut.functional, one.letter)
    listed = [f"{_spell_sum(group, first)} = {write_ceiling(group.epsilon)}" for group in groups[:MOST_SETS]]
    more = f", ... ({len(groups) - MOST_SETS} more)" if len(groups) > MOST_SETS else ""
    unit = "row" if plan.question.table.is_row_unit else f"({plan.question.table.unit_text})"
    whole = " in full" if any(len(group.functionals) == len(first) for group in groups) else ""
    sums = f"{', '.join(listed)}{more}"
    yield f"  No {unit} changes all of them{whole}, so the worst case is the most expensive of {sums}"


def _spell_sum(group: JointCost, first: Mapping[int, str]) -> str:
    """Return letters with the part by which one unit changes each: `A + 0.05 C`."""
    paired = zip(group.functionals, group.parts, strict=True)
    parts = sorted((len(first[index]), first[index], part) for index, part in paired)
    return " + ".join(letter if part == 1 else f"{write_ceiling(float(part))} {letter}" for _, letter, part in parts)
