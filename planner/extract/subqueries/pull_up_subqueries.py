"""A subquery that only filters and projects a private table, merged into the SELECT that reads it.

A unit's rows are bounded before any WHERE is applied, so that a filter means the same in either place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.bind.from_clause import ON_TABLE
from planner.bind.shown_expressions import computes_each_row
from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token, spell_name
from planner.parser.subquery_readers import Reader, find_unaliased_end, list_readers
from planner.parser.tree import contains_type, find_offset, locate_name, read_alias, read_name, strip_parentheses

_PLAIN = frozenset(("expressions", "from_", "where"))
NOTHING = "SELECT NULL"


@dataclass(frozen=True, slots=True)
class _ShownColumn:
    """A column of the subquery, as an expression of the table.

    It `is_plain` if the expression is a column. It `keeps_name` if the column has the same name in both.
    """

    node: exp.Expr
    first: int
    stop: int
    is_plain: bool
    keeps_name: bool


@dataclass(frozen=True, slots=True)
class _Inner:
    """The subquery: its columns by name, in order. It `shows_everything` if it also shows all columns of the table."""

    table: Table
    clauses: Clauses
    shown: Mapping[str, _ShownColumn]
    shows_everything: bool
    name: str
    where: exp.Expr | None
    alias: str


def pull_up_subqueries(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that merge the SELECT into its reader. Return none if that would change the meaning."""
    if not isinstance(read.select.parent, exp.Subquery | exp.CTE):
        return ()
    try:
        return _pull_up(read)
    except KeyholeError:
        return ()


def _pull_up(read: PrivateRead) -> tuple[Edit, ...]:
    select, text, tokens = read.select, read.text, read.tokens
    inner = _read_inner(select, read.node, read.table, text, tokens)
    if inner is None:
        return ()
    found = list_readers(select, inner.clauses.select, tokens)
    if not found:
        return ()
    room = EditBudget(text)
    changes: list[Edit] = []
    for reader in found:
        made = _edit_reader(reader, inner, room, text, tokens)
        if made is None:
            return ()
        changes.extend(made)
    if isinstance(select.parent, exp.CTE):
        changes.append(remove_cte(select.parent, inner.clauses, tokens))
    return tuple(changes)


def _read_inner(
    select: exp.Select, node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...]
) -> _Inner | None:
    if any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    if any(value for key, value in node.args.items() if key not in ON_TABLE):
        return None
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    where = select.args.get("where")
    if where is not None and _reads_groups(where, select):
        return None
    place = find_clauses(node, tokens)
    closed = place.end < len(tokens) and tokens[place.end].is_symbol(")")
    if not closed or not matches_tree(place, select, tokens) or len(select.expressions) != len(place.items):
        return None  # an empty item of the list is among these; PostgreSQL will refuse it
    own = {column.name for column in table.columns} | {shown.name for shown in table.band_columns}
    everything = False
    shown: dict[str, _ShownColumn] = {}
    for item, (first, past) in zip(select.expressions, place.items, strict=True):
        if _is_star(item):
            if everything:
                return None
            everything = True
            continue
        one = _read_item(item, first, past, tokens)
        if one is None or one[0] in shown:
            return None
        shown[one[0]] = one[1]
    if everything and own & set(shown):
        return None
    start = find_token(tokens, locate_name(node))
    written = text[tokens[start].start : tokens[find_token(tokens, find_offset(node.this))].end]
    return _Inner(table, place, shown, everything, written, where, read_alias(node))


def _reads_groups(where: exp.Expr, select: exp.Select) -> bool:
    """Return True if a condition of the SELECT itself, not of a subquery in it, reads aggregates or windows."""
    return any(node.find_ancestor(exp.Select) is select for node in where.find_all(exp.AggFunc, exp.Window))


