"""A plan as a JSON document: everything that EXPLAIN says, and all of the SQL. Depends on public inputs alone."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from planner.catalog.pace import ExpectedTime
from planner.explain.balances import QuestionBalance, SharedNoise
from planner.explain.cost_breakdown import (
    JointCost,
    compute_one_shot_cost,
    compute_one_step_cost,
    compute_worst_case_share,
    list_common_sums,
    list_expected_losses,
    list_joint_costs,
    sum_separate_costs,
)
from planner.explain.groups_read import count_groups_read
from planner.explain.guarantee import write_guarantee_json
from planner.explain.literal_labels import (
    NamedLiteral,
    identify_literal,
    letter_literals,
    list_idle_literals,
    map_letters,
    map_typed_letters,
    order_formula,
    spell_formula,
    spell_literals,
)
from planner.explain.ranking import write_ranking_json
from planner.explain.render import write_bounding_notes
from planner.question.plan import APART, Plan
from planner.question.question import Offsets


def explain_json(plan: Plan, *, left: QuestionBalance | None, rules: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the plan as a JSON document, for `EXPLAIN (FORMAT JSON)`, REST and the command line.

    A functional's sensitivity, shift and tolerance are in integer steps, each worth `unit_size` of the analyst's unit.
    The shift of a test in blocks counts blocks. `compared` holds null for a mechanism that cannot meet the contract.

    Guarantee and parameters as for `explain_text`.
    """
    named = letter_literals(plan)
    texts = spell_literals(plan.question)
    document: dict[str, Any] = {
        "formula": spell_formula(
            plan.asked_question.formula, spell_literals(plan.asked_question), both="AND", either="OR"
        ),
        "minimised": spell_formula(order_formula(plan.minimised, named), texts, both="AND", either="OR"),
        "exact": plan.minimised.is_minimal,
        "letters": spell_formula(order_formula(plan.minimised, named), map_letters(named), both="and", either="or"),
        "typed_letters": spell_formula(
            plan.asked_question.formula, map_typed_letters(plan, named), both="and", either="or"
        ),
        "literals": [_write_literal(plan, one) for one in named],
        "idle": [{"letter": letter, "text": text} for letter, text in list_idle_literals(plan, named)],
        "prime_implicants": [[texts[identify_literal(cut)] for cut in term] for term in plan.minimised.implicants],
        "prime_clauses": [[texts[identify_literal(cut)] for cut in clause] for clause in plan.minimised.clauses],
        "functionals": [_write_functional(plan, index, named) for index in range(len(plan.question.functionals))],
        "affected_together": [
            [plan.question.functionals[index].name for index, part in enumerate(exposure) if part]
            for exposure in plan.calibration.task.exposures
        ],
        "common_sums": [
            {
                "name": noise.sum.name,
                "sensitivity": noise.sum.sensitivity,
                "epsilon": noise.epsilon,
                "read_by": [plan.question.functionals[index].name for index in noise.functionals],
                "groups_read": None if (groups := count_groups_read(plan, place)) is None else asdict(groups),
            }
            for place, noise in enumerate(list_common_sums(plan))
        ],
        "predicates": list(_write_predicates(plan, named)),
        "ranking": write_ranking_json(plan),
        "table": plan.question.table.name,
        "privacy_unit": plan.question.table.unit_text,
        "bounding": list(write_bounding_notes(plan)),
        "grouped_by": list(plan.question.keys.names),
        "keys": plan.question.keys.size,
        "mechanism": plan.calibration.mechanism,
        "worst_case_epsilon": plan.worst_case_epsilon,
        "separate_sums_epsilon": sum_separate_costs(plan),
        "sets_together": [_write_joint_cost(plan, group) for group in list_joint_costs(plan)],
        "compared": {name: plan.compared.get(name) for name in ("naive", "probe")},
        "apart_epsilon": plan.calibration.compared.get(APART),
        "one_shot_epsilon": compute_one_shot_cost(plan),
        "with_one_step_epsilon": compute_one_step_cost(plan),
        "expected_epsilon": [
            {"tolerances_short": tolerances, "epsilon": epsilon} for tolerances, epsilon in list_expected_losses(plan)
        ],
        "guarantee": write_guarantee_json(plan),
        "sql": plan.rewritten.sql,
        "dialect": plan.rewritten.dialect,
        "rollup": _write_rollup(plan),
        "warnings": list(plan.warnings),
    }
    if rules:
        document["rewritten_by"] = list(rules)
    if left is not None:
        document["data_version"] = left.version
        document["left"] = left.epsilon
        document["cost"] = None if left.payment is None else left.payment.to_json(was_charged=False)
        document["stored"] = None if left.stored is None else left.stored.sentence
        document["refused"] = left.refuses(plan)
        document["would_fit"] = list(left.fitting_settings)
        document["hint"] = left.hint or None
        document["short_groups"] = left.short_groups or None
        document["shared_noise"] = _write_noise(left.noise)
        document["question_id"] = left.question
        document["expected_time"] = None if left.time is None else _write_time(left.time)
        document["waits_for_approval"] = None if left.waiting is None else asdict(left.waiting)
    return document


