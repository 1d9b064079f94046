"""A scalar subquery beside a question that joins public tables, as one over the question's private table alone.

    SELECT st.region FROM sales s JOIN stores st ON st.store = s.store GROUP BY st.region
    HAVING sum(s.revenue) > 0.3 * (SELECT sum(revenue) FROM sales)

A join with a public table whose rows are found by a key adds nothing to a row of the private table. An inner one drops
none if the public table has every listed value of that key. Rows of other values are in no group of any question.
"""

from collections.abc import Sequence

from sqlglot import exp

from planner.catalog.catalog import PublicTable
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.same_groups import find_name, find_source, is_plain
from planner.extract.subqueries.share_rows import is_same_table
from planner.parser.tree import read_name, strip_parentheses, write_node


def drop_joins(inner: exp.Select, read: PrivateRead) -> exp.Select | None:
    """Return a subquery without joins that reads the same rows as `inner`.

    Rows outside the groups of the question may differ. The result's columns have no qualifiers. Return None for other
    subqueries, and for names that several tables have.
    """
    joined = _list_public_tables(read.select, read)
    if joined is None:
        return None
    source = find_source(inner)
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select) and not inner.args.get("joins"):
        grouped = drop_joins(source.this, read)
        if grouped is None:
            return None
        copied = inner.copy()
        copied.args["from_"].this.set("this", grouped)
        return copied
    if not isinstance(source, exp.Table) or not is_same_table(source, read):
        return None
    own = inner.args.get("joins") or []
    known = {find_name(source)}
    if own:
        if not _have_same_joins(inner, read.select):
            return None
        known |= {find_name(join.this) for join in own}
    elif not all(_keeps_rows(join, table, read) for join, table in joined):
        return None
    copied = inner.copy()
    copied.set("joins", None)
    shared = {read_name(one) for join, _ in joined for one in join.args.get("using") or ()}
    columns = [read.table.columns, *(table.columns for _, table in joined)]
    tables = [{column.name for column in each} for each in columns]
    for column in copied.find_all(exp.Column):
        name, qualifier = read_name(column.this), read_name(column.args.get("table"))
        owners = sum(name in names for names in tables)
        if qualifier not in ("", *known) or (owners != 1 and name not in shared):
            return None
        column.set("table", None)
    return copied


def _list_public_tables(select: exp.Select, read: PrivateRead) -> list[tuple[exp.Join, PublicTable]] | None:
    """Return the joins of a question with the public tables that they join; None for other joins."""
    hidden = {read_name(one.args["alias"].this) for one in read.query.tree.find_all(exp.CTE)}
    public = {one.name: one for one in read.catalog.public_tables if one.name not in hidden}
    found: list[tuple[exp.Join, PublicTable]] = []
    for join in select.args.get("joins") or ():
        table = public.get(read_name(join.this.this)) if isinstance(join.this, exp.Table) else None
        plain = table is not None and is_plain(join.this) and read_name(join.this.args.get("db")) in ("", "public")
        if table is None or not plain or _find_side(join) is None:
            return None
        found.append((join, table))
    return found


def _find_side(join: exp.Join) -> str | None:
    """Return "" for JOIN and "LEFT" for LEFT JOIN, with ON or USING. Return None for other joins."""
    kind, side = (str(join.args.get(part) or "").upper() for part in ("kind", "side"))
    conditioned = join.args.get("on") is not None or bool(join.args.get("using"))
    plain = conditioned and kind in ("", "INNER", "OUTER") and side in ("", "LEFT") and not join.args.get("method")
    return side if plain else None


def _have_same_joins(inner: exp.Select, select: exp.Select) -> bool:
    """Return True if two SELECTs join the same tables in the same order, on the same conditions."""
    sources = [[find_source(one), *(join.this for join in one.args["joins"])] for one in (inner, select)]
    if len(sources[0]) != len(sources[1]) or not all(isinstance(one, exp.Table) for one in sources[0]):
        return False
    named = {find_name(one): f"t{place}" for place, one in enumerate(sources[0])}
    renamed = {find_name(one): f"t{place}" for place, one in enumerate(sources[1])}
    tables = [[(read_name(one.args.get("db")), read_name(one.this)) for one in side] for side in sources]
    return tables[0] == tables[1] and _spell_joins(inner, named) == _spell_joins(select, renamed)


def _spell_joins(select: exp.Select, names: dict[str, str]) -> list[tuple[object, ...]]:
    """Return the conditions of joins as texts, with other names of the tables, and what else joins say."""
    found: list[tuple[object, ...]] = []
    for join in select.args["joins"]:
        on = None if join.args.get("on") is None else exp.Paren(this=join.args["on"].copy())
        for column in on.find_all(exp.Column) if on is not None else ():
            qualifier = read_name(column.args.get("table"))
            column.set("table", exp.to_identifier(names.get(qualifier, qualifier)) if qualifier else None)
        using = tuple(read_name(one) for one in join.args.get("using") or ())
        spelled = "" if on is None else _spell_equality(on.this)
        found.append((_find_side(join), using, spelled))
    return found


def _spell_equality(on: exp.Expr) -> str:
    """Return a condition as text, an equality with its sides in order."""
    node = strip_parentheses(on)
    if not isinstance(node, exp.EQ):
        return write_node(node)
    return " = ".join(sorted(write_node(side) for side in (node.this, node.expression)))


def _keeps_rows(join: exp.Join, table: PublicTable, read: PrivateRead) -> bool:
    """Return True if the join finds a row for every listed value of a key."""
    pair = _find_joined_columns(join, read)
    own = None if pair is None else next((one for one in read.table.columns if one.name == pair[0]), None)
    places = [place for place, one in enumerate(table.columns) if pair is not None and one.name == pair[1]]
    if own is None or own.domain is None or not places:
        return False
    there = {row[places[0]] for row in table.rows}
    return all(value is not None and value in there for value in own.domain)


def _find_joined_columns(join: exp.Join, read: PrivateRead) -> Sequence[str] | None:
    """Return the private and the public column that a join equates; None for other conditions."""
    using = [read_name(one) for one in join.args.get("using") or ()]
    if using:
        return (using[0], using[0]) if len(using) == 1 else None
    on = strip_parentheses(join.args["on"])
    if not isinstance(on, exp.EQ):
        return None
    sides = [strip_parentheses(one) for one in (on.this, on.expression)]
    if not all(isinstance(one, exp.Column) for one in sides):
        return None
    named = {read_name(one.args.get("table")): read_name(one.this) for one in sides}
    own, other = find_name(read.node), find_name(join.this)
    return (named[own], named[other]) if set(named) == {own, other} else None
