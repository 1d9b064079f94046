"""The auditor finds broken mechanisms and passes sound ones.

Each audit of a sound subject raises a false alarm with probability 1e-6 at most (less in fact: Clopper-Pearson with
Bonferroni). A broken subject's true loss is so far above its claim that missing it is no likelier; the seeds are fixed.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from mechanisms.audit.auditor import LEAST_PROVED, AuditReport, Neighbours, Release, audit_subject, claim_always
from mechanisms.audit.events import Transcripts, bound_epsilon_from_counts
from mechanisms.audit.many_groups import GROUPS, audit_many_groups
from mechanisms.audit.subjects import (
    ALARM,
    CELLS,
    JOIN,
    RANKING,
    SCAN,
    STREAMED,
    TABLE,
    UNASKED,
    PlannedAudit,
    audit_mechanism,
    audit_reuse,
    plan_audits,
    price_draw,
)
from mechanisms.audit.worst_cases import list_critical_neighbours, make_audit_tasks, widen_tolerances
from mechanisms.formula import TRUE, Booleans, Cut, Integers
from mechanisms.keyhole.noise_continuation import CONTINUABLE, decide_on_refined_paths, plan_on_paths
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.noise.gradual_release import draw_chain
from mechanisms.protocol import Calibration, Mechanism
from mechanisms.published.dppwlm import Dppwlm
from mechanisms.published.probe import PHASES_RESERVED
from mechanisms.published.sparse_vector import SparseVector, run_sparse_vector
from mechanisms.published.tslm import Tslm
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import expose_functional_sets
from mechanisms.threshold.renyi import compute_divergence
from tests.effort import is_quick, rounds
from tests.mechanisms.audit.broken import (
    VARIANTS,
    ApartForEachPredicate,
    TakenForApart,
    UnderNoised,
    UnderReported,
    fresh_refinement,
    noise_down,
    partition_by_differences,
    reconstructed,
)
from tests.seeded_noise import SeededNoise

EPSILON = Fraction(1)
SAMPLES = 200_000
# six queries at the threshold; one unit more raises the first three and lowers the others
STREAMS = ((0, 0, 0, 1, 1, 1), (1, 1, 1, 0, 0, 0))


def streams(
    answers: Callable[[Integers], Booleans], pair: tuple[tuple[int, ...], tuple[int, ...]], *, epsilon: float
) -> Neighbours:
    def draw_from(distances: tuple[int, ...]) -> Callable[[int], Integers]:
        def draw(samples: int) -> Integers:
            return answers(np.tile(np.array(distances, dtype=np.int64), (samples, 1))).astype(np.int64)

        return draw

    first, second = pair
    return Neighbours(
        description=f"{first} and {second}",
        first=claim_always(draw_from(first), epsilon=epsilon),
        second=claim_always(draw_from(second), epsilon=epsilon),
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_sparse_vectors_without_a_limit_are_flagged(variant: str) -> None:
    noise = SeededNoise(21)
    pair = streams(
        lambda distances: VARIANTS[variant](distances, epsilon=EPSILON, noise=noise), STREAMS, epsilon=float(EPSILON)
    )
    report = audit_subject(variant, [pair], samples=SAMPLES)
    assert report.is_flagged
    assert report.epsilon_lower > 1.2


@pytest.mark.parametrize("most_positives", [1, 3])
def test_the_sparse_vector_with_a_limit_passes(most_positives: int) -> None:
    """False alarm 1e-6 a case; all six queries move at once, which the whole loss must cover."""
    noise = SeededNoise(22)

    def answers(distances: Integers) -> Booleans:
        return run_sparse_vector(
            distances,
            least=0,
            threshold_rate=EPSILON / 2,
            query_rate=EPSILON / (4 * most_positives),
            most_positives=most_positives,
            noise=noise,
        )

    pairs = [streams(answers, STREAMS, epsilon=float(EPSILON)), streams(answers, ((0,) * 6, (1,) * 6), epsilon=1.0)]
    report = audit_subject("sparse vector", pairs, samples=SAMPLES)
    assert not report.is_flagged
    assert report.epsilon_lower > 0.1


# five queries move past a threshold that a limit of one positive guards, the last moves back
CROWD = ((-1, -1, -1, -1, -1, 0), (0, 0, 0, 0, 0, -1))


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(5, 4)])
def test_a_sparse_vector_with_a_quarter_too_little_noise_is_flagged(factor: Fraction) -> None:
    """400,000 streams from either database; the honest one passes (false alarm 1e-6) and comes within a fifth. By
    exact enumeration the broken one's counts lie more than five standard deviations beyond what flags it."""
    noise, query_rate = SeededNoise(35), Fraction(4, 5)

    def answers(distances: Integers) -> Booleans:
        return run_sparse_vector(
            distances,
            least=0,
            threshold_rate=2 * query_rate * factor,
            query_rate=query_rate * factor,
            most_positives=1,
            noise=noise,
        )

    claim = float(4 * query_rate)
    report = audit_subject("sparse vector", [streams(answers, CROWD, epsilon=claim)], samples=400_000)
    assert report.is_flagged == (factor > 1)
    assert report.epsilon_lower > 0.8 * claim


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(2)])
def test_whole_questions_to_a_sparse_vector(factor: Fraction) -> None:
    """10,000 questions from either database, at quick 4,000 of the honest: half of the noise is found out; honest
    ones pass, false alarm 1e-6."""
    subject = UnderNoised(SparseVector(most_positives=1), factor=factor)
    samples = (10_000 if factor > 1 else rounds(10_000, quick=4_000)) * price_draw("svt")
    report = audit_mechanism(subject, make_audit_tasks()["one condition"], samples=samples, noise=SeededNoise(36))
    assert report.is_flagged == (factor > 1)
    assert report.epsilon_lower > report.claimed_epsilon / 2


