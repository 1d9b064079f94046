"""Warnings about formulas: groups without rows qualify, a mean has two bounds, a tolerance promises nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
    """Yield a warning for a mean that is compared with a number and with its negative, which needs two noises.

    A sum would need noise once. Thresholds that are read off common sums need it once, too.
    """
    means = [one for one in functionals if one.origin > 0 and not one.name.endswith(")")]
    for mean in means:
        text = write_aggregate(mean)
        if any(one.origin == -mean.origin and write_aggregate(one) == text for one in functionals):
            yield (
                f"{text} against {mean.origin:f} and against -{mean.origin:f} needs two sums with separate noise: "
                f"{_write_sums(mean, text)}, and costs about half"
            )


def _write_sums(mean: Functional, text: str) -> str:
    """Return both comparisons of a mean as comparisons of a sum, which share their noise."""
    if not text.startswith("avg("):
        return "a sum in the place of the mean needs one"
    added, at = f"sum{text.removeprefix('avg')}", f"{(mean.origin * mean.rows).normalize():f}"
    return f"{added} > {at} OR {added} < -{at}, which is the same for a group of {mean.rows:,} rows, needs one"


def warn_of_predicates(
    read: Sequence[ReadFormula],
    names: Sequence[str],
    functionals: Mapping[int, Functional],
    accuracy: Accuracy,
    *,
    into: str,
) -> Iterator[str]:
    """Yield warnings for predicates that are true, or may be shown as true, for groups without rows.

    Parameters:
        into: how a guard is added to HAVING. The advice fits any form of a predicate, also a band column.
    """
    true = []
    for name, one in zip(names, read, strict=True):
        if not any(True for _ in list_literals(one.formula)):
            continue
        if holds_at_zero(fail_shares(one.formula, functionals), functionals):
            true.append(name)
        elif holds_at_zero(relax_near_empty(one.formula, functionals), functionals):
            guard = suggest_guard(one.guarded, accuracy, into=into)
            yield f"{name}: {NEAR_EMPTY} and may be shown as true{guard}"
    if true:
        yield f"{', '.join(true)}: groups without rows count as 0, and are true"


def relax_near_empty(formula: Formula, functionals: Mapping[int, Functional]) -> Formula:
    """Return the formula relaxed by its tolerances, if groups without rows may lie within the tolerances.

    Literals that compare a share of a total fail, as in `fail_shares`.
    """
    return fail_shares(
        formula.map_literals(lambda cut: cut if _is_share(cut, functionals) else cut.relax()), functionals
    )


def fail_shares(formula: Formula, functionals: Mapping[int, Functional]) -> Formula:
    """Return the formula as it holds for groups without rows: literals that compare a share of a total are false.

    The total of the other groups is assumed to be above 0, so a group without rows has no share of it.
    """

    def fail(cut: Cut) -> Cut:
        if not _is_share(cut, functionals):
            return cut
        return replace(cut, cut=max(cut.cut, 0) if cut.above else min(cut.cut, -1))

    return formula.map_literals(fail)


def _is_share(cut: Cut, functionals: Mapping[int, Functional]) -> bool:
    totals = [one.factor for one in functionals[cut.functional].cell_reads if one.cells.summed_keys]
    return bool(totals) and all((times < 0) == cut.above for times in totals)


def suggest_guard(formula: GuardedFormula, accuracy: Accuracy, *, into: str) -> str:
    """Return a hint with a guard for the first comparison that is NULL in groups without values."""
    for guarded in formula.walk_leaves():
        if guarded.required_values and not guarded.is_complement:
            setting, _, guard = write_guard_hint(guarded, guarded.required_values[0].required_values).rpartition(
                "Add: AND "
            )
            remedied = guarded.remedy or Remedy()
            larger = remedied.is_for_mean and remedied.least_count >= _MUCH_LARGER * accuracy.min_rows
            less = ", and costs less, since it asks only about larger groups" if larger else ""
            return f"; {setting}{into.format(guard)} keeps them out{less}"
    return ""


def warn_of_comparison(comparison: Comparison, formula: Formula, collected: FormulaCollector) -> None:
    """Collect the warnings of one comparison, such as those about literals without a tolerance."""
    text = comparison.text
    collected.warnings.update(dict.fromkeys(comparison.warnings))
    if comparison.operator == "<>" and any(cut.tolerance >= 1 for cut in list_literals(formula)):
        collected.warnings[f"{text} holds for every group within its tolerance, so it promises nothing"] = None
    for cut in list_literals(formula):
        if cut.tolerance == 0 and not comparison.warnings and not comparison.reads_no_sum:
            collected.warnings[f"{text} has no tolerance, which is expensive"] = None
