"""The files written from a ledger: its events as JSON lines or parquet, and verified copies of the whole ledger."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from sqlalchemy import make_url
from sqlalchemy.engine import URL

from accountant.events.export import ExportedEvent
from accountant.ledger import Ledger
from accountant.store.ledger_copy import copy_ledger
from accountant.store.private_files import OWNER_ALONE, make_private_file
from accountant.store.store import TIMEOUT_MS

_KINDS = {"int": "BIGINT", "bool": "BOOLEAN", "str": "VARCHAR"}


def write_json_lines(events: Iterable[ExportedEvent], path: Path) -> int:
    """Write each event as one line of JSON. Return the number of events.

    The file is written whole or not at all.
    """
    with _write_whole(path) as part, part.open("w", encoding="utf-8") as file:
        return sum(1 for event in events if file.write(json.dumps(asdict(event), ensure_ascii=False) + "\n"))


def write_parquet(events: Iterable[ExportedEvent], path: Path) -> int:
    """Write the events as parquet, with a column for each field. Return the number of events."""
    import duckdb  # which takes as long to import as some of the other commands

    with tempfile.TemporaryDirectory() as directory, _write_whole(path) as part:
        lines = Path(directory) / "events.jsonl"
        count = write_json_lines(events, lines)
        columns = {field.name: _KINDS[_find_column_type(field.type)] for field in fields(ExportedEvent)}
        with duckdb.connect() as connection:
            records = connection.read_json(str(lines), columns=columns, format="newline_delimited")
            records.write_parquet(str(part))
    return count


def _find_column_type(annotation: object) -> str:
    name = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    return name.removesuffix(" | None")


@contextmanager
def _write_whole(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `path` when the block ends. Delete it if the block raises.

    The temporary file exists already, empty. Only the process's user may read either file.
    """
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    make_private_file(part)
    try:
        yield part
        part.chmod(OWNER_ALONE)  # an engine may have put another file in its place
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def backup_sqlite(url: str, path: Path) -> tuple[int, str]:
    """Copy an SQLite ledger while it is in use, and verify the copy. Return the number and hash of its newest event.

    Raise `LedgerUnavailable` if the verification fails, and leave no file then.
    """
    database = make_url(url).database or ""
    with _write_whole(path) as part:
        with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(part)) as target:
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE")
        with Ledger.open(f"sqlite:///{part.resolve()}", clock=lambda: datetime.now(UTC)) as copy:
            copy.verify_everything()
            newest = copy.owner.find_newest_event()
        with closing(sqlite3.connect(part)) as target:
            target.execute("PRAGMA journal_mode = DELETE")  # one file, with nothing beside it
        with part.open("rb") as file:
            os.fsync(file.fileno())
    return newest


def copy_verified(source: str, target: str) -> tuple[int, str]:
    """Copy a ledger from one SQLAlchemy URL to another, and verify it. Return its newest event's number and hash.

    Raise `LedgerMisuse` if the target is not empty, `LedgerUnavailable` if either ledger fails.
    """
    copy_ledger(source, target, timeout_ms=TIMEOUT_MS)
    with Ledger.open(target, clock=lambda: datetime.now(UTC), can_create=False) as copy:
        copy.verify_everything()
        return copy.owner.find_newest_event()


def is_sqlite(url: str) -> bool:
    """Return True if a ledger's URL names an SQLite file."""
    return make_url(url).get_backend_name() == "sqlite"


def write_pg_dump_command(url: str, path: Path) -> str:
    """Return the shell command that backs up a PostgreSQL ledger. It contains no password."""
    return f"pg_dump --format=custom --file={quote(str(path))} --dbname={quote(_make_libpq_url(make_url(url)))}"


def _make_libpq_url(url: URL) -> str:
    query = {name: value for name, value in url.query.items() if "password" not in name.lower()}
    bare = URL.create(
        "postgresql", username=url.username, host=url.host, port=url.port, database=url.database, query=query
    )
    return bare.render_as_string(hide_password=False)
