"""SQL text to sqlglot's tree, and back to positions in the text. A text is parsed once, and its tree is passed on."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.time import format_time
from sqlglot.tokenizer_core import Token as Word
from sqlglot.tokenizer_core import TokenType

from planner.errors import KeyholeError, cut_at_word
from planner.parser.escape_strings import replace_escapes
from planner.parser.lexer import Token
from planner.parser.postgresql_words import read_words
from planner.parser.syntax_errors import CHECKED_NODES, WITHOUT_UNDERSCORES, check_syntax

MOST_CHARACTERS = 200_000  # of a question: its tree takes time and memory with the text's length
_POSTGRES = Postgres()
# nodes that are written without being changed first, so that no copy of their tree is needed: most FILTERs
_WRITTEN_AS_THEY_STAND = frozenset(
    (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Column, exp.Identifier, exp.Literal)
)
_NOT_POSTGRESQLS = ("ifnull", "nvl")  # which the parser takes for coalesce
_AROUND_QUESTION = ("with_", "order", "limit", "offset")


class NamedTable(NamedTuple):
    """A table of FROM, and the parts of its name as PostgreSQL folds them; a part that is not written is empty."""

    node: exp.Table
    database: str
    schema: str
    name: str


class ColumnName(NamedTuple):
    """The parts of a column's name as PostgreSQL folds them.

    Without a schema `schema` is None. Without a table `table` is empty.
    """

    schema: str | None
    table: str
    name: str


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """A parsed query: its text, tokens and tree, and the tables in the tree. Positions are offsets into the text.

    Text before the first token belongs to a statement around the query, such as EXPLAIN.
    """

    text: str
    tokens: tuple[Token, ...]
    tree: exp.Expr
    tables: tuple[NamedTable, ...]
    words: frozenset[str]

    def has_word(self, *words: str) -> bool:
        """Return True if the text has one of these lower-case words, as a keyword or in quotes.

        Without the word, the tree has no node that is written with it.
        """
        return not self.words.isdisjoint(words)

    def list_ctes(self) -> list[tuple[str, exp.Expr]]:
        """Return the names of the query's WITH queries, each with its identifier."""
        ctes = self.tree.find_all(exp.CTE) if self.has_word("with") else ()
        return [(read_name(cte.args["alias"].this), cte.args["alias"].this) for cte in ctes]


def parse(text: str, tokens: tuple[Token, ...]) -> ParsedQuery:
    """Parse the query that has these tokens. Other text may come before the first token.

    Raise KH100 with the position where the parser gave up.
    """
    if len(text) > MOST_CHARACTERS:
        raise KeyholeError("KH100", f"the statement has more than {MOST_CHARACTERS:,} characters")
    start = tokens[0].start if tokens else 0
    said = frozenset([token.value.lower() for token in tokens])
    tree = _parse_tree(" " * start + text[start:], tokens, said)
    found = tuple(tree.find_all(exp.Table, *CHECKED_NODES))
    check_syntax(text, tokens, found)
    tables = tuple(read_table(node) for node in found if isinstance(node, exp.Table))
    return ParsedQuery(text, tokens, tree, tables, said)


class _Parser(PostgresParser):
    """sqlglot's parser, changed to read any expression inside ROLLUP, CUBE and GROUPING SETS, such as `x > 10`.

    It leaves the step of generate_series as it is written, since sqlglot's own reader fails for `1 month 1 day`.
    """

    FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
        **PostgresParser.FUNCTIONS,
        "GENERATE_SERIES": exp.ExplodingGenerateSeries.from_arg_list,
    }

    def _parse_cube_or_rollup(self, with_prefix: bool = False) -> exp.Cube | exp.Rollup | None:  # noqa: FBT001, FBT002
        for word, kind in ((TokenType.CUBE, exp.Cube), (TokenType.ROLLUP, exp.Rollup)):
            if not with_prefix and self._match(word):
                return self.expression(kind(expressions=self._parse_wrapped_csv(self._parse_disjunction)))
        return super()._parse_cube_or_rollup(with_prefix)

    def _parse_grouping_set(self) -> exp.Expr | None:
        return self._parse_grouping_sets() or self._parse_cube_or_rollup() or self._parse_disjunction()


