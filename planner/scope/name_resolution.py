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
    """A public table joined to a question's table.

    Each row of the question's table finds at most one public row: the one whose `key` equals the row's `base`.

    `columns` are the public columns that the question mentions, each with its name in the extended table;
    `all_columns` are the names of all of them. `merged_columns` are columns of USING, which unqualified names do not
    mean. If it `is_outer` (LEFT JOIN), rows that find nothing stay. Otherwise a row stays if its `base` is one of
    `values`. If these are too many to list, a row stays if the column `match_column` has a value. `column_pairs` has
    each column of the join condition with the column that it equals. If there are several, `key` stands for all of
    them. `using_columns` has the other columns of USING, each with the alias of the other table.
    """

    alias: str
    name: str
    key: str
    base: str
    values: tuple[Value, ...]
    match_column: str | None
    columns: tuple[tuple[str, str], ...]
    all_columns: frozenset[str]
    merged_columns: frozenset[str]
    is_outer: bool
    column_pairs: tuple[tuple[str, str], ...]
    using_columns: tuple[tuple[str, str], ...]

    def make_condition(self) -> Condition:
        """Return the condition that a row finds a public row."""
        return (
            Within(self.base, tuple(sorted(self.values)))
            if self.match_column is None
            else Not(IsNull(self.match_column))
        )