def _is_own(column: exp.Column, where: exp.Expr, alias: str) -> bool:
    """Return True if a name is qualified as a column of the subquery's table, also in another subquery in its WHERE."""
    if read_name(column.args.get("table")) != alias:
        return False
    select = column.find_ancestor(exp.Select)
    while select is not None and select is not where.parent:
        from_ = select.args.get("from_")
        read = [] if from_ is None else [from_.this, *(join.this for join in select.args.get("joins") or ())]
        if any(read_alias(one) == alias for one in read if isinstance(one, exp.Table)):
            return False
        select = select.find_ancestor(exp.Select)
    return True


def _is_star(item: exp.Expr) -> bool:
    star = item.this if isinstance(item, exp.Column) else item
    return isinstance(star, exp.Star) and not any(star.args.values())


def _read_item(item: exp.Expr, first: int, past: int, tokens: tuple[Token, ...]) -> tuple[str, _ShownColumn] | None:
    """Return a column of the subquery by its name. Return None for other expressions and uncertain names."""
    node = item.this if isinstance(item, exp.Alias) else item
    called = read_name(item.args["alias"]) if isinstance(item, exp.Alias) else ""
    past = find_unaliased_end(item, past, tokens)
    column = strip_parentheses(node)
    if isinstance(column, exp.Column) and isinstance(column.this, exp.Identifier):
        called = called or read_name(column.this)
        same = called == read_name(column.this) and node is column
        return called, _ShownColumn(node, first, past, is_plain=True, keeps_name=same)
    if not called or not computes_each_row(node):
        return None
    return called, _ShownColumn(node, first, past, is_plain=False, keeps_name=False)


def _edit_reader(
    reader: Reader, inner: _Inner, room: EditBudget, text: str, tokens: tuple[Token, ...]
) -> list[Edit] | None:
    """Return the changes to one SELECT that reads the subquery."""
    if (
        not reader.is_only_source
        or reader.has_inner_queries()
        or len(reader.select.expressions) != len(reader.clauses.items)
    ):
        return None  # an empty select list has one item among the tokens
    alias = reader.alias or inner.table.name
    changes = _edit_references(reader, inner, alias, room, text, tokens)
    if changes is None:
        return None
    needs = isinstance(reader.node, exp.Table) and not reader.is_named
    source = f"{inner.name} AS {spell_name(alias)}" if needs else f" {inner.name} "
    changes.append(Edit.from_text(tokens[reader.first].start, tokens[reader.last].end, source))
    first = inner.clauses.find_mark("where")
    if inner.where is not None and first is not None:
        written = [column for column in inner.where.find_all(exp.Column) if _is_own(column, inner.where, inner.alias)]
        columns = [(column, alias) for column in written]
        condition = requalify(columns, first + 1, inner.clauses.end, room, text, tokens)
        changes.extend(add_condition(reader, condition, first, tokens))
    return changes


