"""A Delta table on Sail: what `refresh` says of it holds, and nothing tells by itself that it was changed."""

from pathlib import Path
from typing import Any

import psycopg
import pytest

from planner.lower.dialects.spark import SPARK
from proxy.cli.check import check
from proxy.cli.check import refresh as refresh_table
from tests.proxy.sources.spark.engines import Sail
from tests.proxy.sources.spark_sql.thin import connect
from tests.worlds.house import VERIFIER, House, hurried, opened

_POLICY = """\
[source]
url = "{url}"
engine = "sail"
skip_blocks = true
[budget]
epsilon_per_predicate = 400
epsilon_per_query = 100
[server]
database = "shop"
[tables.visits]
relation = "delta.`{table}`"
privacy_unit = "row"
refresh = "{refresh}"
[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}
[analysts.ada]
password = "{verifier}"
"""
_QUESTION = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > {}"


def _ask(house: House, more: int = 500) -> list[str]:
    with house.connect() as client:
        return sorted(ward for (ward,) in client.execute(_QUESTION.format(more).encode()))


@pytest.mark.parametrize("refresh", ["explicit", "static", "live"])
def test_rows_that_are_added_and_deleted(sail: Sail, tmp_path: Path, refresh: str) -> None:
    table, policy = tmp_path / "visits", tmp_path / "keyhole.toml"
    owner: Any = connect(sail.url, SPARK).session

    def add(ward: str, rows: int, *, mode: str = "append") -> None:
        made = owner.sql(f"SELECT id, '{ward}' AS ward FROM range({rows})")
        made.write.format("delta").mode(mode).save(str(table))

    add("A", 2000, mode="overwrite")
    policy.write_text(_POLICY.format(url=sail.url, table=table, refresh=refresh, verifier=VERIFIER), encoding="utf-8")
    check(policy, confirm=False)
    with opened(policy) as house:
        assert _ask(house) == ["A"]
        add("B", 2000)
        owner.sql(f"DELETE FROM delta.`{table}` WHERE ward = 'A'").collect()
        assert not check(policy, confirm=False).pinning.changes
        assert _ask(house) == (["B"] if refresh == "live" else ["A"])
        assert _ask(house, 501) == (["B"] if refresh == "live" else ["A"])  # of earlier noise, but for a live table
    if refresh == "explicit":
        refresh_table(policy, "visits")
        with opened(policy) as house:
            assert _ask(house) == ["B"]
            owner.sql("SELECT 7 AS ward").write.format("delta").mode("overwrite").option(
                "overwriteSchema", "true"
            ).save(str(table))
            with hurried(house.service, limit_ms=2000), pytest.raises(psycopg.Error, match="KH501"):
                _ask(house, 77)
