"""The functionals, comparisons and warnings that are collected while the formulas of one question are read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from mechanisms.formula import Formula
from planner.aggregates.comparison import Comparison, Having, SpreadComparison
from planner.catalog.catalog import Table
from planner.catalog.tolerance import Tolerances
from planner.functionals.group_sizes import GroupSize, find_group_sizes, identify_mean
from planner.functionals.guards import GuardedFormula
from planner.question.condition import Condition
from planner.question.question import Accuracy, Functional

ComparedLiterals: TypeAlias = tuple[Comparison, int, Fraction, Formula]
"""A comparison, the place of its functional, the size of one step, and its literals."""


@dataclass(slots=True)
class FormulaCollector:
    """The builder of a question's atoms: the functionals and comparisons read so far, in order."""

    table: Table
    where: Condition
    accuracy: Accuracy
    tolerances: Tolerances
    sizes: Mapping[object, GroupSize] = field(default_factory=dict)
    functionals: list[Functional] = field(default_factory=list)
    indices_by_meaning: dict[tuple[object, ...], int] = field(default_factory=dict)
    comparisons: dict[str, ComparedLiterals] = field(default_factory=dict)
    settled: dict[str, tuple[Comparison, Formula]] = field(default_factory=dict)
    warnings: dict[str, None] = field(default_factory=dict)

    def add_functional(self, made: Functional, *, meaning: tuple[object, ...]) -> int:
        """Return the index of the functional with this meaning. Add it to the functionals if the meaning is new."""
        place = self.indices_by_meaning.setdefault(meaning, len(self.functionals))
        if place == len(self.functionals):
            self.functionals.append(made)
        return place

    def warn(self, text: str) -> None:
        """Add a warning, unless it was added before."""
        self.warnings[text] = None

    def save_state(self) -> tuple[dict[str, ComparedLiterals], dict[str, tuple[Comparison, Formula]], dict[str, None]]:
        """Return the state before a formula is read, so that the formula can be read again.

        Functionals are not part of it, because unused ones are left out in the end.
        """
        return dict(self.comparisons), dict(self.settled), dict(self.warnings)

    def restore_state(
        self, mark: tuple[dict[str, ComparedLiterals], dict[str, tuple[Comparison, Formula]], dict[str, None]]
    ) -> None:
        """Forget everything that was added after the state was saved."""
        self.comparisons, self.settled, self.warnings = dict(mark[0]), dict(mark[1]), dict(mark[2])

    def set_group_sizes(self, formula: Having) -> None:
        """Set the group sizes for which means' tolerances are meant, unless the analyst set `keyhole.min_rows`."""
        if not self.accuracy.is_min_rows_set:
            self.sizes = find_group_sizes(
                formula,
                table=self.table,
                where=self.where,
                tolerances=self.tolerances,
                min_rows=self.accuracy.min_rows,
            )

    def find_group_rows(self, leaf: Comparison | SpreadComparison) -> int:
        """Return the group size for which the tolerance of a mean is meant."""
        size = self.sizes.get(identify_mean(leaf))
        return self.accuracy.min_rows if size is None else max(size.rows, self.accuracy.min_rows)

    def find_guard_text(self, leaf: Comparison) -> str:
        """Return the typed count that decides the group size of a mean, or "" if the setting decides it."""
        size = self.sizes.get(identify_mean(leaf))
        return size.guard if size is not None and size.rows > self.accuracy.min_rows else ""


@dataclass(frozen=True, slots=True)
class ReadFormula:
    """A formula over literals, and the guarded formula that it was made from."""

    formula: Formula
    guarded: GuardedFormula
