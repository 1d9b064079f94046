"""The places of a question's clauses among a statement's tokens."""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import Token
from planner.parser.tree import find_position, list_nodes, locate_name

_AFTER = ("order", "limit", "offset", "fetch", "union", "intersect", "except", "for", "window")


@dataclass(frozen=True, slots=True)
class Clauses:
    """The places of a question's clauses among the tokens of its text.

    `select`, `source` and `end` are token indices: of SELECT, of FROM, and of the end (exclusive) of the last clause
    up to HAVING. `marks` are the indices of WHERE, GROUP and HAVING, as far as the question has them. `items` are the
    token spans of the select list's items: the first token, and one past the last.
    """

    select: int
    source: int
    end: int
    marks: tuple[tuple[str, int], ...]
    items: tuple[tuple[int, int], ...]

    def find_mark(self, word: str) -> int | None:
        """Return the index of WHERE, GROUP or HAVING. Return None if the question has no such clause."""
        return dict(self.marks).get(word)

    def get_text(self, word: str, text: str, tokens: tuple[Token, ...]) -> str:
        """Return the text of one clause with its keyword; empty if it is missing."""
        first = self.find_mark(word)
        if first is None:
            return ""
        later = [index for _, index in self.marks if index > first]
        past = min(later, default=self.end)
        return text[tokens[first].start : tokens[past - 1].end]


def find_token(tokens: tuple[Token, ...], offset: int) -> int:
    """Return the index of the token that covers a 0-based offset."""
    return bisect_right(tokens, offset, key=lambda token: token.start) - 1


def find_clauses(table: exp.Table, tokens: tuple[Token, ...]) -> Clauses:
    """Return the clauses of the SELECT that reads `table` in its FROM.

    Raise KH106 for a FROM of another form.
    """
    start = locate_name(table)
    source = find_token(tokens, start) - 1
    if source < 0 or not tokens[source].is_word("from"):
        if source >= 0 and tokens[source].is_word("table"):
            raise KeyholeError(
                "KH103",
                "a private table is used outside a question",
                detail="Only a question may read a private table: GROUP BY keys HAVING a threshold is crossed.",
                position=find_position(table),
            )
        raise KeyholeError(
            "KH106",
            "the FROM of a question names its table and nothing else",
            hint="Write FROM, the table, and an alias if you like.",
            position=find_position(table),
        )
    return find_clauses_from(source, tokens)


def find_clauses_from(source: int, tokens: tuple[Token, ...]) -> Clauses:
    """Return the clauses of the SELECT whose FROM is the token at `source`.

    Raise KH106 if the clauses cannot be located.
    """
    end, marks = _read_forward(tokens, source)
    select, commas = _read_backward(tokens, source)
    first = _find_list_start(tokens, select)
    edges = [first - 1, *(index for index in commas if index >= first), source]
    items = tuple((before + 1, after) for before, after in pairwise(edges))
    if items == ((source, source),):
        items = ()  # `SELECT FROM`, which shows no columns
    return Clauses(select=select, source=source, end=end, marks=marks, items=items)


def _read_forward(tokens: tuple[Token, ...], source: int) -> tuple[int, tuple[tuple[str, int], ...]]:
    depth = 0
    marks: list[tuple[str, int]] = []
    for index in range(source + 1, len(tokens)):
        token = tokens[index]
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
            if depth < 0:
                return index, tuple(marks)
        elif depth == 0 and token.is_word(*_AFTER):
            return index, tuple(marks)
        elif depth == 0 and (token.is_word("where", "having") or _starts_group_by(tokens, index)):
            marks.append((token.value, index))
    return len(tokens), tuple(marks)


