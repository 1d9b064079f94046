"""A scalar subquery over the rows of the question's own table, as the window over its groups that it is.

    sum(amount) > 0.02 * (SELECT sum(amount) FROM sales)
    sum(amount) > 0.02 * sum(sum(amount)) OVER ()

    count(*) > 0.1 * (SELECT count(*) FROM sales WHERE gift)
    count(*) > 0.1 * sum(count(*) FILTER (WHERE gift)) OVER ()

    count(*) > 0.1 * (SELECT count(*) FROM sales t WHERE t.c = s.c)
    count(*) > 0.1 * sum(count(*)) OVER (PARTITION BY c)

    count(DISTINCT unit) > 0.1 * (SELECT count(DISTINCT unit) FROM sales)
    count(DISTINCT unit) > 0.1 * count(DISTINCT unit) OVER ()

    count(*) > (SELECT avg(n) FROM (SELECT m, count(*) AS n FROM sales GROUP BY m) q)
    count(*) > avg(count(*)) OVER ()

The meaning stays where every row of the table is in a group: both add up the same rows. Rows whose keys are not listed
are in no group, and count on neither side.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from sqlglot import exp

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.drop_joins import drop_joins
from planner.extract.subqueries.same_groups import (
    find_name,
    find_source,
    has_plain_alias,
    is_plain,
    list_conjuncts,
    list_key_names,
    strip_qualifiers,
)
from planner.extract.subqueries.share_rows import (
    SharedRows,
    filter_aggregates,
    find_shared_rows,
    is_same_table,
    reads_keys,
)
from planner.parser.edits import Edit
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import contains_type, read_alias, read_name, strip_parentheses, write_node
from planner.values.group_statistics import DEVIATIONS, QUANTILES, STATISTICS, find_read_argument

_PLAIN = frozenset(("expressions", "from_", "where"))
_ROOTS: Mapping[type[exp.Expr], type[exp.Expr]] = {exp.Variance: exp.Stddev, exp.VariancePop: exp.StddevPop}
_OF_ROWS = (exp.Count, exp.Sum, exp.Avg, *DEVIATIONS, *QUANTILES)
_NAMED = (exp.PercentileCont, exp.PercentileDisc)  # within a WITHIN GROUP, which is the aggregate
_GROUPED = frozenset(("expressions", "from_", "where", "group"))
_MOST_DIGITS = 9  # of an int of PostgreSQL; it types some longer ones as int, too
_CASTS: Mapping[object, str] = {
    exp.DType.SMALLINT: "int",
    exp.DType.INT: "int",
    exp.DType.BIGINT: "bigint",
    exp.DType.DECIMAL: "numeric",
    exp.DType.DOUBLE: "numeric",
}


def write_totals_as_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that turn scalar subqueries of HAVING over the table's rows into windows.

    Return none for others.

    In the select list beside HAVING, only numbers may read them: the windows of a predicate would read only the groups
    that pass.
    """
    select = read.select
    having, joins = select.args.get("having"), select.args.get("joins")
    if select.args.get("group") is None or not is_plain(read.node):
        return ()
    numbers = [one for one in select.expressions if _is_number(one)]
    deciding = [one for one in select.expressions if not _is_number(one)] if having is None else [having]
    inners = {
        id(node): inner
        for node in _list_scalars([*numbers, *deciding], select)
        if (inner := drop_joins(node.this, read) if joins else node.this) is not None
    }
    compared = [node for node in _list_scalars(deciding, select) if id(node) in inners]
    rows = find_shared_rows(read, [inners[id(node)] for node in compared], wraps=not joins)
    found: list[Edit] = []
    for node in (*_list_scalars(numbers, select), *compared):
        is_read = id(node) in inners and _is_read_beside(node)
        window = write_as_window(inners[id(node)], read, rows) if is_read else None
        if window is None:
            continue
        try:
            ((first, past),) = find_spans([SearchedNode(node, 0, len(read.tokens))], read.text, read.tokens)
        except KeyholeError:
            return ()
        found.append(Edit.from_text(read.tokens[first].start, read.tokens[past - 1].end, f"({window})"))
    if all(" OVER (" not in edit.text for edit in found):
        return ()  # a number of groups alone, of which those without rows would count silently
    return (*found, *rows.edits)


