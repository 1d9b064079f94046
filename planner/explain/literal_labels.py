"""A plan's literals in letters and words: `A or (B and C)`, each letter one comparison in the analyst's unit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from types import MappingProxyType
from typing import TypeAlias

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, cuts
from planner.explain.rounded_numbers import plain
from planner.functionals.atoms.atom_labels import make_label
from planner.question.plan import Minimised, Plan
from planner.question.question import Atom, Functional, Question

Literal: TypeAlias = tuple[int, int, bool]  # functional, cut, above


@dataclass(frozen=True, slots=True)
class Named:
    """One literal of a plan's minimal formula: its letter, its words, and the band in which it may err.

    `lower` and `upper` are in the analyst's unit; for an average, that of a group of `rows` rows. `counted` is that of
    the atom: what they count where that is not the analyst's unit, and `guard` the count that says for groups of how
    many rows its tolerance is meant, "" where `keyhole.min_rows` does. With `own` every group has a threshold of its
    own, and the band is that of the least.
    """

    letter: str
    text: str
    cut: Cut
    lower: Decimal
    upper: Decimal
    rows: int
    counted: str = ""
    guard: str = ""
    own: bool = False

    @property
    def band(self) -> str:
        """Where it may err, in words."""
        most = plain(self.upper - self.lower)
        if self.own:
            return f"may err by {most} {'below' if self.cut.above else 'above'} each group's own threshold"
        if self.counted == "rows":
            if self.lower == self.upper:
                return "one record decides, no slack"
            return f"may err by {most} row{'' if most == '1' else 's'} beyond the threshold"
        if self.lower == self.upper:
            return "no slack"
        unit = " % of the rows" if self.counted else ""
        found = f"may err between {plain(self.lower)} and {plain(self.upper)}{unit}"
        return found if self.rows == 1 else f"{found} for groups of at least {self.rows} rows"


def letter_literals(plan: Plan) -> tuple[Named, ...]:
    """Return the distinct literals of the minimal formulas, lettered in the order in which the analyst wrote them."""
    kept = {literal_of(cut): cut for one in plan.canonical for cut in cuts(one.formula)}
    places = {functional: place for place, functional in enumerate(plan.question.functionals)}
    typed = [
        (places[functional], cut.cut, cut.above)
        for formula in plan.asked.formulas
        for cut in cuts(formula)
        if (functional := plan.asked.functionals[cut.functional]) in places
    ]
    ordered = [kept[literal] for literal in dict.fromkeys(typed) if literal in kept]
    return tuple(_name_literal(plan.question, cut, letter=make_label(index)) for index, cut in enumerate(ordered))


def literal_of(cut: Cut) -> Literal:
    """Return the identity of a literal wherever it occurs, whatever its tolerance."""
    return cut.functional, cut.cut, cut.above


def letters(named: tuple[Named, ...]) -> Mapping[Literal, str]:
    """Return a map from literals to letters."""
    return MappingProxyType({literal_of(one.cut): one.letter for one in named})


def typed_letters(plan: Plan, named: tuple[Named, ...]) -> Mapping[Literal, str]:
    """Return a map from the literals of the formula as typed (its own numbering of functionals) to letters.

    A literal of the minimal formula has its letter there; those that the minimal formula does not need have the letters
    that follow, in the order in which they were typed.
    """
    kept = letters(named)
    places = {functional: place for place, functional in enumerate(plan.question.functionals)}
    found: dict[Literal, str] = {}
    further = len(named)
    for cut in (cut for formula in plan.asked.formulas for cut in cuts(formula)):
        if literal_of(cut) in found:
            continue
        place = places.get(plan.asked.functionals[cut.functional])
        letter = None if place is None else kept.get((place, cut.cut, cut.above))
        if letter is None:
            letter, further = make_label(further), further + 1
        found[literal_of(cut)] = letter
    return MappingProxyType(found)


def idle(plan: Plan, named: tuple[Named, ...]) -> tuple[tuple[str, str], ...]:
    """Return letters and words of the typed literals that the minimal formula does not need."""
    kept, texts = set(letters(named).values()), words(plan.asked)
    return tuple((letter, texts[typed]) for typed, letter in typed_letters(plan, named).items() if letter not in kept)


def order_formula(minimised: Minimised, named: tuple[Named, ...]) -> Formula:
    """Return the formula that is evaluated, in the order in which its literals were typed."""
    return as_typed(minimised.formula, letters(named)) if minimised.exact else minimised.formula


def words(question: Question) -> Mapping[Literal, str]:
    """Return a map from the literals of a question's formulas to their words."""
    every = (cut for formula in question.formulas for cut in cuts(formula))
    return MappingProxyType({literal_of(cut): _text(question, cut) for cut in every})


