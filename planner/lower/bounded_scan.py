"""The scan if a privacy unit has several rows: bounded totals of each unit in each key, summed per key.

Guarantee: one unit is in at most G keys. It changes the sum of a key by no more than its clipped total, or under a row
cap by its first rows in the order of md5. The keys and rows that count are chosen among all rows with the values of
fixed keys, whether or not WHERE keeps them. At a look they are the first that came.

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
from planner.lower.contribution_bounds import CAME, Bounding, write_not_null
from planner.lower.domain import write_domain_test, write_restriction
from planner.lower.functional import FunctionalSql
from planner.lower.kept.named_steps import merge_steps
from planner.lower.key_tests import pair_keys, write_fixed_tests, write_group_tests, write_row_tests, write_where_tests
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.look import write_arrival_tests
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import write_whole_read
from planner.question.as_of import AsOf
from planner.question.condition import ALWAYS
from planner.question.question import Measure, Question
from planner.question.unit_groups import MOST_SPLIT
from planner.values.sql_literals import write_integer


@dataclass(frozen=True, slots=True)
class BoundedScan:
    """The SQL statement of a question if a privacy unit may have several rows.

    It adds up each unit's rows in each key, keeps a bounded number of keys of each unit, clips the totals, and sums
    them per key.
    """

    question: Question
    row: RowSql
    bounding: Bounding
    functionals: tuple[FunctionalSql, ...]
    is_per_unit: bool = False  # True if the question reads each unit's totals, counts of different values among them
    crowded_steps: tuple[
        NamedStep, ...
    ] = ()  # steps that end in the list of units in too many groups; none: all are ranked
    only_heavy: bool = False  # True if rows have their unit only if its total may have to be clipped, else NULL

    @property
    def can_list(self) -> bool:
        """True if a list of the units in too many groups can decide which groups count, instead of a ranking."""
        return self.question.table.row_cap is None and can_list(self.bounding)

    def choose_by_list(self, plain: RowSql, *, busy: Sequence[NamedStep], asked: bool) -> "BoundedScan":
        """Return the scan that chooses groups by a list of crowded units: units in more groups than count.

        Parameters:
            plain: a table with the rows of these units, among others, without columns that are computed for this
                question alone.
            busy: steps, of which the last lists all units with more rows than groups that count. Without steps the rows
                of every unit are grouped to find the list.
            asked: True if the question's own conditions decide which rows are read.
        """
        keys, domain = self.question.keys, self.bounding.find_domain
        reached = tuple(
            values if plain.table.determines(column) else domain(i)
            for i, (column, values) in enumerate(pair_keys(self.question))
        )
        question = replace(self.question, table=plain.table, keys=replace(keys, values=reached))
        every = BoundedScan(question, plain, Bounding(plain, keys), ())
        tests = [test for column, values in pair_keys(question) for test in write_row_tests(plain, column, values)]
        listed = list_crowded_units(
            every.bounding,
            every._test_present(tests),
            public=write_group_tests(plain, question),
            busy=busy[-1] if busy else None,
            asked=asked,
        )
        return replace(self, crowded_steps=merge_steps(plain.table.steps, busy, [listed]))

    @property
    def named_steps(self) -> tuple[NamedStep, ...]:
        """The steps that must be defined before the statement."""
        return merge_steps(self.row.table.steps, self.crowded_steps)

    @property
    def relation(self) -> str:
        """The name of the step that finally holds the units' totals."""
        return "chosen" if self.bounding.chooses_groups else "totals"

    @property
    def asks_where_first(self) -> bool:
        """True if WHERE is tested on rows as they are read, since no later step counts all of a unit's rows."""
        return not self._ranks_groups and self.question.table.row_cap is None

    @property
    def _ranks_groups(self) -> bool:
        return self.bounding.chooses_groups and not self.crowded_steps

    @property
    def counted_functionals(self) -> list[FunctionalSql]:
        """The functionals over the rows that are read. Each of them tests WHERE if no earlier step did.

        If WHERE was not tested before, each of them tests it.
        """
        asked = ALWAYS if self.asks_where_first else self.question.where
        return [f if f.where == asked else replace(f, where=asked) for f in self.functionals]

    def write_steps(self) -> list[str]:
        """Return the SQL of the steps that end in one row per unit and key."""
        cap = self.question.table.row_cap
        rows = self.write_eligible_tests()
        if self.asks_where_first:
            rows += write_where_tests(self.row, self.question.where)
        steps = (
            self._write_totals(rows)
            if cap is None
            else [*self._write_capped_rows(rows, cap), *self._write_capped_totals(cap)]
        )
        if not self.bounding.chooses_groups:
            return steps
        chosen = (
            keep_listed_groups(self.bounding, self.crowded_steps[-1])
            if self.crowded_steps
            else rank_groups(self.bounding)
        )
        return [*steps, *chosen]

    def write_remaining_tests(self) -> list[str]:
        """Return the tests that a unit's rows in a key still have to pass."""
        tests = write_group_tests(self.row, self.question)
        return [*tests, *self._write_key_tests()] if self._ranks_groups else tests

    def write_lines(self) -> list[str]:
        """Return the SQL of the whole statement as lines."""
        keys = [f"k{i}" for i in range(len(self.question.keys.columns))]
        sums = [
            f.write_final(f"max(d{i})" if f.functional.measure is Measure.VALUES else self._sum_units(f, f"t{i}"))
            for i, f in enumerate(self.counted_functionals)
        ]
        summed = "each unit's total clipped" if self.question.table.row_cap is None else "the units' totals"
        differing = self._write_distinct_steps()
        divided = self._write_divided_units(keys)
        read = "divided" if divided else self.relation
        tests = [] if divided else self.write_remaining_tests()
        return [
            "WITH",
            *self.write_steps(),
            *(line for _, lines in differing for line in (",", *lines)),
            *divided,
            f"-- {summed}, summed per key",
            *write_select(keys + [f"{total} AS f{i}" for i, total in enumerate(sums)]),
            f"FROM {read}",
            *(f"LEFT JOIN {name} USING ({', '.join(keys)})" if keys else f"CROSS JOIN {name}" for name, _ in differing),
            *write_where(
                [*tests, *(write_whole_read(name) for name, _ in differing)],
                comment="of the public keys",
            ),
            *write_group_by(len(keys)),
        ]

    def _write_divided_units(self, keys: list[str]) -> list[str]:
        """Return the SQL of the step that divides units over their groups of the question, or nothing if none are."""
        counted = self.counted_functionals
        split = [i for i, f in enumerate(counted) if f.functional.measure is Measure.UNIT_PARTS]
        if not split:
            return []
        units = dict.fromkeys(alias for alias, _ in self.bounding.units)
        columns = [f"t{i}" for i, _ in self._summed]
        for i in split:
            functional = counted[i].functional
            alike = (
                f"k{place}" for place, one in enumerate(self.question.keys.names) if one not in functional.split_keys
            )
            groups = f"count(t{i}) OVER (PARTITION BY {', '.join(dict.fromkeys([*units, *alike]))})"
            whole = functional.sensitivity
            parts = " ".join(
                f"WHEN {number} THEN {write_integer(whole // number)}"
                for number in range(1, MOST_SPLIT + 1)
                if whole % number == 0
            )
            columns[columns.index(f"t{i}")] = f"CASE WHEN t{i} IS NOT NULL THEN CASE {groups} {parts} END END AS t{i}"
        return [
            ",",
            "-- each unit in parts alike, over its groups of which the total is asked",
            "divided AS (",
            *indent_blocks(
                write_select([*keys, *columns]),
                [f"FROM {self.relation}"],
                write_where(self.write_remaining_tests(), comment="of the public keys"),
            ),
            ")",
        ]

    def _sum_units(self, functional: FunctionalSql, total: str) -> str:
        if not self.only_heavy:
            return functional.sum_units(total)
        (unit, _), *_ = self.bounding.units
        return functional.sum_heavy_units(total, heavy=f"{unit} IS NOT NULL")

    def _write_distinct_steps(self) -> list[tuple[str, list[str]]]:
        """Return the SQL of the steps that count different values per key, each with the name of its relation."""
        told = [(i, f) for i, f in enumerate(self.counted_functionals) if f.functional.measure is Measure.VALUES]
        cap = self.question.table.row_cap
        if cap is None:
            return [(f"differing{i}", self._write_drawn_values(i, f)) for i, f in told]
        counts = [f"count(DISTINCT v{i}) AS d{i}" for i, _ in told]
        return [("differing", self._write_counted_values("differing", "kept", counts, cap.rows))] if told else []

    def _write_drawn_values(self, index: int, functional: FunctionalSql) -> list[str]:
        """Return the SQL of each unit's counted values in each key, and of their number in each key."""
        columns = self.write_group_columns()
        aliases = [alias for alias, _ in self.bounding.groups]
        (name,) = functional.functional.columns
        order = self.bounding.write_value_order("v", column=self.question.table.get_column(name))
        rows = [*self.write_eligible_tests(), *write_where_tests(self.row, self.question.where)]
        found = write_select(
            [
                *columns,
                f"{functional.write_added()} AS v",
                *self.bounding.list_first_arrivals(self.bounding.list_arrivals()),
            ]
        )
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
                    write_where(rows),
                    write_group_by(len(columns) + 1),
                ),
                [") AS found", "WHERE v IS NOT NULL"],
            ),
            "),",
            *self._write_counted_values(
                f"differing{index}", f"values{index}", [f"count(DISTINCT v) AS d{index}"], functional.most_values
            ),
        ]

    def _write_counted_values(self, name: str, source: str, counts: list[str], most: int) -> list[str]:
        keys = [f"k{i}" for i in range(len(self.question.keys.columns))]
        limits = [f"{source}.place <= {most}"]
        joined = f"FROM {source}"
        if self.bounding.chooses_groups:
            aliases = ", ".join(alias for alias, _ in self.bounding.groups)
            joined = f"FROM {source} JOIN chosen USING ({aliases})"
        return [
            "-- how many different values each key has",
            f"{name} AS (",
            *indent_blocks(write_select(keys + counts), [joined], write_where(limits), write_group_by(len(keys))),
            ")",
        ]

    def write_group_columns(self) -> list[str]:
        """Return the SQL of a row's unit and key columns, each under its alias."""
        return [f"{self.row.write_column(column.name)} AS {alias}" for alias, column in self.bounding.groups]

    def write_eligible_tests(self) -> list[str]:
        """Return the tests for rows with a privacy unit, a key in the public domain, and the values of fixed keys."""
        tests: list[str] = []
        for i, (column, values) in enumerate(pair_keys(self.question)):
            if self._ranks_groups and not self.question.table.determines(column):
                domain = write_restriction(self.row, column, self.bounding.find_domain(i))
                tests.append(domain or write_not_null(self.row, column))
            else:
                tests += write_row_tests(self.row, column, values)
        return self._test_present(tests)

    def _test_present(self, of_keys: list[str]) -> list[str]:
        """Return the tests of a row: the given tests of its keys, and those that do not read keys."""
        names = self.question.keys.names
        units = [] if self.only_heavy else self.bounding.units
        present = [write_not_null(self.row, column) for _, column in units if column.name not in names]
        present += [*of_keys, *write_fixed_tests(self.row)]
        return present if self.question.as_of is None else self._add_arrival(present, self.question.as_of)

    def _fence_groups(self) -> list[str]:
        """Return the lines that keep tests of keys behind the groups. Ranks need none."""
        return [] if self._ranks_groups else fence_groups(self.row, write_group_tests(self.row, self.question))

    def _add_arrival(self, present: list[str], as_of: AsOf) -> list[str]:
        """Return the tests of a row, with the tests that it arrived before the look.

        They are made before a unit's groups are chosen.
        """
        return list(dict.fromkeys([*present, *write_arrival_tests(self.row, as_of, self.question.keys)]))

    def _write_arrival(self, came: list[str]) -> list[str]:
        """Return the SQL of the time at which a unit came into a key, or nothing if the order needs none."""
        return self.bounding.list_first_arrivals(came) if self._ranks_groups else []

    @property
    def _summed(self) -> list[tuple[int, FunctionalSql]]:
        """The functionals that are totals of units, each with its index."""
        apart = () if self.is_per_unit else (Measure.VALUES,)
        return [(i, f) for i, f in enumerate(self.counted_functionals) if f.functional.measure not in apart]

    def _write_totals(self, rows: list[str]) -> list[str]:
        columns = self.write_group_columns()
        sums = [f"{f.sum_rows(added=f.write_added(), present=f.write_present())} AS t{i}" for i, f in self._summed]
        return [
            "-- integer totals of each privacy unit in each key; rows without a unit or a public key are left out",
            "totals AS (",
            *indent_blocks(
                write_select(columns + sums + self._write_arrival(self.bounding.list_arrivals())),
                [f"FROM {self.question.table.relation}"],
                write_where(rows),
                write_group_by(len(columns)),
                self._fence_groups(),
            ),
            f"){',' if self.bounding.chooses_groups else ''}",
        ]

    def _write_capped_rows(self, rows: list[str], cap: RowCap) -> list[str]:
        columns = self.write_group_columns()
        # stored ones first: behind what is computed from them Sail cannot plan them
        by = sorted((column for _, column in self.bounding.groups), key=lambda column: column.derivation is not None)
        partition = ", ".join(self.row.write_column(column.name) for column in by)
        unique = self.question.table.get_column(cap.unique)
        order = self.bounding.write_row_order(unique=unique)
        place = f"row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
        added = (f"{f.write_added()} AS v{i}" for i, f in enumerate(self.counted_functionals))
        return [
            f"-- the rows of each privacy unit in each key, {self.bounding.order_in_words}; the first {cap.rows} count",
            "kept AS (",
            *indent_blocks(
                write_select(
                    [*columns, *added, place, *(f"{came} AS {CAME}" for came in self.bounding.list_arrivals())]
                ),
                [f"FROM {self.question.table.relation}"],
                write_where([*rows, write_not_null(self.row, unique)]),
            ),
            "),",
        ]

    def _write_capped_totals(self, cap: RowCap) -> list[str]:
        aliases = [alias for alias, _ in self.bounding.groups]
        sums = [f"{f.sum_rows(added=f'v{i}', present=f'v{i}')} AS t{i}" for i, f in self._summed]
        sums += self._write_arrival([CAME] if self.bounding.as_of is not None else [])
        return [
            "-- integer totals of each privacy unit in each key, over the rows that count",
            "totals AS (",
            *indent_blocks(
                write_select(aliases + sums),
                ["FROM kept"],
                write_where([f"place <= {cap.rows}"]),
                write_group_by(len(aliases)),
                self._fence_groups(),
            ),
            f"){',' if self.bounding.chooses_groups else ''}",
        ]

    def _write_key_tests(self) -> list[str]:
        """Return the question's own restriction of keys, tested after the choice of groups."""
        return [
            condition
            for i, (column, values) in enumerate(pair_keys(self.question))
            if len(values) < len(self.bounding.find_domain(i))
            and (condition := write_domain_test(self.row, f"k{i}", column, values)) is not None
        ]
