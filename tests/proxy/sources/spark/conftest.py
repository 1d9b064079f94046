from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.proxy.sources.spark.engines import Sail

# where make test-spark has not installed the client of Spark Connect and Sail
collect_ignore_glob = [] if find_spec("pyspark") and find_spec("pysail") else ["test_spark*.py"]


@pytest.fixture(scope="session")
def sail() -> "Iterator[Sail]":
    from tests.proxy.sources.spark.engines import sail_running

    with sail_running() as started:
        yield started
