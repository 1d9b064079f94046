"""The columns that names and expressions of a question refer to: exposed ones, by name or by a derivation."""

from dataclasses import dataclass
from itertools import product

from sqlglot import exp

from planner.catalog.catalog import (
    Column,
    Computed,
    Derivation,
    Lookup,
    MergedKeys,
    Product,
    SqlType,
    Table,
    Value,
    ValueGroups,
)
from planner.catalog.derived_columns import CLOCK_PARTS
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import ColumnName, find_position, read_column_name, read_name, strip_parentheses
from planner.question.condition import ALWAYS, Condition, IsNull, Not, Within

_MOST_DIGITS = 38  # of a numeric that every engine computes with


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """A public table joined to a question's table: each row finds the row whose `key` equals its `base`, if any.

    `columns` are the public columns that the question mentions, each with its name in the extended table. `merged` are
    those that USING leaves out of unqualified names. `outer` is LEFT JOIN: rows that find nothing stay. Else a row
    stays where its `base` is one of `values`, or, where these are too many to list, where the column `met` has a value.
    `pairs` are the columns that it is joined by, each with what it equals: several where `key` stands for all of them.
    `further` are other columns of USING, each with the alias of the table whose column of that name it equals.
    """

    alias: str
    name: str
    key: str
    base: str
    values: tuple[Value, ...]
    met: str | None
    columns: tuple[tuple[str, str], ...]
    every: frozenset[str]
    merged: frozenset[str]
    outer: bool
    pairs: tuple[tuple[str, str], ...]
    further: tuple[tuple[str, str], ...]

    def membership(self) -> Condition:
        """Return the condition that a row finds a public row."""
        return Within(self.base, tuple(sorted(self.values))) if self.met is None else Not(IsNull(self.met))


@dataclass(frozen=True, slots=True)
class UnitTable:
    """One of the private tables that a question's table is the join of, on their unit.

    `columns` are its columns, each with its name in the joined table; `merged` those that USING leaves out of
    unqualified names.
    """

    alias: str
    name: str
    columns: tuple[tuple[str, str], ...]
    merged: frozenset[str]


