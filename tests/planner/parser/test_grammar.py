"""PostgreSQL's own grammar is the judge of Keyhole's reader: libpg_query reads the corpus and random statements.

What Keyhole asks of data, PostgreSQL's grammar accepts; a text of several statements both cut at the same places.
"""

import random

import postgast
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.oracle.statements import draw_statement
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.parser.lexer import read_tokens, split_statements
from planner.parser.tree import parse
from planner.statements.classify import classify
from tests.effort import examples, rounds
from tests.in_turn import in_turn
from tests.planner.asked import refusal
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail

CORPUS = [sql for path in sorted(SPEC.glob("*.sql")) if path.name != "numbers.sql" for sql, _ in pairs(path.name)]
CORPUS += [sql.partition(" ")[2] for sql, _ in pairs("numbers.sql")]  # behind a word for the choice
CORPUS += [sql for path in sorted(SPEC.glob("analysts/*.sql")) for sql, _ in pairs(f"analysts/{path.name}")]
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
# What Keyhole's parser reads and PostgreSQL does not: each is refused in PostgreSQL's own words.
GENEROUS = (
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40,",
    "SELECT ward FROM visits GROUP BY ward, HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP BY , ward HAVING count(*) > 40",
    "SELECT ward, FROM visits GROUP BY ward HAVING count(*) > 40",
    "SELECT , ward FROM visits GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits WHERE disease IN ('flu',, 'cold') GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits WHERE disease IN (, 'cold') GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits WHERE disease = ANY (ARRAY['cold',]) GROUP BY ward HAVING count(*) > 40",
    "SELECT * FROM (SELECT ward FROM visits GROUP BY ward, HAVING count(*) > 40) t",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (age > 65) > 40",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE age > 5) > 9 OR count(*) FILTER (age > 9) > 4",
    "SELECT ward FROM visits 'v' GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits AS E'v' GROUP BY ward HAVING count(*) > 40",
    "SELECT ward AS 'w' FROM visits GROUP BY ward HAVING count(*) > 40",
    "WITH 'q' AS (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40) SELECT * FROM q",
    "SELECT extract(hour, arrived) FROM visits GROUP BY extract(hour, arrived) HAVING count(*) > 40",
    "SELECT ward FROM visits ANY GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits v(end) GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits WHERE age NOT NULL GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP BY ward HAVING avg(cost) > . 25",
    "SELECT month FROM sales GROUP BY month HAVING count(DISTINCT (customer_id, month m)) > 40",
    "SELECT month FROM sales WHERE month > now() - interval NULL GROUP BY month HAVING count(*) > 40",
    "SELECT ward FROM visits WHERE insured IS + TRUE GROUP BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP BY ward HAVING count(+) > 40",
    "SELECT ward FROM visits GROUP BY ward HAVING count(ALL *) > 40",
    "SELECT ward AS , ward FROM visits GROUP BY ward HAVING count(*) > 40",
    "SELECT extract(hour FROM arrived) FROM visits GROUP BY extract('hour', arrived) HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP BY ward ORDER BY ward HAVING count(*) > 40",
    "SELECT ward FROM visits GROUP BY ward LIMIT 5 HAVING count(*) > 40",
    "SELECT ward FROM visits HAVING count(*) > 40 GROUP BY ward",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 WHERE age > 5",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 LIMIT 5 ORDER BY ward",
    "SELECT * FROM (SELECT ward FROM visits GROUP BY ward ORDER BY ward HAVING count(*) > 40) q ORDER BY 1",
    "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 ORDER BY ward "
    "UNION SELECT ward FROM visits GROUP BY ward HAVING count(*) > 60",
)
_WHOLE = [sql for sql, _ in pairs("questions.sql")]
_WORDS = sorted({word for name in ("questions.sql", "refused.sql") for sql, _ in pairs(name) for word in sql.split()})


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
    return isinstance(statement, Asking) and accepted(write_outer_sql(statement, first_parameter=100).sql)


def test_the_corpus_is_postgresqls_sql() -> None:
    assert len(CORPUS) > 1_000
    assert {sql for sql in CORPUS if not accepted(sql)} == set(REFUSED)


@in_turn("sql", REFUSED)
def test_what_postgresql_refuses_is_not_asked(sql: str) -> None:
    assert not is_asked(sql)


def test_what_postgresql_reads_is_read_with_known_exceptions() -> None:
    """Read, whatever it then means: what is asked is no matter here, nor what the grammar leaves to others. At quick
    every third statement and the exceptions."""
    unread: dict[str, str | None] = {}
    read = [sql for place, sql in enumerate(CORPUS) if sql in UNREAD or place % rounds(1, quick=6) == 0]
    for sql in filter(accepted, read):
        try:
            classify(sql, retail())
        except KeyholeError as error:
            if error.code == "KH100" and error.message != "non-integer constant in GROUP BY":
                unread[sql] = error.hint
    assert set(unread) == UNREAD
    assert all(unread.values())


