"""A column that is of another type than it was pinned as makes the question fail; it is never read as NULL."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import duckdb
import psycopg
import pytest
from structlog.testing import capture_logs

from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.question.plan import Plan, ReadRelation
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.release.bounds import BoundsRequest, find_bounds, plan_bounds
from proxy.sources.read_types import TypesChanged, check_types
from tests.end_to_end.certainty import asked
from tests.worlds.house import eventually, hurried, new_database

POLICY = """\
[source]
url = "{source}"
rollups = 2

[ledger]
url = "sqlite:///keyhole.db"

[limits]
statement_timeout_ms = 500

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 2

[tables.visits]
relation = "{relation}"
privacy_unit = "id"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 3

[tables.visits.columns.ward]
key = {{ values = ["A", "B"] }}

[tables.visits.columns.age]
bounds = [0, 110]
per_unit = [0, 110]

[tables.visits.columns.seen]
[tables.visits.columns.cost]
bounds = [0, 100]
grid = 0.01
per_unit = [0, 100]
"""
QUESTION = "SELECT ward FROM visits WHERE age > 30 AND seen > '2026-01-01' GROUP BY ward HAVING sum(cost) > 500"
BOUNDS = BoundsRequest("visits", (), (), ("age",), epsilon=Fraction(1), cut=Fraction(1, 20), units=10_000, most={})
ROWS = (
    "SELECT i::integer AS id, 'A'::varchar(10) AS ward, 40::integer AS age, "
    "'2026-05-01'::timestamp AS seen, 50::numeric(6,2) AS cost"
)
# what stands in the place of a column, for the same values; NULL for it would be a wrong answer
DUCKDB = (
    "ward||'' AS ward",
    "age::text AS age",
    "age::bigint AS age",
    "seen::timestamptz AS seen",
    "seen::text AS seen",
    "cost::numeric(6,4) AS cost",
    "cost::text AS cost",
    "id::text AS id",
)
POSTGRES = (
    "ALTER COLUMN age TYPE text",
    "ALTER COLUMN age TYPE bigint",
    "ALTER COLUMN seen TYPE timestamptz",
    "ALTER COLUMN cost TYPE numeric(7,3)",
    "ALTER COLUMN ward TYPE varchar(11)",
    "DROP COLUMN age",
)


@dataclass(frozen=True)
class World:
    """An open service, and what replaces its rows or changes their table."""

    service: Service
    change: Callable[[str], None]

    def plan(self, question: str = QUESTION) -> Plan:
        return stages.plan_asked_question(self.service, asked(self.service, question))

    def read(self, question: str = QUESTION, *, version: str = "1") -> list[int]:
        """The first functional's true aggregates, key by key."""
        plan = self.plan(question)
        found = self.service.source.read_aggregates(
            plan.rewritten,
            plan.question.keys,
            functionals=len(plan.question.functionals),
            timeout_ms=60_000,
            version=version,
        )
        self.service.source.wait_for_rollups()
        return [int(value) for value in found.values[0]]


def write_policy(directory: Path, *, source: str, relation: str) -> Path:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=source, relation=relation), encoding="utf-8")
    check(path, confirm=False)
    return path


@pytest.fixture
def files(tmp_path: Path) -> Iterator[World]:
    def write(column: str) -> None:
        again = tmp_path / "new.parquet"
        listed = f"* REPLACE ({column})" if column else "*"
        duckdb.sql(f"COPY (SELECT {listed} FROM ({ROWS} FROM range(1000) AS t(i))) TO '{again}'")
        again.rename(tmp_path / "visits.parquet")

    write("")
    with Service.open(write_policy(tmp_path, source="duckdb://", relation="visits.parquet")) as service:
        yield World(service, write)


@pytest.fixture
def table(postgres_url: str, tmp_path: Path) -> Iterator[World]:
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(f"CREATE TABLE visits AS {ROWS} FROM generate_series(1, 1000) AS t(i)")

        def change(statement: str) -> None:
            owner.execute(f"ALTER TABLE visits {statement}".encode())

        with Service.open(write_policy(tmp_path, source=url, relation="visits")) as service:
            yield World(service, change)


def test_a_file_with_a_column_of_another_type_is_not_answered_from(files: World) -> None:
    expected = files.read()
    for version, column in enumerate(DUCKDB, start=2):
        files.change(column)
        if column.startswith("ward"):  # what a file of DuckDB says of a text is the same
            assert files.read(version=str(version)) == expected
            continue
        with pytest.raises(KeyholeError) as refused:
            files.read(version=str(version))
        assert (refused.value.code, refused.value.message) == ("KH501", "the source could not answer"), column
        files.change("")
        assert files.read(version=str(version)) == expected, "a file that is as it was is read again"


@pytest.mark.parametrize("statement", POSTGRES)
def test_a_table_with_a_column_of_another_type_is_not_answered_from(table: World, statement: str) -> None:
    table.read()
    table.change(statement)
    with pytest.raises(KeyholeError) as refused:
        table.read(version="2")
    assert (refused.value.code, refused.value.message) == ("KH501", "the source could not answer")


def test_what_a_question_does_not_depend_on_may_change(table: World) -> None:
    expected = table.read()
    table.change("ADD COLUMN more text")
    table.change("ALTER COLUMN age SET NOT NULL")
    table.change('ALTER COLUMN ward TYPE varchar(10) COLLATE "POSIX"')
    assert table.read(version="2") == expected


