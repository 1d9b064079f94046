"""Reader of a formula of comparisons: it returns functionals, atoms and integer literals with their tolerances."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, list_literals
from planner.aggregates.comparison import (
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    SpreadComparison,
    Unknown,
)
from planner.catalog.catalog import Table
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError
from planner.functionals.added_guards import GuardAdder, RatioBases
from planner.functionals.atoms.atom_labels import describe_atom
from planner.functionals.atoms.collected import FormulaCollector, ReadFormula
from planner.functionals.atoms.formula_warnings import (
    fail_shares,
    relax_near_empty,
    suggest_guard,
    warn_of_comparison,
    warn_of_mean_between_bounds,
    warn_of_predicates,
)
from planner.functionals.atoms.group_means import add_mean_tolerances
from planner.functionals.atoms.group_ratios import add_ratio_tolerances
from planner.functionals.atoms.read_comparison import read_comparison
from planner.functionals.guards import (
    Counts,
    Guarded,
    GuardedAll,
    GuardedAny,
    GuardedFormula,
    UnguardedError,
    complement,
    find_guards,
    holds_at_zero,
    strip_guards,
)
from planner.functionals.mean_bands import MeanBands
from planner.functionals.settled import refuse_undecidable, replace_settled_comparisons
from planner.functionals.variance_centres import replace_variances
from planner.question.condition import Condition
from planner.question.question import NEAR_EMPTY, Accuracy, Atom, Functional
from planner.values.operators import OPPOSITE_OPERATORS

MOST_LITERALS = 64  # what planning is measured with: docs/benchmarks.md has the time that formulas of so many take


@dataclass(frozen=True, slots=True)
class Atoms:
    """A HAVING formula and its predicates as atoms.

    `formula` and `predicates` are in negation normal form, as typed.
    """

    functionals: tuple[Functional, ...]
    atoms: tuple[Atom, ...]
    formula: Formula
    predicates: tuple[Formula, ...]
    warnings: tuple[str, ...]


def read_atoms(
    formula: Having,
    *,
    predicates: Sequence[Having] = (),
    names: Sequence[str] = (),
    table: Table,
    where: Condition,
    accuracy: Accuracy,
) -> Atoms:
    """Return the functionals, atoms and literals of a formula and its predicates over the rows that satisfy `where`.

    Guarantee: on exact values a formula of literals holds exactly if SQL's formula is true, for every group with rows.
    A group without rows is treated as one whose counts are 0 and whose sums and averages are NULL.

    Raises KH203-KH206, KH208, KH211, KH220, KH304, KH402.
    """
    collected = FormulaCollector(
        table=table, where=where, accuracy=accuracy, tolerances=parse_tolerances(accuracy.tolerance)
    )
    read = [_read(formula, collected, refuse_settled=True), *(_read_predicate(one, collected) for one in predicates)]
    if sum(1 for one in read for _ in list_literals(one.formula)) > MOST_LITERALS:
        raise _refuse_long_formula()
    functionals = dict(enumerate(collected.functionals))
    used = sorted({cut.functional for one in read for cut in list_literals(one.formula)})
    described: list[Atom] = []
    for comparison, index, size, typed in collected.comparisons.values():
        if index not in used:
            continue
        described.append(describe_atom(len(described), comparison, index, size, typed, collected))
        warn_of_comparison(comparison, typed, collected)
    having = read[0].formula
    if holds_at_zero(fail_shares(having, functionals), functionals) and any(True for _ in list_literals(having)):
        collected.warnings["groups without rows count as 0 and qualify"] = None
    elif holds_at_zero(relax_near_empty(having, functionals), functionals) and having != TRUE:
        collected.warn(f"{NEAR_EMPTY} and may be returned{suggest_guard(read[0].guarded, accuracy, into='AND {}')}")
    if having == TRUE or holds_at_zero(relax_near_empty(having, functionals), functionals):
        into = "HAVING {}" if having == TRUE else "AND {} in HAVING"
        collected.warnings.update(dict.fromkeys(warn_of_predicates(read[1:], names, functionals, accuracy, into=into)))
    collected.warnings.update(dict.fromkeys(warn_of_mean_between_bounds([functionals[index] for index in used])))
    places = {index: place for place, index in enumerate(used)}
    made = [_renumber(one.formula, places) for one in read]
    return Atoms(
        functionals=tuple(functionals[index] for index in used),
        atoms=tuple(replace(atom, functional=places[atom.functional]) for atom in described),
        formula=made[0],
        predicates=tuple(made[1:]),
        warnings=tuple(collected.warnings),
    )


def _read(formula: Having, collected: FormulaCollector, *, refuse_settled: bool = False) -> ReadFormula:
    """Return one formula as literals. Its own counts guard its sums and set the group sizes of its means.

    Missing guards are added unless the analyst wants none. Raises KH206, and KH220 if `refuse_settled` and declared
    bounds alone decide the whole formula.
    """
    formula = RatioBases(collected.table, collected.where, collected.accuracy, collected.tolerances).add_bases(
        formula, warn=collected.warn
    )
    bands = MeanBands(collected.table, collected.where, collected.accuracy, collected.tolerances)
    formula = add_ratio_tolerances(bands.add_bands(formula, warn=collected.warn), bands, warn=collected.warn)
    formula = add_mean_tolerances(formula, bands, warn=collected.warn)
    before = collected.save_state()
    try:
        return _read_without_guards(formula, collected, refuse_settled=refuse_settled)
    except UnguardedError as error:
        adding = GuardAdder(collected.table, collected.accuracy, collected.tolerances)
        added = adding.add(formula, error.missing) if collected.accuracy.adds_guards else None
        if added is None:
            raise
        collected.restore_state(before)
    made = _read_without_guards(added[0], collected, refuse_settled=False)
    for sentence in added[1]:
        collected.warn(sentence)
    return made


def _read_without_guards(formula: Having, collected: FormulaCollector, *, refuse_settled: bool) -> ReadFormula:
    """Return one formula as literals, with no guards but those that were typed. Raise KH206, KH220."""
    collected.set_group_sizes(formula)
    formula = replace_variances(
        formula,
        table=collected.table,
        accuracy=collected.accuracy,
        warn=collected.warn,
        rows_of=collected.find_group_rows,
    )
    collected.set_group_sizes(formula)
    if sum(1 for _ in formula.list_comparisons()) > MOST_LITERALS:
        raise _refuse_long_formula()
    before = dict(collected.comparisons)
    guarded = _read_guarded_formula(formula, collected)
    if refuse_settled:
        _refuse_settled(guarded, collected)
    guarded, capped = _find_guards(guarded, collected)
    for text, (comparison, index, size, typed) in collected.comparisons.items():
        if text not in before:
            final = strip_guards(Guarded(typed, (), "", None), capped=capped)
            collected.comparisons[text] = (comparison, index, size, final)
    return ReadFormula(_simplify(strip_guards(guarded, capped=capped)), guarded)


def _refuse_settled(guarded: GuardedFormula, collected: FormulaCollector) -> None:
    """Raise KH220 if declared bounds decide the formula, whatever the data."""
    whole = _simplify(strip_guards(replace_settled_comparisons(guarded, only_unguarded=False), capped=frozenset()))
    deciding = next(
        (leaf for leaf in guarded.walk_leaves() if leaf.known_truth is not None and leaf.known_truth == whole), None
    )
    if deciding is not None:
        raise refuse_undecidable(*collected.settled[deciding.text])


def _find_guards(guarded: GuardedFormula, collected: FormulaCollector) -> tuple[GuardedFormula, Counts]:
    """Return the formula without the comparisons that declared bounds settle, and the counts that guard the rest.

    A settled comparison stays if leaving it out would make a guard necessary. Raises KH206.
    """
    functionals = dict(enumerate(collected.functionals))
    shorter = replace_settled_comparisons(guarded, only_unguarded=False)
    try:
        return shorter, find_guards(shorter, functionals, where=collected.where)
    except KeyholeError:
        kept = replace_settled_comparisons(guarded, only_unguarded=True)
        return kept, find_guards(kept, functionals, where=collected.where)


def _read_predicate(formula: Having, collected: FormulaCollector) -> ReadFormula:
    """Return a formula whose truth is shown.

    The hint of a refusal tells how to guard it, or how to ask for its opposite.
    """
    try:
        return _read(formula, collected)
    except KeyholeError as error:
        before, added, guard = (error.hint or "").partition("Add: AND ")
        if error.code != "KH206" or not added:
            raise
        hint = f"{before}Add to this predicate: AND {guard}"
        if _needs_no_guard(_negate(formula), collected):
            hint = f"{hint}  Or ask for its opposite, and leave this to ELSE{_spell_as_else(formula)}."
        raise KeyholeError(error.code, error.message, detail=error.detail, hint=hint, position=error.position) from None


def _spell_as_else(formula: Having) -> str:
    """Return a CASE that asks for the opposite of a single comparison, or "" for any other formula."""
    if not isinstance(formula, Comparison):
        return ""
    left, operator, right = formula.text.rpartition(f" {formula.operator} ")
    return f": CASE WHEN {left} {OPPOSITE_OPERATORS[formula.operator]} {right} THEN 0 ELSE 1 END" if operator else ""


def _negate(formula: Having) -> Having:
    """Return the opposite formula. It is NULL if the formula is NULL."""
    return formula.fold(
        lambda leaf: replace(leaf, operator=OPPOSITE_OPERATORS[leaf.operator]),
        outside=Complement,
        every=lambda children: Disjunction(tuple(children)),
        some=lambda children: Conjunction(tuple(children)),
    )


def _needs_no_guard(formula: Having, collected: FormulaCollector) -> bool:
    """Return True if the formula needs no further guard."""
    known = (collected.table, collected.where, collected.accuracy, collected.tolerances)
    try:
        _read(formula, FormulaCollector(*known))
    except KeyholeError:
        return False
    return True


def _refuse_long_formula() -> KeyholeError:
    return KeyholeError(
        "KH211",
        f"the formula has more than {MOST_LITERALS} literals",
        hint="Split the question; UNION and INTERSECT of questions work as in SQL.",
    )


def _renumber(formula: Formula, places: Mapping[int, int]) -> Formula:
    return formula.map_literals(
        lambda literal: Cut(places[literal.functional], literal.cut, literal.above, literal.tolerance)
    )


def _read_guarded_formula(formula: Having, collected: FormulaCollector) -> GuardedFormula:
    match formula:
        case Comparison():
            return read_comparison(formula, collected)
        case SpreadComparison():
            raise KeyholeError(
                "KH900", f"{formula.text} was not replaced by comparisons with fixed centres", position=formula.position
            )
        case Conjunction(children):
            return GuardedAll(tuple(_read_guarded_formula(child, collected) for child in children))
        case Disjunction(children):
            return GuardedAny(tuple(_read_guarded_formula(child, collected) for child in children))
        case Unknown():
            return GuardedAny(())
        case Complement(inner):
            before = dict(collected.comparisons)
            made = complement(_read_guarded_formula(inner, collected))
            collected.comparisons = before  # the literals of a complement speak for themselves
            return made


def _simplify(formula: Formula) -> Formula:
    """Return the formula flattened, without constants and repetitions."""

    def join(kind: type[AllOf] | type[AnyOf], settled: Formula, children: Sequence[Formula]) -> Formula:
        if settled in children:
            return settled
        kept = {part: None for child in children for part in (child.children if isinstance(child, kind) else (child,))}
        return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))

    return formula.fold(
        lambda literal: literal,
        every=lambda children: join(AllOf, FALSE, children),
        some=lambda children: join(AnyOf, TRUE, children),
    )