def test_one_quarter_too_little_noise_is_flagged() -> None:
    broken = UnderNoised(Tslm(), factor=Fraction(5, 4))
    report = audit_mechanism(broken, make_audit_tasks()["one condition"], samples=SAMPLES, noise=SeededNoise(23))
    assert report.is_flagged


def test_an_understated_loss_ex_post_is_flagged() -> None:
    broken = UnderReported(Keyhole())
    report = audit_mechanism(broken, make_audit_tasks()["one condition"], samples=SAMPLES, noise=SeededNoise(24))
    assert report.is_flagged


def refinement(draw_from: Callable[[int], Callable[[int], Integers]]) -> AuditReport:
    pair = Neighbours(
        description="values 0 and 1",
        first=claim_always(draw_from(0), epsilon=1.0),
        second=claim_always(draw_from(1), epsilon=1.0),
    )
    return audit_subject("refinement", [pair], samples=SAMPLES)


def test_a_loss_that_is_overstated_now_and_then_hides_nothing() -> None:
    """Every bit is shown as it is, for a claim of nothing nine times out of ten and of far more the tenth."""

    def show(bit: int) -> Release:
        drawn = np.random.default_rng(bit)

        def release(samples: int) -> Transcripts:
            claimed = np.where(drawn.random(samples) < 0.1, 50.0, 0.0)
            return Transcripts(revealed_values=np.full((samples, 1), bit), claimed_losses=claimed)

        return release

    report = audit_subject("shown", [Neighbours(description="bits", first=show(0), second=show(1))], samples=2_000)
    assert report.is_flagged
    assert report.claimed_epsilon == 0.0


def test_refinement_with_fresh_noise_is_flagged() -> None:
    coarse, fine = Fraction(3, 4), Fraction(1)
    report = refinement(lambda value: fresh_refinement(value, coarse=coarse, fine=fine, seed=25 + value))
    assert report.is_flagged


def test_published_code_that_refines_noise_is_flagged() -> None:
    """As docs/proofs/gradual_release.md describes it: with the sign dropped, two looks differ by twice the noise."""
    report = refinement(lambda value: noise_down(value, coarse=0.5, fine=1.0, seed=40 + value))
    assert report.is_flagged
    assert report.epsilon_lower > 5.0


def test_gradual_release_passes() -> None:
    """False alarm 1e-6."""
    noise = SeededNoise(27)

    def draw_from(value: int) -> Callable[[int], Integers]:
        return lambda samples: (
            value + draw_chain([Fraction(3, 4), Fraction(1)], size=samples, noise=noise).T.astype(np.int64)
        )

    report = refinement(draw_from)
    assert not report.is_flagged
    assert report.epsilon_lower > 0.85


