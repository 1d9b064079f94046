"""A grocer: 900 households in three of five weeks, and receipts of which each row is a unit."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import duckdb
import pytest

from proxy.cli.check import check
from proxy.open_policy.service import Service
from tests.seeded_noise import SeededNoise
from tests.worlds.house import VERIFIER

POLICY = """
[source]
url = "duckdb:///grocer.duckdb"
[accuracy]
tolerance = "20%"
mechanism = "{mechanism}"
mechanisms = ["keyhole", "progressive", "svt"]
[budget]
epsilon_per_predicate = 3.0
epsilon_per_unit = 4.0
epsilon_per_query = 2.0
{budget}
[tables.baskets]
privacy_unit = "household_id"
max_groups_per_unit = 3
rows_per_unit = 2
refresh = "static"
[tables.baskets.columns.week]
key = {{ range = [1, 5] }}
[tables.baskets.columns.amount]
bounds = [0, 50]
per_unit = [0, 100]
[tables.receipts]
privacy_unit = "row"
refresh = "{refresh}"
[tables.receipts.columns.week]
key = {{ range = [1, 5] }}
[tables.receipts.columns.amount]
bounds = [0, 50]
[analysts.ada]
password = "{verifier}"
{caps}
[analysts.bob]
password = "{verifier}"
"""


@pytest.fixture
def open_grocer(tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Opens the grocer's service: `caps` are lines of ada's section, `budget` lines of the budget's."""
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        for table in ("baskets", "receipts"):
            connection.execute(
                f"CREATE TABLE {table} AS SELECT g AS household_id, 1 + g % 3 AS week, g % 50 AS amount"
                " FROM range(900) AS s(g)"
            )
    policy = tmp_path / "keyhole.toml"
    with ExitStack() as opened:

        def opening(*, mechanism: str, caps: str = "", budget: str = "", refresh: str = "static") -> Service:
            policy.write_text(
                POLICY.format(mechanism=mechanism, caps=caps, budget=budget, refresh=refresh, verifier=VERIFIER)
            )
            check(policy, confirm=False)
            service = opened.enter_context(Service.open(policy))
            service.noise = SeededNoise(20)
            return service

        yield opening
