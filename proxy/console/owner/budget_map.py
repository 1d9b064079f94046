"""The budget map: the spent share of each group's budget, for one table and some keys, under one filter or all."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from accountant.reports.balance_report import BudgetReport, FamilyBalance
from proxy.open_policy.accounts import read_label
from proxy.report.heat_map import DARK_FROM, NEVER, STEPS, HeatMap, make_heat_maps
from proxy.report.terminal import make_visible

EVERY_FILTER = "*"
MOST_DRAWN = 100  # rows and columns: a browser draws ten thousand cells in about a second; set by trying
MOST_ROWS = 40  # of the table beside the map: who reads cell by cell looks for the worst
MOST_COLUMNS = 16  # of the same, as many as a wide window shows


@dataclass(frozen=True, slots=True)
class MapRequest:
    """The map that a request asks for: its table, grouping columns, condition and search text.

    An empty or unknown part is replaced by the one with the highest loss.

    `find` is a text that the names of rows, or of columns, must contain.
    """

    table: str = ""
    keys: str = ""
    condition: str = EVERY_FILTER
    find: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One option of a select field in a form."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class BudgetMap:
    """The chosen map, and the options for other maps. `shown` is None if no question was ever asked about a group."""

    tables: tuple[Choice, ...] = ()
    groupings: tuple[Choice, ...] = ()
    conditions: tuple[Choice, ...] = ()
    find: str = ""
    found: bool = True
    shown: HeatMap | None = None

    def make_document(self) -> dict[str, Any]:
        """Return the map's data as JSON, for the page's script."""
        if self.shown is None:
            return {}
        drawn = self.shown
        return {
            "title": make_visible(drawn.title),
            "rows": [make_visible(name) for name in drawn.rows],
            "columns": [make_visible(name) for name in drawn.columns],
            "percent": drawn.percent.tolist(),
            "steps": [{"least": least, "fill": colour, "dark": least >= DARK_FROM} for least, colour in STEPS],
        }

    @property
    def table(self) -> HeatMap | None:
        """The chosen map as a table of text for the page."""
        return None if self.shown is None else self.shown.keep_most_spent(rows=MOST_ROWS, columns=MOST_COLUMNS)


def choose_map(report: BudgetReport, wish: MapRequest) -> BudgetMap:
    """Return the requested map.

    An unknown part of the request is replaced by the part with the highest loss.
    """
    families = report.families
    if not families:
        return BudgetMap(find=wish.find)
    table = _pick(
        wish.table, {one.family.table: _find_largest_share([one]) for one in reversed(_sort_by_largest_share(families))}
    )
    of_table = [one for one in families if one.family.table == table]
    keys = _pick(
        wish.keys, {_name_keys(one): _find_largest_share([one]) for one in reversed(_sort_by_largest_share(of_table))}
    )
    of_keys = [one for one in of_table if _name_keys(one) == keys]
    conditions = list(dict.fromkeys(one.family.filter for one in of_keys))
    condition = wish.condition if wish.condition in conditions else EVERY_FILTER
    chosen = [one for one in of_keys if condition in (EVERY_FILTER, one.family.filter)]
    (whole,) = make_heat_maps(chosen)
    narrowed = filter_map(whole, wish.find)
    return BudgetMap(
        tables=_list_choices(sorted({one.family.table for one in families}), table),
        groupings=_list_choices(sorted({_name_keys(one) for one in of_table}), keys, empty="the whole table"),
        conditions=(
            Choice(EVERY_FILTER, "whatever the filter", condition == EVERY_FILTER),
            *_list_choices(conditions, condition, empty="no filter"),
        ),
        find=wish.find,
        found=narrowed is not None,
        shown=(narrowed or whole).keep_most_spent(rows=MOST_DRAWN, columns=MOST_DRAWN),
    )


def filter_map(whole: HeatMap, text: str) -> HeatMap | None:
    """Return only those rows of the map whose names contain a text, or else those columns. Return None if none does."""
    wanted = text.strip().casefold()
    if not wanted:
        return whole
    down = [place for place, name in enumerate(whole.rows) if wanted in name.casefold()]
    if down:
        return replace(whole, rows=tuple(whole.rows[place] for place in down), percent=whole.percent[down])
    across = [place for place, name in enumerate(whole.columns) if wanted in name.casefold()]
    if not across:
        return None
    columns = tuple(whole.columns[place] for place in across)
    return replace(whole, columns=columns, percent=np.ascontiguousarray(whole.percent[:, across]))


def describe_share(percent: int) -> str:
    """Return the text of a cell: how much of the budget is spent."""
    return "never asked" if percent == NEVER else f"{percent} %"


def _name_keys(balance: FamilyBalance) -> str:
    return ", ".join(read_label(label) for label in balance.family.columns)


def _find_largest_share(families: Sequence[FamilyBalance]) -> float:
    return max((max(one.lost_nano, default=0) / max(one.cap_nano, 1) for one in families), default=0.0)


def _sort_by_largest_share(families: Sequence[FamilyBalance]) -> list[FamilyBalance]:
    return sorted(families, key=lambda one: -_find_largest_share([one]))


def _pick(wished: str, worst: dict[str, float]) -> str:
    """Return the requested option if it exists. Otherwise return the option with the highest loss."""
    return wished if wished in worst else max(worst, key=lambda name: worst[name])


def _list_choices(values: Sequence[str], chosen: str, *, empty: str = "") -> tuple[Choice, ...]:
    return tuple(Choice(value, make_visible(value) or empty, value == chosen) for value in values)
