"""The plan of `keyhole simulate`: what a question would cost under a policy in preparation. It needs no data or source.

Everything is planned as for a real question. Facts that only the source knows are replaced by assumptions, which are
reported.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from accountant.balances.grants import apply_grants
from accountant.cell_balance import NO_CELL_LOSSES, CellRoom
from accountant.charges import NANO
from accountant.limits import Limits
from accountant.unit_balance import UnitLoss, UnitRoom
from planner.bind.bind_question import bind_question
from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from planner.explain.cost_breakdown import list_expected_losses
from planner.explain.document import explain_json
from planner.explain.expected_bounding import ASSUMPTIONS, SPREAD_ASSUMPTIONS, ExpectedClipping, list_expected_clipping
from planner.explain.guarantee import write_guarantee
from planner.explain.literal_table import write_cost_lines, write_formula_lines, write_noise_lines
from planner.explain.rounded_numbers import write_ceiling, write_percent
from planner.plan import build as planning
from planner.plan.affordable_settings import CostLimit
from planner.policy.file import Policy
from planner.policy.simulated_catalog import SimulatedCatalog, simulate_catalog
from planner.question.plan import Plan
from planner.question.unit_groups import count_unit_groups
from planner.statements import settings
from proxy.open_policy.accounts import convert_to_nano, find_limits
from proxy.open_policy.pins import find_pins_path, read_pins
from proxy.open_policy.service import OWNER
from proxy.owner.fitting_questions import count_fitting_in_cell
from proxy.pipeline.advice.levers import find_offers
from proxy.pipeline.choose_test import plan_with_better_test
from proxy.pipeline.claim import count_groups_of_unit, count_losses_in_cell, find_worst_cell_curve, find_worst_curve
from proxy.pipeline.messages import Asked, read_bare_question
from proxy.sources.open import choose_dialect

MANY = (1, 5, 20)
"""For how many such questions the accuracy is found that the caps admit."""

_NOBODYS_VERIFIER = f"SCRAM-SHA-256$4096:AAAA${'A' * 43}=:{'A' * 43}="


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes that the owner declares.

    They are the numbers of privacy units, of values of a key column without a domain in the policy, and of rows.
    `groups` is the mean number of the question's groups that a unit is in.
    """

    units: int
    keys: int | None
    rows: int | None
    groups: float | None = None


@dataclass(frozen=True, slots=True)
class Affordable:
    """Settings with which `questions` questions like this one would fit into the caps, each setting alone.

    Empty if there are none.
    """

    questions: int
    settings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Simulation:
    """A plan on assumed data, and how its cost compares with the caps.

    `fitting_questions` is the number of such questions that fit on one data version. It is None if they cost nothing.
    `epsilon_per_unit` is the most that one question costs one privacy unit. `first_cap` names the cap that is reached
    first. `cap_section` names the section of the policy that sets it, or `keyhole` for a setting. `mean_rows` is the
    mean number of a unit's rows; None if no number of rows was declared.
    """

    plan: Plan
    sizes: Sizes
    assumptions: tuple[str, ...]
    epsilon_per_unit: float
    fitting_questions: int | None
    first_cap: str
    cap_section: str
    affordable: tuple[Affordable, ...]
    mean_rows: float | None
    cuts: tuple[ExpectedClipping, ...]

    @property
    def groups_of_one_unit(self) -> int:
        """The most groups of the question in which one privacy unit counts."""
        return count_unit_groups(self.plan.question)

    @property
    def groups_left_out(self) -> float | None:
        """The expected share of a unit's groups that do not count, or None if it is unknown.

        It is unknown if a unit may be in more groups than count and no mean number was declared.
        """
        question = self.plan.question
        counted, groups = self.groups_of_one_unit, self.sizes.groups
        if question.table.is_row_unit or question.keys.count_reachable_groups(question.table) <= counted:
            return 0.0
        return None if groups is None else max(0.0, 1.0 - counted / groups)

    @property
    def cap(self) -> str:
        """The policy's key, or the setting, for the cap that is reached first."""
        return f"{self.cap_section}.{self.first_cap}"

    def lines(self) -> tuple[str, ...]:
        """Return the simulation for a terminal."""
        return tuple(_write_lines(self))

    def make_document(self) -> dict[str, Any]:
        """Return the simulation as a JSON document; `plan` is the document of EXPLAIN."""
        sizes = self.sizes
        return {
            "units": sizes.units,
            "rows": sizes.rows,
            "groups": self.plan.question.keys.size,
            "units_per_group": _estimate_units_per_group(self),
            "epsilon_per_group": self.plan.worst_case_epsilon,
            "epsilon_per_unit": self.epsilon_per_unit,
            "groups_of_one_unit": self.groups_of_one_unit,
            "questions_that_fit": self.fitting_questions,
            "first_cap": self.first_cap,
            "affordable": [{"questions": one.questions, "settings": list(one.settings)} for one in self.affordable],
            "bounding": {
                "rows_per_unit": self.mean_rows,
                "cut": [
                    {"functional": cut.name, "spread": cut.spread_share, "together": cut.concentrated_share}
                    for cut in self.cuts
                ],
                "groups_left_out": self.groups_left_out,
                "assumptions": list(_list_assumptions(self)) if self.cuts else [],
            },
            "stand_ins": list(self.assumptions),
            "plan": explain_json(self.plan, left=None),
        }


