"""Joins of tables in SQL: several private tables, or public values beside a private row.

Guarantee: a joined row of several tables has one row of each table, all of one privacy unit. So every joined row
belongs to the unit in its unit columns. Rows without a unit join nothing. At most `Member.rows` rows of one unit are
joined from each table, so one unit has at most the product of these numbers as joined rows, whatever the data. The
joined rows of a unit are chosen by md5 of the table's seed and of everything that questions can see of the row, before
WHERE. The choice is the same for every question. Unit columns are compared as bounding reads them: text byte by byte.

Looked-up columns come from pinned values in the statement. If there are many, they are sent with it as a relation. A
row finds one of them at most, so this join neither adds nor drops rows, whatever the data.

References: docs/decisions/0007-joins.md; docs/decisions/0009-unit-joins.md; docs/decisions/0034-rows-before-a-join.md.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from planner.catalog.catalog import Column, Lookup, LookupValues, Member, NamedStep, SqlType, Table, Value
from planner.catalog.domains import encode_value
from planner.lower.dialects.dialect import Dialect
from planner.lower.kept.named_steps import make_step, merge_steps
from planner.lower.lookups.public_conditions import (
    Place,
    PublicConditions,
    is_expensive_at,
    look_up_at_once,
    write_asked_rows,
    write_whole_reads,
)
from planner.lower.member_conditions import MemberConditions, find_member_place, write_computed_member
from planner.lower.read_columns import keep_columns
from planner.lower.row import RowSql
from planner.lower.unit_paths.carried_values import find_longest_lookup_texts, write_shortened_column
from planner.lower.unit_paths.reach import add_unit_columns
from planner.lower.whole_joins.fences import write_any_value, write_row_fence
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, PublicKeys, ask_rows, test_rows
from planner.question.condition import Condition, find_columns
from planner.question.plan import PinnedColumn, PinnedRelation

MOST_SPELLED = 200  # rows in the statement: engines parse tens of thousands in seconds, and a few hundred at once
_NOBODY = "keyhole_nobody"  # 1 for the one row of a joined table that is nobody's
_STEPS_OF_ONE = 2.0**20  # how finely doubles are told apart when rows are drawn
_HASHED_DOUBLES = 1e9  # up to where: in such steps a number has 50 binary digits


def join_members(
    table: Table, *, dialect: Dialect, among: MemberConditions | None = None, front: FrontConditions = NOTHING
) -> Table:
    """Return the table with its join as its relation: that of its members, or with the units at the end of its path.

    Any other table is returned unchanged.

    Parameters:
        among: conditions that are computed before the join. The table gets a column for each.
        front: tests on rows before they are joined. If there are tests, the relation has one more row, whose unit is
            NULL.
    """
    if not table.members:
        return add_unit_columns(table, dialect=dialect, longest=find_longest_lookup_texts(table), front=front)
    among = among or MemberConditions()
    identifier = dialect.spelling.quote_identifier
    stored = {column.name for column in table.columns if column.derivation is None}
    shown = [
        f"m{i}.{identifier(named)}"
        for i, member in enumerate(table.members)
        for _, named in member.columns
        if named in stored and (i == 0 or named not in table.unit)
    ]
    shown += [identifier(column.name) for column in among.columns]
    looked_up = find_longest_lookup_texts(table)
    read = [
        _read_member(
            member,
            dialect,
            looked_up=looked_up,
            carried=stored,
            front=front.find_member_conditions(i) if front else None,
        )
        for i, member in enumerate(table.members)
    ]
    if front:
        unit = shown.index(f"m0.{identifier(table.unit[0])}")
        everybody = " AND ".join(f"m{i}.{_NOBODY} = 0" for i in range(1, len(read)))
        shown[unit] = f"CASE WHEN {everybody} THEN {shown[unit]} END AS {identifier(table.unit[0])}"
    bounded, steps = [relation for relation, _ in read], merge_steps(*(steps for _, steps in read))
    for place, conditions in among.carried.items():
        bounded[place] = _compute_member_conditions(table, place, bounded[place], conditions, dialect)
    first, *others = bounded
    joined = [f"FROM {first} AS m0"]
    for i, other in enumerate(others, start=1):
        equal = " AND ".join(f"m0.keyhole_u{j} = m{i}.keyhole_u{j}" for j in range(len(table.unit)))
        joined.append(f"JOIN {other} AS m{i} ON {equal}")
    relation = f"(SELECT {', '.join(shown)} {' '.join(joined)}{write_row_fence(dialect)}) AS together"
    return replace(table, relation=relation, members=(), columns=(*table.columns, *among.columns), steps=steps)


def _compute_member_conditions(
    table: Table, place: int, relation: str, conditions: Mapping[Condition, str], dialect: Dialect
) -> str:
    """Return SQL for a member's rows with the truth of conditions. A unit has at most as many rows as are joined."""
    own = tuple(column for column in table.columns if find_member_place(table, column.name) == place)
    stored = {column.name for column in own if column.derivation is None}
    # a unit's column is called alike in all members, and is said to be the first one's
    others = [
        Column(named, SqlType.OTHER, "")
        for _, named in table.members[place].columns
        if named in table.unit and named not in stored
    ]
    units = [Column(f"keyhole_u{j}", SqlType.OTHER, "") for j in range(len(table.unit))]
    of_member = replace(table, relation=f"{relation} AS bounded", columns=(*own, *others, *units), members=())
    read = of_member.include_bases(name for condition in conditions for name in find_columns(condition))
    if any(isinstance(column.derivation, Lookup) for column in own if column.name in read):
        of_member = join_lookups(of_member, dialect=dialect)
    names = [column.name for column in (*own, *others, *units) if column.derivation is None]
    kept = [dialect.spelling.quote_identifier(name) for name in names]
    return write_computed_member(RowSql(table=of_member, dialect=dialect), conditions, kept=kept)


