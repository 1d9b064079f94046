"""A question as one SQL statement that reads its table once and gives integers only.

Guarantee: one privacy unit changes functional f of one key by at most its `sensitivity`, and changes at most
`groups_per_unit` keys, on any data. Which keys (and, under a row cap, which rows) of a unit count is decided by md5 of
the policy's seed and canonical text, before WHERE, FILTER and the question's own restriction of keys. At a look those
that came first count, and so at all later ones. The statement cannot fail on data, and DuckDB and PostgreSQL give the
same integers.

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
from planner.lower.computed_conditions import compute_conditions, has_dear, list_conditions
from planner.lower.contribution_bounds import Bounding
from planner.lower.dialects.dialect import Dialect
from planner.lower.functional import FunctionalSql
from planner.lower.heavy_units.list_heavy import can_be_summed, list_heavy_units
from planner.lower.heavy_units.reach_heavy import HeavyRows, can_tell_apart, reads_own_values
from planner.lower.hopping import put_into_windows
from planner.lower.joins import join_lookups, join_members, list_busy_units, list_pinned, list_public_keys
from planner.lower.kept.named_steps import define_steps, keep_steps, merge_steps
from planner.lower.kept.rollup import may_keep, may_roll, rollup, rollup_per_unit
from planner.lower.key_tests import group_tests, pair_keys, row_tests, where_tests
from planner.lower.layout import group_by, indent_blocks, select, where
from planner.lower.look import arrival_tests, in_time_test, over_horizon
from planner.lower.lookups.public_conditions import PublicConditions, ask_public_rows
from planner.lower.member_conditions import MemberConditions, split_conditions
from planner.lower.read_columns import keep_columns, list_read
from planner.lower.row import RowSql
from planner.lower.sums.null_tests import drop_implied_tests
from planner.lower.unit_lists.keep_listed import keep_listed
from planner.lower.unit_rows import answer, list_needed, relation, unit_columns
from planner.lower.unit_values.store_values import join_with_values
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, split_front
from planner.question.condition import ALWAYS, Condition
from planner.question.plan import ReadRelation, Rewritten
from planner.question.question import Functional, Question, Term, UnitRows


def rewrite(question: Question, *, dialect: Dialect) -> Rewritten:
    """Return the SQL for the question's aggregates in one dialect: key columns k0, k1, ..., then f0, f1, ... as bigint.

    Groups without rows are absent, groups outside the question's keys may be present: the reader aligns them.

    Raises:
        KeyholeError: KH201, KH203, KH204, KH205, KH212 for what a question may not contain, KH900 should a
            functional's declared sensitivity not cover what one privacy unit can change.
    """
    question = over_horizon(question)
    if question.in_time is not None and (question.per_unit is not None or not question.table.is_row_unit):
        raise KeyholeError("KH900", "rows that count if they came in time, of units with several")
    if question.per_unit is None:
        (rewritten, steps), read = _rewrite_rows(question, dialect), question.table
    else:
        (rewritten, steps), read = _rewrite_per_unit(question, question.per_unit, dialect), question.per_unit.table
    relations, pinned = list_relations(read), list_pinned(read, dialect=dialect)
    rolled = None if rewritten.rollup is None else replace(rewritten.rollup, relations=relations, pinned=pinned)
    rewritten = replace(rewritten, rollup=rolled, relations=relations, pinned=pinned)
    if may_keep(question, read):
        return keep_steps(rewritten, steps, table=read.name, dialect=dialect)
    return replace(rewritten, sql=define_steps(steps, rewritten.sql, dialect=dialect))


def list_relations(table: Table) -> tuple[ReadRelation, ...]:
    """Return the relations of the source that hold a table's rows, each with its stored columns in the policy."""
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
    reading = _Reading.of(question, asked, dialect)
    among = reading.among
    plain = replace(question, functionals=asked)
    question, row, functionals = reading.read(known, front=reading.front)
    apart = None
    if question.table.is_row_unit:
        lines, steps = _scan_rows(question, row, functionals), row.table.steps
    else:
        scan = BoundedScan(question, row, Bounding(row, question.keys, question.as_of), tuple(functionals))
        scan = _list_crowded(scan, known)
        lines, steps = scan.lines(), scan.named_steps
        apart = _scan_apart(reading, scan)
    rolled = None
    # rows that count are as many as joined ones, have no columns for what one question asks, and are of all units
    is_plain = not (among.carried or row.truths or row.numbers or known.lists or known.own or reading.spares_rows)
    if (apart is None or dialect.is_faster_on_copies) and is_plain and may_roll(plain, known):
        every = join_lookups(join_members(known, dialect=dialect), dialect=dialect)
        reduced = [replace(one, functional=left) for one, left in zip(functionals, asked, strict=True)]
        rolled = rollup(replace(plain, table=every), RowSql(table=every, dialect=dialect), reduced)
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rolled, apart=apart), steps


