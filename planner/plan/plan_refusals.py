"""Refusals of accuracy, with a setting that can be met, found by trying."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from mechanisms.formula import Formula
from mechanisms.protocol import Unachievable
from planner.errors import KeyholeError
from planner.functionals.cell_readings import list_steps
from planner.question.question import Accuracy, Question

_DOUBLINGS = 12  # of a tolerance, up to 2,048 steps: each try is a calibration, made only to word a hint


def refuse_unreachable(
    question: Question, refusal: Unachievable, *, calibrate: Callable[[Question], object]
) -> KeyholeError:
    """Return KH303 with the reason why the mechanism cannot meet the contract.

    Its hint names a mechanism or setting that can.

    Parameters:
        calibrate: the calibration of a question. It raises `Unachievable`.
    """
    accuracy = question.accuracy
    if refusal.instead is not None:
        return KeyholeError(
            "KH303",
            f"mechanism {accuracy.mechanism} does not take this question: {refusal.reason}",
            hint=_suggest_mechanism(accuracy, refusal.instead),
        )
    return KeyholeError(
        "KH303",
        f"the accuracy asked for cannot be reached: {refusal.reason}",
        detail=f"Rates fnr {accuracy.fnr:g} and fpr {accuracy.fpr:g}, "
        f"tolerance {accuracy.tolerance}, mechanism {accuracy.mechanism}.",
        hint=_find_reachable(question, calibrate) if refusal.remedy is None else refusal.remedy,
    )


def _suggest_mechanism(accuracy: Accuracy, wanted: str) -> str:
    """Return a hint to use another mechanism: the wanted one if the policy allows it, else any that answers."""
    if wanted in accuracy.allowed_mechanisms:
        return f"SET keyhole.mechanism = '{wanted}';"
    if accuracy.other_mechanism is None:
        return f"Ask the owner to add {wanted} to [accuracy] mechanisms."
    reset = "" if accuracy.most_positives is None else " RESET keyhole.most_positives;"
    return f"SET keyhole.mechanism = '{accuracy.other_mechanism}';{reset}"


def _find_reachable(question: Question, calibrate: Callable[[Question], object]) -> str:
    """Return a setting with which the mechanism can keep the contract, found by trying several."""
    accuracy = question.accuracy
    if accuracy.fnr + accuracy.fpr >= 1:
        return "SET keyhole.fnr = 0.05; SET keyhole.fpr = 0.1;"
    step = max(step for one in question.functionals for step, _ in list_steps(one.cell_reads))
    for tolerance in (step << doubling for doubling in range(_DOUBLINGS)):
        formula, *predicates = (_widen(one, tolerance) for one in question.formulas)
        wider = replace(question, formula=formula, predicates=tuple(predicates))
        try:
            calibrate(wider)
        except Unachievable:
            continue
        return f"SET keyhole.tolerance = '{_convert_to_users_unit(question, tolerance)}';"
    if accuracy.most_positives is not None:
        return "Lower keyhole.most_positives, or widen keyhole.tolerance."
    return "Widen keyhole.tolerance, or choose higher keyhole.fnr and keyhole.fpr."


def _widen(formula: Formula, tolerance: int) -> Formula:
    return formula.map_literals(lambda literal: replace(literal, tolerance=max(literal.tolerance, tolerance)))


def _convert_to_users_unit(question: Question, steps: int) -> str:
    """Return an absolute tolerance of at least `steps` integer steps on every functional, in the analyst's unit."""
    widest = max(functional.unit_size * steps / functional.rows for functional in question.functionals)
    rounded = widest.quantize(Decimal("0.001"), rounding="ROUND_UP")
    return format(rounded.normalize(), "f")
