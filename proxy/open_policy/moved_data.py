"""The check if a table's data changed within a data version, although the owner declared that it does not.

The findings depend on private data. Only the owner sees them, by `keyhole check`, the log and a metric. No answer, no
refusal and no time that an analyst can measure depends on them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from accountant.charges import is_lasting
from planner.catalog.catalog import Catalog
from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from proxy.observe.telemetry import Telemetry
from proxy.open_policy.data_versions import find_data_version
from proxy.open_policy.service import Service
from proxy.sources.protocol import Source


def pin_states(catalog: Catalog, source: Source, pins: Pins, *, now: datetime, confirm: bool) -> tuple[Pins, list[str]]:
    """Add each table's state to the pins, as first seen in its data version. Return the pins, and the changed tables.

    With `confirm`, pin the current state instead. A table that is locked keeps its pin. Raise KH007.
    """
    states, moved = [], []
    for table in catalog.tables:
        version = find_data_version(table.bare_table, now=now, pins=pins)
        if not is_lasting(version):
            continue
        first = pins.get_state(table.name, version)
        try:
            state: str | None = source.read_state(table.relation)
        except KeyholeError:
            state = first
        if state is not None and (first is None or confirm):
            first = state
        if first is not None:
            states.append((table.name, version, first))
        if state != first:
            moved.append(table.name)
    return replace(pins, states=tuple(states)), moved


@dataclass(slots=True)
class _FirstState:
    """A table in one data version, with the state to compare later ones with, or None before the first reading."""

    version: str
    relation: str
    state: str | None
    has_moved: bool = False


class DataWatch:
    """A periodic check that logs once for each data version if a table's data changed within that version.

    The state is compared with the one pinned for the version. If none is pinned, it is compared with the second state
    that was read, since the engine's counters may still change right after a load.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._seen: dict[str, _FirstState] = {}

    def find_moved_tables(self, catalog: Catalog) -> Mapping[str, float]:
        """Map each table to 1 if its data had changed within its version at the last comparison, and otherwise to 0."""
        seen = self._seen
        return {table.name: float(table.name in seen and seen[table.name].has_moved) for table in catalog.tables}

    def compare(self, service: Service) -> None:
        """Compare each table's state with the first one seen under its data version. Log each table that has changed.

        Skip live tables, and tables that cannot be read.
        """
        seen: dict[str, _FirstState] = {}
        for table in service.catalog.tables:
            try:
                version = service.find_version(table.bare_table)
                state = service.source.read_state(table.relation) if is_lasting(version) else None
                if state is None or version != service.find_version(table.bare_table):
                    continue
            except KeyholeError:
                continue
            known = self._seen.get(table.name)
            if known is None or (known.version, known.relation) != (version, table.relation):
                known = _FirstState(version, table.relation, service.find_pinned_state(table, version))
                first = known.state
            else:
                first = known.state = known.state or state
            if first is not None and first != state and not known.has_moved:
                known.has_moved = True
                self._telemetry.note_moved_data(table.name, version=version)
            seen[table.name] = known
        self._seen = seen
