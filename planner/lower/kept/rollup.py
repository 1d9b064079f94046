"""The rows that count, kept once for many questions: bounding does not depend on what a question asks.

Which keys of a unit count (at most G), and under a row cap which of its rows, follows from the table, the grouping
columns and their public domains. A rollup holds exactly those rows, each with the number of rows that its unit has in
its key, and serves every WHERE, FILTER, aggregate and restriction of keys. Where WHERE fixes keys to one value each,
units are bounded within each value of these, so that one rollup serves all values.

Guarantee: the same integers as `planner.lower.scan`'s. Where a unit has so few rows in a key that no choice among
them can reach what its total is clipped to, clipping changes nothing: those rows are summed as they are. Only the
rows of other units are first added up per unit and clipped.

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
from planner.lower.contribution_bounds import Bounding, exceeds_groups, not_null
from planner.lower.dialects.dialect import Dialect
from planner.lower.domain import restriction
from planner.lower.functional import FunctionalSql
from planner.lower.heavy_units.list_heavy import can_be_summed
from planner.lower.kept.named_steps import behind_definitions, define_steps, refer_to_steps
from planner.lower.kept.rollup_build import COUNT, MOST, build_rollup, stored_measures
from planner.lower.key_tests import fixed_tests, where_tests
from planner.lower.layout import group_by, indent_blocks, select, where
from planner.lower.row import RowSql
from planner.lower.unit_rows import answer, relation, unit_columns
from planner.question.plan import Rollup
from planner.question.products import without_products
from planner.question.question import Measure, Question, UnitRows

_RELATION = "rolled"
_TABLES = 32  # whose rollups are remembered as SQL, a few thousand characters each: what questions ask changes nothing


def rollup(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> Rollup | None:
    """Return how the question is answered from the rows that count; None if every row counts, or nothing may be kept.

    Parameters:
        functionals: the question's over `row`, of all rows.
    """
    if _spread(question):
        return None
    return _rollup(question, row, _answer(question, _Rolled.of(question, row, functionals)))


def rollup_per_unit(
    question: Question, rows: UnitRows, *, totals: Question, row: RowSql, functionals: Sequence[FunctionalSql]
) -> Rollup | None:
    """Return how a question over one row per unit and key is answered from the same rows that count.

    Parameters:
        totals: what is added up per unit, the number of rows last, as a question of `rows.table`.
        functionals: its functionals over `row`, of all rows.
    """
    if Measure.VALUES in {functional.measure for functional in totals.functionals}:
        return None
    return _rollup(totals, row, _answer_per_unit(question, rows, _Rolled.of(totals, row, functionals)))


def may_keep(question: Question, table: Table) -> bool:
    """Return True if what the question finds of a table may serve later ones.

    A look reads more than one version of the data has.
    """
    looks = question.as_of is not None or question.in_time is not None
    return not looks and all(parse_refresh(one.refresh).kind != "live" for one in table.stored_tables)


def may_roll(question: Question, table: Table) -> bool:
    """Return True if rows of the question's table may be kept, by its keys."""
    undeclared = any(column.domain is None for column in question.keys.columns)
    taken = any(column.name.lower().startswith("keyhole_") for column in table.columns)
    several = any(len(key.values) > 1 for key in table.fixed)  # each choice of values bounds other rows
    live = parse_refresh(table.refresh).kind == "live"
    return may_keep(question, table) and not (table.is_row_unit or several or undeclared or taken or live)


def _rollup(question: Question, row: RowSql, lines: list[str]) -> Rollup:
    # in an order of columns that does not depend on how GROUP BY is typed
    columns = _by_name(question.keys.columns)
    within = _by_name([question.table.get_column(key.name) for key in question.table.fixed])
    table = replace(without_products(question.table), fixed=())
    together = _by_name([*columns, *within])
    if not exceeds_groups(table, _whole_space(together)):  # all groups count: those of more keys hold the same rows
        columns, within = together, ()
    return replace(_rows_that_count(table, columns, within, row.dialect), sql="\n".join(lines))