@pytest.mark.parametrize("twice", [False, True])
def test_two_refinements_of_one_value_are_flagged(twice: bool) -> None:
    """A question and two later ones that both refine its path, and not one another's, lose more than the finest level:
    found out. One later question passes, false alarm 1e-6. 400,000 keys from either database."""
    noise = SeededNoise(41)
    task = replace(make_audit_tasks()["one condition"], formula=Cut(functional=0, cut=20, above=True, tolerance=7))
    sharper = replace(task, formula=Cut(functional=0, cut=20, above=True, tolerance=4))
    coarse, fine = Keyhole().calibrate(task), Keyhole().calibrate(sharper)

    def release(value: int) -> Release:
        def draw(samples: int) -> Transcripts:
            aggregates = np.full((1, samples), value, dtype=np.int64)
            first = Keyhole().decide(coarse, aggregates, noise=noise)
            question = plan_on_paths(fine, first.paths)
            assert question is not None
            later = [decide_on_refined_paths(question, aggregates, noise=noise) for _ in range(1 + twice)]
            paths = [path for outcome in later for path in outcome.paths if path is not None]
            assert later[0].fresh is not None
            return Transcripts(
                revealed_values=np.column_stack([path.values[-1] for path in paths]),
                claimed_losses=first.epsilon + later[0].fresh,
            )

        return draw

    report = audit_subject(
        "one path", [Neighbours(description="19 and 20", first=release(19), second=release(20))], samples=400_000
    )
    assert report.is_flagged == twice
    assert report.epsilon_lower > 0.8 * report.claimed_epsilon


@pytest.mark.parametrize("name", CONTINUABLE)
def test_a_later_question_on_the_same_noise(name: str) -> None:
    """100,000 keys from either database; the honest one passes, false alarm 1e-6, and comes within three tenths."""
    task = make_audit_tasks()["one condition"]
    report = audit_reuse(CONTINUABLE[name], task, samples=100_000, noise=SeededNoise(42))
    assert not report.is_flagged
    assert report.epsilon_lower > 0.7 * report.claimed_epsilon


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_passes(name: str) -> None:
    """False alarm 1e-6 for each report: below 1e-4 for a hundred reports.

    At full size every report also proves an eighth of its claim or more: it could have
    failed. So it is at quick where keys are decided one by one; whole questions are drawn too seldom there, and what is
    broken below is found at full size in both. At quick a mechanism has its first question, which tells most, and every
    sixth of the others, from one mechanism to the next other ones.
    """
    alone = price_draw(name) == 1
    samples = rounds(30_000, quick=4_000 if alone else 750)
    first, *others = plan_audits([name])
    chosen = others[list(MECHANISMS).index(name) % 6 :: 6] if is_quick() else others
    noise = SeededNoise(28)
    reports = [report for one in (first, *chosen) if (report := one.run(samples=samples, noise=noise)) is not None]
    assert {report.subject.split(",")[0] for report in reports} == {name}
    assert [report.subject for report in reports if report.is_flagged] == []
    if alone or not is_quick():
        assert [report.subject for report in reports if not report.is_conclusive] == []


def expected_loss(calibration: Calibration) -> float:
    """What a unit in many groups loses in the mean: the curve at its lowest orders, and nothing for the delta."""
    return GROUPS * float(compute_divergence(rate=calibration.tests[0].rate, moved=Fraction(1), order=2)) / 2


@pytest.mark.parametrize("claim", [None, expected_loss])
def test_a_unit_in_many_groups_loses_what_its_curve_says_and_not_the_mean(
    claim: Callable[[Calibration], float] | None,
) -> None:
    """10,000 draws of 40 groups. False alarm 1e-6; the mean is half of what is lost at so large a delta."""
    task = widen_tolerances(Keyhole(), make_audit_tasks()["one condition"], most_epsilon=0.3)
    report = audit_many_groups(Keyhole(), task, samples=10_000, noise=SeededNoise(31), claim=claim)
    assert report.is_conclusive
    assert report.is_flagged == (claim is not None)


