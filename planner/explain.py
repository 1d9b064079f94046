"""A plan in words: EXPLAIN as text and JSON, and the guarantee of an answer. Depends on public inputs alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_UP, Decimal
from typing import Any

from mechanisms.contract import EMPTY_PROMISE_NOTE
from mechanisms.formula import Formula
from mechanisms.keyhole import Keyhole, cheaper_alone
from mechanisms.probe import DENIAL_NOTE
from mechanisms.protocol import FunctionalTest
from planner.lettering import (
    Named,
    aggregate_text,
    as_typed,
    in_users_unit,
    lettered,
    letters,
    literal_of,
    plain,
    spelled,
    words,
)
from planner.plan import Plan
from planner.question import Functional, Measure

COMPARED = {"probe": "ProBE", "naive": "equal split"}


@dataclass(frozen=True, slots=True)
class Left:
    """What the ledger says about a question before it is asked.

    `version` is the public data version. `epsilon` is the largest worst case per key that every balance still admits.
    `would_fit` are settings with which the question would pass where it does not: "keyhole.tolerance = '13%'".
    """

    version: str
    epsilon: float
    would_fit: tuple[str, ...] = ()


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
        "minimised": spelled(_shown(plan, named), texts, both="AND", either="OR"),
        "exact": plan.minimised.exact,
        "letters": spelled(_shown(plan, named), letters(named), both="and", either="or"),
        "literals": [_literal_json(plan, one) for one in named],
        "prime_implicants": [[texts[literal_of(cut)] for cut in term] for term in plan.minimised.implicants],
        "prime_clauses": [[texts[literal_of(cut)] for cut in clause] for clause in plan.minimised.clauses],
        "functionals": [
            _functional_json(functional, test)
            for functional, test in zip(plan.question.functionals, plan.calibration.tests, strict=True)
        ],
        "affected_together": [
            [plan.question.functionals[index].name for index in sorted(group)]
            for group in plan.calibration.task.affected_together
        ],
        "table": plan.question.table.name,
        "privacy_unit": plan.question.table.unit_text,
        "bounding": list(_bounding(plan)),
        "grouped_by": list(plan.question.keys.names),
        "keys": plan.question.keys.size,
        "mechanism": plan.calibration.mechanism,
        "worst_case_epsilon": plan.worst_case_epsilon,
        "separate_sums_epsilon": _separate_sums(plan),
        "compared": {name: plan.compared.get(name) for name in ("naive", "probe")},
        "guarantee": guarantee_json(plan),
        "sql": plan.rewritten.sql,
        "dialect": plan.rewritten.dialect,
        "warnings": list(plan.warnings),
    }
    if left is not None:
        document["data_version"] = left.version
        document["left"] = left.epsilon
        document["refused"] = _refused(plan, left)
        document["would_fit"] = list(left.would_fit)
    return document


def guarantee_sentence(plan: Plan) -> str:
    """What an answer promises, in one sentence for the NOTICE; rates and loss are upper bounds."""
    if not plan.question.functionals:
        return "the condition does not depend on data: the answer is exact and nothing was spent."
    accuracy, calibration = plan.question.accuracy, plan.calibration
    loss = f"at most {plain(Decimal(_at_most(plan.worst_case_epsilon)))} epsilon"
    if calibration.whole_question:
        missed = _missed_past_the_limit(plan)
        loss += " for all groups together"
    elif calibration.fnr is None:
        missed = "a group near a threshold may be missed, without a bound"
    else:
        missed = f"a group that truly qualifies is missed at most {_percent(accuracy.fnr)} of the time"
    if EMPTY_PROMISE_NOTE in calibration.notes:
        wrong = "within the tolerance every group qualifies, so any group may be returned"
    elif calibration.fpr is None:
        wrong = "a group that does not may be returned, without a bound"
    else:
        slack, rate = _slack(accuracy.tolerance), _percent(accuracy.fpr)
        wrong = f"one that fails even with {slack} is returned at most {rate} of the time"
    promise = f"{missed}; {wrong}; {loss}."
    if DENIAL_NOTE in calibration.notes:
        promise = f"{promise} It may be denied, which is paid for; the rates are those of being answered wrongly."
    table = plan.question.table
    if table.row_unit:
        return promise
    unit = " or ".join(table.unit)
    bounded = f"This holds for aggregates after bounding each ({table.unit_text})"
    return f"{promise} {bounded}; rows without {unit} are left out."


def _missed_past_the_limit(plan: Plan) -> str:
    """What a sparse vector promises of the groups that qualify."""
    limit = plan.calibration.task.most_positives
    groups = "1 group is" if limit == 1 else f"{limit} groups are"
    rate = _percent(plan.question.accuracy.fnr)
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
    yield from _formula_lines(plan)
    yield f"  {_cost(plan)}"
    if left is not None:
        refused = _refused(plan, left)
        verdict = "   -> this question would be refused" if refused else ""
        yield f"  Left for these groups: {_at_least(left.epsilon)}{verdict}"
        if refused and left.would_fit:
            yield f"  Would fit: {', or '.join(left.would_fit)}"
    for note in _bounding(plan):
        yield f"  Bounding: {note}"
    yield f"  Guarantee: {guarantee_sentence(plan)}"
    for warning in plan.warnings:
        yield f"  Warning: {warning}"
    if plan.rewritten.sql:
        yield f"  SQL sent to the source ({plan.rewritten.dialect}):"
        yield from (f"    {line}" for line in plan.rewritten.sql.splitlines())
    else:
        yield "  Nothing is sent to the source."


def _heading(plan: Plan, left: Left | None) -> str:
    keys = plan.question.keys
    version = f", data version {left.version}" if left else ""
    grouped = f"{plan.question.table.name} ({', '.join(keys.names)})"
    return f"Question over {keys.size} groups of {grouped}{version}, nothing is spent by EXPLAIN"


def _formula_lines(plan: Plan) -> Iterator[str]:
    named = lettered(plan)
    formula = spelled(_shown(plan, named), letters(named), both="and", either="or")
    if plan.minimised.exact:
        true, false = _ways(len(plan.minimised.implicants)), _ways(len(plan.minimised.clauses))
        yield f"  {formula}        minimal; {true} to be true, {false} to be false"
    else:
        yield f"  {formula}        as typed"
    rows = [_literal_cells(plan, one, named) for one in named]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))] if rows else []
    for row in rows:
        yield "  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _shown(plan: Plan, named: tuple[Named, ...]) -> Formula:
    """The formula that is evaluated, in the order in which its literals were typed."""
    return as_typed(plan.minimised.formula, letters(named)) if plan.minimised.exact else plan.minimised.formula


def _ways(count: int) -> str:
    return f"{count} way{'' if count == 1 else 's'}"


def _literal_cells(plan: Plan, one: Named, named: tuple[Named, ...]) -> tuple[str, ...]:
    index = one.cut.functional
    functional, test = plan.question.functionals[index], plan.calibration.tests[index]
    band = f"may err between {plain(one.lower)} and {plain(one.upper)}"
    if one.rows > 1:
        band += f" for groups of at least {one.rows} rows"
    together = plan.calibration.whole_question
    first = next(other for other in named if together or other.cut.functional == index)
    if first != one:
        shared = "decided together with" if together else "same noise as"
        return f"{one.letter}  {one.text}", band, "", "", f"{shared} {first.letter}", ""
    rates = f"fnr {_percent(test.fnr, places=2)}", f"fpr {_percent(test.fpr, places=2)}"
    notes = "; ".join(_notes(plan, functional, test))
    return f"{one.letter}  {one.text}", band, *rates, f"epsilon {_at_most(test.epsilon)}", notes


def _notes(plan: Plan, functional: Functional, test: FunctionalTest) -> Iterator[str]:
    yield f"sensitivity {plain(functional.sensitivity * functional.unit_size)}"
    clipped = _clipping(plan, functional)
    if clipped:
        yield clipped
    if test.block > 1:
        yield f"noise on blocks of {test.block} steps"
    if test.looks:
        first = test.epsilon * float(test.looks[0].rate / test.rate)
        yield f"looks {len(test.looks) + 1} times at most, first at epsilon {_at_most(first)}"
    alone = _cheaper_alone(plan).get(plan.question.functionals.index(functional))
    if alone is not None:
        yield f"one threshold alone would cost {_at_most(alone)}"


def _cheaper_alone(plan: Plan) -> Mapping[int, float]:
    """What a functional would cost that did not share one noisy value among several thresholds, where that is less."""
    return cheaper_alone(plan.calibration) if plan.calibration.mechanism == Keyhole.name else {}


def _clipping(plan: Plan, functional: Functional) -> str | None:
    """How far one unit counts, where the policy clips totals per unit."""
    if functional.unit_range is None or functional.measure is Measure.UNITS:
        return None
    low, high = functional.unit_range
    unit = f"({plan.question.table.unit_text})"
    if functional.measure is Measure.ROWS:
        return f"one {unit} counts at most {high} rows"
    if functional.offset:
        return f"one {unit} counts at most {plan.question.table.rows_per_unit} rows"
    edges = (plain(in_users_unit(functional, edge)) for edge in (low, high))
    return f"the total of one {unit} is clipped to {' .. '.join(edges)}"


def _bounding(plan: Plan) -> Iterator[str]:
    """What happens to a privacy unit's rows before anything is summed."""
    table = plan.question.table
    for name in dict.fromkeys(functional.column for functional in plan.question.functionals):
        bounds = table.column(name).bounds if name else None
        if bounds and any(f.measure is Measure.TOTAL and f.column == name for f in plan.question.functionals):
            yield f"values of {name} are clipped to {plain(bounds[0])} .. {plain(bounds[1])}"
    if table.row_unit:
        return
    groups = f"{table.groups_per_unit} group{'' if table.groups_per_unit == 1 else 's'}"
    yield f"one ({table.unit_text}) is in at most {groups}; rows without {' or '.join(table.unit)} are left out"
    if table.row_cap:
        yield f"one ({table.unit_text}) counts at most {table.row_cap.rows} rows per group, chosen by a hash"


