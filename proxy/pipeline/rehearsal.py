"""The rehearsal of a list of questions: the charge of each, if they were asked one after the other. Nothing is charged.

Each question goes through the stages of `proxy/pipeline/stages.py` up to its reservation, on a copy of the balances. It
uses a stored answer, revealed noise, continued noise or new noise. Its plan alone decides the noise paths that it
leaves for later questions, since rates and reservations are public.

Guarantee: questions that fit here, asked in this order, are answered as long as nobody else asks, the owner approves
those that need it, and policy and data version stay. At its worst, each is charged to its analyst exactly the quoted
amount, and to everybody at most the quoted amount (docs/proofs/accounting.md, theorem 9). If the policy has a `delta`,
this is an expectation: the balances at a question's time decide if units are charged by its curve.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from accountant.balances.rehearsal import Rehearsal
from accountant.charges import (
    MOST_CAP_NANO,
    NOTHING,
    ROW_UNIT,
    Amounts,
    Charge,
    PathState,
    StoredAnswer,
    StoredPath,
    is_lasting,
)
from accountant.errors import LedgerError, OverBudget
from accountant.limits import BalanceLeft, Limits
from mechanisms.keyhole.noise_continuation import NoisyParts
from mechanisms.keyhole.noisy_values import list_levels
from mechanisms.protocol import Levels, NoisePath
from planner.errors import KeyholeError
from planner.question.plan import Plan
from planner.statements import settings
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.claim import Claim, make_current_claim
from proxy.pipeline.key_paths import MOST_VALUES, KeyPath
from proxy.pipeline.messages import Asked
from proxy.pipeline.noise_reuse import QuestionOnPaths, StoredNoise

Question: TypeAlias = tuple[Asked, Plan] | KeyholeError
"""A question with its plan, or what it is refused with."""


class DecisionBasis(StrEnum):
    """The source from which a question is decided, such as a stored answer or new noise."""

    NOTHING = "the question itself"
    STORED = "its stored answer"
    REPEATED = "the same, asked above"
    KNOWN = "noise known to all"
    CONTINUED = "earlier noise, refined"
    ANEW = "noise of its own"


@dataclass(frozen=True, slots=True, eq=False)
class Quote:
    """The price of one question of a list.

    `analyst_cost` is the charge to its analyst. `shared_cost` is the largest charge to the shared balances.
    `short_balance` is the balance that does not cover the question, or None if it fits. If `is_list_budget`, that
    balance is the list's own budget. If `needs_approval`, the owner has to approve the question. `refusal` is set if it
    could not be planned.
    """

    plan: Plan | None
    basis: DecisionBasis = DecisionBasis.NOTHING
    analyst_cost: Amounts = NOTHING
    shared_cost: Amounts = NOTHING
    charge: Charge | None = None
    short_balance: OverBudget | None = None
    is_list_budget: bool = False
    needs_approval: bool = False
    refusal: KeyholeError | None = None

    @property
    def fits(self) -> bool:
        """Return True if the question would be answered."""
        return self.refusal is None and self.short_balance is None


@dataclass(frozen=True, slots=True, eq=False)
class RehearsedList:
    """The quotes of a whole list.

    `total` is the largest charge to one group and to one unit on the shared balances, for all fitting questions
    together. `balances_left` has the tightest balance of each kind, with what remains of it afterwards.
    """

    quotes: tuple[Quote, ...]
    total: Amounts
    balances_left: tuple[BalanceLeft, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KnownQuestion:
    """The ledger's stored noise and stored answer for one question."""

    memory: StoredNoise
    stored: StoredAnswer | None


