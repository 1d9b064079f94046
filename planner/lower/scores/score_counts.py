"""Rows counted by group and cell, from which a release of scores is drawn.

The statement returns the number of rows of each group and cell that has rows. Only these counts leave the source. The
groups of a privacy unit that count are chosen as for a question, before WHERE. Of a unit's rows in a group that have
every number, the first few count. Their order is the md5 of seed, unit, group, cell, and the row's place among those
that are equal in all these. So the rows that count follow from the unit's own rows alone.

Without numbers each group is one cell. Without a limit on a unit's rows every row counts, also rows without a unit.
This is for results on all rows that protect no unit. If a path leads to units, only rows that lead to one are read.

Guarantee: with such a limit, one more privacy unit raises the counts of at most `groups_per_unit` groups, each group's
by `most_rows` in all, and lowers none. No row can make the statement fail.

References: docs/proofs/score_histogram.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from planner.catalog.catalog import Column, SqlType, Table
from planner.lower.bounded_scan import BoundedScan
from planner.lower.computed_conditions import compute_conditions
from planner.lower.contribution_bounds import Bounding
from planner.lower.dialects.dialect import Dialect
from planner.lower.joins import join_lookups, join_members, list_pinned_relations
from planner.lower.kept.named_steps import define_steps
from planner.lower.key_tests import pair_keys, write_row_tests, write_where_tests
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.read_columns import keep_columns, list_read_columns
from planner.lower.row import RowSql
from planner.lower.scan import list_relations
from planner.lower.scores.row_number import write_cell
from planner.question.condition import find_columns
from planner.question.plan import PinnedRelation, ReadRelation
from planner.question.scores import ScoredRows

_CELL = Column(name="cell", sql_type=SqlType.INTEGER, declared="bigint")
_COPY = Column(name="copy", sql_type=SqlType.INTEGER, declared="bigint")


@dataclass(frozen=True, slots=True)
class ScoreCounts:
    """The statement that counts scored rows by group and cell, over one state of the data.

    Its rows are (place, [place, number of rows]). A place is `group * cells + cell`, both counted from 0 in row-major
    order. Places without rows are absent.
    """

    scored: ScoredRows
    dialect: Dialect

    @property
    def table(self) -> Table:
        """The table that the statement reads."""
        return self.scored.question.table

    @property
    def relations(self) -> tuple[ReadRelation, ...]:
        """The relations that the statement reads, as the policy knows them."""
        return list_relations(self.table)

    @property
    def pinned(self) -> tuple[PinnedRelation, ...]:
        """The pinned relations of public values that the statement reads and whose values it does not contain."""
        return list_pinned_relations(self.table, dialect=self.dialect)

    @property
    def sql(self) -> str:
        """The statement's text."""
        begins, ends = self.dialect.array
        row = self._make_row()
        counted = "\n".join(
            [
                "WITH",
                *self._write_steps(row),
                "-- how many rows each cell of each public group has",
                f"SELECT place, {begins}place, n{ends} AS counted",
                "FROM (",
                *indent_blocks(
                    write_select([f"{self._write_group_place()} * {self.scored.cells} + cell AS place", "n"]),
                    ["FROM counted"],
                ),
                ") AS placed",
                "WHERE place IS NOT NULL",
            ]
        )
        return define_steps(row.table.steps, counted, dialect=self.dialect)

    @property
    def _keys(self) -> list[str]:
        return [f"k{i}" for i in range(len(self.scored.question.keys.columns))]

    def _make_row(self) -> RowSql:
        """Return the rows that are scored, with the expensive conditions computed."""
        question = self.scored.question
        names = [*list_read_columns(question, self.table, question.where, question.functionals), *self._list_axes()]
        narrow = keep_columns(replace(self.table, row_cap=None), names)
        together = join_members(narrow, dialect=self.dialect)
        read = RowSql(table=join_lookups(together, dialect=self.dialect), dialect=self.dialect)
        return compute_conditions(read, question.where, question.functionals)

    def _write_steps(self, row: RowSql) -> Iterator[str]:
        question = replace(self.scored.question, table=row.table, functionals=())
        if self.table.is_row_unit or self.scored.most_rows is None:
            yield from self._write_scored_rows(row)
            kept = ["FROM scored", *write_where(["cell IS NOT NULL"])]
        else:
            scan = BoundedScan(question, row, Bounding(row, question.keys), ())
            yield from self._write_scored_units(row, scan)
            kept = ["FROM numbered", *write_where([f"numbered_place <= {self.scored.most_rows}"])]
        yield "counted AS ("
        yield from indent_blocks(
            write_select([*self._keys, "cell", "count(*) AS n"]), kept, write_group_by(len(self._keys) + 1)
        )
        yield ")"

    def _list_axes(self) -> Iterator[str]:
        """Yield the columns that decide the cell of a row."""
        for number in (axis.number for axis in self.scored.axes):
            yield from number.columns
            yield from find_columns(number.present)
            yield from (name for term in number.terms for name in find_columns(term.condition))

    def _write_cell(self, row: RowSql) -> str:
        """Return SQL for a row's cell on all axes together, NULL if one of its numbers is missing."""
        found = ""
        for axis in self.scored.axes:
            cell = write_cell(row, axis)
            found = cell if not found else f"({found}) * {axis.cells} + ({cell})"
        return found or "0"

    def _write_scored_rows(self, row: RowSql) -> Iterator[str]:
        question = self.scored.question
        tests = [test for column, values in pair_keys(question) for test in write_row_tests(row, column, values)]
        keys = [f"{row.write_column(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
        yield "-- the cell of each row that WHERE keeps, in the range of the keys"
        yield "scored AS ("
        yield from indent_blocks(
            write_select([*keys, f"{self._write_cell(row)} AS cell"]),
            [f"FROM {row.table.relation}"],
            write_where([*tests, *write_where_tests(row, question.where)]),
        )
        yield "),"

    def _write_scored_units(self, row: RowSql, scan: BoundedScan) -> Iterator[str]:
        bounding = scan.bounding
        aliases = [alias for alias, _ in bounding.groups]
        if bounding.chooses_groups:
            yield from scan.write_steps()
            yield ","
        yield "-- the cell of each row that WHERE keeps, of a unit and a public key"
        yield "scored AS ("
        yield from indent_blocks(
            write_select([*scan.write_group_columns(), f"{self._write_cell(row)} AS cell"]),
            [f"FROM {row.table.relation}"],
            write_where([*scan.write_eligible_tests(), *write_where_tests(row, self.scored.question.where)]),
        )
        yield "),"
        yield "-- rows that are equal in all that counts, numbered: whichever of them is the first"
        yield "copies AS ("
        yield from indent_blocks(
            write_select(
                [
                    *aliases,
                    "cell",
                    f"row_number() OVER (PARTITION BY {', '.join([*aliases, 'cell'])} ORDER BY cell) AS copy",
                ]
            ),
            ["FROM scored"],
            write_where(["cell IS NOT NULL"]),
        )
        yield "),"
        order = bounding.write_copy_order(("cell", _CELL), ("copy", _COPY))
        most = self.scored.most_rows
        yield f"-- the rows of each privacy unit in each key, in the order of md5; the first {most} count"
        yield "numbered AS ("
        source = ["FROM copies"]
        tests: list[str] = []
        if bounding.chooses_groups:
            source = [f"FROM copies JOIN chosen USING ({', '.join(aliases)})"]
            tests = scan.write_remaining_tests()
        place = f"row_number() OVER (PARTITION BY {', '.join(aliases)} ORDER BY {order}) AS numbered_place"
        yield from indent_blocks(write_select([*self._keys, "cell", place]), source, write_where(tests))
        yield "),"

    def _write_group_place(self) -> str:
        """Return SQL for a group's place in the order of the question's keys, NULL for any other group."""
        question = self.scored.question
        row = RowSql(table=self.table, dialect=self.dialect)
        places: list[str] = []
        for i, (column, values) in enumerate(pair_keys(question)):
            arms = " ".join(
                f"WHEN {row.write_comparison(f'k{i}', column, '=', value)} THEN {place}"
                for place, value in enumerate(values)
            )
            places.append(f"CASE {arms} END" if arms else "CAST(NULL AS integer)")
        found = "0"
        for place, values in zip(places, question.keys.values, strict=True):
            found = f"({found}) * {len(values)} + {place}" if found != "0" else place
        return f"({found})" if places else "0"
