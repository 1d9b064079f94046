"""A plan as a JSON document: everything that EXPLAIN says, and all of the SQL. Depends on public inputs alone."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from planner.catalog.pace import ExpectedTime
from planner.explain.balances import QuestionBalance, SharedNoise
from planner.explain.cost_breakdown import (
    Together,
    common_noise,
    expected_losses,
    one_shot,
    separate_sums,
    sets_together,
    share_of_worst_case,
    with_one_step,
)
from planner.explain.guarantee import guarantee_json
from planner.explain.literal_labels import (
    Named,
    idle,
    letter_literals,
    letters,
    literal_of,
    order_formula,
    spell_formula,
    typed_letters,
    words,
)
from planner.explain.ranking import ranking_json
from planner.explain.render import bounding_notes
from planner.question.plan import APART, Plan
from planner.question.question import Offsets


def explain_json(plan: Plan, *, left: QuestionBalance | None, rules: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the plan as a JSON document, for `EXPLAIN (FORMAT JSON)`, REST and the command line.

    A functional's sensitivity, shift and tolerance are in integer steps, each worth `unit_size` of the analyst's unit;
    the shift of a test in blocks counts blocks. `compared` holds null for a mechanism that cannot meet the contract.
    Guarantee and parameters as for `explain_text`.
    """
    named = letter_literals(plan)
    texts = words(plan.question)
    document: dict[str, Any] = {
        "formula": spell_formula(plan.asked.formula, words(plan.asked), both="AND", either="OR"),
        "minimised": spell_formula(order_formula(plan.minimised, named), texts, both="AND", either="OR"),
        "exact": plan.minimised.exact,
        "letters": spell_formula(order_formula(plan.minimised, named), letters(named), both="and", either="or"),
        "typed_letters": spell_formula(plan.asked.formula, typed_letters(plan, named), both="and", either="or"),
        "literals": [_literal_json(plan, one) for one in named],
        "idle": [{"letter": letter, "text": text} for letter, text in idle(plan, named)],
        "prime_implicants": [[texts[literal_of(cut)] for cut in term] for term in plan.minimised.implicants],
        "prime_clauses": [[texts[literal_of(cut)] for cut in clause] for clause in plan.minimised.clauses],
        "functionals": [_functional_json(plan, index, named) for index in range(len(plan.question.functionals))],
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
            }
            for noise in common_noise(plan)
        ],
        "predicates": list(_predicates_json(plan, named)),
        "ranking": ranking_json(plan),
        "table": plan.question.table.name,
        "privacy_unit": plan.question.table.unit_text,
        "bounding": list(bounding_notes(plan)),
        "grouped_by": list(plan.question.keys.names),
        "keys": plan.question.keys.size,
        "mechanism": plan.calibration.mechanism,
        "worst_case_epsilon": plan.worst_case_epsilon,
        "separate_sums_epsilon": separate_sums(plan),
        "sets_together": [_set_json(plan, group) for group in sets_together(plan)],
        "compared": {name: plan.compared.get(name) for name in ("naive", "probe")},
        "apart_epsilon": plan.calibration.compared.get(APART),
        "one_shot_epsilon": one_shot(plan),
        "with_one_step_epsilon": with_one_step(plan),
        "expected_epsilon": [
            {"tolerances_short": tolerances, "epsilon": epsilon} for tolerances, epsilon in expected_losses(plan)
        ],
        "guarantee": guarantee_json(plan),
        "sql": plan.rewritten.sql,
        "dialect": plan.rewritten.dialect,
        "rollup": _rollup_json(plan),
        "warnings": list(plan.warnings),
    }
    if rules:
        document["rewritten_by"] = list(rules)
    if left is not None:
        document["data_version"] = left.version
        document["left"] = left.epsilon
        document["cost"] = None if left.payment is None else left.payment.document(asked=False)
        document["stored"] = None if left.stored is None else left.stored.sentence
        document["refused"] = left.refuses(plan)
        document["would_fit"] = list(left.would_fit)
        document["hint"] = left.hint or None
        document["short_groups"] = left.short_groups or None
        document["shared_noise"] = _noise_json(left.noise)
        document["question_id"] = left.question
        document["expected_time"] = None if left.time is None else _time_json(left.time)
        document["waits_for_approval"] = None if left.waiting is None else asdict(left.waiting)
    return document


def _predicates_json(plan: Plan, named: tuple[Named, ...]) -> Iterator[dict[str, Any]]:
    names = plan.asked.predicate_names
    for name, asked, one in zip(names, plan.asked.predicates, plan.predicates, strict=True):
        yield {
            "column": name,
            "formula": spell_formula(asked, words(plan.asked), both="AND", either="OR"),
            "letters": spell_formula(order_formula(one, named), letters(named), both="and", either="or"),
            "exact": one.exact,
        }


def _set_json(plan: Plan, group: Together) -> dict[str, Any]:
    return {
        "functionals": [plan.question.functionals[index].name for index in group.functionals],
        "parts": [float(part) for part in group.parts],
        "epsilon": group.epsilon,
    }


def _literal_json(plan: Plan, one: Named) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "text": one.text,
        "functional": plan.question.functionals[one.cut.functional].name,
        "may_err_between": [float(one.lower), float(one.upper)],
        "may_err_in": one.counted or None,
        "rows": one.rows,
        "rows_by": one.guard or None,
    }


def _functional_json(plan: Plan, index: int, named: tuple[Named, ...]) -> dict[str, Any]:
    functional, test = plan.question.functionals[index], plan.calibration.tests[index]
    common = plan.calibration.task.common
    moved = functional.sensitivity if common is None else common.sensitivities[common.readings[index][0][0]]
    scale = moved if test.block == 1 else 1
    return {
        "name": functional.name,
        "literals": [one.letter for one in named if one.cut.functional == index],
        "sensitivity": functional.sensitivity,
        "epsilon": test.epsilon,
        "share_of_worst_case": share_of_worst_case(plan, index),
        "fnr": test.fnr,
        "fpr": test.fpr,
        "shift": test.shift,
        "tie": float(test.tie),
        "tolerance": test.tolerance,
        "block": test.block,
        "looks": [float(look.rate) * scale for look in test.looks],
        "unit_size": float(functional.unit_size),
        "unit_range": None if functional.unit_range is None else list(functional.unit_range),
        "own_thresholds": _own_json(functional.offsets),
    }


def _own_json(offsets: Offsets | None) -> dict[str, Any] | None:
    """Return the key by which the thresholds of groups differ, and how many integer steps they lie above the least."""
    return None if offsets is None else {"key": offsets.key, "steps_above_least": list(offsets.steps)}


def _rollup_json(plan: Plan) -> dict[str, str] | None:
    """Return the rows that may be kept for many questions, and the SQL that answers from them.

    Null if nothing is kept.
    """
    rollup = plan.rewritten.rollup
    return None if rollup is None else {"build": rollup.build, "sql": rollup.sql}


def _time_json(time: ExpectedTime) -> dict[str, Any]:
    """Return an estimate of the source's time for it, in seconds, and if it is refused for that."""
    return {"seconds": time.seconds, "timeout_seconds": time.timeout_s, "refused": time.is_too_long}


def _noise_json(noise: SharedNoise | None) -> dict[str, Any] | None:
    """Return the number of questions whose noise would be read, and the highest cost for everybody and the analyst.

    Null for none.
    """
    if noise is None:
        return None
    return {"earlier_questions": noise.earlier, "fresh_at_most": noise.fresh, "own_at_most": noise.own}