def _cost(plan: Plan) -> str:
    others = [] if plan.calibration.whole_question else [f"separate sums {_at_most(_separate_sums(plan))}"]
    others += [f"{label} {_at_most(plan.compared[name])}" for name, label in COMPARED.items() if name in plan.compared]
    mechanism = plan.calibration.mechanism
    if plan.calibration.whole_question:
        mechanism += ", for all groups together"
    compared = f" ({'; '.join(others)})" if others else ""
    return f"Worst case {_at_most(plan.worst_case_epsilon)} with mechanism {mechanism}{compared}"


def _literal_json(plan: Plan, one: Named) -> dict[str, Any]:
    return {
        "letter": one.letter,
        "text": one.text,
        "functional": plan.question.functionals[one.cut.functional].name,
        "may_err_between": [float(one.lower), float(one.upper)],
        "rows": one.rows,
    }


def _functional_json(functional: Functional, test: FunctionalTest) -> dict[str, Any]:
    return {
        "name": functional.name,
        "sensitivity": functional.sensitivity,
        "epsilon": test.epsilon,
        "fnr": test.fnr,
        "fpr": test.fpr,
        "shift": test.shift,
        "tie": float(test.tie),
        "tolerance": test.tolerance,
        "block": test.block,
        "unit_size": float(functional.unit_size),
        "unit_range": None if functional.unit_range is None else list(functional.unit_range),
    }