@dataclass(frozen=True, slots=True)
class _Reading:
    """The reading of a question's table: the source of its conditions, whichever relation has the rows."""

    question: Question
    asked: tuple[Functional, ...]
    among: MemberConditions
    public: PublicConditions
    front: FrontConditions
    spares_rows: bool
    """True if expensive conditions read public rows alone: a rollup would ask them of every kept row."""
    dialect: Dialect

    @staticmethod
    def of(question: Question, asked: tuple[Functional, ...], dialect: Dialect) -> "_Reading":
        """Return the reading of a question over one row at a time, with functionals `asked`."""
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
        left = has_dear(stored, list_conditions(public.where, public.functionals), question.keys.columns)
        front = split_front(question, found=keys) if is_first and not (among.carried or left) else NOTHING
        whole = has_dear(known, list_conditions(question.where, asked), question.keys.columns)
        return _Reading(question, asked, among, public, front, whole and not left, dialect)

    def read(self, table: Table, *, front: FrontConditions = NOTHING) -> tuple[Question, RowSql, list[FunctionalSql]]:
        """Return the question over rows of its table, or of a table that has some of its rows, and its functionals.

        Parameters:
            front: what is asked of rows before they are joined.
        """
        question, dialect, public = self.question, self.dialect, self.public
        own = MemberConditions() if public.carried or public.demanded else self.among
        narrow = keep_columns(table, list_read(question, table, question.where, self.asked))
        joined = join_with_values(narrow, dialect=dialect, among=own, front=front)
        read = put_into_windows(joined, question, dialect=dialect)
        by_itself = (
            ALWAYS if self.question.table.reads_several_tables else front.own
        )  # also where its rows meet a list here
        looked_up = join_lookups(read, dialect=dialect, asked=public, front=by_itself if front else None)
        stored = RowSql(table=looked_up, dialect=dialect)
        row = keep_listed(
            _compute_at_look(question, stored, public.where, public.functionals, left=own.left),
            self.question.table,
            asked=by_itself,
            is_asked=bool(front),
        )
        checked = [
            FunctionalSql.of(row, f, where=ALWAYS, among=question.where, known=question.table)
            for f in question.functionals
        ]
        functionals = [replace(one, functional=left) for one, left in zip(checked, public.functionals, strict=True)]
        return replace(question, table=row.table, where=public.where, functionals=public.functionals), row, functionals


