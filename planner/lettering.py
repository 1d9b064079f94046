"""A plan's literals in letters and words: `A or (B and C)`, each letter one comparison in the analyst's unit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from mechanisms.formula import TRUE, AllOf, AnyOf, Cut, Formula, cuts
from planner.atoms import label
from planner.plan import Plan
from planner.question import Atom, Functional, Question

Literal: TypeAlias = tuple[int, int, bool]  # functional, cut, above


@dataclass(frozen=True, slots=True)
class Named:
    """One literal of a plan's minimal formula: its letter, its words, and the band in which it may err.

    `lower` and `upper` are in the analyst's unit; for an average, that of a group of `rows` rows.
    """

    letter: str
    text: str
    cut: Cut
    lower: Decimal
    upper: Decimal
    rows: int


def lettered(plan: Plan) -> tuple[Named, ...]:
    """The distinct literals of the minimal formula, lettered in the order in which the analyst wrote them."""
    kept = {literal_of(cut): cut for cut in cuts(plan.minimised.formula)}
    places = {functional: place for place, functional in enumerate(plan.question.functionals)}
    typed = [
        (places[functional], cut.cut, cut.above)
        for cut in cuts(plan.asked.formula)
        if (functional := plan.asked.functionals[cut.functional]) in places
    ]
    ordered = [kept[literal] for literal in dict.fromkeys(typed) if literal in kept]
    return tuple(_named(plan.question, cut, letter=label(index)) for index, cut in enumerate(ordered))


def literal_of(cut: Cut) -> Literal:
    """What makes a literal the same wherever it occurs, whatever its tolerance."""
    return cut.functional, cut.cut, cut.above


def letters(named: tuple[Named, ...]) -> Mapping[Literal, str]:
    """From literals to letters."""
    return MappingProxyType({literal_of(one.cut): one.letter for one in named})


def words(question: Question) -> Mapping[Literal, str]:
    """From the literals of a question's formula to their words."""
    return MappingProxyType({literal_of(cut): _text(question, cut) for cut in cuts(question.formula)})


def spelled(formula: Formula, names: Mapping[Literal, str], *, both: str, either: str) -> str:
    """The formula over named literals, with the words for conjunction and disjunction, parentheses where needed."""
    match formula:
        case Cut():
            return names[literal_of(formula)]
        case AllOf(()) | AnyOf(()):
            return "true" if formula == TRUE else "false"
        case AllOf((only,)) | AnyOf((only,)):
            return spelled(only, names, both=both, either=either)
        case AllOf(children):
            return f" {both} ".join(_enclosed(child, names, both=both, either=either) for child in children)
        case AnyOf(children):
            return f" {either} ".join(_enclosed(child, names, both=both, either=either) for child in children)


def as_typed(formula: Formula, names: Mapping[Literal, str]) -> Formula:
    """A minimal DNF with terms and literals in the order of `names`, which is that of their letters."""
    places = {literal: place for place, literal in enumerate(names)}

    def place(cut: Cut) -> int:
        return places[literal_of(cut)]

    def ordered(term: Formula) -> Formula:
        literals: tuple[Cut, ...] = tuple(sorted(cuts(term), key=place))
        return AllOf(literals)

    if not isinstance(formula, AnyOf):
        return formula
    return AnyOf(tuple(sorted(map(ordered, formula.children), key=lambda term: [place(cut) for cut in cuts(term)])))


def aggregate_text(functional: Functional) -> str:
    """The aggregate as the analyst wrote it: an average's functional is named with its threshold behind."""
    return functional.name if functional.name.endswith(")") else functional.name.rpartition(" - ")[0]


def in_users_unit(functional: Functional, cut: int) -> Decimal:
    """A threshold in the analyst's unit; for an average, that of a group of the size its tolerance is meant for."""
    return functional.unit_size * (functional.offset + Decimal(cut) / functional.rows)


def plain(number: Decimal) -> str:
    """A number as an analyst writes it: no exponent, no idle zeros, at most six decimals."""
    text = format(round(number, 6), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _enclosed(child: Formula, names: Mapping[Literal, str], *, both: str, either: str) -> str:
    inner = spelled(child, names, both=both, either=either)
    return f"({inner})" if _compound(child) else inner


def _compound(formula: Formula) -> bool:
    match formula:
        case AllOf((only,)) | AnyOf((only,)):
            return _compound(only)
        case AllOf(children) | AnyOf(children):
            return len(children) > 1
        case _:
            return False


def _named(question: Question, cut: Cut, *, letter: str) -> Named:
    functional = question.functionals[cut.functional]
    atom = _atom(question, cut)
    edge, slack = in_users_unit(functional, cut.cut), in_users_unit(functional, cut.relaxed().cut)
    lower, upper = (atom.lower, atom.upper) if atom else (min(edge, slack), max(edge, slack))
    text = _text(question, cut)
    return Named(letter=letter, text=text, cut=cut, lower=lower, upper=upper, rows=functional.rows)


def _text(question: Question, cut: Cut) -> str:
    atom = _atom(question, cut)
    if atom:
        return atom.text
    functional = question.functionals[cut.functional]
    operator = ">" if cut.above else "<="
    return f"{functional.name} {operator} {plain(in_users_unit(replace(functional, offset=0), cut.cut))}"


def _atom(question: Question, cut: Cut) -> Atom | None:
    """The comparison that became this one literal, if its text says exactly what the literal says."""
    functional = question.functionals[cut.functional]
    step = functional.unit_size / functional.rows
    slack = step / 10**6
    for atom in question.atoms:
        operator = _operator(atom, functional)
        if atom.functional != cut.functional or operator.removesuffix("=") != (">" if cut.above else "<"):
            continue
        beyond = (atom.upper if cut.above else atom.lower) - in_users_unit(functional, cut.cut)
        least, most = (Decimal(0), step - 2 * slack) if operator in (">", "<=") else (2 * slack, step)
        if least - slack <= beyond <= most + slack:
            return atom
    return None


def _operator(atom: Atom, functional: Functional) -> str:
    return atom.text.removeprefix(aggregate_text(functional)).split()[0]
