"""A plan in words: EXPLAIN as text and JSON, and the guarantee of an answer. Depends on public inputs alone."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE
from planner.explain.approval import Waiting
from planner.explain.cost_breakdown import (
    expected_losses,
    one_shot,
    separate_sums,
    sets_together,
    share_of_worst_case,
    with_one_step,
)
from planner.explain.literal_labels import (
    Named,
    idle,
    lettered,
    letters,
    literal_of,
    plain,
    shown,
    spelled,
    typed_letters,
    words,
)
from planner.explain.literal_table import cost_lines, formula_lines, noise_lines
from planner.explain.rounding import at_least, at_most, percent
from planner.functionals.unit_rows import unit_rows_text
from planner.question.model import Offsets, aggregate_text
from planner.question.plan import Plan

FIXED_BEFORE = "the rates hold for a question that was fixed before that noise was drawn"
SQL_LINES = 14  # of EXPLAIN's one screen; the rest is in JSON


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """That a question is decided on noise which `earlier` questions drew or read.

    `fresh` is the most that it costs the shared balances, `own` what it reads in all and its analyst's own balances are
    charged at most, both per key; `fits` whether the balances admit that.
    """

    earlier: int
    fresh: float
    own: float
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Left:
    """What the ledger says about a question before it is asked.

    `version` is the public data version. `epsilon` is the largest worst case per key that every balance still admits.
    `would_fit` are settings with which the question would pass where it does not: "keyhole.tolerance = '13%'".
    `noise` is there where earlier questions' noise would be read. `question` is the question's id in the ledger, and
    `waiting` is there where the owner has to approve it first.
    """

    version: str
    epsilon: float
    would_fit: tuple[str, ...] = ()
    noise: SharedNoise | None = None
    question: str = ""
    waiting: Waiting | None = None


def explain_text(plan: Plan, *, left: Left | None) -> tuple[str, ...]:
    """The plan as lines for EXPLAIN.

    Guarantee: a function of plan and balances; nothing in it depends on data, and nothing is spent.

    Parameters:
        left: the balances of the question's keys, None where there is no ledger to ask.
    """
    return tuple(_lines(plan, left))


def explain_json(plan: Plan, *, left: Left | None) -> dict[str, Any]:
    """The plan as a JSON document, for `EXPLAIN (FORMAT JSON)`, REST and the command line.

    A functional's sensitivity, shift and tolerance are in integer steps, each worth `unit_size` of the analyst's unit;
    the shift of a test in blocks counts blocks. `compared` holds null for a mechanism that cannot meet the contract.
    Guarantee and parameters as for `explain_text`.
    """
    named = lettered(plan)
    texts = words(plan.question)
    document: dict[str, Any] = {
        "formula": spelled(plan.asked.formula, words(plan.asked), both="AND", either="OR"),
        "minimised": spelled(shown(plan, named), texts, both="AND", either="OR"),
        "exact": plan.minimised.exact,
        "letters": spelled(shown(plan, named), letters(named), both="and", either="or"),
        "typed_letters": spelled(plan.asked.formula, typed_letters(plan, named), both="and", either="or"),
        "literals": [_literal_json(plan, one) for one in named],
        "idle": [{"letter": letter, "text": text} for letter, text in idle(plan, named)],
        "prime_implicants": [[texts[literal_of(cut)] for cut in term] for term in plan.minimised.implicants],
        "prime_clauses": [[texts[literal_of(cut)] for cut in clause] for clause in plan.minimised.clauses],
        "functionals": [_functional_json(plan, index, named) for index in range(len(plan.question.functionals))],
        "affected_together": [
            [plan.question.functionals[index].name for index, part in enumerate(exposure) if part]
            for exposure in plan.calibration.task.exposures
        ],
        "table": plan.question.table.name,
        "privacy_unit": plan.question.table.unit_text,
        "bounding": list(_bounding(plan)),
        "grouped_by": list(plan.question.keys.names),
        "keys": plan.question.keys.size,
        "mechanism": plan.calibration.mechanism,
        "worst_case_epsilon": plan.worst_case_epsilon,
        "separate_sums_epsilon": separate_sums(plan),
        "sets_together": [
            {
                "functionals": [plan.question.functionals[index].name for index in group.functionals],
                "parts": [float(part) for part in group.parts],
                "epsilon": group.epsilon,
            }
            for group in sets_together(plan)
        ],
        "compared": {name: plan.compared.get(name) for name in ("naive", "probe")},
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
    if left is not None:
        document["data_version"] = left.version
        document["left"] = left.epsilon
        document["refused"] = _refused(plan, left)
        document["would_fit"] = list(left.would_fit)
        document["shared_noise"] = _noise_json(left.noise)
        document["question_id"] = left.question
        document["waits_for_approval"] = None if left.waiting is None else asdict(left.waiting)
    return document


def guarantee_sentence(plan: Plan) -> str:
    """What an answer promises, in one sentence for the NOTICE; rates and loss are upper bounds."""
    if not plan.question.functionals:
        return "the condition does not depend on data: the answer is exact and nothing was spent."
    accuracy, calibration = plan.question.accuracy, plan.calibration
    loss = f"at most {plain(Decimal(at_most(plan.worst_case_epsilon)))} epsilon"
    if calibration.whole_question:
        missed = _missed_past_the_limit(plan)
        loss += " for all groups together"
    elif calibration.fnr is None:
        missed = "a group near a threshold may be missed, without a bound"
    else:
        missed = f"a group that truly qualifies is missed at most {percent(accuracy.fnr)} of the time"
    if EMPTY_PROMISE_NOTE in calibration.notes:
        wrong = "within the tolerance every group qualifies, so any group may be returned"
    elif calibration.fpr is None:
        wrong = "a group that does not may be returned, without a bound"
    else:
        slack, rate = _slack(accuracy.tolerance), percent(accuracy.fpr)
        wrong = f"one that fails even with {slack} is returned at most {rate} of the time"
    promise = f"{missed}; {wrong}; {loss}."
    if calibration.deniable:
        promise = f"{promise} It may be denied, which is paid for; the rates are those of being answered wrongly."
    table = plan.question.table
    if table.row_unit:
        return promise
    unit = " or ".join(table.unit)
    bounded = f"This holds for aggregates after bounding each ({table.unit_text})"
    return f"{promise} {bounded}; rows without {unit} are left out."


def shared_noise_sentence(noise: SharedNoise) -> str:
    """Who shares noise with an answer, what it costs everybody, and when its rates hold."""
    questions = "1 earlier question" if noise.earlier == 1 else f"{noise.earlier} earlier questions"
    own = f"{plain(Decimal(at_most(noise.own)))} epsilon"
    fresh = f"at most {plain(Decimal(at_most(noise.fresh)))} of {own} is new to the shared budget"
    if noise.fresh == 0:
        fresh = f"nothing is new to the shared budget, and at most {own} counts towards a cap of your own"
    return f"same noise as {questions}: {fresh}; {FIXED_BEFORE}."


def _missed_past_the_limit(plan: Plan) -> str:
    """What a sparse vector promises of the groups that qualify."""
    limit = plan.calibration.task.most_positives
    groups = "1 group is" if limit == 1 else f"{limit} groups are"
    rate = percent(plan.question.accuracy.fnr)
    return (
        f"a group that truly qualifies is tested and missed at most {rate} of the time, "
        f"but at most {groups} returned, and any that come later in the order of the keys are missed, without a bound"
    )


def guarantee_json(plan: Plan) -> dict[str, Any]:
    """The guarantee for a program: sentence, rates (None: no bound), tolerance by functional in its unit, loss, and the
    most groups that are returned (None: no limit)."""
    calibration = plan.calibration
    accuracy = plan.question.accuracy
    return {
        "sentence": guarantee_sentence(plan),
        "fnr": None if calibration.fnr is None else accuracy.fnr,
        "fpr": None if calibration.fpr is None or EMPTY_PROMISE_NOTE in calibration.notes else accuracy.fpr,
        "tolerance": _tolerances(plan),
        "epsilon_at_most": plan.worst_case_epsilon,
        "most_groups": calibration.task.most_positives if calibration.whole_question else None,
    }


def _tolerances(plan: Plan) -> dict[str, float]:
    """By aggregate, the narrowest band that its literals allow, in the analyst's unit."""
    narrowest: dict[str, float] = {}
    for functional, test in zip(plan.question.functionals, plan.calibration.tests, strict=True):
        name = aggregate_text(functional)
        width = float(functional.unit_size * test.tolerance / functional.rows)
        narrowest[name] = min(width, narrowest.get(name, width))
    return narrowest


