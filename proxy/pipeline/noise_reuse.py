"""Questions on noise that earlier ones have left: looking it up, laying a plan on it, keeping what a run adds.

A question about functionals whose noisy values are in the store costs everybody the difference, and nothing where they
settle it; its analyst's own balances are charged in full, no matter who paid. The ledger and the public data version
alone decide if that is done, never the values: the data are read unless everybody knows that all values are there.
Where analysts have caps, levels that some keys may not have reached count as if they had.
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
    decide_in_full,
    decide_on_known_values,
    decide_on_refined_paths,
    lay_on_paths,
)
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.protocol import Epsilons, FunctionalTest, Noise, NoisePath, Outcome
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import compute_joint_losses
from mechanisms.threshold.one_shot import round_up_to_float
from planner.explain.balances import SharedNoise
from planner.functionals.per_key_offsets import subtract_offsets
from planner.plan.question_identity import path_identities
from planner.question.plan import Plan
from planner.statements import settings
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.claim import Claim, count_losses_in_cell, find_amounts, find_worst_amounts
from proxy.pipeline.key_paths import MOST_VALUES, KeyPath, UnknownPath, from_bytes

_MOST_IN_FULL = 2
"""How much more of its own cap an analyst may lose to spare everybody's: no more than asking twice again."""


@dataclass(frozen=True, slots=True, eq=False)
class NoiseMemory:
    """The ledger's knowledge of a question's functionals.

    It has their paths' names, in order (None: no path that another question could use), and the `stored` paths, by
    name.
    """

    names: tuple[str | None, ...]
    stored: Mapping[str, tuple[StoredPath, KeyPath]]


@dataclass(frozen=True, slots=True, eq=False)
class QuestionOnPaths:
    """A question laid on noise paths.

    `claim` is the question's as it runs there: its plan's calibration, what it costs its analyst (all that it reads),
    and what it costs everybody (`claim.charge.continuing`).

    `paths` has what is continued, by functional; `here` says, for each of them, where the question's keys are on it.
    `earlier` is how many questions drew or read that noise; `free` is false while another question continues some of
    it, or died doing so. `told`: everything that the question could read is already revealed, whatever the data. `anew`
    is the cost of noise of its own.
    """

    claim: Claim
    continuation: Continuation
    paths: Mapping[int, KeyPath]
    key_places: Mapping[int, Integers]
    earlier_questions: int
    are_paths_free: bool
    is_revealed: bool
    new_noise_cost: Amounts

    @property
    def shared_cost(self) -> Amounts:
        """The most that it costs the shared balances, as far as the asking analyst may know."""
        charge = self.claim.charge
        return charge.known_amounts if self.claim.limits.separates_analysts else charge.shared_amounts

    @property
    def is_continued(self) -> bool:
        """Return True to refine that noise instead of drawing it again.

        It follows from what was asked and reserved, never from what was revealed: were noise drawn again just where the
        values known so far leave a question open, the answers of both kinds together would be wrong too often. What
        everybody may know that it costs has to be less than asking again, and what its analyst is charged in full must
        not be far more (`_MOST_IN_FULL` times, where that counts), nor more than one question may cost.
        """
        charge, limits = self.claim.charge, self.claim.limits
        known, own, anew = charge.known_amounts, charge.own_amounts, self.new_noise_cost
        cheaper = known.epsilon_nano < anew.epsilon_nano and known.unit_epsilon_nano <= anew.unit_epsilon_nano
        in_full = not limits.separates_analysts or own.epsilon_nano <= _MOST_IN_FULL * anew.epsilon_nano
        allowed = limits.per_query_nano is None or own.epsilon_nano <= limits.per_query_nano
        return self.are_paths_free and cheaper and in_full and allowed

    @property
    def states(self) -> tuple[PathState, ...]:
        """The paths as they were found."""
        continuing = self.claim.charge.path_continuation
        return () if continuing is None else continuing.paths

    @property
    def reading_claim(self) -> Claim:
        """The claim of a question whose values are all told: the analyst's own balances alone."""
        return replace(self.claim, charge=replace(self.claim.charge, shared=False, path_continuation=None))

    def describe_noise(self, *, read: bool, fits: bool = True) -> SharedNoise:
        """Return the shared noise for EXPLAIN and the NOTICE.

        `read`: all values of the question are known, and the data are not read.
        """
        return SharedNoise(
            earlier_questions=self.earlier_questions,
            shared_cost=0.0 if read else self.shared_cost.epsilon_nano / count_losses_in_cell(self.claim.plan) / NANO,
            own_cost=self.claim.plan.worst_case_epsilon,
            is_affordable=fits,
        )


