"""A session of each engine that speaks Spark Connect."""

import warnings
from importlib.util import find_spec
from typing import Any

import pytest

from planner.lower.dialects.sail import SAIL
from planner.lower.dialects.spark import SPARK

# where make test-spark has not installed the client of Spark Connect and Sail
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pysail") else ["test_*.py"]
_SERVERS = (
    "sail",
    pytest.param("spark", marks=pytest.mark.installed),
    pytest.param("spark_cluster", marks=pytest.mark.installed),
)


@pytest.fixture(scope="session", params=_SERVERS)
def connected(request: pytest.FixtureRequest) -> Any:
    """One session, for all tests."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client says which versions of pandas it was tested with
        from tests.proxy.sources.spark_sql.thin import connect

    server = request.getfixturevalue(request.param)
    return connect(server.url, SAIL if request.param == "sail" else SPARK)
