"""The reuse of earlier questions' noise: find stored noise, plan a question on it, and store what a run adds.

If the ledger has noisy values of a question's functionals, the shared balances pay only for additional values, or
nothing. The analyst's own balances are charged in full, no matter who paid before. Only the ledger and the public data
version decide if noise is reused, never the noisy values. So the data is read unless all needed values are publicly
known to exist. If analysts have caps, a level that only some keys may have reached counts as reached.

References: docs/proofs/reuse.md, docs/decisions/0010-reuse.md.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from accountant.charges import NANO, Amounts, PathContinuation, PathState, StoredPath, is_lasting
from accountant.errors import LedgerError
from mechanisms.formula import Integers
from mechanisms.keyhole.noise_continuation import (
    CONTINUABLE,
    Continuation,
    NoisyParts,
    decide_on_known_values,
    decide_on_refined_paths,
    decide_with_all_revealed,
    plan_on_paths,
)
from mechanisms.protocol import Epsilons, FunctionalTest, Noise, NoisePath, Outcome
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_losses
from mechanisms.threshold.one_shot import round_up_to_float
from planner.explain.balances import SharedNoise
from planner.functionals.per_key_offsets import subtract_offsets
from planner.plan.question_identity import identify_paths, list_noisy_parts
from planner.question.plan import Plan
from planner.statements import settings
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import Claim, count_losses_in_cell, find_largest_amounts, find_worst_amounts
from proxy.pipeline.key_paths import MOST_VALUES, KeyPath, UnknownPath, from_bytes

_MOST_IN_FULL = 2
"""How much more of its own cap an analyst may lose to spare everybody's: no more than asking twice again."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredNoise:
    """The stored noise for a question's functionals.

    `names` has the name of each functional's noise path, in order. A name is None if no other question could use the
    path. For functionals that are computed from several groups, the paths are those of their sums. `stored` maps a name
    to the stored path.
    """

    names: tuple[str | None, ...]
    stored: Mapping[str, tuple[StoredPath, KeyPath]]


@dataclass(frozen=True, slots=True, eq=False)
class QuestionOnPaths:
    """A question planned on stored noise paths.

    `claim` has the plan on these paths, and the cost to the analyst, who pays for all values that are read.
    `claim.charge.path_continuation` is the cost to the shared balances.

    `paths` maps a functional to its continued path, and `key_places` to the indices of the question's keys on that
    path. `earlier_questions` counts the questions that drew or read the noise. `are_paths_available` is false while
    another question continues one of the paths, or if it crashed while doing so. `is_revealed` is True if all values
    that the question could read are already revealed, whatever the data, and if they cost its analyst not much more
    than new noise. `new_noise_cost` is the question's cost with new noise.
    """

    claim: Claim
    continuation: Continuation
    paths: Mapping[int, KeyPath]
    key_places: Mapping[int, Integers]
    earlier_questions: int
    are_paths_available: bool
    is_revealed: bool
    new_noise_cost: Amounts

    @property
    def shared_cost(self) -> Amounts:
        """The largest cost to the shared balances, as far as the analyst may know it."""
        charge = self.claim.charge
        return charge.known_amounts if self.claim.limits.separates_analysts else charge.shared_amounts

    @property
    def is_continued(self) -> bool:
        """Return True if the question refines the stored noise, and False if it draws new noise.

        The choice follows from questions and reservations, never from revealed values. If new noise were drawn only
        when the known values leave a question open, the error rates would not hold for both kinds of answers together.
        The public cost to everybody must be less than with new noise. If analysts have caps, the full cost to the
        analyst must be at most `_MOST_IN_FULL` times that with new noise. It must not exceed the cap on one question.
        """
        charge, limits = self.claim.charge, self.claim.limits
        known, own, new = charge.known_amounts, charge.own_amounts, self.new_noise_cost
        cheaper = known.epsilon_nano < new.epsilon_nano and known.unit_epsilon_nano <= new.unit_epsilon_nano
        in_full = _is_own_cost_moderate(self.claim, new)
        allowed = limits.per_query_nano is None or own.epsilon_nano <= limits.per_query_nano
        return self.are_paths_available and cheaper and in_full and allowed

    @property
    def path_states(self) -> tuple[PathState, ...]:
        """The states of the continued paths in the ledger, when they were looked up."""
        continuing = self.claim.charge.path_continuation
        return () if continuing is None else continuing.paths

    @property
    def reading_claim(self) -> Claim:
        """The claim for reading values that are already revealed. It charges the analyst's own balances alone."""
        return replace(self.claim, charge=replace(self.claim.charge, shared=False, path_continuation=None))

    def describe_noise(self, *, is_revealed: bool, fits: bool = True) -> SharedNoise:
        """Return a description of the shared noise for EXPLAIN and the NOTICE.

        `is_revealed` means that all values of the question are already revealed, so no data is read.
        """
        return SharedNoise(
            earlier_questions=self.earlier_questions,
            shared_cost=0.0
            if is_revealed
            else self.shared_cost.epsilon_nano / count_losses_in_cell(self.claim.plan) / NANO,
            own_cost=self.claim.plan.worst_case_epsilon,
            is_affordable=fits,
        )


