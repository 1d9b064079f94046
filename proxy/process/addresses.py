"""Where Keyhole listens: ports to bind, the sockets bound to them before anything is started, and their URLs."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from planner.errors import KeyholeError


@dataclass(frozen=True, slots=True)
class ListenAddress:
    """The address to listen on. Port 0 lets the system choose a free port."""

    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Addresses:
    """The addresses on which a running Keyhole listens."""

    host: str
    port: int
    rest_port: int
    database: str
    metrics_port: int | None = None
    rest_scheme: str = "http"

    @property
    def postgresql(self) -> str:
        """The endpoint's URL, without a user."""
        return f"postgresql://{self.host}:{self.port}/{self.database}"

    @property
    def rest(self) -> str:
        """The base URL of REST."""
        return f"{self.rest_scheme}://{self.host}:{self.rest_port}"


@dataclass(frozen=True, slots=True)
class Sockets:
    """The bound sockets on which Keyhole accepts connections. Several processes may share them."""

    postgresql: socket.socket
    rest: socket.socket


@contextmanager
def open_sockets(*, host: str, port: int, rest_port: int) -> Iterator[Sockets]:
    """Open the PostgreSQL and REST sockets while the block runs. Port 0 lets the system choose one.

    Raise KH406 if a port cannot be bound.
    """
    with (
        open_listening_socket(ListenAddress(host, port)) as postgresql,
        open_listening_socket(ListenAddress(host, rest_port)) as rest,
    ):
        yield Sockets(postgresql, rest)


@contextmanager
def open_listening_socket(place: ListenAddress) -> Iterator[socket.socket]:
    """Open a listening socket while the block runs. Raise KH406 with the address if it cannot be bound."""
    try:
        taken = socket.create_server(
            (place.host, place.port), family=socket.AF_INET6 if ":" in place.host else socket.AF_INET
        )
    except OSError as error:
        why = "no such host" if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        hint = "Stop what listens there, or choose another: --host, --port, --rest-port, --metrics-port, or [server]."
        raise KeyholeError("KH406", f"cannot listen on {place.host}:{place.port} ({why})", hint=hint) from None
    with taken:
        yield taken