def _parse_tree(text: str, tokens: tuple[Token, ...], said: frozenset[str]) -> exp.Expr:
    try:
        text = replace_escapes(text, tokens)
        words = read_words(text, tokens)
        trees = _Parser(dialect=_POSTGRES).parse(words, text)
    except ParseError as error:
        at = _find_stop_position(error, text)
        raise KeyholeError(
            "KH100", "the statement cannot be parsed", hint=_suggest_omission(text), position=at
        ) from None
    except SqlglotError:
        raise KeyholeError("KH100", "the statement cannot be parsed") from None
    except RecursionError:
        raise KeyholeError(
            "KH100",
            "the statement is nested too deeply",
            hint="Write it with fewer levels of parentheses, CASE and subqueries.",
        ) from None
    if not trees or trees[0] is None:
        raise KeyholeError("KH100", "the statement cannot be parsed", hint=_suggest_omission(text))
    tree = trees[0] if len(trees) == 1 else exp.Block(expressions=trees)
    for call in list(tree.find_all(exp.Anonymous)) if "every" in said else ():
        if str(call.this).lower() == "every" and len(call.expressions) == 1:
            call.replace(exp.LogicalAnd(this=call.expressions[0]))  # the standard's name of bool_and
    for replaced in list(tree.find_all(exp.Coalesce)) if not said.isdisjoint(_NOT_POSTGRESQLS) else ():
        named = text[replaced.meta.get("start", 0) :].lower()
        if found := next((word for word in _NOT_POSTGRESQLS if named.startswith(word)), None):
            replaced.replace(exp.Anonymous(this=found, expressions=[replaced.this, *replaced.expressions]))
    if _PERCENT.search(text):  # the parser spells patterns of dates with these
        for node in tree.find_all(exp.StrToTime, exp.StrToDate):
            node.meta["percent"] = True
        for shown in _find_percent_patterns(tree, words):
            shown.meta["percent"] = True
    return tree


def _find_percent_patterns(tree: exp.Expr, words: Sequence[Word]) -> Iterator[exp.Expr]:
    """Yield the patterns of to_char that may have been written with a percent sign: `%m` is read like `MM`."""
    nodes = list(tree.find_all(exp.TimeToStr))
    read = {_read_pattern(word.text) for word in words if "%" in word.text} if nodes else set()
    for node in nodes:
        pattern = node.args.get("format")
        if not isinstance(pattern, exp.Literal) or str(pattern.this) in read:
            yield node


def _read_pattern(pattern: str) -> str | None:
    return format_time(pattern, Postgres.TIME_MAPPING, Postgres.TIME_TRIE)


_PERCENT = re.compile(r"%[A-Za-z-]")


def _suggest_omission(text: str) -> str | None:
    """Return a hint to omit a part of the text that PostgreSQL reads and the parser does not."""
    if re.search(r"\bfor\s+(read\s+only|fetch\s+only)\b", text, re.IGNORECASE):
        return "Leave FOR READ ONLY away: a question changes nothing anyway."
    if re.search(r"(?<![\w'])\d+_\d", text):
        return WITHOUT_UNDERSCORES
    return None


def _find_stop_position(error: ParseError, text: str) -> int | None:
    for found in error.errors:
        line, column = found.get("line"), found.get("col")
        if line is None or column is None:
            continue
        before = "".join(text.splitlines(keepends=True)[: int(line) - 1])
        word = str(found.get("highlight") or "")
        return min(len(before) + max(int(column) - len(word), 0) + 1, len(text) or 1)
    return None