def find_earlier_noise(service: Service, claim: Claim) -> tuple[NoiseMemory, QuestionOnPaths | None]:
    """Return the ledger's noise of a question's functionals, and the question laid on it if its analyst wants that.

    Raises KH502.
    """
    memory = recall_paths(service, claim)
    return memory, lay_on_earlier_noise(claim, memory, wanted=settings.reuse(claim.asked.settings))


def recall_paths(service: Service, claim: Claim) -> NoiseMemory:
    """Return the noise paths of a question's functionals on its data version; a ranking has noise of its own.

    Raise KH502.
    """
    plan, version = claim.plan, claim.version
    if plan.ranking is not None or plan.calibration.mechanism not in CONTINUABLE or not is_lasting(version):
        return NoiseMemory((None,) * len(plan.question.functionals), {})
    names = path_identities(plan.question, digest=service.catalog.digest)
    try:
        found = service.ledger.find_paths([name for name in names if name is not None], version)
    except LedgerError:
        raise report_unavailable_ledger() from None
    known: dict[str, tuple[StoredPath, KeyPath]] = {}
    for identity, stored in found.items():
        with suppress(UnknownPath):
            known[identity] = (stored, from_bytes(stored.body))
    return NoiseMemory(names, known)


def recall_for(memory: NoiseMemory, plan: Plan, service: Service) -> NoiseMemory:
    """Return the memory for a plan that differs in accuracy alone. Values that only it would need count as unknown."""
    return replace(memory, names=path_identities(plan.question, digest=service.catalog.digest))


def lay_on_earlier_noise(claim: Claim, memory: NoiseMemory, *, wanted: bool) -> QuestionOnPaths | None:
    """Return the question on the remembered noise; None if none of it is of use, or its analyst wants new noise.

    `claim` is that of the question on noise of its own.
    """
    if not (wanted and memory.stored):
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
    continuation = lay_on_paths(plan.calibration, tuple(seen)) if here else None
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
        shared=find_amounts(on_paths, continuation.fresh_by_key),
        known=find_amounts(on_paths, _find_unreserved_loss(continuation, paths, here)),
    )
    charge = replace(
        claim.charge,
        epsilon_nano=own.epsilon_nano,
        unit_epsilon_nano=own.unit_epsilon_nano,
        path_continuation=continuing,
        renyi=None,
    )
    return QuestionOnPaths(
        claim=replace(claim, plan=on_paths, charge=charge),
        continuation=continuation,
        paths=paths,
        key_places=here,
        earlier_questions=max(each.questions for each in states),
        are_paths_free=not any(each.is_taken for each in states),
        new_noise_cost=claim.charge.own_amounts,
        is_revealed=_is_known(continuation, paths, here),
    )


def answer_from_known(on_paths: QuestionOnPaths | None, *, noise: Noise) -> Outcome | None:
    """Return the outcome on values that are all publicly known to be there; None if some may be missing.

    Whether the values known so far happen to settle a question is never asked before the data are read: they are noise,
    and what a later question finds (rates, reservations, a path that is held after a failure) would follow from them.
    """
    if on_paths is None or not on_paths.is_revealed:
        return None
    return decide_on_known_values(on_paths.continuation, noise=noise)


def decide(
    plan: Plan, on_paths: QuestionOnPaths | None, values: Integers, *, is_drawn_at_once: bool, noise: Noise
) -> Outcome:
    """Decide a question that was reserved on paths, or on noise of its own (None).

    `in_full`: all of its noise is revealed, as is charged in Rényi divergences.
    """
    decided = len(plan.question.common or plan.question.functionals)
    values = subtract_offsets(plan.question, values[:decided])
    kept = on_paths is not None or _may_keep_paths(plan)
    if is_drawn_at_once:
        assert on_paths is None, "what is charged in Rényi divergences continues nothing"
        return decide_in_full(plan.calibration, values, noise=noise, keeps_paths=kept)
    if on_paths is not None:
        return decide_on_refined_paths(
            on_paths.continuation, values, noise=noise, reads_known_first=not on_paths.claim.limits.separates_analysts
        
        )
    mechanism = CONTINUABLE.get(plan.calibration.mechanism)
    if mechanism is not None:
        return mechanism.decide(plan.calibration, values, noise=noise, keeps_paths=kept)
    return MECHANISMS[plan.calibration.mechanism].decide(plan.calibration, values, noise=noise)