class Rehearsals:
    """A rehearsal of lists of questions on the balances at construction time.

    `most_nano` is the list's own budget: the largest loss that the list may add to one group, in 1e-9 epsilon. None
    means that only the caps limit it.
    """

    def __init__(self, service: Service, tables: frozenset[str], *, most_nano: int | None) -> None:
        """Read the current balances from the ledger. Raise KH502 if the ledger is not available."""
        try:
            self._balances = service.ledger.begin_rehearsal(tables)
        except LedgerError:
            raise report_unavailable_ledger() from None
        self.service = service
        self._most = Limits(
            per_predicate_nano=MOST_CAP_NANO if most_nano is None else most_nano,
            per_unit_nano=MOST_CAP_NANO,
            per_query_nano=None,
            analyst_per_predicate_nano=None,
            analyst_per_unit_nano=None,
            separates_analysts=False,
        )

    def find_known(self, claim: Claim) -> KnownQuestion:
        """Look up the stored noise and answer of a question in the ledger.

        Raise KH502 if the ledger is not available.
        """
        memory = reuse.find_stored_noise(self.service, claim)
        name, fingerprint = claim.asked.analyst.name, claim.charge.question
        try:
            stored = self.service.ledger.find_answer(fingerprint, claim.version, analyst=name)
        except LedgerError:
            raise report_unavailable_ledger() from None
        return KnownQuestion(memory, stored)

    def rehearse_list(self, questions: Sequence[Question], known: Mapping[int, KnownQuestion | None]) -> RehearsedList:
        """Quote the questions in their order. One that does not fit is not charged.

        Raise KH502 if the ledger is not available. `known` maps a question's index to the result of `find_known`.
        Missing results are looked up.
        """
        run = self._begin()
        return RehearsedList(
            tuple(self._ask(run, one, known.get(place)) for place, one in enumerate(questions)), run.total, run.left
        )

    def quote_each(self, questions: Iterable[Question]) -> Iterator[Quote]:
        """Yield the same quotes as `rehearse_list`, one by one. Raise KH502 if the ledger is not available."""
        run = self._begin()
        for one in questions:
            yield self._ask(run, one, None)

    def can_answer_all(
        self, questions: Iterable[Question], known: Mapping[int, KnownQuestion | None], *, counting: frozenset[int]
    ) -> bool:
        """Return True if all questions with an index in `counting` would be answered.

        Raise KH502 if the ledger is not available. Questions are rehearsed as in `rehearse_list`, up to the first of
        them that would not be answered.
        """
        run = self._begin()
        return all(
            self._ask(run, one, known.get(place)).fits or place not in counting for place, one in enumerate(questions)
        )

    def _begin(self) -> "_Run":
        nothing = Rehearsal.with_empty_balances(self._balances.tables, knowledge=self._balances.knowledge)
        return _Run(self._balances.copy(), nothing, self._most)

    def _ask(self, run: "_Run", question: Question, known: KnownQuestion | None) -> Quote:
        if isinstance(question, KeyholeError):
            return Quote(plan=None, refusal=question)
        asked, plan = question
        if not plan.reads_data:
            return Quote(plan=plan)
        try:
            claim = make_current_claim(self.service, plan, asked)
        except KeyholeError as refusal:
            return Quote(plan=plan, refusal=refusal)
        found = known or self.find_known(claim)
        return run.ask(claim, replace(found, memory=reuse.select_noise_for_plan(found.memory, plan, self.service)))


@dataclass(frozen=True, slots=True, eq=False)
class _PathBounds:
    """The bounds of a noise path after a rehearsed question.

    In `lowest` each key has reached only the level that every run reaches. In `highest` each key has reached its
    reserved level.
    """

    stored_path: StoredPath
    lowest: KeyPath
    highest: KeyPath


