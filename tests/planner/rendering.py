"""A question as one line of text, for the pairs under tests/spec."""

from mechanisms.formula import FALSE, AllOf, AnyOf, Cut, Formula
from planner.question.condition import ALWAYS
from planner.question.condition_text import write_canonical
from planner.question.question import Functional, Question, Ranked, Term


def formula_text(formula: Formula) -> str:
    """Functionals by number, thresholds with their tolerances."""
    match formula:
        case Cut(functional, cut, above, tolerance):
            return f"f{functional} {'>' if above else '<='} {cut} ~{tolerance}"
        case AllOf(children):
            return "(" + " and ".join(map(formula_text, children)) + ")" if children else "true"
        case AnyOf(children):
            return "(" + " or ".join(map(formula_text, children)) + ")" if children else "false"


def _scaled(functional: Functional) -> str:
    """The terms of what is more than a count or sum: `2x-7`, or each with its column."""
    match functional.terms:
        case (Term(coefficient=1),):
            return ""
        case (Term(scale, column, condition, 1), Term(offset, other, same, 0)) if (column, condition) == (other, same):
            return f" {scale}x-{-offset}"
        case terms:
            return " {" + " ".join(map(_term, terms)) + "}"


def _term(term: Term) -> str:
    column = f" {term.column}" if term.column else ""
    condition = "" if term.condition == ALWAYS else f" if {write_canonical(term.condition)}"
    return f"{term.coefficient:+}{column}{'' if term.power == 1 or not term.column else f'^{term.power}'}{condition}"


def question_text(question: Question) -> str:
    """Keys, filter, formula, predicates, what is ranked by, and functionals."""
    keys = ", ".join(
        f"{name} {len(values)}" for name, values in zip(question.keys.names, question.keys.values, strict=True)
    )
    where = "" if question.where == ALWAYS else f" where {write_canonical(question.where)}"
    functionals = []
    for functional in question.computed_functionals:
        scaled = _scaled(functional)
        clipped = "" if functional.unit_range is None else f" in {functional.unit_range[0]}..{functional.unit_range[1]}"
        functionals.append(f"{functional.name}{scaled} delta {functional.sensitivity}{clipped}")
    nulls = question.null_predicates or (False,) * len(question.predicates)
    shown = "".join(
        f" show {_predicate(one, is_null=is_null)}" for one, is_null in zip(question.predicates, nulls, strict=True)
    )
    ranked = "" if question.ranked is None else _ranked(question.ranked)
    return f"[{keys}]{where} {formula_text(question.formula)}{shown}{ranked}; " + "; ".join(functionals)


def _predicate(one: Formula, *, is_null: bool) -> str:
    """A predicate that is NULL unless it is true."""
    if not is_null:
        return formula_text(one)
    return "null" if one == FALSE else f"{formula_text(one)} else null"


def _ranked(ranked: Ranked) -> str:
    """The last functional is what is ranked by, or the last two are a mean's total and count."""
    limit = "all" if ranked.most_returned is None else f"first {ranked.most_returned}"
    among = f" per {', '.join(ranked.partition)}" if ranked.partition else ""
    behind = f" behind {ranked.offset}" if ranked.offset else ""
    flags = {
        "signed": ranked.has_both_signs,
        "priced": ranked.is_priced,
        "cut": ranked.may_cut_anywhere,
        "of all": ranked.keeps_every_row,
    }
    said = "".join(f" {name}" for name, holds in flags.items() if holds)
    if ranked.mean is not None:
        moved = f"moved {ranked.functional.sensitivity}"
        said += f" mean of {ranked.mean.least_rows} in steps of {ranked.functional.unit_size} {moved}"
    return f" {limit}{among}{behind} {'falling' if ranked.descending else 'rising'} ~{ranked.tolerance}{said}"