def _scan_apart(reading: _Reading, scan: BoundedScan) -> Rewritten | None:
    """Return the same question with the rows of heavy units apart from all others.

    Return None if no list can say which they are.

    It is worth reading where the list is kept, and the list is never made for one question: it is a pass over all rows.
    """
    question, known, dialect = reading.question, reading.question.table, reading.dialect
    if not (may_keep(question, known) and can_tell_apart(known) and all(map(can_be_summed, reading.asked))):
        return None
    if scan.bounding.chooses and (not scan.crowded or scan.crowded[-1].is_question_specific):
        return None
    read = list(list_read(question, known, question.where, reading.asked))
    if not reads_own_values(known, read):
        return None
    names = [*known.unit, *question.keys.names, *(name for one in reading.asked for name in one.columns)]
    every = keep_columns(replace(known, fixed=()), names)
    joined = join_lookups(join_members(every, dialect=dialect), dialect=dialect)
    plain = compute_conditions(RowSql(table=joined, dialect=dialect), ALWAYS, (), keys=question.keys.columns)
    crowded = scan.crowded[-1] if scan.crowded else None
    heavy = list_heavy_units(Bounding(plain, question.keys), reading.asked, crowded=crowded)
    before = merge_steps(scan.crowded, plain.table.steps)
    rows = HeavyRows(keep_columns(known, read), heavy, before, dialect, reading.front)
    question, row, functionals = reading.read(rows.reach_heavy_units(), front=reading.front)
    bounding = Bounding(row, question.keys)
    apart = BoundedScan(question, row, bounding, tuple(functionals), crowded=scan.crowded, only_heavy=True)
    made = Rewritten(
        dialect=dialect.name,
        sql="\n".join(apart.lines()),
        relations=list_relations(known),
        pinned=list_pinned(known, dialect=dialect),
    )
    return keep_steps(made, apart.named_steps, table=known.name, dialect=dialect)


def _asks_where_first(question: Question, dialect: Dialect) -> bool:
    """Return True if rows that WHERE does not keep decide about nothing: they are not counted, ranked or looked at."""
    table = question.table
    if question.as_of is not None or table.row_cap is not None:
        return False
    bounding = Bounding(RowSql(table=table, dialect=dialect), question.keys)
    return table.is_row_unit or not bounding.chooses or can_list(bounding)


def _list_crowded(scan: BoundedScan, known: Table) -> BoundedScan:
    """Return the scan with its groups chosen by a list of crowded units, if one can say which count.

    The list is made of the rows that all questions by these keys read. So it has other units than are on the question's
    lists, unless these say of each row of a unit another thing.
    """
    if not scan.can_list:
        return scan
    keys, dialect = scan.question.keys, scan.row.dialect
    table = known if any(one.is_about_rows for one in known.unit_lists) else replace(known, lists=())
    names = [*table.unit, *keys.names, *(key.name for key in table.fixed)]
    if not table.lists and not any(table.get_column(name).own for name in table.include_bases(names)):
        table = replace(table, columns=tuple(one for one in table.columns if not one.own), own=())
    table = keep_columns(table, names)
    joined = join_lookups(join_with_values(table, dialect=dialect), dialect=dialect)
    plain = compute_conditions(RowSql(table=joined, dialect=dialect), ALWAYS, (), keys=keys.columns)
    busy: tuple[NamedStep, ...] = ()
    if counts_rows(table.groups_per_unit):
        stored = replace(table, columns=tuple(one for one in table.columns if not one.own), own=())
        busy = list_busy_units(stored, table.groups_per_unit, dialect=dialect)
    return scan.list_crowded(keep_listed(plain, table), busy=busy, asked=bool(table.lists or table.own or table.fixed))


def _compute_at_look(
    question: Question,
    stored: RowSql,
    where: Condition,
    functionals: Sequence[Functional],
    *,
    left: Mapping[Condition, Condition] = MappingProxyType({}),
) -> RowSql:
    """Return the rows with expensive parts computed.

    A look computes those alone that it reads, which the owner's windows decide and no analyst.
    """
    keys = question.keys.columns
    row = compute_conditions(stored, where, functionals, keys=keys, left=left)
    if row is stored or question.as_of is None:
        return row
    tests = " AND ".join(f"({test})" for test in arrival_tests(stored, question.as_of, question.keys))
    there = f"(SELECT * FROM {stored.table.relation} WHERE {tests}) AS there"
    return compute_conditions(
        replace(stored, table=replace(stored.table, relation=there)), where, functionals, keys=keys, left=left
    )