def _list_scalars(parts: Sequence[exp.Expr], select: exp.Select) -> list[exp.Subquery]:
    """Return the subqueries in parts of a SELECT that are not within another one."""
    found = (node for part in parts for node in part.find_all(exp.Subquery) if isinstance(node.this, exp.Select))
    # one in an aggregate or its FILTER is compared with rows, which groups' windows are not
    return [node for node in found if node.find_ancestor(exp.Select, exp.AggFunc, exp.Filter) is select]


def _is_read_beside(node: exp.Subquery) -> bool:
    """Return False for a deviation or quantile of rows that is compared with something else than a mean."""
    around = node.find_ancestor(exp.Predicate)
    if (
        around is None
        or not isinstance(find_source(node.this), exp.Table)
        or not contains_type(node, *DEVIATIONS, *QUANTILES, *_ROOTS)
    ):
        return True
    outside = around.walk(prune=lambda one: isinstance(one, exp.Query))
    return any(isinstance(one, exp.Avg | exp.Div) for one in outside)


def _is_number(item: exp.Expr) -> bool:
    """Return True if an item of a select list compares nothing, outside of subqueries."""
    outside = item.walk(prune=lambda node: isinstance(node, exp.Query))
    return not any(isinstance(node, exp.Predicate | exp.Connector | exp.Case) for node in outside)


def write_as_window(
    inner: exp.Select,
    read: PrivateRead,
    shared: SharedRows,
    *,
    around: str = "",
    keys: Mapping[str, str] | None = None,
) -> str | None:
    """Return a scalar subquery as an expression of windows over the groups of a question, if it is one.

    Parameters:
        shared: the rows that the question and its scalar subqueries read.
        around: the name that qualifies columns of the query around. Default: the question's own table.
        keys: the columns of the query around that show keys, with the columns that they show. Default: each shows
            itself.
    """
    source = find_source(inner)
    if len(inner.expressions) != 1 or any(value for key, value in inner.args.items() if key not in _PLAIN):
        return None
    shown = strip_parentheses(inner.expressions[0].unalias())
    if contains_type(shown, exp.Query, exp.Window):
        return None
    named = {name: name for name in list_key_names(read.select)} if keys is None else keys
    around = around or find_name(read.node)
    if isinstance(source, exp.Table):
        rows = _find_rows(inner, source, read, shared, around=around, keys=named)
        return None if rows is None else _write_windows(shown, source, rows, read)
    if not isinstance(source, exp.Subquery) or not has_plain_alias(source) or not isinstance(source.this, exp.Select):
        return None
    own = read_alias(source)
    found = _list_sizes(source.this, read, shared, around=around, keys=named)
    alike = find_alike_keys(inner, own, around, keys=named, own_keys=_list_shown_keys(source.this))
    if found is None or alike is None:
        return None
    sizes, partition = found
    parts = tuple(dict.fromkeys((*partition, *alike)))
    return write_over_sizes(shown, own, sizes, partition=parts, groups=count_listed_groups(read, parts))


def find_alike_keys(
    inner: exp.Select, own: str, around: str, *, keys: Mapping[str, str], own_keys: Mapping[str, str]
) -> tuple[str, ...] | None:
    """Return the keys in which a subquery's groups must equal the outer group. Return None for other WHERE conditions.

    Parameters:
        own: the name of what the subquery reads, around: that of the query around.
        keys: the columns of the query around that show keys, with these, own_keys: those of what the subquery reads.
    """
    found = [_find_correlated_key(one, own, around, keys, own_keys) for one in list_conjuncts(inner)]
    return tuple(one for one in found if one is not None) if None not in found else None


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows that a subquery reads: those of the question alike in the keys of `partition`, and of all conditions."""

    partition: tuple[str, ...]
    conditions: tuple[exp.Expr, ...]

    def keep(self, whole: exp.Expr) -> exp.Expr:
        """Return an aggregate, with its FILTER, of these rows alone."""
        return filter_aggregates(whole, self.conditions)


def _find_rows(
    inner: exp.Select,
    source: exp.Table,
    read: PrivateRead,
    shared: SharedRows,
    *,
    around: str,
    keys: Mapping[str, str],
) -> _Rows | None:
    """Return the rows that a subquery reads, as some of the question's; None if it reads others."""
    if not is_same_table(source, read):
        return None
    own, grouped = find_name(source), list_key_names(read.select)
    partition, conjuncts = _split_conjuncts(inner, own, around, keys)
    if not grouped.issuperset(partition):
        return None
    if not all(_reads_alone(one, own) for one in conjuncts):
        return None
    more = shared.list_further(conjuncts)
    if more is None or any(contains_type(one, exp.Query) for one in more):
        return None
    return _Rows(tuple(partition), more)