def simulate(policy_path: Path, sql: str, *, given: Mapping[str, str | None], sizes: Sizes) -> Simulation:
    """Plan a question by the policy alone, and compare its cost with the caps.

    Guarantee: neither source nor ledger is opened. The pin file is read if there is one.

    Parameters:
        given: `keyhole.*` settings in force.

    Raises:
        SizeNeeded: a grouping column has no domain in the policy and `sizes.keys` is None.
        KeyholeError: as for the question itself, and KH001 to KH005, KH010 for the policy.
    """
    policy, pins = read_policy_and_pins(policy_path)
    stood_in = simulate_catalog(policy, sql, pins=pins, keys=sizes.keys)
    catalog = stood_in.catalog
    dialect = choose_dialect(policy.source)
    question = read_bare_question(sql, settings.read_catalog(catalog, given))
    asked = Asked(question=question, settings=given, parameters={}, analyst=OWNER, today=datetime.now(UTC).date())
    accuracy = settings.read_accuracy(given, catalog.defaults)
    made = bind_question(question, catalog, accuracy=accuracy, parameters={}, today=asked.today, is_utc=True)
    gradual = planning.plan_question(made, dialect=dialect)
    plan = plan_with_better_test(gradual, catalog, asked=asked, version="", dialect=dialect) or gradual
    return _compare_with_caps(plan, stood_in, asked, sizes)


def read_policy_and_pins(policy_path: Path) -> tuple[Policy, Pins]:
    """Return a policy, and its pins if there are any. Secrets may be missing. Raise KH001 to KH010."""
    policy = Policy.load(policy_path, environment=_StandInEnvironment(os.environ))
    return policy, _read_pins(policy)


