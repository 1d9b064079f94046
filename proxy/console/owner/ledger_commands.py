"""The ledger commands that exist only at the command line, as complete lines for the owner to copy.

These commands write files, or close reservations of a crashed process. A page would write the files on the server, not
on the owner's machine.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from proxy.open_policy.service import Service
from proxy.report.terminal import make_visible

MOST_SETTLED = 20  # open reservations that have commands: a screen of them; the page of questions lists all
_WHY = "--why 'say why'"


@dataclass(frozen=True, slots=True)
class CommandRow:
    """One command line, its purpose, and whether it writes an event to the ledger."""

    purpose: str
    command: str
    is_event: bool


def list_ledger_commands(service: Service) -> Iterator[CommandRow]:
    """Yield the commands that copy and export the ledger, remove noise paths, and close open reservations.

    Raise LedgerError if the ledger cannot be read.
    """
    path, ledger = service.policy.path, service.ledger
    yield _make_row(
        "Copy the ledger while it is in use, and verify the copy", path, "ledger", "backup", "ledger-copy.db"
    )
    yield _make_row("Write every event to a file", path, "ledger", "export", "events.jsonl")
    yield _make_row("Say in sentences for a report what was promised and spent, over all windows", path, "odometer")
    for size in ledger.owner.measure_paths():
        purpose = f"Remove the noise paths of {size.table}, data version {size.version}: {size.state_count:,} states"
        yield _make_row(purpose, path, "ledger", "prune", size.table, size.version, event=True)
    for one in ledger.list_open_reservations()[:MOST_SETTLED]:
        purpose = f"Close the reservation of {one.charge.analyst} from {one.reserved_at:%Y-%m-%d %H:%M} UTC, spent"
        yield _make_row(f"{purpose}, if its process is dead", path, "ledger", "settle", one.id, "--spent", event=True)


def _make_row(purpose: str, path: Path, *words: str, event: bool = False) -> CommandRow:
    command = shlex.join(("keyhole", *words, "--policy", str(path.resolve())))
    return CommandRow(make_visible(purpose), make_visible(f"{command} {_WHY}" if event else command), event)