@dataclass(slots=True, eq=False)
class _Run:
    """The rehearsal of one list. `balances` includes the ledger's earlier charges, and `unspent_balances` does not."""

    balances: Rehearsal
    unspent_balances: Rehearsal
    most: Limits
    paths: dict[tuple[str, str], _PathBounds | None] = field(default_factory=dict)
    answered_questions: set[tuple[str, str]] = field(default_factory=set)
    charges: list[tuple[Charge, Limits]] = field(default_factory=list)

    def ask(self, claim: Claim, known: KnownQuestion) -> Quote:
        """Rehearse the next question, and return its quote."""
        asked = (claim.charge.question, claim.version)
        if asked in self.answered_questions:
            return Quote(claim.plan, DecisionBasis.REPEATED)
        quote = (
            self._quote_stored_answer(claim, known.stored)
            if known.stored is not None
            else self._ask(claim, known.memory)
        )
        if quote.fits and is_lasting(claim.version):
            self.answered_questions.add(asked)
        return quote

    def _quote_stored_answer(self, claim: Claim, stored: StoredAnswer) -> Quote:
        if stored.is_held:
            return Quote(claim.plan, DecisionBasis.STORED)
        charge = stored.make_reading_charge(claim.asked.analyst.name)
        return self._charge(claim, charge, DecisionBasis.STORED, everybody=NOTHING)

    def _ask(self, claim: Claim, memory: StoredNoise) -> Quote:
        low = self._recall_noise(memory, claim.version, is_lowest=True)
        wanted = settings.allows_reuse(claim.asked.settings)
        on_paths = reuse.plan_on_stored_noise(claim, low, is_wanted=wanted)
        if on_paths is not None and on_paths.is_revealed:
            charge = on_paths.reading_claim.charge
            quote = self._quote(on_paths.reading_claim, charge, DecisionBasis.KNOWN, everybody=NOTHING)
            if quote.fits and not quote.needs_approval:
                self._pay(charge, claim.limits, quote, reading=on_paths.path_states)
                return quote
        if on_paths is not None and on_paths.is_continued:
            quote = self._continue(claim, memory, on_paths, low)
            if quote.fits or quote.is_list_budget or not claim.limits.separates_analysts:
                return quote
        quote = self._quote(claim, claim.charge, DecisionBasis.ANEW, everybody=claim.charge.own_amounts)
        if quote.fits:
            in_full = self.balances.choose_form(claim.charge, claim.limits).is_by_curve
            paths = _list_stored_paths(claim.plan, None, low, low, is_drawn_at_once=in_full)
            self._pay(claim.charge, claim.limits, quote, paths=paths, version=claim.version, is_taken=in_full)
        return quote

    def _continue(self, claim: Claim, memory: StoredNoise, on_paths: QuestionOnPaths, low: StoredNoise) -> Quote:
        """Rehearse a question that continues earlier noise.

        Its cost to the shared balances is the loss of newly reserved levels. Until it is committed, the ledger charges
        more: all levels that are left to reveal at a key that reached only the lowest level.
        """
        high = self._recall_noise(memory, claim.version, is_lowest=False)
        charged = reuse.plan_on_stored_noise(claim, high, is_wanted=True)
        assert charged is not None, "whether paths are of use follows from their rates"
        charge, most = on_paths.claim.charge, on_paths.claim.charge.shared_amounts
        fresh = charge.known_amounts if claim.limits.separates_analysts else charged.claim.charge.shared_amounts
        quote = self._quote(on_paths.claim, charge, DecisionBasis.CONTINUED, everybody=fresh)
        if quote.fits:
            # units and tables add up each question's largest loss, at whichever keys: that of those that had stopped
            # early may come on top
            at_most = (
                most
                if claim.charge.family.unit == ROW_UNIT and _has_table_cap(claim.limits)
                else Amounts(fresh.epsilon_nano, most.unit_epsilon_nano)
            )
            paths = _list_stored_paths(on_paths.claim.plan, (on_paths, charged), low, high, is_drawn_at_once=False)
            self._pay(charge, claim.limits, quote, fresh=at_most, paths=paths, version=claim.version)
        return quote

    def _charge(self, claim: Claim, charge: Charge, decided: DecisionBasis, *, everybody: Amounts) -> Quote:
        quote = self._quote(claim, charge, decided, everybody=everybody)
        if quote.fits:
            self._pay(charge, claim.limits, quote)
        return quote

    def _quote(self, claim: Claim, charge: Charge, decided: DecisionBasis, *, everybody: Amounts) -> Quote:
        short = self.balances.find_shortage(charge, claim.limits)
        of_list = short is None and everybody != NOTHING
        if of_list:
            short = self.unspent_balances.find_shortage(_make_new_noise_charge(charge, everybody), self.most)
        above = claim.limits.approval_above_nano
        return Quote(
            plan=claim.plan,
            basis=decided,
            analyst_cost=charge.own_amounts,
            shared_cost=everybody,
            charge=charge,
            short_balance=short,
            is_list_budget=of_list and short is not None,
            needs_approval=above is not None
            and charge.epsilon_nano > above
            and not self.balances.is_approved(charge.question),
        )

    def _pay(
        self,
        charge: Charge,
        limits: Limits,
        quote: Quote,
        *,
        fresh: Amounts | None = None,
        paths: Mapping[str, tuple[KeyPath, KeyPath] | None] | None = None,
        version: str = "",
        reading: tuple[PathState, ...] = (),
        is_taken: bool = False,
    ) -> None:
        left = paths or {}
        leaving = [name for name, path in left.items() if path is not None]
        reservation = self.balances.spend_charge(charge, limits, fresh=fresh, leaving=leaving, reading=reading)
        if quote.shared_cost != NOTHING:
            self.unspent_balances.spend_charge(_make_new_noise_charge(charge, quote.shared_cost), self.most)
        self.charges.append((charge, limits))
        for name, path in left.items():
            before = self.paths.get((name, version))
            questions = 1 if before is None else before.stored_path.questions + 1
            state = PathState(name, version, reservation)
            self.paths[name, version] = (
                None
                if path is None
                else _PathBounds(StoredPath(name, state, b"", is_taken=is_taken, questions=questions), *path)
            )

    def _recall_noise(self, memory: StoredNoise, version: str, *, is_lowest: bool) -> StoredNoise:
        """Return the stored noise for a question's functionals, including noise of earlier questions in the list."""
        stored = dict(memory.stored)
        for name in memory.names:
            if name is not None and (name, version) in self.paths:
                left = self.paths[name, version]
                stored.pop(name, None)
                if left is not None:
                    stored[name] = (left.stored_path, left.lowest if is_lowest else left.highest)
        return replace(memory, stored=stored)

    @property
    def total(self) -> Amounts:
        """Return the total loss of one group and of one unit by all questions so far."""
        lost = [
            MOST_CAP_NANO
            - self.unspent_balances.find_headroom(_make_new_noise_charge(charge, NOTHING), _without_cap(self.most))
            .balances[0]
            .left_nano
            for charge, _ in self.charges
        ]
        return Amounts(max(lost, default=0), self.unspent_balances.unit_nano)

    @property
    def left(self) -> tuple[BalanceLeft, ...]:
        """The tightest balance of each kind, over all groups of the questions so far, with what remains of it."""
        found: dict[str, BalanceLeft] = {}
        for charge, limits in self.charges:
            for one in self.balances.find_headroom(replace(charge, path_continuation=None), limits).balances:
                known = found.get(one.scope)
                if known is None or one.left_nano < known.left_nano:
                    found[one.scope] = one
        return tuple(found.values())