@dataclass(frozen=True, slots=True)
class UnitTable:
    """One of the private tables that are joined on their unit to a question's table.

    `columns` are its columns, each with its name in the joined table. `merged_columns` are columns of USING, which
    unqualified names do not mean.
    """

    alias: str
    name: str
    columns: tuple[tuple[str, str], ...]
    merged_columns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Scope:
    """A question's table, the name that qualifies its columns, and the public tables joined to it.

    If the table is a join of private tables, these are `members`. If it is a subquery, `subquery_columns` maps the
    names of its columns to columns of `table`. `wide_keys` are keys with too many values to compute an expression for
    each. As columns of `table` they have no domain.
    """

    table: Table
    alias: str
    public_tables: tuple[JoinedTable, ...] = ()
    subquery_columns: tuple[tuple[str, str], ...] | None = None
    members: tuple[UnitTable, ...] = ()
    wide_keys: tuple[Column, ...] = ()

    def qualifies(self, column: exp.Column) -> bool:
        """Return True if the column has no qualifier, or its qualifier names the question's table or a joined one."""
        return self._knows_table(read_column_name(column))

    def _knows_table(self, named: ColumnName) -> bool:
        own = [(member.alias, member.name) for member in self.members] or [(self.alias, self.table.name)]
        names = [*own, *((joined.alias, joined.name) for joined in self.public_tables)]
        if named.schema is None:
            return named.table == "" or named.table in (alias for alias, _ in names)
        return named.schema == "public" and (named.table, named.table) in names

    def resolve_column(self, node: exp.Column) -> Column:
        """Return the column that a plain reference names. Raise KH201 for an unknown name."""
        try:
            return self._find(read_column_name(node))
        except KeyholeError as error:
            error.position = find_position(node)
            raise

    def _find(self, named: ColumnName) -> Column:
        _, qualifier, wanted = named
        if not self._knows_table(named):
            own = [member.alias for member in self.members] or [self.alias]
            others = [*own[1:], *(joined.alias for joined in self.public_tables)]
            raise KeyholeError(
                "KH201",
                f'"{qualifier}" does not name {"a" if others else "the"} table of this question',
                detail="A question reads one private table, the tables joined to it, and nothing around it.",
                hint=f"Qualify its columns with {' or '.join([own[0], *others])}, or not at all.",
            )
        if self.subquery_columns is not None:
            return self._find_renamed_column(wanted, self.subquery_columns)
        found = self._find_names(wanted, qualifier)
        for joined in self.public_tables:
            if qualifier == joined.alias or (qualifier == "" and wanted not in joined.merged_columns):
                found += [named for public, named in joined.columns if public == wanted]
        if len(found) > 1:
            raise KeyholeError(
                "KH201",
                f'column "{wanted}" is ambiguous',
                hint=f"Write {' or '.join(f'{alias}.{wanted}' for alias in self._list_aliases(wanted))}.",
            )
        public = next((joined for joined in self.public_tables if joined.alias == qualifier), None)
        if not found and public is not None:
            raise KeyholeError(
                "KH201",
                f'the public table "{public.name}" has no column "{wanted}"',
                detail=f"Its columns: {', '.join(sorted(public.all_columns))}.",
            )
        if not found and self.members:
            raise self._refuse_unknown(wanted, qualifier)
        return self.table.get_column(found[0] if found else wanted)

    def _list_aliases(self, wanted: str) -> list[str]:
        """Return the aliases that can qualify a column of that name."""
        own = [member.alias for member in self.members if wanted in dict(member.columns)]
        if not self.members and self._has_own_column(wanted):
            own = [self.alias]
        return [*own, *(joined.alias for joined in self.public_tables if wanted in joined.all_columns)]

    def _find_names(self, wanted: str, qualifier: str) -> list[str]:
        """Return the names in the question's table for a name in its private tables."""
        if not self.members:
            return [wanted] if qualifier in ("", self.alias) and self._has_own_column(wanted) else []
        return [
            dict(member.columns)[wanted]
            for member in self.members
            if wanted in dict(member.columns)
            and (qualifier == member.alias or (qualifier == "" and wanted not in member.merged_columns))
        ]

    def _refuse_unknown(self, wanted: str, qualifier: str) -> KeyholeError:
        members = [member for member in self.members if qualifier in ("", member.alias)]
        known = ", ".join(f"{member.alias}.{column}" for member in members for column, _ in member.columns)
        tables = " or ".join(f'"{member.name}"' for member in members)
        return KeyholeError(
            "KH201",
            f'column "{wanted}" is not exposed by table {tables}',
            detail=f"Exposed columns: {known}.",
        )

    def _find_renamed_column(self, wanted: str, listed: tuple[tuple[str, str], ...]) -> Column:
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

    def has_column(self, wanted: str) -> bool:
        """Return True if an unqualified name is that of a column."""
        if self.subquery_columns is not None:
            return any(name_ == wanted for name_, _ in self.subquery_columns)
        return self._has_own_column(wanted) or any(
            wanted in joined.all_columns and wanted not in joined.merged_columns for joined in self.public_tables
        )

    def _has_own_column(self, wanted: str) -> bool:
        if self.members:
            return any(wanted == column for member in self.members for column, _ in member.columns)
        made = Lookup | MergedKeys | ValueGroups
        return any(column.name == wanted and not isinstance(column.derivation, made) for column in self.table.columns)

    def spell_column(self, column: Column) -> str:
        """Return the question's text for a column, or for the key expressions whose column it is."""
        made = column.derivation
        if isinstance(made, MergedKeys | ValueGroups) or (isinstance(made, Lookup) and made.has_classes):
            return column.name
        return ".".join(spell_name(part) for part in self._list_path(column))

    def make_reference(self, column: Column) -> exp.Column:
        """Return an expression that refers to a column by the question's name for it."""
        *table, called = (exp.to_identifier(part, quoted=spell_name(part) != part) for part in self._list_path(column))
        return exp.Column(this=called, table=table[0] if table else None)

    def _list_path(self, column: Column) -> tuple[str, ...]:
        """Return the parts of the question's name for a column: the table's if needed, and its own."""
        for name_, column_ in self.subquery_columns or ():
            if column_ == column.name:
                return (name_,)
        for joined in self.public_tables:
            for public, named in joined.columns:
                if named == column.name and isinstance(column.derivation, Lookup):
                    return joined.alias, public
            if column.name == joined.match_column:
                return joined.alias, joined.key
        for member in self.members:
            for written, named in member.columns:
                if named == column.name:
                    return member.alias, written
        return (self.alias, column.name) if self.public_tables else (column.name,)

    def make_join_equality(self, joined: JoinedTable) -> exp.Expr:
        """Return the equality that joins a public table, as an expression of this question."""
        key, base_name = joined.column_pairs[0]
        base = self.table.get_column(base_name)
        found = [
            (one.alias, public) for one in self.public_tables for public, named in one.columns if named == base.name
        ]
        alias, column = found[0] if isinstance(base.derivation, Lookup) else (self.alias, base.name)
        return exp.EQ(
            this=exp.column(key, table=joined.alias, quoted=True),
            expression=exp.column(column, table=alias, quoted=True),
        )

    def read_membership(self, node: exp.Expr) -> Condition | None:
        """Return the condition of an equality that joins a table of FROM. Return None for any other expression."""
        node = strip_parentheses(node)
        if not (self.public_tables or self.members) or not isinstance(node, exp.EQ) or node.args.get("negate"):
            return None
        sides = strip_parentheses(node.this), strip_parentheses(node.expression)
        if self.members and self._are_always_equal(*sides):
            return ALWAYS
        for joined in self.public_tables:
            for (key, base), pair in product((sides, sides[::-1]), joined.column_pairs):
                if not joined.is_outer and self._is_key(key, joined, pair[0]) and self._is_base(base, pair[1]):
                    return joined.make_condition()
        return None

    def _are_always_equal(self, left: exp.Expr, right: exp.Expr) -> bool:
        """Return True if joined rows have one value in both columns, never NULL, because a join equates them."""
        if not isinstance(left, exp.Column) or not isinstance(right, exp.Column):
            return False
        named, other = self.resolve_column(left).name, self.resolve_column(right).name
        return (named == other and named in self.table.unit) or frozenset((named, other)) in self.table.equal_keys

    def _is_key(self, node: exp.Expr, joined: JoinedTable, called: str) -> bool:
        if not isinstance(node, exp.Column) or read_name(node.this) != called or not self.qualifies(node):
            return False
        qualifier = read_name(node.args.get("table"))
        return qualifier == joined.alias or (
            qualifier == "" and self.resolve_column(node).name == dict(joined.columns).get(called)
        )

    def _is_base(self, node: exp.Expr, base: str) -> bool:
        column = find_column(node, self)
        return column is not None and column.name == base


