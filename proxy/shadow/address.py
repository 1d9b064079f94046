"""Where the shadow listens."""

from dataclasses import dataclass
from pathlib import Path

OWNER = "postgres"
"""Who may do everything in the shadow: Keyhole alone."""


@dataclass(frozen=True, slots=True)
class ShadowAddress:
    """A PostgreSQL server on a Unix socket. The socket's directory decides who may connect, so it needs no password."""

    directory: Path
    port: int

    @property
    def socket(self) -> str:
        """The socket's path."""
        return str(self.directory / f".s.PGSQL.{self.port}")

    def make_conninfo(self, *, user: str, database: str) -> str:
        """Return libpq's connection string."""
        return f"host='{self.directory}' port={self.port} user='{user}' dbname='{database}'"
