"""PostgreSQL's own grammar is the judge of Keyhole's reader: libpg_query reads the corpus and random statements.

What Keyhole asks of data, PostgreSQL's grammar accepts; a text of several statements both cut at the same places.
"""

import random
import re

import postgast
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.oracle.statements import statement
from planner.extract.outer_query import Asking, outer_sql
from planner.parser.lexer import tokens
from planner.parser.tree import parse
from planner.statements.classify import classify, split
from tests.effort import examples, rounds
from tests.planner.asked import refusal
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail

CORPUS = [sql for path in sorted(SPEC.glob("*.sql")) for sql, _ in pairs(path.name)]
_NO_STATEMENT = "no statement begins so"
# What PostgreSQL's grammar refuses in the corpus, and why it stands there.
REFUSED = {
    "SELEC 1": _NO_STATEMENT,
    '"select" 1': _NO_STATEMENT,
    "SELECT 'a": "the string has no end",
    "SELECT country FROM sales GROUP GROUP": "a keyword twice",
    "EXECUTE p(1), (2)": "more after the parameters; the shadow says so",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 XOR count(age) > 40": "other databases' operator",
    "SELECT ward FROM visits GROUP BY ALL HAVING count(*) > 40": "PostgreSQL 19 will read it",
    "SELECT * FROM (SELECT store FROM sales GROUP BY store HAVING count(*) > 1000) t TABLESAMPLE SYSTEM (10)": (
        "samples are of tables alone"
    ),
    r"SELECT ward FROM visits WHERE disease = E'\ud800' GROUP BY ward HAVING count(*) > 40": "half a character",
    r"SELECT ward FROM visits WHERE disease = E'a\000' GROUP BY ward HAVING count(*) > 40": "no text holds a zero byte",
}
# What PostgreSQL reads and Keyhole's parser does not, each refused with a hint.
UNREAD = {
    "SELECT country FROM sales GROUP BY country HAVING count(*) > 400 ORDER BY 1 FOR READ ONLY",
    "SELECT country FROM sales GROUP BY country HAVING count(*) > 8_000",
}
# What Keyhole reads more generously than PostgreSQL: a comma after a list's last member is nothing, FILTER needs no
# WHERE in its parentheses, a table may be called by a text, and extract's parts may stand behind one another.
GENEROUS = (
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40,",
    "SELECT ward FROM visits GROUP BY ward, HAVING count(*) > 40",
    "SELECT * FROM (SELECT ward FROM visits GROUP BY ward, HAVING count(*) > 40) t",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (age > 65) > 40",
    "SELECT ward FROM visits 'v' GROUP BY ward HAVING count(*) > 40",
    "SELECT extract(hour, arrived) FROM visits GROUP BY extract(hour, arrived) HAVING count(*) > 40",
)
_COMMA_AT_THE_END = re.compile(r",\s*(\)|$|from\b|where\b|group\b|having\b|union\b|except\b|intersect\b|order\b)", re.I)
_FILTER_ALONE = re.compile(r"(\bfilter\s*\()(?!\s*where\b)", re.I)
_CALLED_BY_A_TEXT = re.compile(r"(\b(?:from|join)\s+\w+)(\s+as)?\s+'[^']*'", re.I)
_STRICTLY = (
    (_CALLED_BY_A_TEXT, r"\1"),
    (_COMMA_AT_THE_END, r" \1"),
    (_FILTER_ALONE, r"\1WHERE "),
    (re.compile(r"\bextract\s*\(\s*(\w+)\s*,", re.I), r"extract(\1 FROM"),
)
_WHOLE = [sql for sql, _ in pairs("questions.sql")]
_WORDS = sorted({word for name in ("questions.sql", "refused.sql") for sql, _ in pairs(name) for word in sql.split()})


def strictly(sql: str) -> str:
    """The text as PostgreSQL wants what Keyhole reads more generously."""
    for generous, strict in _STRICTLY:
        sql = generous.sub(strict, sql)
    return sql


def accepted(sql: str) -> bool:
    """Whether PostgreSQL's grammar has the text."""
    try:
        postgast.parse(sql)
    except postgast.PgQueryError:
        return False
    return True


def is_asked(sql: str) -> bool:
    """Whether Keyhole answers a text's questions: it refuses nothing, nor does the shadow what is left around them."""
    if refusal(sql) is not None:
        return False
    statement = classify(sql, retail())
    return isinstance(statement, Asking) and accepted(outer_sql(statement, first_parameter=100).sql)


def test_the_corpus_is_postgresqls_sql() -> None:
    assert len(CORPUS) > 1_000
    assert {sql for sql in CORPUS if not accepted(sql)} == set(REFUSED)


@pytest.mark.parametrize("sql", REFUSED)
def test_what_postgresql_refuses_is_not_asked(sql: str) -> None:
    assert not is_asked(sql)


def test_what_postgresql_reads_is_read_with_known_exceptions() -> None:
    unread = set()
    for sql in CORPUS:
        error = refusal(sql)
        if accepted(sql) and error is not None and error.code == "KH100":
            unread.add(sql)
            assert error.hint
    assert unread == UNREAD


@pytest.mark.parametrize("sql", GENEROUS)
def test_what_is_read_more_generously_is_known(sql: str) -> None:
    assert not accepted(sql)
    assert refusal(sql) is None
    assert accepted(strictly(sql))


def test_random_questions_are_postgresqls_sql() -> None:
    """What the oracle asks, which Keyhole reads, is what PostgreSQL's grammar reads: 2,000 statements, 300 at quick."""
    drawn = random.Random(20261122)
    for _ in range(rounds(2_000, quick=300)):
        sql = statement(drawn).sql
        assert accepted(sql), sql
        parse(sql, tokens(sql))


@given(st.sampled_from(_WHOLE), st.randoms(use_true_random=False))
@examples(2_000, derandomize=True)
def test_a_damaged_question_is_asked_only_if_it_is_postgresqls_sql(sql: str, drawn: random.Random) -> None:
    words = sql.split()
    for _ in range(drawn.randint(1, 2)):
        words[drawn.randrange(len(words))] = drawn.choice([*_WORDS, "", "(", ")", ",", "NOT"])
    damaged = " ".join(words)
    if not accepted(strictly(damaged)):
        assert not is_asked(damaged)


@given(
    st.lists(st.sampled_from([sql for sql in CORPUS if sql not in REFUSED]), min_size=1, max_size=4),
    st.sampled_from([";", " ; ", ";;", ";\n-- one; two\n", "; /* ; */ "]),
    st.booleans(),
)
@examples(500, derandomize=True)
def test_several_statements_are_cut_at_the_same_places(statements: list[str], between: str, ended: bool) -> None:
    text = f"\n{between}".join(statements) + ("\n;" if ended else "")
    ours, theirs = split(text), postgast.split(text)
    assert len(ours) == len(theirs)
    for mine, judged in zip(ours, theirs, strict=True):
        before, found, after = judged.partition(mine.text)
        assert found, (mine, judged)
        # what PostgreSQL leaves around a statement is comments and blanks alone
        assert not postgast.split(before)
        assert not postgast.split(after)
