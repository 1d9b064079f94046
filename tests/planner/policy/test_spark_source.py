"""What a policy says of a Spark source: its keys, how it names relations, and what is never told or hashed."""

from pathlib import Path

import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.relation_names import write_relation
from planner.policy.rules.doubts import describe_size_doubts
from planner.policy.sections import TableSection
from tests.in_turn import in_turn
from tests.worlds.policies import changed, compiled, parsed

_POSTGRES = 'url = "postgresql://reader@db/hospital"'
_SPARK = 'url = "sc://lake:443/;use_ssl=true;user_id=reader"\nengine = "spark"'


def spark(*more: str, url: str = _SPARK) -> str:
    """The base policy over Spark, with further lines of `[source]`."""
    return changed((_POSTGRES, "\n".join((url, *more))))


def test_a_spark_source_is_read_as_written() -> None:
    source = parsed(spark('token = "hush"', 'ca = "ca.pem"', 'catalog = "lake"', 'database = "clinic"')).source
    assert (source.kind, source.engine, source.token, source.ca) == ("spark", "spark", "hush", "ca.pem")
    assert (source.catalog, source.database) == ("lake", "clinic")
    assert not source.has_rollups
    assert (parsed().source.kind, parsed().source.has_rollups) == ("postgresql", True)


@pytest.mark.parametrize(
    ("text", "key", "word"),
    [
        (spark(url='url = "sc://lake"'), "source.engine", 'engine = "sail"'),
        (spark(url='url = "sc://lake"\nengine = "flink"'), "source.engine", "sail"),
        (spark(url='url = "sc://lake"\nengine = "sail"'), "source.skip_blocks", "skip_blocks = true"),
        (spark(url='url = "sc://lake/;use_ssl=true;token=hush-hush"\nengine = "spark"'), "source.url", "token ="),
        (spark('token = ""'), "source.token", "token"),
        (spark('scratch = "copies"'), "source.scratch", "nothing is written"),
        (spark("threads = 2"), "source.threads", "workers"),
        (spark(url=_POSTGRES + '\nengine = "spark"'), "source.engine", "url says it"),
        (spark(url=_POSTGRES + '\ntoken = "hush-hush"'), "source.token", "KEYHOLE_SOURCE_PASSWORD"),
        (spark(url='url = "duckdb://"\ndatabase = "clinic"'), "source.database", "url says it"),
    ],
)
def test_a_refusal_says_what_to_write(text: str, key: str, word: str) -> None:
    with pytest.raises(KeyholeError, match="KH002") as refused:
        parsed(text)
    told = f"{refused.value} {refused.value.detail} {refused.value.hint}"
    assert key in told
    assert word in told
    assert "hush-hush" not in told


def test_a_token_comes_from_the_environment_and_is_never_shown() -> None:
    text = spark('token = "${TOKEN}"')
    policy = Policy.parse(text, path=Path("k.toml"), environment={"TOKEN": "hush-hush"})
    assert policy.source.token == "hush-hush"
    assert "hush-hush" not in repr(policy)
    with pytest.raises(KeyholeError, match="KH002") as refused:
        Policy.parse(text, path=Path("k.toml"), environment={})
    assert "TOKEN" in refused.value.message


def test_an_answer_depends_on_where_it_is_read_and_not_on_the_token() -> None:
    base = compiled(spark('token = "hush"')).digest
    for same in (spark('token = "another"'), spark(), spark('ca = "ca.pem"'), spark("skip_blocks = true")):
        assert compiled(same).digest == base
    for other in (
        spark(url=_SPARK.replace("lake", "pond")),
        spark(url=_SPARK.replace("=reader", "=writer")),
        spark('catalog = "lake"'),
        spark('database = "clinic"'),
    ):
        assert compiled(other).digest != base


@in_turn(
    ("written", "expected"),
    [
        (None, "`visits`"),
        ("clinic.Visits", "`clinic`.`Visits`"),
        ("lake.clinic.visits", "`lake`.`clinic`.`visits`"),
        ("`a.b`.`o``d`", "`a.b`.`o``d`"),
        ("visits.parquet", "`parquet`.`/data/visits.parquet`"),
        ("visits/*.PARQUET", "`parquet`.`/data/visits/*.PARQUET`"),
        ("/lake/o'hare.parquet", "`parquet`.`/lake/o'hare.parquet`"),
        ("s3://lake/visits.parquet", "`parquet`.`s3://lake/visits.parquet`"),
        ("parquet.`/lake/visits`", "`parquet`.`/lake/visits`"),
        ("delta.`s3://lake/visits`", "`delta`.`s3://lake/visits`"),
    ],
)
def test_a_relation_is_a_name_or_a_path(written: str | None, expected: str) -> None:
    section = TableSection(relation=written)
    assert write_relation("visits", section, directory=Path("/data"), kind="spark") == expected
    if written is not None:
        text = spark().replace("[tables.visits]\n", f'[tables.visits]\nrelation = "{written}"\n')
        assert parsed(text).write_relation("visits").endswith(expected.removeprefix("`parquet`.`/data/"))


@in_turn(
    "written",
    [
        "visits.csv",
        '"clinic"."visits"',
        "/lake/visits",
        "a..b",
        "`open",
        "s3://lake/visits",
        "clinic.",
        ".",
        "json.`/lake/visits`",
        "`CSV`.`/lake/visits`",
        "xml.`s3://lake/visits`",
    ],
)
def test_what_is_no_relation(written: str) -> None:
    text = spark().replace("[tables.visits]\n", f"[tables.visits]\nrelation = '{written}'\n")
    with pytest.raises(KeyholeError, match=r"KH002.*visits\.relation") as refused:
        parsed(text)
    assert refused.value.hint


def test_large_tables_have_no_rollups_to_warn_of() -> None:
    (said,) = describe_size_doubts(parsed(spark()), {"visits": 10**9})
    assert "rollup" not in said
