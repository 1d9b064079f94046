"""A formula of comparisons to functionals, atoms and integer literals with their tolerances."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor
from typing import TypeAlias

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, cuts, relax_formula
from planner.aggregates.comparison import Comparison, Every, Having, Outside, Slack, Some, Spread
from planner.aggregates.key_numbers import KeyNumbers
from planner.catalog.model import Table
from planner.catalog.tolerance import (
    OF_BOUNDS,
    Amount,
    Step,
    Tolerances,
    allowed_steps,
    quote_literal,
    tolerances,
    with_amount,
)
from planner.errors import KeyholeError
from planner.functionals.added_guards import GuardAdding, RatioBases
from planner.functionals.functional import functional, grid, literals
from planner.functionals.group_sizes import GroupSize, group_sizes, mean_of
from planner.functionals.guard_remedy import WORTH, Remedy, next_round, remedy
from planner.functionals.guards import (
    Absence,
    ComparisonPlace,
    Counts,
    Guarded,
    GuardedAll,
    GuardedAny,
    GuardedFormula,
    UnguardedError,
    complement,
    find_guards,
    guard_hint,
    holds_at_zero,
    plain,
)
from planner.functionals.mean_bands import MeanBands
from planner.functionals.per_key_offsets import LIMIT, offsets
from planner.functionals.row_range import is_never_null, reach, row_range, row_range_without, within_bounds
from planner.functionals.settled import settle, settle_beside, undecidable, use_settled, warn_of_settled
from planner.functionals.variance_centres import around_centres
from planner.question.condition import (
    Condition,
)
from planner.question.condition_text import canonical
from planner.question.model import NEAR_EMPTY, Accuracy, Atom, Functional, Measure, aggregate_text
from planner.values.decimals import decimal
from planner.values.operators import OPPOSITE

MOST_LITERALS = 64  # what planning is measured with: docs/benchmarks.md has the time that formulas of so many take

_MUCH_LARGER = 4
"""How many times `min_rows` a count must ask for to make a mean cheaper surely: the mean's own price falls by that, and
the count costs about as much as the mean then does."""

_COUNTED = {Slack.THRESHOLD: "", Slack.ROWS: "% of rows", Slack.RECORD: "rows"}


@dataclass(frozen=True, slots=True)
class Atoms:
    """What a HAVING and predicates became; `formula` and `predicates` are in negation normal form, as typed."""

    functionals: tuple[Functional, ...]
    atoms: tuple[Atom, ...]
    formula: Formula
    predicates: tuple[Formula, ...]
    warnings: tuple[str, ...]


_Compared: TypeAlias = tuple[Comparison, int, Fraction, Formula]


@dataclass(slots=True)
class _Collected:
    """The functionals and comparisons met so far, in order."""

    table: Table
    where: Condition
    accuracy: Accuracy
    tolerances: Tolerances
    sizes: Mapping[object, GroupSize] = field(default_factory=dict)
    functionals: list[Functional] = field(default_factory=list)
    places: dict[tuple[object, ...], int] = field(default_factory=dict)
    comparisons: dict[str, _Compared] = field(default_factory=dict)
    settled: dict[str, tuple[Comparison, Formula]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def place(self, made: Functional, *, meaning: tuple[object, ...]) -> int:
        """The place of the functional that means this: the next one where it is new."""
        place = self.places.setdefault(meaning, len(self.functionals))
        if place == len(self.functionals):
            self.functionals.append(made)
        return place

    def warn(self, text: str) -> None:
        """Say it once."""
        self.warnings[text] = None

    def mark(self) -> tuple[dict[str, _Compared], dict[str, tuple[Comparison, Formula]], dict[str, None]]:
        """Return what a formula adds to, so that it can be read again; a functional that nothing uses is left out."""
        return dict(self.comparisons), dict(self.settled), dict(self.warnings)

    def go_back(
        self, mark: tuple[dict[str, _Compared], dict[str, tuple[Comparison, Formula]], dict[str, None]]
    ) -> None:
        """Forget what was added since the mark."""
        self.comparisons, self.settled, self.warnings = dict(mark[0]), dict(mark[1]), dict(mark[2])

    def measure_groups(self, formula: Having) -> None:
        """Find out for how large groups the tolerances of means are meant, unless the analyst said it."""
        if not self.accuracy.min_rows_set:
            self.sizes = group_sizes(
                formula,
                table=self.table,
                where=self.where,
                tolerances=self.tolerances,
                min_rows=self.accuracy.min_rows,
            )

    def rows_of(self, leaf: Comparison | Spread) -> int:
        """The group size for which the tolerance of a mean is meant."""
        size = self.sizes.get(mean_of(leaf))
        return self.accuracy.min_rows if size is None else max(size.rows, self.accuracy.min_rows)

    def guard_of(self, leaf: Comparison) -> str:
        """The count that says so, as typed; "" where the setting does."""
        size = self.sizes.get(mean_of(leaf))
        return size.guard if size is not None and size.rows > self.accuracy.min_rows else ""


def atoms(
    formula: Having,
    *,
    predicates: Sequence[Having] = (),
    names: Sequence[str] = (),
    table: Table,
    where: Condition,
    accuracy: Accuracy,
) -> Atoms:
    """The functionals, atoms and literals of a formula, and of predicates with their names, over the rows that satisfy
    `where`.

    Guarantee: on exact values each formula of literals holds exactly where SQL's formula is true, for every group with
    rows, and a group without rows counts as one whose counts are 0 and whose sums and averages are NULL.
    Raises KH203-KH206, KH208, KH211, KH220, KH304, KH402.
    """
    collected = _Collected(table=table, where=where, accuracy=accuracy, tolerances=tolerances(accuracy.tolerance))
    read = [_read(formula, collected, refuse_settled=True), *(_read_predicate(one, collected) for one in predicates)]
    if sum(1 for one in read for _ in cuts(one.formula)) > MOST_LITERALS:
        raise _too_long()
    functionals = dict(enumerate(collected.functionals))
    used = sorted({cut.functional for one in read for cut in cuts(one.formula)})
    described: list[Atom] = []
    for comparison, index, size, typed in collected.comparisons.values():
        if index not in used:
            continue
        described.append(_atom(len(described), comparison, index, size, typed, collected))
        _warn(comparison, typed, collected)
    having = read[0].formula
    if holds_at_zero(having, functionals) and any(True for _ in cuts(having)):
        collected.warnings["groups without rows count as 0 and qualify"] = None
    elif holds_at_zero(relax_formula(having), functionals) and having != TRUE:
        collected.warn(f"{NEAR_EMPTY} and may be returned{_tell_guard(read[0].guarded, accuracy, into='AND {}')}")
    if having == TRUE or holds_at_zero(relax_formula(having), functionals):
        into = "HAVING {}" if having == TRUE else "AND {} in HAVING"
        collected.warnings.update(dict.fromkeys(_of_predicates(read[1:], names, functionals, accuracy, into=into)))
    collected.warnings.update(dict.fromkeys(warn_of_both_sides([functionals[index] for index in used])))
    places = {index: place for place, index in enumerate(used)}
    made = [_renumber(one.formula, places) for one in read]
    return Atoms(
        functionals=tuple(functionals[index] for index in used),
        atoms=tuple(replace(atom, functional=places[atom.functional]) for atom in described),
        formula=made[0],
        predicates=tuple(made[1:]),
        warnings=tuple(collected.warnings),
    )


@dataclass(frozen=True, slots=True)
class _ReadFormula:
    """A formula of literals, and what it was read as, with what must exist for each comparison not to be NULL."""

    formula: Formula
    guarded: GuardedFormula


def _read(formula: Having, collected: _Collected, *, refuse_settled: bool = False) -> _ReadFormula:
    """One formula, whose own counts guard its sums and say for groups of how many rows its means are meant.

    Guards that it misses are added, unless the analyst wants none. Raises KH206, and KH220 if `refuse_settled` and
    declared bounds alone decide the whole formula.
    """
    formula = RatioBases(collected.table, collected.where, collected.accuracy, collected.tolerances).put(
        formula, warn=collected.warn
    )
    formula = MeanBands(collected.table, collected.where, collected.accuracy, collected.tolerances).put(
        formula, warn=collected.warn
    )
    before = collected.mark()
    try:
        return _read_as_typed(formula, collected, refuse_settled=refuse_settled)
    except UnguardedError as error:
        adding = GuardAdding(collected.table, collected.accuracy, collected.tolerances)
        added = adding.add(formula, error.missing) if collected.accuracy.adds_guards else None
        if added is None:
            raise
        collected.go_back(before)
    made = _read_as_typed(added[0], collected, refuse_settled=False)
    for sentence in added[1]:
        collected.warn(sentence)
    return made


def _read_as_typed(formula: Having, collected: _Collected, *, refuse_settled: bool) -> _ReadFormula:
    """One formula with no guards but its own. Raises KH206, KH220."""
    collected.measure_groups(formula)
    formula = around_centres(
        formula,
        table=collected.table,
        accuracy=collected.accuracy,
        warn=collected.warn,
        rows_of=collected.rows_of,
    )
    collected.measure_groups(formula)
    if sum(1 for _ in formula.leaves()) > MOST_LITERALS:
        raise _too_long()
    before = dict(collected.comparisons)
    guarded = _read_guarded(formula, collected)
    if refuse_settled:
        _refuse_settled(guarded, collected)
    guarded, capped = _find_guards(guarded, collected)
    for text, (comparison, index, size, typed) in collected.comparisons.items():
        if text not in before:
            final = plain(Guarded(typed, (), "", None), capped=capped)
            collected.comparisons[text] = (comparison, index, size, final)
    return _ReadFormula(_simplify(plain(guarded, capped=capped)), guarded)


def _refuse_settled(guarded: GuardedFormula, collected: _Collected) -> None:
    """Raises KH220 where nothing is left to the data once what declared bounds settle is put in."""
    whole = _simplify(plain(use_settled(guarded, unguarded=False), capped=frozenset()))
    deciding = next((leaf for leaf in guarded.leaves() if leaf.settled is not None and leaf.settled == whole), None)
    if deciding is not None:
        raise undecidable(*collected.settled[deciding.text])


def _find_guards(guarded: GuardedFormula, collected: _Collected) -> tuple[GuardedFormula, Counts]:
    """The formula without what declared bounds settle, and the counts that guard the rest. Where a settled comparison
    would need a guard that it needs not as it stands, it stays. Raises KH206."""
    functionals = dict(enumerate(collected.functionals))
    shorter = use_settled(guarded, unguarded=False)
    try:
        return shorter, find_guards(shorter, functionals, where=collected.where)
    except KeyholeError:
        kept = use_settled(guarded, unguarded=True)
        return kept, find_guards(kept, functionals, where=collected.where)


def _read_predicate(formula: Having, collected: _Collected) -> _ReadFormula:
    """A formula that is shown: its guard belongs into itself, and its opposite may be asked instead."""
    try:
        return _read(formula, collected)
    except KeyholeError as error:
        before, added, guard = (error.hint or "").partition("Add: AND ")
        if error.code != "KH206" or not added:
            raise
        hint = f"{before}Add to this predicate: AND {guard}"
        if _stands_alone(_negate(formula), collected):
            hint = f"{hint}  Or ask for its opposite, and leave this to ELSE{_spell_as_else(formula)}."
        raise KeyholeError(error.code, error.message, detail=error.detail, hint=hint, position=error.position) from None


def _spell_as_else(formula: Having) -> str:
    """A single comparison as it is typed below its opposite: of a band of width_bucket, where no guard can stand."""
    if not isinstance(formula, Comparison):
        return ""
    left, operator, right = formula.text.rpartition(f" {formula.operator} ")
    return f": CASE WHEN {left} {OPPOSITE[formula.operator]} {right} THEN 0 ELSE 1 END" if operator else ""


def _negate(formula: Having) -> Having:
    """The opposite, NULL where the formula is."""
    return formula.fold(
        lambda leaf: replace(leaf, operator=OPPOSITE[leaf.operator]),
        outside=Outside,
        every=lambda children: Some(tuple(children)),
        some=lambda children: Every(tuple(children)),
    )


def _stands_alone(formula: Having, collected: _Collected) -> bool:
    """Whether the formula needs no further guard."""
    known = (collected.table, collected.where, collected.accuracy, collected.tolerances)
    try:
        _read(formula, _Collected(*known))
    except KeyholeError:
        return False
    return True


def warn_of_both_sides(functionals: Sequence[Functional]) -> Iterator[str]:
    """What a mean costs that is held against a number and against its negative: noise for each, as sums need once.

    Where its thresholds are read off common sums this is not so.
    """
    means = [one for one in functionals if one.origin > 0 and not one.name.endswith(")")]
    for mean in means:
        text = aggregate_text(mean)
        if any(one.origin == -mean.origin and aggregate_text(one) == text for one in functionals):
            yield (
                f"{text} against {mean.origin:f} and against -{mean.origin:f} is two sums, each with noise of its own: "
                f"{_say_sums(mean, text)}, and costs about half"
            )


def _say_sums(mean: Functional, text: str) -> str:
    """Both sides of a mean as sums, which share their noise, as they would be typed."""
    if not text.startswith("avg("):
        return "a sum in the place of the mean is one"
    added, at = f"sum{text.removeprefix('avg')}", f"{(mean.origin * mean.rows).normalize():f}"
    return f"{added} > {at} OR {added} < -{at}, which is the same for a group of {mean.rows:,} rows, is one"


def _of_predicates(
    read: Sequence[_ReadFormula],
    names: Sequence[str],
    functionals: Mapping[int, Functional],
    accuracy: Accuracy,
    *,
    into: str,
) -> Iterator[str]:
    """Warn of predicates that are true, or may be shown as true, of groups without rows.

    Parameters:
        into: how a guard is added to HAVING. It fits whatever a predicate is written as, a column of bands too.
    """
    true = []
    for name, one in zip(names, read, strict=True):
        if not any(True for _ in cuts(one.formula)):
            continue
        if holds_at_zero(one.formula, functionals):
            true.append(name)
        elif holds_at_zero(relax_formula(one.formula), functionals):
            guard = _tell_guard(one.guarded, accuracy, into=into)
            yield f"{name}: {NEAR_EMPTY} and may be shown as true{guard}"
    if true:
        yield f"{', '.join(true)}: groups without rows count as 0, and are true"


def _tell_guard(formula: GuardedFormula, accuracy: Accuracy, *, into: str) -> str:
    """Return what would keep groups without values out, for the first comparison that is NULL in them."""
    for guarded in formula.leaves():
        if guarded.values and not guarded.outside:
            setting, _, guard = guard_hint(guarded, guarded.values[0].values).rpartition("Add: AND ")
            remedied = guarded.remedy or Remedy()
            larger = remedied.for_mean and remedied.values >= _MUCH_LARGER * accuracy.min_rows
            less = ", and costs less, as it asks of larger groups alone" if larger else ""
            return f"; {setting}{into.format(guard)} keeps them out{less}"
    return ""


def _too_long() -> KeyholeError:
    return KeyholeError(
        "KH211",
        f"the formula has more than {MOST_LITERALS} literals",
        hint="Split the question; UNION and INTERSECT of questions work as in SQL.",
    )


def _renumber(formula: Formula, places: Mapping[int, int]) -> Formula:
    return formula.mapped(
        lambda literal: Cut(places[literal.functional], literal.cut, literal.above, literal.tolerance)
    )


def _read_guarded(formula: Having, collected: _Collected) -> GuardedFormula:
    match formula:
        case Comparison():
            return _literals(formula, collected)
        case Spread():
            raise KeyholeError("KH900", f"{formula.text} has no centres", position=formula.position)
        case Every(children):
            return GuardedAll(tuple(_read_guarded(child, collected) for child in children))
        case Some(children):
            return GuardedAny(tuple(_read_guarded(child, collected) for child in children))
        case Outside(inner):
            before = dict(collected.comparisons)
            made = complement(_read_guarded(inner, collected))
            collected.comparisons = before  # the literals of a complement speak for themselves
            return made


def _literals(comparison: Comparison, collected: _Collected) -> Guarded:
    source = ComparisonPlace.of(comparison)
    made, size = functional(
        comparison, table=collected.table, min_rows=collected.rows_of(comparison), where=collected.where
    )
    at = comparison.at / size
    if comparison.own is not None:
        if not comparison.own.numbers:
            return Guarded(FALSE, (), comparison.text, comparison.position)
        taken, at = offsets(
            comparison.own, comparison.operator, size=size, left=comparison.left, position=comparison.position
        )
        made, comparison = replace(made, offsets=taken), _with_thresholds(comparison, comparison.own)
    text = comparison.text
    values = _absences(comparison, made, at, collected)
    constant = _constant_count(made, literals(0, comparison.operator, at, tolerance=0))
    if constant is not None:
        collected.warnings[f"{text} is {'true' if constant == TRUE else 'false'} for every group"] = None
        remedied = _remedy(comparison, collected)
        return Guarded(constant, values, text, comparison.position, remedy=remedied, source=source)
    terms = sorted((t.coefficient, t.column or "", canonical(t.condition), t.power) for t in made.terms)
    taken_off = made.offsets and (made.offsets.key, made.offsets.steps)
    meaning = (made.measure, made.unit_size * made.rows, made.origin, taken_off, made.off_each_unit, *terms)
    settled = _settle(comparison, made, at, collected)
    try:
        tolerance = _tolerance(comparison, made, size, collected)
    except KeyholeError:
        if settled is None:
            raise
        return Guarded(settled, values, text, comparison.position, settled=settled, source=source)
    index = collected.place(made, meaning=meaning)
    formula = literals(index, comparison.operator, at, tolerance=tolerance)
    largest = made.offsets.largest if made.offsets else 0
    if any(abs(cut.cut) + largest + cut.tolerance >= LIMIT for cut in cuts(formula)):
        raise KeyholeError("KH208", f"the threshold of {text} is out of range", position=comparison.position)
    if isinstance(formula, AllOf | AnyOf) and not formula.children:
        step = f"whole steps of {made.unit_size}"
        collected.warnings[f"{text}: {comparison.left} comes in {step} and never equals the threshold"] = None
    else:
        collected.comparisons.setdefault(text, (comparison, index, size, formula))
    shown = comparison.part_of or text
    # the tolerance grows with the rows that it is meant for
    wanted = Fraction(WORTH * made.sensitivity * made.rows, tolerance) if comparison.per_row and tolerance else None
    remedied = _remedy(comparison, collected, mean_rows=wanted or Fraction(0))
    return Guarded(formula, values, shown, comparison.position, remedy=remedied, settled=settled, source=source)


def _settle(comparison: Comparison, made: Functional, at: Fraction, collected: _Collected) -> Formula | None:
    """Settle a comparison by declared bounds, and warn of it: it may be part of a longer formula."""
    table, where = collected.table, collected.where
    ranges = {name: grid(table.column(name), table, position=comparison.position)[1:] for name in made.summed}
    typed = literals(0, comparison.operator, at, tolerance=0)
    if comparison.off_each_unit:
        return None
    if comparison.allowed is not None or not any(True for _ in cuts(typed)):
        return None  # the centres of a variance are settled where they are chosen, and hold up to their tolerance only
    settled = settle(comparison, made, typed, ranges=ranges, table=table, where=where)
    if settled is not None:
        collected.settled[comparison.part_of or comparison.text] = (comparison, settled)
        collected.warn(warn_of_settled(comparison, settled))
    return settled


def _remedy(comparison: Comparison, collected: _Collected, *, mean_rows: Fraction = Fraction(0)) -> Remedy:
    return remedy(
        comparison,
        table=collected.table,
        accuracy=collected.accuracy,
        tolerances=collected.tolerances,
        mean_rows=mean_rows,
    )


def _with_thresholds(comparison: Comparison, own: KeyNumbers) -> Comparison:
    """The comparison with thresholds of each group's own: a percentage is one of the least in absolute value."""
    least, most = min(own.known), max(own.known)
    shown = f"{decimal(least)} to {decimal(most)}" if least < most else f"{decimal(least)}"
    return replace(
        comparison,
        text=f"{comparison.text} ({shown})",
        at=least,
        threshold=min(map(abs, own.known)),
    )


