"""Texts that are no syntax of PostgreSQL but that the parser accepts, refused as PostgreSQL refuses them.

These are clauses in another order than PostgreSQL's, commas without a list member beside them, a word that the parser
skips, and a text or a reserved word in the place of a name. No client of PostgreSQL sends a text that it rejects.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import Token

# The nodes that `check_syntax` looks at.
CHECKED_NODES = (exp.Identifier, exp.Alias, exp.And, exp.Between, exp.Filter, exp.If, exp.Interval)
# Words that PostgreSQL reserves, so that they name no table and no column; those that are values by themselves, as
# CURRENT_DATE and USER, are not among them, since the parser takes some of these for names.
_RESERVED = frozenset(
    """all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create
    deferrable desc distinct do else end except false fetch for foreign from grant group having in initially intersect
    into lateral leading limit not null offset on only or order placing primary references returning select some
    symmetric table then to trailing true union unique using variadic when where window with
    binary concurrently cross freeze full ilike inner is isnull join left like natural notnull outer overlaps right
    similar tablesample verbose""".split()  # noqa: SIM905
)
# Of these, the words that may begin a member of a list.
_MEMBER = frozenset(
    """all any array case cast distinct false lateral left not null only right select some table true
    with""".split()  # noqa: SIM905
)
# The order in which the clauses of a query stand, and those that may stand in any order.
_CLAUSES = {"where": 1, "group": 2, "having": 3, "window": 4, "order": 5, "limit": 6, "offset": 6, "fetch": 6}
_IN_ANY_ORDER = 6  # what LIMIT, OFFSET and FETCH have above
_SETS = ("union", "intersect", "except")
_OPENING = frozenset(("(", "["))
_CLOSING = frozenset((")", "]"))
WITHOUT_UNDERSCORES = "Write numbers without underscores: 8000."
_OPERATORS = frozenset("+-/<>=~!@#%^&|`?")  # how an operator may begin; a star alone may stand for all columns, too


def check_syntax(text: str, tokens: Sequence[Token], nodes: Sequence[exp.Expr]) -> None:
    """Raise KH100 for a text that PostgreSQL would call a syntax error, although the parser made a tree of it.

    Parameters:
        nodes: the nodes of the tree whose types are `CHECKED_NODES`, at least.
    """
    stops = [
        *_find_misplaced_clauses(tokens),
        *_find_lonely_commas(tokens),
        *_find_misread_words(tokens),
        *_find_misread_names(tokens, nodes),
        *_find_missing_words(tokens, nodes),
    ]
    if stops:
        raise _refuse_syntax(text, tokens, min(stops))
    for word, kinds in (("then", exp.If), ("and", (exp.And, exp.Between))):
        if sum(isinstance(node, kinds) for node in nodes) > sum(token.is_word(word) for token in tokens):
            raise KeyholeError("KH100", f"syntax error: {word.upper()} is missing")
    if (at := _find_misread_number(tokens)) is not None:
        raise KeyholeError("KH100", "the statement cannot be parsed", hint=WITHOUT_UNDERSCORES, position=at)


def _find_misread_number(tokens: Sequence[Token]) -> int | None:
    """Return the place of a number with underscores.

    The parser takes 1_000 for a 1 that is called _000, where a name may stand.
    """
    for token, after in zip(tokens, (*tokens[1:], None), strict=True):
        named = after is not None and after.start == token.end and after.is_name and after.value.startswith("_")
        if token.kind == "number" and ("_" in token.value or named):
            return token.start + 1
    return None


def _refuse_syntax(text: str, tokens: Sequence[Token], stop: int) -> KeyholeError:
    """Return KH100 in PostgreSQL's words, at the token where its parser would stop.

    After the last token, this is the end of the text.
    """
    if stop >= len(tokens):
        return KeyholeError("KH100", "syntax error at end of input", position=tokens[-1].end + 1)
    token = tokens[stop]
    written = text[token.start : token.end]
    return KeyholeError("KH100", f'syntax error at or near "{written[:80]}"', position=token.start + 1)


def _find_misplaced_clauses(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield clauses that come after a clause before which they belong.

    A set operation may not come after the ORDER BY or LIMIT of its first query.
    """
    ranks = [0]  # of the last clause, at every depth of parentheses
    for index, token in enumerate(tokens):
        if token.kind == "symbol" and token.value == "(":
            ranks.append(0)
        elif token.kind == "symbol" and token.value == ")":
            del ranks[1 if len(ranks) == 1 else -1 :]
        elif token.is_word("select", *_SETS):
            if token.value != "select" and ranks[-1] >= _CLAUSES["order"]:
                yield index
            ranks[-1] = 0
        elif token.is_word(*_CLAUSES) and not _is_no_clause(tokens, index):
            rank = _CLAUSES[token.value]
            if rank < ranks[-1] or (rank == ranks[-1] and rank != _IN_ANY_ORDER):
                yield index
            ranks[-1] = rank


def _is_no_clause(tokens: Sequence[Token], index: int) -> bool:
    """Return True if the word begins no clause, as in WITHIN GROUP (...)."""
    after = tokens[index + 1] if index + 1 < len(tokens) else None
    return tokens[index].is_word("group", "order") and (after is None or not after.is_word("by"))


