"""A question as one SQL statement that reads its table once and gives integers only.

Guarantee: one privacy unit changes functional f of one key by at most its `sensitivity`, and changes at most
`groups_per_unit` keys, on any data. Which keys (and, under a row cap, which rows) of a unit count is decided by md5 of
the policy's seed and canonical text, before WHERE, FILTER and the question's own restriction of keys. The statement
cannot fail on data, and DuckDB and PostgreSQL give the same integers.

References: docs/decisions/0002-rewriting.md; ProBE appendix B.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mechanisms.formula import TRUE
from planner.catalog.model import Column, RowCap, Value
from planner.functionals.unit_rows import one_row
from planner.lower.contribution_bounds import Bounding, not_null
from planner.lower.dialects.model import Dialect
from planner.lower.domain import LONGEST_LIST, gapless, listed, restriction
from planner.lower.functional import FunctionalSql
from planner.lower.joins import join_lookups, join_members
from planner.lower.layout import group_by, indented, select, where
from planner.lower.rollup import rollup, rollup_per_unit
from planner.lower.row import RowSql
from planner.lower.unit_rows import answer, needed, relation, unit_columns
from planner.question.condition import ALWAYS, Condition
from planner.question.model import Measure, Question, Term, UnitRows
from planner.question.plan import Rewritten


def rewrite(question: Question, *, dialect: Dialect) -> Rewritten:
    """The question's aggregates in one dialect: key columns k0, k1, ..., then f0, f1, ... as bigint.

    Groups without rows are absent, groups outside the question's keys may be present: the reader aligns them.

    Raises:
        KeyholeError: KH201, KH203, KH204, KH205, KH212 for what a question may not contain, KH900 should a
            functional's declared sensitivity not cover what one privacy unit can change.
    """
    if question.per_unit is not None:
        return _per_unit(question, question.per_unit, dialect)
    known = question.table
    question = replace(question, table=join_lookups(join_members(known, dialect=dialect), dialect=dialect))
    row = RowSql(table=question.table, dialect=dialect)
    functionals = [
        FunctionalSql.of(row, f, where=ALWAYS, among=question.where, known=known) for f in question.functionals
    ]
    if question.table.row_unit:
        lines = _row_unit(question, row, functionals)
    else:
        lines = _PerUnitScan(question, row, Bounding(row, question.keys), tuple(functionals)).lines()
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rollup(question, row, functionals))


def _row_unit(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> list[str]:
    sums = [f.sum_rows(added=f.added(), present=f.present()) for f in functionals]
    columns = [f"{row.grouped(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    columns += [f"{f.final(total)} AS f{i}" for i, (f, total) in enumerate(zip(functionals, sums, strict=True))]
    scanned = [test for column, values in _keys(question) for test in _scanned(row, column, values)]
    scan = [
        "-- one scan: a group per key, one conditional integer sum per functional",
        *select(columns),
        f"FROM {question.table.relation}",
        *where([*scanned, *_kept(row, question.where)], comment="rows that WHERE keeps, in the range of the keys"),
        group_by(len(question.keys.columns)),
    ]
    left = _filtered(row, question)
    if not left:
        return scan
    public = where(left, comment="groups outside the public keys stay behind")
    fence = row.dialect.materialized_fence
    if fence is not None:
        scan += ["-- every group: keys are tested once a group, not once a row", fence]
    return ["WITH scan AS MATERIALIZED (", *indented(scan), ")", "SELECT * FROM scan", *public]


def _per_unit(question: Question, rows: UnitRows, dialect: Dialect) -> Rewritten:
    """The totals of each unit in each key, bounded as for any question, then the question over these."""
    row = RowSql(table=rows.table, dialect=dialect)
    found = one_row(Term(1, None, ALWAYS, 0))
    inner = replace(
        question, table=rows.table, where=rows.where, functionals=(*needed(rows), found), formula=TRUE, per_unit=None
    )
    needs = tuple(FunctionalSql.of(row, f, where=ALWAYS, among=inner.where) for f in inner.functionals)
    bounded = _PerUnitScan(inner, row, Bounding(row, question.keys), needs)
    _, steps, left = bounded.totals()
    kept = [*left, f"t{len(needs) - 1} IS NOT NULL"]
    source = [f"FROM {bounded.relation}", *where(kept, comment="of the public keys, with rows that count")]
    lines = [
        "WITH",
        *steps[:-1],
        f"{steps[-1].rstrip(',')},",
        *relation(unit_columns(rows, bounded.bounding), source),
        *answer(question, rows, row, bounded.bounding),
    ]
    rolled = rollup_per_unit(question, rows, totals=inner, row=row, functionals=needs)
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rolled)


@dataclass(frozen=True, slots=True)
class _PerUnitScan:
    """The shape for privacy units of several rows: totals per unit and key, at most G keys a unit, clipped, summed."""

    question: Question
    row: RowSql
    bounding: Bounding
    functionals: tuple[FunctionalSql, ...]

    @property
    def relation(self) -> str:
        """The step that holds the units' totals in the end."""
        return "chosen" if self.bounding.chooses else "totals"

    def totals(self) -> tuple[list[FunctionalSql], list[str], list[str]]:
        """The steps that end in one row per unit and key, and what has yet to be asked of these."""
        table = self.question.table
        pushed = not self.bounding.chooses and table.row_cap is None
        told = ALWAYS if pushed else self.question.where
        functionals = [replace(functional, where=told) for functional in self.functionals]
        rows = [*self._eligible(), *(_kept(self.row, self.question.where) if pushed else [])]
        if table.row_cap is None:
            steps = self._totals(functionals, rows)
        else:
            steps = [
                *self._capped(functionals, rows, table.row_cap),
                *self._totals_of_capped(functionals, table.row_cap),
            ]
        left = _filtered(self.row, self.question)
        if self.bounding.chooses:
            steps += self._chosen()
            left = [f"place <= {table.groups_per_unit}", *left, *self._restricted()]
        return functionals, steps, left

    def lines(self) -> list[str]:
        table, keys = self.question.table, self.question.keys
        functionals, steps, left = self.totals()
        sums = [
            f.final(f"max(d{i})" if f.functional.measure is Measure.VALUES else f.sum_units(f"t{i}"))
            for i, f in enumerate(functionals)
        ]
        columns = [f"k{i}" for i in range(len(keys.columns))] + [f"{total} AS f{i}" for i, total in enumerate(sums)]
        summed = "each unit's total clipped" if table.row_cap is None else "the units' totals"
        counted = self._values(functionals)
        using = ", ".join(f"k{i}" for i in range(len(keys.columns)))
        return [
            "WITH",
            *steps,
            *(line for _, lines in counted for line in (",", *lines)),
            f"-- {summed}, summed per key",
            *select(columns),
            f"FROM {self.relation}",
            *(f"LEFT JOIN {name} USING ({using})" for name, _ in counted),
            *where(left, comment="of the public keys"),
            group_by(len(keys.columns)),
        ]

    def _values(self, functionals: list[FunctionalSql]) -> list[tuple[str, list[str]]]:
        """By relation, the steps that count different values per key."""
        told = [(i, f) for i, f in enumerate(functionals) if f.functional.measure is Measure.VALUES]
        cap = self.question.table.row_cap
        if cap is None:
            return [(f"differing{i}", self._drawn_values(i, f)) for i, f in told]
        counts = [f"count(DISTINCT v{i}) AS d{i}" for i, _ in told]
        return [("differing", self._counted_values("differing", "kept", counts, cap.rows))] if told else []

    def _drawn_values(self, index: int, functional: FunctionalSql) -> list[str]:
        """The values of each unit in each key that count, and how many different ones there are in each key."""
        columns = [f"{self.row.column(column.name)} AS {alias}" for alias, column in self.bounding.groups]
        aliases = [alias for alias, _ in self.bounding.groups]
        (name,) = functional.functional.columns
        order = self.bounding.order_of_values("v", column=self.question.table.column(name))
        rows = [*self._eligible(), *_kept(self.row, self.question.where)]
        found = select([*columns, f"{functional.added()} AS v"])
        place = f"row_number() OVER (PARTITION BY {', '.join(aliases)} ORDER BY {order}) AS place"
        return [
            f"-- the different values of each privacy unit in each key, in the order of md5; "
            f"the first {functional.most_values} count",
            f"values{index} AS (",
            *indented(
                [f"SELECT {', '.join(aliases)}, v, {place}", "FROM ("],
                indented(
                    found,
                    [f"FROM {self.question.table.relation}"],
                    where(rows),
                    [group_by(len(columns) + 1)],
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
            limits.append(f"chosen.place <= {self.question.table.groups_per_unit}")
        return [
            "-- how many different values each key has",
            f"{name} AS (",
            *indented(select(keys + counts), [joined], where(limits), [group_by(len(keys))]),
            ")",
        ]

    def _eligible(self) -> list[str]:
        """Rows with a privacy unit, whose key is in the public domain."""
        names = self.question.keys.names
        present = [not_null(self.row, column) for _, column in self.bounding.units if column.name not in names]
        for i, (column, values) in enumerate(_keys(self.question)):
            if self.bounding.chooses and not self.question.table.determines(column):
                domain = restriction(self.row, column, self.bounding.domain(i))
                present.append(domain or not_null(self.row, column))
            else:
                present += _scanned(self.row, column, values)
        return present

    def _totals(self, functionals: list[FunctionalSql], rows: list[str]) -> list[str]:
        columns = [f"{self.row.column(column.name)} AS {alias}" for alias, column in self.bounding.groups]
        sums = [f"{f.sum_rows(added=f.added(), present=f.present())} AS t{i}" for i, f in _summed(functionals)]
        return [
            "-- integer totals of each privacy unit in each key; rows without a unit or a public key are left out",
            "totals AS (",
            *indented(
                select(columns + sums),
                [f"FROM {self.question.table.relation}"],
                where(rows),
                [group_by(len(columns))],
            ),
            f"){',' if self.bounding.chooses else ''}",
        ]

    def _capped(self, functionals: list[FunctionalSql], rows: list[str], cap: RowCap) -> list[str]:
        columns = [f"{self.row.column(column.name)} AS {alias}" for alias, column in self.bounding.groups]
        partition = ", ".join(self.row.column(column.name) for _, column in self.bounding.groups)
        unique = self.question.table.column(cap.unique)
        order = self.bounding.order_of_rows(unique=unique)
        place = f"row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
        return [
            f"-- the rows of each privacy unit in each key, in the order of md5; the first {cap.rows} count",
            "kept AS (",
            *indented(
                select([*columns, *(f"{f.added()} AS v{i}" for i, f in enumerate(functionals)), place]),
                [f"FROM {self.question.table.relation}"],
                where([*rows, not_null(self.row, unique)]),
            ),
            "),",
        ]

    def _totals_of_capped(self, functionals: list[FunctionalSql], cap: RowCap) -> list[str]:
        aliases = [alias for alias, _ in self.bounding.groups]
        sums = [f"{f.sum_rows(added=f'v{i}', present=f'v{i}')} AS t{i}" for i, f in _summed(functionals)]
        return [
            "-- integer totals of each privacy unit in each key, over the rows that count",
            "totals AS (",
            *indented(select(aliases + sums), ["FROM kept"], where([f"place <= {cap.rows}"]), [group_by(len(aliases))]),
            f"){',' if self.bounding.chooses else ''}",
        ]

    def _chosen(self) -> list[str]:
        groups = self.question.table.groups_per_unit
        units = ", ".join(alias for alias, _ in self.bounding.units)
        order = self.bounding.order_of_keys()
        return [
            f"-- the keys of each privacy unit, in the order of md5; the first {groups} count",
            "chosen AS (",
            *indented([f"SELECT *, row_number() OVER (PARTITION BY {units} ORDER BY {order}) AS place", "FROM totals"]),
            ")",
        ]

    def _restricted(self) -> list[str]:
        """The question's own restriction of keys, after the choice."""
        return [
            condition
            for i, (column, values) in enumerate(_keys(self.question))
            if len(values) < len(self.bounding.domain(i))
            and (condition := listed(self.row, f"k{i}", column, values)) is not None
        ]


def _summed(functionals: list[FunctionalSql]) -> list[tuple[int, FunctionalSql]]:
    """Those that are totals of units."""
    return [(i, f) for i, f in enumerate(functionals) if f.functional.measure is not Measure.VALUES]


def _keys(question: Question) -> list[tuple[Column, tuple[Value, ...]]]:
    return list(zip(question.keys.columns, question.keys.values, strict=True))


def _tested_later(column: Column, values: tuple[Value, ...]) -> bool:
    """Whether the values are tested once a group: the whole domain costs more per row than it saves.

    A range is tested per row all the same where that may spare reading rows.
    """
    whole = column.domain is not None and len(values) == len(column.domain)
    return whole and (not column.prunable if gapless(column, values) else len(values) <= LONGEST_LIST)


def _scanned(row: RowSql, column: Column, values: tuple[Value, ...]) -> list[str]:
    """What the scan asks of a grouping column; nothing where the groups are tested."""
    if _tested_later(column, values):
        return []
    return [restriction(row, column, values) or not_null(row, column)]


def _filtered(row: RowSql, question: Question) -> list[str]:
    """What is asked of grouping columns once rows are grouped; no NULL passes."""
    return [
        condition
        for i, (column, values) in enumerate(_keys(question))
        if _tested_later(column, values) and (condition := listed(row, f"k{i}", column, values)) is not None
    ]


def _kept(row: RowSql, where: Condition) -> list[str]:
    return [] if where == ALWAYS else [row.holds(where)]
