"""A formula of comparisons to functionals, atoms and integer literals with their tolerances."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import floor

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, cuts, relaxed
from planner.catalog import Table
from planner.condition import canonical
from planner.errors import KeyholeError
from planner.functional import decimal, functional, literals, step_of
from planner.guard import Guarded, GuardedAll, GuardedAny, GuardedFormula, guarding, holds_at_zero, plain
from planner.having import Comparison, Every, Having, Some
from planner.question import Accuracy, Atom, Functional, Measure
from planner.tolerance import Amount, Step, Tolerances, allowed, tolerances

MOST_LITERALS = 64


@dataclass(frozen=True, slots=True)
class Atoms:
    """What a HAVING became; `formula` is in negation normal form, as typed."""

    functionals: tuple[Functional, ...]
    atoms: tuple[Atom, ...]
    formula: Formula
    warnings: tuple[str, ...]


@dataclass(slots=True)
class _Collected:
    """The functionals and comparisons met so far, in order."""

    table: Table
    accuracy: Accuracy
    tolerances: Tolerances
    functionals: dict[tuple[object, ...], Functional] = field(default_factory=dict)
    comparisons: dict[str, tuple[Comparison, int, Fraction, Formula]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)


def atoms(formula: Having, *, table: Table, accuracy: Accuracy) -> Atoms:
    """The functionals, atoms and literals of a formula.

    Guarantee: on exact values the formula of literals holds exactly where SQL's formula is true, for every group with
    rows, and a group without rows counts as one whose counts are 0 and whose sums and averages are NULL.
    Raises KH203-KH206, KH208, KH211, KH304, KH402.
    """
    collected = _Collected(table=table, accuracy=accuracy, tolerances=tolerances(accuracy.tolerance))
    if _size(formula) > MOST_LITERALS:
        raise _too_long()
    guarded = _guarded(formula, collected)
    functionals = dict(enumerate(collected.functionals.values()))
    capped = guarding(guarded, functionals)
    result = _simplified(plain(guarded, capped=capped))
    if sum(1 for _ in cuts(result)) > MOST_LITERALS:
        raise _too_long()
    used = sorted({cut.functional for cut in cuts(result)})
    described: list[Atom] = []
    for comparison, index, size, typed in collected.comparisons.values():
        if index not in used:
            continue
        final = plain(Guarded(typed, None, "", None), capped=capped)
        described.append(_atom(len(described), comparison, index, size, final, collected))
        _warn(comparison, final, collected)
    if holds_at_zero(result) and used:
        collected.warnings["groups without rows count as 0 and qualify"] = None
    elif holds_at_zero(relaxed(result)):
        collected.warnings["groups without rows lie within the tolerance and may be returned"] = None
    return Atoms(
        functionals=tuple(functionals[index] for index in used),
        atoms=tuple(replace(atom, functional=used.index(atom.functional)) for atom in described),
        formula=_renumbered(result, used),
        warnings=tuple(collected.warnings),
    )


def _size(formula: Having) -> int:
    return 1 if isinstance(formula, Comparison) else sum(_size(child) for child in formula.children)


def _too_long() -> KeyholeError:
    return KeyholeError(
        "KH211",
        f"the formula has more than {MOST_LITERALS} literals",
        hint="Split the question; UNION and INTERSECT of questions work as in SQL.",
    )


def _renumbered(formula: Formula, used: list[int]) -> Formula:
    match formula:
        case Cut():
            return replace(formula, functional=used.index(formula.functional))
        case AllOf(children):
            return AllOf(tuple(_renumbered(child, used) for child in children))
        case AnyOf(children):
            return AnyOf(tuple(_renumbered(child, used) for child in children))


def _guarded(formula: Having, collected: _Collected) -> GuardedFormula:
    match formula:
        case Comparison():
            return _literals(formula, collected)
        case Every(children):
            return GuardedAll(tuple(_guarded(child, collected) for child in children))
        case Some(children):
            return GuardedAny(tuple(_guarded(child, collected) for child in children))


def text_of(comparison: Comparison) -> str:
    """The comparison as an analyst would write it."""
    return f"{comparison.aggregate.text} {comparison.operator} {decimal(comparison.threshold)}"


def _literals(comparison: Comparison, collected: _Collected) -> Guarded:
    found = comparison.aggregate
    made = functional(
        found,
        threshold=comparison.threshold,
        table=collected.table,
        min_rows=collected.accuracy.min_rows,
        position=comparison.position,
    )
    size = step_of(made, found, collected.table)
    at = Fraction(0) if found.average else comparison.threshold / size
    constant = _constant_count(found.measure, literals(0, comparison.operator, at, tolerance=0))
    text = text_of(comparison)
    if constant is not None:
        collected.warnings[f"{text} is {'true' if constant == AllOf(()) else 'false'} for every group"] = None
        return Guarded(constant, found.values, text, comparison.position)
    meaning = (made.measure, made.column, canonical(made.condition), made.scale, made.offset)
    collected.functionals.setdefault(meaning, made)
    index = list(collected.functionals).index(meaning)
    tolerance = _tolerance(comparison, text, made, size, collected)
    formula = literals(index, comparison.operator, at, tolerance=tolerance)
    if any(abs(cut.cut) + cut.tolerance >= 2**62 for cut in cuts(formula)):
        raise KeyholeError("KH208", f"the threshold of {text} is out of range", position=comparison.position)
    if isinstance(formula, AllOf | AnyOf) and not formula.children:
        step = f"whole steps of {made.unit_size}"
        collected.warnings[f"{text}: {found.text} comes in {step} and never equals the threshold"] = None
    else:
        collected.comparisons.setdefault(text, (comparison, index, size, formula))
    return Guarded(formula, found.values, text, comparison.position)


def _constant_count(measure: Measure, formula: Formula) -> Formula | None:
    """TRUE or FALSE for a comparison of a count that every count settles, else None."""
    if measure is Measure.TOTAL or not isinstance(formula, Cut) or formula.cut >= 0:
        return None
    return AllOf(()) if formula.above else AnyOf(())


def _tolerance(comparison: Comparison, text: str, made: Functional, size: Fraction, collected: _Collected) -> int:
    amount: Amount | None = collected.tolerances.amount(comparison.aggregate.names)
    if amount is None:
        raise KeyholeError(
            "KH304",
            f"keyhole.tolerance says nothing about {comparison.aggregate.text}",
            hint=f"SET keyhole.tolerance = '10%, {collected.accuracy.tolerance}';",
            position=comparison.position,
        )
    step = Step(unit_size=size, rows=made.rows)
    try:
        exact = allowed(amount, threshold=comparison.threshold, step=step)
    except KeyholeError as error:
        raise KeyholeError(
            error.code, f"{text}: {error.message}", detail=error.detail, hint=error.hint, position=comparison.position
        ) from None
    if 0 < exact < 1:
        what = "one row" if made.measure is not Measure.TOTAL else f"one step of {made.unit_size}"
        collected.warnings[f"{text}: the tolerance is below {what} and counts as zero"] = None
    return floor(exact)


def _simplified(formula: Formula) -> Formula:
    """The formula flattened, without constants and repetitions."""
    if isinstance(formula, Cut):
        return formula
    kind, other = (AllOf, AnyOf) if isinstance(formula, AllOf) else (AnyOf, AllOf)
    kept: dict[Formula, None] = {}
    for child in map(_simplified, formula.children):
        if child == other(()):
            return child
        for part in child.children if isinstance(child, kind) else (child,):
            kept[part] = None
    return next(iter(kept)) if len(kept) == 1 else kind(tuple(kept))


def label(index: int) -> str:
    """A, B, ..., Z, AA, AB, ..."""
    letters = ""
    index += 1
    while index:
        index, letter = divmod(index - 1, 26)
        letters = chr(ord("A") + letter) + letters
    return letters


def _atom(
    number: int, comparison: Comparison, index: int, size: Fraction, formula: Formula, collected: _Collected
) -> Atom:
    rows = list(collected.functionals.values())[index].rows
    below = max((cut.tolerance for cut in cuts(formula) if cut.above), default=0)
    beyond = max((cut.tolerance for cut in cuts(formula) if not cut.above), default=0)
    return Atom(
        label=label(number),
        text=text_of(comparison),
        functional=index,
        lower=decimal(comparison.threshold - below * size / rows),
        upper=decimal(comparison.threshold + beyond * size / rows),
    )


def _warn(comparison: Comparison, formula: Formula, collected: _Collected) -> None:
    text = text_of(comparison)
    if comparison.operator == "<>" and any(cut.tolerance >= 1 for cut in cuts(formula)):
        collected.warnings[f"{text} holds for every group once its tolerance is allowed: it promises nothing"] = None
    for cut in cuts(formula):
        if cut.tolerance == 0:
            collected.warnings[f"{text} has no tolerance, which is dear"] = None
