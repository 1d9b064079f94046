"""How hard the tests try: sizes at `quick`, which a newcomer runs, and at `thorough`, which a release passes.

One switch decides: hypothesis's profile, from `--hypothesis-profile` or the variable KEYHOLE_EFFORT. What is drawn,
looped over or sampled takes its size from here. Both draw the same cases, and meet the same noise, in every run, so
that what passed once fails for a change alone; `anew`, as large as `thorough`, draws others each time. `unshrunk` is
`quick` for who asks only whether something fails: no smaller case is looked for.
"""

import os
from collections.abc import Iterable, Sequence
from itertools import count, product
from math import gcd
from typing import Any, TypeVar

from hypothesis import Phase, settings

# A rule that one drawn case in nine breaks is found in 25 with probability .95; twice as many take twice as long.
QUICK_EXAMPLES = 25
# Ends what hangs and measures nothing: a machine ten times slower with eight other things to do needs less.
PATIENCE_S = 600

Chosen = TypeVar("Chosen")


def register_profiles() -> None:
    """Make the profiles known to hypothesis and load the one that the environment names."""
    # no deadlines: they would measure the machine
    settings.register_profile("quick", max_examples=QUICK_EXAMPLES, derandomize=True, deadline=None)
    settings.register_profile(
        "unshrunk", settings.get_profile("quick"), phases=(Phase.explicit, Phase.reuse, Phase.generate)
    )
    settings.register_profile("thorough", derandomize=True, deadline=None)
    settings.register_profile("anew", deadline=None)
    settings.load_profile(os.environ.get("KEYHOLE_EFFORT", "quick"))


def is_quick() -> bool:
    return settings.get_current_profile_name() in {"quick", "unshrunk"}


def is_repeated() -> bool:
    return settings.get_current_profile_name() != "anew"


def examples(thorough: int, *, quick: int = QUICK_EXAMPLES, **others: Any) -> settings:
    """Return hypothesis's settings for a test of so many examples, fewer at `quick`: for one that several parameters
    repeat, less than the usual `quick`, since all of them together look for what breaks."""
    return settings(max_examples=rounds(thorough, quick=min(thorough, quick)), **others)


def rounds(thorough: int, *, quick: int) -> int:
    """Return how many worlds, statements or samples a test takes."""
    return quick if is_quick() else thorough


def shares(thorough: int) -> range:
    """Return into how many tests one that takes minutes is cut, each with a share of its cases; at `quick` one. A run
    that may not take long begins no test after its time, so none may take much of it."""
    return range(rounds(thorough, quick=1))


def cases(*choices: Iterable[Any], quick: int) -> list[tuple[Any, ...]]:
    """Return all that can be chosen together, or at `quick` so many of them, spread over all as evenly as steps of a
    golden section are: each value of each choice is among them, about as often as the others."""
    whole = list(product(*choices))
    return spread(whole, rounds(len(whole), quick=min(quick, len(whole))))


def spread(whole: Sequence[Chosen], number: int) -> list[Chosen]:
    """Return so many of what there is, as many as there are at most, by steps of a golden section."""
    step = next(step for step in count(round(0.618 * len(whole))) if gcd(step, len(whole)) == 1)
    return [whole[turn * step % len(whole)] for turn in range(min(number, len(whole)))]
