"""What operator, log and service manager are told of the whole Keyhole: that it serves, and that it ends."""

import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

import structlog

from proxy.process.addresses import Addresses

READY = "READY=1"
STOPPING = "STOPPING=1"

log = structlog.get_logger("keyhole.serving")


def announce(addresses: Addresses, *, metrics_ports: Sequence[int | None]) -> None:
    """Say that Keyhole serves, each worker's metrics on a port of its own."""
    ports = [str(port) for port in metrics_ports if port is not None]
    operator = f", metrics on port {', '.join(ports)}" if ports else ""
    print(f"endpoint {addresses.postgresql}, REST and docs {addresses.rest}/docs{operator}", flush=True)
    log.info("started", port=addresses.port, rest_port=addresses.rest_port, metrics_port=addresses.metrics_port)
    notify(READY)


def say_goodbye() -> None:
    """Say that Keyhole ends."""
    notify(STOPPING)
    log.info("stopping")
    print("stopping", flush=True)


def notify(*states: str, environment: Mapping[str, str] = os.environ) -> None:
    """Tell the service manager, by sd_notify(3): a datagram to the socket that the environment names.

    Nothing happens where there is none, and nothing fails where it does not listen.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto("\n".join(states).encode(), address)
