"""A question as one SQL statement that reads its table once and gives integers only.

Guarantee: one privacy unit changes functional f of one key by at most its `sensitivity`, and changes at most
`groups_per_unit` keys, on any data. Which keys (and, under a row cap, which rows) of a unit count is decided by md5 of
the policy's seed and canonical text, before WHERE, FILTER and the question's own restriction of keys. The statement
cannot fail on data, and DuckDB and PostgreSQL give the same integers.

References: MATHS M2, M6; DESIGN 7; ProBE appendix B.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import prod

from planner.catalog import Column, RowCap, Value
from planner.condition import ALWAYS, Condition
from planner.domain_sql import LONGEST_LIST, gapless, listed, restriction
from planner.functional_sql import LARGEST, FunctionalSql
from planner.plan import Rewritten
from planner.question import Question
from planner.row_sql import RowSql
from planner.sql_literal import Dialect, text


def rewrite(question: Question, *, dialect: Dialect) -> Rewritten:
    """The question's aggregates in one dialect: key columns k0, k1, ..., then f0, f1, ... as bigint.

    Groups without rows are absent, groups outside the question's keys may be present: the reader aligns them.

    Raises:
        KeyholeError: KH201, KH203, KH204, KH205, KH212 for what a question may not contain, KH900 should a
            functional's declared sensitivity not cover what one privacy unit can change.
    """
    row = RowSql(table=question.table, dialect=dialect)
    lines = _row_unit(question, row) if question.table.row_unit else _Bounded(question, row).lines()
    return Rewritten(dialect=dialect, sql="\n".join(lines))


def _row_unit(question: Question, row: RowSql) -> list[str]:
    functionals = [FunctionalSql.of(row, functional, where=ALWAYS) for functional in question.functionals]
    sums = [f.sum_rows(added=f.added(), present=f.present()) for f in functionals]
    columns = [f"{row.grouped(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    columns += [f"{f.final(total)} AS f{i}" for i, (f, total) in enumerate(zip(functionals, sums, strict=True))]
    scanned = [test for column, values in _keys(question) for test in _scanned(row, column, values)]
    scan = [
        "-- one scan: a group per key, one conditional integer sum per functional",
        *_select(columns),
        f"FROM {question.table.relation}",
        *_where([*scanned, *_kept(row, question.where)], comment="rows that WHERE keeps, in the range of the keys"),
        _group_by(len(question.keys.columns)),
    ]
    left = _filtered(row, question)
    if not left:
        return scan
    public = _where(left, comment="groups outside the public keys stay behind")
    if row.dialect == "duckdb":
        # MATERIALIZED alone does not stop DuckDB from moving the test back into the scan
        scan += ["-- every group: keys are tested once a group, not once a row", f"LIMIT {LARGEST}"]
    return ["WITH scan AS MATERIALIZED (", *_indented(scan), ")", "SELECT * FROM scan", *public]


@dataclass(frozen=True, slots=True)
class _Bounded:
    """The shape for privacy units of several rows: totals per unit and key, at most G keys a unit, clipped, summed."""

    question: Question
    row: RowSql

    def lines(self) -> list[str]:
        table, keys = self.question.table, self.question.keys
        pushed = not self._chooses and table.row_cap is None
        where = ALWAYS if pushed else self.question.where
        functionals = [FunctionalSql.of(self.row, f, where=where) for f in self.question.functionals]
        rows = [*self._eligible(), *(_kept(self.row, self.question.where) if pushed else [])]
        if table.row_cap is None:
            steps = self._totals(functionals, rows)
        else:
            steps = [
                *self._capped(functionals, rows, table.row_cap),
                *self._totals_of_capped(functionals, table.row_cap),
            ]
        left = _filtered(self.row, self.question)
        if self._chooses:
            steps += self._chosen()
            left = [f"place <= {table.groups_per_unit}", *left, *self._restricted()]
        sums = [f.final(f.sum_units(f"t{i}")) for i, f in enumerate(functionals)]
        columns = [f"k{i}" for i in range(len(keys.columns))] + [f"{total} AS f{i}" for i, total in enumerate(sums)]
        bounding = "each unit's total clipped" if table.row_cap is None else "the units' totals"
        return [
            "WITH",
            *steps,
            f"-- {bounding}, summed per key",
            *_select(columns),
            f"FROM {'chosen' if self._chooses else 'totals'}",
            *_where(left, comment="of the public keys"),
            _group_by(len(keys.columns)),
        ]

    @property
    def _chooses(self) -> bool:
        """Whether a unit could have rows in more than G keys of the whole public domain."""
        free = [c for c in self.question.keys.columns if not self.question.table.determines(c)]
        return prod(len(_domain(column, self.question)) for column in free) > self.question.table.groups_per_unit

    @property
    def _units(self) -> list[tuple[str, Column]]:
        """The privacy unit's columns, each under its alias (a key's, where the unit contains a key)."""
        names = self.question.keys.names
        return [
            (f"k{names.index(name)}" if name in names else f"u{i}", self.question.table.column(name))
            for i, name in enumerate(self.question.table.unit)
        ]

    @property
    def _groups(self) -> list[tuple[str, Column]]:
        """Unit and key columns, each once."""
        keys = [(f"k{i}", column) for i, column in enumerate(self.question.keys.columns)]
        return [unit for unit in self._units if unit not in keys] + keys

    def _eligible(self) -> list[str]:
        """Rows with a privacy unit, whose key is in the public domain."""
        names = self.question.keys.names
        present = [_not_null(self.row, column) for _, column in self._units if column.name not in names]
        for column, values in _keys(self.question):
            if self._chooses and not self.question.table.determines(column):
                domain = restriction(self.row, column, _domain(column, self.question))
                present.append(domain or _not_null(self.row, column))
            else:
                present += _scanned(self.row, column, values)
        return present

    def _totals(self, functionals: list[FunctionalSql], rows: list[str]) -> list[str]:
        columns = [f"{self.row.column(column.name)} AS {alias}" for alias, column in self._groups]
        sums = [f.sum_rows(added=f.added(), present=f.present()) for f in functionals]
        return [
            "-- integer totals of each privacy unit in each key; rows without a unit or a public key are left out",
            "totals AS (",
            *_indented(
                _select(columns + [f"{total} AS t{i}" for i, total in enumerate(sums)]),
                [f"FROM {self.question.table.relation}"],
                _where(rows),
                [_group_by(len(columns))],
            ),
            f"){',' if self._chooses else ''}",
        ]

    def _capped(self, functionals: list[FunctionalSql], rows: list[str], cap: RowCap) -> list[str]:
        columns = [f"{self.row.column(column.name)} AS {alias}" for alias, column in self._groups]
        partition = ", ".join(self.row.column(column.name) for _, column in self._groups)
        unique = self.question.table.column(cap.unique)
        order = self._drawn([(self.row.column(unique.name), unique)])
        place = f"row_number() OVER (PARTITION BY {partition} ORDER BY {order}) AS place"
        return [
            f"-- the rows of each privacy unit in each key, in the order of md5; the first {cap.rows} count",
            "kept AS (",
            *_indented(
                _select([*columns, *(f"{f.added()} AS v{i}" for i, f in enumerate(functionals)), place]),
                [f"FROM {self.question.table.relation}"],
                _where([*rows, _not_null(self.row, unique)]),
            ),
            "),",
        ]

    def _totals_of_capped(self, functionals: list[FunctionalSql], cap: RowCap) -> list[str]:
        aliases = [alias for alias, _ in self._groups]
        sums = [f"{f.sum_rows(added=f'v{i}', present=f'v{i}')} AS t{i}" for i, f in enumerate(functionals)]
        return [
            "-- integer totals of each privacy unit in each key, over the rows that count",
            "totals AS (",
            *_indented(
                _select(aliases + sums), ["FROM kept"], _where([f"place <= {cap.rows}"]), [_group_by(len(aliases))]
            ),
            f"){',' if self._chooses else ''}",
        ]

    def _chosen(self) -> list[str]:
        groups = self.question.table.groups_per_unit
        units = ", ".join(alias for alias, _ in self._units)
        # in the order of their names: however GROUP BY is typed, the same keys of a unit count
        order = self._drawn(sorted(self._groups, key=lambda part: part[1].name))
        return [
            f"-- the keys of each privacy unit, in the order of md5; the first {groups} count",
            "chosen AS (",
            *_indented(
                [f"SELECT *, row_number() OVER (PARTITION BY {units} ORDER BY {order}) AS place", "FROM totals"]
            ),
            ")",
        ]

    def _drawn(self, parts: list[tuple[str, Column]]) -> str:
        """An order that no data can choose: md5 of seed and canonical text, ties by the values themselves."""
        texts = [text(self.question.table.seed), *(self.row.canonical(sql, column) for sql, column in parts)]
        collation = ' COLLATE "C"' if self.row.dialect == "postgres" else ""
        canonical = " || '|' || ".join(texts)
        return ", ".join([f"md5({canonical}){collation}", *(sql for sql, _ in parts)])

    def _restricted(self) -> list[str]:
        """The question's own restriction of keys, after the choice."""
        return [
            condition
            for i, (column, values) in enumerate(_keys(self.question))
            if len(values) < len(_domain(column, self.question))
            and (condition := listed(self.row, f"k{i}", column, values)) is not None
        ]


