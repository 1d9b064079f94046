"""How analysts' remaining budgets change if the first analyst gets a cap of their own, or the last such cap is removed.

All analysts share a balance. If any analyst has a cap of their own, each analyst's remaining budget counts the others'
questions at their worst case (`Limits.separates_analysts`). So declaring a cap for one analyst changes the remaining
budget of the others.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import structlog

from accountant.charges import NANO
from accountant.errors import LedgerError
from accountant.ledger import Ledger
from accountant.reports.balance_report import BudgetReport
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.open_policy.accounts import find_limits, separates_analysts
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.service import open_ledger

log = structlog.get_logger("keyhole.reload")

_WHY = {
    True: "an analyst has a cap of their own now, so what each has left counts others' questions at their worst case",
    False: "no analyst has a cap of their own any more, so what each has left counts what others' questions came to",
}


def describe_changed_shares(ledger: Ledger, catalog: Catalog, *, were_apart: bool) -> Iterator[str]:
    """Yield a sentence about the changed remaining budgets of analysts, if caps of analysts were added or removed.

    `were_apart` says if analysts had separate balances before.

    Raises:
        LedgerError: if the ledger does not answer.
    """
    apart = separates_analysts(catalog)
    if apart == were_apart:
        return
    told = []
    for analyst in catalog.analysts:
        now = find_limits(catalog, analyst)
        reports = [
            ledger.report_balances(each, analyst=analyst.name)
            for each in (replace(now, separates_analysts=were_apart), now)
        ]
        before, after = map(_list_remaining_budgets, reports)
        told += [
            f"{analyst.name} {name} {after[name]}, not {before[name]}" for name in after if after[name] != before[name]
        ]
    yield f"{_WHY[apart]}: {'; '.join(told) or 'today that is as much as before'}"


def log_changed_shares(before: Policy, after: Policy, catalog: Catalog) -> None:
    """Log the sentence of `describe_changed_shares` after a reload. Log nothing if the ledger does not answer."""
    were_apart = any(
        one.epsilon_per_predicate is not None or one.epsilon_per_unit is not None for one in before.analysts.values()
    )
    if were_apart == separates_analysts(catalog):
        return
    with (
        suppress(KeyholeError, LedgerError),
        open_ledger(after, knowledge=find_all_dependencies(catalog)) as ledger,
    ):
        for why in describe_changed_shares(ledger, catalog, were_apart=were_apart):
            log.info("analysts have another share left", why=why)


def _list_remaining_budgets(report: BudgetReport) -> dict[str, str]:
    """Return by name, as text, the remaining budget of a privacy unit, and of the group with the least left."""
    groups = [min(one.left_nano) for one in report.families if one.left_nano]
    found = {"has left of a group": min(groups, default=None), "has left of a privacy unit": report.unit_left_nano}
    return {name: f"{amount / NANO:.4f}" for name, amount in found.items() if amount is not None}
