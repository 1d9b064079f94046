"""Equalities between a question's columns and columns from outside of it, moved into a query around the question.

SELECT c.name FROM countries c
WHERE NOT EXISTS (SELECT 1 FROM sales s WHERE s.country = c.name GROUP BY s.country HAVING count(*) > 1000)

SELECT c.name FROM countries c
WHERE NOT EXISTS (SELECT 1 FROM (SELECT s.country FROM sales s GROUP BY s.country HAVING count(*) > 1000) AS s
                  WHERE s.country = c.name)

PostgreSQL gives the same for both: rows that are equal to one value in a column are groups of that value, and NULL is
equal to none. A column that is not grouped by becomes one more key. Without GROUP BY there is one group, also of no
rows: then the condition moves out of EXISTS alone, and only if HAVING is not true of no rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.bind.from_clause import ON_TABLE
from planner.bind.shown_expressions import is_harmless
from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.parser.clauses import Clauses, find_clauses, matches_tree
from planner.parser.edits import Edit
from planner.parser.lexer import quote_identifier
from planner.parser.subquery_readers import find_conjuncts
from planner.parser.tree import contains_type, read_name, strip_parentheses
from planner.values.comparisons import fold_condition
from planner.values.constant import ConstantContext

_AROUND = (exp.Subquery, exp.Exists, exp.All, exp.Any)
_CLAUSES = frozenset(("expressions", "from_", "where", "group", "having", "order", "limit", "offset", "distinct"))
_COMPARISONS = (exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ)
_NULL_BY_NULL = (*_COMPARISONS, exp.Null, exp.Literal, exp.Paren, exp.Neg, exp.Add, exp.Sub, exp.Mul, exp.Div)
_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)


@dataclass(frozen=True, slots=True)
class _Conjunct:
    """A condition of WHERE, by its tokens. `column` is the question's own in a correlation, else None."""

    node: exp.Expr
    first: int
    stop: int
    column: exp.Column | None


