from collections.abc import Iterator

import pytest

from tests.clients import gallery
from tests.clients.served import Served, serving
from tests.end_to_end.house import new_database


@pytest.fixture(scope="session")
def clinic(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Keyhole over the gallery on a real PostgreSQL, serving."""
    with (
        new_database(postgres_url) as url,
        serving(gallery.installed(tmp_path_factory.mktemp("clinic"), url)) as served,
    ):
        yield served
