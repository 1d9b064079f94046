"""The guarantee of an answer, as a sentence and as JSON. Rates and loss are upper bounds."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from mechanisms.formula import TRUE
from mechanisms.keyhole.contract import EMPTY_PROMISE_NOTE
from planner.catalog.catalog import Computed
from planner.explain.balances import SharedNoise
from planner.explain.literal_labels import spell_formula, spell_literals
from planner.explain.ranking import is_ranking_only, write_ranking_json, write_ranking_promise
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_percent
from planner.explain.wrong_groups import count_wrong_groups
from planner.question.plan import Plan
from planner.question.question import BANDED, write_aggregate

PROMISE_OF_CELLS = (
    "`epsilon_per_predicate` bounds what all answers together reveal about a unit's presence in one cell, if the "
    "declared bounds do not cut the unit. If they cut it, one question reveals at most twice its charge. "
    "`epsilon_per_unit` holds for every unit."
)
"""The promise of the balance per cell, in the same words as the policy's page, decision 5, the threat model and the
proof (docs/proofs/cells.md). A row is a unit that nothing cuts."""
DENIABLE = "It may be denied, which is charged; the rates are for a wrong answer."
FIXED_BEFORE = "the rates hold for a question that was fixed before that noise was drawn"


def write_domain_sentence(plan: Plan) -> str:
    """Return the guarantee's sentence for a question that lists keys and has no threshold."""
    names = ", ".join(plan.question.keys.names)
    return f"public values of {names}, with rows or without: no data is read, and nothing is spent."


def write_guarantee(plan: Plan) -> str:
    """Return the guarantee of an answer as one sentence for the NOTICE."""
    if plan.question.lists_domain:
        return write_domain_sentence(plan)
    if not plan.reads_data:
        return "the condition does not depend on data: the answer is exact and nothing was spent."
    loss = f"at most {spell_number(Decimal(write_ceiling(plan.worst_case_epsilon)))} epsilon"
    if plan.calibration.whole_question:
        loss += " for all groups together"
    promises = write_promised_rates(plan, beyond=describe_tolerance(plan.question.accuracy.tolerance))
    decided = "; ".join(promises.decided)
    if promises.ranked:
        decided = f"{decided}; of what is left, {promises.ranked}" if decided else promises.ranked
    promise = f"{decided}; {loss}."
    if plan.calibration.deniable:
        promise = f"{promise} {DENIABLE}"
    table = plan.question.table
    clipped = _clips_values(plan)
    if table.is_row_unit:
        return f"{promise} This holds after values without a declared range are clipped." if clipped else promise
    told = "" if (share := write_cut_rows(plan)) is None else f" {share[:1].upper()}{share[1:]}."
    clips = "clipping values without a declared range and " if clipped else ""
    bounded = f"This holds for aggregates after {clips}bounding each ({table.unit_text})"
    return (
        f"{promise} {bounded}{_count_left_out_groups(plan)}; rows without {' or '.join(table.unit)} are left out.{told}"
    )


@dataclass(frozen=True, slots=True)
class PromisedRates:
    """The error rates of an answer, as clauses of a sentence.

    `missed` and `wrong` are empty if the question only ranks; `ranked` is empty if it ranks nothing.
    """

    missed: str
    wrong: str
    ranked: str

    @property
    def decided(self) -> tuple[str, ...]:
        """The clauses about groups that are missed or returned wrongly."""
        return tuple(clause for clause in (self.missed, self.wrong) if clause)


def write_promised_rates(plan: Plan, *, beyond: str, subject: str = "one") -> PromisedRates:
    """Return clauses that say how often groups are missed, are returned wrongly, or are in the wrong order.

    Parameters:
        beyond: the tolerance in words. A group has to fail by more than that for its rate to be bounded.
        subject: the group or predicate that is returned wrongly, for use after a clause that named it.
    """
    ranked = write_ranking_promise(plan) or ""
    if ranked and is_ranking_only(plan) and not plan.predicates:
        return PromisedRates(missed="", wrong="", ranked=ranked)
    return PromisedRates(
        missed=_write_missed_rate(plan), wrong=_write_wrong_rate(plan, beyond=beyond, subject=subject), ranked=ranked
    )


def _write_missed_rate(plan: Plan) -> str:
    if plan.calibration.whole_question:
        return _describe_limit(plan)
    if plan.calibration.fnr is None:
        return "a group near a threshold may be missed, without a bound"
    return f"{_name_missed_subject(plan)} at most {write_percent(plan.question.accuracy.fnr)} of the time"


def _write_wrong_rate(plan: Plan, *, beyond: str, subject: str) -> str:
    if EMPTY_PROMISE_NOTE in plan.calibration.notes:
        return "within the tolerance every group qualifies, so any group may be returned"
    if plan.calibration.fpr is None:
        return "a group that does not may be returned, without a bound"
    if any(BANDED in warning for warning in plan.question.warnings):
        beyond += ", and with the slack that a warning gives for means over different rows,"
    if plan.question.priced_differences:
        beyond += ", and with the amount that a warning gives for compared sides,"
    rate = write_percent(plan.question.accuracy.fpr)
    return f"{subject} that fails even with {beyond} is {_name_wrong_subject(plan)} at most {rate} of the time"


def _clips_values(plan: Plan) -> bool:
    """Return True if a value without a declared range is clipped to an end that follows from a threshold."""
    question = plan.question
    derived = (
        question.table.get_column(name).derivation for made in question.computed_functionals for name in made.summed
    )
    return any(isinstance(one, Computed) and any(one.clipped) for one in derived)


