"""Shares of groups that noisy counts give away, as published; and the same read off what Keyhole has answered."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.risk.adult import Cell, People, count_marginals
from mechanisms.protocol import FunctionalTest
from mechanisms.risk.disclosure import compute_chance_within, compute_jump
from mechanisms.risk.share_learning import SharePair, compute_chance, compute_chance_by_ratio, find_least_group
from mechanisms.threshold.one_shot import calibrate_test, compute_acceptance

EPSILONS = (0.01, 0.1, 0.5, 1, 2, 5, 10, 20)
MARGINALS = (
    (("sex", "occupation", "marital_status", "race"), "education"),
    (("sex", "education", "marital_status", "race"), "occupation"),
)
SENSITIVITY = 24
"""Two counts for each of the six pairs, and one person is moved from one cell to another."""

WIDTH, SURELY, JUMP = 0.2, 0.7, 3.0
"""As published: tau, K_CP and K_J."""

SHARES = (0.3, 0.5, 0.7, 0.84, 0.9)
WIDTHS = (0.1, 0.2, 0.3)
FNR, FPR = 0.05, 0.1
_SANE = 1e-4  # of all rows: an answer below it does not make the relative error larger
LEAST_ROWS = 500
_FREQUENT = 0.05  # of everybody: a share of rarer values is a share of few rows, and costs accordingly
_GRID = 1000  # shares in thousandths


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """At one epsilon for all marginals: how many disclosures, and the mean relative error of all answers."""

    sensitive: str
    epsilon: float
    disclosed: int
    error: float


@dataclass(frozen=True, slots=True)
class KeyholeRow:
    """One way to learn shares from Keyhole: what the counts of one group lose, and how many shares are learned."""

    sensitive: str
    reading: str
    epsilon: float
    disclosed: float
    others: float | None


@dataclass(frozen=True, slots=True)
class LeastSize:
    """How large a group must be for a share in it to be learned."""

    share: float
    width: float
    scales: float
    by_epsilon: tuple[tuple[float, int, int], ...]


def count_disclosures(people: People) -> Iterator[PublishedRow]:
    """Definition 4 over all pairs of public columns; exact, without a draw."""
    rows = len(next(iter(people.columns.values())))
    for public, sensitive in MARGINALS:
        marginals = count_marginals(people, public=public, sensitive=sensitive)
        inverse = float(np.mean(1 / np.maximum(marginals.answers, _SANE * rows)))
        telling = find_telling(marginals.cells)
        for epsilon in EPSILONS:
            scale = SENSITIVITY / epsilon
            disclosed = sum(
                compute_chance_within(WIDTH, group=cell.group, holders=cell.holders, scale=scale) >= SURELY
                for cell in telling
            )
            yield PublishedRow(sensitive, epsilon, disclosed, scale * inverse)


def find_telling(cells: Sequence[Cell]) -> list[Cell]:
    """Those where the value is that many times as frequent as everywhere."""
    return [
        cell for cell in cells if compute_jump(group=cell.group, holders=cell.holders, base_rate=cell.base_rate) >= JUMP
    ]


def read_keyhole(
    people: People, *, thresholds: Sequence[int] = (100, 1000), caps: Sequence[float] = (1, 2)
) -> Iterator[KeyholeRow]:
    """What can be learned from Keyhole: from thresholds that were asked, at the cap, and said outright."""
    for public, sensitive in MARGINALS:
        cells = count_marginals(people, public=public, sensitive=sensitive).cells
        telling = find_telling(cells)
        for threshold in thresholds:
            rate = _compute_rate_of_count(threshold)
            learned = sum(
                compute_chance_by_ratio(WIDTH, group=c.group, holders=c.holders, group_rate=rate, holders_rate=rate)
                >= SURELY
                for c in telling
            )
            yield KeyholeRow(sensitive, f"both counts against {threshold:,}, 10 %", 2 * rate, learned, None)
        for cap in caps:
            pair = SharePair.HOLDERS_AND_OTHERS
            learned = sum(
                compute_chance(WIDTH, group=c.group, holders=c.holders, epsilon=cap, pair=pair) >= SURELY
                for c in telling
            )
            yield KeyholeRow(sensitive, f"all of a cap of {cap:g} in one pair of counts", cap, learned, None)
        yield _say_outright(sensitive, cells)


def find_least_sizes(*, epsilons: Sequence[float] = (0.5, 1.0, 2.0)) -> Iterator[LeastSize]:
    """The reference table: in scales of continuous noise, and in rows at each epsilon, by both pairs of counts."""
    for width in WIDTHS:
        for share in SHARES:
            sizes = tuple(
                (
                    epsilon,
                    _find_least_group(share, width, epsilon, SharePair.GROUP_AND_HOLDERS),
                    _find_least_group(share, width, epsilon, SharePair.HOLDERS_AND_OTHERS),
                )
                for epsilon in epsilons
            )
            yield LeastSize(share, width, _find_least_scales(width, share), sizes)


def _find_least_group(share: float, width: float, epsilon: float, pair: SharePair) -> int:
    return find_least_group(share, width=width, certainty=SURELY, epsilon=epsilon, pair=pair)


def _find_least_scales(width: float, share: float) -> float:
    low, high = 1.0, 1000.0
    for _ in range(40):
        middle = (low + high) / 2
        learned = compute_chance_within(width, group=middle, holders=share * middle, scale=1.0) >= SURELY
        low, high = (low, middle) if learned else (middle, high)
    return high


def _compute_rate_of_count(threshold: int) -> float:
    """The noise rate of an optimal test of `count(*) > threshold` with a tolerance of 10 %."""
    return float(_calibrate(threshold // 10, sensitivity=1, parts=1).rate)


def _say_outright(sensitive: str, cells: Sequence[Cell]) -> KeyholeRow:
    """Every value that one in twenty has, asked outright: large groups where it is so many times as frequent.

    The share is `1000 holders - c group > 0`, `c` in thousandths rounded up, with 20 % of `c` at the least size as its
    tolerance; what a row loses is the same for every value but for rounding, and the largest is told.
    """
    guard = _calibrate(LEAST_ROWS // 10, sensitivity=1, parts=2)
    told = others = most = 0.0
    for rate in sorted({cell.base_rate for cell in cells if cell.base_rate >= _FREQUENT}):
        line = math.ceil(_GRID * JUMP * rate - 1e-9)
        if line >= _GRID:
            continue  # no group can hold the value that often
        test = _calibrate(int(WIDTH * line * LEAST_ROWS), sensitivity=max(line, _GRID - line), parts=2)
        most = max(most, guard.epsilon + test.epsilon)
        for cell in (cell for cell in cells if cell.base_rate == rate):
            above = _GRID * cell.holders - line * cell.group
            chance = compute_acceptance(guard, cell.group - LEAST_ROWS + 1) * compute_acceptance(test, above)
            if above >= 0:
                told += chance
            else:
                others += chance
    reading = f"said outright: a share {JUMP:g} times the usual, groups of {LEAST_ROWS:,}, 20 %"
    return KeyholeRow(sensitive, reading, most, told, others)


def _calibrate(tolerance: int, *, sensitivity: int, parts: int) -> FunctionalTest:
    return calibrate_test(
        sensitivity=sensitivity, tolerance=tolerance, fnr=FNR / parts, fpr=FPR / parts, allow_block=False
    )