def _lines(plan: Plan, left: Left | None) -> Iterator[str]:
    yield _heading(plan, left)
    yield from formula_lines(plan)
    yield from cost_lines(plan)
    if left is not None:
        refused = _refused(plan, left)
        verdict = "   -> this question would be refused" if refused else ""
        yield f"  Left for these groups: {at_least(left.epsilon)}{verdict}"
        if left.noise is not None:
            yield f"  Reuse: {shared_noise_sentence(left.noise)}"
        if refused and left.would_fit:
            yield f"  Would fit: {', or '.join(left.would_fit)}"
        if left.waiting is not None:
            yield from left.waiting.lines()
    yield from noise_lines(plan)
    for note in _bounding(plan):
        yield f"  Bounding: {note}"
    yield f"  Guarantee: {guarantee_sentence(plan)}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"
    if plan.rewritten.rollup is not None:
        keys = ", ".join(plan.question.keys.names)
        yield f"  Rollup: bounding is done once per data version for all questions by ({keys}), where one can be kept"
    if plan.rewritten.sql:
        yield f"  SQL sent to the source ({plan.rewritten.dialect}):"
        lines = plan.rewritten.sql.splitlines()
        shown_lines = lines if len(lines) <= SQL_LINES else lines[: SQL_LINES - 1]
        yield from (f"    {line}" for line in shown_lines)
        if len(lines) > len(shown_lines):
            yield f"    ... {len(lines) - len(shown_lines)} more lines: EXPLAIN (FORMAT JSON)"
    else:
        yield "  Nothing is sent to the source."


