"""A question as one SQL statement that reads its table once and returns integers only.

Guarantee: one privacy unit changes functional f of one key by at most its `sensitivity`, and changes at most
`groups_per_unit` keys, on any data. The keys of a unit that count, and under a row cap its rows that count, are chosen
by md5 of the policy's seed and canonical text. They are chosen before WHERE, FILTER and the question's own restriction
of keys. At a look those that came first count, and they count at all later looks. The statement cannot fail on data,
and DuckDB and PostgreSQL give the same integers.

References: docs/decisions/0002-rewriting.md; docs/proofs/units_over_a_horizon.md; ProBE appendix B.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from mechanisms.formula import TRUE
from planner.catalog.catalog import NamedStep, Table
from planner.errors import KeyholeError
from planner.functionals.unit_rows import make_existence
from planner.lower.bounded_scan import BoundedScan
from planner.lower.bounding.choose_groups import can_list, counts_rows
from planner.lower.computed_conditions import compute_conditions, has_expensive, list_conditions
from planner.lower.contribution_bounds import Bounding
from planner.lower.dialects.dialect import Dialect
from planner.lower.functional import FunctionalSql
from planner.lower.heavy_units.list_heavy import can_be_summed, list_heavy_units
from planner.lower.heavy_units.reach_heavy import HeavyRows, can_separate_heavy, reads_own_values
from planner.lower.hopping import put_into_windows
from planner.lower.joins import join_lookups, join_members, list_busy_units, list_pinned_relations, list_public_keys
from planner.lower.kept.named_steps import define_steps, keep_steps, merge_steps
from planner.lower.kept.rollup import make_rollup, make_unit_rollup, may_keep, may_roll_up
from planner.lower.key_tests import pair_keys, write_group_tests, write_row_tests, write_where_tests
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.look import extend_to_horizon, write_arrival_tests, write_in_time_test
from planner.lower.lookups.public_conditions import PublicConditions, ask_public_rows
from planner.lower.member_conditions import MemberConditions, split_conditions
from planner.lower.read_columns import keep_columns, list_read_columns
from planner.lower.row import RowSql
from planner.lower.sums.null_tests import drop_implied_tests
from planner.lower.unit_lists.keep_listed import keep_listed_units
from planner.lower.unit_rows import list_needed_functionals, write_answer, write_relation, write_unit_columns
from planner.lower.unit_values.store_values import join_with_values
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, split_front
from planner.question.condition import ALWAYS, Condition
from planner.question.plan import ReadRelation, Rewritten
from planner.question.question import Functional, Question, Term, UnitRows


def rewrite(question: Question, *, dialect: Dialect) -> Rewritten:
    """Return the SQL for the question's aggregates in one dialect: key columns k0, k1, ..., then f0, f1, ... as bigint.

    Groups without rows are absent, and groups outside the question's keys may be present. The reader aligns them.

    Raises:
        KeyholeError: KH201, KH203, KH204, KH205, KH212 for parts that a question may not contain, KH900 if a
            functional's declared sensitivity does not cover what one privacy unit can change.
    """
    question = extend_to_horizon(question)
    if question.in_time is not None and (question.per_unit is not None or not question.table.is_row_unit):
        raise KeyholeError("KH900", "only a table with a row as its unit can test that rows arrived in time")
    if question.per_unit is None:
        (rewritten, steps), read = _rewrite_rows(question, dialect), question.table
    else:
        (rewritten, steps), read = _rewrite_per_unit(question, question.per_unit, dialect), question.per_unit.table
    relations, pinned = list_relations(read), list_pinned_relations(read, dialect=dialect)
    rolled = (
        None if rewritten.rollup is None else replace(rewritten.rollup, relations=relations, pinned_relations=pinned)
    )
    rewritten = replace(rewritten, rollup=rolled, relations=relations, pinned_relations=pinned)
    if may_keep(question, read):
        return keep_steps(rewritten, steps, table=read.name, dialect=dialect)
    return replace(rewritten, sql=define_steps(steps, rewritten.sql, dialect=dialect))


def list_relations(table: Table) -> tuple[ReadRelation, ...]:
    """Return the source's relations that hold a table's rows, each with its stored columns in the policy."""
    return tuple(
        ReadRelation(
            one.relation,
            tuple((column.name, column.stored) for column in one.columns if column.stored is not None),
            one.keys,
        )
        for one in table.stored_tables
    )


def _rewrite_rows(question: Question, dialect: Dialect) -> tuple[Rewritten, tuple[NamedStep, ...]]:
    """Return the statement, and the steps that it has yet to define."""
    known = question.table
    asked = tuple(drop_implied_tests(functional, known) for functional in question.functionals)
    reading = _TableReading.from_question(question, asked, dialect)
    among = reading.member_conditions
    plain = replace(question, functionals=asked)
    question, row, functionals = reading.read_table(known, front=reading.front_conditions)
    apart = None
    if question.table.is_row_unit:
        lines, steps = _scan_rows(question, row, functionals), row.table.steps
    else:
        scan = BoundedScan(question, row, Bounding(row, question.keys, question.as_of), tuple(functionals))
        scan = _choose_by_list(scan, known)
        lines, steps = scan.write_lines(), scan.named_steps
        apart = _separate_heavy_units(reading, scan)
    rolled = None
    # rows that count are as many as joined ones, have no columns for what one question asks, and are of all units
    is_plain = not (among.carried or row.truths or row.numbers or known.lists or known.own or reading.spares_rows)
    if (apart is None or dialect.is_faster_on_copies) and is_plain and may_roll_up(plain, known):
        every = join_lookups(join_members(known, dialect=dialect), dialect=dialect)
        reduced = [replace(one, functional=left) for one, left in zip(functionals, asked, strict=True)]
        rolled = make_rollup(replace(plain, table=every), RowSql(table=every, dialect=dialect), reduced)
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rolled, from_kept_steps=apart), steps


@dataclass(frozen=True, slots=True)
class _TableReading:
    """The reading of a question's table, with the question's conditions split by where they are tested."""

    question: Question
    functionals: tuple[Functional, ...]
    member_conditions: MemberConditions
    public_conditions: PublicConditions
    front_conditions: FrontConditions
    spares_rows: bool
    """True if expensive conditions read public rows alone. A rollup would test them on every kept row."""
    dialect: Dialect

    @staticmethod
    def from_question(question: Question, asked: tuple[Functional, ...], dialect: Dialect) -> "_TableReading":
        """Return the reading of a question over single rows, with these functionals."""
        known, is_first = question.table, _asks_where_first(question, dialect)
        among = split_conditions(known, list_conditions(question.where, asked), dialect=dialect)
        public = ask_public_rows(
            known,
            question.where,
            asked,
            keys=question.keys.columns,
            dialect=dialect,
            is_first=is_first,
        )
        keys = list_public_keys(known, dialect=dialect, asked=public)
        stored = replace(known, columns=(*known.columns, *public.columns))
        left = has_expensive(stored, list_conditions(public.where, public.functionals), question.keys.columns)
        front = split_front(question, found=keys) if is_first and not (among.carried or left) else NOTHING
        whole = has_expensive(known, list_conditions(question.where, asked), question.keys.columns)
        return _TableReading(question, asked, among, public, front, whole and not left, dialect)

    def read_table(
        self, table: Table, *, front: FrontConditions = NOTHING
    ) -> tuple[Question, RowSql, list[FunctionalSql]]:
        """Return the question over rows of its table, or of a table that has some of its rows, and its functionals.

        Parameters:
            front: tests on rows before they are joined.
        """
        question, dialect, public = self.question, self.dialect, self.public_conditions
        own = MemberConditions() if public.carried or public.required else self.member_conditions
        narrow = keep_columns(table, list_read_columns(question, table, question.where, self.functionals))
        joined = join_with_values(narrow, dialect=dialect, among=own, front=front)
        read = put_into_windows(joined, question, dialect=dialect)
        by_itself = (
            ALWAYS if self.question.table.reads_several_tables else front.own
        )  # also where its rows meet a list here
        looked_up = join_lookups(read, dialect=dialect, asked=public, front=by_itself if front else None)
        stored = RowSql(table=looked_up, dialect=dialect)
        row = keep_listed_units(
            _compute_at_look(question, stored, public.where, public.functionals, left=own.remaining),
            self.question.table,
            asked=by_itself,
            is_asked=bool(front),
        )
        checked = [
            FunctionalSql.from_functional(row, f, where=ALWAYS, among=question.where, known=question.table)
            for f in question.functionals
        ]
        functionals = [replace(one, functional=left) for one, left in zip(checked, public.functionals, strict=True)]
        return replace(question, table=row.table, where=public.where, functionals=public.functionals), row, functionals


def _separate_heavy_units(reading: _TableReading, scan: BoundedScan) -> Rewritten | None:
    """Return the same question with the rows of heavy units separated from all others, or None if no list can do so.

    It pays if the list is kept. The list takes a pass over all rows, so it is never made for one question.
    """
    question, known, dialect = reading.question, reading.question.table, reading.dialect
    if not (may_keep(question, known) and can_separate_heavy(known) and all(map(can_be_summed, reading.functionals))):
        return None
    if scan.bounding.chooses_groups and (not scan.crowded_steps or scan.crowded_steps[-1].is_question_specific):
        return None
    read = list(list_read_columns(question, known, question.where, reading.functionals))
    if not reads_own_values(known, read):
        return None
    names = [*known.unit, *question.keys.names, *(name for one in reading.functionals for name in one.columns)]
    every = keep_columns(replace(known, fixed=()), names)
    joined = join_lookups(join_members(every, dialect=dialect), dialect=dialect)
    plain = compute_conditions(RowSql(table=joined, dialect=dialect), ALWAYS, (), keys=question.keys.columns)
    crowded = scan.crowded_steps[-1] if scan.crowded_steps else None
    heavy = list_heavy_units(Bounding(plain, question.keys), reading.functionals, crowded=crowded)
    before = merge_steps(scan.crowded_steps, plain.table.steps)
    rows = HeavyRows(keep_columns(known, read), heavy, before, dialect, reading.front_conditions)
    question, row, functionals = reading.read_table(rows.join_heavy_units(), front=reading.front_conditions)
    bounding = Bounding(row, question.keys)
    apart = BoundedScan(question, row, bounding, tuple(functionals), crowded_steps=scan.crowded_steps, only_heavy=True)
    made = Rewritten(
        dialect=dialect.name,
        sql="\n".join(apart.write_lines()),
        relations=list_relations(known),
        pinned_relations=list_pinned_relations(known, dialect=dialect),
    )
    return keep_steps(made, apart.named_steps, table=known.name, dialect=dialect)


def _asks_where_first(question: Question, dialect: Dialect) -> bool:
    """Return True if rows that WHERE drops affect nothing: they are not counted, ranked or looked at."""
    table = question.table
    if question.as_of is not None or table.row_cap is not None:
        return False
    bounding = Bounding(RowSql(table=table, dialect=dialect), question.keys)
    return table.is_row_unit or not bounding.chooses_groups or can_list(bounding)


def _choose_by_list(scan: BoundedScan, known: Table) -> BoundedScan:
    """Return the scan with its groups chosen by a list of crowded units, if a list can decide which groups count.

    The list is made from the rows that all questions by these keys read. So it includes units that are not on the
    question's own lists, unless these lists judge single rows of a unit.
    """
    if not scan.can_list:
        return scan
    keys, dialect = scan.question.keys, scan.row.dialect
    table = known if any(one.is_about_rows for one in known.unit_lists) else replace(known, lists=())
    names = [*table.unit, *keys.names, *(key.name for key in table.fixed)]
    if not table.lists and not any(table.get_column(name).is_unit_value for name in table.include_bases(names)):
        table = replace(table, columns=tuple(one for one in table.columns if not one.is_unit_value), own=())
    table = keep_columns(table, names)
    joined = join_lookups(join_with_values(table, dialect=dialect), dialect=dialect)
    plain = compute_conditions(RowSql(table=joined, dialect=dialect), ALWAYS, (), keys=keys.columns)
    busy: tuple[NamedStep, ...] = ()
    if counts_rows(table.groups_per_unit):
        stored = replace(table, columns=tuple(one for one in table.columns if not one.is_unit_value), own=())
        busy = list_busy_units(stored, table.groups_per_unit, dialect=dialect)
    return scan.choose_by_list(
        keep_listed_units(plain, table), busy=busy, asked=bool(table.lists or table.own or table.fixed)
    )


def _compute_at_look(
    question: Question,
    stored: RowSql,
    where: Condition,
    functionals: Sequence[Functional],
    *,
    left: Mapping[Condition, Condition] = MappingProxyType({}),
) -> RowSql:
    """Return the rows with expensive parts computed.

    A look computes them only for the rows that it reads. The owner's windows decide which rows these are, and no
    analyst.
    """
    keys = question.keys.columns
    row = compute_conditions(stored, where, functionals, keys=keys, remaining=left)
    if row is stored or question.as_of is None:
        return row
    tests = " AND ".join(f"({test})" for test in write_arrival_tests(stored, question.as_of, question.keys))
    there = f"(SELECT * FROM {stored.table.relation} WHERE {tests}) AS there"
    return compute_conditions(
        replace(stored, table=replace(stored.table, relation=there)), where, functionals, keys=keys, remaining=left
    )


def _scan_rows(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> list[str]:
    """Return the SQL of the statement if each row is a privacy unit: no total has to be bounded."""
    sums = [f.sum_rows(added=f.write_added(), present=f.write_present()) for f in functionals]
    columns = [f"{row.write_grouped_column(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    columns += [f"{f.write_final(total)} AS f{i}" for i, (f, total) in enumerate(zip(functionals, sums, strict=True))]
    tests = [test for column, values in pair_keys(question) for test in write_row_tests(row, column, values)]
    if (as_of := question.as_of) is not None:
        tests = list(dict.fromkeys([*tests, *write_arrival_tests(row, as_of, question.keys)]))
    if question.in_time is not None:
        tests.append(write_in_time_test(row, question.in_time))
    tests += write_where_tests(row, question.where)
    scan = [
        "-- one scan: a group per key, one conditional integer sum per functional",
        *write_select(columns),
        f"FROM {question.table.relation}",
        *write_where(tests, comment="rows that WHERE keeps, in the range of the keys"),
        *write_group_by(len(question.keys.columns)),
    ]
    left = write_group_tests(row, question)
    if not left:
        return scan
    public = write_where(left, comment="groups outside the public keys stay behind")
    fence = row.dialect.materialized_fence
    if fence is not None:
        scan += ["-- every group: keys are tested once a group, not once a row", fence]
    return [f"WITH scan {row.dialect.materialized} (", *indent_blocks(scan), ")", "SELECT * FROM scan", *public]


def _rewrite_per_unit(question: Question, rows: UnitRows, dialect: Dialect) -> tuple[Rewritten, tuple[NamedStep, ...]]:
    """Return the SQL of the bounded totals of each unit in each key and of the question over them, and its steps."""
    needed = list_needed_functionals(rows)
    narrow = keep_columns(rows.table, list_read_columns(question, rows.table, rows.where, needed))
    stored = RowSql(
        table=put_into_windows(join_members(narrow, dialect=dialect), question, dialect=dialect), dialect=dialect
    )
    row = keep_listed_units(_compute_at_look(question, stored, rows.where, needed), rows.table)
    found = make_existence(Term(1, None, ALWAYS, 0))
    inner = replace(
        question,
        table=row.table,
        where=rows.where,
        functionals=(*needed, found),
        formula=TRUE,
        per_unit=None,
    )
    needs = tuple(FunctionalSql.from_functional(row, f, where=ALWAYS, among=inner.where) for f in inner.functionals)
    bounded = BoundedScan(inner, row, Bounding(row, question.keys, question.as_of), needs, is_per_unit=True)
    bounded = _choose_by_list(bounded, rows.table)
    steps = bounded.write_steps()
    kept = [*bounded.write_remaining_tests(), f"t{len(needs) - 1} IS NOT NULL"]
    source = [f"FROM {bounded.relation}", *write_where(kept, comment="of the public keys, with rows that count")]
    lines = [
        "WITH",
        *steps[:-1],
        f"{steps[-1].rstrip(',')},",
        *write_relation(write_unit_columns(rows, [alias for alias, _ in bounded.bounding.groups], dialect), source),
        *write_answer(question, rows, row, bounded.bounding),
    ]
    rolled = None
    if not (row.truths or row.numbers or rows.table.lists) and may_roll_up(inner, rows.table):
        every = RowSql(table=join_members(rows.table, dialect=dialect), dialect=dialect)
        totals = replace(inner, table=every.table)
        rolled = make_unit_rollup(question, rows, totals=totals, row=every, functionals=needs)
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rolled), bounded.named_steps
