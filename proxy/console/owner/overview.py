"""The owner's first page: the state of the parts, waiting questions, and where least of the budget remains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accountant.charges import NANO
from accountant.reports.balance_report import BudgetReport
from proxy.report.heat_map import make_heat_maps, summarise
from proxy.report.terminal import make_visible

_SUMMARIES = 5  # maps whose worst groups are named: the others are on the page of the map


@dataclass(frozen=True, slots=True)
class BalanceBar:
    """The spent part of one cap: of a unit over all tables, or of all questions on one table."""

    name: str
    spent: str
    cap: str
    percent: int


@dataclass(frozen=True, slots=True)
class Overview:
    """The figures of the owner's first page: budgets, windows, open reservations, monitors and questions."""

    bars: tuple[BalanceBar, ...]
    worst_budget_lines: tuple[str, ...]
    windows: int
    since: str
    open_reservations: int
    monitors: tuple[tuple[str, str], ...]
    questions: int


def read_overview(report: BudgetReport) -> Overview:
    """Return the figures of the owner's first page from a budget report."""
    return Overview(
        bars=tuple(_list_bars(report)),
        worst_budget_lines=tuple(
            make_visible(line) for line in summarise(make_heat_maps(report.families))[:_SUMMARIES]
        ),
        windows=report.window_count,
        since="" if report.window_opened_at is None else report.window_opened_at.isoformat(sep=" ", timespec="seconds"),
        open_reservations=len(report.open_reservations),
        monitors=tuple((make_visible(run.monitor), run.state.value) for run in report.running_monitors),
        questions=sum(one.questions for one in report.analysts),
    )


def _list_bars(report: BudgetReport) -> Iterator[BalanceBar]:
    if report.unit_cap_nano is not None:
        yield _make_bar("a privacy unit, over all questions", report.unit_spent_nano, report.unit_cap_nano)
    for table in report.tables:
        if table.cap_nano is not None:
            yield _make_bar(f"all questions on {make_visible(table.table)}", table.spent_nano, table.cap_nano)
    for name, found in _find_worst_groups(report).items():
        yield _make_bar(f"the most expensive group of {make_visible(name)}", found[0], found[1])


def _find_worst_groups(report: BudgetReport) -> dict[str, tuple[int, int]]:
    """Return, for each table, the group that has spent most of its cap, and that cap."""
    worst: dict[str, tuple[int, int]] = {}
    for balance in report.families:
        lost = max(balance.lost_nano, default=0)
        before = worst.get(balance.family.table, (0, 1))
        if balance.family.table not in worst or lost * before[1] > before[0] * balance.cap_nano:
            worst[balance.family.table] = (lost, balance.cap_nano)
    return worst


def _make_bar(name: str, spent: int, cap: int) -> BalanceBar:
    percent = min(100, spent * 100 // max(cap, 1))
    return BalanceBar(name, f"{spent / NANO:.4f}", f"{cap / NANO:g}", max(percent, int(spent > 0)))


def describe_parts(known: Sequence[str], missing: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    """Return the names of the parts that Keyhole needs, each with True if it works."""
    return tuple((part, part not in missing) for part in known)
