"""The spent and remaining budget, as lines and as JSON: `keyhole budget`, `GET /v1/budget`, `keyhole.budget`.

Owners see exact losses, of all analysts together. Analysts see "at most" and "at least", which follow from the ledger
alone. An analyst's spent amounts are their own. The remaining amounts also count what others spent, as far as that is
public.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from accountant.charges import NANO
from accountant.errors import BalanceScope, LedgerError
from accountant.events.owner_events import Published
from accountant.reports.balance_report import BudgetReport, FamilyBalance
from planner.catalog.key_space import quote_in_row
from proxy.open_policy.accounts import read_label
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.report.heat_map import HeatMap, make_heat_maps
from proxy.report.limit_names import name_limit


@dataclass(frozen=True, slots=True)
class BudgetLine:
    """One row of the budget report, in epsilon as text.

    The row is about one of these: the privacy unit over all tables, a whole table, all groups by certain keys, or one
    group of a family. `limit` names the tightest balance, and `left` is what remains of it. `budget` is the cap with
    grants, or the analyst's own cap if that is lower. `spent` counts all answers that reveal something about the group,
    including answers about overlapping groups.
    """

    table: str
    unit: str
    scope: str
    family: str
    condition: str
    version: str
    budget: str
    spent: str
    left: str
    limit: str

    @property
    def subject(self) -> str:
        """Return in words what the row is about."""
        return f"each {self.unit}, over all questions" if self.scope == "unit" else self.family

    def list_summary(self) -> tuple[str | None, ...]:
        """Return the row's values in the order of the columns of `keyhole.budget`."""
        return self.subject, self.table or None, self.budget, self.spent, self.left, self.limit, self.scope

    def list_details(self) -> tuple[str, ...]:
        """Return the row's values in the order of the columns of `keyhole.budget_details`."""
        return (
            self.table,
            self.unit,
            self.scope,
            self.family,
            self.condition,
            self.version,
            self.budget,
            self.spent,
            self.left,
        )


def list_budget(service: Service, analyst: str | None) -> tuple[BudgetLine, ...]:
    """Return the rows of the budget summary, and one row for every group that was ever charged.

    If `analyst` is given, only that analyst's own charges are counted as spent.
    """
    report = service.report_balances(analyst)
    return (*_summarise(service, report), *_list_group_lines(report))


def list_summary(service: Service, analyst: str | None) -> tuple[BudgetLine, ...]:
    """Return the rows of the summary: the privacy unit, the tables with a cap, and each table's sets of keys."""
    return tuple(_summarise(service, service.report_balances(analyst)))


def _summarise(service: Service, report: BudgetReport) -> Iterator[BudgetLine]:
    yield from _list_unit_lines(service, report)
    yield from _list_table_lines(service, report)
    yield from _list_grouping_lines(report)


def _list_unit_lines(service: Service, report: BudgetReport) -> Iterator[BudgetLine]:
    if report.unit_cap_nano is None or report.unit_left_nano is None:
        return
    units = sorted({table.unit_text for table in service.catalog.tables if table.unit})
    yield BudgetLine(
        table="",
        unit="; ".join(units),
        scope="unit",
        family="over all questions",
        condition="",
        version="",
        budget=write_cap(report.unit_cap_nano),
        spent=write_epsilon(report.unit_spent_nano),
        left=write_epsilon(report.unit_left_nano),
        limit=name_limit(report.tightest_unit_scope),
    )


def _list_table_lines(service: Service, report: BudgetReport) -> Iterator[BudgetLine]:
    units = {table.ledger_root.table: table.unit_text for table in service.catalog.tables}
    for balance in report.tables:
        if balance.cap_nano is not None:
            yield BudgetLine(
                table=balance.table,
                unit=units.get(balance.table, ""),
                scope="table",
                family="the table, over all questions",
                condition="",
                version="",
                budget=write_cap(balance.cap_nano),
                spent=write_epsilon(balance.spent_nano),
                left=write_remaining_budget(balance.left_nano),
                limit=name_limit(BalanceScope.PER_TABLE),
            )


def _list_grouping_lines(report: BudgetReport) -> Iterator[BudgetLine]:
    """Yield a row for each table and set of keys: the most that any group has lost, and the least that any has left."""
    for (table, columns), found in _group_families(report.families).items():
        keys = ", ".join(read_label(label) for label in columns)
        tightest = min(found, key=lambda balance: min(balance.left_nano, default=balance.cap_nano))
        yield BudgetLine(
            table=table,
            unit=found[0].family.unit,
            scope="grouping",
            family=f"every group by {keys}" if keys else "the whole table",
            condition="",
            version="",
            budget=write_cap(found[0].cap_nano),
            spent=write_epsilon(max(max(balance.lost_nano, default=0) for balance in found)),
            left=write_epsilon(min(tightest.left_nano, default=tightest.cap_nano)),
            limit=name_limit(tightest.tightest_scope),
        )


