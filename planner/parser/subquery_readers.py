"""The SELECTs that read the result of a subquery or WITH query."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from planner.parser.clauses import Clauses, find_clauses_from, find_closing, find_token, is_within, matches_tree
from planner.parser.lexer import Token
from planner.parser.tree import find_offset, read_name

_ON_READER = frozenset(("this", "alias"))


@dataclass(frozen=True, slots=True)
class Reader:
    """A SELECT that reads a subquery, or a WITH query by its name, in FROM or JOIN.

    `first` and `last` are the tokens of the subquery or name without its alias. `alias` qualifies its columns; it is
    empty if nothing can.
    """

    node: exp.Subquery | exp.Table
    select: exp.Select
    alias: str
    is_named: bool
    first: int
    last: int
    is_joined: bool
    clauses: Clauses

    @property
    def is_only_source(self) -> bool:
        """Return True if the reader's FROM has only this source."""
        return not self.is_joined and not self.select.args.get("joins") and not self.select.args.get("laterals")

    def list_columns(self) -> Iterator[exp.Column]:
        """Yield the columns of the reading SELECT, but not those of subqueries in FROM and of WITH queries."""
        hidden = self._hide_inner()
        for source in (self.select.args.get("from_"), *(self.select.args.get("joins") or ())):
            if source is not None and isinstance(source.this, exp.Subquery):
                hidden.add(id(source.this))
        for node in self.select.walk(prune=lambda one: id(one) in hidden):
            if isinstance(node, exp.Column):
                yield node

    def has_inner_queries(self) -> bool:
        """Return True if the reading SELECT has subqueries besides this one."""
        hidden = self._hide_inner() | {id(self.select)}
        inside = self.select.walk(prune=lambda one: id(one) in hidden and one is not self.select)
        return any(isinstance(node, exp.Query) and id(node) not in hidden for node in inside)

    def _hide_inner(self) -> set[int]:
        """Return the identities of the subquery and of the reading SELECT's WITH clause."""
        with_ = self.select.args.get("with_")
        return {id(self.node)} if with_ is None else {id(self.node), id(with_)}


def list_readers(select: exp.Select, start: int, tokens: tuple[Token, ...]) -> tuple[Reader, ...] | None:
    """Return the readers in a SELECT whose first token is `start`. Return None if their form is not simple."""
    around = select.parent
    if isinstance(around, exp.Subquery):
        if start < 1 or not tokens[start - 1].is_symbol("("):
            return None
        one = _read_reader(around, start - 1, find_closing(tokens, start - 1), tokens)
        return None if one is None else (one,)
    if not isinstance(around, exp.CTE) or is_unclear(around):
        return None
    found: list[Reader] = []
    for node in list_references(around):
        at = find_token(tokens, find_offset(node.this))
        one = _read_reader(node, at, at, tokens)
        if one is None:
            return None
        found.append(one)
    return tuple(found)


def list_references(cte: exp.CTE) -> Iterator[exp.Table]:
    """Yield the tables of a statement that read a WITH query.

    They are in the query that has the WITH, and in later queries of the same WITH.
    """
    called = read_name(cte.args["alias"].this)
    with_ = cte.parent
    assert isinstance(with_, exp.With)
    assert with_.parent is not None
    earlier = {id(node) for one in with_.expressions[: with_.expressions.index(cte) + 1] for node in one.walk()}
    for node in with_.parent.find_all(exp.Table):
        if id(node) not in earlier and read_name(node.this) == called and node.args.get("db") is None:
            yield node


def is_unclear(cte: exp.CTE) -> bool:
    """Return True if the name of a WITH query does not suffice to find its columns.

    This is so if the query is recursive, names its columns outside its SELECT, or shares its name with another.
    """
    alias = cte.args["alias"]
    with_ = cte.parent
    if with_ is None or with_.args.get("recursive") or alias.args.get("columns"):
        return True
    called = read_name(alias.this)
    return sum(read_name(one.args["alias"].this) == called for one in cte.root().find_all(exp.CTE)) > 1


