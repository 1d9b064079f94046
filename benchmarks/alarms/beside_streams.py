"""An alarm beside all published streams that watch the same windows at the same loss, and beside zeros.

`python -m benchmarks.alarms.beside_streams` prints them for a thousand windows of taxi pick-ups, spread over those
that come near the threshold: as monitors run them, with states that are written down and read, more take minutes.
"""

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from benchmarks.alarms.measured import CONTRACTS
from benchmarks.alarms.pickups import read_pickups
from benchmarks.alarms.replay import FNR, FPR
from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Cut, Integers
from mechanisms.noise.exact import make_system_noise
from mechanisms.standing.alarms import calibrate_standing_alarms
from mechanisms.standing.standing_protocol import Standing
from mechanisms.standing.standing_streams import watch_by_stream
from mechanisms.standing.standing_task import StandingTask
from mechanisms.streams.stream_names import WATCHING
from mechanisms.threshold.joint_loss import expose_all_functionals

BESIDE = 1_000

_RATE_BITS = 20  # of the loss that streams are given: no more than the alarm's, less by a millionth


@dataclass(frozen=True, slots=True)
class Watched:
    """Of the windows that exceeded the cut, the part not in the answer at the first look at which they did; of those
    that stayed beyond the tolerance, the part that ever was."""

    name: str
    epsilon: float
    late: float
    wrong: float


def watch_beside(by_look: Integers, *, cut: int, tolerance: int) -> tuple[Watched, ...]:
    """The alarm, each stream held against the cut less the tolerance, and each held against the cut itself.

    Parameters:
        by_look: values that only grow, shape (windows, looks).
    """
    literal = Cut(0, cut, above=True, tolerance=tolerance)
    task = StandingTask(
        formula=literal,
        sensitivities=(1,),
        exposures=expose_all_functionals(1),
        regimes=(Regime.GROWING,),
        least_values=(0,),
        looks=by_look.shape[1],
        fnr=FNR,
        fpr=FPR,
    )
    alarm = calibrate_standing_alarms(task)
    epsilon = Fraction(int(alarm.worst_case_epsilon * (1 << _RATE_BITS)), 1 << _RATE_BITS)
    half = replace(task, formula=replace(literal, tolerance=tolerance // 2))
    found = [_watch("alarm", alarm, by_look, literal)]
    for name in WATCHING:
        found.append(_watch(name, watch_by_stream(task, name=name, epsilon=epsilon), by_look, literal))
        lowered = watch_by_stream(half, name=name, epsilon=epsilon)
        found.append(_watch(f"{name}, half of the tolerance", lowered, by_look, literal))
    return tuple(found)


def _watch(name: str, standing: Standing, by_look: Integers, literal: Cut) -> Watched:
    noise, windows = make_system_noise(), len(by_look)
    state, alerted_at = standing.draw_state(keys=windows, noise=noise), np.zeros(windows, dtype=np.int64)
    for look, values in enumerate(by_look.T, 1):
        looked = standing.take_look(state, values[np.newaxis], look=look, noise=noise)
        alerted_at[looked.alerted & (alerted_at == 0)] = look
        state = looked.state
    above = by_look > literal.cut
    true, beyond = above.any(axis=1), by_look[:, -1] <= literal.cut - literal.tolerance
    late = true & ((alerted_at == 0) | (alerted_at > above.argmax(axis=1) + 1))
    return Watched(
        name=name,
        epsilon=standing.worst_case_epsilon,
        late=float(late.sum() / max(1, true.sum())),
        wrong=float((beyond & (alerted_at > 0)).sum() / max(1, beyond.sum())),
    )


def main() -> None:
    """Print a table for each of the first two contracts."""
    found = read_pickups(seed=1)
    for cut, tolerance in CONTRACTS[:2]:
        near = found.by_hour[found.by_hour[:, -1] > cut // 2]
        some = near[:: max(1, len(near) // BESIDE)]
        print(f"\n{cut}, {tolerance}: {len(some)} windows" + " " * 22 + "epsilon    late   wrong")
        for one in watch_beside(some, cut=cut, tolerance=tolerance):
            print(f"{one.name:40}{one.epsilon:8.3f}{one.late:8.1%}{one.wrong:8.1%}")


if __name__ == "__main__":
    main()
