"""A test of whether data have moved within a data version, for the owner who vouches that they have not.

The findings follow from private data. It is told to the owner alone, by `keyhole check`, the log and a metric; no
question, no refusal and no time that an analyst can measure depends on it.
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
    """Return the pins with the state in which each table was first seen in its data version, or with `confirm` now.

    The tables that are in another one by now follow. One that somebody has locked stays as it was. Raise KH007.
    """
    states, moved = [], []
    for table in catalog.tables:
        version = find_data_version(table.bare_table, now=now, pins=pins)
        if not is_lasting(version):
            continue
        first = pins.get_state(table.name, version)
        try:
            state: str | None = source.state(table.relation)
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
    """A table in one data version: the state it is compared with, None at the first look, and whether it has moved."""

    version: str
    relation: str
    state: str | None
    has_moved: bool = False


class DataWatch:
    """Looks now and then, and says once for each data version that a table has moved within it.

    The state that was pinned for the version counts from the start. Where nothing was, the second look is the first
    that is compared with: right after a load its counters may still follow.
    """

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._seen: dict[str, _FirstState] = {}

    def find_moved(self, catalog: Catalog) -> Mapping[str, float]:
        """Return 1 by table if its data had moved within the version that was current at the last look."""
        seen = self._seen
        return {table.name: float(table.name in seen and seen[table.name].has_moved) for table in catalog.tables}

    def compare(self, service: Service) -> None:
        """Compare every table that may be in the same version for longer.

        A table that cannot be read is passed over.
        """
        seen: dict[str, _FirstState] = {}
        for table in service.catalog.tables:
            try:
                version = service.find_version(table.bare_table)
                state = service.source.state(table.relation) if is_lasting(version) else None
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