def test_what_cannot_fail_is_not_conclusive() -> None:
    """Four draws, half of them to choose events, refute no claim; two thousand refute a small one. False alarm 1e-6."""
    task = make_audit_tasks()["one condition"]
    few, many = (audit_mechanism(Tslm(), task, samples=samples, noise=SeededNoise(7)) for samples in (4, 4_000))
    assert not few.is_conclusive
    assert many.is_conclusive
    assert many.epsilon_lower > LEAST_PROVED * many.claimed_epsilon


def test_events_are_chosen_by_the_part_of_a_claim_that_they_prove() -> None:
    """Half of the draws claim next to nothing, in a hundred steps, and show nothing; the other half show what they
    claim. Events that prove nothing of little are nearer to their claims than those that prove most of much."""

    def release(passing: float, seed: int) -> Release:
        generator = np.random.default_rng(seed)

        def draw(samples: int) -> Transcripts:
            early = generator.random(samples) < 0.5
            passed = ~early & (generator.random(samples) < passing)
            little = generator.integers(1, 100, size=samples) * 1e-6
            return Transcripts(
                revealed_values=passed.astype(np.int64)[:, np.newaxis],
                claimed_losses=np.where(early, little, math.log(9)),
            )

        return draw

    pair = Neighbours(description="one and the other", first=release(0.9, 1), second=release(0.1, 2))
    report = audit_subject("early looks", [pair], samples=20_000)
    assert not report.is_flagged
    assert report.epsilon_lower > 0.8 * math.log(9)


def test_questions_are_planned_for_every_mechanism() -> None:
    planned = plan_audits()
    assert planned[-len(UNASKED) :] == UNASKED == (*STREAMED, ALARM, CELLS, JOIN, RANKING, SCAN, TABLE)
    asked = planned[: -len(UNASKED)]
    assert {audit.mechanism for audit in asked} == set(MECHANISMS)
    assert {audit.question for audit in asked} == set(make_audit_tasks())
    assert {audit.mechanism for audit in planned if audit.is_continued} == set(CONTINUABLE)
    assert {audit.mechanism for audit in planned if audit.has_many_groups} == {*CONTINUABLE, "arc", "arc_looks"}
    assert all(audit.relative_duration > 0 for audit in planned)
    assert plan_audits(["svt"]) == tuple(audit for audit in planned if audit.mechanism == "svt")


@pytest.mark.parametrize("understated", [False, True])
def test_sums_that_rows_move_by_parts(understated: bool) -> None:
    """Of three sums a row moves one by half and another in full, or the third alone; 100,000 draws of the answer, at
    quick 40,000. The joint loss passes, false alarm 1e-6; the maximum of the three, which one row exceeds by half, is
    found out, at quick by a sixth of itself: more than ten of that margin's standard deviations."""
    subject: Mechanism = TakenForApart(Keyhole()) if understated else Keyhole()
    samples = rounds(100_000, quick=40_000)
    report = audit_mechanism(subject, make_audit_tasks()["parts of sums"], samples=samples, noise=SeededNoise(3))
    assert report.is_flagged == understated


@pytest.mark.parametrize("understated", [False, True])
def test_data_dependent_levels(understated: bool) -> None:
    """DPPWLM looks at all keys to choose its levels, so every draw is a whole question: 1,875 from either database.
    Half of a loss not reported is found out; the honest mechanism (a third of the questions at quick, and it alone)
    passes, false alarm 1e-6."""
    subject: Mechanism = UnderReported(Dppwlm()) if understated else Dppwlm()
    samples = (1_875 if understated else rounds(1_875, quick=625)) * price_draw("dppwlm")
    report = audit_mechanism(subject, make_audit_tasks()["one condition"], samples=samples, noise=SeededNoise(6))
    assert report.is_flagged == understated


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("name", sorted(CONTINUABLE))
def test_predicates_on_shared_values(name: str, apart: bool) -> None:
    """Three thresholds on one value, side by side: 100,000 draws, at quick 20,000. Told together they cost what the
    sharpest does, false alarm 1e-6, and nearly all of that is proved; predicates with noise of their own, at the same
    claim, are found out."""
    honest = MECHANISMS[name]
    bands = tuple(Cut(functional=0, cut=cut, above=True, tolerance=7) for cut in (20, 21, 22))
    task = replace(make_audit_tasks()["one condition"], formula=TRUE, predicates=bands)
    subject: Mechanism = ApartForEachPredicate(honest) if apart else honest
    report = audit_mechanism(subject, task, samples=rounds(100_000, quick=20_000), noise=SeededNoise(41))
    assert report.is_flagged == apart
    if not apart:
        assert report.is_conclusive
        assert report.epsilon_lower > 0.6 * report.claimed_epsilon