@in_turn("sql", GENEROUS)
def test_what_the_parser_reads_more_generously_is_refused_in_postgresqls_words(sql: str) -> None:
    with pytest.raises(postgast.PgQueryError) as judged:
        postgast.parse(sql)
    error = refusal(sql)
    assert error is not None
    assert (error.code, error.message) == ("KH100", str(judged.value))
    assert error.position is not None
    near = error.message.removeprefix('syntax error at or near "').removesuffix('"')
    assert near == "syntax error at end of input" or sql[error.position - 1 :].startswith(near)


@pytest.mark.parametrize(
    ("sql", "missing"),
    [
        ("SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN 20 40", "AND"),
        ("SELECT ward FROM visits WHERE age > 5 AND age BETWEEN 20 40 GROUP BY ward HAVING count(*) > 4", "AND"),
        ("SELECT ward FROM visits GROUP BY ward HAVING sum(CASE WHEN insured cost END) > 4000", "THEN"),
    ],
)
def test_a_word_that_the_parser_can_do_without_is_missed(sql: str, missing: str) -> None:
    assert not accepted(sql)
    error = refusal(sql)
    assert error is not None
    assert (error.code, error.message) == ("KH100", f"syntax error: {missing} is missing")


@in_turn(
    "sql",
    [
        "SELECT * FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40) filter (w)",
        "SELECT ward end FROM visits GROUP BY ward HAVING count(*) FILTER (WHERE NOT NULL) > 40",
        'SELECT w."group" FROM (SELECT ward AS group FROM visits GROUP BY ward HAVING count(*) > 40) AS w',
        "SELECT count(*) OVER (ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING), pg_catalog.extract('day', now()), ward "
        "FROM (SELECT ward FROM visits GROUP BY ward HAVING count(*) BETWEEN SYMMETRIC 60 AND 40) q",
        "SELECT 1 OPERATOR(pg_catalog.+) 1, -1 OPERATOR(+) 2, ward FROM "
        "(SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40) q",
        "WITH a AS (SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40 ORDER BY ward LIMIT 3) "
        "SELECT ward, sum(1) FILTER (WHERE true) OVER w FROM a WHERE true GROUP BY ward HAVING true "
        "WINDOW w AS (PARTITION BY ward ORDER BY ward) "
        "UNION (SELECT ward, percentile_disc(.5) WITHIN GROUP (ORDER BY 2) FROM a WHERE true GROUP BY ward ORDER BY 1 "
        "LIMIT 1) ORDER BY 1 OFFSET 0 FETCH FIRST 5 ROWS ONLY",
        "SELECT interval '1' day, interval(3) '2 s', q.interval FROM "
        "(SELECT ward AS interval FROM visits GROUP BY ward HAVING count(*) > 40) q",
    ],
)
def test_words_with_other_meanings_are_no_syntax_errors(sql: str) -> None:
    assert accepted(sql)
    error = refusal(sql)
    assert error is None or error.code != "KH100", error


def test_random_questions_are_postgresqls_sql() -> None:
    """What the oracle asks, which Keyhole reads, is what PostgreSQL's grammar reads: 2,000 statements, 75 at quick."""
    drawn = random.Random(20261122)
    for _ in range(rounds(2_000, quick=75)):
        sql = draw_statement(drawn).sql
        assert accepted(sql), sql
        parse(sql, read_tokens(sql))


@given(st.sampled_from(_WHOLE), st.randoms(use_true_random=False))
@examples(2_000, derandomize=True)
def test_a_damaged_question_is_asked_only_if_it_is_postgresqls_sql(sql: str, drawn: random.Random) -> None:
    words = sql.split()
    for _ in range(drawn.randint(1, 2)):
        words[drawn.randrange(len(words))] = drawn.choice([*_WORDS, "", "(", ")", ",", "NOT"])
    damaged = " ".join(words)
    if not accepted(damaged):
        assert not is_asked(damaged)


@given(
    st.lists(st.sampled_from([sql for sql in CORPUS if sql not in REFUSED]), min_size=1, max_size=4),
    st.sampled_from([";", " ; ", ";;", ";\n-- one; two\n", "; /* ; */ "]),
    st.booleans(),
)
@examples(500, derandomize=True)
def test_several_statements_are_cut_at_the_same_places(statements: list[str], between: str, ended: bool) -> None:
    text = f"\n{between}".join(statements) + ("\n;" if ended else "")
    ours, theirs = split_statements(text), postgast.split(text)
    assert len(ours) == len(theirs)
    for mine, judged in zip(ours, theirs, strict=True):
        before, found, after = judged.partition(mine.text)
        assert found, (mine, judged)
        # what PostgreSQL leaves around a statement is comments and blanks alone
        assert not postgast.split(before)
        assert not postgast.split(after)