def _may_keep_paths(plan: Plan) -> bool:
    """Return True if at least one functional has a path that is not too large to be kept.

    Otherwise none is held in memory.
    """
    fewest = min((len(test.looks) + 1 for test in plan.calibration.tests if test.rate), default=1)
    return plan.question.keys.size * fewest <= MOST_VALUES


def list_left_paths(
    plan: Plan, on_paths: QuestionOnPaths | None, outcome: Outcome, memory: NoiseMemory, *, is_drawn_at_once: bool
) -> Mapping[str, bytes]:
    """Return the noise paths of a run of `plan`, to be kept with its answer, by identity.

    A path that was continued is kept whole, with the keys that were not asked about. One that was drawn again is kept
    where there is none, or where it goes as far and has all keys of the one there and more. One that was drawn
    `in_full` is also kept in the place of one that is not continued any more and goes less far.
    """
    kept: dict[str, bytes] = {}
    for functional, path in enumerate(outcome.paths):
        name = memory.names[functional]
        if path is None or name is None:
            continue
        body = make_left_path(
            plan, on_paths, functional, path, memory.stored.get(name), is_drawn_at_once=is_drawn_at_once
        )
        packed = None if body is None else body.to_bytes()
        if packed is not None:
            kept[name] = packed
    return kept


def make_left_path(
    plan: Plan,
    on_paths: QuestionOnPaths | None,
    functional: int,
    path: NoisePath,
    before: tuple[StoredPath, KeyPath] | None,
    *,
    is_drawn_at_once: bool,
) -> KeyPath | None:
    """Return the path to keep of one functional, from the `path` of a run of `plan` and the ledger's `before`.

    Return None if that stays. The choice follows from rates and keys, never from values. `in_full`: all of it was
    revealed.
    """
    test, all_told = plan.calibration.tests[functional], is_drawn_at_once or plan.calibration.mechanism == Keyhole.name
    if on_paths is not None and functional in on_paths.paths:
        return on_paths.paths[functional].continue_with(
            plan.question, functional, on_paths.key_places[functional], path, top=test.rate, all_told=all_told
        )
    drawn = KeyPath.from_run(plan.question, functional, path, top=test.rate, all_told=all_told)
    if before is None:
        return drawn
    old = before[1]
    more_keys = drawn.reserved.size > old.reserved.size and path.rates[-1] >= old.path.rates[-1]
    finer = is_drawn_at_once and before[0].is_taken and path.rates[-1] > old.path.rates[-1]
    return drawn if drawn.covers(old) and (more_keys or finer) else None


def _find_unreserved_loss(
    continuation: Continuation, paths: Mapping[int, KeyPath], here: Mapping[int, Integers]
) -> Epsilons:
    """Return the loss of the levels above those that were reserved before, per key.

    It is public, whatever was revealed of them.
    """
    task = continuation.calibration.task
    keys = next(iter(here.values())).size
    left: dict[int, Epsilons] = {}
    for functional, test in enumerate(continuation.calibration.tests):
        if functional in paths:
            reserved = paths[functional].reserved[here[functional]]
            left[functional] = _find_loss_above(test, paths[functional].path, task.sensitivities[functional])[reserved]
        elif test.rate:
            left[functional] = np.full(keys, test.epsilon)
    by_key = compute_joint_losses(left, task.exposures, keys=keys)
    return np.minimum(by_key, continuation.calibration.worst_case_epsilon)


def _find_loss_above(test: FunctionalTest, path: NoisePath, sensitivity: int) -> Epsilons:
    """Return epsilon of the test's last rate above its levels, by number of levels, rounded up."""
    return np.array(
        [round_up_to_float(max(test.rate - rate, 0 * rate) * sensitivity) for rate in (0 * test.rate, *path.rates)]
    )


def _is_known(continuation: Continuation, paths: Mapping[int, KeyPath], here: Mapping[int, Integers]) -> bool:
    """Return True if every value that the question could read was revealed as far as everybody knows."""
    tests = continuation.calibration.tests
    if any(test.rate and functional not in paths for functional, test in enumerate(tests)):
        return False
    return all(
        tests[functional].rate in path.path.rates
        and int(path.revealed[here[functional]].min()) > path.path.rates.index(tests[functional].rate)
        for functional, path in paths.items()
    )