def _split_conjuncts(
    inner: exp.Select, own: str, around: str, keys: Mapping[str, str]
) -> tuple[list[str], list[exp.Expr]]:
    """Return the keys that a subquery's WHERE equates with the question's, and its other conjuncts."""
    alike: list[str] = []
    others: list[exp.Expr] = []
    for conjunct in list_conjuncts(inner):
        joined = _find_correlated_key(conjunct, own, around, keys)
        if joined is None:
            others.append(conjunct)
        else:
            alike.append(joined)
    return alike, others


def _find_correlated_key(
    conjunct: exp.Expr, own: str, around: str, keys: Mapping[str, str], own_keys: Mapping[str, str] | None = None
) -> str | None:
    """Return the key column c if the condition is `own.c = outer.c`. Return None for other conditions.

    Without `own_keys`, own names are those of columns.
    """
    if not isinstance(conjunct, exp.EQ) or own == around:
        return None
    sides = [strip_parentheses(conjunct.this), strip_parentheses(conjunct.expression)]
    if not all(isinstance(one, exp.Column) for one in sides):
        return None
    named = {read_name(one.args.get("table")): read_name(one.this) for one in sides}
    if set(named) != {own, around}:
        return None
    meant = named[own] if own_keys is None else own_keys.get(named[own])
    return meant if meant is not None and keys.get(named[around]) == meant else None


def _reads_alone(node: exp.Expr, own: str) -> bool:
    """Return True if an expression names columns of its own table alone."""
    return all(read_name(column.args.get("table")) in ("", own) for column in node.find_all(exp.Column))


def _write_windows(shown: exp.Expr, source: exp.Table, rows: _Rows, read: PrivateRead) -> str | None:
    """Return an expression of counts, sums and statistics of rows with the totals of groups in their place.

    A sum of whole numbers stays one of PostgreSQL's integers, which are divided without remainder.
    """
    if not _reads_alone(shown, find_name(source)):
        return None
    copied: exp.Expr = exp.Paren(this=strip_qualifiers(shown))
    _write_roots_as_deviations(copied)
    if _write_numbers_of_groups(copied, rows, read) and not contains_type(copied, exp.AggFunc, exp.Column):
        return write_node(copied.this)
    if contains_type(copied, exp.Min, exp.Max):
        return None
    calls = list(copied.find_all(*_OF_ROWS))
    others = [one for one in copied.find_all(exp.AggFunc) if not isinstance(one, (*_OF_ROWS, *_NAMED))]
    wholes = [call.parent if isinstance(call.parent, exp.Filter) else call for call in calls]
    in_calls = {id(column) for whole in wholes for column in whole.find_all(exp.Column)}
    if not calls or others or any(id(column) not in in_calls for column in copied.find_all(exp.Column)):
        return None
    for call in calls:
        whole = call.parent if isinstance(call.parent, exp.Filter) else call
        if isinstance(call.this, exp.Distinct):
            if not isinstance(call, exp.Count) or not _counts_units(call, rows.partition, read):
                return None
            whole.replace(_make_window(rows.keep(whole), rows.partition))
            continue
        if isinstance(call, (*DEVIATIONS, *QUANTILES)):
            read_off = find_read_argument(call)
            if read_off is None:
                return None
            of_rows = exp.ArrayAgg(this=read_off.copy())
            filtered = exp.Filter(this=of_rows, expression=whole.expression.copy()) if whole is not call else of_rows
            read_off.replace(rows.keep(filtered))
            whole.replace(_make_window(call.copy(), rows.partition))
            continue
        is_whole = _is_whole(call, read)
        if is_whole is None and not isinstance(call, exp.Avg):
            return None
        if isinstance(call, exp.Avg):
            whole.replace(_write_mean(rows.keep(whole), rows.partition))
            continue
        window: exp.Expr = _make_window(exp.Sum(this=rows.keep(whole)), rows.partition)
        whole.replace(exp.Cast(this=window, to=exp.DataType(this=exp.DType.BIGINT)) if is_whole else window)
    return write_node(copied.this)


def _write_roots_as_deviations(copied: exp.Expr) -> None:
    """Write the roots of variances of rows as the standard deviations that they are."""
    for root in list(copied.find_all(exp.Sqrt)):
        whole = strip_parentheses(root.this)
        call = whole.this if isinstance(whole, exp.Filter) else whole
        if type(call) in _ROOTS:
            made: exp.Expr = _ROOTS[type(call)](this=call.this.copy())
            filtered = isinstance(whole, exp.Filter)
            root.replace(exp.Filter(this=made, expression=whole.expression.copy()) if filtered else made)


