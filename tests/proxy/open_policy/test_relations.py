"""One relation of the source has one name in the policy and one in the ledger, however it is spelled."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from planner.errors import KeyholeError
from proxy.cli.check import Findings, check
from proxy.open_policy.pins import read_pins, write_pins
from proxy.open_policy.service import Service
from proxy.sources.duckdb_relations import identify_relation
from tests.end_to_end.certainty import asked
from tests.worlds.house import new_database

HEAD = """\
[source]
url = "{source}"

[ledger]
url = "sqlite:///keyhole.db"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 2
"""
ROW = """
[tables.{name}]
relation = '{relation}'
privacy_unit = "row"
refresh = "static"
{more}

[tables.{name}.columns.ward]
key = {{ values = ["A", "B"] }}
"""
PEOPLE = """
[tables.{name}]
relation = '{relation}'
privacy_unit = "id"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
{more}

[tables.{name}.columns.ward]
key = {{ values = ["A", "B"] }}
"""
PUBLIC = """
[tables.{name}]
relation = '{relation}'
public = true
"""
STATEMENTS = (
    "CREATE TABLE visits (id integer, ward text)",
    "INSERT INTO visits SELECT g, 'A' FROM generate_series(1, 3000) AS s(g)",
    "CREATE TABLE other (id integer, ward text)",
    "CREATE VIEW seen AS SELECT id, ward FROM visits WHERE id > 0",
    "CREATE VIEW again AS SELECT * FROM seen",
    "CREATE VIEW both_of_them AS SELECT v.id, o.ward FROM visits v JOIN other o ON o.id = v.id",
)
FILES = ("seen.csv", "link.csv", "hard.csv", "below/../seen.csv", '"seen.csv"')


@dataclass(frozen=True)
class World:
    """A source with tables and views, and where its policies lie."""

    directory: Path
    url: str
    run: Callable[[str], None]

    def write(self, *tables: str) -> Path:
        """A policy with these tables."""
        path = self.directory / "keyhole.toml"
        path.write_text(HEAD.format(source=self.url) + "".join(tables), encoding="utf-8")
        return path

    def check(self, *tables: str, confirm: bool = False) -> Findings:
        return check(self.write(*tables), confirm=confirm)

    def refused(self, *tables: str) -> KeyholeError:
        """How `check` refuses such a policy, and that nobody can serve it either."""
        path = self.write(*tables)
        with pytest.raises(KeyholeError) as refused:
            check(path, confirm=True)
        with pytest.raises(KeyholeError) as again:
            Service.open(path)
        assert again.value.message == refused.value.message
        return refused.value


def table(name: str, relation: str, *, form: str = ROW, more: str = "") -> str:
    return form.format(name=name, relation=relation, more=more)


@pytest.fixture(params=["duckdb", "postgres"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "duckdb":

        def run(sql: str) -> None:
            with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
                connection.execute(sql)

        for statement in STATEMENTS:
            run(statement)
        yield World(tmp_path, "duckdb:///shop.duckdb", run)
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:

        def run_there(sql: str) -> None:
            with psycopg.connect(url) as connection:
                connection.execute(sql.encode())

        for statement in STATEMENTS:
            run_there(statement)
        yield World(tmp_path, url, run_there)


def spellings(world: World) -> list[str]:
    """Other ways to say `visits`, and views of it alone."""
    if world.url.startswith("duckdb"):
        return ["main.visits", '"visits"', "VISITS", "shop.main.visits", '"shop"."Visits"', "seen", "main.again"]
    name = psycopg.conninfo.conninfo_to_dict(world.url)["dbname"]
    return ["public.visits", '"visits"', f"{name}.public.visits", "seen", "public.again"]


def test_a_relation_under_a_second_name_is_refused(world: World) -> None:
    for spelling in spellings(world):
        refusal = world.refused(table("visits", "visits"), table("second", spelling))
        assert refusal.code == "KH002", spelling
        assert "as tables.visits does" in refusal.message


def test_a_private_table_is_not_spelled_into_a_public_one(world: World) -> None:
    for spelling in spellings(world):
        refusal = world.refused(table("visits", "visits"), table("open_to_all", spelling, form=PUBLIC))
        assert refusal.code == "KH002", spelling


def test_names_that_are_charged_together_share_one_budget(world: World) -> None:
    """The relation twice, once as a view of it: what either tells is charged to the first."""
    world.check(
        table("visits", "visits", form=PEOPLE), table("second", "seen", form=PEOPLE, more='same_unit_as = "visits"')
    )


def test_a_view_of_several_relations_beside_one_of_them_is_warned_of(world: World) -> None:
    found = world.check(table("visits", "visits"), table("joined", "both_of_them"))
    assert [warning for warning in found.warnings if "tables.visits and tables.joined" in warning]
    assert not [warning for warning in world.check(table("visits", "visits")).warnings if "show rows" in warning]


def test_parts_of_a_table_are_that_table(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url:
        with psycopg.connect(url) as owner:
            owner.execute("CREATE TABLE visits (id integer, ward text) PARTITION BY LIST (ward)")
            owner.execute("CREATE TABLE in_a PARTITION OF visits FOR VALUES IN ('A')")
            owner.execute("CREATE TABLE in_b PARTITION OF visits FOR VALUES IN ('B')")
            owner.execute("CREATE VIEW seen AS SELECT * FROM visits")
            owner.execute("CREATE MATERIALIZED VIEW copied AS SELECT * FROM visits")
        world = World(tmp_path, url, lambda _: None)
        for other in ("in_a", "seen", "copied"):
            assert world.refused(table("visits", "visits"), table("second", other)).code == "KH002"
        assert world.refused(table("second", "in_b"), table("third", "seen")).code == "KH002"
        world.check(table("one", "in_a"), table("two", "in_b"))


@pytest.mark.parametrize("spelling", [*FILES, "v", "g"])
def test_a_file_under_a_second_name_is_refused(tmp_path: Path, spelling: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where DuckDB looks for a quoted name
    (tmp_path / "below").mkdir()
    file = tmp_path / "seen.csv"
    file.write_text("id,ward\n1,A\n2,B\n", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(file)
    os.link(file, tmp_path / "hard.csv")
    (tmp_path / "other.csv").write_text("id,ward\n1,A\n", encoding="utf-8")
    with duckdb.connect(str(tmp_path / "views.duckdb")) as owner:
        owner.execute(f"CREATE VIEW v AS SELECT * FROM read_csv('{file}')")
        owner.execute(f"CREATE MACRO m() AS TABLE SELECT * FROM '{tmp_path}/see*.csv'")
        owner.execute("CREATE VIEW g AS FROM m()")
    world = World(tmp_path, "duckdb:///views.duckdb", lambda _: None)
    named = "below/../../" + tmp_path.name + "/seen.csv" if spelling == "seen.csv" else "seen.csv"
    assert world.refused(table("visits", named), table("second", spelling)).code == "KH002"
    world.check(table("visits", "other.csv"), table("second", spelling))


def ask(policy: Path, name: str) -> None:
    from proxy.pipeline import stages

    with Service.open(policy) as service:
        question = asked(service, f"SELECT ward FROM {name} GROUP BY ward HAVING count(*) > 1000")
        stages.answer(service, stages.plan_asked_question(service, question), question)


def test_a_file_by_its_name_asks_for_no_functions_of_the_engine(tmp_path: Path) -> None:
    """Which would be most of what a command over one file takes from DuckDB. Nor does a call where no database's file
    could have a macro; one that reads the file is found."""
    told = []
    with duckdb.connect() as connection:

        def run(sql: str) -> list[tuple[Any, ...]]:
            told.append(sql)
            return connection.execute(sql).fetchall()

        connection.execute("SET explain_output = 'all'")
        file = f"'{tmp_path / 'visits.csv'}'"
        connection.execute(f"COPY (SELECT 1 AS id) TO {file}")
        connection.execute(f"COPY (SELECT 1 AS id) TO '{tmp_path}/a \"quoted\".csv'")
        identify = partial(identify_relation, run=run, directory=tmp_path)
        database = tmp_path / "a.duckdb"
        by_name = identify(file, database=database)
        for one in (None, database):
            assert identify(f"read_csv({file})", database=one).bases == by_name.bases
        assert identify(f'"{tmp_path}/a ""quoted"".csv"', database=database).bases not in (frozenset(), by_name.bases)
        assert not any("duckdb_functions" in sql or "duckdb_constraints" in sql for sql in told)
        connection.execute(f"CREATE MACRO moved() AS TABLE FROM {file}")
        connection.execute("CREATE VIEW behind AS FROM moved()")
        for relation in ("moved()", "behind"):
            assert identify(relation, database=database).bases == by_name.bases != frozenset()


def test_keys_of_one_column_name_the_rows_of_a_table_however_it_is_spelled(tmp_path: Path) -> None:
    """A table without keys asks for none of the engine's own."""
    told = []
    with duckdb.connect() as connection:

        def run(sql: str) -> list[tuple[Any, ...]]:
            told.append(sql)
            return connection.execute(sql).fetchall()

        def find_unique(relation: str) -> set[str]:
            return set(identify_relation(relation, run=run, directory=tmp_path, database=None).unique)

        connection.execute("SET explain_output = 'all'")
        connection.execute("CREATE TABLE plain (a INTEGER NOT NULL, b INTEGER CHECK (b > 0))")
        connection.execute("CREATE TABLE keyed (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c INTEGER, UNIQUE (b, c))")
        connection.execute('CREATE TABLE "Both" (a INTEGER, b INTEGER, PRIMARY KEY (a, b))')
        connection.execute("CREATE VIEW shown AS FROM keyed")
        connection.execute("CREATE MACRO called() AS TABLE FROM keyed")
        assert find_unique("plain") == set()
        assert not any("duckdb_constraints" in sql for sql in told)
        for spelled in ("keyed", '"KEYED"', "memory.main.keyed", "keyed AS k"):
            assert find_unique(spelled) == {"a", "b"}, spelled
        for without in ('"Both"', "shown", "called()", "(FROM keyed)"):
            assert find_unique(without) == set(), without


