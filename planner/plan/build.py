"""From a question to its plan: reduce, calibrate, rewrite. Public inputs alone, deterministic, no I/O."""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

from mechanisms.formula import FALSE, TRUE, list_literals
from mechanisms.keyhole.contract import TREE_NOTE
from mechanisms.ranking.calibration import RankingCalibration
from planner.explain.wrong_groups import add_chances
from planner.functionals.atoms.formula_warnings import warn_of_mean_between_bounds
from planner.lower.dialects.dialect import Dialect
from planner.lower.scan import rewrite
from planner.plan.calibrate import add_common_sums, calibrate
from planner.plan.key_blocks import rewrite_blocks
from planner.plan.question_identity import find_fingerprint
from planner.plan.rank import calibrate_question_ranking
from planner.plan.reduce import reduce_question
from planner.question.plan import Minimised, Plan, Rewritten
from planner.question.question import Question

CACHED_PLANS = 128  # one question is planned by EXPLAIN, by its run and when it is asked again

NOT_MINIMISED = "more than twelve thresholds: the formula is folded, not minimised; it may cost more than it had to"
ALWAYS_TRUE = "the condition holds for every group whatever the data: all keys are returned, nothing is read or spent"
ALWAYS_FALSE = "the condition holds for no group whatever the data: no key is returned, nothing is read or spent"

SAME_FOR_ALL = "{name} is {truth} for every group whatever the data: nothing is read or spent for it"


def plan_question(question: Question, *, dialect: Dialect) -> Plan:
    """Plan everything that will be computed, decided and charged for a question, before any data is touched.

    Guarantee: depends on the question and the dialect alone. Equal inputs give equal plans, cached for the last
    `CACHED_PLANS` questions.

    Parameters:
        question: as the analyst asked it, resolved against the policy.
        dialect: of the source that will answer.

    Raises:
        KeyholeError: KH303 if the mechanism cannot meet the contract, with a tolerance that can.
    """
    return _plan(question, dialect)


@lru_cache(maxsize=CACHED_PLANS)
def _plan(question: Question, dialect: Dialect) -> Plan:
    reduced, minimised, predicates = reduce_question(question)
    calibration, sharing = calibrate(reduced)
    reduced = add_common_sums(reduced, calibration)
    ranking = calibrate_question_ranking(reduced)
    made = Plan(
        asked_question=question,
        question=reduced,
        minimised=minimised,
        calibration=calibration,
        rewritten=_rewrite(reduced, ranking, dialect),
        fingerprint=find_fingerprint(reduced),
        warnings=(
            *_list_read_warnings(question, reduced),
            *_list_formula_warnings(question, minimised, predicates),
            # that rates are split over a tree follows from the formula's not being minimised, and says the same again
            *(
                one
                for one in calibration.notes
                if one != TREE_NOTE or all(known.is_minimal for known in (minimised, *predicates))
            ),
        ),
        sharing=sharing,
        predicates=predicates,
        ranking=ranking,
    )
    return replace(made, warnings=tuple(add_chances(made, made.warnings)))


def _rewrite(question: Question, ranking: RankingCalibration | None, dialect: Dialect) -> Rewritten:
    """Return the SQL that is sent to the source, or an empty one if the answer does not depend on data."""
    if not question.functionals and (ranking is None or not ranking.noise_rate):
        return Rewritten(dialect=dialect.name, sql="")
    read = replace(question, functionals=question.computed_functionals, ranked=None, common=())
    return replace(rewrite(read, dialect=dialect), blocks=rewrite_blocks(read, dialect=dialect))


def _list_read_warnings(question: Question, reduced: Question) -> Iterator[str]:
    """Yield the warnings from reading the question, without those that its common sums make untrue."""
    untrue = set(warn_of_mean_between_bounds(question.functionals)) if reduced.common else set()
    yield from (warning for warning in question.warnings if warning not in untrue)


def _list_formula_warnings(
    question: Question, minimised: Minimised, predicates: tuple[Minimised, ...]
) -> Iterator[str]:
    if not all(one.is_minimal for one in (minimised, *predicates)):
        yield NOT_MINIMISED
    if question.keys.size and minimised.formula != FALSE:
        for name, typed, one in zip(question.predicate_names, question.predicates, predicates, strict=True):
            if one.formula in (TRUE, FALSE) and any(True for _ in list_literals(typed)):
                yield SAME_FOR_ALL.format(name=name, truth="true" if one.formula == TRUE else "false")
    if question.keys.size and question.ranked is None and any(True for _ in list_literals(question.formula)):
        if minimised.formula == TRUE:
            yield ALWAYS_TRUE
        if minimised.formula == FALSE:
            yield ALWAYS_FALSE
