"""The question that is computed: canonical order, minimal formula, and only the functionals that it needs."""

from dataclasses import replace

from mechanisms.formula import FALSE, Cut, Formula, list_literals
from planner.functionals.functional_identity import identify_functional
from planner.functionals.unit_rows import canonicalise_rows
from planner.plan.minimise import minimise
from planner.question.plan import Minimised
from planner.question.question import Question, Ranked
from planner.rankings.ranked import make_ranking_task


def reduce_question(question: Question) -> tuple[Question, Minimised, tuple[Minimised, ...]]:
    """Return the question that is computed, and its formula and predicates in canonical form.

    Functionals are in canonical order. Those that no formula needs are left out.
    """
    keys = question.keys.identities
    identities = [identify_functional(one, keys) for one in question.functionals]
    order = sorted(range(len(identities)), key=identities.__getitem__)
    places = {old: new for new, old in enumerate(order)}
    functionals = tuple(question.functionals[index] for index in order)
    nothing_returned = not question.keys.size
    every = [minimise(FALSE if nothing_returned else _renumber(one, places)) for one in question.formulas]
    if every[0].formula == FALSE:
        every = [every[0], *(minimise(FALSE) for _ in question.predicates)]
    needed = sorted({cut.functional for one in every for cut in list_literals(one.formula)})
    kept = {old: new for new, old in enumerate(needed)}
    minimised, *predicates = (_renumber_minimised(one, kept) for one in every)
    reduced = replace(
        question,
        ranked=_reduce_limit(question, returned=every[0].formula != FALSE),
        functionals=tuple(functionals[index] for index in needed),
        formula=minimised.formula,
        predicates=tuple(one.formula for one in predicates),
        atoms=tuple(
            replace(atom, functional=kept[places[atom.functional]])
            for atom in question.atoms
            if places[atom.functional] in kept
        ),
    )
    return canonicalise_rows(reduced), minimised, tuple(predicates)


def _reduce_limit(question: Question, *, returned: bool) -> Ranked | None:
    """Return the question's ranking, limited to the number of keys that can be returned."""
    ranked = question.ranked
    if ranked is None:
        return None
    limit = make_ranking_task(question, ranked).limit if returned else 0
    return replace(ranked, most_returned=limit)


def _renumber_minimised(minimised: Minimised, kept: dict[int, int]) -> Minimised:
    """Return the canonical form over the functionals that are left."""
    return Minimised(
        formula=_renumber(minimised.formula, kept),
        implicants=tuple(tuple(_renumber_cut(cut, kept) for cut in term) for term in minimised.implicants),
        clauses=tuple(tuple(_renumber_cut(cut, kept) for cut in clause) for clause in minimised.clauses),
        is_minimal=minimised.is_minimal,
    )


def _renumber(formula: Formula, places: dict[int, int]) -> Formula:
    return formula.map_literals(lambda literal: _renumber_cut(literal, places))


def _renumber_cut(cut: Cut, places: dict[int, int]) -> Cut:
    return Cut(functional=places[cut.functional], cut=cut.cut, above=cut.above, tolerance=cut.tolerance)
