"""The data owner's decisions: parse typed grants, ids and changes of monitors, and check them with the policy."""

import re
from enum import StrEnum

from accountant.charges import NANO
from accountant.errors import BalanceScope, LedgerMisuse, MonitorStopped
from accountant.events.owner_events import Grant
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorRun
from planner.policy.file import Policy
from proxy.monitors import monitor_refusals
from proxy.owner.mistyped import Mistyped

MOST_GRANTED = 1000  # epsilon: more is no protection, and rather a slip of the finger
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Cap(StrEnum):
    """The kind of cap that a grant raises."""

    PREDICATE = "predicate"
    UNIT = "unit"
    TABLE = "table"


class MonitorChange(StrEnum):
    """The change that an owner makes to a started monitor."""

    PAUSE = "pause"
    RESUME = "resume"
    END = "end"


_OF_ANALYSTS = {Cap.PREDICATE: BalanceScope.ANALYST_PER_PREDICATE, Cap.UNIT: BalanceScope.ANALYST_PER_UNIT}
_SHARED = {
    Cap.PREDICATE: BalanceScope.PER_PREDICATE,
    Cap.UNIT: BalanceScope.PER_UNIT,
    Cap.TABLE: BalanceScope.PER_TABLE,
}


def read_fingerprint(text: str) -> str:
    """Parse the id of a question that an owner typed. Raise `Mistyped` for any other text."""
    question = text.strip().lower()
    if not _FINGERPRINT.fullmatch(question):
        raise Mistyped("id", "the 64 characters of the refusal's DETAIL")
    return question


def make_grant(policy: Policy, epsilon: float, *, cap: Cap, table: str | None, analyst: str | None) -> Grant:
    """Return the grant that raises a cap of the policy by `epsilon`. Raise `Mistyped` if there is no such cap."""
    if not 0 < epsilon <= MOST_GRANTED:
        raise Mistyped("epsilon", f"more than 0, at most {MOST_GRANTED}")
    if table is not None and table not in policy.private_tables:
        raise Mistyped("table", f'the policy has no private table "{table}"')
    if analyst is not None and analyst not in policy.analysts:
        raise Mistyped("analyst", f'the policy has no analyst "{analyst}"')
    scopes = _SHARED if analyst is None else _OF_ANALYSTS
    if cap not in scopes:
        raise Mistyped("analyst", "an analyst has no cap per table")
    if not _is_set(policy, cap, table=table, analyst=analyst):
        raise Mistyped("cap", "the policy sets no such cap, so there is nothing to raise")
    try:
        return Grant(
            scope=scopes[cap],
            amount_nano=int(epsilon * NANO),
            table=None if table is None else find_ledger_table(policy, table),
            analyst=analyst,
        )
    except LedgerMisuse as error:
        raise Mistyped("table", str(error)) from None


def _is_set(policy: Policy, cap: Cap, *, table: str | None, analyst: str | None) -> bool:
    """Return True if the policy has the cap that a grant would raise, for this table or analyst if one is named."""
    if (
        cap is Cap.TABLE
        and table is not None
        and policy.tables[find_ledger_table(policy, table)].epsilon_per_table is not None
    ):
        return True
    holder = policy.budget if analyst is None else policy.analysts[analyst]
    return getattr(holder, f"epsilon_per_{cap.value}") is not None


def find_ledger_table(policy: Policy, table: str) -> str:
    """Return the name under which the ledger stores questions about `table`."""
    while (leads_to := policy.tables[table].leads_to) is not None:
        table = leads_to
    return table


def find_newest_run(ledger: Ledger, name: str) -> MonitorRun:
    """Return the newest run of a monitor. Raise KH606 if it was never started."""
    run = ledger.monitors.find_newest_run(name)
    if run is None:
        raise monitor_refusals.refuse_never_started(name)
    return run


def change_monitor(ledger: Ledger, name: str, change: MonitorChange, *, by: str, why: str) -> None:
    """Pause, resume or end the newest run of a monitor, by an event in the ledger.

    Raise KH606 if it was never started, or if its state does not allow the change.
    """
    run = find_newest_run(ledger, name).run
    verbs = {
        MonitorChange.PAUSE: ledger.monitors.pause_run,
        MonitorChange.RESUME: ledger.monitors.resume_run,
        MonitorChange.END: ledger.monitors.end_run,
    }
    try:
        verbs[change](run, by=by, why=why)
    except MonitorStopped as stopped:
        raise monitor_refusals.refuse_wrong_state(name, stopped.state) from None