def add_condition(reader: Reader, condition: str, first: int, tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield edits that add a condition, after the token at `first`, to the WHERE of the SELECT around the subquery."""
    where = reader.clauses.find_mark("where")
    later = [index for _, index in reader.clauses.marks if where is None or index > where]
    end = tokens[min(later, default=reader.clauses.end) - 1].end
    written = tokens[first + 1].start
    if where is None:
        yield Edit.from_text(end, end, f" WHERE {condition}", written)
    else:
        yield Edit.from_text(tokens[where].end, tokens[where].end, f" ({condition}) AND (", written)
        yield Edit.from_text(end, end, ")")


def requalify(
    columns: Sequence[tuple[exp.Column, str]],
    first: int,
    past: int,
    room: EditBudget,
    text: str,
    tokens: tuple[Token, ...],
) -> str:
    """Return the text of some tokens of the subquery, in which columns have the outer query's table names."""
    parts: list[str] = []
    at = tokens[first].start
    room.reserve(tokens[past - 1].end - at + sum(len(spell_name(alias)) for _, alias in columns))
    for start, column, alias in sorted((locate_name(column), column.this, alias) for column, alias in columns):
        begin = tokens[find_token(tokens, start)].start
        name_ = tokens[find_token(tokens, find_offset(column))]
        parts.append(f"{text[at:begin]}{spell_name(alias)}.{text[name_.start : name_.end]}")
        at = name_.end
    parts.append(text[at : tokens[past - 1].end])
    return "".join(parts)


def _edit_references(
    reader: Reader, inner: _Inner, alias: str, room: EditBudget, text: str, tokens: tuple[Token, ...]
) -> list[Edit] | None:
    """Return the changes to the columns that the outer SELECT reads. Return None for an unknown column."""
    select = reader.select
    changes: dict[int, Edit] = {}
    for column in reader.list_columns():
        made = _keep_star(column, select, alias) if isinstance(column.this, exp.Star) else None
        if made is None:
            made = _edit_reference(column, reader, inner, alias, room, text, tokens)
        if made is None:
            return None
        changes |= made
    for item, (first, past) in zip(select.expressions, reader.clauses.items, strict=True):
        if _is_star(item) and not (inner.shows_everything and not inner.shown):
            start, end = tokens[first].start, tokens[past - 1].end
            changes[start] = Edit.from_text(start, end, _expand_star(inner, alias, room, text, tokens))
    return list(changes.values())


def _keep_star(column: exp.Column, select: exp.Select, alias: str) -> dict[int, Edit] | None:
    """Return no changes for `alias.*` in a select list, which is expanded as a whole. Return None for others."""
    return {} if column.parent is select and read_name(column.args.get("table")) == alias else None


def _edit_reference(
    column: exp.Column,
    reader: Reader,
    inner: _Inner,
    alias: str,
    room: EditBudget,
    text: str,
    tokens: tuple[Token, ...],
) -> dict[int, Edit] | None:
    """Return the changes for one mention of a column, by offset. Return None if the subquery has no such column."""
    select, called, qualifier = reader.select, read_name(column.this), read_name(column.args.get("table"))
    if column.args.get("db") is not None or qualifier not in ("", alias) or isinstance(column.this, exp.Star):
        return None
    outputs = [find_output_name(item) for item in select.expressions]
    if qualifier == "" and called in outputs and is_sorted_by(column, select):
        return {}
    known = inner.shows_everything and any(one.name == called for one in inner.table.columns)
    at = tokens[find_token(tokens, find_offset(column.this))]
    shown = inner.shown.get(called)
    if shown is None and not known:
        if qualifier == "" and outputs.count(called) == 1 and is_grouped_by(column, select):
            return {at.start: Edit.from_text(at.start, at.end, str(outputs.index(called) + 1))}
        return None
    if shown is None or shown.keeps_name:
        return {}
    if not shown.is_plain and not contains_type(shown.node, exp.Column) and not takes_constant(column, shown.node):
        return None
    labelled = keep_output_name(column, reader, tokens)
    if labelled is None:
        return None
    start = tokens[find_token(tokens, locate_name(column))].start
    return {start: Edit.from_text(start, at.end, _spell_item(shown, alias, room, text, tokens)), **labelled}


def takes_constant(column: exp.Column, constant: exp.Expr) -> bool:
    """Return True if a constant can replace the column without a change of meaning.

    In GROUP BY and ORDER BY a number would be a position. A text constant would have no type.
    """
    inner: exp.Expr = column
    while isinstance(inner.parent, exp.Paren):
        inner = inner.parent
    above = inner.parent
    is_number = isinstance(constant, exp.Boolean) or (isinstance(constant, exp.Literal) and not constant.is_string)
    return is_number and isinstance(above, exp.AggFunc | exp.Predicate | exp.Where | exp.Connector | exp.Not)


def keep_output_name(column: exp.Column, reader: Reader, tokens: tuple[Token, ...]) -> dict[int, Edit] | None:
    """Return the edit that keeps the output name of a select item after a column in it is replaced.

    Return None if the name is uncertain.
    """
    item = _find_item(column, reader.select)
    if item is None or isinstance(item, exp.Alias):
        return {}
    label = _find_label(item)
    if label is None:
        return None
    end = tokens[reader.clauses.items[_find_index(item, reader.select)][1] - 1].end
    return {-end: Edit.from_text(end, end, f" AS {spell_name(label)}")} if label else {}


def _find_index(item: exp.Expr, select: exp.Select) -> int:
    return next(index for index, one in enumerate(select.expressions) if one is item)


def find_output_name(item: exp.Expr) -> str:
    """Return the name of a column in the answer. Return an empty text if only PostgreSQL knows it."""
    if isinstance(item, exp.Alias):
        return read_name(item.args["alias"])
    node = strip_parentheses(item)
    return read_name(node.this) if isinstance(node, exp.Column) else ""


def is_sorted_by(column: exp.Column, select: exp.Select) -> bool:
    """Return True if an item of ORDER BY or DISTINCT ON is this column alone. Output names take precedence there."""
    inner: exp.Expr = column
    while isinstance(inner.parent, exp.Paren):
        inner = inner.parent
    if isinstance(inner.parent, exp.Ordered):
        return inner.parent.parent is select.args.get("order")
    distinct = select.args.get("distinct")
    return (
        distinct is not None and distinct.args.get("on") is not None and inner.find_ancestor(exp.Distinct) is distinct
    )


def is_grouped_by(column: exp.Column, select: exp.Select) -> bool:
    """Return True if an item of GROUP BY is this column's name alone."""
    inner: exp.Expr = column
    while isinstance(inner.parent, exp.Paren):
        inner = inner.parent
    return inner.parent is select.args.get("group") and inner is column


def _find_item(column: exp.Column, select: exp.Select) -> exp.Expr | None:
    """Return the item of the select list in which a column stands."""
    node: exp.Expr = column
    while node.parent is not None and node.parent is not select:
        node = node.parent
    return node if any(item is node for item in select.expressions) else None


def _find_label(item: exp.Expr) -> str | None:
    """Return the column name that PostgreSQL gives an item whose columns are renamed.

    Return an empty text if the item keeps its own name, and None if the name is unsure.
    """
    node = strip_parentheses(item)
    while isinstance(node, exp.Cast):
        node = strip_parentheses(node.this)
    if isinstance(node, exp.Column):
        return read_name(node.this)
    return "" if isinstance(node, exp.Func) and not isinstance(node, exp.Case | exp.Connector) else None


def _spell_item(shown: _ShownColumn, alias: str, room: EditBudget, text: str, tokens: tuple[Token, ...]) -> str:
    columns = [(column, alias) for column in shown.node.find_all(exp.Column)]
    spelled = requalify(columns, shown.first, shown.stop, room, text, tokens)
    return spelled if shown.is_plain else f"({spelled})"


def _expand_star(inner: _Inner, alias: str, room: EditBudget, text: str, tokens: tuple[Token, ...]) -> str:
    """Return the subquery's columns as text, to replace the star of the outer SELECT."""
    every = [f"{spell_name(alias)}.*"] if inner.shows_everything else []
    return ", ".join(
        [
            *every,
            *(
                f"{_spell_item(one, alias, room, text, tokens)} AS {spell_name(called)}"
                for called, one in inner.shown.items()
            ),
        ]
    )


def remove_cte(cte: exp.CTE, inner: Clauses, tokens: tuple[Token, ...]) -> Edit:
    """Return the edit that removes a WITH query which all its readers have copied.

    The word WITH goes too if it was the only query.
    """
    with_ = cte.parent
    opening, end = inner.select - 1, inner.end
    at = find_token(tokens, find_offset(cte.args["alias"].this))
    if (
        with_ is not None
        and len(with_.expressions) == 1
        and tokens[at - 1].is_word("with")
        and tokens[end].is_symbol(")")
    ):
        return Edit.from_text(tokens[at - 1].start, tokens[end].end, "")
    return Edit.from_text(tokens[opening + 1].start, tokens[end - 1].end, NOTHING)