def _absences(comparison: Comparison, made: Functional, at: Fraction, collected: _Collected) -> tuple[Absence, ...]:
    """What the sum can be in groups where the comparison is NULL."""
    table, where = collected.table, collected.where
    ranges = {name: grid(table.column(name), table, position=comparison.position)[1:] for name in made.summed}
    found: list[Absence] = []
    for values in comparison.values:
        low, high = row_range_without(
            made.terms, column=values.column, condition=values.condition, ranges=ranges, table=table, among=where
        )
        if values.least > 1:  # with fewer values than needed there may still be a row that counts
            least, most = row_range(made.terms, ranges=ranges, table=table, among=where)
            low, high = min(low, least), max(high, most)
        if values.column is not None:  # a unit may have rows, and none of them a value
            low, high = min(low, -made.off_each_unit), max(high, -made.off_each_unit)
        always = values.column is not None and is_never_null(table.column(values.column), table)
        found.append(Absence(values, (low, high), in_all_rows=always))
    if len(found) != 2 or made.off_each_unit:
        return tuple(found)
    typed = literals(0, comparison.operator, at, tolerance=0)
    return tuple(
        replace(absence, fails_beside=(other.values,))
        if settle_beside(made, typed, other.values, absence.values, ranges=ranges, table=table, where=where) == FALSE
        else absence
        for absence, other in (found, reversed(found))
    )