def find_earlier_noise(service: Service, claim: Claim) -> tuple[StoredNoise, QuestionOnPaths | None]:
    """Return the stored noise for a question's functionals, and the question planned on that noise.

    The second result is None if no noise is usable, or if its analyst wants new noise. Raise KH502 if the ledger is
    not available.
    """
    memory = find_stored_noise(service, claim)
    return memory, plan_as_wanted(claim, memory)


def plan_as_wanted(claim: Claim, memory: StoredNoise) -> QuestionOnPaths | None:
    """Return the question planned on stored noise. Return None if none is usable, or its analyst wants new noise."""
    return plan_on_stored_noise(claim, memory, is_wanted=settings.allows_reuse(claim.asked.settings))


def find_stored_noise(service: Service, claim: Claim) -> StoredNoise:
    """Look up the stored noise for a question's functionals on its data version. A ranking has none.

    Raise KH502 if the ledger is not available.
    """
    names = name_paths(service, claim)
    if not any(names):
        return StoredNoise(names, {})
    try:
        found = service.ledger.find_paths([name for name in names if name is not None], claim.version)
    except LedgerError:
        raise report_unavailable_ledger() from None
    return unpack_noise(names, found)


def name_paths(service: Service, claim: Claim) -> tuple[str | None, ...]:
    """Return the names of the noise paths of a question's functionals. A ranking has none."""
    plan = claim.plan
    if plan.ranking is not None or plan.calibration.mechanism not in CONTINUABLE or not is_lasting(claim.version):
        return (None,) * len(list_noisy_parts(plan.question))
    return identify_paths(plan.question, digest=service.catalog.digest)


def unpack_noise(names: tuple[str | None, ...], found: Mapping[str, StoredPath]) -> StoredNoise:
    """Return the noise that the ledger has found under these names. Paths in an unknown format are left out."""
    known: dict[str, tuple[StoredPath, KeyPath]] = {}
    for identity, stored in found.items():
        with suppress(UnknownPath):
            known[identity] = (stored, from_bytes(stored.body))
    return StoredNoise(names, known)


def select_noise_for_plan(memory: StoredNoise, plan: Plan, service: Service) -> StoredNoise:
    """Return the stored noise that a plan with another accuracy can use. Paths that were not looked up are missing."""
    return replace(memory, names=identify_paths(plan.question, digest=service.catalog.digest))


