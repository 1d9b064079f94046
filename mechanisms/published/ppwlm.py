"""PPWLM, the progressive predicate-wise Laplace mechanism of MIDE (algorithm 2), on any formula.

As published: `m` looks at levels `eps_j = eps_1 * omega**(j - 1)`, `omega = (eps_m / eps_1)**(1 / (m - 1))`, with
`eps_m = sensitivity * ln(m / (2 beta)) / u` and shifts `u_j = sensitivity * ln(m / (2 beta)) / eps_j`, noise by gradual
release; after each look a key above `c + u_j` is decided positive, one at or below `c - u_j` eliminated; what is
undecided at the last look is returned. Here `u` is half the tolerance, so that the uncertain region `[c - 2u, c]` is
the tolerance band, `beta` is the smaller of a functional's two shares, and the shares come from Keyhole's
apportionment, as for TSLM.

What MIDE says but does not hold: releasing the ex-post loss does not break the promise of `eps_max` (it is a function
of the transcript that the worst case covers); it is still kept from analysts, for it says more than the answer does.
The published refusal at `eps_m > eps_max` is the ledger's: the worst case is reserved before any data is touched.

| here | MIDE |
|---|---|
| looks | m |
| first_epsilon | eps_1 |
| shift | alpha_j |

References: MIDE section 5.3.2, algorithm 2, theorem 5.5.

Proofs: docs/proofs/gradual_release.md, docs/proofs/apportionment.md, docs/proofs/short_cuts.md.
"""

import math
from fractions import Fraction

from mechanisms.formula import Integers
from mechanisms.keyhole.progressive import Progressive
from mechanisms.noise.exact import GREATEST_RATE, LEAST_RATE
from mechanisms.protocol import Calibration, DecisionTask, FunctionalTest, Look, Noise, Outcome, Unachievable
from mechanisms.published.progressive_looks import meet_contract_in_looks
from mechanisms.threshold.one_shot import round_rate_up, round_up_to_float

LOOKS = 4  # as published: m
FIRST_EPSILON = 1e-5  # as published: where the levels begin


class Ppwlm:
    """MIDE's progressive test under Keyhole's apportionment.

    Guarantee: `P(not returned | formula true) <= fnr`, `P(returned | relaxed formula false) <= fpr`, per key, for any
    data; the loss of a key is that of the looks it needed, at most `worst_case_epsilon`.
    """

    name = "ppwlm"
    summary = "MIDE's progressive test: far groups stop at a small loss"

    def __init__(self, *, looks: int = LOOKS, first_epsilon: float = FIRST_EPSILON) -> None:
        """Take the published parameters: `looks >= 2` and the first level, as MIDE 5.5.1 sets them by default."""
        check_looks(looks, first_epsilon)
        self._looks = looks
        self._first_epsilon = first_epsilon

    def calibrate(self, task: DecisionTask) -> Calibration:
        """Calibrate one schedule per functional. Raise `Unachievable` if none exists, also for a tolerance of zero."""
        return calibrate_ppwlm(self.name, task, looks=self._looks, first_epsilon=self._first_epsilon)

    def decide(self, calibration: Calibration, aggregates: Integers, *, noise: Noise) -> Outcome:
        """Decide every key look by look, with the looks fixed before, as `Progressive` does.

        The loss is that of the levels reached.
        """
        return Progressive().decide(calibration, aggregates, noise=noise)


def check_looks(looks: int, first_epsilon: float) -> None:
    """Raise ValueError for fewer than two looks or a first level that is not positive."""
    if looks < 2 or not first_epsilon > 0.0:
        raise ValueError("a progressive test has at least two looks and a positive first level")


def calibrate_ppwlm(mechanism: str, task: DecisionTask, *, looks: int, first_epsilon: float) -> Calibration:
    """Return the schedule of every functional, with its share divided into `looks` equal parts.

    Raise `Unachievable` if there is none.
    """

    def calibrate(functional: int, tolerance: int, share: float) -> FunctionalTest:
        return calibrate_ppwlm_test(
            sensitivity=task.sensitivities[functional],
            tolerance=tolerance,
            share=share,
            looks=looks,
            first_epsilon=first_epsilon,
            functional=functional,
        )

    return meet_contract_in_looks(mechanism, task, parts=lambda _: looks, calibrate=calibrate)


def calibrate_ppwlm_test(
    *, sensitivity: int, tolerance: int, share: float, looks: int, first_epsilon: float, functional: int
) -> FunctionalTest:
    """Return the published schedule with `u = tolerance / 2`: both error rates are at most `share`.

    The first level is `first_epsilon`, or lower if the last level is less than `2**(looks - 1)` times as high.

    Parameters:
        sensitivity, tolerance: integer units, tolerance >= 1.
        share: the smaller of the two rates, cut into `looks` equal parts.

    Raises:
        Unachievable: the last level lies outside the sampler's range.
    """
    span = 1 << (looks - 1)
    exponent = math.log(looks / (2.0 * share))
    last = max(round_rate_up(2.0 * exponent / tolerance * (1.0 + 2.0**-30)), LEAST_RATE * span)
    if last > GREATEST_RATE:
        raise Unachievable("error rates this small need a wider tolerance", functional=functional)
    first = max(LEAST_RATE, min(round_rate_up(first_epsilon / sensitivity), last / span))
    growth = (float(last) / float(first)) ** (1.0 / (looks - 1))
    rates = [first, *(round_rate_up(float(first) * growth**step) for step in range(1, looks - 1))]
    return FunctionalTest(
        epsilon=round_up_to_float(last * sensitivity),
        rate=last,
        shift=-(-tolerance // 2),
        tie=Fraction(0),
        fnr=share,
        fpr=share,
        tolerance=tolerance,
        looks=tuple(make_published_look(rate, share=share / looks) for rate in rates),
    )


def make_published_look(rate: Fraction, *, share: float) -> Look:
    """Return the published look: positive above `c + u`, eliminated up to `c - u`, `u = ln(1 / (2 share)) / rate`."""
    shift = max(0.0, -math.log(2.0 * share)) / float(rate)
    return Look(rate=rate, rejecting=-math.ceil(shift), accepting=math.floor(shift) + 1)
