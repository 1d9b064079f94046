from collections.abc import Iterator

import pytest

from tests.clients.encrypted import MORE, Encrypted
from tests.proxy.certificates import Authority
from tests.worlds import gallery
from tests.worlds.house import new_database
from tests.worlds.served import Served, served


@pytest.fixture(scope="session")
def clinic(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Keyhole over the gallery on a real PostgreSQL, serving."""
    with (
        new_database(postgres_url) as url,
        served(gallery.installed(tmp_path_factory.mktemp("clinic"), url)) as keyhole,
    ):
        yield keyhole


@pytest.fixture(scope="session")
def encrypted(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Encrypted]:
    """The same over TLS, which is required."""
    directory, authority = tmp_path_factory.mktemp("encrypted"), Authority.new()
    authority.identity.write(directory, "authority")
    authority.issue("keyhole").write(directory, "server")
    authority.issue("dashboard").write(directory, "dashboard")
    Authority.new().identity.write(directory, "stranger")
    with (
        new_database(postgres_url) as url,
        served(gallery.installed(directory, url, more=MORE)) as keyhole,
    ):
        yield Encrypted(keyhole, directory)
