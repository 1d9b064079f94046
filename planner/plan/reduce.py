"""The question that is computed: canonical order, minimal formula, no functional that the formula does not need."""

from dataclasses import replace

from mechanisms.formula import FALSE, Cut, Formula, cuts
from planner.functionals.identity import functional_identity
from planner.functionals.unit_rows import canonical_rows
from planner.plan.minimise import minimise
from planner.question.model import Question
from planner.question.plan import Minimised


def reduce_question(question: Question) -> tuple[Question, Minimised]:
    """The question that is computed: canonical order, minimal formula, no functional that the formula does not need."""
    order = sorted(range(len(question.functionals)), key=lambda index: functional_identity(question.functionals[index]))
    places = {old: new for new, old in enumerate(order)}
    functionals = tuple(question.functionals[index] for index in order)
    asked = question.formula if question.keys.size else FALSE
    minimised = minimise(_renumber(asked, places))
    needed = sorted({cut.functional for cut in cuts(minimised.formula)})
    kept = {old: new for new, old in enumerate(needed)}
    minimised = Minimised(
        formula=_renumber(minimised.formula, kept),
        implicants=tuple(tuple(_move(cut, kept) for cut in term) for term in minimised.implicants),
        clauses=tuple(tuple(_move(cut, kept) for cut in clause) for clause in minimised.clauses),
        exact=minimised.exact,
    )
    reduced = replace(
        question,
        functionals=tuple(functionals[index] for index in needed),
        formula=minimised.formula,
        atoms=tuple(
            replace(atom, functional=kept[places[atom.functional]])
            for atom in question.atoms
            if places[atom.functional] in kept
        ),
    )
    return canonical_rows(reduced), minimised


def _renumber(formula: Formula, places: dict[int, int]) -> Formula:
    return formula.mapped(lambda literal: _move(literal, places))


def _move(cut: Cut, places: dict[int, int]) -> Cut:
    return Cut(functional=places[cut.functional], cut=cut.cut, above=cut.above, tolerance=cut.tolerance)