def _keys(question: Question) -> list[tuple[Column, tuple[Value, ...]]]:
    return list(zip(question.keys.columns, question.keys.values, strict=True))


def _domain(column: Column, question: Question) -> tuple[Value, ...]:
    if column.domain is not None:
        return column.domain
    return question.keys.values[question.keys.columns.index(column)]


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
    return [restriction(row, column, values) or _not_null(row, column)]


def _filtered(row: RowSql, question: Question) -> list[str]:
    """What is asked of grouping columns once rows are grouped; no NULL passes."""
    return [
        condition
        for i, (column, values) in enumerate(_keys(question))
        if _tested_later(column, values) and (condition := listed(row, f"k{i}", column, values)) is not None
    ]


def _kept(row: RowSql, where: Condition) -> list[str]:
    return [] if where == ALWAYS else [row.holds(where)]


def _not_null(row: RowSql, column: Column) -> str:
    return f"({row.column(column.name)}) IS NOT NULL"


def _select(columns: list[str]) -> list[str]:
    return ["SELECT", ",\n".join(f"  {column}" for column in columns)]


def _where(conditions: list[str], *, comment: str | None = None) -> list[str]:
    if not conditions:
        return []
    narrated = [f"-- {comment}"] if comment is not None else []
    return [*narrated, "WHERE " + " AND ".join(f"({condition})" for condition in conditions)]


def _group_by(columns: int) -> str:
    return "GROUP BY " + ", ".join(str(i + 1) for i in range(columns))


def _indented(*blocks: Iterable[str]) -> list[str]:
    return ["  " + line for block in blocks for text in block for line in text.split("\n")]
