from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from proxy.sources.open import open_source
from tests.proxy.sources.worlds import Engines


@contextmanager
def opened(postgres_url: str, folder: Path) -> Iterator[Engines]:
    """DuckDB over files in the folder, and PostgreSQL."""
    duck = open_source("duckdb://", directory=folder)
    postgres = open_source(postgres_url, directory=folder)
    postgres.list_relations()  # the pool's threads draw from `random` while they connect, which Hypothesis forbids
    with psycopg.connect(postgres_url, autocommit=True) as writer:
        yield Engines(folder=folder, duck=duck, postgres=postgres, writer=writer)
        writer.execute("DROP TABLE IF EXISTS visits, crowd")
    duck.close()
    postgres.close()


@pytest.fixture(scope="session")
def engines(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with opened(postgres_url, tmp_path_factory.mktemp("files")) as found:
        yield found