def _name_missed_subject(plan: Plan) -> str:
    """Return the words for what may be missed: a group, or that a predicate is true for it."""
    if not plan.predicates:
        return "a group that truly qualifies is missed"
    holds = "a predicate that truly holds for a group is shown as false"
    return holds if plan.minimised.formula == TRUE else f"a group that truly qualifies is missed, or {holds},"


def _name_wrong_subject(plan: Plan) -> str:
    """Return the words for what may be wrong: a group, or a predicate of it."""
    if not plan.predicates:
        return "returned"
    return "shown as true" if plan.minimised.formula == TRUE else "returned, or shown as true,"


def _count_left_out_groups(plan: Plan) -> str:
    """Return a clause with the number of groups in which a unit counts, if it could have rows in more; else ""."""
    table, within_reach = plan.question.table, plan.question.keys.count_reachable_groups(plan.question.table)
    if within_reach <= table.groups_per_unit:
        return ""
    return f", which counts in at most {table.groups_per_unit:,} of {within_reach:,} groups"


def write_cut_rows(plan: Plan) -> str | None:
    """Return the owner's sentence on rows that bounds leave out of all groups by the question's keys.

    The keys are those that the question groups by, and those that its WHERE fixes. Return None for other keys, for a
    join and for sums per unit, about which the owner declares nothing.
    """
    question = plan.question
    if question.per_unit is not None:
        return None
    keys = {*question.keys.names, *(key.name for key in question.table.fixed)}
    for one in question.table.cut_rows:
        if set(one.keys) == keys:
            by = ", ".join(one.keys)
            return f"the owner says: bounds leave out {one.share} of the table's rows over all groups by {by}"
    return None


def write_shared_noise(noise: SharedNoise) -> str:
    """Return a sentence on noise that is shared with earlier questions: its cost, and when the error rates hold."""
    questions = "1 earlier question" if noise.earlier_questions == 1 else f"{noise.earlier_questions} earlier questions"
    own = f"{spell_number(Decimal(write_ceiling(noise.own_cost)))} epsilon"
    fresh = f"at most {spell_number(Decimal(write_ceiling(noise.shared_cost)))} of {own} is new to the shared budget"
    if noise.shared_cost == 0:
        fresh = f"nothing is new to the shared budget, and at most {own} counts towards a cap of your own"
    return f"same noise as {questions}: {fresh}; {FIXED_BEFORE}."


def write_guarantee_json(plan: Plan) -> dict[str, Any]:
    """Return the guarantee as a JSON document.

    It has the sentence, rates (None: no bound), the tolerance of each functional in its unit, the loss, the greatest
    number of returned groups (None: no limit), the meaning of each predicate column, and the promise of a cell.
    """
    calibration = plan.calibration
    accuracy = plan.question.accuracy
    wrong = count_wrong_groups(plan)
    return {
        "sentence": write_guarantee(plan),
        "fnr": None if calibration.fnr is None else accuracy.fnr,
        "fpr": None if calibration.fpr is None or EMPTY_PROMISE_NOTE in calibration.notes else accuracy.fpr,
        "tolerance": _list_tolerances(plan),
        "epsilon_at_most": plan.worst_case_epsilon,
        "wrong_groups_at_most": None if wrong is None else wrong.near,
        "most_groups": calibration.task.most_positives if calibration.whole_question else None,
        "predicates": _spell_predicates(plan),
        "ranking": write_ranking_json(plan),
        "cells": write_cell_promise(plan),
    }


def write_cell_promise(plan: Plan) -> str | None:
    """Return the promise about one cell's rows. Return None if no private data are read or each row is a unit."""
    return PROMISE_OF_CELLS if plan.reads_data and not plan.question.table.is_row_unit else None


def _spell_predicates(plan: Plan) -> dict[str, str]:
    """Return the formula of each predicate column in the answer."""
    return dict(zip(plan.asked_question.predicate_names, list_predicate_texts(plan), strict=True))


def list_predicate_texts(plan: Plan) -> tuple[str, ...]:
    """Return the predicates of the question, in words."""
    texts = spell_literals(plan.asked_question)
    return tuple(spell_formula(formula, texts, both="AND", either="OR") for formula in plan.asked_question.predicates)


def _describe_limit(plan: Plan) -> str:
    """Return the promise of a sparse vector about the groups that qualify beyond its limit."""
    limit = plan.calibration.task.most_positives
    groups = "1 group is" if limit == 1 else f"{limit} groups are"
    rate = write_percent(plan.question.accuracy.fnr)
    return (
        f"a group that truly qualifies is tested and missed at most {rate} of the time, "
        f"but at most {groups} returned, and any that come later in the order of the keys are missed, without a bound"
    )


def _list_tolerances(plan: Plan) -> dict[str, float]:
    """Return the narrowest tolerance band of each aggregate's literals, in the analyst's unit."""
    narrowest: dict[str, float] = {}
    for functional, test in zip(plan.question.functionals, plan.calibration.tests, strict=True):
        name = write_aggregate(functional)
        width = float(functional.unit_size * test.tolerance / functional.rows)
        narrowest[name] = min(width, narrowest.get(name, width))
    if (ranked := plan.question.ranked) is not None:
        name, width = ranked.functional.name, float(ranked.tolerance_value)
        narrowest[name] = min(width, narrowest.get(name, width))
    return narrowest


def describe_tolerance(tolerance: str) -> str:
    """Return a tolerance in words, as the amount by which a group may miss the threshold."""
    text = tolerance.strip()
    if text.endswith("%") and "," not in text and "=" not in text:
        return f"{text[:-1].strip()} % slack"
    return f"a slack of {text}"
