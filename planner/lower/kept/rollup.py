"""The rows that count, kept once for many questions, because bounding does not depend on a question's conditions.

The keys of a unit that count (at most G), and under a row cap its rows that count, follow from the table, the grouping
columns and their public domains. A rollup holds exactly these rows, each with the number of rows that its unit has in
its key. It serves every WHERE, FILTER, aggregate and restriction of keys. If WHERE fixes keys to one value each, units
are bounded within each value, so that one rollup serves all values.

Guarantee: the integers are those of `planner.lower.scan`. If a unit has few rows in a key, no choice of them can reach
the end of its clipping range, and its rows are summed as they are. Only the rows of other units are first summed per
unit and clipped.

References: docs/decisions/0006-rollups.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from types import MappingProxyType

from planner.catalog.catalog import Column, Computed, Product, Table
from planner.catalog.key_space import KeySpace
from planner.catalog.refresh import parse_refresh
from planner.lower.computed_conditions import compute_conditions
from planner.lower.contribution_bounds import Bounding, exceeds_groups, write_not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import write_restriction
from planner.lower.functional import FunctionalSql
from planner.lower.heavy_units.list_heavy import can_be_summed
from planner.lower.kept.named_steps import continue_definitions, define_steps, refer_to_steps
from planner.lower.kept.rollup_build import COUNT, MOST, build_rollup, find_stored_measures
from planner.lower.key_tests import write_fixed_tests, write_where_tests
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.row import RowSql
from planner.lower.unit_rows import write_answer, write_relation, write_unit_columns
from planner.question.plan import Rollup
from planner.question.products import remove_products
from planner.question.question import Measure, Question, UnitRows

_RELATION = "rolled"
_TABLES = 32  # whose rollups are remembered as SQL, a few thousand characters each: what questions ask changes nothing


def make_rollup(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> Rollup | None:
    """Return the rollup from which a question is answered, built from the rows that count.

    Return None if `_counts_values_apart`.

    Parameters:
        functionals: the question's functionals over `row`, of all rows.
    """
    if _counts_values_apart(question):
        return None
    return _keep_answer(question, row, _write_answer(question, _RollupRows.from_question(question, row, functionals)))


def make_unit_rollup(
    question: Question, rows: UnitRows, *, totals: Question, row: RowSql, functionals: Sequence[FunctionalSql]
) -> Rollup | None:
    """Return a rollup for a question over one row per unit and key, built from the rows that count.

    Return None if a total counts different values.

    Parameters:
        totals: the sums per unit, with the number of rows last, as a question of `rows.table`.
        functionals: its functionals over `row`, of all rows.
    """
    if Measure.VALUES in {functional.measure for functional in totals.functionals}:
        return None
    return _keep_answer(
        totals, row, _write_unit_answer(question, rows, _RollupRows.from_question(totals, row, functionals))
    )


def may_keep(question: Question, table: Table) -> bool:
    """Return True if the source may keep what the question reads of a table for later questions.

    A look reads only a part of a data version, so its rows may not be kept.
    """
    looks = question.as_of is not None or question.in_time is not None
    return not looks and all(parse_refresh(one.refresh).kind != "live" for one in table.stored_tables)


def may_roll_up(question: Question, table: Table) -> bool:
    """Return True if rows of the question's table, grouped by its keys, may be kept for later questions."""
    undeclared = any(column.domain is None for column in question.keys.columns)
    taken = any(column.name.lower().startswith("keyhole_") for column in table.columns)
    several = any(len(key.values) > 1 for key in table.fixed)  # each choice of values bounds other rows
    live = parse_refresh(table.refresh).kind == "live"
    return may_keep(question, table) and not (table.is_row_unit or several or undeclared or taken or live)


def _keep_answer(question: Question, row: RowSql, lines: list[str]) -> Rollup:
    # in an order of columns that does not depend on how GROUP BY is typed
    columns = _sort_by_name(question.keys.columns)
    within = _sort_by_name([question.table.get_column(key.name) for key in question.table.fixed])
    table = replace(remove_products(question.table), fixed=())
    together = _sort_by_name([*columns, *within])
    if not exceeds_groups(
        table, _make_whole_space(together)
    ):  # all groups count: those of more keys hold the same rows
        columns, within = together, ()
    return replace(_make_rows_rollup(table, columns, within, row.dialect), sql="\n".join(lines))


