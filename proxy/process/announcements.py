"""The announcements of the whole Keyhole to operator, log and service manager: that it serves, still does, and ends."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

import structlog

from proxy.process.addresses import Addresses

READY = "READY=1"
STOPPING = "STOPPING=1"
ALIVE = "WATCHDOG=1"
_REPORTS = 3  # within the time after which a silent service is restarted: one or two may come late

log = structlog.get_logger("keyhole.serving")


def announce_start(addresses: Addresses, *, metrics_ports: Sequence[int | None]) -> None:
    """Print and log that Keyhole is serving, with its addresses and each worker's metrics port."""
    ports = [str(port) for port in metrics_ports if port is not None]
    operator = f", metrics on port {', '.join(ports)}" if ports else ""
    print(f"endpoint {addresses.postgresql}, REST and docs {addresses.rest}/docs{operator}", flush=True)
    log.info("started", port=addresses.port, rest_port=addresses.rest_port, metrics_port=addresses.metrics_port)
    notify_service_manager(READY)


def announce_end() -> None:
    """Print and log that Keyhole stops."""
    notify_service_manager(STOPPING)
    log.info("stopping")
    print("stopping", flush=True)


def notify_service_manager(*states: str, environment: Mapping[str, str] = os.environ) -> None:
    """Send states to the service manager by sd_notify(3): a datagram to the socket that the environment names.

    Do nothing if the environment names none. Ignore a socket at which nobody listens.
    """
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    if address.startswith("@"):
        address = f"\0{address[1:]}"
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
        sender.sendto("\n".join(states).encode(), address)


@asynccontextmanager
async def report_alive(*, environment: Mapping[str, str] = os.environ) -> AsyncIterator[None]:
    """Report to the service manager, as often as it asks, that the event loop still runs, while the block runs.

    If Keyhole hangs, the reports stop, and the service manager restarts it (`WatchdogSec=` of systemd).
    """
    every_s = _read_watchdog_interval_s(environment) / _REPORTS

    async def report() -> None:
        while True:
            notify_service_manager(ALIVE, environment=environment)
            await asyncio.sleep(every_s)

    reporting = asyncio.create_task(report()) if every_s else None
    try:
        yield
    finally:
        if reporting is not None:
            reporting.cancel()
            await asyncio.wait({reporting})


def _read_watchdog_interval_s(environment: Mapping[str, str]) -> float:
    """Return how long the service manager waits for a sign of life from this process; 0 if it does not."""
    given = environment.get("WATCHDOG_USEC", "")
    is_for_another = environment.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid())
    return 0.0 if is_for_another or not given.isdecimal() else int(given) / 1e6
