"""Types that a PostgreSQL source's users made: a domain is its base, an enum is text, others are usable in nothing."""

from pathlib import Path

import psycopg
import pytest

from planner.catalog.catalog import SqlType
from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from proxy.shadow.schema import _find_shown_type
from tests.end_to_end.certainty import asked
from tests.worlds.house import new_database

TABLE = """
CREATE DOMAIN small AS numeric(6,2) CHECK (VALUE < 1000);
CREATE DOMAIN price AS small;
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN felt AS mood;
CREATE TYPE pair AS (a integer, b integer);
CREATE TABLE special (id integer, p price, m mood, f felt, c pair, cs pair[], j jsonb);
INSERT INTO special SELECT n, 2.5, CASE WHEN n % 4 = 0 THEN 'sad' ELSE 'ok' END::mood, 'ok', NULL, NULL, NULL
FROM generate_series(1, 100) AS t(n)
"""
POLICY = """\
[source]
url = "{url}"
rollups = 2
[ledger]
url = "sqlite:///keyhole.db"
[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 4
[tables.special]
privacy_unit = "id"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 1
[tables.special.columns]
p = {{ bounds = [0, 10], grid = 0.01, per_unit = [0, 10] }}
m = {{ key = {{ values = ["sad", "ok", "gone"] }} }}
f = {{ key = {{ values = ["sad", "ok"] }} }}
c = {{}}
cs = {{}}
j = {{}}
"""


UNUSABLE = "SELECT m FROM special WHERE c IS NULL GROUP BY m HAVING count(*) > 9"


def test_user_types(postgres_url: str, tmp_path: Path) -> None:
    with new_database(postgres_url) as url, psycopg.connect(url, autocommit=True) as owner:
        owner.execute(TABLE.encode())
        path = tmp_path / "keyhole.toml"
        path.write_text(POLICY.format(url=url), encoding="utf-8")
        check(path, confirm=False)
        with Service.open(path) as service:
            (table,) = service.catalog.tables
            known = {column.name: (column.declared, column.sql_type) for column in table.columns}
            assert known["p"] == ("numeric(6,2)", SqlType.NUMERIC)
            assert known["m"] == known["f"] == ("text", SqlType.TEXT)
            assert {known[name][1] for name in ("c", "cs", "j")} == {SqlType.OTHER}
            with new_database(postgres_url) as empty, psycopg.connect(empty) as shadow:
                shown = {column.name: _find_shown_type(column, shadow) for column in table.columns}
            assert (shown["c"], shown["cs"], shown["j"], shown["p"]) == ("text", "text", "jsonb", "numeric(6,2)")
            for question, expected in (
                ("SELECT m FROM special GROUP BY m HAVING count(*) > 30", {"sad": 25, "ok": 75}),
                ("SELECT m FROM special WHERE m <> 'gone' GROUP BY m HAVING count(*) > 30", {"sad": 25, "ok": 75}),
                ("SELECT f FROM special WHERE p > 1 AND m = 'sad' GROUP BY f HAVING count(*) > 9", {"ok": 25}),
            ):
                plan = stages.plan_asked_question(service, asked(service, question))
                for _ in range(2):  # the second from a rollup
                    found = service.source.read_aggregates(
                        plan.rewritten,
                        plan.question.keys,
                        functionals=len(plan.question.functionals),
                        timeout_ms=60_000,
                        version="1",
                    ).values[0]
                    (values,) = plan.question.keys.values
                    got = {str(value): int(one) for value, one in zip(values, found, strict=True) if one}
                    assert got == expected, question
                    service.source.wait_for_rollups()
            with pytest.raises(KeyholeError, match="KH205"):
                stages.plan_asked_question(service, asked(service, UNUSABLE))
