"""Tables joined in SQL: a relation with the columns of several private tables, or with public values beside a row.

Guarantee: a joined row of several tables is made of rows of one privacy unit, one of each table, so that every row
belongs to the unit that its unit columns name. Rows without a unit find nothing. Of each table at most `Member.rows`
rows of one unit are joined, so that one unit has at most the product of these numbers as joined rows, whatever the
data. Which rows of a unit are joined is decided by md5 of the table's seed and of all that questions can see of the
row, before WHERE, and is the same for every question. Which columns of a unit are equal is decided as bounding reads
them: text byte by byte. Looked-up columns come from pinned values that stand in the statement, or, where there are
many, go with it as a relation: a row finds one at most, so that this join neither adds nor drops rows, whatever the
data.

References: docs/decisions/0007-joins.md; docs/decisions/0009-unit-joins.md; docs/decisions/0034-rows-before-a-join.md.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from planner.catalog.catalog import Column, Lookup, LookupValues, Member, NamedStep, SqlType, Table, Value
from planner.catalog.domains import encode_value
from planner.lower.dialects.dialect import Dialect
from planner.lower.kept.named_steps import merge_steps, name_step
from planner.lower.lookups.public_conditions import (
    Place,
    PublicConditions,
    is_dear_there,
    look_up_at_once,
    read_all,
    spell_asked,
)
from planner.lower.member_conditions import MemberConditions, compute_of_member, place_of
from planner.lower.read_columns import keep_columns
from planner.lower.row import RowSql
from planner.lower.unit_paths.carried_values import find_longest, shorten
from planner.lower.unit_paths.reach import reach_units
from planner.lower.whole_joins.fences import any_value, fence_rows
from planner.lower.whole_joins.front_conditions import NOTHING, FrontConditions, PublicKeys, ask_rows, test_rows
from planner.question.condition import Condition, columns
from planner.question.plan import PinnedColumn, PinnedRelation

MOST_SPELLED = 200  # rows in the statement: engines parse tens of thousands in seconds, and a few hundred at once
_NOBODY = "keyhole_nobody"  # 1 for the one row of a joined table that is nobody's
_STEPS_OF_ONE = 2.0**20  # how finely doubles are told apart when rows are drawn
_HASHED_DOUBLES = 1e9  # up to where: in such steps a number has 50 binary digits


def join_members(
    table: Table, *, dialect: Dialect, among: MemberConditions | None = None, front: FrontConditions = NOTHING
) -> Table:
    """Return the table with its members' join as its relation, or with the units at the end of a path.

    Any other unchanged.

    Parameters:
        among: conditions that are computed before the join: the table has a column for each.
        front: what is asked of rows before they are joined; then there is one row more, whose unit is NULL.
    """
    if not table.members:
        return reach_units(table, dialect=dialect, longest=find_longest(table), front=front)
    among = among or MemberConditions()
    identifier = dialect.spelling.identifier
    stored = {column.name for column in table.columns if column.derivation is None}
    shown = [
        f"m{i}.{identifier(named)}"
        for i, member in enumerate(table.members)
        for _, named in member.columns
        if named in stored and (i == 0 or named not in table.unit)
    ]
    shown += [identifier(column.name) for column in among.columns]
    looked_up = find_longest(table)
    read = [
        _member(member, dialect, looked_up=looked_up, carried=stored, front=front.of_member(i) if front else None)
        for i, member in enumerate(table.members)
    ]
    if front:
        unit = shown.index(f"m0.{identifier(table.unit[0])}")
        everybody = " AND ".join(f"m{i}.{_NOBODY} = 0" for i in range(1, len(read)))
        shown[unit] = f"CASE WHEN {everybody} THEN {shown[unit]} END AS {identifier(table.unit[0])}"
    bounded, steps = [relation for relation, _ in read], merge_steps(*(steps for _, steps in read))
    for place, conditions in among.carried.items():
        bounded[place] = _with_conditions(table, place, bounded[place], conditions, dialect)
    first, *others = bounded
    joined = [f"FROM {first} AS m0"]
    for i, other in enumerate(others, start=1):
        equal = " AND ".join(f"m0.keyhole_u{j} = m{i}.keyhole_u{j}" for j in range(len(table.unit)))
        joined.append(f"JOIN {other} AS m{i} ON {equal}")
    relation = f"(SELECT {', '.join(shown)} {' '.join(joined)}{fence_rows(dialect)}) AS together"
    return replace(table, relation=relation, members=(), columns=(*table.columns, *among.columns), steps=steps)


def _with_conditions(
    table: Table, place: int, relation: str, conditions: Mapping[Condition, str], dialect: Dialect
) -> str:
    """Return the SQL of a member's rows with the truth of conditions: at most as many rows of a unit as are joined."""
    own = tuple(column for column in table.columns if place_of(table, column.name) == place)
    stored = {column.name for column in own if column.derivation is None}
    # a unit's column is called alike in all members, and is said to be the first one's
    others = [
        Column(named, SqlType.OTHER, "")
        for _, named in table.members[place].columns
        if named in table.unit and named not in stored
    ]
    units = [Column(f"keyhole_u{j}", SqlType.OTHER, "") for j in range(len(table.unit))]
    of_member = replace(table, relation=f"{relation} AS bounded", columns=(*own, *others, *units), members=())
    read = of_member.include_bases(name for condition in conditions for name in columns(condition))
    if any(isinstance(column.derivation, Lookup) for column in own if column.name in read):
        of_member = join_lookups(of_member, dialect=dialect)
    names = [column.name for column in (*own, *others, *units) if column.derivation is None]
    kept = [dialect.spelling.identifier(name) for name in names]
    return compute_of_member(RowSql(table=of_member, dialect=dialect), conditions, kept=kept)


