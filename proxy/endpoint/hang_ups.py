"""A watch on clients from whom nobody reads at the moment, because a statement of theirs is being worked on.

A client that has said all it wanted to say and waits for answers, and one that has gone, look alike: no more comes from
either. Only what is sent tells them apart, since the system of one that has gone answers it with a reset. So a client
of whom no more comes is told something that it knows already, as PostgreSQL may at any time.
"""

import select
import sys
from enum import Enum, auto

from proxy.endpoint.login import ClientStream
from proxy.shadow.relay import ShadowRelay
from proxy.wire.backend import ParameterStatus

_KNOWN = b"server_version"  # never another one in a session, and told at every login


class ClientPresence(Enum):
    """The state of a client's sending side: it may send more, has ended its input, or is gone."""

    SPEAKS = auto()  # more may come
    LISTENS = auto()  # no more comes; it may be waiting for answers
    GONE = auto()


def find_presence(stream: ClientStream) -> ClientPresence:
    """Return the client's state as the operating system knows it.

    On systems other than Linux, a client counts as gone only if this side has closed the connection.
    """
    connected = stream.writer.get_extra_info("socket")
    if stream.writer.transport.is_closing() or connected is None or connected.fileno() < 0:
        return ClientPresence.GONE
    if sys.platform != "linux":
        return ClientPresence.SPEAKS
    looking = select.poll()
    looking.register(connected.fileno(), select.POLLRDHUP)
    events = sum(event for _, event in looking.poll(0))
    if events & (select.POLLHUP | select.POLLERR):
        return ClientPresence.GONE
    return ClientPresence.LISTENS if events & select.POLLRDHUP else ClientPresence.SPEAKS


def probe_client(stream: ClientStream, relay: ShadowRelay) -> None:
    """Send the client a parameter that it already knows, so that the system of a vanished client answers with a reset.

    Only the first call sends anything.
    """
    if not stream.was_probed:
        stream.was_probed = True
        stream.writer.write(ParameterStatus(_KNOWN, relay.parameters.get(_KNOWN, b"")).encode())
