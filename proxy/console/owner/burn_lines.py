"""Burn-down charts as lines: what remains of each cap over time, for each analyst and for all analysts together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from accountant.charges import NANO
from accountant.reports.burn_down import EVERYBODY, BurnDown, BurnDownLine
from proxy.report.terminal import make_visible


@dataclass(frozen=True, slots=True)
class BurnRow:
    """One row of the table beside the chart, in epsilon as text. A cell is "" if that cap is not set."""

    name: str
    everybody: bool
    cap: str
    left: str
    unit_cap: str
    unit_left: str
    spent: str
    unit_spent: str


def list_burn_rows(found: BurnDown) -> Iterator[BurnRow]:
    """Yield the possible loss and the remaining budget, for all analysts together and for each analyst."""
    for line in found.lines:
        most = line.spent[-1].largest_key_nano if line.spent else 0
        unit = line.spent[-1].unit_nano if line.spent else 0
        yield BurnRow(
            name=_name_line(line),
            everybody=line.analyst == EVERYBODY,
            cap=f"{line.cap_nano / NANO:g}",
            left=_convert_to_epsilon(max(0, line.cap_nano - most)),
            unit_cap="" if line.unit_cap_nano is None else f"{line.unit_cap_nano / NANO:g}",
            unit_left="" if line.unit_cap_nano is None else _convert_to_epsilon(max(0, line.unit_cap_nano - unit)),
            spent=_convert_to_epsilon(most),
            unit_spent=_convert_to_epsilon(unit),
        )


def make_burn_document(found: BurnDown) -> dict[str, Any]:
    """Return the chart's data as JSON: for each line, its times and the remaining budget of a group and a unit."""
    begun = [line.spent[0].at for line in found.lines if line.spent][:1]  # everybody's, which is the first
    return {
        "windows": [moment.isoformat() for moment in found.windows],
        "lines": [
            {
                "name": _name_line(line),
                "at": [at.isoformat() for at in (*begun, *(one.at for one in line.spent))],
                "group": _list_remaining_budgets(line.cap_nano, [one.largest_key_nano for one in line.spent]),
                "unit": None
                if line.unit_cap_nano is None
                else _list_remaining_budgets(line.unit_cap_nano, [one.unit_nano for one in line.spent]),
            }
            for line in found.lines
            if line.spent
        ],
    }


def _list_remaining_budgets(cap: int, spent: Sequence[int]) -> list[float]:
    """Return the whole budget, followed by the remaining budget after each moment."""
    return [cap / NANO, *(max(0, cap - nano) / NANO for nano in spent)]


def _name_line(line: BurnDownLine) -> str:
    return "everybody together" if line.analyst == EVERYBODY else make_visible(line.analyst)


def _convert_to_epsilon(nanos: int) -> str:
    return f"{nanos / NANO:.4f}"