def _member(
    member: Member,
    dialect: Dialect,
    *,
    looked_up: Mapping[str, int],
    carried: Collection[str],
    front: FrontConditions | None,
) -> tuple[str, tuple[NamedStep, ...]]:
    """Return the SQL of a table's joined rows, with the unit's columns beside them; and the steps that they read.

    Units with more rows than are joined are found first, as a hash of every row of a large table would be expensive.
    One unit more is among them, whose rows are drawn as well: all of them, unless there are too many. Long values are
    shortened here, once for each row: behind the join they are read once for each joined row.

    Parameters:
        carried: the columns that are carried on, as the join calls them. What is drawn among is told by all columns.
        front: what is asked of most rows; then one of nobody is among them, that `keyhole_nobody` tells. None if no
            table of the join is asked anything.
    """
    names, units = dict(member.columns), [f"keyhole_u{j}" for j in range(len(member.table.unit))]
    rows = _MemberRows(names, looked_up, dialect)
    narrow = keep_columns(member.table, [own for own, named in member.columns if named in carried])
    read, steps = rows.of_columns(narrow, front=front or NOTHING)
    kept = [dialect.spelling.identifier(names[column.name]) for column in narrow.columns if column.derivation is None]
    nobody, told = "", ""
    if front is not None:
        anybody = [any_value(dialect, member.table.get_column(name)) for name in member.table.unit]
        nobody = f" UNION ALL SELECT {', '.join([*['NULL'] * len(kept), *anybody])}, 1"
        told = f", 0 AS {_NOBODY}"
    if member.table.has_key(member.table.unit):  # a unit has one row
        if front is not None:
            read = f"(SELECT {', '.join([*kept, *units])}{told} FROM {read} AS rows_of{nobody})"
        return read, steps
    counted = _count_rows(rows.of_units(member.table), units)
    many = _list_heavy(counted, units, member.rows)
    drawn, steps = rows.of_columns(member.table, among=many.name)  # texts are cut behind this join, of few rows
    stored = tuple(column for column in member.table.columns if column.derivation is None)
    seen = replace(member.table, columns=tuple(replace(c, name=names[c.name]) for c in stored))
    order = _draw_order(seen, dialect)
    ordered = ", ".join(f"keyhole_o{j}{suffix}" for j, (_, suffix) in enumerate(order))
    orders = ", ".join(f"{sql} AS keyhole_o{j}" for j, (sql, _) in enumerate(order))
    place = f"row_number() OVER (PARTITION BY {', '.join(units)} ORDER BY {ordered}) AS keyhole_place"
    every = [*(dialect.spelling.identifier(names[column.name]) for column in stored), *units]
    firsts = name_step(
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
    """The rows of a table that is joined, as they are carried to the join.

    `names` are what the join calls its columns, and `looked_up` is how long texts stay at least, by these.
    """

    names: Mapping[str, str]
    looked_up: Mapping[str, int]
    dialect: Dialect

    def of_columns(
        self, table: Table, *, among: str = "", front: FrontConditions = NOTHING
    ) -> tuple[str, tuple[NamedStep, ...]]:
        """Return the SQL of the rows with the table's columns and the unit's beside them; and the steps that they read.

        Parameters:
            among: a step of units, of whose rows alone they are; empty for all.
            front: what is asked of them.
        """
        row, units = self._reach(table, front)
        stored = [column for column in row.table.columns if column.derivation is None]
        columns = [f"{self._carry(row, one)} AS {self._identifier(self.names[one.name])}" for one in stored]
        source, asked = test_rows(row, front) if table.path is None else (row.table.relation, [])
        return self._select(row, units, columns, among, source=source, asked=asked), row.table.steps

    def of_units(self, table: Table) -> str:
        """Return the SQL of the same rows with nothing but the unit's columns."""
        row, units = self._reach(keep_columns(table, ()))
        return self._select(row, units, [], "", source=row.table.relation)

    def _reach(self, table: Table, front: FrontConditions = NOTHING) -> tuple[RowSql, list[str]]:
        """Return a row of the table, and its unit's columns as they are carried."""
        longest = {own: self.looked_up[named] for own, named in self.names.items() if named in self.looked_up}
        reached = reach_units(table, dialect=self.dialect, longest=longest, front=front)
        row = RowSql(table=reached, dialect=self.dialect)
        units = []
        for name in table.unit:
            carried = self._carry(row, row.table.get_column(name))
            units.append(row.column(name) if carried == self._identifier(name) else carried)
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
        present = " AND ".join([*(f"({row.column(name)}) IS NOT NULL" for name in row.table.unit), *asked])
        if among:
            source += f" JOIN {among} ON {' AND '.join(f'{value} = keyhole_m{j}' for j, value in enumerate(units))}"
        return f"(SELECT {', '.join(shown)} FROM {source} WHERE {present})"

    def _carry(self, row: RowSql, column: Column) -> str:
        return shorten(row, column, longest=self.looked_up.get(self.names[column.name], 0))

    def _identifier(self, name: str) -> str:
        return self.dialect.spelling.identifier(name)


def list_busy_units(table: Table, most: int, *, dialect: Dialect) -> tuple[NamedStep, ...]:
    """Return steps that end in one of units: all that could have more than `most` joined rows, and one unit more.

    Its columns are `keyhole_m0`, `keyhole_m1` and so on, the unit's as the join with members has them. A unit may be
    listed that has fewer rows. Which units are listed is the same for all questions, and the rows of each are counted
    once for all groupings of the table. There are no steps if no unit has more than one row.

    Parameters:
        table: one whose members are not joined yet, without units' own values.
    """
    units = [f"keyhole_u{j}" for j in range(len(table.unit))]
    if not table.members:
        narrow = keep_columns(table, ())
        row = RowSql(table=reach_units(narrow, dialect=dialect, longest=find_longest(narrow)), dialect=dialect)
        read = [row.column(name) for name in table.unit]
        shown = ", ".join(f"{value} AS {unit}" for value, unit in zip(read, units, strict=True))
        present = " AND ".join(f"({value}) IS NOT NULL" for value in read)
        counted = _count_rows(f"(SELECT {shown} FROM {row.table.relation} WHERE {present})", units)
        return merge_steps(row.table.steps, [counted, _list_heavy(counted, units, most)])
    looked_up = find_longest(table)
    steps, counts = [], []
    several = [member for member in table.members if not member.table.has_key(member.table.unit)]
    if not several:
        return ()
    for member in several:
        rows = _MemberRows(dict(member.columns), looked_up, dialect)
        counts.append(_count_rows(rows.of_units(member.table), units))
        steps.append(rows.of_columns(keep_columns(member.table, ()))[1])
    named = [f"keyhole_m{j}" for j in range(len(units))]
    joined = counts[0].name + " AS n0"
    for i, one in enumerate(counts[1:], start=1):
        joined += f" JOIN {one.name} AS n{i} ON {' AND '.join(f'n0.{name} = n{i}.{name}' for name in named)}"
    # a double holds every product, and rounds none above `most` down to it
    double = dialect.spelling.double_type
    product = " * ".join(
        dialect.spelling.cast(f"LEAST(n{i}.keyhole_n, {member.rows})", double) for i, member in enumerate(several)
    )
    shown = ", ".join(f"n0.{name} AS {name}" for name in named)
    of_many = f"SELECT {shown} FROM {joined} WHERE {product} > {most}"
    first = f"SELECT {', '.join(named)} FROM {counts[0].name} ORDER BY {', '.join(named)} LIMIT 1"
    return merge_steps(*steps, [*counts, name_step(f"{of_many} UNION ({first})")])


def _count_rows(rows: str, units: Sequence[str]) -> NamedStep:
    """Return the step that counts the rows of each unit."""
    shown = ", ".join(f"{unit} AS keyhole_m{j}" for j, unit in enumerate(units))
    return name_step(f"SELECT {shown}, count(*) AS keyhole_n FROM {rows} AS rows_of GROUP BY {', '.join(units)}")


def _list_heavy(counted: NamedStep, units: Sequence[str], most: int) -> NamedStep:
    """Return the step of the units with more rows than the limit, and one unit more.

    So their rows are looked for whether or not a unit has too many: engines skip a join with nothing. It is the first
    in order, as engines may compute a step again wherever it is read.
    """
    named = ", ".join(f"keyhole_m{j}" for j in range(len(units)))
    heavy = f"SELECT {named} FROM {counted.name} WHERE keyhole_n > {most}"
    first = f"SELECT {named} FROM {counted.name} ORDER BY {named} LIMIT 1"
    return name_step(f"{heavy} UNION ({first})")


def _draw_order(table: Table, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the order in which a unit's rows are joined, as expressions, each with its suffix in ORDER BY.

    First a hash of all columns as far as questions see them, then doubles, of which the hash has a coarse text: what is
    equal by all of these is equal to every question.
    """
    row, spelling = RowSql(table=table, dialect=dialect), dialect.spelling
    seen = sorted((one for one in table.columns if one.sql_type is not SqlType.OTHER), key=lambda one: one.name)
    texts = [spelling.text(table.seed), *(f"COALESCE({_hashed_text(row, column)}, '')" for column in seen)]
    doubles = [row.column(column.name) for column in seen if column.sql_type is SqlType.DOUBLE]
    return [("md5(" + " || '|' || ".join(texts) + ")", dialect.byte_order), *((double, "") for double in doubles)]


def _hashed_text(row: RowSql, column: Column) -> str:
    """Return the SQL of a column as text, the same on every engine, no longer than conditions see it.

    NULL where it is NULL.
    """
    spelling = row.dialect.spelling
    if column.sql_type is SqlType.TEXT:
        return row.canonical(row.cut_text(column.name), column)
    value = row.column(column.name)
    if column.sql_type is not SqlType.DOUBLE:
        return row.canonical(value, column)
    # a power of two multiplies exactly, so that all engines cut at the same place; beyond it every value has one text
    low, high = spelling.double(-_HASHED_DOUBLES), spelling.double(_HASHED_DOUBLES)
    steps = spelling.cast(f"floor({value} * {spelling.double(_STEPS_OF_ONE)})", "bigint")
    near = f"{value} > {low} AND {value} < {high}"
    return f"CASE WHEN {near} THEN {spelling.cast(steps, spelling.text_type)} WHEN {value} IS NOT NULL THEN '-' END"


def join_lookups(
    table: Table, *, dialect: Dialect, asked: PublicConditions | None = None, front: Condition | None = None
) -> Table:
    """Return the table with its looked-up columns stored.

    Its relation is the private one with the pinned values beside it.

    Many pinned values are read whatever is asked of private rows.

    Parameters:
        asked: conditions that are computed on pinned rows: the table has a column for each.
        front: what is asked of private rows before; ALWAYS if only something before leaves them out, None if nothing.
    """
    together = _look_up_together(table, dialect)
    if not together:
        return table
    table = look_up_at_once(table)
    row, identifier = RowSql(table=table, dialect=dialect), dialect.spelling.identifier
    stored = [identifier(column.name) for column in table.columns if column.derivation is None]
    found = [f"{one.value(column)} AS {identifier(column.name)}" for one in together for column in one.columns]
    truths = () if asked is None else asked.columns
    found += [identifier(column.name) for column in truths]
    searched = [] if asked is None else [step for one in together if (step := one.search(row, asked)) is not None]
    is_large = any(not one.is_spelled for one in together)
    source, keys = table.relation, [row.column(one.base.name) for one in together]
    if is_large and front is not None:
        source, keys = ask_rows(row, FrontConditions(front), shown=stored, keys=[one.base.name for one in together])
    joins = [one.join(row, asked, key=key) for one, key in zip(together, keys, strict=True)]
    joined = f"SELECT {', '.join([*stored, *found])} FROM {source} {' '.join(joins)}{read_all(searched)}"
    relation = f"({joined}{fence_rows(dialect) if is_large else ''}) AS joined"
    columns = tuple(
        replace(column, derivation=None, determined=table.determines(column))
        if isinstance(column.derivation, Lookup)
        else column
        for column in table.columns
    )
    steps = merge_steps(table.steps, searched)
    return replace(table, relation=relation, columns=(*columns, *truths), steps=steps)


def list_public_keys(table: Table, *, dialect: Dialect, asked: PublicConditions) -> tuple[PublicKeys, ...]:
    """Return what pinned rows demand of the values that look them up.

    Parameters:
        asked: conditions on pinned rows, as `join_lookups` is given them.
    """
    row = RowSql(table=look_up_at_once(table), dialect=dialect)
    several = (one for one in _look_up_together(table, dialect) if one.place in asked.demanded)
    return tuple(PublicKeys(one.base.name, one.select_keys(row, asked)) for one in several)


def list_pinned(table: Table, *, dialect: Dialect) -> tuple[PinnedRelation, ...]:
    """Return the pinned values that a statement over the table reads as relations."""
    return tuple(one.pinned for one in _look_up_together(table, dialect) if not one.is_spelled)


@dataclass(frozen=True, slots=True)
class _LookedUp:
    """Columns that are looked up by the same values of the same column: they are found together."""

    number: int
    dialect: Dialect
    base: Column
    pairs: LookupValues
    columns: tuple[Column, ...]

    @property
    def is_spelled(self) -> bool:
        """Return True if the values stand in the statement. As a relation they are read faster, but cost a name."""
        return len(self.pairs) <= MOST_SPELLED

    def value(self, column: Column) -> str:
        """Return the joined relation's column with the values of a looked-up one."""
        if column not in self._other:
            return f"keyhole_k{self.number}"
        return f"keyhole_v{self.number}_{self._other.index(column)}"

    @property
    def _other(self) -> tuple[Column, ...]:
        """The columns that have other values than those that they are looked up by."""
        known = self.pairs.known  # of an empty table every column has the same object
        return tuple(column for column in self.columns if not known or _pairs(column).found is not known)

    def join(self, row: RowSql, asked: PublicConditions | None, *, key: str) -> str:
        """Return the join beside the private relation, by a value of its rows."""
        searched = None if asked is None else self.search(row, asked)
        pinned = f"({self._ask(row, asked)})" if searched is None else searched.name
        joined = "LEFT JOIN" if asked is None or self.place not in asked.demanded else "JOIN"
        return f"{joined} {pinned} AS pinned{self.number} ON {key} = {self._key}"

    def select_keys(self, row: RowSql, asked: PublicConditions) -> str:
        """Return SQL for the values by which rows are found that satisfy what is asked of them.

        Expensive conditions are asked twice, of public rows alone. Engines may wait forever for a step that is read in
        front of a join and behind it.
        """
        return f"SELECT {self._key} FROM ({self._ask(row, asked)}) AS wanted"

    def search(self, row: RowSql, asked: PublicConditions) -> NamedStep | None:
        """Return the rows as a step of their own, if their tests are expensive."""
        is_dear = is_dear_there(row, self.place, asked)
        return name_step(self._ask(row, asked), asked=True) if is_dear else None

    def _ask(self, row: RowSql, asked: PublicConditions | None) -> str:
        """Return the SQL of the rows, with their tests."""
        if asked is None or self.place not in {*asked.carried, *asked.demanded}:
            return self._select()
        values = list(dict.fromkeys([self._key, *map(self.value, self.columns)]))
        named = [f"{self.value(one)} AS {self.dialect.spelling.identifier(one.name)}" for one in self.columns]
        rows = f"(SELECT {', '.join([*values, *named])} FROM ({self._select()}) AS pinned) AS named"
        return spell_asked(row, self.place, asked, rows=rows, kept=values)

    @property
    def _key(self) -> str:
        return f"keyhole_k{self.number}"

    @property
    def place(self) -> Place:
        return self.base.name, id(self.pairs.known)

    def _select(self) -> str:
        shown = [f"{self._cast('k', self.base)} AS {self._key}"]
        shown += [f"{self._cast(f'v{i}', column)} AS {self.value(column)}" for i, column in enumerate(self._other)]
        return f"SELECT {', '.join(shown)} FROM {self._spelled_rows() if self.is_spelled else self.pinned.name}"

    @property
    def pinned(self) -> PinnedRelation:
        """The values as a relation: k, and v0, v1 and so on."""
        columns = (
            self._pinned_column("k", self.base, self.pairs.known),
            *(self._pinned_column(f"v{i}", column, _pairs(column).found) for i, column in enumerate(self._other)),
        )
        digests = [_digest(self.pairs, "known"), *(_digest(_pairs(column), "found") for column in self._other)]
        meant = "\n".join(f"{c.type_name} {digest}" for c, digest in zip(columns, digests, strict=True))
        return PinnedRelation(f"keyhole_pinned_{sha256(meant.encode()).hexdigest()[:32]}", columns)

    def _spelled_rows(self) -> str:
        names = ("k", *(f"v{i}" for i in range(len(self._other))))
        types = (self.base, *self._other)
        rows = list(zip(self.pairs.known, *(_pairs(column).found for column in self._other), strict=True))
        if self._other == self.columns:  # else whether there is such a row is asked as well
            rows = [row for row in rows if any(value is not None for value in row[1:])]
        if not rows:
            return f"(SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE FALSE) AS given"
        spelled = (
            ", ".join(self._constant(value, column) for value, column in zip(row, types, strict=True)) for row in rows
        )
        return f"(VALUES {', '.join(f'({row})' for row in spelled)}) AS given({', '.join(names)})"

    def _pinned_column(self, name: str, column: Column, values: tuple[Value | None, ...]) -> PinnedColumn:
        return PinnedColumn(name, self._type(column), column.sql_type is SqlType.INTEGER, values)

    def _constant(self, value: Value | None, column: Column) -> str:
        return "NULL" if value is None else self.dialect.spelling.constant(value, column=column)

    def _cast(self, expression: str, column: Column) -> str:
        return self.dialect.spelling.cast(expression, self._type(column))

    def _type(self, column: Column) -> str:
        """Return a type that holds every pinned value, whatever the private column's width."""
        return "bigint" if column.sql_type is SqlType.INTEGER else self.dialect.spelling.type_name(column)


def _look_up_together(table: Table, dialect: Dialect) -> tuple[_LookedUp, ...]:
    table = look_up_at_once(table)
    found: dict[tuple[str, int], list[Column]] = {}
    for column in table.columns:
        if isinstance(column.derivation, Lookup):
            found.setdefault((column.derivation.column, id(column.derivation.pairs.known)), []).append(column)
    return tuple(
        _LookedUp(i, dialect, table.get_column(base), _pairs(columns[0]), tuple(columns))
        for i, ((base, _), columns) in enumerate(found.items())
    )


def _pairs(column: Column) -> LookupValues:
    assert isinstance(column.derivation, Lookup)
    return column.derivation.pairs


def _digest(pairs: LookupValues, side: str) -> str:
    """Return a sha256 of one side of looked-up values, or of their place in pinned data, computed once."""
    values, origin = (pairs.known, pairs.known_from) if side == "known" else (pairs.found, pairs.found_from)

    def digest() -> str:
        written = "".join(map(_spell, values)) if origin is None else f"from {origin}"
        return sha256(written.encode()).hexdigest()

    return pairs.remembered.get(("digest", side), digest)


def _spell(value: Value | None) -> str:
    """Return a value so spelled that no two sequences of values are one text."""
    text = "" if value is None else value if isinstance(value, str) else encode_value(value)
    return f"{'-' if value is None else len(text)}:{text}"
