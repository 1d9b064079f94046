"""The prices of the policy's monitors, and warnings about monitors that are refused, expensive or doubtful."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.explain.rounded_numbers import write_floor
from planner.lower.dialects.dialect import Dialect
from planner.monitors.affordable import find_exceeded_cap, find_fitting
from planner.monitors.build import plan_monitor
from planner.monitors.explain import describe_monitor
from planner.monitors.monitor_plan import MonitorPlan


@dataclass(frozen=True, slots=True)
class PricedMonitor:
    """A monitor's name with its plan, or with the refusal if it cannot be planned."""

    name: str
    plan: MonitorPlan | KeyholeError

    @property
    def line(self) -> str:
        """The monitor's price as one line for the owner."""
        if isinstance(self.plan, KeyholeError):
            return f"monitor {self.name}: refused ({self.plan.code})"
        return f"monitor {self.name}: {describe_monitor(self.plan)}"

    def make_document(self) -> dict[str, Any]:
        """Return the monitor as a JSON document."""
        if isinstance(self.plan, KeyholeError):
            return {"name": self.name, "refused": self.plan.code}
        return {
            "name": self.name,
            "table": self.plan.question.table.name,
            "groups": self.plan.keys.size,
            "windows": len(self.plan.windows.starts),
            "looks_per_window": self.plan.windows.looks,
            "early": self.plan.alerts_early,
            "epsilon_per_group_and_window": self.plan.epsilon_per_cell,
            "epsilon_per_unit": self.plan.epsilon_per_unit if self.plan.question.table.unit else None,
            "fingerprint": self.plan.fingerprint,
        }


def price_monitors(catalog: Catalog, *, dialect: Dialect) -> tuple[PricedMonitor, ...]:
    """Plan every monitor of the policy, and return them in the policy's order. The source is not used."""

    def plan(name: str) -> MonitorPlan | KeyholeError:
        monitor = catalog.find_monitor(name)
        assert monitor is not None
        try:
            return plan_monitor(catalog, monitor, dialect=dialect)
        except KeyholeError as error:
            return error

    return tuple(PricedMonitor(monitor.name, plan(monitor.name)) for monitor in catalog.monitors)


def describe_doubtful_monitors(catalog: Catalog, priced: tuple[PricedMonitor, ...]) -> Iterator[str]:
    """Yield warnings about monitors that the owner should see before starting them.

    The warnings are the same as EXPLAIN's. If no balance could ever cover a monitor, its warning has the reason and a
    remedy.
    """
    for one in priced:
        if isinstance(one.plan, KeyholeError):
            hint = f" {one.plan.hint}" if one.plan.hint else ""
            yield f"monitors.{one.name} is refused ({one.plan.code}: {one.plan.message}).{hint}"
            continue
        yield from (f"monitors.{one.name}: {warning}." for warning in one.plan.warnings)
        cap = find_exceeded_cap(one.plan, catalog.budget)
        if cap is not None:
            key, most = cap
            fitting = find_fitting(
                catalog,
                one.plan.monitor,
                dialect=one.plan.dialect,
                fits=lambda plan: find_exceeded_cap(plan, catalog.budget) is None,
            )
            amount = write_floor(one.plan.epsilon_per_unit if key.endswith("per_unit") else one.plan.epsilon_per_cell)
            settings = f": write {'  or  '.join(fitting)}" if fitting else ""
            yield f"monitors.{one.name} costs {amount} epsilon, above {key} ({most:g}){settings}."
