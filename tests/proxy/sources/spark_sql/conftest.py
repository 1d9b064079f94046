"""Sail, in this process, and a Spark where KEYHOLE_SPARK_CONNECT names the address of its Connect server."""

import os
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from planner.lower.dialects.sail import SAIL
from planner.lower.dialects.spark import SPARK

# where make test-spark has not installed the client of Spark Connect and what goes with it
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pyarrow") else ["test_*.py"]


@pytest.fixture(scope="session", params=["sail", pytest.param("spark", marks=pytest.mark.installed)])
def connected(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A session of each engine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client says which versions of pandas it was tested with
        from tests.proxy.sources.spark_sql.thin import connect

    if request.param == "spark":
        address = os.environ.get("KEYHOLE_SPARK_CONNECT")
        if not address:
            pytest.skip("KEYHOLE_SPARK_CONNECT names no Spark")
        yield connect(address, SPARK)
        return
    sail = pytest.importorskip("pysail.spark", reason="make test-spark installs Sail")
    server = sail.SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    host, port = server.listening_address
    yield connect(f"{host}:{port}", SAIL)
    server.stop()