def _write_predicates(plan: Plan, named: tuple[NamedLiteral, ...]) -> Iterator[dict[str, Any]]:
    names = plan.asked_question.predicate_names
    for name, asked, one in zip(names, plan.asked_question.predicates, plan.predicates, strict=True):
        yield {
            "column": name,
            "formula": spell_formula(asked, spell_literals(plan.asked_question), both="AND", either="OR"),
            "letters": spell_formula(order_formula(one, named), map_letters(named), both="and", either="or"),
            "exact": one.is_minimal,
        }


def _write_joint_cost(plan: Plan, group: JointCost) -> dict[str, Any]:
    return {
        "functionals": [plan.question.functionals[index].name for index in group.functionals],
        "parts": [float(part) for part in group.parts],
        "epsilon": group.epsilon,
    }


def _write_literal(plan: Plan, one: NamedLiteral) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "text": one.text,
        "functional": plan.question.functionals[one.cut.functional].name,
        "may_err_between": [float(one.lower), float(one.upper)],
        "may_err_in": one.counted_unit or None,
        "rows": one.rows,
        "rows_by": one.guard or None,
    }


def _write_functional(plan: Plan, index: int, named: tuple[NamedLiteral, ...]) -> dict[str, Any]:
    functional, test = plan.question.functionals[index], plan.calibration.tests[index]
    common = plan.calibration.task.common
    moved = functional.sensitivity if common is None else common.sensitivities[common.readings[index][0][0]]
    scale = moved if test.block == 1 else 1
    return {
        "name": functional.name,
        "literals": [one.letter for one in named if one.cut.functional == index],
        "sensitivity": functional.sensitivity,
        "epsilon": test.epsilon,
        "share_of_worst_case": compute_worst_case_share(plan, index),
        "fnr": test.fnr,
        "fpr": test.fpr,
        "shift": test.shift,
        "tie": float(test.tie),
        "tolerance": test.tolerance,
        "block": test.block,
        "looks": [float(look.rate) * scale for look in test.looks],
        "unit_size": float(functional.unit_size),
        "unit_range": None if functional.unit_range is None else list(functional.unit_range),
        "own_thresholds": _write_offsets(functional.offsets),
    }


def _write_offsets(offsets: Offsets | None) -> dict[str, Any] | None:
    """Return the key by which thresholds of groups differ, and the integer steps by which each exceeds the least."""
    return None if offsets is None else {"key": offsets.key, "steps_above_least": list(offsets.steps)}


def _write_rollup(plan: Plan) -> dict[str, str] | None:
    """Return the rows that may be kept for many questions, and the SQL that answers from them, as JSON.

    Return None if nothing is kept.
    """
    rollup = plan.rewritten.rollup
    return None if rollup is None else {"build": rollup.build, "sql": rollup.sql}


def _write_time(time: ExpectedTime) -> dict[str, Any]:
    """Return the expected time at the source in seconds, and whether the question is refused for it, as JSON."""
    return {"seconds": time.seconds, "timeout_seconds": time.timeout_s, "refused": time.is_too_long}


def _write_noise(noise: SharedNoise | None) -> dict[str, Any] | None:
    """Return the number of questions whose noise would be read, and its highest cost to everybody and to the analyst.

    Return None if there is no such noise.
    """
    if noise is None:
        return None
    return {
        "earlier_questions": noise.earlier_questions,
        "fresh_at_most": noise.shared_cost,
        "own_at_most": noise.own_cost,
    }
