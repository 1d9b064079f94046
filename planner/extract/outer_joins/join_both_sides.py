"""An outer join of private tables whose made-up rows count for nothing, as an inner one.

SELECT p.sex FROM stays s LEFT JOIN patients p USING (patient_id) WHERE p.age > 65 GROUP BY p.sex HAVING count(*) > 9
SELECT p.sex FROM stays s JOIN patients p USING (patient_id) WHERE p.age > 65 GROUP BY p.sex HAVING count(*) > 9

Guarantee: Keyhole gives the same groups for both, whatever the rows are. In a row that the join makes up, all columns
of the tables in which nothing was found are NULL. Such a row counts for nothing where a condition of WHERE or of a
later join is never true of it, where a declared key of these tables is grouped by, of which NULL is no group, or where
no aggregate takes anything of it. Else nothing changes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.bind.from_clause import find_private_table, split_conjuncts
from planner.catalog.catalog import Catalog, PublicTable, Table
from planner.extract.outer_joins.missing_rows import counts_nothing, is_never_true, list_aggregates
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_token
from planner.parser.edits import Edit
from planner.parser.tree import locate_name, read_alias, read_name, strip_parentheses

_SIDES = ("LEFT", "RIGHT", "FULL")


@dataclass(frozen=True, slots=True)
class _JoinedTables:
    """The tables of FROM in their order by the names that qualify their columns.

    The joins behind the first follow, and the columns that USING merges.
    """

    tables: Mapping[str, Table | PublicTable]
    joins: Sequence[exp.Join]
    merged: frozenset[str]

    def find_owner(self, column: exp.Column) -> str | None:
        """Return the name of the table that a column is certainly of."""
        called, qualifier = read_name(column.this), read_name(column.args.get("table"))
        if qualifier:
            return qualifier if qualifier in self.tables else None
        owners = [alias for alias, table in self.tables.items() if any(one.name == called for one in table.columns)]
        return owners[0] if len(owners) == 1 and called not in self.merged else None


def join_both_sides(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the change that turns an outer join with a private table into an inner join.

    Return none if the rows that the outer join adds may count.
    """
    joined = _read_joined_tables(read)
    if joined is None:
        return ()
    aliases = list(joined.tables)
    for place, join in enumerate(joined.joins, start=1):
        side = str(join.side or "").upper()
        before, own = aliases[:place], aliases[place]
        if side not in _SIDES or join.method or not _joins_private_rows(joined, before, own, side):
            continue
        is_beside = any(isinstance(joined.tables[alias], Table) for alias in before)
        made_up = ([own] if side != "RIGHT" else None, before if side != "LEFT" else None)
        missing = [frozenset(one) for one in made_up if one is not None]
        if all(
            _is_left_out(read.select, joined, one, place)
            or (is_beside and _is_never_counted(read.select, joined, one, place))
            for one in missing
        ):
            return (_write_inner_join(read, join),)
    return ()


def _read_joined_tables(read: PrivateRead) -> _JoinedTables | None:
    """Return the tables of a FROM. Return None if it has an unnamed table, or no outer join."""
    joins = read.select.args.get("joins") or []
    if not any(join.side for join in joins):
        return None
    nodes = [read.select.args["from_"].this, *(join.this for join in joins)]
    hidden = {read_name(cte.args["alias"].this) for cte in read.select.root().find_all(exp.CTE)}
    tables: dict[str, Table | PublicTable] = {}
    for node in nodes:
        found = _find_table(node, read.catalog, hidden)
        if found is None or read_alias(node) in tables:
            return None
        tables[read_alias(node)] = found
    using = [one for join in joins for one in join.args.get("using") or ()]
    return _JoinedTables(
        tables, joins, frozenset(read_name(one if isinstance(one, exp.Identifier) else one.this) for one in using)
    )


def _find_table(node: exp.Expr, catalog: Catalog, hidden: set[str]) -> Table | PublicTable | None:
    if not isinstance(node, exp.Table) or (read_name(node.this) in hidden and node.args.get("db") is None):
        return None
    public = (one for one in catalog.public_tables if one.name == read_name(node.this))
    return find_private_table(node, catalog) or next(public, None)