def _constant_count(made: Functional, formula: Formula) -> Formula | None:
    """TRUE or FALSE for a comparison of a count that every count settles, else None."""
    largest = made.offsets.largest if made.offsets else 0
    if made.measure is Measure.TOTAL or not isinstance(formula, Cut) or formula.cut + largest >= 0:
        return None
    return TRUE if formula.above else FALSE


def _tolerance(comparison: Comparison, made: Functional, size: Fraction, collected: _Collected) -> int:
    """The tolerance in integer steps. Raises KH304."""
    if comparison.allowed is not None:
        return floor(comparison.allowed / size)
    found = collected.tolerances
    if comparison.slack is Slack.RECORD:
        amount = replace(found, default=None).amount(comparison.names)
        parts = amount is None or amount.percent or amount.bounds
        return 0 if amount is None or parts else floor(Fraction(amount.number) / size)
    amount = found.amount(comparison.names)
    if amount is None:
        raise KeyholeError(
            "KH304",
            f"keyhole.tolerance says nothing about {comparison.left}",
            hint=f"SET keyhole.tolerance = '10%, {collected.accuracy.tolerance}';",
            position=comparison.position,
        )
    exact = _allowed_amount(comparison, amount, made, size, collected)
    if amount.percent and made.offsets is not None:
        least = f"{amount.number}% of {decimal(comparison.threshold)}, the least of the groups' thresholds"
        collected.warnings[f"{comparison.text}: the tolerance is {least}, in every group"] = None
    if 0 < exact < 1:
        what = "one row" if made.measure is not Measure.TOTAL else f"one step of {made.unit_size}"
        collected.warnings[f"{comparison.text}: the tolerance is below {what} and counts as zero"] = None
    return floor(exact)


