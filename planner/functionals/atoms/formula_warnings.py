"""Warnings about formulas: groups without rows qualify, a mean has two bounds, a tolerance promises nothing."""

from collections.abc import Iterator, Mapping, Sequence

from mechanisms.formula import Cut, Formula, list_literals
from planner.aggregates.comparison import Comparison
from planner.functionals.atoms.collected import FormulaCollector, ReadFormula
from planner.functionals.guard_remedy import Remedy
from planner.functionals.guards import GuardedFormula, holds_at_zero, write_guard_hint
from planner.question.question import NEAR_EMPTY, Accuracy, Functional, write_aggregate

_MUCH_LARGER = 4
"""How many times `min_rows` a count must ask for to make a mean cheaper surely: the mean's own price falls by that, and
the count costs about as much as the mean then does."""


def warn_of_mean_between_bounds(functionals: Sequence[Functional]) -> Iterator[str]:
    """Yield a warning for a mean that is compared with a number and with its negative, which takes noise twice.

    A sum would take noise once. Thresholds that are read off common sums are an exception.
    """
    means = [one for one in functionals if one.origin > 0 and not one.name.endswith(")")]
    for mean in means:
        text = write_aggregate(mean)
        if any(one.origin == -mean.origin and write_aggregate(one) == text for one in functionals):
            yield (
                f"{text} against {mean.origin:f} and against -{mean.origin:f} is two sums, each with noise of its own: "
                f"{_write_sums(mean, text)}, and costs about half"
            )


def _write_sums(mean: Functional, text: str) -> str:
    """Return both comparisons of a mean as comparisons of a sum, which share their noise."""
    if not text.startswith("avg("):
        return "a sum in the place of the mean is one"
    added, at = f"sum{text.removeprefix('avg')}", f"{(mean.origin * mean.rows).normalize():f}"
    return f"{added} > {at} OR {added} < -{at}, which is the same for a group of {mean.rows:,} rows, is one"


def warn_of_predicates(
    read: Sequence[ReadFormula],
    names: Sequence[str],
    functionals: Mapping[int, Functional],
    accuracy: Accuracy,
    *,
    into: str,
) -> Iterator[str]:
    """Yield warnings for predicates that are true, or may be shown as true, of groups without rows.

    Parameters:
        into: how a guard is added to HAVING. It fits any form of a predicate, also a column of bands.
    """
    true = []
    for name, one in zip(names, read, strict=True):
        if not any(True for _ in list_literals(one.formula)):
            continue
        if holds_at_zero(one.formula, functionals):
            true.append(name)
        elif holds_at_zero(relax_near_empty(one.formula, functionals), functionals):
            guard = suggest_guard(one.guarded, accuracy, into=into)
            yield f"{name}: {NEAR_EMPTY} and may be shown as true{guard}"
    if true:
        yield f"{', '.join(true)}: groups without rows count as 0, and are true"


def relax_near_empty(formula: Formula, functionals: Mapping[int, Functional]) -> Formula:
    """Return the formula with its literals relaxed by their tolerances, where groups without rows may lie within these.

    A literal that a group fails by a share of a total stays: a group without rows is far below it.
    """

    def relax(cut: Cut) -> Cut:
        totals = [one.factor for one in functionals[cut.functional].cell_reads if one.cells.summed_keys]
        fails = bool(totals) and all((times < 0) == cut.above for times in totals)
        return cut if fails else cut.relax()

    return formula.map_literals(relax)


def suggest_guard(formula: GuardedFormula, accuracy: Accuracy, *, into: str) -> str:
    """Return a hint with a guard for the first comparison that is NULL in groups without values."""
    for guarded in formula.walk_leaves():
        if guarded.values and not guarded.is_complement:
            setting, _, guard = write_guard_hint(guarded, guarded.values[0].values).rpartition("Add: AND ")
            remedied = guarded.remedy or Remedy()
            larger = remedied.is_for_mean and remedied.values >= _MUCH_LARGER * accuracy.min_rows
            less = ", and costs less, since it asks only about larger groups" if larger else ""
            return f"; {setting}{into.format(guard)} keeps them out{less}"
    return ""


def warn_of_comparison(comparison: Comparison, formula: Formula, collected: FormulaCollector) -> None:
    """Add the warnings of one comparison, among them those about literals without a tolerance."""
    text = comparison.text
    collected.warnings.update(dict.fromkeys(comparison.warnings))
    if comparison.operator == "<>" and any(cut.tolerance >= 1 for cut in list_literals(formula)):
        collected.warnings[f"{text} holds for every group within its tolerance, so it promises nothing"] = None
    for cut in list_literals(formula):
        if cut.tolerance == 0 and not comparison.warnings:
            collected.warnings[f"{text} has no tolerance, which is expensive"] = None