def _heading(plan: Plan, left: Left | None) -> str:
    keys = plan.question.keys
    version = f", data version {left.version}" if left else ""
    grouped = f"{plan.question.table.name} ({', '.join(keys.names)})"
    return f"Question over {keys.size} groups of {grouped}{version}, nothing is spent by EXPLAIN"


def _bounding(plan: Plan) -> Iterator[str]:
    """What happens to a privacy unit's rows before anything is summed."""
    per_unit = plan.question.per_unit
    table = plan.question.table if per_unit is None else per_unit.table
    functionals = plan.question.functionals
    if per_unit is not None:
        yield from unit_rows_text(plan.question, per_unit)
        functionals = tuple(total.functional for total in per_unit.totals)
    for name in dict.fromkeys(name for functional in functionals for name in functional.summed):
        bounds = table.column(name).bounds
        if bounds:
            yield f"values of {name} are clipped to {plain(bounds[0])} .. {plain(bounds[1])}"
    if table.row_unit:
        return
    groups = f"{table.groups_per_unit} group{'' if table.groups_per_unit == 1 else 's'}"
    yield f"one ({table.unit_text}) is in at most {groups}; rows without {' or '.join(table.unit)} are left out"
    if table.row_cap:
        yield f"one ({table.unit_text}) counts at most {table.row_cap.rows} rows per group, chosen by a hash"


def _literal_json(plan: Plan, one: Named) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "text": one.text,
        "functional": plan.question.functionals[one.cut.functional].name,
        "may_err_between": [float(one.lower), float(one.upper)],
        "may_err_in": one.counted or None,
        "rows": one.rows,
    }


def _functional_json(plan: Plan, index: int, named: tuple[Named, ...]) -> dict[str, Any]:
    functional, test = plan.question.functionals[index], plan.calibration.tests[index]
    scale = functional.sensitivity if test.block == 1 else 1
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
    """By what key the thresholds of each group's own differ, and by how many integer steps they lie above the least."""
    return None if offsets is None else {"key": offsets.key, "steps_above_least": list(offsets.steps)}


def _rollup_json(plan: Plan) -> dict[str, str] | None:
    """The rows that may be kept for many questions, and the SQL that answers from them; null where nothing is kept."""
    rollup = plan.rewritten.rollup
    return None if rollup is None else {"build": rollup.build, "sql": rollup.sql}


def _noise_json(noise: SharedNoise | None) -> dict[str, Any] | None:
    """How many questions' noise would be read, and what that costs everybody and the analyst at most; null for none."""
    if noise is None:
        return None
    return {"earlier_questions": noise.earlier, "fresh_at_most": noise.fresh, "own_at_most": noise.own}


def _refused(plan: Plan, left: Left) -> bool:
    on_shared_noise = left.noise is not None and left.noise.fits
    return plan.worst_case_epsilon > left.epsilon and not on_shared_noise


def _slack(tolerance: str) -> str:
    text = tolerance.strip()
    if text.endswith("%") and "," not in text and "=" not in text:
        return f"{text[:-1].strip()} % slack"
    return f"a slack of {text}"