@dataclass(frozen=True, slots=True)
class Scope:
    """A question's table, the name under which its columns may be qualified, and the public tables joined to it.

    Where the table is a join of private tables, `members` are these. Where the table is a subquery, `listed` are the
    names of its columns, each with the column of `table` that it is. `wide` are keys of too many values to compute an
    expression for each: as columns of `table` they have no list.
    """

    table: Table
    alias: str
    joined: tuple[JoinedTable, ...] = ()
    listed: tuple[tuple[str, str], ...] | None = None
    members: tuple[UnitTable, ...] = ()
    wide: tuple[Column, ...] = ()

    def qualifies(self, column: exp.Column) -> bool:
        """Return True if the column's qualifier, if any, names the question's table or one that is joined to it."""
        return self._knows_table(read_column_name(column))

    def _knows_table(self, named: ColumnName) -> bool:
        own = [(member.alias, member.name) for member in self.members] or [(self.alias, self.table.name)]
        names = [*own, *((joined.alias, joined.name) for joined in self.joined)]
        if named.schema is None:
            return named.table == "" or named.table in (alias for alias, _ in names)
        return named.schema == "public" and (named.table, named.table) in names

    def column(self, node: exp.Column) -> Column:
        """Return the column that a plain reference names. Raise KH201."""
        try:
            return self._find(read_column_name(node))
        except KeyholeError as error:
            error.position = find_position(node)
            raise

    def _find(self, named: ColumnName) -> Column:
        _, qualifier, wanted = named
        if not self._knows_table(named):
            own = [member.alias for member in self.members] or [self.alias]
            others = [*own[1:], *(joined.alias for joined in self.joined)]
            raise KeyholeError(
                "KH201",
                f'"{qualifier}" does not name {"a" if others else "the"} table of this question',
                detail="A question reads one private table, the tables joined to it, and nothing around it.",
                hint=f"Qualify its columns with {' or '.join([own[0], *others])}, or not at all.",
            )
        if self.listed is not None:
            return self._find_listed(wanted, self.listed)
        found = self._find_names(wanted, qualifier)
        for joined in self.joined:
            if qualifier == joined.alias or (qualifier == "" and wanted not in joined.merged):
                found += [named for public, named in joined.columns if public == wanted]
        if len(found) > 1:
            raise KeyholeError(
                "KH201",
                f'column "{wanted}" is ambiguous',
                hint=f"Write {' or '.join(f'{alias}.{wanted}' for alias in self._tables_with(wanted))}.",
            )
        public = next((joined for joined in self.joined if joined.alias == qualifier), None)
        if not found and public is not None:
            raise KeyholeError(
                "KH201",
                f'the public table "{public.name}" has no column "{wanted}"',
                detail=f"Its columns: {', '.join(sorted(public.every))}.",
            )
        if not found and self.members:
            raise self._unknown(wanted, qualifier)
        return self.table.get_column(found[0] if found else wanted)

    def _tables_with(self, wanted: str) -> list[str]:
        """Return the aliases under which a column of that name can be qualified."""
        own = [member.alias for member in self.members if wanted in dict(member.columns)]
        if not self.members and self._own(wanted):
            own = [self.alias]
        return [*own, *(joined.alias for joined in self.joined if wanted in joined.every)]

    def _find_names(self, wanted: str, qualifier: str) -> list[str]:
        """Return the names in the question's table for a name of its private tables."""
        if not self.members:
            return [wanted] if qualifier in ("", self.alias) and self._own(wanted) else []
        return [
            dict(member.columns)[wanted]
            for member in self.members
            if wanted in dict(member.columns)
            and (qualifier == member.alias or (qualifier == "" and wanted not in member.merged))
        ]

    def _unknown(self, wanted: str, qualifier: str) -> KeyholeError:
        members = [member for member in self.members if qualifier in ("", member.alias)]
        known = ", ".join(f"{member.alias}.{column}" for member in members for column, _ in member.columns)
        tables = " or ".join(f'"{member.name}"' for member in members)
        return KeyholeError(
            "KH201",
            f'column "{wanted}" is not exposed by table {tables}',
            detail=f"Exposed columns: {known}.",
        )

    def _find_listed(self, wanted: str, listed: tuple[tuple[str, str], ...]) -> Column:
        found = [column for name_, column in listed if name_ == wanted]
        if len(found) > 1:
            raise KeyholeError(
                "KH201",
                f'column "{wanted}" is ambiguous',
                hint="Give its columns different names.",
            )
        if not found:
            known = ", ".join(name_ for name_, _ in listed)
            raise KeyholeError(
                "KH201",
                f'the subquery "{self.alias}" has no column "{wanted}"',
                detail=f"Its columns: {known}.",
            )
        return self.table.get_column(found[0])

    def knows(self, wanted: str) -> bool:
        """Return True if a name without qualifier is a column's."""
        if self.listed is not None:
            return any(name_ == wanted for name_, _ in self.listed)
        return self._own(wanted) or any(
            wanted in joined.every and wanted not in joined.merged for joined in self.joined
        )

    def _own(self, wanted: str) -> bool:
        if self.members:
            return any(wanted == column for member in self.members for column, _ in member.columns)
        made = Lookup | MergedKeys | ValueGroups
        return any(column.name == wanted and not isinstance(column.derivation, made) for column in self.table.columns)

    def spell_column(self, column: Column) -> str:
        """Return the question's text for a column, or the expressions of keys that it stands for."""
        made = column.derivation
        if isinstance(made, MergedKeys | ValueGroups) or (isinstance(made, Lookup) and made.classes):
            return column.name
        return ".".join(spell_name(part) for part in self._path(column))

    def reference(self, column: Column) -> exp.Column:
        """Return a column as the question would name it, as an expression."""
        *table, called = (exp.to_identifier(part, quoted=spell_name(part) != part) for part in self._path(column))
        return exp.Column(this=called, table=table[0] if table else None)

    def _path(self, column: Column) -> tuple[str, ...]:
        """Return the names by which the question would read a column: the table's, if it takes one, and its own."""
        for name_, column_ in self.listed or ():
            if column_ == column.name:
                return (name_,)
        for joined in self.joined:
            for public, named in joined.columns:
                if named == column.name and isinstance(column.derivation, Lookup):
                    return joined.alias, public
            if column.name == joined.met:
                return joined.alias, joined.key
        for member in self.members:
            for written, named in member.columns:
                if named == column.name:
                    return member.alias, written
        return (self.alias, column.name) if self.joined else (column.name,)

    def equality(self, joined: JoinedTable) -> exp.Expr:
        """Return the equality that joins a public table, as an expression of this question."""
        key, base_name = joined.pairs[0]
        base = self.table.get_column(base_name)
        found = [(one.alias, public) for one in self.joined for public, named in one.columns if named == base.name]
        alias, column = found[0] if isinstance(base.derivation, Lookup) else (self.alias, base.name)
        return exp.EQ(
            this=exp.column(key, table=joined.alias, quoted=True),
            expression=exp.column(column, table=alias, quoted=True),
        )

    def membership(self, node: exp.Expr) -> Condition | None:
        """Return the condition of an equality that joins a table of FROM; None for every other expression."""
        node = strip_parentheses(node)
        if not (self.joined or self.members) or not isinstance(node, exp.EQ) or node.args.get("negate"):
            return None
        sides = strip_parentheses(node.this), strip_parentheses(node.expression)
        if self.members and self._always_equal(*sides):
            return ALWAYS
        for joined in self.joined:
            for (key, base), pair in product((sides, sides[::-1]), joined.pairs):
                if not joined.outer and self._is_key(key, joined, pair[0]) and self._is_base(base, pair[1]):
                    return joined.membership()
        return None

    def _always_equal(self, left: exp.Expr, right: exp.Expr) -> bool:
        """Return True if joined rows always have one value in both columns, never NULL: a join equates them."""
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return False
        named, other = self.column(left).name, self.column(right).name
        return (named == other and named in self.table.unit) or frozenset((named, other)) in self.table.equal_keys

    def _is_key(self, node: exp.Expr, joined: JoinedTable, called: str) -> bool:
        if not isinstance(node, exp.Column) or read_name(node.this) != called or not self.qualifies(node):
            return False
        qualifier = read_name(node.args.get("table"))
        return qualifier == joined.alias or (
            qualifier == "" and self.column(node).name == dict(joined.columns).get(called)
        )

    def _is_base(self, node: exp.Expr, base: str) -> bool:
        column = find_column(node, self)
        return column is not None and column.name == base