class _StandInEnvironment(dict[str, str]):
    """An environment that gives a placeholder for each missing variable. Nothing here uses the secret or host."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, name: str) -> str:
        return "localhost" if name.endswith("HOST") else _NOBODYS_VERIFIER


def _read_pins(policy: Policy) -> Pins:
    try:
        return read_pins(find_pins_path(policy))
    except KeyholeError:
        return Pins()  # keyhole check says what is wrong with it


def _compare_with_caps(plan: Plan, stood_in: SimulatedCatalog, asked: Asked, sizes: Sizes) -> Simulation:
    policy_caps, table = find_limits(stood_in.catalog, OWNER), plan.question.table.ledger_root.table
    caps = apply_grants(policy_caps, (), table=table, analyst=None)
    own = _convert_to_nano(settings.read_max_epsilon(asked.settings))
    adding = count_groups_of_unit(plan) if plan.question.table.unit else 1
    fit, scope = _count_fitting(plan, caps, own, adding)
    mean_rows = None if sizes.rows is None else sizes.rows / sizes.units
    affordable = tuple(
        Affordable(
            questions=many,
            settings=tuple(
                offer.text
                for offer in find_offers(
                    asked,
                    stood_in.catalog,
                    plan,
                    CostLimit(_find_least_cap(caps, own, adding, plan, many) / NANO, plan.worst_case_epsilon),
                )
            ),
        )
        for many in MANY
        if fit is not None and many > fit
    )
    return Simulation(
        plan=plan,
        sizes=sizes,
        assumptions=stood_in.assumptions,
        epsilon_per_unit=adding * plan.worst_case_epsilon,
        fitting_questions=fit,
        first_cap=scope,
        cap_section=_name_section(scope, policy_caps, table),
        affordable=affordable,
        mean_rows=mean_rows,
        cuts=() if mean_rows is None else list_expected_clipping(plan, mean_rows=mean_rows, groups=sizes.groups),
    )


def _convert_to_nano(epsilon: float | None) -> int | None:
    return None if epsilon is None else int(epsilon * NANO)


def _name_section(scope: str, caps: Limits, table: str) -> str:
    if scope == "max_epsilon":
        return "keyhole"
    own = scope == "epsilon_per_table" and table in dict(caps.own_per_table_nano)
    return f"tables.{table}" if own else "budget"


def _list_caps(caps: Limits, adding: int, plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield every cap over many questions, in billionths of epsilon per group for the sum of their worst cases."""
    in_cell = count_losses_in_cell(plan)
    yield "epsilon_per_predicate", caps.per_predicate_nano // in_cell
    if plan.question.table.unit and caps.per_unit_nano is not None:
        yield "epsilon_per_unit", caps.per_unit_nano // adding
    if caps.per_table_nano is not None:
        yield "epsilon_per_table", caps.per_table_nano // max(adding, in_cell)


def _list_question_caps(caps: Limits, own: int | None, plan: Plan) -> Iterator[tuple[str, int]]:
    """Yield every cap on one question alone. `own` is the cap in its settings."""
    if own is not None:
        yield "max_epsilon", own // count_losses_in_cell(plan)
    if caps.per_query_nano is not None:
        yield "epsilon_per_query", caps.per_query_nano // count_losses_in_cell(plan)


