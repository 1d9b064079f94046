"""Windows of a WINDOW clause, written out where they are used.

    `SELECT month, lag(count(*)) OVER w AS b FROM sales GROUP BY month WINDOW w AS (ORDER BY month)`
    `SELECT month, lag(count(*)) OVER (ORDER BY month) AS b FROM sales GROUP BY month`

PostgreSQL copies a named window into those that begin with its name, and `OVER w` is the window itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.parser.clauses import find_closing
from planner.parser.edits import Edit, EditBudget
from planner.parser.lexer import Token
from planner.parser.tree import read_name, strip_parentheses
from planner.scorecard.shown_numbers import RANKS

_OVER_SIZES = (*RANKS, exp.Sum, exp.Avg, exp.Lag, exp.Lead, exp.LastValue)
_FRAMES = ("rows", "range", "groups")
_CLAUSES = ("partition", "order", *_FRAMES)


@dataclass(frozen=True, slots=True)
class _Named:
    """A window of the WINDOW clause: its text, and which clauses it has."""

    text: str
    clauses: frozenset[str]


def spell_out_windows(read: PrivateRead) -> tuple[Edit, ...]:
    """Return the edits that copy the windows of a WINDOW clause to where they are used.

    Return none without the clause.
    """
    if not read.query.has_word("window"):
        return ()
    selects = [one for one in read.query.tree.find_all(exp.Select) if one.args.get("windows")]
    used = [one for one in read.query.tree.find_all(exp.Window) if one.args.get("over") and one.args.get("alias")]
    if len(selects) != 1 or not any(isinstance(strip_parentheses(one.this), _OVER_SIZES) for one in used):
        return ()
    (select,) = selects
    if any(one.find_ancestor(exp.Select) is not select for one in used):
        return ()
    tokens = read.tokens
    clauses = [at for at in range(len(tokens)) if _starts_clause(tokens, at)]
    spans = list(_list_uses(tokens))
    if len(clauses) != 1 or sorted(tokens[at].value for at, _, _ in spans) != sorted(
        read_name(one.args["alias"]) for one in used
    ):
        return ()
    found = _read_clause(clauses[0], read)
    if found is None or len(found[0]) != len(select.args["windows"]):
        return ()
    named, past = found
    changes, room = list[Edit](), EditBudget(read.text)
    for at, first, last in spans:
        spelled = _spell(at, first, last, named, read)
        if spelled is None:
            return ()
        room.reserve(len(spelled))
        changes.append(Edit.from_text(tokens[first].start, tokens[last].end, f"({spelled})", tokens[first].start))
    return (*changes, Edit.from_text(tokens[clauses[0] - 1].end, tokens[past - 1].end, ""))


def _starts_clause(tokens: tuple[Token, ...], at: int) -> bool:
    named = at + 3 < len(tokens) and tokens[at + 1].is_name and tokens[at + 2].is_word("as")
    return tokens[at].is_word("window") and named and tokens[at + 3].is_symbol("(")


def _list_uses(tokens: tuple[Token, ...]) -> Iterator[tuple[int, int, int]]:
    """Yield the token of each name after OVER, or first in the parentheses after it, and the first and last token."""
    for at in range(len(tokens) - 1):
        if not tokens[at].is_word("over"):
            continue
        if tokens[at + 1].is_name:
            yield at + 1, at + 1, at + 1
        elif tokens[at + 1].is_symbol("(") and _is_named(tokens, at + 2):
            yield at + 2, at + 1, find_closing(tokens, at + 1)


def _is_named(tokens: tuple[Token, ...], at: int) -> bool:
    return at < len(tokens) and tokens[at].is_name and not tokens[at].is_word(*_CLAUSES)


def _read_clause(at: int, read: PrivateRead) -> tuple[Mapping[str, _Named], int] | None:
    """Return the windows of the WINDOW clause by name, and the end of the clause. Return None for another form."""
    tokens, named = read.tokens, dict[str, _Named]()
    while True:
        if at + 3 >= len(tokens) or not tokens[at + 1].is_name or not tokens[at + 3].is_symbol("("):
            return None
        called, last = tokens[at + 1].value, find_closing(tokens, at + 3)
        own = _Named(read.text[tokens[at + 3].end : tokens[last].start].strip(), _list_clauses(tokens, at + 4, last))
        if _is_named(tokens, at + 4):
            base = named.get(tokens[at + 4].value)
            rest = read.text[tokens[at + 4].end : tokens[last].start].strip()
            joined = None if base is None else _join(base, rest, own.clauses)
            if joined is None:
                return None
            own = joined
        if called in named:
            return None
        named[called] = own
        at = last + 1
        if at >= len(tokens) or not tokens[at].is_symbol(","):
            return named, at


def _list_clauses(tokens: tuple[Token, ...], first: int, past: int) -> frozenset[str]:
    """Return the clauses of a window between two tokens. A column with the name of one is taken for it."""
    return frozenset(tokens[at].value for at in range(first, past) if tokens[at].is_word(*_CLAUSES))


def _join(base: _Named, rest: str, clauses: frozenset[str]) -> _Named | None:
    """Return a named window followed by further clauses.

    Return None if PostgreSQL does not allow these clauses after it.
    """
    ordered_twice = "order" in base.clauses and "order" in clauses
    if "partition" in clauses or ordered_twice or not base.clauses.isdisjoint(_FRAMES):
        return None
    return _Named(f"{base.text} {rest}".strip(), base.clauses | clauses)


def _spell(at: int, first: int, last: int, named: Mapping[str, _Named], read: PrivateRead) -> str | None:
    base = named.get(read.tokens[at].value)
    if base is None or first == last:
        return None if base is None else base.text
    rest = read.text[read.tokens[at].end : read.tokens[last].start].strip()
    joined = _join(base, rest, _list_clauses(read.tokens, at + 1, last))
    return None if joined is None else joined.text