def move_out_correlations(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the changes that move correlations out of a question. Return none if one of them cannot move."""
    select = read.select
    if select.args.get("having") is None or not isinstance(select.parent, _AROUND):
        return ()
    if any(value for key, value in select.args.items() if key not in _CLAUSES):
        return ()
    if any(value for key, value in read.node.args.items() if key not in ON_TABLE):
        return ()
    try:
        return tuple(_plan_moves(read))
    except KeyholeError:
        return ()


def _plan_moves(read: PrivateRead) -> list[Edit]:
    select, tokens = read.select, read.tokens
    place = find_clauses(read.node, tokens)
    spans = find_conjuncts(select, place, tokens) if matches_tree(place, select, tokens) else None
    own = _OwnColumns(read)
    conjuncts = [_Conjunct(node, *span, own.find_correlated_column(node)) for span, node in spans or ()]
    moved = [one for one in conjuncts if one.column is not None]
    hidden = {id(part) for one in moved for part in one.node.walk()}
    rest = [column for column in select.find_all(exp.Column) if id(column) not in hidden]
    if not moved or not all(map(own.has_column, rest)):
        return []
    keys = _list_keys(select, moved, own)
    if keys is None:
        return []
    return list(_write(place, conjuncts, [own.spell(key) for key in keys], own.alias, read))


class _OwnColumns:
    """The columns of a question's table, by the names that it has for them."""

    def __init__(self, read: PrivateRead) -> None:
        given = read.node.args.get("alias")
        self.alias = read_name(given.this) if given is not None else read_name(read.node.this)
        self._names = {column.name for column in read.table.columns}
        self._outside = set(_list_sources(read.select))

    def has_column(self, column: exp.Column) -> bool:
        """Return True if a name means a column of the table."""
        qualifier = read_name(column.args.get("table"))
        known = read_name(column.this) in self._names and column.args.get("db") is None
        return known and qualifier in ("", self.alias)

    def find_correlated_column(self, node: exp.Expr) -> exp.Column | None:
        """Return the table's column in an equality with something from outside. Return None for any other condition."""
        equality = strip_parentheses(node)
        if not isinstance(equality, exp.EQ):
            return None
        for one, other in ((equality.this, equality.expression), (equality.expression, equality.this)):
            column, outside = strip_parentheses(one), list(other.find_all(exp.Column))
            qualifiers = {read_name(found.args.get("table")) for found in outside}
            if (
                not isinstance(column, exp.Column)
                or not self.has_column(column)
                or not outside
                or not is_harmless(other)
            ):
                continue
            if qualifiers <= self._outside - {self.alias}:
                return column
        return None

    def spell(self, called: str) -> str:
        """Return a column, with the table's name before it."""
        return f"{quote_identifier(self.alias)}.{quote_identifier(called)}"


def _list_sources(select: exp.Select) -> Iterator[str]:
    """Yield the names of the relations that the queries around a subquery read."""
    around = select.parent_select
    while around is not None:
        from_ = around.args.get("from_")
        joined = [one.this for one in around.args.get("joins") or ()]
        for source in (*([] if from_ is None else [from_.this]), *joined, *(around.args.get("laterals") or ())):
            alias = source.args.get("alias")
            yield read_name(alias.this if alias is not None else source.this)
        around = around.parent_select


def _list_keys(select: exp.Select, moved: list[_Conjunct], own: _OwnColumns) -> list[str] | None:
    """Return the question's keys and the correlated columns. Return None if its groups would change."""
    group, items = select.args.get("group"), select.expressions
    shown = [part for part in (*items, select.args.get("order"), select.args.get("distinct")) if part is not None]
    if any(contains_aggregate(part) or contains_type(part, exp.Star, exp.Query) for part in shown):
        return None
    keys: list[str] = []
    if group is None:
        if not isinstance(select.parent, exp.Exists) or not _is_untrue_without_rows(select.args["having"].this):
            return None
    elif any(value for key, value in group.args.items() if key != "expressions"):
        return None
    else:
        for item in group.expressions:
            column = strip_parentheses(item)
            if isinstance(column, exp.Literal) and column.name.isdecimal() and 0 < int(column.name) <= len(items):
                column = strip_parentheses(items[int(column.name) - 1].unalias())
            if not isinstance(column, exp.Column) or not own.has_column(column):
                return None
            keys.append(read_name(column.this))
    keys += [read_name(one.column.this) for one in moved if one.column is not None]
    read = {read_name(column.this) for part in shown for column in part.find_all(exp.Column)}
    return list(dict.fromkeys(keys)) if read <= set(keys) else None


def _is_untrue_without_rows(having: exp.Expr) -> bool:
    """Return True if HAVING is false or NULL of no rows, as its form shows: counts are 0, other aggregates NULL."""
    node = strip_parentheses(having)
    if isinstance(node, exp.And | exp.Or):
        sides = [_is_untrue_without_rows(side) for side in (node.this, node.expression)]
        return any(sides) if isinstance(node, exp.And) else all(sides)
    if not isinstance(node, _COMPARISONS):
        return False
    nothing = node.copy()
    for call in list(nothing.find_all(exp.AggFunc)):
        whole = call.parent if isinstance(call.parent, exp.Filter | exp.WithinGroup) else call
        whole.replace(exp.Literal.number(0) if isinstance(call, exp.Count) else exp.Null())
    if contains_type(nothing, exp.Null) and all(isinstance(part, _NULL_BY_NULL) for part in nothing.walk()):
        return True
    return fold_condition(nothing, _NOTHING_GIVEN) is False


def _write(
    place: Clauses, conjuncts: list[_Conjunct], keys: list[str], alias: str, read: PrivateRead
) -> Iterator[Edit]:
    """Yield edits that write the question by its keys in parentheses, under its table's name, then the correlations."""
    text, tokens = read.text, read.tokens

    def write_conjuncts(*, are_correlated: bool) -> str:
        found = [one for one in conjuncts if (one.column is not None) is are_correlated]
        return " AND ".join(text[tokens[one.first].start : tokens[one.stop - 1].end] for one in found)

    listed, kept = ", ".join(keys), write_conjuncts(are_correlated=False)
    source, end = tokens[place.source].start, tokens[place.end - 1].end
    yield Edit.from_text(source, source, f"FROM (SELECT {listed} ")
    where, group, having = (place.find_mark(word) for word in ("where", "group", "having"))
    assert where is not None
    assert having is not None
    yield Edit.from_text(tokens[where].start, tokens[conjuncts[-1].stop - 1].end, f"WHERE {kept}" if kept else "")
    if group is None:
        yield Edit.from_text(tokens[having].start, tokens[having].start, f"GROUP BY {listed} ")
    else:
        yield Edit.from_text(tokens[group].start, tokens[having - 1].end, f"GROUP BY {listed}")
    behind = f") AS {quote_identifier(alias)} WHERE {write_conjuncts(are_correlated=True)}"
    yield Edit.from_text(end, end, behind, tokens[next(one.first for one in conjuncts if one.column is not None)].start)
