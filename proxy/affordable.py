"""What would still fit: the hint of every refusal for budget, found by really planning the cheaper question."""

from dataclasses import replace

from accountant.errors import LedgerError
from accountant.model import NANO
from planner import planning, settings
from planner.asking import ask
from planner.catalog import Catalog
from planner.explain import Left
from planner.plan import Plan
from planner.question import Accuracy, Question
from proxy.answers import Asked
from proxy.charging import Claim, groups_that_add_up
from proxy.service import Service, ledger_unavailable


def left(service: Service, claim: Claim, plan: Plan, asked: Asked) -> Left:
    """What the balances still admit for this question, and settings with which it would pass if it does not now."""
    try:
        nanos = service.ledger.left_for(claim.charge, claim.limits)
    except LedgerError:
        raise ledger_unavailable() from None
    least = nanos.epsilon_nano
    if nanos.unit_epsilon_nano is not None:
        least = min(least, nanos.unit_epsilon_nano // groups_that_add_up(plan))
    epsilon = max(least, 0) / NANO
    fits = claim.charge.epsilon_nano <= least
    return Left(
        version=claim.version, epsilon=epsilon, would_fit=() if fits else would_fit(service, asked, epsilon=epsilon)
    )


def would_fit(service: Service, asked: Asked, *, epsilon: float) -> tuple[str, ...]:
    """The smallest tolerance, and the smallest false-negative rate, with which the question costs at most `epsilon`."""
    return cheaper(asked, service.catalog, epsilon=epsilon)


def cheaper(asked: Asked, catalog: Catalog, *, epsilon: float) -> tuple[str, ...]:
    """`would_fit` without anything open: settings as text, each alone enough."""
    accuracy = settings.accuracy(asked.settings, catalog.defaults)

    def with_accuracy(changed: Accuracy) -> Question:
        return ask(
            asked.question,
            catalog,
            accuracy=changed,
            parameters=asked.parameters,
            today=asked.today,
            utc=asked.utc,
        )

    tolerance = planning.smallest_tolerance(
        lambda text: with_accuracy(replace(accuracy, tolerance=text)), epsilon=epsilon
    )
    fnr = planning.smallest_fnr(lambda rate: with_accuracy(replace(accuracy, fnr=rate)), epsilon=epsilon)
    found = (
        None if tolerance is None else f"keyhole.tolerance = '{tolerance}'",
        None if fnr is None else f"keyhole.fnr = {fnr}",
    )
    return tuple(setting for setting in found if setting is not None)


def hint(settings_that_fit: tuple[str, ...]) -> str:
    """The refusal's hint: statements that can be run as they stand."""
    if not settings_that_fit:
        return "No tolerance up to 100 % makes this question fit. Ask about fewer thresholds, or about other groups."
    return "  or  ".join(f"SET {setting};" for setting in settings_that_fit)