def _counts_units(call: exp.Count, partition: Sequence[str], read: PrivateRead) -> bool:
    """Return True if different values are counted that make up a privacy unit, within the keys of `partition`."""
    named, unit = {read_name(column.this) for column in call.find_all(exp.Column)}, {*read.table.unit}
    return unit - {*partition} <= named <= unit and bool(named)


def _write_numbers_of_groups(copied: exp.Expr, rows: _Rows, read: PrivateRead) -> bool:
    """Write `count(DISTINCT key)` as the number of groups that it is. Return True if there is one."""
    counted = [(one, _count_groups(one, rows, read)) for one in copied.find_all(exp.Count)]
    for one, groups in counted:
        if groups is not None:
            one.replace(exp.Literal.number(groups))
    return any(groups is not None for _, groups in counted)


def _count_groups(call: exp.Count, rows: _Rows, read: PrivateRead) -> int | None:
    """Return the number of groups for `count(DISTINCT key)` of the one key of a question. Return None for others."""
    distinct = call.this
    named = distinct.expressions if isinstance(distinct, exp.Distinct) else []
    called = read_name(named[0].this) if len(named) == 1 and isinstance(named[0], exp.Column) else ""
    is_alone = list_key_names(read.select) == {called} and not rows.partition and not rows.conditions
    key = next((one for one in read.table.columns if one.name == called), None)
    if not is_alone or isinstance(call.parent, exp.Filter) or key is None or None in (key.domain or ()):
        return None
    return count_listed_groups(read)


def count_listed_groups(read: PrivateRead, partition: Iterable[str] = ()) -> int | None:
    """Return the number of groups of a question that agree in some keys, if the policy lists them all.

    A group without rows is one of them, as in the means of groups.
    """
    keys = [one for one in read.table.columns if one.name in list_key_names(read.select).difference(partition)]
    lists = [one.domain for one in keys if one.domain]
    if not keys or len(lists) < len(keys) or any(reads_keys(one, read) for one in list_conjuncts(read.select)):
        return None
    return prod(map(len, lists))


def _write_mean(whole: exp.Expr, partition: Sequence[str]) -> exp.Expr:
    """Return the mean of the rows of all groups as a quotient of totals, which is NULL of no rows as well."""

    def write_total(kind: type[exp.AggFunc]) -> exp.Window:
        called: exp.Expr = exp.Paren(this=whole.copy())
        for mean in list(called.find_all(exp.Avg)):
            mean.replace(kind(this=mean.this.copy()))
        return _make_window(exp.Sum(this=called.this), partition)

    rows = exp.Nullif(this=write_total(exp.Count), expression=exp.Literal.number(0))
    return exp.Paren(this=exp.Div(this=write_total(exp.Sum), expression=rows, typed=True, safe=False))


def _is_whole(call: exp.Expr, read: PrivateRead) -> bool | None:
    """Return True if PostgreSQL counts or sums to a bigint, False if to a number with digits, None if unsure.

    A sum of bigints is numeric.
    """
    if isinstance(call, exp.Count):
        return True
    kinds = {column.name: _find_kind(column.sql_type, column.declared) for column in read.table.columns}
    found = _find_value_kind(call.this, kinds)
    named = {read_name(column.this) for column in call.find_all(exp.Column)}
    if not found and named and all(kinds.get(name) == "numeric" for name in named):
        return False
    return found == "int" if found else None


def _find_kind(sql_type: SqlType, declared: str) -> str:
    if sql_type is SqlType.INTEGER:
        return "bigint" if declared == "bigint" else "int"
    return "numeric" if sql_type in (SqlType.NUMERIC, SqlType.DOUBLE) else ""


def _find_value_kind(node: exp.Expr | None, kinds: Mapping[str, str]) -> str:
    """Return "int", "bigint" or "numeric" for a value of that type, NULL for NULL, and an empty text if unsure."""
    match node:
        case exp.Paren() | exp.Neg() | exp.Abs():
            return _find_value_kind(node.this, kinds)
        case exp.Null():
            return "NULL"
        case exp.Column():
            return kinds.get(read_name(node.this), "")
        case exp.Literal() if not node.is_string:
            return ("int" if len(node.name) <= _MOST_DIGITS else "") if node.name.isdecimal() else "numeric"
        case exp.Cast() if not node.to.expressions:
            return _CASTS.get(node.to.this, "")
        case exp.Case() if node.this is None:
            parts = [one.args["true"] for one in node.args["ifs"]] + [node.args.get("default") or exp.Null()]
        case exp.Add() | exp.Sub() | exp.Mul():
            parts = [node.this, node.expression]
        case exp.Coalesce():
            parts = [node.this, *node.expressions]
        case _:
            return ""
    found = {_find_value_kind(part, kinds) for part in parts} - {"NULL"}
    return "" if "" in found else next((kind for kind in ("numeric", "bigint", "int") if kind in found), "NULL")


