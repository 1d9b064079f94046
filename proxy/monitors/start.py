"""The owner's actions on a monitor: start, pause and end. Each is a durable event in the ledger."""

from collections.abc import Iterator
from contextlib import contextmanager

from accountant.charges import MOST_NANO_PER_CHARGE, Charge, Wording
from accountant.errors import LedgerError, MonitorNotEnded, NotApproved, OverBudget
from accountant.limits import Limits
from accountant.monitor_model import MonitorRun, MonitorState, WindowAxis
from planner.catalog.catalog import RELEASED_BY, Analyst
from planner.errors import KeyholeError
from planner.extract.question_text import write_question_text
from planner.functionals.cells import find_cell_reach
from planner.monitors.affordable import find_fitting
from planner.monitors.guarantee import write_promise
from planner.monitors.monitor_plan import MonitorPlan
from planner.monitors.sole_question import find_sole_question
from proxy.monitors import monitor_refusals
from proxy.open_policy.accounts import convert_to_nano, find_table_limits, make_label
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import find_charged_keys
from proxy.pipeline.question_refusals import refuse_unapproved

_NOBODY = Analyst(name=RELEASED_BY, verifier="", token_hash=None, per_predicate=None, per_unit=None)


def make_charge(service: Service, plan: MonitorPlan) -> Charge:
    """Return the charge for starting a monitor: all keys and windows of its horizon. Raise KH302 and KH602."""
    family, cells = find_charged_keys(plan.question, version=service.find_version(plan.question.table))
    reach = find_cell_reach(plan.question)
    if reach.reaches_other_groups:
        raise monitor_refusals.refuse_chosen_groups(plan.monitor.name)
    most = reach.count_losses(1) * convert_to_nano(plan.epsilon_per_cell)
    if most > MOST_NANO_PER_CHARGE:
        raise monitor_refusals.refuse_too_expensive(plan)
    return Charge(
        question=plan.fingerprint,
        analyst=RELEASED_BY,
        family=family,
        cells=cells,
        epsilon_nano=most,
        unit_epsilon_nano=max(most, convert_to_nano(plan.epsilon_per_unit)) if plan.question.table.unit else 0,
        shared=True,
    )


def make_limits(service: Service, plan: MonitorPlan) -> Limits:
    """Return the caps that apply to starting a monitor: those over all analysts together."""
    return find_table_limits(plan.question.table, service.catalog, _NOBODY)


def check_startable(service: Service, plan: MonitorPlan) -> None:
    """Refuse a monitor that the balances do not cover now. Charge nothing.

    Raise KH301, KH302, KH305 or KH309 if a balance does not cover it, KH606 if it was started before, KH502 if the
    ledger is not available.
    """
    charge = make_charge(service, plan)
    with explain_ledger_refusals(service, plan):
        run = service.ledger.monitors.find_newest_run(plan.monitor.name)
        if run is not None and run.state is not MonitorState.ENDED:
            raise MonitorNotEnded(monitor=plan.monitor.name, run=run.run)
        short = service.ledger.find_shortage(charge, make_limits(service, plan))
        if short is not None:
            raise short


def start_monitor(service: Service, plan: MonitorPlan, *, by: str, why: str) -> MonitorRun:
    """Charge a monitor's whole horizon, durably. Its looks are made from then on.

    The ledger treats a monitor that clears at once as one window. A later run draws this window's noise again, and pays
    for it again.

    Raises:
        KeyholeError: KH301, KH302, KH305, KH308 or KH309 if it does not fit, KH606 if it was already started, and
            KH502. Nothing is written then.
    """
    charge = make_charge(service, plan)
    wording = Wording(
        text=_find_kept_text(service, plan),
        guarantee=write_promise(plan),
        fnr=_write_rate(plan.standing.fnr),
        fpr=_write_rate(plan.standing.fpr),
    )
    with explain_ledger_refusals(service, plan):
        return service.ledger.monitors.start_run(
            plan.monitor.name,
            charge,
            make_limits(service, plan),
            windows=None
            if plan.clears_at_once
            else WindowAxis(
                make_label(plan.window_column),
                overlap=_count_row_windows(plan),
                first=0 if plan.trend is None else -plan.trend.back,
            ),
            fingerprint=plan.fingerprint,
            wording=wording,
            by=by,
            why=why,
            is_restarted=plan.clears_at_once,
        )


def _count_row_windows(plan: MonitorPlan) -> int:
    """Return the largest number of consecutive windows in which one row is counted."""
    windows = plan.monitor.windows
    if plan.trend is not None:
        return plan.trend.back + 1
    if windows.sliding:
        return 2
    return 1 if windows.hop is None else -(-plan.windows.length // windows.hop)


def _find_kept_text(service: Service, plan: MonitorPlan) -> str | None:
    """Return the text of the monitor's question that the ledger may store by the policy, or None."""
    if service.keep_text == "none":
        return None
    question = find_sole_question(service.catalog, plan.monitor)
    return write_question_text(question, {}, keeps_constants=service.keep_text == "full")


def _find_fitting(service: Service, plan: MonitorPlan) -> tuple[str, ...]:
    """Return settings with which the balances would cover the monitor."""

    def fits(other: MonitorPlan) -> bool:
        return service.ledger.find_shortage(make_charge(service, other), make_limits(service, other)) is None

    try:
        return find_fitting(service.catalog, plan.monitor, dialect=plan.dialect, fits=fits)
    except (KeyholeError, LedgerError):
        return ()


def _write_rate(rate: float | None) -> str | None:
    return None if rate is None else str(rate)


@contextmanager
def explain_ledger_refusals(service: Service, plan: MonitorPlan) -> Iterator[None]:
    """Turn the ledger's errors in the block into refusals in the owner's words."""
    try:
        yield
    except OverBudget as over:
        refusal = monitor_refusals.refuse_over_budget(over, plan, fitting=_find_fitting(service, plan))
    except NotApproved as waiting:
        refusal = refuse_unapproved(waiting)
    except MonitorNotEnded as stands:
        refusal = monitor_refusals.refuse_already_started(stands.monitor)
    except LedgerError:
        refusal = report_unavailable_ledger()
    else:
        return
    raise refusal
