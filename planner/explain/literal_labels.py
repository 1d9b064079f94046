"""A plan's literals as letters and words: `A or (B and C)`, each letter one comparison in the analyst's unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, list_literals
from planner.explain.rounded_numbers import spell_number
from planner.functionals.atoms.atom_labels import make_label
from planner.question.plan import Minimised, Plan
from planner.question.question import Atom, Functional, Question

Literal: TypeAlias = tuple[int, int, bool]  # functional, cut, above


@dataclass(frozen=True, slots=True)
class NamedLiteral:
    """One literal of a plan's minimal formula: its letter, its words, and the band in which it may err.

    `lower` and `upper` are in the analyst's unit; for an average, that of a group of `rows` rows. `counted_unit` is
    the unit of the atom if it is not the analyst's. `guard` is the count that gives the group size for which the
    tolerance of a mean is meant; it is empty if `keyhole.min_rows` gives it. If it `has_key_thresholds`, every group
    has its own threshold, and the band is that of the least threshold.
    """

    letter: str
    text: str
    cut: Cut
    lower: Decimal
    upper: Decimal
    rows: int
    counted_unit: str = ""
    guard: str = ""
    has_key_thresholds: bool = False

    @property
    def band(self) -> str:
        """The band in which the literal may be decided wrongly, in words."""
        most = spell_number(self.upper - self.lower)
        if self.has_key_thresholds:
            return f"may err by {most} {'below' if self.cut.above else 'above'} each group's own threshold"
        if self.counted_unit == "rows":
            if self.lower == self.upper:
                return "one record decides, no slack"
            return f"may err by {most} row{'' if most == '1' else 's'} beyond the threshold"
        if self.lower == self.upper:
            return "no slack"
        unit = " % of the rows" if self.counted_unit else ""
        found = f"may err between {spell_number(self.lower)} and {spell_number(self.upper)}{unit}"
        return found if self.rows == 1 else f"{found} for groups of at least {self.rows} rows"


def letter_literals(plan: Plan) -> tuple[NamedLiteral, ...]:
    """Return the distinct literals of the minimal formulas, with letters in the order of the analyst's text."""
    kept = {identify_literal(cut): cut for one in plan.canonical for cut in list_literals(one.formula)}
    places = {functional: place for place, functional in enumerate(plan.question.functionals)}
    typed = [
        (places[functional], cut.cut, cut.above)
        for formula in plan.asked_question.formulas
        for cut in list_literals(formula)
        if (functional := plan.asked_question.functionals[cut.functional]) in places
    ]
    ordered = [kept[literal] for literal in dict.fromkeys(typed) if literal in kept]
    return tuple(_name_literal(plan.question, cut, letter=make_label(index)) for index, cut in enumerate(ordered))


def identify_literal(cut: Cut) -> Literal:
    """Return an identity of a literal.

    Equal comparisons have equal identities, whatever their tolerances and formulas.
    """
    return cut.functional, cut.cut, cut.above


def map_letters(named: tuple[NamedLiteral, ...]) -> Mapping[Literal, str]:
    """Return a map from the identity of each literal to its letter."""
    return MappingProxyType({identify_literal(one.cut): one.letter for one in named})


def map_typed_letters(plan: Plan, named: tuple[NamedLiteral, ...]) -> Mapping[Literal, str]:
    """Return the letter of each literal of the formula as typed.

    A literal of the minimal formula keeps its letter. Literals that the minimal formula does not need have the letters
    that follow, in the order in which they were typed.
    """
    kept = map_letters(named)
    places = {functional: place for place, functional in enumerate(plan.question.functionals)}
    found: dict[Literal, str] = {}
    further = len(named)
    for cut in (cut for formula in plan.asked_question.formulas for cut in list_literals(formula)):
        if identify_literal(cut) in found:
            continue
        place = places.get(plan.asked_question.functionals[cut.functional])
        letter = None if place is None else kept.get((place, cut.cut, cut.above))
        if letter is None:
            letter, further = make_label(further), further + 1
        found[identify_literal(cut)] = letter
    return MappingProxyType(found)


