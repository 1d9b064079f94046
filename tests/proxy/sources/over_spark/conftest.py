"""The suites of `tests/proxy/sources` over a third dialect: Sail, Apache Spark in one process, and Spark in several."""

from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.proxy.sources.worlds import Engines

# where make test-spark has not installed the client of Spark Connect and Sail
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pysail") else ["test_*.py"]
SERVERS = (
    "sail",
    pytest.param("spark", marks=pytest.mark.installed),
    pytest.param("spark_cluster", marks=pytest.mark.installed),
)


@pytest.fixture(scope="session")
def both(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    """DuckDB and PostgreSQL, into which rows are written."""
    from tests.proxy.sources.conftest import opened

    with opened(postgres_url, tmp_path_factory.mktemp("files")) as found:
        yield found


@pytest.fixture(scope="session", params=SERVERS)
def engines(
    request: pytest.FixtureRequest, both: Engines, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Engines]:
    """A server of Spark Connect, asked in place of both."""
    from tests.proxy.sources.spark.engines import open_server

    folder: Path = tmp_path_factory.getbasetemp()
    source = open_server(request.getfixturevalue(request.param).url, directory=folder)
    yield replace(both, instead=(source,))
    source.close()
