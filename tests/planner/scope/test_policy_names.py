"""Names of the source in a statement, written as the policy's: what they mean is PostgreSQL's business, and kept."""

from dataclasses import replace

import pytest

from planner.catalog.source_names import SourceName
from planner.errors import KeyholeError
from planner.parser.edits import Origin
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.scope.policy_names import use_policy_names
from planner.statements.classify import classify
from planner.statements.kinds import PassThrough
from tests.in_turn import in_turn
from tests.worlds.analysts import analysts

NAMED = replace(
    analysts("insurance"),
    source_names=(
        *analysts("insurance").source_names,
        SourceName('we"ird', 'cl"aims', "calls"),
        SourceName("archive", "pg_class", "calls"),
        SourceName("later", "claims", "calls"),
        SourceName("later", "letters", "calls"),
        SourceName("last", "letters", "claims"),
    ),
)
WRITTEN = (
    ("SELECT * FROM insurance.claims", "SELECT * FROM claims"),
    ("SELECT * FROM archive.claims", "SELECT * FROM old_claims AS claims"),
    ("SELECT * FROM archive.claims c, Insurance . Regions", "SELECT * FROM old_claims c, regions"),
    ("SELECT archive.claims.x, claims.y FROM archive.claims", "SELECT claims.x, claims.y FROM old_claims AS claims"),
    ("SELECT insurer.archive.claims.* FROM archive.claims", "SELECT claims.* FROM old_claims AS claims"),
    ("SELECT insurance.claims.x FROM archive.claims", "SELECT insurance.claims.x FROM old_claims AS claims"),
    ("SELECT archive.claims.x FROM archive.claims c", "SELECT archive.claims.x FROM old_claims c"),
    ("TABLE archive.claims", "TABLE old_claims"),
    ('SELECT * FROM "we""ird"."cl""aims"', 'SELECT * FROM calls AS "cl""aims"'),
    ("SELECT * FROM pg_class", None),
    ("SELECT * FROM archive.pg_class", "SELECT * FROM calls AS pg_class"),
    ("SELECT * FROM claims", None),
    ("SELECT * FROM public.claims", None),
    ("SELECT * FROM letters", "SELECT * FROM calls AS letters"),
    ("WITH letters AS (SELECT 1) SELECT * FROM letters", None),
    ("SELECT * FROM elsewhere.insurance.claims", None),
    ('SELECT * FROM "Insurance".claims', None),
    ("SELECT insurance.claims.x FROM y", None),
    ("SELECT 'insurance.claims'", None),
)


@in_turn(("sql", "expected"), WRITTEN)
def test_a_name_of_the_source_becomes_the_policys(sql: str, expected: str | None) -> None:
    changes = use_policy_names(parse(sql, read_tokens(sql)), NAMED)
    assert (Origin(sql).edit(changes, rule="names").text if changes else None) == expected


def test_what_reads_no_private_table_goes_on_as_it_was_written() -> None:
    for sql in ("SELECT * FROM insurance.regions", "SELECT claims FROM pg_class, archive.other"):
        assert classify(sql, NAMED) == PassThrough("select")


def test_a_refusal_stands_where_the_name_was_written() -> None:
    for sql, word in (
        ("SELECT wrong FROM insurance.claims GROUP BY wrong HAVING count(*) > 9", "wrong"),
        ("SELECT region FROM archive.claims GROUP BY archive.claims.wrong HAVING count(*) > 9", "claims.wrong"),
        ("WITH claims AS (SELECT * FROM insurance.claims) SELECT * FROM claims", "claims AS"),
        ("SELECT 1 FROM insurance.claims", "insurance.claims"),
    ):
        with pytest.raises(KeyholeError) as caught:
            classify(sql, NAMED)
        assert caught.value.position is not None
        assert sql[caught.value.position - 1 :].startswith(word), (sql, caught.value)
