"""The dollar sign as PostgreSQL reads it: parameters need no blanks between them, and quotes keep what is in them."""

import postgast
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import find_start, parse
from tests.effort import examples
from tests.planner.asked import asked

_LEAVES = ("$1", "$2", "$17", "$$x$$", "$a$b, $1$a$", "$é_1$;$é_1$", "'$1,$'", "a$1", '"$1,$"', "5", "2.5", "E'$3'")
_AROUND = (
    ("{0}", " IN", "(", "{1}", ",", "{2}", ")"),
    ("f", "(", "{0}", ",", "{1}", ",", "{2}", ")"),
    ("{0}", "::", "int", "+", "{1}", "::", "text"),
    ("ARRAY", "[", "{0}", ",", "{1}", "]", "[", "{2}", "]"),
    ("{0}", "=", "{1}", "<>", "{2}"),
    ("(", "{0}", ",", "{1}", ")", "=", "(", "{2}", ",", "{0}", ")"),
    ("{0}", "||", "{1}", "||", "{2}"),
    ("CAST", "(", "{0}", " AS ", "int", ")", "-", "{1}", "*", "(", "-", "{2}", ")"),
    ("CASE", " WHEN ", "(", "{0}", ")", "THEN", "(", "{1}", ")", "ELSE", "(", "{2}", ")", "END"),
)
_leaf = st.sampled_from(_LEAVES)
_expression = st.recursive(
    _leaf.map(lambda leaf: (leaf,)),
    lambda inner: st.tuples(st.sampled_from(_AROUND), inner, inner, inner).map(
        lambda drawn: tuple(
            word for part in drawn[0] for word in (drawn[1 + int(part[1])] if part.startswith("{") else (part,))
        )
    ),
    max_leaves=8,
)


@given(_expression)
@examples(1_000)
def test_blanks_between_parameters_and_quotes_say_nothing(words: tuple[str, ...]) -> None:
    closed, spaced = "SELECT " + "".join(words), "SELECT " + " ".join(words)
    if scanned(closed) == scanned(spaced):
        assert [token[:2] for token in read_tokens(closed)] == [token[:2] for token in read_tokens(spaced)]
        assert read(closed) == read(spaced)
    else:
        event("two words become one")


def read(sql: str) -> object:
    """The tree of a text, or what it is refused with: the parser knows less than the scanner."""
    try:
        return parse(sql, read_tokens(sql)).tree
    except KeyholeError as refused:
        return refused.code


def scanned(sql: str) -> list[bytes]:
    """The words that PostgreSQL's own scanner finds."""
    text = sql.encode()
    return [text[token.start : token.end] for token in postgast.scan(sql).tokens]


def test_dollar_quotes_are_plain_strings_in_their_place() -> None:
    sql = "SELECT ward FROM visits WHERE disease=$q$it's\n$1,$2$q$ AND ward=$1"
    tree = parse(sql, read_tokens(sql)).tree
    (quoted,) = (node for node in tree.find_all(exp.Literal) if node.is_string)
    assert quoted.this == "it's\n$1,$2"
    assert [int(str(node.this.this)) for node in tree.find_all(exp.Parameter)] == [1]
    ward = list(tree.find_all(exp.Column))[-1]
    assert find_start(ward) == sql.rindex("ward")


@pytest.mark.parametrize("between", [",", " ,", ", ", "\n,"])
def test_a_list_of_parameters_is_asked(between: str) -> None:
    listed = between.join(("$1", "$2", "$3"))
    question = asked(
        f"SELECT country FROM sales WHERE country IN ({listed}) GROUP BY country HAVING count(*)>$4",
        parameters={1: "France", 2: "Spain", 3: "Italy", 4: 1000},
    )
    wanted = "country IN ('France', 'Spain', 'Italy')"
    plain = asked(f"SELECT country FROM sales WHERE {wanted} GROUP BY country HAVING count(*) > 1000")
    assert question.keys == plain.keys
    assert question.formula == plain.formula
