"""Refusals of monitors. Each follows from the policy and the monitor's own text alone."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from mechanisms.formula import Cut, Formula
from mechanisms.protocol import Unachievable
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.question.question import Question

_SETTING = re.compile(r"SET keyhole\.(fnr|fpr) = ([0-9.e-]+);")
_QUOTED_SETTING = re.compile(r"SET keyhole\.(tolerance|fnr|fpr) = '([^']*)';")
_BASE_SETTING = re.compile(r"SET keyhole\.min_base = ([0-9.]+); compares only where (.*) is at least \1,")
_DOUBLINGS = 12  # of a tolerance, up to 2,048 steps: each try is a calibration, made only to word a hint
_EXAMPLE = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400"


def _name_section(monitor: Monitor) -> str:
    return f"[monitors.{monitor.name}]"


def refuse_windows(monitor: Monitor, problem: str, *, hint: str, detail: str | None = None) -> KeyholeError:
    """Return KH601 for windows, looks and horizon that do not fit together."""
    return KeyholeError("KH601", f"{_name_section(monitor)}: {problem}", detail=detail, hint=hint)


def refuse_condition(monitor: Monitor, problem: str, *, hint: str, detail: str | None = None) -> KeyholeError:
    """Return KH602 for a question that no monitor can watch."""
    return KeyholeError("KH602", f"{_name_section(monitor)}: {problem}", detail=detail, hint=hint)


def refuse_table(monitor: Monitor, problem: str, *, hint: str, detail: str | None = None) -> KeyholeError:
    """Return KH603 for a table that no monitor can watch."""
    return KeyholeError("KH603", f"{_name_section(monitor)}: {problem}", detail=detail, hint=hint)


def add_monitor_name(monitor: Monitor, error: KeyholeError) -> KeyholeError:
    """Return a refusal of the monitor's question that names the monitor, and writes settings as keys of its section."""
    return KeyholeError(
        error.code,
        f"{_name_section(monitor)}: {error.message}",
        detail=error.detail,
        hint=None if error.hint is None else write_as_policy(error.hint),
    )


def write_as_policy(hint: str) -> str:
    """Return a hint with the settings of a session written as keys of a monitor.

    >>> write_as_policy("SET keyhole.tolerance = '20%';  or  SET keyhole.fnr = 0.1;")
    'tolerance = "20%"  or  fnr = 0.1'
    """
    apart = hint.replace("; SET keyhole.", ";  and  SET keyhole.")
    return _SETTING.sub(r"\1 = \2", _QUOTED_SETTING.sub(_rewrite_setting, apart))


def write_warning_as_policy(warning: str) -> str:
    """Return a warning with the settings of a session written as keys of a monitor, or as a condition of its text.

    >>> write_warning_as_policy("SET keyhole.min_base = 89; compares only where lag(n) is at least 89, with 10%")
    'AND lag(n) >= 89 in sql compares only there, with 10%'
    >>> write_warning_as_policy("0 has no percentage; SET keyhole.tolerance = '5'; halves it")
    '0 has no percentage; tolerance = "5" halves it'
    """
    return _QUOTED_SETTING.sub(
        _rewrite_setting, _BASE_SETTING.sub(r"AND \2 >= \1 in sql compares only there,", warning)
    )


def _rewrite_setting(match: re.Match[str]) -> str:
    return f'{match[1]} = "{match[2]}"' if match[1] == "tolerance" else f"{match[1]} = {match[2]}"


def refuse_surroundings(monitor: Monitor) -> KeyholeError:
    """Return KH602 for a monitor whose text has more than one question in it."""
    return refuse_condition(
        monitor,
        "sql is not one question about a private table and nothing around it",
        detail="ORDER BY, LIMIT, OFFSET and joins around a question say how its answer is shown. The answer of a "
        "monitor grows look by look, so its readers choose that.",
        hint=f"Keep only keys and HAVING: {_EXAMPLE}. Order and limit what you read: SELECT * FROM {monitor.name} ...",
    )


def refuse_unreachable(
    monitor: Monitor,
    question: Question,
    *,
    looks: int,
    refusal: Unachievable,
    calibrate: Callable[[Formula], object],
) -> KeyholeError:
    """Return KH303 with the reason why no mechanism keeps the contract.

    Its hint is a tolerance for which `calibrate` succeeds, found by trying.
    """
    rates = question.accuracy
    return KeyholeError(
        "KH303",
        f"{_name_section(monitor)}: the accuracy asked for cannot be reached: {refusal.reason}",
        detail=f"Rates fnr {rates.fnr:g} and fpr {rates.fpr:g}, tolerance {rates.tolerance}, {looks:,} looks a window.",
        hint=_find_reachable(question, calibrate),
    )


def _find_reachable(question: Question, calibrate: Callable[[Formula], object]) -> str:
    for steps in (1 << doubling for doubling in range(_DOUBLINGS)):

        def widen(literal: Cut, *, steps: int = steps) -> Cut:
            return replace(literal, tolerance=max(literal.tolerance, steps))

        try:
            calibrate(question.formula.map_literals(widen))
        except Unachievable:
            continue
        widest = max(functional.unit_size * steps / functional.rows for functional in question.functionals)
        return f'Write tolerance = "{widest.quantize(Decimal("0.001"), rounding="ROUND_UP").normalize():f}".'
    return "Widen the tolerance, or choose higher fnr and fpr."