def plan_on_stored_noise(claim: Claim, memory: StoredNoise, *, is_wanted: bool) -> QuestionOnPaths | None:
    """Plan a question on stored noise. Return None if no noise is usable, or its analyst wants new noise.

    `claim` is the claim of the question with new noise.
    """
    if not (is_wanted and memory.stored):
        return None
    plan, names, stored = claim.plan, memory.names, memory.stored
    question = plan.question
    here: dict[int, Integers] = {}
    seen: list[NoisePath | None] = [None] * len(names)
    for functional, name in enumerate(names):
        if name is not None and name in stored:
            places = stored[name][1].find_places(question.keys)
            if places is not None:
                here[functional] = places
                seen[functional] = stored[name][1].select_question(question, functional, places)
    continuation = plan_on_paths(plan.calibration, tuple(seen)) if here else None
    if continuation is None:
        return None
    used = {f: names[f] or "" for f, path in enumerate(continuation.paths) if path is not None}
    paths = {functional: stored[name][1] for functional, name in used.items()}
    here = {functional: here[functional] for functional in used}
    on_paths = replace(plan, calibration=continuation.calibration)
    own = find_worst_amounts(on_paths)
    states = [stored[name][0] for name in used.values()]
    continuing = PathContinuation(
        paths=tuple(sorted(each.state for each in states)),
        shared_loss=find_largest_amounts(on_paths, continuation.fresh_by_key),
        public_loss=find_largest_amounts(on_paths, _find_unreserved_loss(continuation, paths, here)),
    )
    charge = replace(
        claim.charge.without_curves(),
        epsilon_nano=own.epsilon_nano,
        unit_epsilon_nano=own.unit_epsilon_nano,
        path_continuation=continuing,
    )
    charged = replace(claim, plan=on_paths, charge=charge)
    moderate = _is_own_cost_moderate(charged, claim.charge.own_amounts)
    return QuestionOnPaths(
        claim=charged,
        continuation=continuation,
        paths=paths,
        key_places=here,
        earlier_questions=max(each.questions for each in states),
        are_paths_available=not any(each.is_taken for each in states),
        new_noise_cost=claim.charge.own_amounts,
        is_revealed=moderate and _is_known(continuation, paths, here),
    )


def _is_own_cost_moderate(claim: Claim, new: Amounts) -> bool:
    """Return True if stored noise costs its analyst at most `_MOST_IN_FULL` times `new`, or if no analyst has a cap."""
    own = claim.charge.own_amounts
    return not claim.limits.separates_analysts or own.epsilon_nano <= _MOST_IN_FULL * new.epsilon_nano


def decide_from_known_values(on_paths: QuestionOnPaths | None, *, noise: Noise) -> Outcome | None:
    """Decide a question from stored values, if it is public that all of them exist. Otherwise return None.

    If some values may be missing, the data is read, even if the stored values would suffice. Otherwise later questions
    would see rates, reservations and held paths that depend on noisy values.
    """
    if on_paths is None or not on_paths.is_revealed:
        return None
    return decide_on_known_values(on_paths.continuation, noise=noise)


def decide_question(
    plan: Plan, on_paths: QuestionOnPaths | None, values: Integers, *, is_drawn_at_once: bool, noise: Noise
) -> Outcome:
    """Decide a reserved question from its true aggregates: on noise paths, or with new noise if `on_paths` is None.

    `is_drawn_at_once` means that all of its noise is revealed, as a charge by Rényi curve assumes.
    """
    decided = len(plan.question.common or plan.question.functionals)
    values = subtract_offsets(plan.question, values[:decided])
    kept = on_paths is not None or _may_keep_paths(plan)
    if is_drawn_at_once and plan.calibration.mechanism in CONTINUABLE:
        assert on_paths is None, "what is charged in Rényi divergences continues nothing"
        return decide_with_all_revealed(plan.calibration, values, noise=noise, keeps_paths=kept)
    if on_paths is not None:
        return decide_on_refined_paths(
            on_paths.continuation, values, noise=noise, reads_known_first=not on_paths.claim.limits.separates_analysts
        )
    mechanism = CONTINUABLE.get(plan.calibration.mechanism)
    if mechanism is not None:
        return mechanism.decide(plan.calibration, values, noise=noise, keeps_paths=kept)
    return MECHANISMS[plan.calibration.mechanism].decide(plan.calibration, values, noise=noise)


def _may_keep_paths(plan: Plan) -> bool:
    """Return True if some functional's path is small enough to be stored.

    If none is, the run keeps no paths in memory.
    """
    fewest = min((len(test.looks) + 1 for test in plan.calibration.tests if test.rate), default=1)
    return plan.question.keys.size * fewest <= MOST_VALUES


