"""Grouped queries over one private table, and if two of them have the same groups."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.catalog.catalog import Table
from planner.parser.tree import contains_type, read_name, strip_parentheses, write_node
from planner.scope.group_by import resolve_item
from planner.scope.name_resolution import Scope

_GROUPED = frozenset(("expressions", "from_", "joins", "where", "group", "having"))
_NAMED = frozenset(("this", "db", "alias"))
_NAMES: Mapping[type[exp.Expr], str] = {exp.Count: "count", exp.Sum: "sum", exp.Avg: "avg"}


@dataclass(frozen=True, slots=True)
class GroupedQuery:
    """A SELECT that shows all keys of its GROUP BY, and sizes of its groups, by the names of its columns."""

    select: exp.Select
    table: Table
    keys: Mapping[str, exp.Expr]
    sizes: Mapping[str, exp.Expr]
    groups: frozenset[str]

    def spell(self, node: exp.Expr) -> str:
        """Return an expression as text. Columns have no qualifier if only one table is read."""
        return write_node(node if self.select.args.get("joins") else strip_qualifiers(node))

    def find_key(self, text: str) -> str | None:
        """Return the name of the key with this text. Return None if no key has it."""
        return next((name for name, node in self.keys.items() if self.spell(node) == text), None)


def read_grouped_query(select: exp.Select, table: Table) -> GroupedQuery | None:
    """Return a SELECT from a private table as a grouped query. Return None for other SELECTs. Raise KH100, KH215."""
    group, source = select.args.get("group"), find_source(select)
    if group is None or any(value for key, value in select.args.items() if key not in _GROUPED):
        return None
    if any(value for key, value in group.args.items() if key != "expressions") or not isinstance(source, exp.Table):
        return None
    if not is_plain(source) or contains_type(select, exp.Window) or len(list(select.find_all(exp.Query))) > 1:
        return None
    items = read_items(select)
    if items is None:
        return None
    scope = Scope(table, find_name(source))
    bare = GroupedQuery(select, table, items, {}, frozenset())
    groups: set[str] = set()
    for item in group.expressions:
        node = strip_parentheses(item)
        meant = resolve_item(node, select, scope)
        if meant is not node and isinstance(node, exp.Column) and select.args.get("joins"):
            return None  # a joined table may have a column of that name
        groups.add(bare.spell(meant))
    keys = {name: node for name, node in items.items() if bare.spell(node) in groups}
    sizes = {name: node for name, node in items.items() if name not in keys}
    found = GroupedQuery(select, table, keys, sizes, frozenset(groups))
    shows_all = groups == {found.spell(node) for node in keys.values()} and len(keys) == len(groups)
    return found if shows_all and all(map(contains_aggregate, sizes.values())) else None


def have_same_groups(one: GroupedQuery, other: GroupedQuery) -> bool:
    """Return True if PostgreSQL gives two queries the same groups, of the same rows."""
    if one.select is other.select or one.select == other.select:
        return True
    if one.table != other.table or one.groups != other.groups:
        return False
    if any(query.select.args.get(clause) for query in (one, other) for clause in ("joins", "having")):
        return False
    return spell_all(list_conjuncts(one.select)) == spell_all(list_conjuncts(other.select))


def read_items(select: exp.Select) -> dict[str, exp.Expr] | None:
    """Return the columns of a SELECT by name. Return None if a name is uncertain, or used twice."""
    found: dict[str, exp.Expr] = {}
    for item in select.expressions:
        node = strip_parentheses(item.unalias())
        called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else _find_default_name(node)
        if not called or called in found:
            return None
        found[called] = node
    return found


def _find_default_name(node: exp.Expr) -> str:
    if isinstance(node, exp.Filter):
        node = node.this
    return read_name(node.this) if isinstance(node, exp.Column) else _NAMES.get(type(node), "")


def find_source(select: exp.Select) -> exp.Expr | None:
    """Return the first source of a SELECT's FROM. Return None without FROM."""
    return select.args["from_"].this if select.args.get("from_") is not None else None


def is_plain(table: exp.Table) -> bool:
    """Return True if a table has a name and an alias, and nothing else."""
    return not any(value for key, value in table.args.items() if key not in _NAMED) and has_plain_alias(table)


def has_plain_alias(source: exp.Expr) -> bool:
    """Return True unless a source has an alias that renames columns, as in `AS t (a, b)`."""
    alias = source.args.get("alias")
    return alias is None or not alias.args.get("columns")


def find_name(table: exp.Table) -> str:
    """Return the name that qualifies a table's columns."""
    alias = table.args.get("alias")
    return read_name(alias.this) if alias is not None and alias.this is not None else read_name(table.this)


def list_conjuncts(select: exp.Select) -> list[exp.Expr]:
    """Return the conditions that AND joins in a WHERE."""
    where = select.args.get("where")
    if where is None:
        return []
    parts = where.this.flatten() if isinstance(where.this, exp.And) else [where.this]
    return [strip_parentheses(one) for one in parts]


def spell_all(conjuncts: Sequence[exp.Expr]) -> frozenset[str]:
    """Return the texts of the conditions, which all read one table."""
    return frozenset(write_node(strip_qualifiers(one)) for one in conjuncts)


def strip_qualifiers(node: exp.Expr) -> exp.Expr:
    """Return an expression without the table names before its columns."""
    copied: exp.Expr = exp.Paren(this=node.copy())
    for column in copied.find_all(exp.Column):
        column.set("table", None)
    found: exp.Expr = copied.this
    return found


def list_key_names(select: exp.Select) -> frozenset[str]:
    """Return the columns that a SELECT groups by. Return an empty set if it groups by any other expression."""
    group = select.args.get("group")
    found: set[str] = set()
    for item in group.expressions if group is not None else ():
        node = strip_parentheses(item)
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(node.name) - 1 if node.name.isdecimal() else -1
            if not 0 <= place < len(select.expressions):
                return frozenset()
            node = strip_parentheses(select.expressions[place].unalias())
        if not isinstance(node, exp.Column):
            return frozenset()
        found.add(read_name(node.this))
    return frozenset(found)
