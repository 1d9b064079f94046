"""The shop in parquet files, read by Sail and by DuckDB."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.end_to_end.spark.lake import write_files, write_lake_policy
from tests.worlds.house import House, opened

if TYPE_CHECKING:
    from tests.proxy.sources.spark.engines import Sail

# where make test-spark has not installed the client of Spark Connect and Sail
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pysail") else ["test_*.py"]


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a parquet file for each table of the shop."""
    return write_files(tmp_path_factory.mktemp("lake"))


@pytest.fixture(scope="session")
def on_sail(sail: "Sail", lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The shop on Sail, with a budget for every test."""
    with opened(write_lake_policy(tmp_path_factory.mktemp("shop"), lake, url=sail.url)) as house:
        yield house


@pytest.fixture(scope="session")
def on_files(lake: Path) -> Iterator[House]:
    """The same files on DuckDB, under the same policy."""
    with opened(write_lake_policy(lake, lake, url="duckdb://")) as house:
        yield house
