"""The chapter's experiments as jobs that can run side by side, each for one stream and epsilon."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.streams import events
from benchmarks.streams.data import Stream, draw_hierarchy, draw_stand_ins, list_streams
from benchmarks.streams.james_stein_as_printed import move_from_average
from benchmarks.streams.measures import (
    Floats,
    WindowSums,
    compute_scaled_error,
    estimate_counts,
    estimate_hierarchy,
    sum_windows,
)
from benchmarks.streams.rows import BLOCK_TREE, EPSILONS, LAPLACE, PEGASUS, PEGASUS_LARGE, SLIDING, ZEROS, Row
from benchmarks.streams.sliding import release_window_sums
from mechanisms.formula import Integers
from mechanisms.streams.block_tree import BlockTree
from mechanisms.streams.hierarchy import make_balanced_hierarchy
from mechanisms.streams.hs_pegasus import HsLaplace, HsPegasus
from mechanisms.streams.pegasus import Pegasus
from mechanisms.streams.phs_pegasus import PhsPegasus, PhsPegasusFree
from mechanisms.streams.stream import StreamMechanism
from mechanisms.streams.stream_names import SMOOTHERS
from mechanisms.streams.tick_laplace import BackwardSmoothing, TickLaplace
from mechanisms.streams.zeros import Zeros

PROCESSES = 2
PUBLISHED, LARGE = Fraction(5), Fraction(40)
PRINTED = "pegasus_james_stein, as printed"
BACK = (5, 10, 50)
BUSY = "High_5"
WINDOWS = tuple(2**power for power in range(1, 11))
HIERARCHY_RUNS = 1  # the mean over 255 aggregations and a week is steady
BLOCK_TREE_RUNS = 5  # likewise over 8,000 windows


@dataclass(frozen=True, slots=True)
class Job:
    """One stream, or the hierarchy, at one epsilon."""

    name: str
    epsilon: Fraction
    runs: int
    seed: int
    stream: Stream | None = None

    def run(self) -> list[Row]:
        return list(_measure_hierarchy(self) if self.stream is None else _measure_stream(self, self.stream))

    def seed_of(self, label: str) -> int:
        return crc32(f"{self.seed} {self.name} {self.epsilon} {label}".encode())


def plan_jobs(*, runs: int, seed: int) -> list[Job]:
    """The longest first."""
    jobs = [Job("Multi_5", epsilon, min(runs, HIERARCHY_RUNS), seed) for epsilon in EPSILONS]
    streams = sorted(list_streams(seed=seed), key=lambda stream: -int(stream.counts.sum()))
    return jobs + [Job(stream.name, epsilon, runs, seed, stream) for stream in streams for epsilon in EPSILONS]


def run_jobs(jobs: Sequence[Job], *, done: Callable[[], None] = lambda: None) -> list[Row]:
    """All rows, in the order of the jobs, whichever process ran them."""
    found: list[Row] = []
    with ProcessPoolExecutor(PROCESSES) as pool:
        for rows in pool.map(Job.run, jobs):
            found += rows
            done()
    return found


def measure_picture(*, seed: int) -> tuple[Integers, dict[tuple[str, Fraction], Floats]]:
    """The busy stream, and one run of each mechanism on it, negative estimates cut, as figure 5.2 shows it."""
    (busy,) = (stream for stream in draw_stand_ins(seed=seed) if stream.name == BUSY)
    return busy.counts, {
        (mechanism.name, epsilon): np.maximum(0.0, estimate_counts(mechanism, busy.counts, runs=1, seed=seed)[:, 0])
        for epsilon in EPSILONS
        for mechanism in (
            TickLaplace(epsilon=epsilon, sensitivity=1),
            Pegasus(epsilon=epsilon, sensitivity=1),
            Pegasus(epsilon=epsilon, sensitivity=1, theta_factor=LARGE, name=PEGASUS_LARGE),
            Zeros(sensitivity=1),
        )
    }


def _measure_stream(job: Job, stream: Stream) -> Iterator[Row]:
    counts, epsilon = stream.counts, job.epsilon
    sums = {label: WindowSums() for label in (PEGASUS, PEGASUS_LARGE)}
    estimates: dict[str, Floats] = {}
    for label, mechanism in _count_mechanisms(epsilon).items():
        look = {"look": sums[label].look} if label in sums else {}
        estimates[label] = estimate_counts(mechanism, counts, runs=job.runs, seed=job.seed_of(label), **look)
        error = compute_scaled_error(estimates[label], counts)
        if label not in (PRINTED, *SMOOTHERS) or label == PEGASUS:
            yield Row.from_values("counts", stream.name, epsilon, label, error)
        if label in (LAPLACE, PRINTED, ZEROS, *SMOOTHERS):
            yield Row.from_values("smoothers", stream.name, epsilon, label, error)
    if stream.name == BUSY:
        watched = events.Watched(stream.name, counts, epsilon, job.runs, job.seed_of("events"), estimates, sums)
        yield from _measure_windows(job, watched)
        yield from events.measure_jumps(watched)
        block_sums = {window: _estimate_block_sums(job, counts, window) for window, _ in events.LOW_SIGNALS}
        yield from events.measure_low_signals(watched, block_sums)


def _count_mechanisms(epsilon: Fraction) -> dict[str, StreamMechanism[Any]]:
    found: dict[str, StreamMechanism[Any]] = {LAPLACE: TickLaplace(epsilon=epsilon, sensitivity=1)}
    for back in BACK:
        name = f"backward_smoothing, {back}"
        found[name] = BackwardSmoothing(epsilon=epsilon, sensitivity=1, ticks_back=back, name=name)
    for name, smooth in (*SMOOTHERS.items(), (PRINTED, move_from_average)):
        found[name] = Pegasus(epsilon=epsilon, sensitivity=1, smooth=smooth, name=name)
    found[PEGASUS_LARGE] = Pegasus(epsilon=epsilon, sensitivity=1, theta_factor=LARGE, name=PEGASUS_LARGE)
    found[ZEROS] = Zeros()
    return found


def _estimate_block_sums(job: Job, counts: Integers, window: int) -> Floats:
    tree = BlockTree(epsilon=job.epsilon, sensitivity=1, window=window)
    runs = min(job.runs, BLOCK_TREE_RUNS)
    return estimate_counts(tree, counts, runs=runs, seed=job.seed_of(f"block {window}"))[window - 1 :]


def _measure_windows(job: Job, watched: events.Watched) -> Iterator[Row]:
    """The mean absolute error of a window's sum. MS adds up the estimates as they were released, WSS as known now."""
    counts, estimates, sums = watched.counts, watched.estimates, watched.sums
    for window in WINDOWS:
        true = sum_windows(counts[:, np.newaxis].astype(np.float64), window)
        noisy: dict[str, Any] = {"epsilon": job.epsilon, "runs": job.runs, "seed": job.seed_of(f"sliding {window}")}
        entrants = {
            LAPLACE: sum_windows(estimates[LAPLACE], window),
            SLIDING: release_window_sums(counts, window, **noisy),
            BLOCK_TREE: _estimate_block_sums(job, counts, window),
            "pegasus, MS": sum_windows(estimates[PEGASUS], window),
            "pegasus, WSS": sums[PEGASUS].get_sums(window)[window - 1 :],
            "pegasus, theta 40, WSS": sums[PEGASUS_LARGE].get_sums(window)[window - 1 :],
            ZEROS: np.zeros_like(true),
        }
        for label, found in entrants.items():
            error = np.abs(found - true).mean(axis=0)
            yield Row.from_values("windows", watched.data, job.epsilon, label, error, x=window)


