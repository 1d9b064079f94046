"""A join of a grouped query with itself, at another value of a key, as the window over its groups that it is.

    `WITH m AS (SELECT month, count(*) AS n FROM sales GROUP BY month)
    SELECT a.month FROM m a JOIN m b ON b.month = a.month - interval '1 month' WHERE a.n > 1.2 * b.n`

    `WITH m AS (SELECT month, count(*) AS n, first_value(count(*)) OVER (ORDER BY month
      RANGE BETWEEN interval '1 month' PRECEDING AND interval '1 month' PRECEDING) AS "b.n" FROM sales GROUP BY month)
    SELECT a.month FROM m a WHERE a.n > 1.2 * a."b.n"`

The frame has the one group that the join finds, as all keys are compared, or none: then the window is NULL, as a column
of LEFT JOIN is. An inner join drops such groups, so it is written so only beside a condition that is NULL for them.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from planner.errors import KeyholeError
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.calendar_shifts import read_calendar
from planner.extract.subqueries.pull_up_subqueries import find_output_name, is_sorted_by, keep_output_name, remove_cte
from planner.extract.subqueries.same_groups import GroupedQuery, find_source
from planner.extract.subqueries.self_joins import JoinPlan, Partner, SelfJoin, list_bases, plan_windows, read_self_join
from planner.parser.clauses import Clauses, find_clauses, find_token, matches_tree
from planner.parser.edits import Edit, EditBudget, Origin
from planner.parser.lexer import Token, quote_identifier, spell_name
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.subquery_readers import Reader, list_readers, list_references
from planner.parser.tree import find_offset, locate_name, read_name, strip_parentheses

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Between)
_STRICT = (
    *(exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Neg, exp.Abs),
    *(exp.Cast, exp.DataType, exp.DataTypeParam, exp.Interval, exp.Var, exp.Not, exp.Round, *_COMPARISONS),
)


def write_self_joins_as_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that turn a join of groups with other groups of the same query into windows.

    Return none for others.
    """
    select = read.select
    if select.args.get("group") is None or not isinstance(select.parent, exp.Subquery | exp.CTE):
        return ()
    try:
        return _write(read)
    except KeyholeError:
        return ()


def _write(read: PrivateRead) -> tuple[Edit, ...]:
    select, tokens = read.select, read.tokens
    if find_source(select) is not read.node:
        return ()
    place = find_clauses(read.node, tokens)
    found = list_readers(select, place.select, tokens) if matches_tree(place, select, tokens) else None
    if not found or len(place.items) != len(select.expressions):
        return ()
    join = read_self_join(found[0], read)
    if join is None:
        return ()
    for base in list_bases(join):
        reader = next((one for one in found if one.node is base.node), None)
        plan = None if reader is None else plan_windows(base, join)
        if reader is not None and plan is not None:
            return tuple(_list_edits(plan, join, reader, place, read) or ())
    return ()


class _Columns:
    """The columns around, as columns of the base alone, and the windows that they need."""

    def __init__(self, plan: JoinPlan, join: SelfJoin) -> None:
        self._plan, self._join = plan, join
        self.windows: dict[str, str] = {}
        self.mentioned: set[tuple[int, str]] = set()

    def spell(self, column: exp.Column) -> str | None:
        """Return the text that replaces a column, or an empty text if the column stays.

        Return None if the column is unknown or ambiguous.
        """
        name, qualifier = read_name(column.this), read_name(column.args.get("table"))
        if column.args.get("db") is not None:
            return None
        if qualifier == "":
            owners = [one for one in self._join.sources if name in {*one.query.keys, *one.query.sizes}]
            outputs = [find_output_name(item) for item in self._join.reader.select.expressions]
            if name in self._join.using or (is_sorted_by(column, self._join.reader.select) and name in outputs):
                return ""
            if len(owners) != 1:
                return None
            qualifier = owners[0].alias
        if qualifier == self._plan.base.alias:
            return "" if name in {*self._plan.base.query.keys, *self._plan.base.query.sizes} else None
        partner = self._plan.find_partner(qualifier)
        return None if partner is None else self._spell_partner_column(partner, name, column)

    def _spell_partner_column(self, partner: Partner, name: str, column: exp.Column) -> str | None:
        source, alias = partner.source, spell_name(self._plan.base.alias)
        if name in source.query.sizes:
            called = f"{source.alias}.{name}"
            self.windows.setdefault(called, _write_window(partner, source.query.sizes[name], self._plan.base.query))
            self.mentioned.add((id(column), source.alias))
            return f"{alias}.{quote_identifier(called)}"
        if name not in source.query.keys or source.is_outer:
            return None  # a key of LEFT JOIN is NULL where there is no group
        key = partner.find_base_key(name)
        plain = f"{alias}.{spell_name(key)}"
        if key != partner.key:
            return plain
        calendar = read_calendar(self._plan.base.query.keys[key], self._plan.base.query.table)
        shifted = (
            f"({plain} {'+' if partner.shift.is_later else '-'} {partner.shift.spell(of_dates=calendar.are_dates)})"
        )
        return f"({shifted}::date)" if calendar.are_dates and not partner.shift.microseconds else shifted