def spell_formula(formula: Formula, names: Mapping[Literal, str], *, both: str, either: str) -> str:
    """Return the formula over named literals.

    It has the words for conjunction and disjunction, and parentheses where needed.
    """

    def join(word: str, empty: str, parts: Sequence[tuple[str, bool]]) -> tuple[str, bool]:
        """Return the text of a connective, and True if it needs parentheses inside another."""
        if len(parts) == 1:
            return parts[0]
        texts = [f"({text})" if compound else text for text, compound in parts]
        return f" {word} ".join(texts) or empty, bool(texts)

    text, _ = formula.fold(
        lambda literal: (names[literal_of(literal)], False),
        every=lambda parts: join(both, "true", parts),
        some=lambda parts: join(either, "false", parts),
    )
    return text


def as_typed(formula: Formula, names: Mapping[Literal, str]) -> Formula:
    """Return a minimal DNF with terms and literals in the order of `names`, which is that of their letters."""
    places = {literal: place for place, literal in enumerate(names)}

    def place(cut: Cut) -> int:
        return places[literal_of(cut)]

    def order_term(term: Formula) -> Formula:
        literals: tuple[Cut, ...] = tuple(sorted(cuts(term), key=place))
        return AllOf(literals)

    if not isinstance(formula, AnyOf):
        return formula
    return AnyOf(tuple(sorted(map(order_term, formula.children), key=lambda term: [place(cut) for cut in cuts(term)])))


def in_users_unit(functional: Functional, cut: int) -> Decimal:
    """Return a threshold in the analyst's unit.

    For an average, that of a group of the size its tolerance is meant for.
    """
    return functional.origin + functional.unit_size * cut / functional.rows


def _name_literal(question: Question, cut: Cut, *, letter: str) -> Named:
    functional = question.functionals[cut.functional]
    atom = _atom(question, cut)
    edge, slack = in_users_unit(functional, cut.cut), in_users_unit(functional, cut.relax().cut)
    lower, upper = (atom.lower, atom.upper) if atom else (min(edge, slack), max(edge, slack))
    text = _text(question, cut)
    counted = atom.counted if atom else ""
    return Named(
        letter=letter,
        text=text,
        cut=cut,
        lower=lower,
        upper=upper,
        rows=functional.rows,
        counted=counted,
        guard=atom.guard if atom else "",
        own=functional.offsets is not None,
    )


def _text(question: Question, cut: Cut) -> str:
    atom = _atom(question, cut)
    if atom:
        return atom.text
    functional = question.functionals[cut.functional]
    operator = ">" if cut.above else "<="
    if functional.offsets is not None:
        edge = plain(in_users_unit(functional, cut.cut))
        return f"{functional.name} - ({functional.offsets.text}) {operator} {edge}"
    return f"{functional.name} {operator} {plain(in_users_unit(replace(functional, origin=Decimal(0)), cut.cut))}"


def _atom(question: Question, cut: Cut) -> Atom | None:
    """Return the comparison that became this one literal alone."""
    literal = ((cut.cut, cut.above),)
    return next(
        (atom for atom in question.atoms if atom.functional == cut.functional and atom.literals == literal), None
    )
