"""Who is connected to the PostgreSQL endpoint, within `[server.limits]`.

Guarantee: there are never more than `unauthenticated` connections without a session, nor more than `connections`
sessions. A connection that comes when all places for the former are taken gets one; it is taken from the network that
then has the most of them. So whoever opens connections and does not log in, however fast, keeps nobody out who comes
from elsewhere and has fewer there. By default there are as many places as sessions, so that a burst of clients who all
could get in, and speak at once, does. Within a network, and among those that have equally many, the oldest goes, or the
oldest of those that have not sent a byte where these are half of them or more: clients behind one address compete with
one another. (Refusing the newest instead would let fifty silent connections close the door for as long as they are
renewed.)
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

from planner.policy.sections import ServerLimitsSection
from proxy.security.networks import find_network
from proxy.session.error_fields import encode_fatal

STOPPED = encode_fatal("terminating connection due to administrator command", sqlstate="57P01")
STOPPING = encode_fatal("the database system is shutting down", sqlstate="57P03")
FULL = encode_fatal("sorry, too many clients already", sqlstate="53300")
IDLE = encode_fatal("terminating connection due to idle-session timeout", sqlstate="57P05")
GONE = encode_fatal("connection to client lost", sqlstate="08006")
USED_UP = encode_fatal("terminating connection: the memory for all sessions is used up", sqlstate="53200")
IDLE_IN_TRANSACTION = encode_fatal("terminating connection due to idle-in-transaction timeout", sqlstate="25P03")

_OTHER_SHADOW_CONNECTIONS = 20  # the owner's, the reserved ones, and those that are just ending
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4))
"""A client that has vanished is noticed after two minutes: one of silence, and four probes without an answer."""


class TooManyConnections(Exception):
    """The error for a connection above a limit.

    `report` is the message that the client gets before it is disconnected.
    """

    def __init__(self, report: bytes) -> None:
        super().__init__("too many connections")
        self.report = report


class ConnectedClient:
    """The connection of a client from `network`, served by `task`.

    `final_report` is the message for the client when Keyhole disconnects it. `has_spoken` is True once the client has
    sent a byte. `lingering` is the process id of the shadow's backend if that still works after the client has gone, or
    0.
    """

    def __init__(self, task: "asyncio.Task[None]", network: str) -> None:
        self.task = task
        self.network = network
        self.has_spoken = False
        self.analyst: str | None = None
        self.final_report = b""
        self.lingering = 0

    def note_byte(self) -> None:
        """Note that the client has sent a byte."""
        self.has_spoken = True

    @property
    def is_displaced(self) -> bool:
        """Return True if the connection was ended to make room for another."""
        return self.final_report == FULL

    def disconnect(self, report: bytes) -> None:
        """End the connection with a report. A second call does nothing."""
        if not self.final_report:
            self.final_report = report
            self.task.cancel()


class Connections:
    """The connections of one endpoint, on one event loop."""

    def __init__(self, limits: ServerLimitsSection) -> None:
        self._limits = limits
        self._all: set[ConnectedClient] = set()
        self._logging_in: dict[ConnectedClient, None] = {}  # oldest first
        self._sessions: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._all)

    def set_limits(self, limits: ServerLimitsSection) -> None:
        """Use other limits for new connections. No open connection ends."""
        self._limits = limits

    @property
    def all(self) -> tuple[ConnectedClient, ...]:
        """All connected clients, logged in or not."""
        return tuple(self._all)

    def add(self, task: "asyncio.Task[None]", *, address: str = "") -> ConnectedClient:
        """Add a new connection. If too many have not logged in, disconnect one of them."""
        client = ConnectedClient(task, find_network(address))
        while len(self._logging_in) >= self._limits.unauthenticated:
            pressed = self._choose_to_displace(client.network)
            del self._logging_in[pressed]
            pressed.disconnect(FULL)
        self._all.add(client)
        self._logging_in[client] = None
        return client

    def _choose_to_displace(self, newcomer: str) -> ConnectedClient:
        """Return the connection to end when one from the network `newcomer` comes."""
        held = Counter(client.network for client in self._logging_in)
        held[newcomer] += 1
        most = max(held[client.network] for client in self._logging_in)
        crowd = [client for client in self._logging_in if held[client.network] == most]
        silent = [client for client in crowd if not client.has_spoken]
        # where only few are silent, these may have come just now: then the oldest of all goes
        return (silent if 2 * len(silent) >= len(crowd) else crowd)[0]

    def check_room(self) -> None:
        """Raise TooManyConnections if no more session could be opened."""
        if self._sessions.total() >= self._limits.connections:
            raise TooManyConnections(FULL)

    def log_in(self, client: ConnectedClient, analyst: str) -> None:
        """Turn a connection whose login succeeded into a session. Raise TooManyConnections if there are too many."""
        self.check_room()
        if self._sessions[analyst] >= self._limits.connections_per_analyst:
            raise TooManyConnections(encode_fatal(f'too many connections for role "{analyst}"', sqlstate="53300"))
        self._logging_in.pop(client, None)
        self._sessions[analyst] += 1
        client.analyst = analyst

    def remove(self, client: ConnectedClient) -> None:
        """Remove a closed connection.

        If its statement still runs in the shadow, `free_session` must be called later.
        """
        self._all.discard(client)
        self._logging_in.pop(client, None)
        if not client.lingering:
            self.free_session(client)

    def free_session(self, client: ConnectedClient) -> None:
        """Stop counting the session of a connection."""
        if client.analyst is not None:
            self._sessions[client.analyst] -= 1


def choose_sessions_to_end(used: Mapping[int, int], owners: Mapping[int, str], *, most: int) -> Sequence[int]:
    """Return the sessions that must end so that the remaining ones together use at most `most`.

    `used` has each session's use. The analyst with the highest total use loses the largest session first. So an analyst
    who uses little loses nothing to others, however many sessions they open.
    """
    left, gone = dict(used), []
    while sum(left.values()) > most:
        by_owner: Counter[str] = Counter()
        for session, amount in left.items():
            by_owner[owners[session]] += amount
        ((owner, _),) = by_owner.most_common(1)
        gone.append(max((session for session in left if owners[session] == owner), key=left.__getitem__))
        del left[gone[-1]]
    return gone


def count_shadow_connections(limits: ServerLimitsSection) -> int:
    """Return the connection limit of the shadow. Each session uses one connection, briefly two."""
    return 2 * limits.connections + _OTHER_SHADOW_CONNECTIONS


def set_keepalive(connected: socket.socket, limits: ServerLimitsSection) -> None:
    """Have the system detect a client that has vanished, or that has stopped reading."""
    if connected.family not in (socket.AF_INET, socket.AF_INET6):
        return
    with suppress(OSError):  # gone already
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for name, value in _KEEPALIVE:
            if (option := getattr(socket, name, None)) is not None:
                connected.setsockopt(socket.IPPROTO_TCP, option, value)
        if limits.unread_timeout_s and (option := getattr(socket, "TCP_USER_TIMEOUT", None)) is not None:
            connected.setsockopt(socket.IPPROTO_TCP, option, 1000 * limits.unread_timeout_s)