def _find_base(node: exp.Expr, scope: Scope, *, ignores_clock: bool) -> str | None:
    """Return the date or timestamp column under casts that change nothing.

    If it `ignores_clock`, a cast may also drop the time of day.
    """
    node = strip_parentheses(node)
    if isinstance(node, exp.Cast) and (
        name_cast_type(node) == "TIMESTAMP" or (ignores_clock and name_cast_type(node) == "DATE")
    ):
        column = _find_plain_column(strip_parentheses(node.this), scope)
        return column.name if column is not None and column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP) else None
    column = _find_plain_column(node, scope)
    return None if column is None else column.name


def name_cast_type(node: exp.Cast) -> str:
    """Return the name of a cast's type. It is empty if a modifier could change a value."""
    kind = node.to.this
    value = str(kind.value) if isinstance(kind, exp.DataType.Type) else ""
    return value if not node.to.expressions or (value == "TIMESTAMP" and _keeps_microseconds(node)) else ""


def find_text_width(node: exp.Cast) -> int | None:
    """Return the number of characters to which a cast cuts a text, `varchar(10)`. Return None for any other cast."""
    sizes = [str(one.this) for one in node.to.expressions]
    is_text = node.to.this == exp.DType.VARCHAR and not isinstance(node, exp.TryCast)
    return int(sizes[0]) if is_text and len(sizes) == 1 and sizes[0].isdecimal() and int(sizes[0]) > 0 else None