def _list_sizes(
    inner: exp.Select, read: PrivateRead, shared: SharedRows, *, around: str, keys: Mapping[str, str]
) -> tuple[dict[str, exp.Expr], tuple[str, ...]] | None:
    """Return the sizes, by name, that a grouped subquery shows of the groups of the question around it.

    With them are the keys in which these groups are those of one group around. Return None for other subqueries.
    """
    source = find_source(inner)
    plain = not any(value for key, value in inner.args.items() if key not in _GROUPED)
    if not (plain and isinstance(source, exp.Table) and is_same_table(source, read)):
        return None
    own, grouped = find_name(source), list_key_names(inner)
    alike, conjuncts = _split_conjuncts(inner, own, around, keys)
    if not grouped or grouped | set(alike) != list_key_names(read.select):
        return None
    if not all(_reads_alone(one, own) for one in conjuncts):
        return None
    more = shared.list_further(conjuncts)
    if more is None or any(contains_type(one, exp.Query) or reads_keys(one, read) for one in more):
        return None
    sizes = {
        read_name(item.args["alias"]): filter_aggregates(item.this, more)
        for item in inner.expressions
        if isinstance(item, exp.Alias) and _reads_alone(item.this, own)
    }
    return sizes, tuple(alike)


def _list_shown_keys(select: exp.Select) -> dict[str, str]:
    """Return the keys that a grouped SELECT shows, by the names that it gives them."""
    keys, found = list_key_names(select), dict[str, str]()
    for item in select.expressions:
        node = strip_parentheses(item.unalias())
        if isinstance(node, exp.Column) and read_name(node.this) in keys:
            column = read_name(node.this)
            found[read_name(item.args["alias"]) if isinstance(item, exp.Alias) else column] = column
    return found


def write_over_sizes(
    shown: exp.Expr,
    own: str,
    sizes: Mapping[str, exp.Expr],
    *,
    partition: Iterable[str] = (),
    groups: int | None = None,
) -> str | None:
    """Return an expression of means, sums and statistics over groups' sizes as windows.

    Return None for other expressions.

    Parameters:
        own: the name that qualifies the sizes.
        partition: the keys that these groups have in common.
        groups: their number, which count(*) stands for.
    """
    copied: exp.Expr = exp.Paren(this=shown.copy())
    counted = [one for one in copied.find_all(exp.Count) if isinstance(one.this, exp.Star)]
    for one in counted if groups is not None else ():
        one.replace(exp.Literal.number(groups))
    if not _reads_alone(copied, own):
        return None
    calls = list(copied.find_all(exp.Avg, exp.Sum, *STATISTICS))
    within = {id(column) for call in calls for column in call.find_all(exp.Column)}
    if not calls or contains_type(copied, exp.Filter, exp.Distinct, exp.Query, exp.Window):
        return None
    known = {id(call.this) if isinstance(call, exp.WithinGroup) else id(call) for call in calls}
    if any(id(one) not in known for one in copied.find_all(exp.AggFunc)):
        return None
    if any(id(column) not in within for column in copied.find_all(exp.Column)):
        return None
    for call in calls:
        argument = find_read_argument(call)
        column = None if argument is None else strip_parentheses(argument)
        size = sizes.get(read_name(column.this)) if isinstance(column, exp.Column) else None
        if column is None or size is None or contains_type(size, exp.Query, exp.Window):
            return None
        if not contains_type(size, exp.AggFunc):
            return None
        column.replace(strip_qualifiers(size))
        # sqlglot writes a median as a percentile, with a number that nobody typed
        of_groups = exp.Anonymous(this="median", expressions=[call.this]) if isinstance(call, exp.Median) else call
        call.replace(_make_window(of_groups.copy(), tuple(partition)))
    return write_node(copied.this)


def _make_window(call: exp.Expr, partition: Sequence[str]) -> exp.Window:
    return exp.Window(this=call, partition_by=[exp.column(exp.to_identifier(one, quoted=True)) for one in partition])
