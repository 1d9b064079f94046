"""What the tests of TLS ask libpq for, and how they read what is not libpq's."""

from pathlib import Path

import psycopg

from proxy.wire import backend
from proxy.wire.frames import FrameReader
from tests.proxy.conftest import Running


def conninfo(running: Running, directory: Path, extra: str = "", **login: str) -> str:
    verified = f"sslmode=verify-full sslrootcert={directory / 'authority.crt'} gssencmode=disable"
    return running.conninfo(extra=f"{verified} {extra}", **login)


def shown(directory: Path, name: str) -> str:
    return f"sslcert={directory / name}.crt sslkey={directory / name}.key"


def works(running: Running, directory: Path) -> bool:
    with psycopg.connect(conninfo(running, directory)) as connection:
        return connection.execute("SELECT 1").fetchone() == (1,)


def reports(data: bytes) -> list[backend.BackendMessage]:
    reader = FrameReader(limit_bytes=1 << 20, merges_rows=False)
    reader.feed(data)
    return [backend.decode(frame) for frame in iter(reader.read_typed_frame, None)]