def _has_table_cap(limits: Limits) -> bool:
    return limits.per_table_nano is not None or bool(limits.own_per_table_nano)


def _without_cap(limits: Limits) -> Limits:
    return replace(limits, per_predicate_nano=MOST_CAP_NANO)


def _make_new_noise_charge(charge: Charge, everybody: Amounts) -> Charge:
    """Return a charge of the same amounts to the shared balances that continues no path."""
    return replace(
        charge.without_curves(),
        epsilon_nano=everybody.epsilon_nano,
        unit_epsilon_nano=everybody.unit_epsilon_nano,
        shared=True,
        path_continuation=None,
    )


def _list_stored_paths(
    plan: Plan,
    on_paths: tuple[QuestionOnPaths, QuestionOnPaths] | None,
    low: StoredNoise,
    high: StoredNoise,
    *,
    is_drawn_at_once: bool,
) -> Mapping[str, tuple[KeyPath, KeyPath] | None]:
    """Return the paths that a run of `plan` would store, by name: each at its lowest, and as charged.

    The value is None for a continued path that has become too large to be stored, so the ledger removes it. This is
    `noise_reuse.list_paths_to_store` without a run.
    """
    left: dict[str, tuple[KeyPath, KeyPath] | None] = {}
    parts = NoisyParts.from_calibration(plan.calibration)
    all_told = is_drawn_at_once or parts.reveals_all
    size = plan.question.keys.size
    for functional, name in enumerate(low.names):
        test = parts.tests[functional]
        if name is None or not test.rate or test.block > 1:
            continue
        before = (None, None) if on_paths is None else tuple(one.continuation.paths[functional] for one in on_paths)
        known = () if before[0] is None else before[0].rates
        rates = (*known, *(rate for rate in list_levels(test) if rate not in known))
        top = rates.index(test.rate) + 1
        grown: list[KeyPath] = []
        for lowest, path, memory in ((True, before[0], low), (False, before[1], high)):
            reached: Levels = np.zeros(size, dtype=np.int8) if path is None else path.reached
            if all_told or not lowest:
                reached = np.maximum(reached, np.int8(top))
            values = np.broadcast_to(np.int64(0), (len(rates), size))
            mine = None if on_paths is None else on_paths[0 if lowest else 1]
            run = NoisePath(rates=rates, values=values, reached=reached)
            after = reuse.make_path_to_store(
                plan, mine, functional, run, memory.stored.get(name), is_drawn_at_once=is_drawn_at_once
            )
            if after is not None:
                grown.append(after)
        if not grown:
            continue
        if grown[0].path.values.size <= MOST_VALUES:
            left[name] = (grown[0], grown[1])
        elif before[0] is not None:
            left[name] = None
    return left
