from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.demo.build import install_demo
from proxy.cli.check import check
from tests.worlds import shop
from tests.worlds.house import House, new_database, opened, write_policy


@pytest.fixture(scope="session")
def on_postgres_url(postgres_url: str) -> Iterator[str]:
    """The URL of the shop on PostgreSQL that `on_postgres` serves."""
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        yield url


@pytest.fixture(scope="session")
def on_postgres(on_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The shop on PostgreSQL, with a budget for every test."""
    with opened(write_policy(tmp_path_factory.mktemp("shop"), source=on_postgres_url)) as house:
        yield house


@pytest.fixture(scope="session")
def on_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The shop in a DuckDB file, with a budget for every test."""
    directory = tmp_path_factory.mktemp("shop")
    shop.fill_duckdb(directory / "shop.duckdb")
    with opened(write_policy(directory, source="duckdb:///shop.duckdb")) as house:
        yield house


@pytest.fixture(scope="session", params=["duckdb", "postgres"])
def house(request: pytest.FixtureRequest) -> House:
    """The shop on either engine."""
    found: House = request.getfixturevalue(f"on_{request.param}")
    return found


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """The demo as it is shipped, with its own budget."""
    policy = install_demo(tmp_path_factory.mktemp("demo"))
    check(policy, confirm=False)
    with opened(policy) as house:
        yield house


@pytest.fixture
def source_url(postgres_url: str) -> Iterator[str]:
    """A shop of the test's own."""
    with new_database(postgres_url) as url:
        shop.fill_postgres(url)
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty ledger in either store."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'keyhole.db'}"
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        yield url