def _read_reader(node: exp.Subquery | exp.Table, first: int, last: int, tokens: tuple[Token, ...]) -> Reader | None:
    source = node.parent
    if not isinstance(source, exp.From | exp.Join) or not isinstance(source.parent, exp.Select):
        return None
    if any(value for key, value in node.args.items() if key not in _ON_READER):
        return None
    alias = node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        return None
    from_ = find_enclosing_from(tokens, first)
    if from_ is None or (isinstance(source, exp.From) and from_ != first - 1):
        return None
    place = find_clauses_from(from_, tokens)
    if not matches_tree(place, source.parent, tokens):
        return None
    named = alias is not None and alias.this is not None
    called = (
        read_name(alias.this)
        if named and alias is not None
        else read_name(node.this)
        if isinstance(node, exp.Table)
        else ""
    )
    return Reader(
        node=node,
        select=source.parent,
        alias=called,
        is_named=named,
        first=first,
        last=last,
        is_joined=isinstance(source, exp.Join),
        clauses=place,
    )


def find_enclosing_from(tokens: tuple[Token, ...], inner: int) -> int | None:
    """Return the index of the FROM clause that contains a token."""
    depth = 0
    for index in range(inner - 1, -1, -1):
        token = tokens[index]
        depth += token.is_symbol(")") - token.is_symbol("(")
        if depth < 0:
            return None
        if depth == 0 and token.is_word("from") and not tokens[index - 1].is_word("distinct"):
            return index
    return None


def find_unaliased_end(item: exp.Expr, past: int, tokens: tuple[Token, ...]) -> int:
    """Return the end (exclusive) of a select item's expression, without AS and its name.

    The whole item ends at `past`.
    """
    if not isinstance(item, exp.Alias):
        return past
    at = find_token(tokens, find_offset(item.args["alias"]))
    return at - tokens[at - 1].is_word("as")


def find_conjuncts(
    select: exp.Select, place: Clauses, tokens: tuple[Token, ...], *, clause: str = "where"
) -> tuple[tuple[tuple[int, int], exp.Expr], ...] | None:
    """Return the conditions that AND joins in WHERE or HAVING, each with its tokens.

    A clause with OR is one condition. A SELECT without the clause has none. Return None if the parser split the clause
    in another way.
    """
    where, parsed = place.find_mark(clause), select.args.get(clause)
    if where is None or parsed is None:
        return () if where is None and parsed is None else None
    later = [index for _, index in place.marks if index > where]
    spans = _split(where + 1, min(later, default=place.end), tokens)
    operands = _list_operands(parsed.this)
    if len(spans) != len(operands):
        return None
    agree = all(is_within(node, *span, tokens) for node, span in zip(operands, spans, strict=True))
    return tuple(zip(spans, operands, strict=True)) if agree else None


def _split(first: int, past: int, tokens: tuple[Token, ...]) -> list[tuple[int, int]]:
    """Return the spans between ANDs outside of parentheses, CASE and BETWEEN.

    With such an OR, return one span of all tokens.
    """
    whole = (first, past)
    depth, between = 0, 0
    spans: list[tuple[int, int]] = []
    for index in range(first, past):
        token = tokens[index]
        if token.is_symbol("(") or token.is_symbol("[") or token.is_word("case"):
            depth += 1
        elif token.is_symbol(")") or token.is_symbol("]") or token.is_word("end"):
            depth -= 1
        elif depth == 0 and token.is_word("or"):
            return [whole]
        elif depth == 0 and token.is_word("between"):
            between += 1
        elif depth == 0 and token.is_word("and"):
            if between:
                between -= 1
            else:
                spans.append((first, index))
                first = index + 1
    return [*spans, (first, past)]


def _list_operands(condition: exp.Expr) -> list[exp.Expr]:
    """Return the operands of AND in a condition, in order, but not those inside parentheses."""
    waiting, found = [condition], []
    while waiting:
        node = waiting.pop()
        if isinstance(node, exp.And) and not node.args.get("negate"):
            waiting += (node.expression, node.this)
        else:
            found.append(node)
    return found