def _sort_by_name(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(sorted(columns, key=lambda column: column.name))


def _make_whole_space(keys: tuple[Column, ...]) -> KeySpace:
    return KeySpace(columns=keys, values=tuple(column.domain or () for column in keys))


@lru_cache(maxsize=_TABLES)
def _make_rows_rollup(table: Table, keys: tuple[Column, ...], within: tuple[Column, ...], dialect: Dialect) -> Rollup:
    """Return the rollup of all keys of these columns, within each value of other columns, without a question's SQL."""
    whole = _make_whole_space(keys)
    lines = build_rollup(Bounding(RowSql(table=table, dialect=dialect), whole), within=within)
    counted = "\n".join(lines)
    build = define_steps(table.steps, counted, dialect=dialect)
    named = sha256(f"{dialect.name}\n{table.name}\n{build}".encode()).hexdigest()[:24]
    return Rollup(
        table=table.name,
        name=named,
        build=build,
        indexed_column=COUNT,
        sql="",
        steps=refer_to_steps(table.steps, counted, dialect=dialect),
        body=continue_definitions(counted),
    )


def _counts_values_apart(question: Question) -> bool:
    """Return True if different values are counted while some units' totals are computed apart from others'.

    Also return True if units are divided over their groups, for which all groups of a unit are looked at together.
    """
    measures = {functional.measure for functional in question.functionals}
    if Measure.UNIT_PARTS in measures:
        return True
    return Measure.VALUES in measures and (question.table.row_cap is None or Measure.UNITS in measures)


@dataclass(frozen=True, slots=True)
class _RollupRows:
    """The rows that count as a relation, with a question's tests and functionals on it."""

    bounding: Bounding
    functionals: tuple[FunctionalSql, ...]
    asked: tuple[str, ...]

    @staticmethod
    def from_question(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> "_RollupRows":
        """Return the kept rows with the question's functionals, filter and own restriction of keys."""
        stored = _make_rollup_row(question.table, row.dialect)
        bounded = compute_conditions(stored, question.where, question.functionals, beside=[COUNT])
        table = bounded.table
        asked = [*write_fixed_tests(bounded), *write_where_tests(bounded, question.where)]
        for column, values in zip(question.keys.columns, question.keys.values, strict=True):
            if len(values) < len(column.domain or ()):
                asked.append(
                    write_restriction(bounded, table.get_column(column.name), values) or write_not_null(bounded, column)
                )
        keyed = replace(question.keys, columns=tuple(table.get_column(name) for name in question.keys.names))
        return _RollupRows(
            bounding=Bounding(bounded, keyed),
            functionals=tuple(functional.read_from(bounded) for functional in functionals),
            asked=tuple(asked),
        )

    @property
    def has_unit_beside_keys(self) -> bool:
        """True if some column of the unit is no key. It is NULL if several units are summed together."""
        return any(alias.startswith("u") for alias, _ in self.bounding.units)

    def write_totals(self, conditions: Sequence[str], *, closing: str, limit: int | None = None) -> list[str]:
        """Return the SQL of the step that sums each unit's rows in each key.

        Parameters:
            limit: units with at most that many rows in a key are summed together. None: each unit is summed alone.
        """
        units = []
        for alias, column in self.bounding.groups:
            value = self.bounding.row.write_column(column.name)
            is_apart = limit is not None and alias.startswith("u")
            units.append(
                f"CASE WHEN {COUNT} > {limit} THEN {value} END AS {alias}" if is_apart else f"{value} AS {alias}"
            )
        sums = [
            f"{f.sum_rows(added=f.write_added(), present=f.write_present())} AS t{i}"
            for i, f in enumerate(self.functionals)
        ]
        source = self.bounding.row.table.relation
        return _write_step("totals", units + sums, source, [*conditions, *self.asked], len(units), closing=closing)


def _write_unit_answer(question: Question, rows: UnitRows, rolled: _RollupRows) -> list[str]:
    """Return the SQL of the question over each unit's totals, behind the WITH clause that defines `rolled`."""
    bounding = rolled.bounding
    found = write_where([f"t{len(rolled.functionals) - 1} IS NOT NULL"], comment="with rows that count")
    return [
        "-- integer totals of each privacy unit in each key, of the rows that count",
        *rolled.write_totals([], closing="),"),
        *write_relation(
            write_unit_columns(rows, [alias for alias, _ in bounding.groups], bounding.row.dialect),
            ["FROM totals", *found],
        ),
        *write_answer(question, rows, bounding.row, bounding),
    ]


def _write_answer(question: Question, rolled: _RollupRows) -> list[str]:
    """Return the SQL of the question over `rolled`, behind the WITH clause that defines it."""
    bounded, whole, asked = rolled.bounding.row, rolled.functionals, rolled.asked
    known = [functional.functional for functional in whole]
    single = replace(bounded, table=replace(bounded.table, unit=(), row_cap=None))
    light = [replace(functional, row=single) for functional in whole]
    limits = [limit for f in whole if (limit := f.count_unclipped_rows()) is not None]
    keys = [f"{bounded.write_grouped_column(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    sums = [f.sum_rows(added=f.write_added(), present=f.write_present()) for f in light]
    aliases = [f"k{i}" for i in range(len(keys))]
    if not limits:
        totals = [f"{f.write_final(total)} AS f{i}" for i, (f, total) in enumerate(zip(light, sums, strict=True))]
        return [
            "-- the rows that count, summed per key",
            *_write_step("scan", keys + totals, bounded.table.relation, asked, len(keys)),
            "SELECT * FROM scan",
        ]
    limit = min([*limits, MOST - 1])
    if not bounded.dialect.is_faster_on_copies and rolled.has_unit_beside_keys and all(map(can_be_summed, known)):
        return _write_single_scan(whole, rolled, aliases, limit)
    return [
        f"-- units with at most {limit} rows in a key: no choice among them is clipped",
        *_write_step(
            "light",
            keys + [f"{total} AS f{i}" for i, total in enumerate(sums)],
            bounded.table.relation,
            [f"{COUNT} <= {limit}", *asked],
            len(keys),
            closing="),",
        ),
        "-- integer totals of each other privacy unit in each key",
        *rolled.write_totals([f"{COUNT} > {limit}"], closing="),"),
        "-- each total clipped, summed per key",
        *_write_step(
            "heavy",
            aliases + [f"{f.sum_units(f't{i}')} AS f{i}" for i, f in enumerate(whole)],
            "totals",
            [],
            len(keys),
            closing="),",
        ),
        "summed AS (SELECT * FROM light UNION ALL SELECT * FROM heavy)",
        "-- both, per key",
        *write_select(aliases + [f"{f.write_final(f.sum_keys(f'f{i}'))} AS f{i}" for i, f in enumerate(whole)]),
        "FROM summed",
        *write_group_by(len(keys)),
    ]


def _write_single_scan(whole: Sequence[FunctionalSql], rolled: _RollupRows, keys: list[str], limit: int) -> list[str]:
    """Return the same answer by one scan. Only units with more rows than the limit have groups of their own."""
    unit = next(alias for alias, _ in rolled.bounding.units if alias.startswith("u"))
    is_heavy = f"{unit} IS NOT NULL"
    sums = [f"{f.write_final(f.sum_heavy_units(f't{i}', heavy=is_heavy))} AS f{i}" for i, f in enumerate(whole)]
    return [
        f"-- integer totals of each privacy unit with more than {limit} rows in a key, and of all others together",
        *rolled.write_totals([], closing=")", limit=limit),
        "-- each unit's total clipped, summed per key",
        *write_select(keys + sums),
        "FROM totals",
        *write_group_by(len(keys)),
    ]


def _write_step(
    name: str, columns: list[str], source: str, conditions: Sequence[str], groups: int, *, closing: str = ")"
) -> list[str]:
    body = indent_blocks(
        write_select(columns), [f"FROM {source}"], write_where(list(conditions)), write_group_by(groups)
    )
    return [f"{name} AS (", *body, closing]


@lru_cache(maxsize=_TABLES)
def _make_rollup_row(table: Table, dialect: Dialect) -> RowSql:
    """Return the rows that count as a table.

    Derived columns are stored, and measures are stored clipped and rounded.
    """
    measures = {
        column: name for column, (name, _) in find_stored_measures(RowSql(table=table, dialect=dialect)).items()
    }
    columns = tuple(
        column
        if isinstance(column.derivation, Product | Computed)
        else replace(column, derivation=None, is_determined=table.determines(column))
        for column in table.columns
    )
    rolled = replace(table, relation=_RELATION, columns=columns)
    return RowSql(table=rolled, dialect=dialect, measures=MappingProxyType(measures))