def test_another_name_for_what_was_charged_waits_for_the_owner(world: World) -> None:
    """The ledger knows it, also where the pins are gone."""
    world.check(table("visits", "visits"))
    policy = world.check(table("stays", "visits")).policy  # nothing was charged yet
    ask(policy, "stays")
    policy.with_suffix(".pins.json").unlink()
    with pytest.raises(KeyholeError) as refused:
        world.check(table("visits", spellings(world)[0]))
    assert refused.value.code == "KH007"
    assert "charged as stays" in refused.value.message
    assert "begin with a full budget" in (refused.value.detail or "")
    assert "--confirm" in (refused.value.hint or "")
    with pytest.raises(KeyholeError, match="is not pinned yet"):
        Service.open(policy)
    world.check(table("visitors", "visits"), confirm=True)
    world.check(table("visitors", "visits"))
    world.check(table("stays", "visits"))


def test_a_renamed_table_of_postgres_is_known_by_its_oid(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url:
        with psycopg.connect(url) as owner:
            for statement in STATEMENTS[:2]:
                owner.execute(statement.encode())
        world = World(tmp_path, url, lambda _: None)
        world.check(table("visits", "visits"))
        ask(tmp_path / "keyhole.toml", "visits")
        with psycopg.connect(url) as owner:
            owner.execute("ALTER TABLE visits RENAME TO stays")
        with pytest.raises(KeyholeError, match="charged as visits"):
            world.check(table("stays", "stays"))
        with pytest.raises(KeyholeError, match="differs from what was pinned") as changed:
            world.check(table("visits", "stays"))
        assert "what was spent under this name stays charged to it" in (changed.value.detail or "")
        with pytest.raises(KeyholeError, match="when it was pinned"):
            Service.open(tmp_path / "keyhole.toml")
        world.check(table("visits", "stays"), confirm=True)
        Service.open(tmp_path / "keyhole.toml").close()


def test_a_table_that_is_replaced_under_its_name_is_the_same(world: World) -> None:
    world.check(table("visits", "visits"))
    world.run("ALTER TABLE other RENAME TO newer")
    world.run("DROP VIEW both_of_them")
    world.run("DROP VIEW again")
    world.run("DROP VIEW seen")
    world.run("DROP TABLE visits")
    world.run("ALTER TABLE newer RENAME TO visits")
    Service.open(world.write(table("visits", "visits"))).close()
    assert world.check(table("visits", "visits")).pinning.changes == ()


def test_pins_of_before_are_completed_by_the_next_check(world: World) -> None:
    from dataclasses import replace

    found = world.check(table("visits", "visits"))
    write_pins(found.pin_file, replace(read_pins(found.pin_file), relations=()))
    with pytest.raises(KeyholeError, match="is not pinned yet"):
        Service.open(found.policy)
    world.check(table("visits", "visits"))
    Service.open(found.policy).close()