def list_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the node and all its descendants, in an arbitrary order. It is much faster than `walk`."""
    left = [node]
    while left:
        one = left.pop()
        yield one
        for value in one.args.values():
            if isinstance(value, exp.Expr):
                left.append(value)
            elif isinstance(value, list):
                left.extend(part for part in value if isinstance(part, exp.Expr))


def contains_type(node: exp.Expr, *kinds: type[exp.Expr]) -> bool:
    """Return True if the node or a descendant has one of these types."""
    if isinstance(node, kinds):
        return True
    left = [node]
    while left:
        for value in left.pop().args.values():
            if isinstance(value, kinds):
                return True
            if isinstance(value, exp.Expr):
                left.append(value)
            elif isinstance(value, list):
                if any(isinstance(part, kinds) for part in value):
                    return True
                left.extend(part for part in value if isinstance(part, exp.Expr))
    return False


def find_start(node: exp.Expr) -> int | None:
    """Return the 0-based offset of the first character that is known to belong to the node."""
    return min((at for part in list_nodes(node) if (at := part.meta_get("start")) is not None), default=None)


def find_position(node: exp.Expr) -> int | None:
    """Return the 1-based position of the node, or of the nearest enclosing node with a known position."""
    found: exp.Expr | None = node
    while found is not None:
        at = find_start(found)
        if at is not None:
            return at + 1
        found = found.parent
    return None


def find_offset(identifier: exp.Expr | None) -> int:
    """Return the 0-based offset of a name. Raise KH106 for a name that is not in the text."""
    if identifier is None or "start" not in identifier.meta:
        raise KeyholeError("KH106", "a name in this statement cannot be located", hint="Write it more simply.")
    return int(identifier.meta["start"])


def locate_name(node: exp.Table | exp.Column) -> int:
    """Return the 0-based offset of the name of a table or column, qualifiers included.

    Raise KH106 for a name that is not in the text.
    """
    args = node.args
    return find_offset(args.get("catalog") or args.get("db") or args.get("table") or node.this)


def read_name(identifier: exp.Expr | None) -> str:
    """Return an identifier's name as PostgreSQL folds it to lower case, or an empty text for no identifier."""
    if not isinstance(identifier, exp.Identifier):
        return ""
    text = str(identifier.this)
    return text if identifier.quoted else text.lower()


def read_table(node: exp.Table) -> NamedTable:
    """Return a table of FROM with the parts of its name, as PostgreSQL folds them."""
    return NamedTable(node, read_name(node.args.get("catalog")), read_name(node.args.get("db")), read_name(node.this))


def read_alias(node: exp.Expr) -> str:
    """Return the name of a table or subquery of FROM: its alias, or a table's own name. It is empty without either."""
    alias = node.args.get("alias")
    return read_name(alias.this) if alias is not None and alias.this is not None else read_name(node.this)


def read_column_name(node: exp.Column) -> ColumnName:
    """Return the parts of a column's name: schema, table and column."""
    schema = node.args.get("db")
    return ColumnName(
        None if schema is None else read_name(schema), read_name(node.args.get("table")), read_name(node.this)
    )


def read_limit(query: exp.Expr) -> exp.Expr | None:
    """Return the LIMIT of a query. Return None if it returns all rows."""
    limit = query.args.get("limit")
    if isinstance(limit, exp.Fetch):
        return limit.args.get("count") or exp.Literal.number(1)
    if limit is None or (isinstance(limit.expression, exp.Var) and limit.expression.name.lower() == "all"):
        return None
    return limit.expression if isinstance(limit.expression, exp.Expr) else None


def is_number(node: exp.Expr | None, number: int) -> bool:
    """Return True if the node is this whole number, written as a literal."""
    return isinstance(node, exp.Literal) and not node.is_string and str(node.this) == str(number)


def is_star(node: exp.Expr) -> bool:
    """Return True for `*` and `table.*`."""
    return isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star))


def strip_parentheses(node: exp.Expr) -> exp.Expr:
    """Return the expression inside the node's outermost parentheses, or the node itself if it has none."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def write_node(node: exp.Expr) -> str:
    """Return the node as SQL in a short, lower-case form, for messages and names."""
    plain = all(type(one) in _WRITTEN_AS_THEY_STAND for one in list_nodes(node))
    return _POSTGRES.generate(node, copy=not plain, normalize_functions="lower", comments=False)


def write_short(node: exp.Expr) -> str:
    """Return the node as SQL as `write_node` does, cut to a length that fits into a message."""
    return cut_at_word(write_node(node))


def cut_out(select: exp.Select) -> exp.Select:
    """Detach a SELECT from the statement's tree and return it, without its ORDER BY and LIMIT.

    The statement's tree is incomplete afterwards.
    """
    for clause in _AROUND_QUESTION:
        select.set(clause, None)
    select.parent = None
    return select