def _separate_sums(plan: Plan) -> float:
    """What the functionals cost one by one; a test for all of them together has its one loss."""
    if plan.calibration.whole_question:
        return plan.worst_case_epsilon
    return sum(test.epsilon for test in plan.calibration.tests)


def _refused(plan: Plan, left: Left) -> bool:
    return plan.worst_case_epsilon > left.epsilon


def _slack(tolerance: str) -> str:
    text = tolerance.strip()
    if text.endswith("%") and "," not in text and "=" not in text:
        return f"{text[:-1].strip()} % slack"
    return f"a slack of {text}"


def _percent(rate: float, *, places: int = 6) -> str:
    """A rate in percent, rounded up so that it stays a bound."""
    percent = (Decimal(str(rate)) * 100).quantize(Decimal(1).scaleb(-places), rounding=ROUND_UP)
    return f"{percent if places == 2 else plain(percent)} %"


def _at_most(epsilon: float) -> str:
    """A loss rounded up to two decimals."""
    return format(Decimal(str(epsilon)).quantize(Decimal("0.01"), rounding=ROUND_UP), "f")


def _at_least(epsilon: float) -> str:
    """A balance rounded down to two decimals."""
    return format(Decimal(str(epsilon)).quantize(Decimal("0.01"), rounding=ROUND_DOWN), "f")