def test_the_auditor_comes_near_the_truth() -> None:
    """Keyhole's test attains its loss exactly, so a bound far below it would be a blunt auditor."""
    task = make_audit_tasks()["one condition"]
    report = audit_mechanism(Keyhole(), task, samples=SAMPLES, noise=SeededNoise(29))
    assert 0.9 * report.claimed_epsilon < report.epsilon_lower <= report.claimed_epsilon


def test_progress_names_what_is_drawn_and_nothing_else() -> None:
    seen: list[str] = []
    audit_mechanism(
        Keyhole(),
        make_audit_tasks()["one condition"],
        samples=10,
        noise=SeededNoise(1),
        subject="s",
        progress=seen.append,
    )
    assert len(seen) == len(list(list_critical_neighbours(make_audit_tasks()["one condition"])))
    assert all(line.startswith("s: values (") for line in seen)


def test_neighbours_differ_by_one_unit_in_functionals_moved_together() -> None:
    for task in make_audit_tasks().values():
        for before, after in list_critical_neighbours(task):
            moved = {f for f, (one, other) in enumerate(zip(before, after, strict=True)) if one != other}
            assert any(all(exposure[f] for f in moved) for exposure in task.exposures)
            assert all(abs(before[f] - after[f]) <= task.sensitivities[f] for f in moved)


def test_few_neighbours_are_those_on_which_the_answer_turns() -> None:
    """A unit moves what makes an AND false, the others holding, and what makes an OR true, the others failing."""
    tasks = make_audit_tasks()
    for task in tasks.values():
        few = list(list_critical_neighbours(task, depths=(0.5,), leaves_out_ends=True))
        assert {frozenset(pair) for pair in few} <= {
            frozenset(pair) for pair in list_critical_neighbours(task, depths=(0.5,))
        }
    assert list(list_critical_neighbours(tasks["one condition"], depths=(0.5,), leaves_out_ends=True)) == [
        ((19,), (18,))
    ]
    either = list(list_critical_neighbours(tasks["either of two apart"], depths=(0.5,), leaves_out_ends=True))
    assert either == [((19, 35), (18, 35)), ((16, 32), (16, 33))]


@pytest.mark.parametrize("question", make_audit_tasks())
@pytest.mark.parametrize("name", ["keyhole", "ppwlm", "svt_generalised", "probe", "naive"])
def test_tolerances_are_widened_until_a_claim_can_be_refuted(name: str, question: str) -> None:
    mechanism, task = MECHANISMS[name], make_audit_tasks()[question]
    if task.predicates and name not in CONTINUABLE:
        assert PlannedAudit(name, question).run(samples=2, noise=SeededNoise(1)) is None
        return
    phases = PHASES_RESERVED if name == "probe" else 1
    for most in (1.0, 4.0):
        widened = widen_tolerances(mechanism, task, most_epsilon=most)
        assert mechanism.calibrate(widened).worst_case_epsilon <= most * phases
    enough = mechanism.calibrate(task).worst_case_epsilon
    assert widen_tolerances(mechanism, task, most_epsilon=enough) == task


def test_the_bound_from_counts() -> None:
    hits, rivals = np.array([0, 50, 100, 100]), np.array([10, 50, 100, 0])
    lower = bound_epsilon_from_counts(hits, rivals, samples=100, error=1e-3)
    assert lower[:3].tolist() == [0.0, 0.0, 0.0]
    assert 1.5 < lower[3] < 3.0
    with pytest.raises(ValueError, match="a pair of databases"):
        audit_subject("nothing", [], samples=10)


