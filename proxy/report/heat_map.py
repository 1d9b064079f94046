"""Heat maps of used budget, for owners. Each cell is a group, and shows the share of its budget that is spent."""

from calendar import day_abbr, day_name, month_abbr, month_name
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from accountant.charges import NanoArray
from accountant.reports.balance_report import FamilyBalance
from proxy.open_policy.accounts import read_label

Shares = npt.NDArray[np.int64]

# months and days of the week by their English names, long and short, as people read them
_IN_THE_CALENDAR = {
    name.lower(): place
    for names in (month_name, month_abbr, ("", *day_name), ("", *day_abbr))
    for place, name in enumerate(names)
    if name
}
NEVER = -1  # in the place of a share: no share is negative
# Fills from light to dark, so that a copy in black and white shows the same order.
STEPS: tuple[tuple[int, str], ...] = (
    (0, "#ffffe5"),
    (25, "#fee391"),
    (50, "#fe9929"),
    (75, "#cc4c02"),
    (100, "#3d1502"),
)
DARK_FROM = 75  # percent from which on a fill is too dark for black figures
NEVER_FILL = "#ffffff"
SUMMARY = "The most that a group has spent of its budget, by table and grouping:"
_NAMED = 3  # of the worst groups of a map in its summary: more would not fit on a line


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The groups of a table in rows and columns, one key down and one across.

    `percent` has shape (rows, columns): the spent share of each group's budget, in percent rounded down (but at least 1
    if anything is spent). If nobody asked about the group, `percent` is `NEVER`. With more than two keys, a cell has
    the largest share over the other keys. `left_out` has the numbers of rows and columns that are not shown, and
    `left_out_percent` the largest share among these.
    """

    table: str
    keys: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    percent: Shares
    left_out: tuple[int, int] = (0, 0)
    left_out_percent: int = NEVER

    @property
    def title(self) -> str:
        """The title of a map: the table's name and the keys."""
        by = f" by {self.keys[0]}" if self.keys else ""
        across = f" (down) and {self.keys[1]} (across)" if len(self.keys) > 1 else ""
        rest = f", the worst over {', '.join(self.keys[2:])}" if len(self.keys) > 2 else ""
        return f"{self.table}{by}{across}{rest}"

    def keep_most_spent(self, *, rows: int, columns: int) -> "HeatMap":
        """Return the map with at most the given numbers of rows and columns.

        Those with the largest spent shares are kept, in their old order.
        """
        if len(self.rows) <= rows and len(self.columns) <= columns:
            return self
        down = _find_most_spent(self.percent.max(axis=1), rows)
        across = _find_most_spent(self.percent.max(axis=0), columns)
        gone = self.percent.copy()
        gone[np.ix_(down, across)] = NEVER
        return replace(
            self,
            rows=tuple(self.rows[place] for place in down),
            columns=tuple(self.columns[place] for place in across),
            percent=self.percent[np.ix_(down, across)],
            left_out=(len(self.rows) - len(down), len(self.columns) - len(across)),
            left_out_percent=int(gone.max()),
        )

    @property
    def remark(self) -> str:
        """Return a remark on omitted rows and columns, or ""."""
        down, across = self.left_out
        if not down and not across:
            return ""
        most = "none of them was asked about" if self.left_out_percent < 0 else f"at most {self.left_out_percent} %"
        parts = [f"{count:,} {what}" for count, what in ((down, "rows"), (across, "columns")) if count]
        return f"Left out: {' and '.join(parts)}, {most}."


def _find_most_spent(percent: Shares, most: int) -> list[int]:
    return sorted(np.argsort(-percent, kind="stable")[:most].tolist())


def make_heat_maps(families: Iterable[FamilyBalance]) -> tuple[HeatMap, ...]:
    """Return one map for each table and set of grouping columns.

    All filters and data versions share a map. A cell shows the largest loss among them that counts for a question about
    the group. All families of a table have the same cap.
    """
    together: dict[tuple[str, tuple[str, ...]], list[FamilyBalance]] = {}
    for balance in families:
        together.setdefault((balance.family.table, balance.family.columns), []).append(balance)
    return tuple(_make_map(table, columns, found) for (table, columns), found in together.items())


