"""The public data version of a table. It follows from the policy's `refresh` and the owner's declarations."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from accountant.charges import LIVE, is_lasting
from planner.catalog.catalog import Table
from planner.catalog.pins import Pins
from planner.catalog.refresh import parse_refresh
from proxy.open_policy.pins import read_private_pins
from proxy.open_policy.service_refusals import refuse_unrefreshed_table


def find_data_version(table: Table, *, now: datetime, pins: Pins) -> str:
    """Return the name of a table's data version for a question that is asked at `now`.

    Guarantee: the result depends on the policy, the clock and `keyhole refresh`, never on the data. Asking again
    therefore does not reveal if a row arrived. A live table's version is new at every call, so no answer is reused.

    Raises:
        KeyholeError: KH007 if an explicitly refreshed table was never pinned.
    """
    tables = table.stored_tables
    if len(tables) > 1:
        return _combine_versions(tables, now=now, pins=pins)
    refresh = parse_refresh(table.refresh)
    tick = refresh.name_tick(now)
    if tick is not None:
        return tick
    if refresh.kind == "live":
        return f"{LIVE} {uuid4().hex}"
    declared = dict(pins.refreshes).get(table.name)
    if declared is None:
        raise refuse_unrefreshed_table(table.name)
    return declared.astimezone(UTC).isoformat(sep=" ", timespec="microseconds")


def _combine_versions(tables: Sequence[Table], *, now: datetime, pins: Pins) -> str:
    """Return the version of a join: its tables' versions together, or a new one each time if one table is live."""
    versions = {one.name: find_data_version(one.bare_table, now=now, pins=pins) for one in tables}
    live = next((version for version in versions.values() if not is_lasting(version)), None)
    return live or ", ".join(f"{name} {version}" for name, version in sorted(versions.items()))


class DataVersions:
    """The data versions in the pin file. The file is read again after `keyhole refresh` has replaced it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, int] | None = None
        self._pins = Pins()

    def find_version(self, table: Table, *, now: datetime) -> str:
        """Return the data version of `table` at the time `now`. Raise KH007."""
        if any(parse_refresh(one.refresh).kind == "explicit" for one in table.stored_tables):
            self._read_pins()
        return find_data_version(table, now=now, pins=self._pins)

    def find_pinned_state(self, table: Table, version: str) -> str | None:
        """Return the state of a table's data that `keyhole check` first saw in this version, as text, or None."""
        self._read_pins()
        return self._pins.get_state(table.name, version)

    def _read_pins(self) -> None:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return
        seen = (state.st_mtime_ns, state.st_ino)
        if seen != self._seen:
            self._pins, self._seen = read_private_pins(self._path), seen