def find_numeric_scale(node: exp.Cast) -> tuple[int, int] | None:
    """Return precision and scale of a cast to `numeric(p, s)` with its own decimals. Return None for any other cast."""
    sizes = [str(one.this) for one in node.to.expressions]
    if node.to.this != exp.DType.DECIMAL or isinstance(node, exp.TryCast) or not all(map(str.isdecimal, sizes)):
        return None
    precision, scale = (int(sizes[0]), int(sizes[1]) if len(sizes) > 1 else 0) if len(sizes) in (1, 2) else (0, 0)
    return (precision, scale) if 0 < precision <= _MOST_DIGITS and scale <= precision else None


def _keeps_microseconds(node: exp.Cast) -> bool:
    """Return True if a cast to timestamp(n) keeps all digits.

    A cast that keeps fewer rounds, possibly to another day.
    """
    return [str(one.this) for one in node.to.expressions] == ["6"]


def _find_plain_column(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the column that a plain reference names. Raise KH201 if there is no such column."""
    if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
        return None
    return scope.resolve_column(node)


def read_derivation(node: exp.Expr, scope: Scope) -> Derivation | None:
    """Return the derivation that an expression spells out, if it is one."""
    match node:
        case exp.TimestampTrunc() if node.args.get("zone") is None:
            function, part, inner = "date_trunc", find_truncation_unit(node), node.this
        case exp.Extract():
            function, part, inner = "extract", str(node.this).lower().strip("'"), node.expression
        case exp.Cast() if name_cast_type(node) == "DATE":
            function, part, inner = "date", "", node.this
        case exp.Date() if not node.expressions and node.args.get("zone") is None:
            function, part, inner = "date", "", node.this
        case _:
            return None
    if function == "date" and isinstance(truncated := strip_parentheses(inner), exp.TimestampTrunc):
        found = read_derivation(truncated, scope)
        return None if found is None or found.part == "hour" else found
    if function == "date_trunc" and not part:
        return None
    base = _find_base(inner, scope, ignores_clock=part not in CLOCK_PARTS) if isinstance(inner, exp.Expr) else None
    return None if base is None else Derivation(function=function, part=part, column=base)


def find_truncation_unit(node: exp.TimestampTrunc) -> str:
    """Return the unit of date_trunc if it is a literal or a literal cast to text; else empty."""
    unit = strip_parentheses(node.unit) if isinstance(node.unit, exp.Expr) else node.unit
    if isinstance(unit, exp.Cast) and name_cast_type(unit) in ("TEXT", "VARCHAR"):
        unit = strip_parentheses(unit.this)
        if not isinstance(unit, exp.Literal) or not unit.is_string:
            return ""
        return str(unit.this).lower()
    if isinstance(unit, exp.Parameter):
        return ""
    part = str(unit).lower().strip("'")
    return "week" if part.startswith("week") else part


def are_same_derivation(
    first: Derivation | Lookup | MergedKeys | ValueGroups | Product | Computed | None, second: Derivation
) -> bool:
    """Return True if two derivations give the same values. A timestamp's day has two spellings."""
    days = (("date", ""), ("date_trunc", "day"))
    if not isinstance(first, Derivation) or first.column != second.column:
        return False
    spelled = (first.function, first.part), (second.function, second.part)
    return spelled[0] == spelled[1] or (spelled[0] in days and spelled[1] in days)


def find_column(node: exp.Expr, scope: Scope) -> Column | None:
    """Return the exposed column that the node names.

    Return None for other expressions. Raise KH201 for an unknown name.
    """
    node = strip_parentheses(node)
    plain = _find_plain_column(node, scope)
    if plain is not None:
        return plain
    written = read_derivation(node, scope)
    if written is None:
        return None
    found = next((column for column in scope.table.columns if are_same_derivation(column.derivation, written)), None)
    if found is None and written.function == "date":
        base = scope.table.get_column(written.column)
        return base if base.sql_type is SqlType.DATE else None
    return found