def _base(node: exp.Expr, scope: Scope, *, of_days: bool) -> str | None:
    """Return the date or timestamp that is read, behind casts that change nothing.

    With `of_days`, the time of the day may change.
    """
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and (kind_of(node) == "TIMESTAMP" or (of_days and kind_of(node) == "DATE")):
        column = _plain(strip_parentheses(node.this), scope)
        return column.name if column is not None and column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP) else None
    column = _plain(node, scope)
    return None if column is None else column.name


def kind_of(node: exp.Cast) -> str:
    """Return the name of the type that a cast is to, if it has no modifier that could change a value."""
    kind = node.to.this
    value = str(kind.value) if isinstance(kind, exp.DataType.Type) else ""
    return value if not node.to.expressions or (value == "TIMESTAMP" and _microseconds(node)) else ""


def text_width(node: exp.Cast) -> int | None:
    """Return to how many characters a cast cuts a text, `varchar(10)`; None for any other cast."""
    sizes = [str(one.this) for one in node.to.expressions]
    is_text = node.to.this == exp.DType.VARCHAR and not isinstance(node, exp.TryCast)
    return int(sizes[0]) if is_text and len(sizes) == 1 and sizes[0].isdecimal() and int(sizes[0]) > 0 else None


def numeric_scale(node: exp.Cast) -> tuple[int, int] | None:
    """Return precision and scale of a cast to `numeric(p, s)` with decimals of its own; None for any other cast."""
    sizes = [str(one.this) for one in node.to.expressions]
    if node.to.this != exp.DType.DECIMAL or isinstance(node, exp.TryCast) or not all(map(str.isdecimal, sizes)):
        return None
    precision, scale = (int(sizes[0]), int(sizes[1]) if len(sizes) > 1 else 0) if len(sizes) in (1, 2) else (0, 0)
    return (precision, scale) if 0 < precision <= _MOST_DIGITS and scale <= precision else None


