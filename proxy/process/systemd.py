"""What a service manager is told, by sd_notify(3): a datagram to the socket that the environment names."""

import os
import socket
from collections.abc import Mapping
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(*states: str, environment: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager; nothing happens where there is none, and nothing fails where it does not listen."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto("\n".join(states).encode(), address)
