"""The index of each of a monitor's keys among the ledger's cells. The ledger counts cells, and a look counts keys.

The ledger's cells have sorted columns: those of the keys, and those that WHERE narrows. Without the window's column, a
cell's number is the place that alerts and losses of one window name. If a key's values are classes of a column's
values, each value of the column is a cell.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from accountant.charges import NanoArray
from accountant.monitor_model import MonitorRun
from mechanisms.formula import Booleans
from mechanisms.protocol import Epsilons
from planner.monitors.monitor_plan import MonitorPlan
from proxy.open_policy.accounts import convert_to_nano, make_label
from proxy.pipeline.claim import is_class_key, list_charged_values


@dataclass(frozen=True, slots=True)
class CellMapping:
    """The mapping between a monitor's keys and the ledger's cells of one window.

    `shape` is the shape of the cells of one window. `axes` has the axis of each of the question's keys, and `sizes`
    the number of each key's values.

    `classes` is for keys whose values are classes of several cells. By the key's number, it has the class of each cell
    along the key's axis.
    """

    shape: tuple[int, ...]
    axes: tuple[int, ...]
    sizes: tuple[int, ...]
    classes: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @staticmethod
    def find_for_run(plan: MonitorPlan, run: MonitorRun) -> "CellMapping":
        """Return the mapping for a run, with the plan with which the run was started."""
        windows = None if run.windows is None else run.windows.column
        left = [(name, len(values)) for name, values in run.charge.cells.columns if name != windows]
        names = [name for name, _ in left]
        return CellMapping(
            shape=tuple(size for _, size in left),
            axes=tuple(names.index(make_label(column)) for column in plan.keys.columns),
            sizes=plan.keys.shape,
            classes=tuple(
                (number, tuple(place for _, place in list_charged_values(column, values)))
                for number, (column, values) in enumerate(zip(plan.keys.columns, plan.keys.values, strict=True))
                if is_class_key(column)
            ),
        )

    def find_cells(self, marked: Booleans) -> tuple[int, ...]:
        """Return the sorted cell indices of the marked keys. For a key with several cells, return the first one.

        `marked` is an array with a value for each key.
        """
        coordinates = np.unravel_index(np.flatnonzero(marked), self.sizes) if self.sizes else ()
        if not self.shape:
            return (0,) if bool(marked.any()) else ()
        at = [np.zeros(int(marked.sum()), dtype=np.int64) for _ in self.shape]
        for number, (axis, place) in enumerate(zip(self.axes, coordinates, strict=True)):
            members = self._map_to_key_values(number)
            at[axis] = place if members is None else np.array([members.index(int(one)) for one in place], np.int64)
        return tuple(sorted(int(place) for place in np.ravel_multi_index(tuple(at), self.shape)))

    def mark_keys(self, places: Iterable[int]) -> Booleans:
        """Return an array with True for each key that has one of these cell indices. It inverts `find_cells`."""
        marked = np.zeros(self.sizes, dtype=np.bool_)
        for place in places:
            at = np.unravel_index(place, self.shape) if self.shape else ()
            marked[tuple(self._find_key_value(number, int(at[axis])) for number, axis in enumerate(self.axes))] = True
        return marked.reshape(-1)

    def expand_to_cells(self, losses: Epsilons) -> NanoArray:
        """Return the loss of each cell in 1e-9 epsilon, rounded up, from the keys' losses in epsilon."""
        levels, level_of = np.unique(losses, return_inverse=True)
        counted = np.array([convert_to_nano(float(level)) for level in levels], dtype=np.int64)[level_of].reshape(
            self.sizes
        )
        for number, members in self.classes:
            counted = counted.take(members, axis=number)
        arranged = counted.transpose(np.argsort(self.axes)) if self.axes else counted
        kept = sorted(self.axes)
        index = tuple(slice(None) if axis in kept else None for axis in range(len(self.shape)))
        laid: NanoArray = np.ascontiguousarray(np.broadcast_to(arranged[index], self.shape)).reshape(-1)
        return laid

    def _map_to_key_values(self, number: int) -> tuple[int, ...] | None:
        """Return the class of each cell along a key's axis; None if each cell is one value of the key."""
        return dict(self.classes).get(number)

    def _find_key_value(self, number: int, place: int) -> int:
        members = self._map_to_key_values(number)
        return place if members is None else members[place]
