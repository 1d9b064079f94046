"""The address at which the shadow listens."""

from dataclasses import dataclass
from pathlib import Path

OWNER = "postgres"
"""Who may do everything in the shadow: Keyhole alone."""


@dataclass(frozen=True, slots=True)
class ShadowAddress:
    """A PostgreSQL server on a Unix socket. The permissions of the socket's folder replace a password."""

    directory: Path
    port: int

    @property
    def socket(self) -> str:
        """The socket's path."""
        return str(self.directory / f".s.PGSQL.{self.port}")

    def make_conninfo(self, *, user: str, database: str) -> str:
        """Return a libpq connection string for this user and database."""
        return f"host='{self.directory}' port={self.port} user='{user}' dbname='{database}'"
