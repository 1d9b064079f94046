"""A plan's formula as trees that can be drawn, as typed and as evaluated. Depends on public inputs alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mechanisms.formula import Cut, Formula
from planner.explain.literal_labels import (
    identify_literal,
    letter_literals,
    map_letters,
    map_typed_letters,
    order_formula,
    spell_literals,
)
from planner.explain.rounded_numbers import write_ceiling, write_share
from planner.question.plan import Plan

IDLE_NOTE = "does not matter, costs nothing"


class NodeKind(StrEnum):
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
    """A node of the tree: its text, a note (what it costs; "" for none) and its children."""

    kind: NodeKind
    text: str
    note: str
    children: tuple["Branch", ...]

    def walk(self) -> Iterator["Branch"]:
        """Yield the node and all its descendants. Each parent comes before its children."""
        yield self
        for child in self.children:
            yield from child.walk()


def build_trees(plan: Plan) -> tuple[tuple[str, Branch], ...]:
    """Return the formula as typed and as evaluated, each under its heading. Equal letters mean equal literals.

    Guarantee: a function of the plan. The first tree has every distinct literal that the analyst typed, the second
    every literal that is charged for, and the total in its heading. Noise that several literals share, or that a
    literal reads again, has its price at the first of them alone.
    """
    named = letter_literals(plan)
    kept = map_letters(named)
    before, texts = map_typed_letters(plan, named), spell_literals(plan.asked_question)
    bare = set(kept.values())

    def make_typed_branch(cut: Cut) -> Branch:
        letter = before[identify_literal(cut)]
        kind, note = (NodeKind.LITERAL, "") if letter in bare else (NodeKind.IDLE, IDLE_NOTE)
        return Branch(kind=kind, text=f"{letter}  {texts[identify_literal(cut)]}", note=note, children=())

    by_literal = {identify_literal(one.cut): one for one in named}
    paid: dict[int, str] = {}  # by noisy value, the letter that has its price; one for all of a whole question

    def make_evaluated_branch(cut: Cut) -> Branch:
        one = by_literal[identify_literal(cut)]
        first = paid.setdefault(_find_noise(plan, cut), one.letter)
        begins = first == one.letter and id(one) not in drawn
        drawn.add(id(one))
        note = _describe_cost(plan, cut) if begins else _describe_sharing(plan, first)
        return Branch(kind=NodeKind.LITERAL, text=f"{one.letter}  {one.text}", note=note, children=())

    drawn: set[int] = set()

    heading = "as it is evaluated: minimal" if all(one.is_minimal for one in plan.canonical) else "as it is evaluated"
    if named:
        heading = f"{heading}, worst case {write_ceiling(plan.worst_case_epsilon)} epsilon for a group"
    typed = [_make_branch(formula, make_typed_branch) for formula in plan.asked_question.formulas]
    evaluated = [_make_branch(order_formula(one, named), make_evaluated_branch) for one in plan.canonical]
    names = plan.asked_question.predicate_names
    return ("as typed", _join_formulas(typed, names)), (heading, _join_formulas(evaluated, names))


def _join_formulas(formulas: Sequence[Branch], names: tuple[str, ...]) -> Branch:
    """Return the branch of the only formula.

    With named predicates, return a branch with HAVING and each predicate below it.
    """
    if not names:
        return formulas[0]
    below = (Branch(NodeKind.COLUMN, text, "", (one,)) for text, one in zip(("rows", *names), formulas, strict=True))
    return Branch(NodeKind.SCORECARD, "rows, and predicates", "", tuple(below))


def _find_noise(plan: Plan, cut: Cut) -> int:
    """Return the number of the noisy value that decides a literal; of the first, if two decide it."""
    if plan.calibration.whole_question:
        return 0
    common = plan.calibration.task.common
    return cut.functional if common is None else common.readings[cut.functional][0][0]


def _describe_sharing(plan: Plan, first: str) -> str:
    if plan.calibration.whole_question:
        return f"decided together with {first}"
    return f"{'charged with' if plan.calibration.divergences else 'same noise as'} {first}"


def _describe_cost(plan: Plan, cut: Cut) -> str:
    if plan.calibration.whole_question:
        return f"epsilon {write_ceiling(plan.worst_case_epsilon)} for all literals and groups together"
    test, promised = plan.calibration.tests[cut.functional], plan.question.accuracy
    rates = f"fnr {write_share(test.fnr, of=promised.fnr)}, fpr {write_share(test.fpr, of=promised.fpr)}"
    return f"epsilon {write_ceiling(test.epsilon)}, {rates}"


def _make_branch(formula: Formula, literal: Callable[[Cut], Branch]) -> Branch:
    def join(kind: NodeKind, below: Sequence[Branch]) -> Branch:
        if len(below) == 1:
            return below[0]
        if not below:
            text = f"{'true' if kind is NodeKind.AND else 'false'} for every group"
            return Branch(kind=NodeKind.CONSTANT, text=text, note="", children=())
        return Branch(kind=kind, text=kind.value.upper(), note="", children=tuple(below))

    return formula.fold(
        literal, every=lambda below: join(NodeKind.AND, below), some=lambda below: join(NodeKind.OR, below)
    )
