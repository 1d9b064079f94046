"""The owner's releases over a Spark source, beside the same over DuckDB: at an epsilon of 40 noise is zero but for less
than one draw in 1e17, so both say the same."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from proxy.cli.check import check
from tests.end_to_end.spark.lake import write_files, write_lake_policy
from tests.proxy.sources.spark.engines import Sail
from tests.worlds.house import House, command, opened

SURE = ("--epsilon", "40", "--yes", "--why", "a test")
STORES = ("sales", "--public", "store", "--sensitive", "month")
ROC = ("roc", "sales", "--score", "amount", "--outcome", "quantity > 3", "--by", "store")
CALIBRATION = ("calibration", "sales", "--score", "amount / 100.0", "--outcome", "quantity > 3")


@pytest.fixture(scope="module")
def on_both(sail: Sail, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The shop's policies on Sail and on DuckDB, over the same files, for this module's tests alone."""
    files = write_files(tmp_path_factory.mktemp("files"))  # beside which DuckDB's policy has to be
    on_sail = write_lake_policy(tmp_path_factory.mktemp("shop"), files, url=sail.url)
    return on_sail, write_lake_policy(files, files, url="duckdb://")


def _read(policy: Path, told: dict[str, Any]) -> list[tuple[Any, ...]]:
    with duckdb.connect() as connection:
        return connection.execute("SELECT * FROM read_parquet(?)", [str(policy.parent / told["file"])]).fetchall()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("publish", (*STORES, *SURE)),
        ("publish", (*STORES, *SURE, "--where", "quantity > 3")),
        ("publish", (*STORES, *SURE, "--where", "quantity > 4", "--method", "rows")),
        ("diagnose", (*ROC, *SURE)),
        ("diagnose", (*CALIBRATION, *SURE)),
    ],
    ids=["table", "where", "rows", "roc", "calibration"],
)
def test_what_is_released_is_what_duckdb_counts(
    on_both: tuple[Path, Path], request: pytest.FixtureRequest, name: str, arguments: tuple[str, ...]
) -> None:
    out = f"made_{request.node.callspec.id}"
    files = []
    for policy in on_both:
        told = command(name, policy, *arguments, "--out", out)
        assert not told["paid_before"]
        assert command(name, policy, *arguments, "--out", out)["sha256"] == told["sha256"]
        files.append(_read(policy, told))
    assert files[0] == files[1]
    assert len(files[0]) > 1


def test_rows_of_units_are_bounded_in_curves(on_both: tuple[Path, Path]) -> None:
    """A person counts with two rows of a ward, in two wards: both engines choose the same ones."""
    whole = ("roc", "visits", "--score", "cost", "--outcome", "cost > 50", "--by", "ward", "--rows-per-unit", "2")
    told = [command("diagnose", policy, *whole, *SURE)["groups"] for policy in on_both]
    assert told[0] == told[1]


def test_rows_that_nobody_budgets_keep_who_is_there(on_both: tuple[Path, Path]) -> None:
    for method in ("perturbed", "sps"):
        flags = ("--method", method, "--out", method, "--not-differentially-private", *SURE[2:])
        rows = [_read(policy, command("publish", policy, *STORES, *flags)) for policy in on_both]
        sizes = [{store: len([row for row in one if row[0] == store]) for store, _ in one} for one in rows]
        assert sizes[0].keys() == sizes[1].keys()
        if method == "perturbed":
            assert sizes[0] == sizes[1]


def test_what_was_released_is_a_public_table_of_a_spark_source(sail: Sail, lake: Path, tmp_path: Path) -> None:
    """Parquet alone: the types of a CSV file are found in its rows, so the command does not propose one."""
    policy = write_lake_policy(tmp_path, lake, url=sail.url)
    curves = command("diagnose", policy, *ROC, *SURE, "--out", "curves")
    as_csv = command("diagnose", policy, *ROC, "--epsilon", "40", "--out", "curves", "--format", "csv")
    assert "relation" in curves["policy"]
    assert "relation" not in as_csv["policy"]
    assert "make a table of the catalog" in as_csv["load"][0]
    policy.write_text(f"{policy.read_text()}\n{curves['policy']}\n")
    check(policy, confirm=True)
    areas = {one["keys"]["store"]: one["area"] for one in curves["groups"] if one["area"] is not None}
    with opened(policy) as house, house.connect() as ada:
        assert dict(ada.execute("SELECT DISTINCT store, area FROM curves").fetchall()) == areas
        big = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1000"
        joined = ada.execute(f"SELECT store, max(area) FROM curves JOIN ({big}) q USING (store) GROUP BY store")
        assert dict(joined.fetchall()) == {store: areas[store] for store in ("north", "south")}


def test_risk_from_private_rows_is_the_same(on_sail: House, on_files: House) -> None:
    told = []
    for house in (on_sail, on_files):
        shown = command("risk", house.policy, "--private", "--views", "--sensitive", "quantity=6:0.1")
        private = [one for one in shown["sections"] if one["section"] in ("true_shares", "bounding")]
        told.append(json.loads(json.dumps(private), parse_float=lambda number: round(float(number), 6)))
    assert told[0] == told[1]
    assert len(told[0]) == 2