def list_idle_literals(plan: Plan, named: tuple[NamedLiteral, ...]) -> tuple[tuple[str, str], ...]:
    """Return letters and words of the typed literals that the minimal formula does not need."""
    kept, texts = set(map_letters(named).values()), spell_literals(plan.asked_question)
    return tuple(
        (letter, texts[typed]) for typed, letter in map_typed_letters(plan, named).items() if letter not in kept
    )


def order_formula(minimised: Minimised, named: tuple[NamedLiteral, ...]) -> Formula:
    """Return the formula that is evaluated, in the order in which its literals were typed."""
    return sort_by_names(minimised.formula, map_letters(named)) if minimised.is_minimal else minimised.formula


def spell_literals(question: Question) -> Mapping[Literal, str]:
    """Return a map from the literals of a question's formulas to their words."""
    every = (cut for formula in question.formulas for cut in list_literals(formula))
    return MappingProxyType({identify_literal(cut): _write_text(question, cut) for cut in every})


def spell_formula(formula: Formula, names: Mapping[Literal, str], *, both: str, either: str) -> str:
    """Return the text of a formula over named literals.

    `both` and `either` are the words for conjunction and disjunction. It has parentheses where needed.
    """

    def join(word: str, empty: str, parts: Sequence[tuple[str, bool]]) -> tuple[str, bool]:
        """Return the text of a conjunction or disjunction of its parts.

        The second value is True if a connective around this text must add parentheses.
        """
        if len(parts) == 1:
            return parts[0]
        texts = [f"({text})" if compound else text for text, compound in parts]
        return f" {word} ".join(texts) or empty, bool(texts)

    text, _ = formula.fold(
        lambda literal: (names[identify_literal(literal)], False),
        every=lambda parts: join(both, "true", parts),
        some=lambda parts: join(either, "false", parts),
    )
    return text


def sort_by_names(formula: Formula, names: Mapping[Literal, str]) -> Formula:
    """Return a minimal DNF with terms and literals in the order of their letters."""
    places = {literal: place for place, literal in enumerate(names)}

    def find_index(cut: Cut) -> int:
        return places[identify_literal(cut)]

    def order_term(term: Formula) -> Formula:
        literals: tuple[Cut, ...] = tuple(sorted(list_literals(term), key=find_index))
        return AllOf(literals)

    if not isinstance(formula, AnyOf):
        return formula
    return AnyOf(
        tuple(
            sorted(map(order_term, formula.children), key=lambda term: [find_index(cut) for cut in list_literals(term)])
        )
    )


def convert_to_users_unit(functional: Functional, cut: int) -> Decimal:
    """Return a threshold in the analyst's unit.

    For an average, convert the threshold for the group size for which its tolerance is meant.
    """
    return functional.origin + functional.unit_size * cut / functional.rows


def _name_literal(question: Question, cut: Cut, *, letter: str) -> NamedLiteral:
    functional = question.functionals[cut.functional]
    atom = _find_atom(question, cut)
    edge, slack = convert_to_users_unit(functional, cut.cut), convert_to_users_unit(functional, cut.relax().cut)
    lower, upper = (atom.lower, atom.upper) if atom else (min(edge, slack), max(edge, slack))
    text = _write_text(question, cut)
    counted = atom.counted_unit if atom else ""
    return NamedLiteral(
        letter=letter,
        text=text,
        cut=cut,
        lower=lower,
        upper=upper,
        rows=functional.rows if functional.pair is None else functional.pair.rows,
        counted_unit=counted,
        guard=atom.guard if atom else "",
        has_key_thresholds=functional.offsets is not None,
    )


def _write_text(question: Question, cut: Cut) -> str:
    atom = _find_atom(question, cut)
    if atom:
        return atom.text
    functional = question.functionals[cut.functional]
    operator = ">" if cut.above else "<="
    if functional.offsets is not None:
        edge = spell_number(convert_to_users_unit(functional, cut.cut))
        return f"{functional.name} - ({functional.offsets.text}) {operator} {edge}"
    threshold = convert_to_users_unit(replace(functional, origin=Decimal(0)), cut.cut)
    return f"{functional.name} {operator} {spell_number(threshold)}"


def _find_atom(question: Question, cut: Cut) -> Atom | None:
    """Return the atom that became this one literal alone."""
    literal = ((cut.cut, cut.above),)
    return next(
        (atom for atom in question.atoms if atom.functional == cut.functional and atom.literals == literal), None
    )
