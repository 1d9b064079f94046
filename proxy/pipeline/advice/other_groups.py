"""Alternatives to a refused question: about groups with enough budget, or about units instead of rows.

Naming the groups that are short reveals nothing new: EXPLAIN shows the analyst the rest for each single group as well.
"""

from dataclasses import dataclass, replace

import numpy as np

from accountant.errors import LedgerError, OverBudget
from mechanisms.formula import Booleans
from planner.catalog.key_space import format_value, quote_in_row
from planner.errors import KeyholeError
from planner.extract.hints.cheaper_text import count_units, leave_out
from planner.plan import build as planning
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import Claim, arrange_by_question, make_claim
from proxy.pipeline.messages import read_bare_question

_MOST_NAMED = 5  # groups that a message names; it counts the others


@dataclass(frozen=True, slots=True)
class ShortGroups:
    """The groups whose balances do not cover a question, in words, and the fitting question about all others, if any.

    `question` is None if there is no such question, or if its text cannot be written.
    """

    names: str
    question: str | None


def find_short(service: Service, refused: Claim, shortage: OverBudget) -> ShortGroups | None:
    """Return the groups that are short. Return None if all are, or if all groups share one balance. Raise KH502."""
    short = _list_short(refused, shortage)
    if short is None:
        return None
    return ShortGroups(names=_spell_groups(refused, short), question=_ask_about_others(service, refused, short))


def find_units(service: Service, refused: Claim) -> str | None:
    """Return the question with privacy units counted instead of rows, if that fits. Return None otherwise.

    A unit changes such a count by one, whatever its rows. Raise KH502.
    """
    question = refused.plan.asked
    if len(question.table.unit) != 1:
        return None
    text = count_units(refused.asked.question, question.table.get_column(question.table.unit[0]))
    return text if text is not None and _fits(service, refused, text, groups=question.keys.size) else None


def name_short(refused: Claim, shortage: OverBudget) -> str:
    """Return the groups that are short, in words. Return "" if all are, or if all groups share one balance."""
    short = _list_short(refused, shortage)
    return "" if short is None else _spell_groups(refused, short)


def _list_short(refused: Claim, shortage: OverBudget) -> Booleans | None:
    short = None if shortage.short is None else arrange_by_question(shortage.short, refused)
    return None if short is None or short.all() or not short.any() else short


def _spell_groups(refused: Claim, short: Booleans) -> str:
    keys = refused.plan.question.keys
    places = np.flatnonzero(short.reshape(-1))
    names = [
        "/".join(quote_in_row(format_value(value)) for value in keys.get_key(int(place)))
        for place in places[:_MOST_NAMED]
    ]
    more = f" and {len(places) - len(names):,} more" if len(places) > len(names) else ""
    return ", ".join(names) + more


def _ask_about_others(service: Service, refused: Claim, short: Booleans) -> str | None:
    """Return the question without those values of one key that have short groups.

    The key that leaves the most groups is chosen. Return None if no groups are left, the text cannot be written, or it
    does not fit.
    """
    keys = refused.plan.question.keys
    found: list[tuple[int, int, Booleans]] = []
    for axis in range(short.ndim):
        others = tuple(other for other in range(short.ndim) if other != axis)
        of_axis: Booleans = np.asarray(short.any(axis=others), dtype=np.bool_)
        found.append((int(of_axis.sum()) * (short.size // of_axis.size), axis, of_axis))
    lost, axis, of_axis = min(found, key=lambda one: one[:2])
    if lost == short.size:
        return None
    values = keys.values[axis]
    left_out = [value for value, is_short in zip(values, of_axis, strict=True) if is_short]
    kept = [value for value, is_short in zip(values, of_axis, strict=True) if not is_short]
    text = leave_out(refused.asked.question, keys.columns[axis], short=left_out, others=kept)
    return text if text is not None and _fits(service, refused, text, groups=short.size - lost) else None


def _fits(service: Service, refused: Claim, text: str, *, groups: int) -> bool:
    try:
        asked = replace(refused.asked, question=read_bare_question(text, service.catalog))
        question = asked.read_question(service.catalog, asked.read_accuracy(service.catalog))
        plan = planning.plan_question(question, dialect=service.source.dialect)
        made = make_claim(plan, service.catalog, asked=asked, version=refused.version)
    except KeyholeError:
        return False
    try:
        return question.keys.size == groups and service.ledger.find_shortage(made.charge, made.limits) is None
    except LedgerError:
        raise report_unavailable_ledger() from None