def test_a_collation_that_would_merge_groups_is_another_type() -> None:
    """No PostgreSQL of these tests has such collations."""
    read = ReadRelation("visits", (("ward", "text"),))
    check_types([read], lambda _: [SourceColumn("ward", "text", nullable=True)])
    with pytest.raises(TypesChanged):
        check_types(
            [read], lambda _: [SourceColumn("ward", "text", nullable=True, has_nondeterministic_collation=True)]
        )


@pytest.mark.parametrize("world", ["files", "table"])
def test_no_rollup_is_made_of_a_column_of_another_type(world: str, request: pytest.FixtureRequest) -> None:
    found: World = request.getfixturevalue(world)
    rolled = found.plan().rewritten.rollup
    assert rolled is not None
    assert rolled.relations == found.plan().rewritten.relations != ()
    broken = replace(rolled.relations[0], columns=(("age", "text"),))
    rewritten = replace(found.plan().rewritten, rollup=replace(rolled, relations=(broken,)))
    keys = found.plan().question.keys
    found.service.source.read_aggregates(rewritten, keys, functionals=1, timeout_ms=60_000, version="1")
    found.service.source.wait_for_rollups()
    assert found.service.source.count_rollups() == {"ready": 0, "building": 0, "useless": 1}


def test_the_failure_is_charged_and_the_owner_alone_is_told_which_column_it_was(table: World) -> None:
    table.change(POSTGRES[1])
    question = asked(table.service, QUESTION, tolerance="90%")
    with capture_logs() as logs:
        with pytest.raises(KeyholeError) as refused:
            stages.answer(table.service, stages.plan_asked_question(table.service, question), question)
        eventually(lambda: bool(_differing(logs)))  # a slow engine is not waited for
    told = f"{refused.value.message} {refused.value.detail} {refused.value.hint}"
    assert refused.value.code == "KH501"
    assert "age" not in told
    assert "type" not in told
    assert table.service.report_balances(None).unit_spent_nano > 0
    (line,) = _differing(logs)
    assert (line["column"], line["was"], line["now"]) == ("age", "integer", "bigint")


def _differing(logs: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """What the log says of columns that differ."""
    return [line for line in logs if line["event"] == "a column is not what it was pinned as"]


def test_a_question_whose_column_was_renamed_gets_its_reservation_back(table: World) -> None:
    """No row was read, so that nothing is spent; the log says why, and the owner which column it was. So does a release
    of the owner's."""
    table.change("RENAME COLUMN age TO years")
    question = asked(table.service, QUESTION, tolerance="90%")
    # time for a slow engine: what it says after the limit gives nothing back
    with capture_logs() as logs, pytest.raises(KeyholeError) as refused, hurried(table.service, limit_ms=3_000):
        stages.answer(table.service, stages.plan_asked_question(table.service, question), question)
    assert refused.value.code == "KH501"
    assert refused.value.detail == "No row was read. Nothing was spent."
    assert "age" not in f"{refused.value.message} {refused.value.detail} {refused.value.hint}"
    assert table.service.report_balances(None).unit_spent_nano == 0
    assert table.service.ledger.list_open_reservations() == ()
    assert [line["why"] for line in logs if line["event"] == "a question failed in the source"] == ["a column is gone"]
    (line,) = _differing(logs)
    assert (line["column"], line["now"]) == ("age", "gone")
    bounds = plan_bounds(BOUNDS, table.service.catalog, table.service.source.dialect)
    with pytest.raises(KeyholeError, match="KH501") as refused, hurried(table.service, limit_ms=3_000):
        find_bounds(table.service, bounds)
    assert refused.value.detail == "No row was read. Nothing was spent."
    assert table.service.report_balances(None).unit_spent_nano == 0
    assert table.service.ledger.list_open_reservations() == ()


@pytest.mark.parametrize("change", ["age::text AS age", "NULL AS age"])
def test_a_file_that_was_replaced_without_a_word_is_not_read(files: World, change: str) -> None:
    files.change(change)
    question = asked(files.service, QUESTION, tolerance="90%")
    with pytest.raises(KeyholeError, match="KH501: the data version changed") as refused:
        stages.answer(files.service, stages.plan_asked_question(files.service, question), question)
    assert "age" not in f"{refused.value.message} {refused.value.detail} {refused.value.hint}"
    assert files.service.report_balances(None).unit_spent_nano == 0
    assert files.service.ledger.list_open_reservations() == ()


def test_a_column_that_a_function_of_a_view_misses_is_paid(table: World) -> None:
    """What a view computes row by row may miss a column where the relation has all of its own: rows were read."""
    table.change("RENAME TO stored")
    with psycopg.connect(table.service.policy.source.url, autocommit=True) as owner:
        owner.execute(
            "CREATE FUNCTION failing(age integer) RETURNS integer LANGUAGE plpgsql AS "
            "'BEGIN RETURN (SELECT nothing FROM stored LIMIT 1); END'"
        )
        owner.execute("CREATE VIEW visits AS SELECT id, ward, failing(age) AS age, seen, cost FROM stored")
    question = asked(table.service, QUESTION, tolerance="90%")
    with pytest.raises(KeyholeError, match="KH501: the source could not answer"):
        stages.answer(table.service, stages.plan_asked_question(table.service, question), question)
    assert table.service.report_balances(None).unit_spent_nano > 0
