"""The scan where a privacy unit has several rows: bounded totals of each unit in each key, summed per key.

Guarantee: one unit is in at most G keys, and changes what is summed there by no more than its clipped total or, under
a row cap, by its first rows in the order of md5. Which keys and rows count is decided among all rows that have the
values of fixed keys, whichever of them WHERE keeps. At a look they are the first that came.

References: docs/proofs/joint_loss.md; docs/proofs/units_over_a_horizon.md; docs/decisions/0002-rewriting.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner.catalog.catalog import NamedStep, RowCap
from planner.lower.bounding.choose_groups import (
    can_list,
    fence_groups,
    keep_listed_groups,
    list_crowded_units,
    rank_groups,
)
from planner.lower.contribution_bounds import CAME, Bounding, not_null
from planner.lower.domain import list_domain, restriction
from planner.lower.functional import FunctionalSql
from planner.lower.kept.named_steps import merge_steps
from planner.lower.key_tests import fixed_tests, group_tests, pair_keys, row_tests, where_tests
from planner.lower.layout import group_by, indent_blocks, select, where
from planner.lower.look import arrival_tests
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import read_whole
from planner.question.as_of import AsOf
from planner.question.condition import ALWAYS
from planner.question.question import Measure, Question


@dataclass(frozen=True, slots=True)
class BoundedScan:
    """The shape for privacy units of several rows: totals per unit and key, at most G keys a unit, clipped, summed."""

    question: Question
    row: RowSql
    bounding: Bounding
    functionals: tuple[FunctionalSql, ...]
    per_unit: bool = False  # whether each unit's totals are what is read, different values as well
    crowded: tuple[NamedStep, ...] = ()  # the list of units in too many groups, behind its steps; none: all are ranked
    only_heavy: bool = False  # whether rows have the units alone whose totals may have to be clipped, and others NULL

    @property
    def can_list(self) -> bool:
        """Return True if a list of crowded units can say which groups count."""
        return self.question.table.row_cap is None and can_list(self.bounding)

    def list_crowded(self, plain: RowSql, *, busy: Sequence[NamedStep], asked: bool) -> "BoundedScan":
        """Return the scan that chooses groups by a list of crowded units.

        Parameters:
            plain: the rows of these units and of others, without what this question alone computes of them.
            busy: steps that end in one of all units with more rows than groups that count; none to group all rows.
            asked: the question's own conditions decide which rows these are.
        """
        keys, domain = self.question.keys, self.bounding.domain
        reached = tuple(
            values if plain.table.determines(column) else domain(i)
            for i, (column, values) in enumerate(pair_keys(self.question))
        )
        question = replace(self.question, table=plain.table, keys=replace(keys, values=reached))
        every = BoundedScan(question, plain, Bounding(plain, keys), ())
        tests = [test for column, values in pair_keys(question) for test in row_tests(plain, column, values)]
        listed = list_crowded_units(
            every.bounding,
            every._test_present(tests),
            public=group_tests(plain, question),
            busy=busy[-1] if busy else None,
            asked=asked,
        )
        return replace(self, crowded=merge_steps(plain.table.steps, busy, [listed]))

    @property
    def named_steps(self) -> tuple[NamedStep, ...]:
        """The steps that have to be defined in front of the statement."""
        return merge_steps(self.row.table.steps, self.crowded)

    @property
    def relation(self) -> str:
        """The step that holds the units' totals in the end."""
        return "chosen" if self.bounding.chooses else "totals"

    @property
    def where_comes_first(self) -> bool:
        """Return True if WHERE is asked of rows as they are read: nothing of a unit is counted or ranked behind it."""
        return not self._ranks_groups and self.question.table.row_cap is None

    @property
    def _ranks_groups(self) -> bool:
        return self.bounding.chooses and not self.crowded

    @property
    def counted(self) -> list[FunctionalSql]:
        """The functionals over the rows that are read; each asks WHERE of a row unless it was asked before."""
        asked = ALWAYS if self.where_comes_first else self.question.where
        return [f if f.where == asked else replace(f, where=asked) for f in self.functionals]

    def steps(self) -> list[str]:
        """Return the SQL of the steps that end in one row per unit and key."""
        cap = self.question.table.row_cap
        rows = self.eligible_tests()
        if self.where_comes_first:
            rows += where_tests(self.row, self.question.where)
        steps = self._totals(rows) if cap is None else [*self._cap_rows(rows, cap), *self._totals_of_capped(cap)]
        if not self.bounding.chooses:
            return steps
        chosen = keep_listed_groups(self.bounding, self.crowded[-1]) if self.crowded else rank_groups(self.bounding)
        return [*steps, *chosen]

    def remaining_tests(self) -> list[str]:
        """Return the tests that are still to be asked of one row per unit and key."""
        tests = group_tests(self.row, self.question)
        return [*tests, *self._restrict_keys()] if self._ranks_groups else tests

    def lines(self) -> list[str]:
        """Return the SQL of the whole statement, by lines."""
        keys = [f"k{i}" for i in range(len(self.question.keys.columns))]
        sums = [
            f.final(f"max(d{i})" if f.functional.measure is Measure.VALUES else self._sum_units(f, f"t{i}"))
            for i, f in enumerate(self.counted)
        ]
        summed = "each unit's total clipped" if self.question.table.row_cap is None else "the units' totals"
        differing = self._differing_steps()
        return [
            "WITH",
            *self.steps(),
            *(line for _, lines in differing for line in (",", *lines)),
            f"-- {summed}, summed per key",
            *select(keys + [f"{total} AS f{i}" for i, total in enumerate(sums)]),
            f"FROM {self.relation}",
            *(f"LEFT JOIN {name} USING ({', '.join(keys)})" if keys else f"CROSS JOIN {name}" for name, _ in differing),
            *where(
                [*self.remaining_tests(), *(read_whole(name) for name, _ in differing)], comment="of the public keys"
            ),
            *group_by(len(keys)),
        ]

    def _sum_units(self, functional: FunctionalSql, total: str) -> str:
        if not self.only_heavy:
            return functional.sum_units(total)
        (unit, _), *_ = self.bounding.units
        return functional.sum_heavy_units(total, heavy=f"{unit} IS NOT NULL")

    def _differing_steps(self) -> list[tuple[str, list[str]]]:
        """Return the SQL of the steps that count different values per key, by relation."""
        told = [(i, f) for i, f in enumerate(self.counted) if f.functional.measure is Measure.VALUES]
        cap = self.question.table.row_cap
        if cap is None:
            return [(f"differing{i}", self._drawn_values(i, f)) for i, f in told]
        counts = [f"count(DISTINCT v{i}) AS d{i}" for i, _ in told]
        return [("differing", self._counted_values("differing", "kept", counts, cap.rows))] if told else []

    def _drawn_values(self, index: int, functional: FunctionalSql) -> list[str]:
        """Return the SQL of each unit's counted values in each key, and their number in each key."""
        columns = self.group_columns()
        aliases = [alias for alias, _ in self.bounding.groups]
        (name,) = functional.functional.columns
        order = self.bounding.order_of_values("v", column=self.question.table.get_column(name))
        rows = [*self.eligible_tests(), *where_tests(self.row, self.question.where)]
        found = select([*columns, f"{functional.added_sql()} AS v", *self.bounding.first_came(self.bounding.came())])
        place = f"row_number() OVER (PARTITION BY {', '.join(aliases)} ORDER BY {order}) AS place"
        return [
            f"-- the different values of each privacy unit in each key, {self.bounding.order_in_words}; "
            f"the first {functional.most_values} count",
            f"values{index} AS (",
            *indent_blocks(
                [f"SELECT {', '.join(aliases)}, v, {place}", "FROM ("],
                indent_blocks(
                    found,
                    [f"FROM {self.question.table.relation}"],
                    where(rows),
                    group_by(len(columns) + 1),
                ),
                [") AS found", "WHERE v IS NOT NULL"],
            ),
            "),",
            *self._counted_values(
                f"differing{index}", f"values{index}", [f"count(DISTINCT v) AS d{index}"], functional.most_values
            ),
        ]

    def _counted_values(self, name: str, source: str, counts: list[str], most: int) -> list[str]:
        keys = [f"k{i}" for i in range(len(self.question.keys.columns))]
        limits = [f"{source}.place <= {most}"]
        joined = f"FROM {source}"
        if self.bounding.chooses:
            aliases = ", ".join(alias for alias, _ in self.bounding.groups)
            joined = f"FROM {source} JOIN chosen USING ({aliases})"
        return [
            "-- how many different values each key has",
            f"{name} AS (",
            *indent_blocks(select(keys + counts), [joined], where(limits), group_by(len(keys))),
            ")",
        ]

    def group_columns(self) -> list[str]:
        """Return unit and keys of a row, each under its alias."""
        return [f"{self.row.column(column.name)} AS {alias}" for alias, column in self.bounding.groups]

    def eligible_tests(self) -> list[str]:
        """Return the tests for rows with a privacy unit, a key in the public domain, and the values of fixed keys."""
        tests: list[str] = []
        for i, (column, values) in enumerate(pair_keys(self.question)):
            if self._ranks_groups and not self.question.table.determines(column):
                domain = restriction(self.row, column, self.bounding.domain(i))
                tests.append(domain or not_null(self.row, column))
            else:
                tests += row_tests(self.row, column, values)
        return self._test_present(tests)

    def _test_present(self, of_keys: list[str]) -> list[str]:
        """Return the tests of a row: these of its keys, and those that do not read keys."""
        names = self.question.keys.names
        units = [] if self.only_heavy else self.bounding.units
        present = [not_null(self.row, column) for _, column in units if column.name not in names]
        present += [*of_keys, *fixed_tests(self.row)]
        return present if self.question.as_of is None else self._add_arrival(present, self.question.as_of)

    def _fence_groups(self) -> list[str]:
        """Keep tests of keys behind the groups; ranks do so by themselves."""
        return [] if self._ranks_groups else fence_groups(self.row, group_tests(self.row, self.question))

    def _add_arrival(self, present: list[str], as_of: AsOf) -> list[str]:
        """Return the tests of a look on a row, before anything is chosen."""
        return list(dict.fromkeys([*present, *arrival_tests(self.row, as_of, self.question.keys)]))

    def _first_came(self, came: list[str]) -> list[str]:
        """Return the time when a unit came into a key, if that is asked."""
        return self.bounding.first_came(came) if self._ranks_groups else []

    @property
    def _summed(self) -> list[tuple[int, FunctionalSql]]:
        """Those that are totals of units, each with its place."""
        apart = () if self.per_unit else (Measure.VALUES,)
        return [(i, f) for i, f in enumerate(self.counted) if f.functional.measure not in apart]

    def _totals(self, rows: list[str]) -> list[str]:
        columns = self.group_columns()
        sums = [f"{f.sum_rows(added=f.added_sql(), present=f.present())} AS t{i}" for i, f in self._summed]
        return [
            "-- integer totals of each privacy unit in each key; rows without a unit or a public key are left out",
            "totals AS (",
            *indent_blocks(
                select(columns + sums + self._first_came(self.bounding.came())),
                [f"FROM {self.question.table.relation}"],
                where(rows),
                group_by(len(columns)),
                self._fence_groups(),
            ),
            f"){',' if self.bounding.chooses else ''}",
        ]

    def _cap_rows(self, rows: list[str], cap: RowCap) -> list[str]:
        columns = self.group_columns()
        # stored ones first: behind what is computed from them Sail cannot plan them
        by = sorted((column for _, column in self.bounding.groups), key=lambda column: column.derivation is not None)
        partition = ", ".join(self.row.column(column.name) for column in by)
        unique = self.question.table.get_column(cap.unique)
        order = self.bounding.order_of_rows(unique=unique)
        place = f"row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
        added = (f"{f.added_sql()} AS v{i}" for i, f in enumerate(self.counted))
        return [
            f"-- the rows of each privacy unit in each key, {self.bounding.order_in_words}; the first {cap.rows} count",
            "kept AS (",
            *indent_blocks(
                select([*columns, *added, place, *(f"{came} AS {CAME}" for came in self.bounding.came())]),
                [f"FROM {self.question.table.relation}"],
                where([*rows, not_null(self.row, unique)]),
            ),
            "),",
        ]

    def _totals_of_capped(self, cap: RowCap) -> list[str]:
        aliases = [alias for alias, _ in self.bounding.groups]
        sums = [f"{f.sum_rows(added=f'v{i}', present=f'v{i}')} AS t{i}" for i, f in self._summed]
        sums += self._first_came([CAME] if self.bounding.as_of is not None else [])
        return [
            "-- integer totals of each privacy unit in each key, over the rows that count",
            "totals AS (",
            *indent_blocks(
                select(aliases + sums),
                ["FROM kept"],
                where([f"place <= {cap.rows}"]),
                group_by(len(aliases)),
                self._fence_groups(),
            ),
            f"){',' if self.bounding.chooses else ''}",
        ]

    def _restrict_keys(self) -> list[str]:
        """Return the question's own restriction of keys, after the choice."""
        return [
            condition
            for i, (column, values) in enumerate(pair_keys(self.question))
            if len(values) < len(self.bounding.domain(i))
            and (condition := list_domain(self.row, f"k{i}", column, values)) is not None
        ]
