"""The plan of `keyhole simulate --monitor`: a monitor's cost, and when groups would alert. It needs no data."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.catalog.fault import suggest_nearest_name
from planner.errors import KeyholeError
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_percent
from planner.monitors.affordable import find_exceeded_cap, find_fitting
from planner.monitors.build import plan_monitor
from planner.monitors.chances import Course, Courses, list_courses
from planner.monitors.explain import explain_monitor, make_monitor_json
from planner.monitors.monitor_plan import MonitorPlan
from planner.policy.simulated_catalog import simulate_catalog
from proxy.cli.simulate import Sizes, read_policy_and_pins
from proxy.sources.open import choose_dialect


@dataclass(frozen=True, slots=True)
class MonitorSimulation:
    """A monitor's plan on assumed data: expected values in a window, and how its cost compares with the caps.

    `cap` is the first cap that it exceeds, with its size. `fitting_settings` are settings of its section with which it
    would fit.
    """

    plan: MonitorPlan
    sizes: Sizes
    assumptions: tuple[str, ...]
    courses: tuple[Courses, ...]
    cap: tuple[str, float] | None
    fitting_settings: tuple[str, ...]

    def lines(self) -> tuple[str, ...]:
        """Return the simulation for a terminal."""
        return tuple(_write_lines(self))

    def make_document(self) -> dict[str, Any]:
        """Return the simulation as a JSON document; `plan` is the document of EXPLAIN."""
        return {
            "units": self.sizes.units,
            "groups": self.plan.keys.size,
            "units_per_group_and_window": _estimate_units_per_cell(self),
            "epsilon_per_group_and_window": self.plan.epsilon_per_cell,
            "epsilon_per_unit": self.plan.epsilon_per_unit if self.plan.question.table.unit else None,
            "exceeded_cap": None if self.cap is None else {"cap": self.cap[0], "epsilon": self.cap[1]},
            "would_fit": list(self.fitting_settings),
            "thresholds": [
                {
                    "text": one.text,
                    "epsilon": one.epsilon,
                    "together": one.watches_whole,
                    **({} if one.earlier_value is None else {"earlier_windows": float(one.earlier_value)}),
                    "ladder_epsilon": one.ladder_epsilon,
                    "courses": [_make_course_document(course) for course in one.courses],
                }
                for one in self.courses
            ],
            "stand_ins": list(self.assumptions),
            "plan": make_monitor_json(self.plan),
        }


def _make_course_document(course: Course) -> dict[str, Any]:
    return {
        "value": float(course.value),
        "beyond": course.tolerances_away,
        "crosses": course.crossing_look,
        "at_crossing": course.at_crossing,
        "by_close": course.by_close,
        "late": course.mean_delay,
        "ladder_epsilon": course.ladder_epsilon,
    }


def simulate_monitor(policy_path: Path, name: str, *, sizes: Sizes) -> MonitorSimulation:
    """Plan a monitor by the policy alone, and compare its cost with the caps.

    Guarantee: neither source nor ledger is opened. The pin file is read if there is one.

    Raises:
        SizeNeeded: a grouping column has no domain in the policy and `sizes.keys` is None.
        KeyholeError: as planning a monitor, KH002 for a monitor's name that the policy lacks, and KH001 to KH010 and
            KH601, KH603 for the policy.
    """
    policy, pins = read_policy_and_pins(policy_path)
    section = policy.monitors.get(name)
    if section is None:
        raise KeyholeError(
            "KH002", f"{policy_path.name} has no monitor {name}", hint=suggest_nearest_name(name, policy.monitors)
        )
    stood_in = simulate_catalog(policy, section.sql, pins=pins, keys=sizes.keys)
    catalog = stood_in.catalog
    dialect = choose_dialect(policy.source)
    monitor = catalog.find_monitor(name)
    assert monitor is not None
    plan = plan_monitor(catalog, monitor, dialect=dialect)
    cap = find_exceeded_cap(plan, catalog.budget)
    fitting: tuple[str, ...] = ()
    if cap is not None:
        budget = catalog.budget
        fitting = find_fitting(
            catalog, monitor, dialect=dialect, fits=lambda one: find_exceeded_cap(one, budget) is None
        )
    return MonitorSimulation(
        plan=plan,
        sizes=sizes,
        assumptions=stood_in.assumptions,
        courses=list_courses(plan),
        cap=cap,
        fitting_settings=fitting,
    )


def _estimate_units_per_cell(made: MonitorSimulation) -> float:
    return made.sizes.units / made.plan.question.keys.size


def _write_lines(made: MonitorSimulation) -> Iterator[str]:
    heading, *others = explain_monitor(made.plan)
    yield heading.replace("nothing is spent by EXPLAIN", f"{made.sizes.units:,} privacy units; no data, no source")
    yield from others[: next(place for place, line in enumerate(others) if line.startswith("  SQL sent"))]
    yield from _describe_caps(made)
    yield f"  A group has {_estimate_units_per_cell(made):,.1f} units a window, if each is in one"
    for one in made.courses:
        yield from _describe_courses(one)
    if made.assumptions:
        yield f"  Assumed, since the policy does not list it: {'; '.join(made.assumptions)}"


def _describe_caps(made: MonitorSimulation) -> Iterator[str]:
    if made.cap is None:
        yield "  The caps: it fits, where nothing else has been paid for"
        return
    key, cap = made.cap
    yield f"  The caps: it would be refused ({key} = {cap:g})"
    settings = (
        "  or  ".join(made.fitting_settings) if made.fitting_settings else "no tolerance up to 100 % and no fewer looks"
    )
    yield f"  It fits with {settings}"


def _describe_courses(made: Courses) -> Iterator[str]:
    others = ", which decides whether the whole condition holds" if made.watches_whole else ""
    if made.earlier_value is not None:
        others += f", after windows of {spell_number(made.earlier_value)} each"
    yield f"  Groups that grow evenly through a window, at {made.text}{others}:"
    rows: list[tuple[str, ...]] = [
        ("up to", "above it from", "alerted by then", "alerted by the close", "late on average", "with a ladder")
    ]
    rows += [_write_course(course) for course in made.courses]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "    " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if made.ladder_epsilon is not None:
        far = min(made.courses, key=lambda course: course.tolerances_away).ladder_epsilon
        assert far is not None
        what = "The alarm on all of it" if made.watches_whole else "An alarm"
        yield (
            f"    {what} costs {write_ceiling(made.epsilon)}; rough alarms before sharp ones (progressive = true) "
            "reserve "
            f"{write_ceiling(made.ladder_epsilon)} and cost a group far below the threshold about {write_ceiling(far)}"
        )


def _write_course(course: Course) -> tuple[str, ...]:
    never = "-"
    return (
        spell_number(course.value),
        never if course.crossing_look is None else f"look {course.crossing_look:,}",
        never if course.at_crossing is None else write_percent(course.at_crossing, places=2),
        write_percent(course.by_close, places=2),
        never if course.mean_delay is None else f"{course.mean_delay:.2f} looks",
        never if course.ladder_epsilon is None else f"epsilon {write_ceiling(course.ladder_epsilon)}",
    )
