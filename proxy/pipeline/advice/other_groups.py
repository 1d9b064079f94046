"""Alternatives to a refused question: groups with enough budget, or counts of units instead of rows.

Naming the groups that lack budget reveals nothing new. EXPLAIN also shows the analyst each single group's remaining
budget.
"""

from dataclasses import dataclass, replace

import numpy as np

from accountant.errors import LedgerError, OverBudget
from mechanisms.formula import Booleans
from planner.catalog.key_space import format_value, quote_in_row
from planner.errors import KeyholeError
from planner.extract.hints.cheaper_text import count_units, leave_out_key_values
from planner.plan import build as planning
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import Claim, arrange_by_question, make_claim
from proxy.pipeline.messages import read_bare_question

_MOST_NAMED = 5  # groups that a message names; it counts the others


@dataclass(frozen=True, slots=True)
class ShortGroups:
    """The groups whose balances do not cover a question, in words, and the same question about all other groups.

    `question` is None if that question would not fit either, or if its text cannot be written.
    """

    names: str
    question: str | None


def find_short_groups(service: Service, refused: Claim, shortage: OverBudget) -> ShortGroups | None:
    """Return the groups whose balances do not cover a question. Raise KH502 if the ledger is not available.

    Return None if no group's balance covers it, or if all groups share one balance.
    """
    short = _list_short_groups(refused, shortage)
    if short is None:
        return None
    return ShortGroups(names=_spell_groups(refused, short), question=_ask_about_others(service, refused, short))


def find_unit_question(service: Service, refused: Claim) -> str | None:
    """Return a question that counts privacy units instead of rows, if that one fits. Return None otherwise.

    One unit changes a count of units by at most one, however many rows it has. Raise KH502 if the ledger is not
    available.
    """
    question = refused.plan.asked_question
    if len(question.table.unit) != 1:
        return None
    text = count_units(refused.asked.question, question.table.get_column(question.table.unit[0]))
    return text if text is not None and _fits(service, refused, text, groups=question.keys.size) else None


def name_short_groups(refused: Claim, shortage: OverBudget) -> str:
    """Return the groups that lack budget, in words. Return "" if all do, or if all groups share one balance."""
    short = _list_short_groups(refused, shortage)
    return "" if short is None else _spell_groups(refused, short)


def _list_short_groups(refused: Claim, shortage: OverBudget) -> Booleans | None:
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
    """Return the question without some values of one key, so that no group is left that lacks budget.

    Choose the key that leaves the most groups. Return None if no groups are left, if the text cannot be written, or if
    the question still does not fit.
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
    text = leave_out_key_values(refused.asked.question, keys.columns[axis], short=left_out, others=kept)
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