def _read_member(
    member: Member,
    dialect: Dialect,
    *,
    looked_up: Mapping[str, int],
    carried: Collection[str],
    front: FrontConditions | None,
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return SQL for a table's joined rows with the unit's columns beside them, and the steps that they read.

    Units with too many rows are found first, because a hash of every row of a large table would be expensive. One more
    unit is among them, so that drawing rows costs the same whether or not a unit has too many. Long values are
    shortened here, once for each row. Behind the join they would be read once for each joined row.

    Parameters:
        carried: the columns that the join keeps, by their names in it. All columns decide which rows are drawn.
        front: tests on most rows. With tests one row of no unit is among them, marked by `keyhole_nobody`. None if no
            table of the join has tests.
    """
    names, units = dict(member.columns), [f"keyhole_u{j}" for j in range(len(member.table.unit))]
    rows = _MemberRows(names, looked_up, dialect)
    narrow = keep_columns(member.table, [own for own, named in member.columns if named in carried])
    read, steps = rows.select_columns(narrow, front=front or NOTHING)
    kept = [
        dialect.spelling.quote_identifier(names[column.name]) for column in narrow.columns if column.derivation is None
    ]
    nobody, told = "", ""
    if front is not None:
        anybody = [write_any_value(dialect, member.table.get_column(name)) for name in member.table.unit]
        nobody = f" UNION ALL SELECT {', '.join([*['NULL'] * len(kept), *anybody])}, 1"
        told = f", 0 AS {_NOBODY}"
    if member.table.has_key(member.table.unit):  # a unit has one row
        if front is not None:
            read = f"(SELECT {', '.join([*kept, *units])}{told} FROM {read} AS rows_of{nobody})"
        return read, steps
    counted = _count_rows(rows.select_units(member.table), units)
    many = _list_heavy_units(counted, units, member.rows)
    drawn, steps = rows.select_columns(member.table, among=many.name)  # texts are cut behind this join, of few rows
    stored = tuple(column for column in member.table.columns if column.derivation is None)
    seen = replace(member.table, columns=tuple(replace(c, name=names[c.name]) for c in stored))
    order = _list_draw_order(seen, dialect)
    ordered = ", ".join(f"keyhole_o{j}{suffix}" for j, (_, suffix) in enumerate(order))
    orders = ", ".join(f"{sql} AS keyhole_o{j}" for j, (sql, _) in enumerate(order))
    place = f"row_number() OVER (PARTITION BY {', '.join(units)} ORDER BY {ordered}) AS keyhole_place"
    every = [*(dialect.spelling.quote_identifier(names[column.name]) for column in stored), *units]
    firsts = make_step(
        f"SELECT {', '.join(every)} FROM (SELECT *, {place} FROM (SELECT *, {orders} FROM {drawn} AS rows_of) AS hashed"
        f") AS placed WHERE keyhole_place <= {member.rows}"
        f" /* of units with more than {member.rows} rows: the first in the order of md5 */",
    )
    shown, met = ", ".join([*kept, *units]), " AND ".join(f"{unit} = keyhole_m{j}" for j, unit in enumerate(units))
    relation = (
        f"(SELECT {shown}{told} FROM {read} AS rows_of LEFT JOIN {many.name} ON {met} WHERE keyhole_m0 IS NULL"
        f" UNION ALL SELECT {shown}{told} FROM {firsts.name}{nobody})"
    )
    return relation, merge_steps(steps, [counted, many, firsts])


@dataclass(frozen=True, slots=True)
class _MemberRows:
    """The rows of a joined table in the form in which they are carried to the join.

    `names` are the join's names of its columns. `looked_up` is the least length to which texts are cut, by these names.
    """

    names: Mapping[str, str]
    looked_up: Mapping[str, int]
    dialect: Dialect

    def select_columns(
        self, table: Table, *, among: str = "", front: FrontConditions = NOTHING
    ) -> tuple[str, tuple[NamedStep, ...]]:
        """Return SQL for the rows with the table's columns and the unit's beside them, and the steps that they read.

        Parameters:
            among: a step of units, whose rows alone are returned. Empty for all rows.
            front: tests on the rows.
        """
        row, units = self._add_unit_columns(table, front)
        stored = [column for column in row.table.columns if column.derivation is None]
        columns = [f"{self._carry(row, one)} AS {self._quote(self.names[one.name])}" for one in stored]
        source, asked = test_rows(row, front) if table.path is None else (row.table.relation, [])
        return self._select(row, units, columns, among, source=source, asked=asked), row.table.steps

    def select_units(self, table: Table) -> str:
        """Return SQL for the same rows with the unit's columns alone."""
        row, units = self._add_unit_columns(keep_columns(table, ()))
        return self._select(row, units, [], "", source=row.table.relation)

    def _add_unit_columns(self, table: Table, front: FrontConditions = NOTHING) -> tuple[RowSql, list[str]]:
        """Return a row of the table, and its unit's columns as they are carried."""
        longest = {own: self.looked_up[named] for own, named in self.names.items() if named in self.looked_up}
        reached = add_unit_columns(table, dialect=self.dialect, longest=longest, front=front)
        row = RowSql(table=reached, dialect=self.dialect)
        units = []
        for name in table.unit:
            carried = self._carry(row, row.table.get_column(name))
            units.append(row.write_column(name) if carried == self._quote(name) else carried)
        return row, units

    def _select(
        self,
        row: RowSql,
        units: Sequence[str],
        columns: Sequence[str],
        among: str,
        *,
        source: str,
        asked: Sequence[str] = (),
    ) -> str:
        shown = [*columns, *(f"{value} AS keyhole_u{j}" for j, value in enumerate(units))]
        present = " AND ".join([*(f"({row.write_column(name)}) IS NOT NULL" for name in row.table.unit), *asked])
        if among:
            source += f" JOIN {among} ON {' AND '.join(f'{value} = keyhole_m{j}' for j, value in enumerate(units))}"
        return f"(SELECT {', '.join(shown)} FROM {source} WHERE {present})"

    def _carry(self, row: RowSql, column: Column) -> str:
        return write_shortened_column(row, column, longest=self.looked_up.get(self.names[column.name], 0))

    def _quote(self, name: str) -> str:
        return self.dialect.spelling.quote_identifier(name)


def list_busy_units(table: Table, most: int, *, dialect: Dialect) -> tuple[NamedStep, ...]:
    """Return steps of which the last lists all units that could have more than `most` joined rows.

    The list also has the first unit in order, so that it is never empty. Its columns are `keyhole_m0`, `keyhole_m1` and
    so on, the unit's columns as the join has them. A unit with fewer rows may be listed. The listed units are the same
    for all questions, and the rows of each unit are counted once for all groupings of the table. There are no steps if
    no unit can have more than one row.

    Parameters:
        table: a table whose members are not joined yet, without units' own values.
    """
    units = [f"keyhole_u{j}" for j in range(len(table.unit))]
    if not table.members:
        narrow = keep_columns(table, ())
        row = RowSql(
            table=add_unit_columns(narrow, dialect=dialect, longest=find_longest_lookup_texts(narrow)), dialect=dialect
        )
        read = [row.write_column(name) for name in table.unit]
        shown = ", ".join(f"{value} AS {unit}" for value, unit in zip(read, units, strict=True))
        present = " AND ".join(f"({value}) IS NOT NULL" for value in read)
        counted = _count_rows(f"(SELECT {shown} FROM {row.table.relation} WHERE {present})", units)
        return merge_steps(row.table.steps, [counted, _list_heavy_units(counted, units, most)])
    looked_up = find_longest_lookup_texts(table)
    steps, counts = [], []
    several = [member for member in table.members if not member.table.has_key(member.table.unit)]
    if not several:
        return ()
    for member in several:
        rows = _MemberRows(dict(member.columns), looked_up, dialect)
        counts.append(_count_rows(rows.select_units(member.table), units))
        steps.append(rows.select_columns(keep_columns(member.table, ()))[1])
    named = [f"keyhole_m{j}" for j in range(len(units))]
    joined = counts[0].name + " AS n0"
    for i, one in enumerate(counts[1:], start=1):
        joined += f" JOIN {one.name} AS n{i} ON {' AND '.join(f'n0.{name} = n{i}.{name}' for name in named)}"
    # a double holds every product, and rounds none above `most` down to it
    double = dialect.spelling.double_type
    product = " * ".join(
        dialect.spelling.write_cast(f"LEAST(n{i}.keyhole_n, {member.rows})", double) for i, member in enumerate(several)
    )
    shown = ", ".join(f"n0.{name} AS {name}" for name in named)
    of_many = f"SELECT {shown} FROM {joined} WHERE {product} > {most}"
    first = f"SELECT {', '.join(named)} FROM {counts[0].name} ORDER BY {', '.join(named)} LIMIT 1"
    return merge_steps(*steps, [*counts, make_step(f"{of_many} UNION ({first})")])


def _count_rows(rows: str, units: Sequence[str]) -> NamedStep:
    """Return the step that counts the rows of each unit."""
    shown = ", ".join(f"{unit} AS keyhole_m{j}" for j, unit in enumerate(units))
    return make_step(f"SELECT {shown}, count(*) AS keyhole_n FROM {rows} AS rows_of GROUP BY {', '.join(units)}")


def _list_heavy_units(counted: NamedStep, units: Sequence[str], most: int) -> NamedStep:
    """Return the step of the units with more rows than the limit, and one more unit.

    So the rows of listed units are always read: engines skip a join with an empty relation. The extra unit is the first
    in order, because engines may compute a step again wherever it is read.
    """
    named = ", ".join(f"keyhole_m{j}" for j in range(len(units)))
    heavy = f"SELECT {named} FROM {counted.name} WHERE keyhole_n > {most}"
    first = f"SELECT {named} FROM {counted.name} ORDER BY {named} LIMIT 1"
    return make_step(f"{heavy} UNION ({first})")


def _list_draw_order(table: Table, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the order in which a unit's rows are joined, as expressions, each with its suffix in ORDER BY.

    First comes a hash of all columns as far as questions see them. Then come doubles, because the hash has a coarse
    text of them. Rows that are equal by all of these are equal to every question.
    """
    row, spelling = RowSql(table=table, dialect=dialect), dialect.spelling
    seen = sorted((one for one in table.columns if one.sql_type is not SqlType.OTHER), key=lambda one: one.name)
    texts = [spelling.quote_text(table.seed), *(f"COALESCE({_write_hashed_text(row, column)}, '')" for column in seen)]
    doubles = [row.write_column(column.name) for column in seen if column.sql_type is SqlType.DOUBLE]
    return [("md5(" + " || '|' || ".join(texts) + ")", dialect.byte_order), *((double, "") for double in doubles)]


def _write_hashed_text(row: RowSql, column: Column) -> str:
    """Return SQL for a column as text, no longer than conditions see it, the same on every engine. NULL stays NULL."""
    spelling = row.dialect.spelling
    if column.sql_type is SqlType.TEXT:
        return row.write_canonical(row.write_cut_text(column.name), column)
    value = row.write_column(column.name)
    if column.sql_type is not SqlType.DOUBLE:
        return row.write_canonical(value, column)
    # a power of two multiplies exactly, so that all engines cut at the same place; beyond it every value has one text
    low, high = spelling.write_double(-_HASHED_DOUBLES), spelling.write_double(_HASHED_DOUBLES)
    steps = spelling.write_cast(f"floor({value} * {spelling.write_double(_STEPS_OF_ONE)})", "bigint")
    near = f"{value} > {low} AND {value} < {high}"
    return (
        f"CASE WHEN {near} THEN {spelling.write_cast(steps, spelling.text_type)} WHEN {value} IS NOT NULL THEN '-' END"
    )


def join_lookups(
    table: Table, *, dialect: Dialect, asked: PublicConditions | None = None, front: Condition | None = None
) -> Table:
    """Return the table as the join of its rows with the public tables in which its columns are looked up.

    The looked-up columns become stored columns. A large pinned relation is read even if the tests leave no private
    row.

    Parameters:
        asked: conditions that are computed on pinned rows. The table gets a column for each.
        front: tests on private rows before the join. ALWAYS if only an earlier step leaves out rows, None if no step
            does.
    """
    together = _group_lookups(table, dialect)
    if not together:
        return table
    table = look_up_at_once(table)
    row, identifier = RowSql(table=table, dialect=dialect), dialect.spelling.quote_identifier
    stored = [identifier(column.name) for column in table.columns if column.derivation is None]
    found = [f"{one.name_value(column)} AS {identifier(column.name)}" for one in together for column in one.columns]
    truths = () if asked is None else asked.columns
    found += [identifier(column.name) for column in truths]
    searched = (
        [] if asked is None else [step for one in together if (step := one.make_search_step(row, asked)) is not None]
    )
    is_large = any(not one.is_spelled for one in together)
    source, keys = table.relation, [row.write_column(one.base.name) for one in together]
    if is_large and front is not None:
        source, keys = ask_rows(row, FrontConditions(front), shown=stored, keys=[one.base.name for one in together])
    joins = [one.write_join(row, asked, key=key) for one, key in zip(together, keys, strict=True)]
    joined = f"SELECT {', '.join([*stored, *found])} FROM {source} {' '.join(joins)}{write_whole_reads(searched)}"
    relation = f"({joined}{write_row_fence(dialect) if is_large else ''}) AS joined"
    columns = tuple(
        replace(column, derivation=None, is_determined=table.determines(column))
        if isinstance(column.derivation, Lookup)
        else column
        for column in table.columns
    )
    steps = merge_steps(table.steps, searched)
    return replace(table, relation=relation, columns=(*columns, *truths), steps=steps)


def list_public_keys(table: Table, *, dialect: Dialect, asked: PublicConditions) -> tuple[PublicKeys, ...]:
    """Return the keys of those pinned rows that can make a private row count: they satisfy the question's conditions.

    Parameters:
        asked: conditions on pinned rows, as for `join_lookups`.
    """
    row = RowSql(table=look_up_at_once(table), dialect=dialect)
    several = (one for one in _group_lookups(table, dialect) if one.place in asked.required)
    return tuple(PublicKeys(one.base.name, one.write_key_select(row, asked)) for one in several)


def list_pinned_relations(table: Table, *, dialect: Dialect) -> tuple[PinnedRelation, ...]:
    """Return the pinned values that a statement over the table reads as relations."""
    return tuple(one.pinned for one in _group_lookups(table, dialect) if not one.is_spelled)


@dataclass(frozen=True, slots=True)
class _LookupGroup:
    """Columns that are looked up by the same values of the same column, so that one join finds them all."""

    number: int
    dialect: Dialect
    base: Column
    pairs: LookupValues
    columns: tuple[Column, ...]

    @property
    def is_spelled(self) -> bool:
        """True if the values are in the statement. A relation is read faster, but has to be sent."""
        return len(self.pairs) <= MOST_SPELLED

    def name_value(self, column: Column) -> str:
        """Return the name of the joined relation's column with the values of a looked-up column."""
        if column not in self._dependent_columns:
            return f"keyhole_k{self.number}"
        return f"keyhole_v{self.number}_{self._dependent_columns.index(column)}"

    @property
    def _dependent_columns(self) -> tuple[Column, ...]:
        """The columns whose values differ from the values by which they are looked up."""
        known = self.pairs.known  # of an empty table every column has the same object
        return tuple(column for column in self.columns if not known or _get_pairs(column).found is not known)

    def write_join(self, row: RowSql, asked: PublicConditions | None, *, key: str) -> str:
        """Return SQL for the join of the private relation with the pinned values, by a value of its rows."""
        searched = None if asked is None else self.make_search_step(row, asked)
        pinned = f"({self._write_tested_rows(row, asked)})" if searched is None else searched.name
        joined = "LEFT JOIN" if asked is None or self.place not in asked.required else "JOIN"
        return f"{joined} {pinned} AS pinned{self.number} ON {key} = {self._key}"

    def write_key_select(self, row: RowSql, asked: PublicConditions) -> str:
        """Return SQL for the keys of pinned rows that satisfy the conditions on them.

        Expensive conditions are tested twice, on public rows alone. Engines may wait forever for a step that is read
        both in front of a join and behind it.
        """
        return f"SELECT {self._key} FROM ({self._write_tested_rows(row, asked)}) AS wanted"

    def make_search_step(self, row: RowSql, asked: PublicConditions) -> NamedStep | None:
        """Return the pinned rows as a step of their own if their tests are expensive, else None."""
        is_dear = is_expensive_at(row, self.place, asked)
        return make_step(self._write_tested_rows(row, asked), asked=True) if is_dear else None

    def _write_tested_rows(self, row: RowSql, asked: PublicConditions | None) -> str:
        """Return SQL for the pinned rows with their tests."""
        if asked is None or self.place not in {*asked.carried, *asked.required}:
            return self._write_rows()
        values = list(dict.fromkeys([self._key, *map(self.name_value, self.columns)]))
        named = [
            f"{self.name_value(one)} AS {self.dialect.spelling.quote_identifier(one.name)}" for one in self.columns
        ]
        rows = f"(SELECT {', '.join([*values, *named])} FROM ({self._write_rows()}) AS pinned) AS named"
        return write_asked_rows(row, self.place, asked, rows=rows, kept=values)

    @property
    def _key(self) -> str:
        return f"keyhole_k{self.number}"

    @property
    def place(self) -> Place:
        return self.base.name, id(self.pairs.known)

    def _write_rows(self) -> str:
        shown = [f"{self._cast('k', self.base)} AS {self._key}"]
        shown += [
            f"{self._cast(f'v{i}', column)} AS {self.name_value(column)}"
            for i, column in enumerate(self._dependent_columns)
        ]
        return f"SELECT {', '.join(shown)} FROM {self._write_spelled_rows() if self.is_spelled else self.pinned.name}"

    @property
    def pinned(self) -> PinnedRelation:
        """The values as a relation with the columns k, v0, v1 and so on."""
        columns = (
            self._make_pinned_column("k", self.base, self.pairs.known),
            *(
                self._make_pinned_column(f"v{i}", column, _get_pairs(column).found)
                for i, column in enumerate(self._dependent_columns)
            ),
        )
        digests = [
            _find_digest(self.pairs, "known"),
            *(_find_digest(_get_pairs(column), "found") for column in self._dependent_columns),
        ]
        meant = "\n".join(f"{c.type_name} {digest}" for c, digest in zip(columns, digests, strict=True))
        return PinnedRelation(f"keyhole_pinned_{sha256(meant.encode()).hexdigest()[:32]}", columns)

    def _write_spelled_rows(self) -> str:
        names = ("k", *(f"v{i}" for i in range(len(self._dependent_columns))))
        types = (self.base, *self._dependent_columns)
        rows = list(
            zip(self.pairs.known, *(_get_pairs(column).found for column in self._dependent_columns), strict=True)
        )
        if self._dependent_columns == self.columns:  # else whether there is such a row is asked as well
            rows = [row for row in rows if any(value is not None for value in row[1:])]
        if not rows:
            return f"(SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE FALSE) AS given"
        spelled = (
            ", ".join(self._write_constant(value, column) for value, column in zip(row, types, strict=True))
            for row in rows
        )
        return f"(VALUES {', '.join(f'({row})' for row in spelled)}) AS given({', '.join(names)})"

    def _make_pinned_column(self, name: str, column: Column, values: tuple[Value | None, ...]) -> PinnedColumn:
        return PinnedColumn(name, self._find_type(column), column.sql_type is SqlType.INTEGER, values)

    def _write_constant(self, value: Value | None, column: Column) -> str:
        return "NULL" if value is None else self.dialect.spelling.write_constant(value, column=column)

    def _cast(self, expression: str, column: Column) -> str:
        return self.dialect.spelling.write_cast(expression, self._find_type(column))

    def _find_type(self, column: Column) -> str:
        """Return a type that holds every pinned value, whatever the private column's width."""
        return "bigint" if column.sql_type is SqlType.INTEGER else self.dialect.spelling.write_type(column)


def _group_lookups(table: Table, dialect: Dialect) -> tuple[_LookupGroup, ...]:
    table = look_up_at_once(table)
    found: dict[tuple[str, int], list[Column]] = {}
    for column in table.columns:
        if isinstance(column.derivation, Lookup):
            found.setdefault((column.derivation.column, id(column.derivation.pairs.known)), []).append(column)
    return tuple(
        _LookupGroup(i, dialect, table.get_column(base), _get_pairs(columns[0]), tuple(columns))
        for i, ((base, _), columns) in enumerate(found.items())
    )


def _get_pairs(column: Column) -> LookupValues:
    assert isinstance(column.derivation, Lookup)
    return column.derivation.pairs


def _find_digest(pairs: LookupValues, side: str) -> str:
    """Return a sha256 of one side of looked-up values, or of their place in pinned data. It is computed once."""
    values, origin = (pairs.known, pairs.known_from) if side == "known" else (pairs.found, pairs.found_from)

    def digest() -> str:
        written = "".join(map(_spell_value, values)) if origin is None else f"from {origin}"
        return sha256(written.encode()).hexdigest()

    return pairs.remembered.get(("digest", side), digest)


def _spell_value(value: Value | None) -> str:
    """Return a text of a value such that different sequences of values never have the same text."""
    text = "" if value is None else value if isinstance(value, str) else encode_value(value)
    return f"{'-' if value is None else len(text)}:{text}"
