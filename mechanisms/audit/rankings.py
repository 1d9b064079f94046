"""Rankings as subjects of an audit. Transcripts have the returned order and what the revealed values suggest.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject
from mechanisms.audit.events import Transcripts
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Noise
from mechanisms.ranking.calibration import (
    ONE_LOOK,
    RankingCalibration,
    RankingSchedule,
    bound_unit_loss,
    calibrate_ranking,
)
from mechanisms.ranking.ranking_task import RankingTask
from mechanisms.ranking.run import Ranking, rank_keys

AUDITED_LOOKS = RankingSchedule(rates=(Fraction(1, 4), Fraction(1, 2)), shares=(0.02, 0.02))
"""Two early looks: enough to stop at one, at the other or at neither."""

_TASK = RankingTask(keys=3, limit=1, descending=True, sensitivity=1, tolerance=4, fnr=0.05, fpr=0.1)


class Ranker(Protocol):
    """The type of a function with the signature of `rank_keys`. Tests pass broken functions."""

    def __call__(
        self,
        calibration: RankingCalibration,
        aggregates: Integers,
        *,
        taking_part: Booleans | None,
        keeps_path: bool,
        noise: Noise,
        partition: Integers | None = None,
    ) -> Ranking:
        """Rank the keys."""


def audit_ranking(
    *, samples: int, noise: Noise, subject: str = "ranking", progress: Callable[[str], None] | None = None
) -> AuditReport:
    """Audit the first of three keys on the databases of `pair_rankings`.

    Parameters:
        samples: as for `audit`.
    """
    pairs = pair_rankings(rank_keys, schedule=AUDITED_LOOKS, noise=noise)
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def pair_rankings(rank: Ranker, *, schedule: RankingSchedule, noise: Noise) -> tuple[Neighbours, ...]:
    """Return the pairs of databases on which rankings are audited.

    In the first two pairs one of three keys moves. Its value is near the others, or so far from them that an early
    look may settle its place. The claim is the key's loss ex post. In two further pairs several keys move at once,
    with one look and no kept values: two keys of one partition, or three keys of two partitions. The claim is
    `bound_unit_loss`. In the last pair a cell moves that two keys read with opposite signs. The claim is the loss of
    that cell.

    For a key that moves, the transcript has the number of its values that are nearer to one database, and True if its
    finest value is nearer to that one.
    """
    several, one = calibrate_ranking(_TASK, schedule=schedule), calibrate_ranking(_TASK, schedule=ONE_LOOK)
    parted = calibrate_ranking(replace(_TASK, keys=2, partitions=2), schedule=ONE_LOOK)
    read_twice = calibrate_ranking(replace(_TASK, moved=2), schedule=schedule)
    ahead = NoiseAhead(noise)

    def pair_keys(description: str, value: int) -> Neighbours:
        first, second = (_watch_key(rank, several, (exact, 0, 0), value + 1, ahead) for exact in (value, value + 1))
        return Neighbours(description=description, first=first, second=second)

    return (
        pair_keys("a key near the others", -1),
        pair_keys("a key that an early look may settle", -several.looks[0].settled_gap),
        Neighbours(
            description="a unit in two of the keys",
            first=_watch_answer(rank, one, (0, 0, 0), ahead),
            second=_watch_answer(rank, one, (0, 1, 1), ahead),
        ),
        Neighbours(
            description="a unit in three keys of two partitions",
            first=_watch_answer(rank, parted, (0, 0, 0, 0), ahead),
            second=_watch_answer(rank, parted, (0, 1, 1, 1), ahead),
        ),
        Neighbours(
            description="a cell that two values read",
            first=_watch_key(rank, read_twice, (0, 0, 0), 1, ahead, beside=-1),
            second=_watch_key(rank, read_twice, (1, -1, 0), 1, ahead, beside=-1),
        ),
    )


def _watch_key(
    rank: Ranker,
    calibration: RankingCalibration,
    values: tuple[int, ...],
    higher: int,
    noise: Noise,
    *,
    beside: int | None = None,
) -> Release:
    """Return a release of the answer, the number of revealed values, and evidence for the first key's exact value.

    With `beside` there is evidence for a second key that moves down to this value.
    """

    def release(samples: int) -> Transcripts:
        seen, claimed = [], []
        for _ in range(samples):
            found = rank(calibration, np.array(values), taking_part=None, keeps_path=True, noise=noise)
            assert found.path is not None, "three keys are looked at"
            reached = found.path.reached
            told = found.path.values[: reached[0], 0] >= higher
            other = beside is not None and found.path.values[reached[1] - 1, 1] <= beside
            seen.append((*found.ranked_keys, reached.sum(), told.sum(), told[-1], other))
            claimed.append(found.epsilon[0])
        return Transcripts(revealed_values=np.array(seen, dtype=np.int64), claimed_losses=np.array(claimed))

    return release


def _watch_answer(rank: Ranker, calibration: RankingCalibration, values: tuple[int, ...], noise: Noise) -> Release:
    """Return a release of the answer alone. Its claim is the loss of a unit in all of the keys."""
    loss = bound_unit_loss(calibration, groups=len(values), signed=False)
    partition = np.arange(len(values)) % calibration.task.partitions

    def release(samples: int) -> Transcripts:
        ranked = [
            rank(
                calibration, np.array(values), taking_part=None, keeps_path=False, noise=noise, partition=partition
            ).ranked_keys
            for _ in range(samples)
        ]
        return Transcripts(revealed_values=np.array(ranked), claimed_losses=np.full(samples, loss))

    return release
