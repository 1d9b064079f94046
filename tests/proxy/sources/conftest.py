from collections.abc import Iterator

import psycopg
import pytest

from proxy.sources.open import open_source
from tests.proxy.sources.worlds import Engines


@pytest.fixture(scope="session")
def engines(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    folder = tmp_path_factory.mktemp("files")
    duck = open_source("duckdb://", directory=folder)
    postgres = open_source(postgres_url, directory=folder)
    postgres.relations()  # the pool's threads draw from `random` while they connect, which Hypothesis forbids
    with psycopg.connect(postgres_url, autocommit=True) as writer:
        yield Engines(folder=folder, duck=duck, postgres=postgres, writer=writer)
        writer.execute("DROP TABLE IF EXISTS visits, crowd")
    duck.close()
    postgres.close()