def _microseconds(node: exp.Cast) -> bool:
    """Return True if a cast to timestamp(n) keeps all digits; with fewer it rounds, even to another day."""
    return [str(one.this) for one in node.to.expressions] == ["6"]


def _plain(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the column that a plain reference names. Raise KH201."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    return scope.column(node)


def derivation(node: exp.Expr, scope: Scope) -> Derivation | None:
    """Return the derivation that an expression writes out, if it is one."""
    match node:
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            function, part, inner = "date_trunc", part_of(node), node.this
        case exp.Extract():
            function, part, inner = "extract", str(node.this).lower().strip("'"), node.expression
        case exp.Cast() if kind_of(node) == "DATE":
            function, part, inner = "date", "", node.this
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            function, part, inner = "date", "", node.this
        case _:
            return None
    if function == "date" and isinstance(truncated := strip_parentheses(inner), exp.TimestampTrunc):
        found = derivation(truncated, scope)
        return None if found is None or found.part == "hour" else found
    if function == "date_trunc" and not part:
        return None
    base = _base(inner, scope, of_days=part not in CLOCK_PARTS) if isinstance(inner, exp.Expr) else None
    return None if base is None else Derivation(function=function, part=part, column=base)


def part_of(node: exp.TimestampTrunc) -> str:
    """Return the unit of date_trunc if its text says so, as a literal or a literal cast to text; else empty."""
    unit = strip_parentheses(node.unit) if isinstance(node.unit, exp.Expr) else node.unit
    if isinstance(unit, exp.Cast) and kind_of(unit) in ("TEXT", "VARCHAR"):
        unit = strip_parentheses(unit.this)
        if not isinstance(unit, exp.Literal) or not unit.is_string:
            return ""
        return str(unit.this).lower()
    if isinstance(unit, exp.Parameter):
        return ""
    part = str(unit).lower().strip("'")
    return "week" if part.startswith("week") else part


def same(first: Derivation | Lookup | MergedKeys | ValueGroups | Product | Computed | None, second: Derivation) -> bool:
    """Return True if two derivations give the same values: a timestamp's day has two spellings."""
    days = (("date", ""), ("date_trunc", "day"))
    if not isinstance(first, Derivation) or first.column != second.column:
        return False
    spelled = (first.function, first.part), (second.function, second.part)
    return spelled[0] == spelled[1] or (spelled[0] in days and spelled[1] in days)


def find_column(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the exposed column that the node is, or None for any other expression. Raise KH201 for an unknown name."""
    node = strip_parentheses(node)
    plain = _plain(node, scope)
    if plain is not None:
        return plain
    written = derivation(node, scope)
    if written is None:
        return None
    found = next((column for column in scope.table.columns if same(column.derivation, written)), None)
    if found is None and written.function == "date":
        base = scope.table.get_column(written.column)
        return base if base.sql_type is SqlType.DATE else None
    return found