def find_item_end(tokens: tuple[Token, ...], first: int, *, before: tuple[str, ...], stops_at_commas: bool) -> int:
    """Return the index past the last token of an item that begins at a token.

    The item ends before one of the words `before`, before a comma if it `stops_at_commas`, or before the closing
    parenthesis around it.
    """
    depth = 0
    for index in range(first, len(tokens)):
        token = tokens[index]
        if token.is_symbol("(") or token.is_symbol("["):
            depth += 1
        elif token.is_symbol(")") or token.is_symbol("]"):
            depth -= 1
            if depth < 0:
                return index
        elif depth == 0 and (token.is_word(*before) or (stops_at_commas and token.is_symbol(","))):
            return index
    return len(tokens)


def _starts_group_by(tokens: tuple[Token, ...], index: int) -> bool:
    """Return True if GROUP BY starts at a token, rather than WITHIN GROUP (ORDER BY ...)."""
    return tokens[index].is_word("group") and index + 1 < len(tokens) and tokens[index + 1].is_word("by")


def matches_tree(place: Clauses, select: exp.Select, tokens: tuple[Token, ...]) -> bool:
    """Return True if the clauses found among the tokens agree with the parser's tree, names included."""
    parts = {word: select.args.get(word) for word in ("where", "group", "having")}
    if [word for word, _ in place.marks] != [word for word, part in parts.items() if part is not None]:
        return False
    items = [(first, past) for first, past in place.items if first < past]
    if len(items) != len(select.expressions):
        return False
    starts = [index for _, index in place.marks]
    spans = [*items, *pairwise([*starts, place.end])]
    nodes = [*select.expressions, *(part for part in parts.values() if part is not None)]
    return all(is_within(node, first, past, tokens) for node, (first, past) in zip(nodes, spans, strict=True))


def check_matches_tree(place: Clauses, select: exp.Select, tokens: tuple[Token, ...]) -> None:
    """Raise KH106 if the clauses among the tokens differ from those that the parser found."""
    if not matches_tree(place, select, tokens):
        raise KeyholeError(
            "KH106",
            "the clauses of this question cannot be told apart",
            hint="Quote names that are keywords.",
            position=tokens[place.select].start + 1,
        )


def is_within(node: exp.Expr, first: int, past: int, tokens: tuple[Token, ...]) -> bool:
    """Return True if all parts of a node with a known position lie between two tokens."""
    if first >= past:
        return False
    start, end = tokens[first].start, tokens[past - 1].end
    return all(start <= at < end for part in list_nodes(node) if (at := part.meta_get("start")) is not None)


def _read_backward(tokens: tuple[Token, ...], source: int) -> tuple[int, list[int]]:
    depth = 0
    commas: list[int] = []
    for index in range(source - 1, -1, -1):
        token = tokens[index]
        if token.is_symbol(")") or token.is_symbol("]"):
            depth += 1
        elif token.is_symbol("(") or token.is_symbol("["):
            depth -= 1
        elif depth == 0 and token.is_symbol(","):
            commas.append(index)
        elif depth == 0 and token.is_word("select"):
            return index, sorted(commas)
    raise KeyholeError("KH106", "FROM without SELECT is not supported", position=tokens[source].start + 1)


def _find_list_start(tokens: tuple[Token, ...], select: int) -> int:
    """Return the index of the select list's first token, after ALL, DISTINCT and DISTINCT ON (...)."""
    index = select + 1
    if tokens[index].is_word("all", "distinct"):
        index += 1
        if tokens[index].is_word("on") and tokens[index - 1].is_word("distinct"):
            index = find_closing(tokens, index + 1) + 1
    return index


def find_closing(tokens: tuple[Token, ...], opening: int) -> int:
    """Return the index of the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += tokens[index].is_symbol("(") - tokens[index].is_symbol(")")
        if depth == 0:
            return index
    return len(tokens) - 1


def find_opening(tokens: tuple[Token, ...], inner: int) -> int | None:
    """Return the index of the parenthesis that opens around the token at `inner`. Return None if there is none."""
    depth = 0
    for index in range(inner - 1, -1, -1):
        if tokens[index].is_symbol(")"):
            depth += 1
        elif tokens[index].is_symbol("("):
            if depth == 0:
                return index
            depth -= 1
    return None