def _allowed_amount(
    comparison: Comparison, amount: Amount, made: Functional, size: Fraction, collected: _Collected
) -> Fraction:
    if comparison.slack is Slack.ROWS and not amount.percent and not amount.bounds:
        return Fraction(amount.number) / size
    bounds = within_bounds(comparison, min_rows=collected.accuracy.min_rows)
    step = Step(unit_size=size / (comparison.per_row or 1), rows=made.rows, bounds=bounds)
    hint = _scale_hint(comparison, made, size, bounds, collected)
    try:
        return allowed_steps(amount, threshold=comparison.threshold, step=step, hint=hint)
    except KeyholeError as error:
        message = f"{comparison.text}: {error.message}"
        raise KeyholeError(
            error.code, message, detail=error.detail, hint=error.hint, position=comparison.position
        ) from None


def _scale_hint(
    comparison: Comparison, made: Functional, size: Fraction, bounds: Fraction, collected: _Collected
) -> str:
    """What to set where the threshold is 0: of a difference, a tenth of what the bounds allow, of groups so large that
    this is worth a few units' rows; of what never is below 0, no slack to speak of, since groups without rows are 0."""
    setting, named = collected.accuracy.tolerance, comparison.left

    def settle(amount: Decimal | str) -> str:
        return f"SET keyhole.tolerance = '{quote_literal(with_amount(setting, named, amount))}';"

    down, up = (max((reach(part)[side] for part in comparison.parts), default=Fraction(0)) for side in (0, 1))
    if not (down and up and bounds):
        return (
            f"Set an absolute tolerance for it: {settle(Decimal('0.5'))}  Of what is never below 0 a wider one would "
            "let groups without rows pass; a larger threshold costs less."
        )
    rows = 1 if comparison.per_row is None else made.rows
    wanted = WORTH * made.sensitivity * size / (comparison.per_row or 1)
    larger = ceil(wanted / (bounds * rows / 10) * collected.accuracy.min_rows)
    first = ""
    if larger > collected.accuracy.min_rows:
        first = f"SET keyhole.min_rows = {next_round(larger)}; "
    return f"Say how large its sides are by a part of their bounds: {first}{settle(f'10{OF_BOUNDS}')}"