def _group_families(families: Iterable[FamilyBalance]) -> dict[tuple[str, tuple[str, ...]], list[FamilyBalance]]:
    """Return balances by table and grouping columns. Filters and data versions are put together."""
    together: dict[tuple[str, tuple[str, ...]], list[FamilyBalance]] = {}
    for balance in families:
        together.setdefault((balance.family.table, balance.family.columns), []).append(balance)
    return together


def _list_group_lines(report: BudgetReport) -> Iterator[BudgetLine]:
    for balance in report.families:
        for key, spent, left in zip(balance.list_keys(), balance.lost_nano, balance.left_nano, strict=True):
            named = ", ".join(
                f"{read_label(label)} = {quote_in_row(value)}"
                for label, value in zip(balance.family.columns, key, strict=True)
            )
            yield BudgetLine(
                table=balance.family.table,
                unit=balance.family.unit,
                scope="group",
                family=named or "the whole table",
                condition=balance.family.filter,
                version=balance.family.version,
                budget=write_cap(balance.cap_nano),
                spent=write_epsilon(spent),
                left=write_epsilon(left),
                limit=name_limit(balance.tightest_scope),
            )


def make_maps(service: Service, analyst: str | None, *, table: str | None) -> tuple[HeatMap, ...]:
    """Return heat maps of the groups' used budget, for each table and set of grouping columns, or for one table."""
    families = [item for item in service.report_balances(analyst).families if table in (None, item.family.table)]
    return make_heat_maps(families)


def make_document(service: Service, analyst: str | None) -> dict[str, Any]:
    """Return the budget as a JSON document.

    The document has the policy's caps, and then the balances of the unit, of tables, and of each family of groups. Each
    balance has its cap.
    """
    report = service.report_balances(analyst)
    caps = service.catalog.budget
    return {
        "epsilon_per_predicate": caps.per_predicate,
        "delta_per_cell": caps.delta_per_cell,
        "epsilon_per_unit": caps.per_unit,
        "epsilon_per_query": caps.per_query,
        "unit": {
            "cap": None if report.unit_cap_nano is None else report.unit_cap_nano / NANO,
            "spent_at_most": report.unit_spent_nano / NANO,
            "left": None if report.unit_left_nano is None else report.unit_left_nano / NANO,
            "delta": caps.delta,
            "plain_sum": report.unit_loss.pure_nano / NANO,
        },
        "epsilon_per_table": caps.per_table,
        "tables": [
            {
                "table": table.table,
                "cap": None if table.cap_nano is None else table.cap_nano / NANO,
                "spent": table.spent_nano / NANO,
                "left": None if table.left_nano is None else table.left_nano / NANO,
            }
            for table in report.tables
        ],
        "windows": report.window_count,
        "families": [_make_family_document(balance) for balance in report.families],
        "analysts": [
            {
                "analyst": own.analyst,
                "questions": own.questions,
                "most_spent_on_a_group": own.most_spent_nano / NANO,
                "spent_on_a_unit": own.unit_spent_nano / NANO,
            }
            for own in report.analysts
        ],
        "open_reservations": len(report.open_reservations),
        "monitors": [
            {"monitor": run.monitor, "state": run.state.value, "worst_case_epsilon": run.charge.epsilon_nano / NANO}
            for run in report.running_monitors
        ],
    } | _make_published_document(service, analyst)


def _make_published_document(service: Service, analyst: str | None) -> dict[str, Any]:
    """Return the published files that no budget covers, for the owner's JSON document."""
    if analyst is not None:
        return {}
    return {
        "published": [
            {"table": one.table, "file": one.file, "method": one.method, "sha256": one.file_hash}
            for one in find_publications(service, analyst)
        ]
    }


def find_publications(service: Service, analyst: str | None) -> tuple[Published, ...]:
    """Return the published files that no budget covers, for the owner. Raise KH502 if the ledger is not available."""
    if analyst is not None:
        return ()
    try:
        return service.ledger.owner.find_publications()
    except LedgerError:
        raise report_unavailable_ledger() from None


def _make_family_document(balance: FamilyBalance) -> dict[str, Any]:
    return {
        "table": balance.family.table,
        "grouped_by": [read_label(label) for label in balance.family.columns],
        "filter": balance.family.filter,
        "data_version": balance.family.version,
        "groups": len(balance.spent_nano),
        "cap": balance.cap_nano / NANO,
        "spent_at_most": max(balance.lost_nano, default=0) / NANO,
        "left_at_least": min(balance.left_nano, default=0) / NANO,
    }


def write_epsilon(nanos: int) -> str:
    """Return an amount in epsilon as text."""
    return f"{nanos / NANO:.4f}"


def write_cap(nanos: int | None) -> str:
    """Return a cap in epsilon as text, or "no cap"."""
    return "no cap" if nanos is None else f"{Decimal(nanos) / NANO:f}"


def write_remaining_budget(nanos: int | None) -> str:
    """Return the remaining part of a cap in epsilon as text. Without a cap, return a text that says so."""
    return "no cap" if nanos is None else write_epsilon(nanos)