def list_paths_to_store(
    plan: Plan, on_paths: QuestionOnPaths | None, outcome: Outcome, memory: StoredNoise, *, is_drawn_at_once: bool
) -> Mapping[str, bytes]:
    """Return the noise paths that the ledger stores after a run of `plan`, by name.

    A continued path is stored whole, with the keys that the question did not ask about. A new path is stored if the
    ledger has none. It is also stored if it reaches the stored path's rate and has all of its keys and more. A path
    that was drawn at once also replaces a path that reaches a lower rate and can no longer be continued.
    """
    kept: dict[str, bytes] = {}
    for functional, path in enumerate(outcome.paths):
        name = memory.names[functional]
        if path is None or name is None:
            continue
        body = make_path_to_store(
            plan, on_paths, functional, path, memory.stored.get(name), is_drawn_at_once=is_drawn_at_once
        )
        packed = None if body is None else body.to_bytes()
        if packed is not None:
            kept[name] = packed
    return kept


def make_path_to_store(
    plan: Plan,
    on_paths: QuestionOnPaths | None,
    functional: int,
    path: NoisePath,
    before: tuple[StoredPath, KeyPath] | None,
    *,
    is_drawn_at_once: bool,
) -> KeyPath | None:
    """Return the path of one functional to store after a run. Return None if the stored path `before` stays.

    `path` is the path of the run of `plan`. The choice follows from rates and keys, never from values.
    `is_drawn_at_once` means that the whole path was revealed.
    """
    parts = NoisyParts.from_calibration(plan.calibration)
    test, all_told = parts.tests[functional], is_drawn_at_once or parts.reveals_all
    if on_paths is not None and functional in on_paths.paths:
        return on_paths.paths[functional].continue_with(
            plan.question, functional, on_paths.key_places[functional], path, top=test.rate, is_all_revealed=all_told
        )
    drawn = KeyPath.from_run(plan.question, functional, path, top=test.rate, is_all_revealed=all_told)
    if before is None:
        return drawn
    old = before[1]
    more_keys = drawn.reserved.size > old.reserved.size and path.rates[-1] >= old.path.rates[-1]
    finer = is_drawn_at_once and before[0].is_taken and path.rates[-1] > old.path.rates[-1]
    return drawn if drawn.covers(old) and (more_keys or finer) else None


def _find_unreserved_loss(
    continuation: Continuation, paths: Mapping[int, KeyPath], here: Mapping[int, Integers]
) -> Epsilons:
    """Return, for each key, the loss of those levels that no earlier question has reserved.

    This loss is public, as it does not depend on which levels were revealed.
    """
    parts = continuation.parts
    keys = next(iter(here.values())).size
    left: dict[int, Epsilons] = {}
    for functional, test in enumerate(parts.tests):
        if functional in paths:
            reserved = paths[functional].reserved[here[functional]]
            left[functional] = _find_loss_above(test, paths[functional].path, parts.sensitivities[functional])[reserved]
        elif test.rate:
            left[functional] = np.full(keys, test.epsilon)
    by_key = compute_joint_losses(left, parts.exposures, keys=keys)
    return np.minimum(by_key, continuation.calibration.worst_case_epsilon)


def _find_loss_above(test: FunctionalTest, path: NoisePath, sensitivity: int) -> Epsilons:
    """Return an array: for each number of known levels, the epsilon of all later levels up to the test's last rate.

    Values are rounded up.
    """
    return np.array(
        [round_up_to_float(max(test.rate - rate, 0 * rate) * sensitivity) for rate in (0 * test.rate, *path.rates)]
    )


def _is_known(continuation: Continuation, paths: Mapping[int, KeyPath], here: Mapping[int, Integers]) -> bool:
    """Return True if every value that the question could read is publicly known to be revealed."""
    tests = continuation.parts.tests
    if any(test.rate and functional not in paths for functional, test in enumerate(tests)):
        return False
    return all(
        tests[functional].rate in path.path.rates
        and int(path.revealed[here[functional]].min()) > path.path.rates.index(tests[functional].rate)
        for functional, path in paths.items()
    )