def _simplify(formula: Formula) -> Formula:
    """The formula flattened, without constants and repetitions."""

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
    made = collected.functionals[index]
    step = size / (comparison.per_row or comparison.shown_by) / made.rows
    below = max((cut.tolerance for cut in cuts(formula) if cut.above), default=0)
    beyond = max((cut.tolerance for cut in cuts(formula) if not cut.above), default=0)
    threshold = comparison.origin + comparison.at / size * step
    return Atom(
        label=label(number),
        text=comparison.text,
        functional=index,
        lower=decimal(threshold - below * step),
        upper=decimal(threshold + beyond * step),
        literals=tuple((cut.cut, cut.above) for cut in cuts(formula)),
        counted=_COUNTED[comparison.slack],
        guard=collected.guard_of(comparison),
    )


def _warn(comparison: Comparison, formula: Formula, collected: _Collected) -> None:
    text = comparison.text
    collected.warnings.update(dict.fromkeys(comparison.warnings))
    if comparison.operator == "<>" and any(cut.tolerance >= 1 for cut in cuts(formula)):
        collected.warnings[f"{text} holds for every group once its tolerance is allowed: it promises nothing"] = None
    for cut in cuts(formula):
        if cut.tolerance == 0 and not comparison.warnings:
            collected.warnings[f"{text} has no tolerance, which is dear"] = None
