"""A scalar subquery over the rows of the question's own table, as the window over its groups that it is.

    sum(amount) > 0.02 * (SELECT sum(amount) FROM sales)
    sum(amount) > 0.02 * sum(sum(amount)) OVER ()

    count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE t.c = s.c)
    count(*) > 0.1 * sum(count(*)) OVER (PARTITION BY c)

    count(*) > (SELECT avg(n) FROM (SELECT m, count(*) AS n FROM sales GROUP BY m) q)
    count(*) > avg(count(*)) OVER ()

The meaning stays where every row of the table is in a group: both add up the same rows. Rows whose keys are not listed
are in no group, and count on neither side.
"""

from collections.abc import Sequence

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, read_name, strip_parentheses, write_node

_PLAIN = frozenset(("expressions", "from_", "where"))
_GROUPED = frozenset(("expressions", "from_", "where", "group"))


def write_totals_as_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that write scalar subqueries of HAVING over the table's rows as windows; none for others."""
    select = read.select
    having = select.args.get("having")
    if select.args.get("group") is None or select.args.get("joins"):
        return ()
    found: list[Edit] = []
    shown = (one for one in select.expressions if having is None)
    for node in (node for part in (*shown, having) if part is not None for node in part.find_all(exp.Subquery)):
        if node.find_ancestor(exp.Select) is not select or not isinstance(node.this, exp.Select):
            continue
        window = _as_window(node.this, read)
        if window is None:
            continue
        try:
            ((first, past),) = find_spans([SearchedNode(node, 0, len(read.tokens))], read.text, read.tokens)
        except KeyholeError:
            return ()
        found.append(Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, f"({window})"))
    return tuple(found)


def _as_window(inner: exp.Select, read: PrivateRead) -> str | None:
    """Return a scalar subquery as an expression of windows over the groups of the question around it, if it is one."""
    source = inner.args["from_"].this if inner.args.get("from_") is not None else None
    if len(inner.expressions) != 1 or any(value for key, value in inner.args.items() if key not in _PLAIN):
        return None
    shown = strip_parentheses(inner.expressions[0].unalias())
    if contains_type(shown, exp.Query, exp.Window):
        return None
    if isinstance(source, exp.Table):
        partition = _partition(inner, source, read)
        return None if partition is None else _with_windows(shown, partition)
    if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Select) and inner.args.get("where") is None:
        sizes = _sizes_of_groups(source.this, read)
        return None if sizes is None else _over_sizes(shown, sizes)
    return None


def _partition(inner: exp.Select, source: exp.Table, read: PrivateRead) -> list[str] | None:
    """Return the keys whose values a subquery compares with those around; None if it reads other rows."""
    if not _is_same_table(source, read):
        return None
    own, around = _find_name(source), _find_name(read.node)
    keys = _key_names(read.select)
    partition: list[str] = []
    conjuncts: list[exp.Expr] = []
    for conjunct in _conjuncts(inner):
        joined = _correlated_key(conjunct, own, around)
        if joined is None:
            conjuncts.append(conjunct)
        elif joined in keys:
            partition.append(joined)
        else:
            return None
    return partition if _spell_all(conjuncts) == _spell_all(_conjuncts(read.select)) else None


def _correlated_key(conjunct: exp.Expr, own: str, around: str) -> str | None:
    """Return the column that `own.c = around.c` compares with itself."""
    if not isinstance(conjunct, exp.EQ) or own == around:
        return None
    sides = [strip_parentheses(conjunct.this), strip_parentheses(conjunct.expression)]
    if not all(isinstance(one, exp.Column) for one in sides):
        return None
    tables, names = {read_name(one.args.get("table")) for one in sides}, {read_name(one.this) for one in sides}
    return names.pop() if tables == {own, around} and len(names) == 1 else None