def _joins_private_rows(joined: _JoinedTables, before: Sequence[str], own: str, side: str) -> bool:
    """Return True if the join may make up rows of a private table, or keep its rows that find no partner."""
    private = [isinstance(joined.tables[alias], Table) for alias in (*before, own)]
    return private[-1] if side == "LEFT" else any(private)


def _is_left_out(select: exp.Select, joined: _JoinedTables, missing: frozenset[str], place: int) -> bool:
    """Return True if no group has a row whose columns of the missing tables are all NULL, from a join on."""
    aliases = list(joined.tables)
    for index, join in enumerate(joined.joins[place:], start=place + 1):
        if str(join.side or "").upper() not in ("", "LEFT"):
            return False
        if _is_excluded(join.args.get("on"), joined, missing):
            if not join.side:
                return True
            missing |= {aliases[index]}
    where = select.args.get("where")
    return (where is not None and _is_excluded(where.this, joined, missing)) or _is_grouped(select, joined, missing)


def _is_excluded(condition: exp.Expr | None, joined: _JoinedTables, missing: frozenset[str]) -> bool:
    return any(
        is_never_true(one, lambda column: joined.find_owner(column) in missing) for one in split_conjuncts(condition)
    )


def _has_groups_without_rows(select: exp.Select, joined: _JoinedTables) -> bool:
    """Return True if every group is there without its made-up rows, as every public group is.

    The totals of a unit are not: they are there for the units that have a row.
    """
    group = select.args.get("group")
    if group is None:
        return False
    units = {called for table in joined.tables.values() if isinstance(table, Table) for called in table.unit}
    shown = {str(place): one for place, one in enumerate(select.expressions, start=1)}
    return not any(
        read_name(column.this) in units
        for item in group.find_all(exp.Column, exp.Literal)
        for column in (shown.get(item.name, item) if isinstance(item, exp.Literal) else item).find_all(exp.Column)
    )


def _is_grouped(select: exp.Select, joined: _JoinedTables, missing: frozenset[str]) -> bool:
    """Return True if GROUP BY has a declared key of a missing private table."""
    group = select.args.get("group")
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return False
    if not _has_groups_without_rows(select, joined):
        return False
    for column in _list_columns(group.expressions, select):
        owner = joined.find_owner(column)
        table = joined.tables.get(owner or "")
        if owner in missing and isinstance(table, Table):
            known = next((one for one in table.columns if one.name == read_name(column.this)), None)
            if known is not None and known.domain is not None:
                return True
    return False


def _list_columns(items: Sequence[exp.Expr], select: exp.Select) -> Iterator[exp.Column]:
    """Yield the columns by themselves in GROUP BY, also by position."""
    shown = {str(place): strip_parentheses(one.unalias()) for place, one in enumerate(select.expressions, start=1)}
    for item in map(strip_parentheses, items):
        is_place = isinstance(item, exp.Literal) and not item.is_string
        column = shown.get(item.name, item) if is_place else item
        if isinstance(column, exp.Column):
            yield column


def _is_never_counted(select: exp.Select, joined: _JoinedTables, missing: frozenset[str], place: int) -> bool:
    """Return True if no aggregate reads a value of a made-up row."""
    if any(join.side and join.side.upper() != "LEFT" for join in joined.joins[place:]):
        return False
    if not _has_groups_without_rows(select, joined) or select.find(exp.Window, exp.Subquery, exp.Exists) is not None:
        return False
    aggregates = list(list_aggregates(select))
    return bool(aggregates) and all(
        counts_nothing(one, lambda column: joined.find_owner(column) in missing) for one in aggregates
    )


def _write_inner_join(read: PrivateRead, join: exp.Join) -> Edit:
    """Return the edit that writes JOIN for LEFT OUTER JOIN."""
    node = join.this
    at = find_token(read.tokens, locate_name(node)) - 1
    first = at - 2 if read.tokens[at - 1].is_word("outer") else at - 1
    return Edit.from_text(read.tokens[first].start, read.tokens[at].start, "")