@pytest.mark.parametrize(("chance", "rival"), [(0.5, 0.2), (0.9, 0.1), (0.3, 0.3), (1.0, 0.4)])
def test_the_bound_fails_no_oftener_than_its_two_errors(chance: float, rival: float) -> None:
    """Exact enumeration of both counts, so no false alarm."""
    samples, error = 40, 0.01
    counts = np.arange(samples + 1)
    joint = np.outer(stats.binom.pmf(counts, samples, chance), stats.binom.pmf(counts, samples, rival))
    hits, rivals = np.meshgrid(counts, counts, indexing="ij")
    lower = bound_epsilon_from_counts(hits, rivals, samples=samples, error=error)
    assert joint[lower > math.log(chance / rival) + 1e-12].sum() <= 2 * error


SMALL = 6
COUNTS = np.concatenate((np.repeat(np.arange(SMALL), 60), np.arange(SMALL, 60))).astype(np.int64)
# ln(1e7) / epsilon, epsilon = 1 for the threshold: it stays within [0, 34] but with probability 2e-7
DIFFERENCE_THRESHOLD = 17


def share_of_small_counts_recovered(answers: Callable[[Integers], Booleans], *, seed: int) -> float:
    partition = partition_by_differences(COUNTS, answers, threshold=DIFFERENCE_THRESHOLD)
    guess = reconstructed(COUNTS, partition, rate=Fraction(1, 2), noise=SeededNoise(seed))
    small = COUNTS < SMALL
    return float(np.mean(guess[small] == COUNTS[small]))


def test_differences_reconstruct_the_data_without_a_limit() -> None:
    """Theorem 6: all counts in [0, 25] are told apart with probability 1 - 2e-7; totals round right, 1 - 1e-6."""
    noise = SeededNoise(31)
    recovered = share_of_small_counts_recovered(
        lambda distances: VARIANTS["algorithm 3"](distances[np.newaxis, :], epsilon=EPSILON, noise=noise)[0], seed=32
    )
    assert recovered == 1.0


def test_differences_reconstruct_nothing_with_a_limit() -> None:
    """At most ten cells can be told apart from the rest, whatever is drawn, so no false alarm: all others share one
    guess, right for one small count at most."""
    noise = SeededNoise(33)
    recovered = share_of_small_counts_recovered(
        lambda distances: run_sparse_vector(
            distances[np.newaxis, :],
            least=0,
            threshold_rate=EPSILON / 2,
            query_rate=EPSILON / 40,
            most_positives=10,
            noise=noise,
        )[0],
        seed=34,
    )
    assert recovered <= (60 + 10) / (60 * SMALL)


@pytest.mark.parametrize("understated", [False, True])
def test_parts_of_sensitivities(understated: bool) -> None:
    """A row that moves one sum in full moves the other by a quarter, and neighbours move by just these parts. An honest
    loss passes, false alarm 1e-6; that of a task which takes the sums for disjoint is found out."""
    parts = ((Fraction(1), Fraction(1, 4)), (Fraction(1, 4), Fraction(1)))
    told = replace(
        make_audit_tasks()["both of two"], sensitivities=(4, 4), exposures=parts, blocks=frozenset(), fnr=0.02, fpr=0.02
    )
    moves = set()
    for before, after in list_critical_neighbours(told):
        moves.add(tuple(abs(one - other) for one, other in zip(before, after, strict=True)))
    assert moves == {(4, 1), (1, 4)}
    claimed = replace(told, exposures=expose_functional_sets(((0,), (1,)), functionals=2)) if understated else told
    calibration = Keyhole().calibrate(claimed)
    noise = SeededNoise(31)

    def release(values: tuple[int, ...]) -> Release:
        """Both noisy values, which is all that the answer follows from."""

        def draw(samples: int) -> Integers:
            drawn = [noise.draw_discrete_laplace(rate=test.rate, size=samples) for test in calibration.tests]
            return np.stack([value + one for value, one in zip(values, drawn, strict=True)], axis=1)

        return claim_always(draw, epsilon=calibration.worst_case_epsilon)

    pair = Neighbours(description="one row", first=release((20, 30)), second=release((24, 31)))
    assert audit_subject("parts", [pair], samples=SAMPLES).is_flagged == understated
