"""The tolerances with which a whole list of questions fits: one factor for all questions, or a factor for each.

Both are found by rehearsing the list, so every reported result was tried and fits. Wider tolerances do not always cost
less, since questions may then share less noise. Smaller factors that were not tried may therefore fit as well.

| candidate | questions are widened |
|---|---|
| one factor | all alike |
| one price | only the expensive ones, each to about one loss: the least product of factors, if loss is 1 / tolerance |

The candidate that changes less is then improved. Each question, the widest first, gets a tolerance as near to the one
it had as the others allow.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from math import exp, log

from mechanisms.protocol import Unachievable
from planner.catalog.tolerance import widen_tolerances
from planner.errors import KeyholeError
from planner.plan.calibrate import add_common_sums, choose_calibration
from planner.plan.rank import choose_ranking
from planner.plan.reduce import reduce_question
from proxy.concurrency.fair_queue import FairTurns
from proxy.dashboard.question_list import ListedQuestion
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.rehearsal import DecisionBasis, KnownQuestion, Question, Rehearsals, RehearsedList

FACTORS = (
    *(Decimal(digits).scaleb(power - 2) for power in (-1, 0, 1, 2) for digits in range(100, 1000)),
    Decimal(1000),
)
"""From a tenth to a thousand times, in three digits: a hundredth more than the least is nothing to anybody."""
_WISH = FACTORS.index(Decimal(1))
_PRICES = 8  # halvings between the least and the most that a question costs: then the price is within a hundredth
_NEARER = 5  # tries for each question to come nearer to its wish: a 32nd of the way in factors
_PLANNING = FairTurns(1)  # it takes seconds of the processor, which answers need
_LONGEST_WAIT_MS = 120_000  # two lists that take as long as any may; a longer wait is refused
_LONGEST_MS = 60_000  # answers need the processor: ordinary lists of twenty take ten seconds, dear ones could an hour
_MENDED = ("KH303", "KH304")  # refusals that another tolerance may end
_FREE = frozenset((DecisionBasis.NOTHING, DecisionBasis.STORED, DecisionBasis.REPEATED))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedList:
    """A list of questions, its rehearsal without changes, and the changes that make it fit.

    `factor` is the smallest factor on all tolerances with which all questions fit, or None. A factor below 1 means that
    all tolerances could be narrower.

    `tolerances` has the new tolerance of each statement that needs a change, by statement number. `narrowed` is the
    list's rehearsal with these tolerances. If the list fits unchanged, or if nothing makes it fit, there are none.

    `unfitting` are the numbers of the statements that do not fit with any tolerance, even if asked alone. `factor` and
    `narrowed` are then for the other statements.
    """

    questions: tuple[ListedQuestion, ...]
    unchanged: RehearsedList
    factor: Decimal | None
    tolerances: dict[int, str]
    narrowed: RehearsedList | None
    most_nano: int | None
    unfitting: tuple[int, ...] = ()

    @property
    def final(self) -> RehearsedList:
        """The rehearsal with the changes that make the list fit, if there are any; otherwise without changes."""
        return self.narrowed or self.unchanged


def rehearse_list(service: Service, listed: Sequence[ListedQuestion], *, most_nano: int | None) -> RehearsedList:
    """Return which questions of a list would fit the balances, one after the other, without changes.

    Raise KH502 if the ledger is not available.
    """
    return _ListTrial(service, tuple(listed), most_nano).wished


def plan_list(
    service: Service, listed: Sequence[ListedQuestion], *, most_nano: int | None, longest_ms: int | None = None
) -> PlannedList:
    """Find tolerances with which all questions of a list fit the balances.

    `most_nano` is the list's own budget: the largest loss that it may add to one group, in 1e-9 epsilon. Raise KH502
    if the ledger is not available, and KH430 if planning takes longer than `longest_ms` (None: no limit).
    """
    trial = _ListTrial(service, tuple(listed), most_nano, longest_ms=longest_ms)
    factor = trial.find_factor() if trial.movable else None
    beyond: tuple[int, ...] = ()
    if factor is None and trial.movable:
        beyond = trial.leave_out_unfitting()
        factor = trial.find_factor() if beyond and trial.movable else None
    tolerances: dict[int, str] = {}
    split: RehearsedList | None = None
    if factor is not None and factor > 1:
        for factors in (trial.find_split(factor), dict.fromkeys(trial.movable, factor)):
            tolerances = trial.write_tolerances(factors)
            split = trial.rehearse_exactly(tolerances)
            if trial.do_all_fit(split):
                break
    return PlannedList(tuple(listed), trial.wished, factor, tolerances, split, most_nano, beyond)


def plan_list_in_queue(
    service: Service,
    listed: Sequence[ListedQuestion],
    *,
    most_nano: int | None,
    analyst: str,
    longest_wait_ms: int = _LONGEST_WAIT_MS,
    longest_ms: int = _LONGEST_MS,
) -> PlannedList:
    """Plan a list as `plan_list` does, one list at a time in this process. Analysts take turns.

    Also raise KH430 if other lists take up the whole waiting time.
    """
    with _PLANNING.take_turn(analyst, timeout_ms=longest_wait_ms) as has_turn:
        if not has_turn:
            raise KeyholeError("KH430", "other lists are being planned", hint="Ask again in a moment.")
        return plan_list(service, listed, most_nano=most_nano, longest_ms=longest_ms)


class _ListTrial:
    """One list that is rehearsed many times, with a factor on the tolerances of each statement."""

    def __init__(
        self,
        service: Service,
        listed: tuple[ListedQuestion, ...],
        most_nano: int | None,
        *,
        longest_ms: int | None = None,
    ) -> None:
        self._service = service
        self._all = listed
        self._longest_ms = longest_ms
        self._began = time.monotonic()
        self._wishes = tuple(self._plan_with_tolerance(one, None) for one in listed)
        tables = (
            one.asked_question.question.table.ledger_root.table for one in listed if one.asked_question is not None
        )
        self._stage = Rehearsals(service, frozenset(tables), most_nano=most_nano)
        self._plans: dict[tuple[int, Decimal], Question] = {}
        self._known: dict[int, KnownQuestion] = {}
        self._beyond: frozenset[int] = frozenset()

    @cached_property
    def wished(self) -> RehearsedList:
        """The rehearsal of the list without changes."""
        return self._stage.rehearse_list(self._wishes, {})

    @cached_property
    def _moving(self) -> tuple[int, ...]:
        moving = [
            one.statement
            for one, quote in zip(self._all, self.wished.quotes, strict=True)
            if (quote.refusal is None and quote.basis not in _FREE)
            or (quote.refusal is not None and quote.refusal.code in _MENDED)
        ]
        return tuple(dict.fromkeys(moving))

    @property
    def movable(self) -> tuple[int, ...]:
        """The numbers of statements whose tolerances can change the result.

        Statements that cost nothing are left out, and so are those that fit with no tolerance.
        """
        return tuple(statement for statement in self._moving if statement not in self._beyond)

    def leave_out_unfitting(self) -> tuple[int, ...]:
        """Remove statements that do not fit with any tolerance, even if asked alone. Return their numbers."""
        widest = FACTORS[-1]
        dear = [one for one in self.movable if not self._fits_alone(one, widest)]
        self._beyond = frozenset(dear)
        return tuple(dear)

    def _fits_alone(self, statement: int, factor: Decimal) -> bool:
        places = [place for place, one in enumerate(self._all) if one.statement == statement]
        return self._stage.can_answer_all(
            [self._scale_question(place, factor) for place in places],
            {number: self._look_up_known(place, {statement: factor}) for number, place in enumerate(places)},
            counting=frozenset(range(len(places))),
        )

    def do_all_fit(self, found: RehearsedList) -> bool:
        """Return True if every question of a movable statement fits."""
        quotes, movable = zip(self._all, found.quotes, strict=True), frozenset(self.movable)
        return all(quote.fits for one, quote in quotes if one.statement in movable)

    def rehearse_exactly(self, tolerances: Mapping[int, str]) -> RehearsedList:
        """Rehearse the list as sessions would ask it, with these tolerances set before the statements."""
        return self._stage.rehearse_list(
            [
                self._plan_with_tolerance(one, tolerances[one.statement]) if one.statement in tolerances else wish
                for one, wish in zip(self._all, self._wishes, strict=True)
            ],
            {},
        )

    def write_tolerances(self, factors: Mapping[int, Decimal]) -> dict[int, str]:
        """Return the text of the new tolerance for each statement whose factor is not 1."""
        found: dict[int, str] = {}
        for one in self._all:
            factor = factors.get(one.statement, Decimal(1))
            if one.asked_question is not None and factor != 1 and one.statement not in found:
                found[one.statement] = _multiply_tolerances(one, self._service, factor)
        return found

    def find_factor(self) -> Decimal | None:
        """Return the smallest tried factor with which all questions fit, found by bisection, or None."""

        def fit(step: int) -> bool:
            return self._do_factors_fit(dict.fromkeys(self.movable, FACTORS[step]))

        low, high = (0, _WISH) if self._do_factors_fit({}) else (_WISH + 1, len(FACTORS) - 1)
        if high != _WISH and not fit(high):
            return None
        return FACTORS[_halve(low, high, fit)]

    def find_split(self, factor: Decimal) -> dict[int, Decimal]:
        """Return a factor for each statement, with the smallest product among the tried candidates.

        `factor` is known to fit if all statements get it.
        """
        alike = dict.fromkeys(self.movable, factor)
        candidates = [one for one in (alike, self._find_equal_prices(alike)) if one is not None]
        return self._lower_factors(min(candidates, key=_sum_logarithms))

    def _find_equal_prices(self, alike: Mapping[int, Decimal]) -> dict[int, Decimal] | None:
        """Return factors with which each expensive question costs about the same price, the highest one that fits.

        Return None if no tried price fits.
        """
        costs: dict[int, float] = {}
        for one, wish in zip(self._all, self._wishes, strict=True):
            if one.statement in alike:
                cost = float("inf") if isinstance(wish, KeyholeError) else wish[1].worst_case_epsilon
                costs[one.statement] = max(costs.get(one.statement, 0.0), cost)
        known = [cost for cost in costs.values() if 0 < cost < float("inf")]
        if len(known) < len(costs) or not known:
            return None

        def find_factors(price: float) -> dict[int, Decimal]:
            return {statement: _round_factor_up(max(1.0, cost / price)) for statement, cost in costs.items()}

        low, high = log(min(known) / float(FACTORS[-1])), log(max(known))
        found: dict[int, Decimal] | None = None
        for _ in range(_PRICES):
            middle = (low + high) / 2
            tried = find_factors(exp(middle))
            if self._do_factors_fit(tried):
                low, found = middle, tried
            else:
                high = middle
        return found

    def _lower_factors(self, factors: Mapping[int, Decimal]) -> dict[int, Decimal]:
        """Lower each factor as far as all questions still fit, the largest first. The given factors fit."""
        found = dict(factors)
        for statement in sorted(found, key=lambda one: found[one], reverse=True):
            if found[statement] == 1 or self._try_factor(found, statement, Decimal(1)):
                continue
            low, high = _WISH, FACTORS.index(found[statement])
            for _ in range(_NEARER):
                middle = (low + high) // 2
                if middle in (low, high):
                    break
                low, high = (low, middle) if self._try_factor(found, statement, FACTORS[middle]) else (middle, high)
        return found

    def _try_factor(self, factors: dict[int, Decimal], statement: int, factor: Decimal) -> bool:
        """Set the factor of one statement if all questions still fit. Return True if it was set."""
        if not self._do_factors_fit({**factors, statement: factor}):
            return False
        factors[statement] = factor
        return True

    def _do_factors_fit(self, factors: Mapping[int, Decimal]) -> bool:
        """Return True if all questions of movable statements fit with these factors."""
        self._check_time()
        if all(factor == 1 for factor in factors.values()):
            return self.do_all_fit(self.wished)
        places, movable = range(len(self._all)), frozenset(self.movable)
        return self._stage.can_answer_all(
            (self._scale_question(place, factors.get(self._all[place].statement, Decimal(1))) for place in places),
            {place: self._look_up_known(place, factors) for place in places},
            counting=frozenset(place for place in places if self._all[place].statement in movable),
        )

    def _look_up_known(self, place: int, factors: Mapping[int, Decimal]) -> KnownQuestion | None:
        """Return a question's stored noise and answer from the ledger. Each question is looked up only once.

        Stored noise does not depend on the tolerance. A stored answer counts only if the tolerance is unchanged.
        """
        wish = self._wishes[place]
        if isinstance(wish, KeyholeError) or not wish[1].reads_data:
            return None
        if place not in self._known:
            self._known[place] = self._stage.find_known(make_current_claim(self._service, wish[1], wish[0]))
        wished = factors.get(self._all[place].statement, Decimal(1)) == 1
        return self._known[place] if wished else replace(self._known[place], stored=None)

    def _scale_question(self, place: int, factor: Decimal) -> Question:
        """Return a question with its tolerances multiplied by a factor. Only the calibration changes, not the SQL."""
        wish, one = self._wishes[place], self._all[place]
        if factor == 1 or one.asked_question is None or one.statement not in self.movable:
            return wish
        if (place, factor) not in self._plans:
            self._plans[place, factor] = self._calibrate(one, wish, factor)
        return self._plans[place, factor]

    def _plan_with_tolerance(self, one: ListedQuestion, tolerance: str | None) -> Question:
        self._check_time()
        return _plan_with_tolerance(self._service, one, tolerance)

    def _check_time(self) -> None:
        """Raise KH430 if planning has taken too long. Call this before each slow step."""
        if self._longest_ms is not None and time.monotonic() - self._began >= self._longest_ms / 1000:
            raise KeyholeError(
                "KH430",
                "the list takes too long to plan",
                detail=f"One list may take {self._longest_ms / 1000:g} s, since it takes the processor from answers.",
                hint="Plan fewer questions at once, or with fewer conditions; or ask the owner to run keyhole plan.",
            )

    def _calibrate(self, one: ListedQuestion, wish: Question, factor: Decimal) -> Question:
        self._check_time()
        tolerance = _multiply_tolerances(one, self._service, factor)
        if isinstance(wish, KeyholeError):
            return self._plan_with_tolerance(one, tolerance)
        asked, plan = wish
        catalog = self._service.catalog
        try:
            wider = replace(asked.read_accuracy(catalog), tolerance=tolerance)
            reduced, *_ = reduce_question(asked.read_question(catalog, wider))
            calibration, sharing = choose_calibration(reduced)
            reduced, ranking = add_common_sums(reduced, calibration), choose_ranking(reduced)
        except KeyholeError as refusal:
            return refusal
        except Unachievable:
            return self._plan_with_tolerance(one, tolerance)
        fingerprint = f"{plan.fingerprint} {tolerance}"  # another question than the wish
        made = replace(
            plan, question=reduced, calibration=calibration, sharing=sharing, ranking=ranking, fingerprint=fingerprint
        )
        return asked, made


def _plan_with_tolerance(service: Service, one: ListedQuestion, tolerance: str | None) -> Question:
    """Plan a listed question as a session would ask it. A given `tolerance` replaces the question's own."""
    if one.asked_question is None:
        assert one.refusal is not None, "what is not asked is refused"
        return one.refusal
    asked = one.asked_question
    if tolerance is not None:
        asked = replace(asked, settings={**asked.settings, "keyhole.tolerance": tolerance})
    try:
        return asked, pipeline.plan_asked_question(service, asked)
    except KeyholeError as refusal:
        return refusal.shift_position(offset=one.offset)


def _multiply_tolerances(one: ListedQuestion, service: Service, factor: Decimal) -> str:
    """Return a question's tolerances, multiplied by a factor, as text for the setting."""
    assert one.asked_question is not None, "a question that was read"
    return widen_tolerances(one.asked_question.read_accuracy(service.catalog).tolerance, factor)


def _round_factor_up(factor: float) -> Decimal:
    return next((known for known in FACTORS[_WISH:] if float(known) >= factor), FACTORS[-1])


def _halve(low: int, high: int, fits: Callable[[int], bool]) -> int:
    """Return the first step from `low` on that fits, by bisection. The step `high` is known to fit."""
    while low < high:
        middle = (low + high) // 2
        if fits(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _sum_logarithms(factors: Mapping[int, Decimal]) -> float:
    return sum(log(float(factor)) for factor in factors.values())