def _find_least_cap(caps: Limits, own: int | None, adding: int, plan: Plan, questions: int) -> int:
    by_scope = {scope: cap // questions for scope, cap in _list_caps(caps, adding, plan)}
    if caps.delta is not None and caps.per_unit_nano is not None and find_worst_curve(plan) is not None:
        by_curve = UnitRoom(UnitLoss(0), caps.per_unit_nano, caps.delta).find_largest_by_curve(adding * questions)
        by_scope["epsilon_per_unit"] = max(by_scope["epsilon_per_unit"], by_curve)
    if caps.cell_delta is not None and find_worst_cell_curve(plan) is not None:
        room = CellRoom(NO_CELL_LOSSES, caps.per_predicate_nano, caps.cell_delta)
        by_curve = room.find_largest_by_curve(count_losses_in_cell(plan) * questions)
        by_scope["epsilon_per_predicate"] = max(by_scope["epsilon_per_predicate"], by_curve)
    shared = min(by_scope.values())
    return min([shared, *(cap for _, cap in _list_question_caps(caps, own, plan))])


def _count_fitting(plan: Plan, caps: Limits, own: int | None, adding: int) -> tuple[int | None, str]:
    cost = convert_to_nano(plan.worst_case_epsilon)
    if cost == 0:
        return None, ""
    scope, least = min(_list_question_caps(caps, own, plan), key=lambda cap: cap[1], default=("", cost))
    if cost > least:
        return 0, scope
    counts = {scope: least // cost for scope, least in _list_caps(caps, adding, plan)}
    if caps.delta is not None and caps.per_unit_nano is not None and "epsilon_per_unit" in counts:
        room = UnitRoom(UnitLoss(0), caps.per_unit_nano, caps.delta)
        by_curve = room.count_further_questions(adding * cost, find_worst_curve(plan))
        # by curve only where more fit so, whatever cap ends first
        counts["epsilon_per_unit"] = max(counts["epsilon_per_unit"], by_curve)
    if caps.cell_delta is not None:
        counts["epsilon_per_predicate"] = count_fitting_in_cell(plan, caps.per_predicate_nano, caps.cell_delta)
    scope = min(counts, key=lambda one: counts[one])
    return counts[scope], scope


def _estimate_units_per_group(made: Simulation) -> float:
    groups = max(1, made.plan.question.keys.size)
    return made.sizes.units * made.groups_of_one_unit / groups


def _write_lines(made: Simulation) -> Iterator[str]:
    plan, sizes = made.plan, made.sizes
    keys, table = plan.question.keys, plan.question.table
    unit = "row" if table.is_row_unit else f"({table.unit_text})"
    yield (
        f"Simulated: {keys.size:,} group{'' if keys.size == 1 else 's'} of {table.name} ({keys.description}), "
        f"{sizes.units:,} privacy units ({table.unit_text}); no data, no source"
    )
    yield from write_formula_lines(plan)
    yield from write_cost_lines(plan)
    yield from write_noise_lines(plan)
    if not plan.reads_data:
        yield f"  Guarantee: {write_guarantee(plan)}"
        return
    groups = made.groups_of_one_unit
    yield (
        f"  One question: at most {write_ceiling(plan.worst_case_epsilon)} epsilon per group, at most "
        f"{write_ceiling(made.epsilon_per_unit)} per {unit}, which is in at most {groups} "
        f"group{'' if groups == 1 else 's'}"
    )
    yield from _describe_fit(made)
    yield f"  A group has {_estimate_units_per_group(made):,.0f} units on average"
    yield from _describe_cuts(made, unit)
    if made.assumptions:
        yield f"  Assumed, since the policy does not list it: {'; '.join(made.assumptions)}"
    yield f"  Guarantee: {write_guarantee(plan)}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"


def _describe_fit(made: Simulation) -> Iterator[str]:
    if not made.fitting_questions:
        yield f"  The caps: it would be refused ({made.cap})"
    else:
        number = made.fitting_questions
        yield f"  The caps: {number:,} such question{'' if number == 1 else 's'} fit ({made.cap} is reached first)"
        far = list_expected_losses(made.plan)[-1:]
        if far and made.first_cap == "epsilon_per_predicate":
            yield (
                f"  A group {far[0][0]} tolerances short of its thresholds loses about {write_ceiling(far[0][1])} "
                "each time"
            )
    for one in made.affordable:
        what = "It fits" if one.questions == 1 else f"{one.questions} of them fit"
        text = "  or  ".join(one.settings) if one.settings else "no tolerance up to 100 % and no fnr up to 0.45"
        yield f"  {what} with {text}"


def _describe_cuts(made: Simulation, unit: str) -> Iterator[str]:
    if made.plan.question.table.is_row_unit:
        yield "  Bounding: nothing is cut, each row is its own unit"
    elif made.plan.question.per_unit is not None:
        yield "  Bounding: what it cuts of one unit's totals is not modelled"
    elif made.mean_rows is None:
        yield "  Bounding: give --rows to learn how much of the rows and totals it is likely to cut"
    else:
        cut = ", ".join(f"{_write_range(one)} of {one.name}" for one in made.cuts)
        yield f"  Bounding cuts about {cut}, if a {unit} has {made.mean_rows:,.1f} rows on average and"
        yield from (f"    - {assumption}" for assumption in _list_assumptions(made))
    yield from _describe_left_out_groups(made, unit)


def _list_assumptions(made: Simulation) -> tuple[str, ...]:
    return ASSUMPTIONS if made.sizes.groups is None else SPREAD_ASSUMPTIONS


def _describe_left_out_groups(made: Simulation, unit: str) -> Iterator[str]:
    """Yield lines about the groups of a unit that no answer counts, if it is in more than the bound allows."""
    counted, within_reach = (
        made.groups_of_one_unit,
        made.plan.question.keys.count_reachable_groups(made.plan.question.table),
    )
    if made.groups_left_out is None:
        yield f"  Groups: a {unit} counts in {counted:,} of {within_reach:,}; what it has in others is left out."
        yield "    How much that is, only you can tell: give --groups, in how many a unit is on average"
    elif made.groups_left_out:
        share = write_percent(made.groups_left_out, places=0)
        yield f"  Groups: a {unit} in {made.sizes.groups:g} groups counts in {counted:,}: {share} of it is left out"


def _write_range(cut: ExpectedClipping) -> str:
    least, most = write_percent(cut.spread_share, places=2), write_percent(cut.concentrated_share, places=2)
    return most if least == most else f"{least} to {most}"