def _find_lonely_commas(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the tokens at which a list lacks a member. WHERE and HAVING have no list."""
    one_condition = [False]  # whether the clause is one of these, at every depth of parentheses
    for index, token in enumerate(tokens):
        if token.kind == "word":
            if token.value in ("where", "having"):
                one_condition[-1] = True
            elif token.value in ("select", "by", "window"):
                one_condition[-1] = False
        elif token.kind != "symbol":
            continue
        elif token.value in _OPENING:
            one_condition.append(False)
        elif token.value in _CLOSING:
            del one_condition[1 if len(one_condition) == 1 else -1 :]
        elif token.value == "," and (one_condition[-1] or _ends_no_list_member(tokens[index - 1])):
            yield index
        elif token.value == "," and (index + 1 == len(tokens) or _is_no_member(tokens[index + 1])):
            yield index + 1


def _ends_no_list_member(before: Token) -> bool:
    """Return True if no member of a list can end with a token."""
    opens = before.kind == "symbol" and (before.value in _OPENING or before.value == ",")
    return opens or before.is_word("select", "all", "distinct", "by")


def _is_no_member(after: Token) -> bool:
    """Return True if no member of a list can start with a token."""
    closes = after.kind == "symbol" and after.value in _CLOSING
    return closes or (after.kind == "word" and after.value in _RESERVED and after.value not in _MEMBER)


def _find_misread_words(tokens: Sequence[Token]) -> Iterator[int]:
    """Yield the places where the parser skips a word that may not stand between its neighbours."""
    for index, token in enumerate(tokens[1:-1], start=1):
        after = tokens[index + 1]
        if token.kind == "symbol":
            if token.value[0] in _OPERATORS and _ends_member(after) and not _names_operator(tokens, index):
                yield index + 1
            elif token.value == "." and after.kind == "number":
                yield index
        elif token.is_word("not") and after.is_word("null") and _ends_value(tokens[index - 1]):
            yield index
        elif (token.kind == "word" and _may_not_follow(token.value, tokens[index - 1], after)) or (
            after.is_symbol(",") and _is_first_of(tokens, index, "extract")
        ):
            yield index + 1


def _may_not_follow(word: str, before: Token, after: Token) -> bool:
    """Return True if the token `after` may not follow a word."""
    if word == "is":
        return after.kind != "word"
    if word == "as":
        return after.kind == "symbol" and after.value != "("
    return word in ("all", "distinct") and after.is_symbol("*") and before.is_symbol("(")


def _ends_member(after: Token) -> bool:
    """Return True if a member of a list ends before a token."""
    return after.kind == "symbol" and (after.value in _CLOSING or after.value == ",")


def _names_operator(tokens: Sequence[Token], index: int) -> bool:
    """Return True if an operator is named, as in OPERATOR(pg_catalog.+)."""
    return tokens[index - 1].is_symbol(".") or _is_first_of(tokens, index, "operator")


def _is_first_of(tokens: Sequence[Token], index: int, word: str) -> bool:
    """Return True if a token is the first in the parentheses behind a word."""
    return index > 1 and tokens[index - 1].is_symbol("(") and tokens[index - 2].is_word(word)


def _ends_value(token: Token) -> bool:
    """Return True if a value may end with a token, and no operator does."""
    if token.kind == "symbol":
        return token.value in _CLOSING
    return token.kind != "word" or token.value in ("true", "false", "null") or token.value not in _RESERVED


def _find_misread_names(tokens: Sequence[Token], nodes: Sequence[exp.Expr]) -> Iterator[int]:
    """Yield texts and reserved words that the parser read as names, and names of a row's fields."""
    places = {token.end - 1: index for index, token in enumerate(tokens)}  # E'...' has another start to the parser
    for node in nodes:
        if isinstance(node, exp.Identifier) and (at := places.get(node.meta.get("end", -1))) is not None:
            token = tokens[at]
            reserved = token.kind == "word" and token.value in _RESERVED and not isinstance(node.parent, exp.Alias)
            if token.kind == "string" or reserved:
                yield at
        elif isinstance(node, exp.Alias) and isinstance(node.parent, exp.Tuple | exp.Paren):
            yield places.get(node.args["alias"].meta.get("end", -1), len(tokens))


def _find_missing_words(tokens: Sequence[Token], nodes: Sequence[exp.Expr]) -> Iterator[int]:
    """Yield the places where WHERE is missing after FILTER, and a text after INTERVAL.

    Both words may be names, too. Only the nodes that the parser made of them show that something is missing.
    """
    pairs = list(zip(tokens, (*tokens[1:], None), strict=True))
    filters = [at + 2 for at, (token, after) in enumerate(pairs) if token.is_word("filter") and _is_opening(after)]
    bare = [at for at in filters if at < len(tokens) and not tokens[at].is_word("where")]
    if sum(isinstance(node, exp.Filter) for node in nodes) > len(filters) - len(bare):
        yield bare[0]
    if any(isinstance(node, exp.Interval) and not _is_length(node.this) for node in nodes):
        yield from (at + 1 for at, (token, after) in enumerate(pairs) if _lacks_text(token, after))


def _is_opening(token: Token | None) -> bool:
    return token is not None and token.is_symbol("(")


def _is_length(node: exp.Expr | None) -> bool:
    return node is None or isinstance(node, exp.Literal | exp.Interval)


def _lacks_text(token: Token, after: Token | None) -> bool:
    return token.is_word("interval") and not _is_opening(after) and (after is None or after.kind != "string")