def _with_windows(shown: exp.Expr, partition: Sequence[str]) -> str | None:
    """Return an expression of counts and sums of rows with the totals of groups in their place."""
    if any(contains_type(shown, kind) for kind in (exp.Avg, exp.Distinct, exp.Min, exp.Max)):
        return None
    copied: exp.Expr = exp.Paren(this=_strip_qualifiers(shown))
    calls = list(copied.find_all(exp.Count, exp.Sum))
    others = [one for one in copied.find_all(exp.AggFunc) if not isinstance(one, exp.Count | exp.Sum)]
    read = {id(column) for call in calls for column in call.find_all(exp.Column)}
    if not calls or others or any(id(column) not in read for column in copied.find_all(exp.Column)):
        return None
    for call in calls:
        whole = call.parent if isinstance(call.parent, exp.Filter) else call
        whole.replace(_window(exp.Sum(this=whole.copy()), partition))
    return write_node(copied.this)


def _sizes_of_groups(inner: exp.Select, read: PrivateRead) -> dict[str, exp.Expr] | None:
    """Return the sizes, by name, that a grouped subquery shows of the groups of the question around it."""
    source = inner.args["from_"].this if inner.args.get("from_") is not None else None
    plain = not any(value for key, value in inner.args.items() if key not in _GROUPED)
    if not (plain and isinstance(source, exp.Table) and _is_same_table(source, read)):
        return None
    keys = _key_names(inner)
    if (
        not keys
        or keys != _key_names(read.select)
        or _spell_all(_conjuncts(inner)) != _spell_all(_conjuncts(read.select))
    ):
        return None
    return {read_name(item.args["alias"]): item.this for item in inner.expressions if isinstance(item, exp.Alias)}


def _over_sizes(shown: exp.Expr, sizes: dict[str, exp.Expr]) -> str | None:
    """Return the mean or sum of a size of all groups as a window."""
    if not isinstance(shown, exp.Avg | exp.Sum) or not isinstance(strip_parentheses(shown.this), exp.Column):
        return None
    size = sizes.get(read_name(strip_parentheses(shown.this).this))
    if size is None or contains_type(size, exp.Query, exp.Window) or not contains_type(size, exp.AggFunc):
        return None
    return write_node(_window(type(shown)(this=_strip_qualifiers(size)), ()))


def _window(call: exp.Expr, partition: Sequence[str]) -> exp.Window:
    return exp.Window(this=call, partition_by=[exp.column(exp.to_identifier(one, quoted=True)) for one in partition])


def _is_same_table(source: exp.Table, read: PrivateRead) -> bool:
    plain = not source.args.get("joins")
    return plain and [read_name(source.args.get(part)) for part in ("db", "this")] == [
        read_name(read.node.args.get(part)) for part in ("db", "this")
    ]


def _find_name(table: exp.Table) -> str:
    alias = table.args.get("alias")
    return read_name(alias.this) if alias is not None and alias.this is not None else read_name(table.this)


def _key_names(select: exp.Select) -> frozenset[str]:
    """Return the columns that a SELECT groups by; empty if it groups by anything else."""
    group = select.args.get("group")
    found: set[str] = set()
    for item in group.expressions if group is not None else ():
        node = strip_parentheses(item)
        if isinstance(node, exp.Literal) and not node.is_string:
            place = int(str(node.this)) - 1
            node = (
                strip_parentheses(select.expressions[place].unalias()) if 0 <= place < len(select.expressions) else node
            )
        if not isinstance(node, exp.Column):
            return frozenset()
        found.add(read_name(node.this))
    return frozenset(found)


def _conjuncts(select: exp.Select) -> list[exp.Expr]:
    where = select.args.get("where")
    return (
        []
        if where is None
        else [strip_parentheses(one) for one in where.this.flatten()]
        if isinstance(where.this, exp.And)
        else [strip_parentheses(where.this)]
    )


def _spell_all(conjuncts: Sequence[exp.Expr]) -> frozenset[str]:
    return frozenset(write_node(_strip_qualifiers(one)) for one in conjuncts)


def _strip_qualifiers(node: exp.Expr) -> exp.Expr:
    """Return an expression with its columns' names alone."""
    copied: exp.Expr = exp.Paren(this=node.copy())
    for column in copied.find_all(exp.Column):
        column.set("table", None)
    found: exp.Expr = copied.this
    return found