def _make_map(table: str, labels: tuple[str, ...], families: Sequence[FamilyBalance]) -> HeatMap:
    axes = [
        tuple(sorted({value for item in families for value in item.cells.columns[axis][1]}, key=_make_sort_key))
        for axis in range(len(labels))
    ]
    places = [{value: place for place, value in enumerate(axis)} for axis in axes]
    lost: NanoArray = np.full([len(axis) for axis in axes], NEVER, dtype=np.int64)
    for item in families:
        index = [[places[axis][value] for value in values] for axis, (_, values) in enumerate(item.cells.columns)]
        grid = np.ix_(*index)
        lost[grid] = np.maximum(
            lost[grid], np.array(item.lost_nano, dtype=np.int64).reshape(item.cells.shape_by_column)
        )
    order = sorted(range(len(labels)), key=lambda axis: -len(axes[axis]))
    lost = lost.transpose(order)
    lost = lost.max(axis=tuple(range(2, lost.ndim))) if lost.ndim > 2 else lost.reshape((*lost.shape, 1, 1)[:2])
    return HeatMap(
        table=table,
        keys=tuple(read_label(labels[axis]) for axis in order),
        rows=axes[order[0]] if order else ("the whole table",),
        columns=axes[order[1]] if len(order) > 1 else ("spent",),
        percent=_find_percent(lost, families[0].cap_nano),
    )


def _find_percent(lost: NanoArray, cap_nano: int) -> Shares:
    # nine digits of epsilon times a hundred stay below 2^63 for a hundred million epsilon
    share = np.maximum(lost * 100 // max(cap_nano, 1), (lost > 0).astype(np.int64))
    return np.where(lost < 0, NEVER, share)


def _make_sort_key(value: str) -> tuple[int, float, str]:
    try:
        return 0, float(value), value
    except ValueError:
        pass
    try:
        return 1, date.fromisoformat(value).toordinal(), value
    except ValueError:
        return 2, _IN_THE_CALENDAR.get(value.lower(), 0), value


def choose_colour(percent: int) -> str:
    """Return the colour of a cell with this percentage."""
    return NEVER_FILL if percent < 0 else [colour for least, colour in STEPS if least <= percent][-1]


def write_percent(percent: int) -> str:
    """Return the percentage in a cell as text."""
    return "." if percent < 0 else str(percent)


def list_legend() -> tuple[tuple[int, str], ...]:
    """Return the steps of the colour scale: the lowest percentage of each, with its words."""
    steps = [(least, f"{least}-{end - 1} %") for (least, _), (end, _) in pairwise(STEPS)]
    return ((NEVER, ". never asked"), *steps, (STEPS[-1][0], f"{STEPS[-1][0]} % used up"))


def summarise(maps: Sequence[HeatMap]) -> tuple[str, ...]:
    """Return a sentence for each map, the most spent map first.

    A sentence has the largest share, the table and grouping, the number of groups asked about, and the groups with the
    largest shares.
    """
    asked = [one for one in maps if one.percent.max(initial=NEVER) >= 0]
    return tuple(_summarise(one) for one in sorted(asked, key=lambda one: -int(one.percent.max())))


def _summarise(one: HeatMap) -> str:
    worst, known = int(one.percent.max()), int((one.percent >= 0).sum())
    places = np.argwhere(one.percent == worst)
    named = [_name_cell(one, int(row), int(column)) for row, column in places[:_NAMED]]
    more = len(places) - len(named)
    several = "" if known == 1 else f", worst of {known:,}: {', '.join(named)}{f' and {more:,} more' if more else ''}"
    by = f" by {', '.join(one.keys)}" if one.keys else ", the whole table"
    return f"{worst:>4} %  {one.table}{by}{several}"


def _name_cell(one: HeatMap, row: int, column: int) -> str:
    return one.rows[row] if len(one.keys) < 2 else f"{one.rows[row]} / {one.columns[column]}"