def _by_name(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(sorted(columns, key=lambda column: column.name))


def _whole_space(keys: tuple[Column, ...]) -> KeySpace:
    return KeySpace(columns=keys, values=tuple(column.domain or () for column in keys))


@lru_cache(maxsize=_TABLES)
def _rows_that_count(table: Table, keys: tuple[Column, ...], within: tuple[Column, ...], dialect: Dialect) -> Rollup:
    """Return the rollup of all keys of these columns within each value of others, for no question yet."""
    whole = _whole_space(keys)
    lines = build_rollup(Bounding(RowSql(table=table, dialect=dialect), whole), within=within)
    counted = "\n".join(lines)
    build = define_steps(table.steps, counted, dialect=dialect)
    named = sha256(f"{dialect.name}\n{table.name}\n{build}".encode()).hexdigest()[:24]
    return Rollup(
        table=table.name,
        name=named,
        build=build,
        indexed=COUNT,
        sql="",
        steps=refer_to_steps(table.steps, counted, dialect=dialect),
        body=behind_definitions(counted),
    )


def _spread(question: Question) -> bool:
    """Return True if different values are counted where some units' totals are made apart from others'."""
    measures = {functional.measure for functional in question.functionals}
    return Measure.VALUES in measures and (question.table.row_cap is None or Measure.UNITS in measures)


@dataclass(frozen=True, slots=True)
class _Rolled:
    """The rows that count as a relation: what is asked of them, and what they add to."""

    bounding: Bounding
    functionals: tuple[FunctionalSql, ...]
    asked: tuple[str, ...]

    @staticmethod
    def of(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> "_Rolled":
        """Return the question's functionals, filter and own restriction of keys."""
        stored = _rolled_row(question.table, row.dialect)
        bounded = compute_conditions(stored, question.where, question.functionals, beside=[COUNT])
        table = bounded.table
        asked = [*fixed_tests(bounded), *where_tests(bounded, question.where)]
        for column, values in zip(question.keys.columns, question.keys.values, strict=True):
            if len(values) < len(column.domain or ()):
                asked.append(restriction(bounded, table.get_column(column.name), values) or not_null(bounded, column))
        keyed = replace(question.keys, columns=tuple(table.get_column(name) for name in question.keys.names))
        return _Rolled(
            bounding=Bounding(bounded, keyed),
            functionals=tuple(functional.read_from(bounded) for functional in functionals),
            asked=tuple(asked),
        )

    @property
    def has_unit_beside_keys(self) -> bool:
        """Return True if some column of the unit is no key: it is NULL where units are taken together."""
        return any(alias.startswith("u") for alias, _ in self.bounding.units)

    def totals(self, conditions: Sequence[str], *, closing: str, limit: int | None = None) -> list[str]:
        """Return the SQL of the step that adds up each unit's rows in each key.

        Parameters:
            limit: units with at most so many rows in a key are taken together; None: each is by itself.
        """
        units = []
        for alias, column in self.bounding.groups:
            value = self.bounding.row.column(column.name)
            is_apart = limit is not None and alias.startswith("u")
            units.append(
                f"CASE WHEN {COUNT} > {limit} THEN {value} END AS {alias}" if is_apart else f"{value} AS {alias}"
            )
        sums = [
            f"{f.sum_rows(added=f.added_sql(), present=f.present())} AS t{i}" for i, f in enumerate(self.functionals)
        ]
        source = self.bounding.row.table.relation
        return _step("totals", units + sums, source, [*conditions, *self.asked], len(units), closing=closing)


def _answer_per_unit(question: Question, rows: UnitRows, rolled: _Rolled) -> list[str]:
    """Return the SQL of the question over each unit's totals, from behind the WITH clause that names `rolled`."""
    bounding = rolled.bounding
    found = where([f"t{len(rolled.functionals) - 1} IS NOT NULL"], comment="with rows that count")
    return [
        "-- integer totals of each privacy unit in each key, of the rows that count",
        *rolled.totals([], closing="),"),
        *relation(
            unit_columns(rows, [alias for alias, _ in bounding.groups], bounding.row.dialect), ["FROM totals", *found]
        ),
        *answer(question, rows, bounding.row, bounding),
    ]


def _answer(question: Question, rolled: _Rolled) -> list[str]:
    """Return the SQL of the question over `rolled`, from behind the WITH clause that names it."""
    bounded, whole, asked = rolled.bounding.row, rolled.functionals, rolled.asked
    known = [functional.functional for functional in whole]
    single = replace(bounded, table=replace(bounded.table, unit=(), row_cap=None))
    light = [replace(functional, row=single) for functional in whole]
    limits = [limit for f in whole if (limit := f.unclipped_rows()) is not None]
    keys = [f"{bounded.grouped_column(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    sums = [f.sum_rows(added=f.added_sql(), present=f.present()) for f in light]
    aliases = [f"k{i}" for i in range(len(keys))]
    if not limits:
        totals = [f"{f.final(total)} AS f{i}" for i, (f, total) in enumerate(zip(light, sums, strict=True))]
        return [
            "-- the rows that count, summed per key",
            *_step("scan", keys + totals, bounded.table.relation, asked, len(keys)),
            "SELECT * FROM scan",
        ]
    limit = min([*limits, MOST - 1])
    if not bounded.dialect.is_faster_on_copies and rolled.has_unit_beside_keys and all(map(can_be_summed, known)):
        return _answer_at_once(whole, rolled, aliases, limit)
    return [
        f"-- units with at most {limit} rows in a key: no choice among them is clipped",
        *_step(
            "light",
            keys + [f"{total} AS f{i}" for i, total in enumerate(sums)],
            bounded.table.relation,
            [f"{COUNT} <= {limit}", *asked],
            len(keys),
            closing="),",
        ),
        "-- integer totals of each other privacy unit in each key",
        *rolled.totals([f"{COUNT} > {limit}"], closing="),"),
        "-- each total clipped, summed per key",
        *_step(
            "heavy",
            aliases + [f"{f.sum_units(f't{i}')} AS f{i}" for i, f in enumerate(whole)],
            "totals",
            [],
            len(keys),
            closing="),",
        ),
        "summed AS (SELECT * FROM light UNION ALL SELECT * FROM heavy)",
        "-- both, per key",
        *select(aliases + [f"{f.final(f.sum_keys(f'f{i}'))} AS f{i}" for i, f in enumerate(whole)]),
        "FROM summed",
        *group_by(len(keys)),
    ]


def _answer_at_once(whole: Sequence[FunctionalSql], rolled: _Rolled, keys: list[str], limit: int) -> list[str]:
    """Return the same SQL by one scan, if two would read all rows. Only units with more rows than that have groups."""
    unit = next(alias for alias, _ in rolled.bounding.units if alias.startswith("u"))
    is_heavy = f"{unit} IS NOT NULL"
    sums = [f"{f.final(f.sum_heavy_units(f't{i}', heavy=is_heavy))} AS f{i}" for i, f in enumerate(whole)]
    return [
        f"-- integer totals of each privacy unit with more than {limit} rows in a key, and of all others together",
        *rolled.totals([], closing=")", limit=limit),
        "-- each unit's total clipped, summed per key",
        *select(keys + sums),
        "FROM totals",
        *group_by(len(keys)),
    ]


def _step(
    name: str, columns: list[str], source: str, conditions: Sequence[str], groups: int, *, closing: str = ")"
) -> list[str]:
    body = indent_blocks(select(columns), [f"FROM {source}"], where(list(conditions)), group_by(groups))
    return [f"{name} AS (", *body, closing]


@lru_cache(maxsize=_TABLES)
def _rolled_row(table: Table, dialect: Dialect) -> RowSql:
    """Return the rows that count as a table. Derived columns are stored, and so are measures, clipped and rounded."""
    measures = {column: name for column, (name, _) in stored_measures(RowSql(table=table, dialect=dialect)).items()}
    columns = tuple(
        column
        if isinstance(column.derivation, Product | Computed)
        else replace(column, derivation=None, determined=table.determines(column))
        for column in table.columns
    )
    rolled = replace(table, relation=_RELATION, columns=columns)
    return RowSql(table=rolled, dialect=dialect, measures=MappingProxyType(measures))