def _scan_rows(question: Question, row: RowSql, functionals: Sequence[FunctionalSql]) -> list[str]:
    """Return SQL for the statement if each row is a privacy unit by itself: no total has to be bounded."""
    sums = [f.sum_rows(added=f.added_sql(), present=f.present()) for f in functionals]
    columns = [f"{row.grouped_column(name)} AS k{i}" for i, name in enumerate(question.keys.names)]
    columns += [f"{f.final(total)} AS f{i}" for i, (f, total) in enumerate(zip(functionals, sums, strict=True))]
    tests = [test for column, values in pair_keys(question) for test in row_tests(row, column, values)]
    if (as_of := question.as_of) is not None:
        tests = list(dict.fromkeys([*tests, *arrival_tests(row, as_of, question.keys)]))
    if question.in_time is not None:
        tests.append(in_time_test(row, question.in_time))
    tests += where_tests(row, question.where)
    scan = [
        "-- one scan: a group per key, one conditional integer sum per functional",
        *select(columns),
        f"FROM {question.table.relation}",
        *where(tests, comment="rows that WHERE keeps, in the range of the keys"),
        *group_by(len(question.keys.columns)),
    ]
    left = group_tests(row, question)
    if not left:
        return scan
    public = where(left, comment="groups outside the public keys stay behind")
    fence = row.dialect.materialized_fence
    if fence is not None:
        scan += ["-- every group: keys are tested once a group, not once a row", fence]
    return [f"WITH scan {row.dialect.materialized} (", *indent_blocks(scan), ")", "SELECT * FROM scan", *public]


def _rewrite_per_unit(question: Question, rows: UnitRows, dialect: Dialect) -> tuple[Rewritten, tuple[NamedStep, ...]]:
    """Return the SQL for the totals of each unit in each key, bounded as for any question, and the question over these.

    And its steps.
    """
    needed = list_needed(rows)
    narrow = keep_columns(rows.table, list_read(question, rows.table, rows.where, needed))
    stored = RowSql(
        table=put_into_windows(join_members(narrow, dialect=dialect), question, dialect=dialect), dialect=dialect
    )
    row = keep_listed(_compute_at_look(question, stored, rows.where, needed), rows.table)
    found = make_existence(Term(1, None, ALWAYS, 0))
    inner = replace(
        question,
        table=row.table,
        where=rows.where,
        functionals=(*needed, found),
        formula=TRUE,
        per_unit=None,
    )
    needs = tuple(FunctionalSql.of(row, f, where=ALWAYS, among=inner.where) for f in inner.functionals)
    bounded = BoundedScan(inner, row, Bounding(row, question.keys, question.as_of), needs, per_unit=True)
    bounded = _list_crowded(bounded, rows.table)
    steps = bounded.steps()
    kept = [*bounded.remaining_tests(), f"t{len(needs) - 1} IS NOT NULL"]
    source = [f"FROM {bounded.relation}", *where(kept, comment="of the public keys, with rows that count")]
    lines = [
        "WITH",
        *steps[:-1],
        f"{steps[-1].rstrip(',')},",
        *relation(unit_columns(rows, [alias for alias, _ in bounded.bounding.groups], dialect), source),
        *answer(question, rows, row, bounded.bounding),
    ]
    rolled = None
    if not (row.truths or row.numbers or rows.table.lists) and may_roll(inner, rows.table):
        every = RowSql(table=join_members(rows.table, dialect=dialect), dialect=dialect)
        totals = replace(inner, table=every.table)
        rolled = rollup_per_unit(question, rows, totals=totals, row=every, functionals=needs)
    return Rewritten(dialect=dialect.name, sql="\n".join(lines), rollup=rolled), bounded.named_steps
