"""The tables that `keyhole budget` prints in a terminal."""

from collections.abc import Iterator

from rich.table import Table as Printed

from accountant.events.owner_events import Published
from accountant.reports.balance_report import BudgetReport
from proxy.open_policy.accounts import read_label
from proxy.open_policy.service import Service
from proxy.report.budget import find_publications, write_cap, write_epsilon, write_remaining_budget
from proxy.report.limit_names import name_limit
from proxy.report.terminal import make_visible


def make_tables(service: Service, analyst: str | None) -> tuple[Printed, ...]:
    """Return the budget as tables for a terminal.

    The first table has, for each family of groups, the most spent and the least left. Tables on units and analysts
    follow.
    """
    report = service.report_balances(analyst)
    delta = service.catalog.budget.delta_per_cell
    but = "" if delta is None else f", with delta {delta:g}"
    groups = Printed(title=f"Groups, in epsilon{but}", title_justify="left")
    filtered = any(balance.family.filter for balance in report.families)
    for heading in ("table", "grouped by", *(["filter"] if filtered else []), "data"):
        groups.add_column(heading, overflow="fold")
    for heading in ("groups", "each may\nlose", "spent\nat most", "left at\nleast"):
        groups.add_column(heading, justify="right")
    for balance in report.families:
        groups.add_row(
            balance.family.table,
            ", ".join(read_label(label) for label in balance.family.columns) or "the whole table",
            *([balance.family.filter] if filtered else []),
            balance.family.version,
            f"{len(balance.spent_nano):,}",
            write_cap(balance.cap_nano),
            write_epsilon(max(balance.lost_nano, default=0)),
            write_epsilon(min(balance.left_nano, default=0)),
        )
    units = _make_unit_table(service, report, analyst=analyst)
    analysts = Printed(title="Analysts", title_justify="left")
    for heading in ("analyst", "questions", "most spent on a group", "spent on a unit"):
        analysts.add_column(heading, justify="left" if heading == "analyst" else "right")
    for own in report.analysts:
        analysts.add_row(
            own.analyst, str(own.questions), write_epsilon(own.most_spent_nano), write_epsilon(own.unit_spent_nano)
        )
    # where every row is a unit by itself there is nothing to add up over groups
    shown = [groups] if report.unit_cap_nano is None and not report.unit_spent_nano else [groups, units]
    if any(table.cap_nano is not None for table in report.tables):
        shown.append(_make_caps_table(report))
    if analyst is not None:
        shown.insert(1, _make_limits_table(report))
    shown.append(analysts)
    if report.open_reservations:
        waiting = Printed(title="Reserved and never committed: stays spent", title_justify="left")
        for heading in ("reserved at", "analyst", "table", "epsilon"):
            waiting.add_column(heading)
        for item in report.open_reservations:
            charge = item.charge
            when = item.reserved_at.isoformat(sep=" ", timespec="seconds")
            waiting.add_row(when, charge.analyst, charge.family.table, write_epsilon(charge.epsilon_nano))
        shown.append(waiting)
    if report.running_monitors:
        shown.append(_list_monitors(report))
    return (*shown, *_list_publications(find_publications(service, analyst)))


def _make_limits_table(report: BudgetReport) -> Printed:
    """Return the table of limits, which decide how much each group has left."""
    limits = Printed(title="What is left there is of", title_justify="left")
    for heading in ("table", "grouped by", "limit"):
        limits.add_column(heading, overflow="fold")
    for balance in report.families:
        keys = ", ".join(read_label(label) for label in balance.family.columns) or "the whole table"
        limits.add_row(balance.family.table, keys, name_limit(balance.tightest_scope))
    return limits


def _make_unit_table(service: Service, report: BudgetReport, *, analyst: str | None) -> Printed:
    delta = service.catalog.budget.delta
    but = "" if delta is None else f", with delta {delta:g}"
    units = Printed(title=f"Privacy unit, over all questions{but}", title_justify="left", min_width=34)
    for heading in ("may lose", "spent at most", "left at least"):
        units.add_column(heading, justify="right")
    row = [
        write_cap(report.unit_cap_nano),
        write_epsilon(report.unit_spent_nano),
        write_remaining_budget(report.unit_left_nano),
    ]
    if analyst is not None and report.unit_cap_nano is not None:
        units.add_column("limit", overflow="fold")
        row.append(name_limit(report.tightest_unit_scope))
    units.add_row(*row)
    return units


def _list_publications(published: tuple[Published, ...]) -> Iterator[Printed]:
    if not published:
        return
    listed = Printed(title="Published; no budget covers these: see keyhole odometer", title_justify="left")
    for heading in ("published at", "by", "table", "file", "method"):
        listed.add_column(heading)
    for one in published:
        when = one.at.isoformat(sep=" ", timespec="seconds")
        listed.add_row(when, make_visible(one.by), one.table, one.file, one.method)
    yield listed


def _list_monitors(report: BudgetReport) -> Printed:
    standing = Printed(title="Monitors: reserved for their whole horizon until they are ended", title_justify="left")
    for heading in ("started at", "monitor", "state", "table", "epsilon"):
        standing.add_column(heading)
    for run in report.running_monitors:
        when = run.started_at.isoformat(sep=" ", timespec="seconds")
        cost = write_epsilon(run.charge.epsilon_nano)
        standing.add_row(when, make_visible(run.monitor), run.state.value, run.charge.family.table, cost)
    return standing


def _make_caps_table(report: BudgetReport) -> Printed:
    whole = Printed(title="Tables, over all questions", title_justify="left")
    for heading in ("table", "may lose", "spent at most", "left at least"):
        whole.add_column(heading, justify="left" if heading == "table" else "right")
    for table in report.tables:
        whole.add_row(
            table.table,
            write_cap(table.cap_nano),
            write_epsilon(table.spent_nano),
            write_remaining_budget(table.left_nano),
        )
    return whole
