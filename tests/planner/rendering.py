"""A question as one line of text, for the pairs under tests/spec."""

from mechanisms.formula import AllOf, AnyOf, Cut, Formula
from planner.condition import ALWAYS, canonical
from planner.question import Question


def formula_text(formula: Formula) -> str:
    """Functionals by number, thresholds with their tolerances."""
    match formula:
        case Cut(functional, cut, above, tolerance):
            return f"f{functional} {'>' if above else '<='} {cut} ~{tolerance}"
        case AllOf(children):
            return "(" + " and ".join(map(formula_text, children)) + ")" if children else "true"
        case AnyOf(children):
            return "(" + " or ".join(map(formula_text, children)) + ")" if children else "false"


def question_text(question: Question) -> str:
    """Keys, filter, formula and functionals."""
    keys = ", ".join(
        f"{name} {len(values)}" for name, values in zip(question.keys.names, question.keys.values, strict=True)
    )
    where = "" if question.where == ALWAYS else f" where {canonical(question.where)}"
    functionals = []
    for functional in question.functionals:
        scaled = "" if (functional.scale, functional.offset) == (1, 0) else f" {functional.scale}x-{functional.offset}"
        clipped = "" if functional.unit_range is None else f" in {functional.unit_range[0]}..{functional.unit_range[1]}"
        functionals.append(f"{functional.name}{scaled} delta {functional.sensitivity}{clipped}")
    return f"[{keys}]{where} {formula_text(question.formula)}; " + "; ".join(functionals)