def _write_window(partner: Partner, size: exp.Expr, base: GroupedQuery) -> str:
    """Return a size of a partner as an expression over the groups of the base."""
    text = partner.source.query.spell(size)
    if partner.shift.is_none:
        return text
    calendar = base.keys[partner.key]
    others = [base.spell(node) for name, node in base.keys.items() if name != partner.key]
    parted = f"PARTITION BY {', '.join(others)} " if others else ""
    length = partner.shift.spell(of_dates=read_calendar(calendar, base.table).are_dates)
    edge = f"{length} {'FOLLOWING' if partner.shift.is_later else 'PRECEDING'}"
    return f"first_value({text}) OVER ({parted}ORDER BY {base.spell(calendar)} RANGE BETWEEN {edge} AND {edge})"


def _list_edits(plan: JoinPlan, join: SelfJoin, reader: Reader, place: Clauses, read: PrivateRead) -> list[Edit] | None:
    """Return the edits of both queries. Return None if a column is uncertain, or an inner join drops more groups."""
    text, tokens = read.text, read.tokens
    columns = _Columns(plan, join)
    replaced = _replace_columns(columns, plan, reader, tokens)
    if replaced is None:
        return None
    kept = [(span, node) for span, node in join.where if id(strip_parentheses(node)) not in plan.linking_conditions]
    moved = [node for node in join.on if id(node) not in plan.linking_conditions]
    if not _drops_alike(plan, columns, [*(node for _, node in kept), *moved]):
        return None
    spans = find_spans([SearchedNode(node, reader.clauses.source, reader.clauses.end) for node in moved], text, tokens)
    known = _list_null_tests(plan)
    if known is None:
        return None
    added = [*(_edit_span(text, tokens, span, replaced) for span in spans), *known]
    changes = list(_edit_from(reader, tokens))
    changes += _edit_where(join, plan, added, tokens)
    gone = [(one.start, one.end) for one in changes if not one.text]
    changes += [one for one in replaced if not any(start <= one.start < end for start, end in gone)]
    shown = "".join(f", {window} AS {quote_identifier(called)}" for called, window in columns.windows.items())
    EditBudget(text).reserve(len(shown))
    end = tokens[place.items[-1][1] - 1].end
    changes.append(Edit.from_text(end, end, shown, tokens[reader.clauses.source].start))
    changes += _remove_other_queries(plan, tokens)
    return changes


def _list_null_tests(plan: JoinPlan) -> list[str] | None:
    """Return the conditions that drop groups whose keys equal none, as an inner join does.

    Return None if a LEFT JOIN keeps such groups: a window may find the group itself.
    """
    base = plan.base
    keys = [name for name, node in base.query.keys.items() if read_calendar(node, base.query.table).may_be_null]
    if keys and any(one.source.is_outer for one in plan.partners):
        return None
    return [f"{spell_name(base.alias)}.{spell_name(name)} IS NOT NULL" for name in keys]


def _replace_columns(columns: _Columns, plan: JoinPlan, reader: Reader, tokens: tuple[Token, ...]) -> list[Edit] | None:
    """Return the edits of all columns around, but those of links. Return None if one is uncertain."""
    changes: dict[int, Edit] = {}
    for column in reader.list_columns():
        above = {id(node) for node in _list_ancestors(column)}
        if above & plan.linking_conditions:
            continue
        spelled = columns.spell(column)
        labelled = keep_output_name(column, reader, tokens) if spelled else {}
        if spelled is None or labelled is None:
            return None
        if spelled:
            start = tokens[find_token(tokens, locate_name(column))].start
            past = tokens[find_token(tokens, find_offset(column.this))].end
            changes |= {start: Edit.from_text(start, past, spelled), **labelled}
    return list(changes.values())


