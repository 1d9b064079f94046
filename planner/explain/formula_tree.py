"""A plan's formula as trees that can be drawn, as typed and as it is evaluated. Public inputs alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mechanisms.formula import Cut, Formula
from planner.explain.literal_labels import letter_literals, letters, literal_of, order_formula, typed_letters, words
from planner.explain.rounded_numbers import at_most, share
from planner.question.plan import Plan

IDLE = "does not matter, costs nothing"


class Kind(StrEnum):
    """The kind of a node of the tree."""

    AND = "and"
    OR = "or"
    LITERAL = "literal"
    IDLE = "idle"  # a typed literal that the minimal formula does not need
    CONSTANT = "constant"
    SCORECARD = "scorecard"  # all formulas of a scorecard
    COLUMN = "column"  # which groups are rows, or what a predicate is called


@dataclass(frozen=True, slots=True)
class Branch:
    """A node: its text, a note beside it (what it costs; "" for none) and what hangs below."""

    kind: Kind
    text: str
    note: str
    children: tuple["Branch", ...]

    def walk(self) -> Iterator["Branch"]:
        """Yield the node and everything below it, from the top."""
        yield self
        for child in self.children:
            yield from child.walk()


def trees(plan: Plan) -> tuple[tuple[str, Branch], ...]:
    """Return the formula as typed and as it is evaluated, each under its heading; equal letters mean equal literals.

    Guarantee: a function of the plan. Every distinct literal that the analyst typed stands in the first tree, every
    literal that is paid for in the second, whose heading has the total. Noise that several literals share, or that a
    literal reads again, has its price at the first of them alone.
    """
    named = letter_literals(plan)
    kept = letters(named)
    before, texts = typed_letters(plan, named), words(plan.asked)
    bare = set(kept.values())

    def branch_as_typed(cut: Cut) -> Branch:
        letter = before[literal_of(cut)]
        kind, note = (Kind.LITERAL, "") if letter in bare else (Kind.IDLE, IDLE)
        return Branch(kind=kind, text=f"{letter}  {texts[literal_of(cut)]}", note=note, children=())

    by_literal = {literal_of(one.cut): one for one in named}
    paid: dict[int, str] = {}  # by noisy value, the letter that has its price; one for all of a whole question

    def branch_as_evaluated(cut: Cut) -> Branch:
        one = by_literal[literal_of(cut)]
        first = paid.setdefault(_find_noise(plan, cut), one.letter)
        begins = first == one.letter and id(one) not in drawn
        drawn.add(id(one))
        note = _cost(plan, cut) if begins else _describe_sharing(plan, first)
        return Branch(kind=Kind.LITERAL, text=f"{one.letter}  {one.text}", note=note, children=())

    drawn: set[int] = set()

    heading = "as it is evaluated: minimal" if all(one.exact for one in plan.canonical) else "as it is evaluated"
    if named:
        heading = f"{heading}, worst case {at_most(plan.worst_case_epsilon)} epsilon for a group"
    typed = [_branch(formula, branch_as_typed) for formula in plan.asked.formulas]
    evaluated = [_branch(order_formula(one, named), branch_as_evaluated) for one in plan.canonical]
    names = plan.asked.predicate_names
    return ("as typed", _whole(typed, names)), (heading, _whole(evaluated, names))


def _whole(formulas: Sequence[Branch], names: tuple[str, ...]) -> Branch:
    """Return the one formula, or the rule for the groups that are rows with the predicates beside it, by name."""
    if not names:
        return formulas[0]
    below = (Branch(Kind.COLUMN, text, "", (one,)) for text, one in zip(("rows", *names), formulas, strict=True))
    return Branch(Kind.SCORECARD, "rows, and predicates", "", tuple(below))


def _find_noise(plan: Plan, cut: Cut) -> int:
    """Return a number for the noisy value that decides a literal; for a literal on two of them, of the first."""
    if plan.calibration.whole_question:
        return 0
    common = plan.calibration.task.common
    return cut.functional if common is None else common.readings[cut.functional][0][0]


def _describe_sharing(plan: Plan, first: str) -> str:
    return f"decided together with {first}" if plan.calibration.whole_question else f"same noise as {first}"


def _cost(plan: Plan, cut: Cut) -> str:
    if plan.calibration.whole_question:
        return f"epsilon {at_most(plan.worst_case_epsilon)} for all literals and groups together"
    test, promised = plan.calibration.tests[cut.functional], plan.question.accuracy
    rates = f"fnr {share(test.fnr, of=promised.fnr)}, fpr {share(test.fpr, of=promised.fpr)}"
    return f"epsilon {at_most(test.epsilon)}, {rates}"


def _branch(formula: Formula, literal: Callable[[Cut], Branch]) -> Branch:
    def join(kind: Kind, below: Sequence[Branch]) -> Branch:
        if len(below) == 1:
            return below[0]
        if not below:
            text = f"{'true' if kind is Kind.AND else 'false'} for every group"
            return Branch(kind=Kind.CONSTANT, text=text, note="", children=())
        return Branch(kind=kind, text=kind.value.upper(), note="", children=tuple(below))

    return formula.fold(literal, every=lambda below: join(Kind.AND, below), some=lambda below: join(Kind.OR, below))