def _measure_hierarchy(job: Job) -> Iterator[Row]:
    """The thesis prints neither what pruning gets nor below what it prunes. Here a fifth of the loss, and either a low
    bound, or one twice as large as the noise that is compared with it."""
    counts = draw_hierarchy(seed=job.seed)
    tree, low = make_balanced_hierarchy(branching=2, levels=8), int(2 / job.epsilon)
    budget: dict[str, Any] = {"hierarchy": tree, "epsilon": job.epsilon, "sensitivity": 1}
    paid: dict[str, Any] = {**budget, "prune_epsilon": job.epsilon / 5}
    entrants: dict[str, Any] = {
        "hs_laplace": HsLaplace(**budget),
        "hs_pegasus": HsPegasus(**budget),
        "hs_pegasus, theta 40": HsPegasus(**budget, theta_factor=LARGE),
        "phs_pegasus, below 2 / epsilon": PhsPegasus(**paid, prune_below=low),
        "phs_pegasus, below 70 / epsilon": PhsPegasus(**paid, prune_below=35 * low),
        "phs_pegasus_free, below 2 / epsilon": PhsPegasusFree(**budget, prune_below=low),
        "phs_pegasus_free, below 16 / epsilon": PhsPegasusFree(**budget, prune_below=8 * low),
    }
    for label, mechanism in entrants.items():
        errors = estimate_hierarchy(mechanism, counts, runs=job.runs, seed=job.seed_of(label))
        yield Row.from_values("hierarchy", job.name, job.epsilon, label, errors)
    yield Row.from_values("hierarchy", job.name, job.epsilon, ZEROS, np.full(1, tree.aggregate(counts).mean()))