def _list_ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def _drops_alike(plan: JoinPlan, columns: _Columns, conditions: Sequence[exp.Expr]) -> bool:
    """Return True if conditions are not true for groups that an inner join drops, as it finds no other group."""
    inner = [one.source.alias for one in plan.partners if not (one.source.is_outer or one.shift.is_none)]
    return all(any(_fails_without(node, alias, columns) for node in conditions) for alias in inner)


def _fails_without(node: exp.Expr, alias: str, columns: _Columns) -> bool:
    """Return True if a condition is false or NULL where all sizes of a source are NULL."""
    node = strip_parentheses(node)
    if isinstance(node, exp.Or) and not node.args.get("negate"):
        return all(_fails_without(child, alias, columns) for child in node.flatten())
    mentions = any((id(part), alias) in columns.mentioned for part in node.walk())
    return mentions and all(map(_is_strict, node.walk()))


def _is_strict(node: exp.Expr) -> bool:
    """Return True for a part of an expression that is NULL if a column in it is."""
    return isinstance(node, _STRICT) or (isinstance(node, exp.Nullif) and isinstance(node.expression, exp.Literal))


def _edit_span(text: str, tokens: tuple[Token, ...], span: tuple[int, int], changes: Sequence[Edit]) -> str:
    """Return the text of some tokens with the edits among them."""
    start, end = tokens[span[0]].start, tokens[span[1] - 1].end
    within = [
        Edit.from_text(one.start - start, one.end - start, one.text) for one in changes if start <= one.start < end
    ]
    return Origin(text[start:end]).edit(within, rule=write_self_joins_as_windows.__name__).text


def _edit_from(reader: Reader, tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield the edits that leave one source alone in FROM."""
    alias = reader.node.args.get("alias")
    named = reader.is_named and alias is not None
    last = find_token(tokens, find_offset(alias.this)) if named and alias is not None else reader.last
    yield Edit.from_text(tokens[reader.clauses.source].end, tokens[reader.first].start, " ")
    yield Edit.from_text(tokens[last].end, tokens[_find_end_of_from(reader) - 1].end, "")


def _find_end_of_from(reader: Reader) -> int:
    return min((index for _, index in reader.clauses.marks), default=reader.clauses.end)


def _edit_where(join: SelfJoin, plan: JoinPlan, added: Sequence[str], tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield the edits that take links out of WHERE, and put the other conditions of ON there."""
    reader, where = join.reader, join.reader.clauses.find_mark("where")
    spans = [(span, id(strip_parentheses(node)) in plan.linking_conditions) for span, node in join.where]
    kept = [span for span, is_link in spans if not is_link]
    more = " AND ".join(f"({one})" for one in added)
    if where is None or not kept:
        end = tokens[_find_end_of_from(reader) - 1].end if where is None else tokens[where].start
        past = end if where is None else tokens[spans[-1][0][1] - 1].end
        yield Edit.from_text(end, past, f" WHERE {more}" if more else "")
        return
    for index, ((first, past), is_link) in enumerate(spans):
        if is_link and first > kept[0][0]:
            yield Edit.from_text(tokens[spans[index - 1][0][1] - 1].end, tokens[past - 1].end, "")
        elif is_link:
            yield Edit.from_text(tokens[first].start, tokens[spans[index + 1][0][0]].start, "")
    if more:
        start, end = tokens[kept[0][0]].start, tokens[kept[-1][1] - 1].end
        if len(kept) == 1:
            yield Edit.from_text(start, start, "(")
        yield Edit.from_text(end, end, f"{')' * (len(kept) == 1)} AND {more}")


def _remove_other_queries(plan: JoinPlan, tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield the edits that remove WITH queries which nothing reads any more."""
    removed = {id(one.source.node) for one in plan.partners}
    for query in {id(one.source.query.select): one.source.query.select for one in plan.partners}.values():
        cte, first = query.parent, find_source(query)
        if query is plan.base.query.select or not isinstance(cte, exp.CTE) or not isinstance(first, exp.Table):
            continue
        if all(id(node) in removed for node in list_references(cte)):
            yield remove_cte(cte, find_clauses(first, tokens), tokens)
