"""The noisy values of one functional, coarse to fine: values known from a path, and values that a run reveals.

If few keys take a look, their numbers are used. If many do, it is cheaper to draw for all keys and keep only the values
of a mask. Values of other keys are not kept and do not count as revealed.

Proofs: docs/proofs/gradual_release.md, docs/proofs/reuse.md.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from mechanisms.formula import Booleans, Cut, Integers
from mechanisms.noise.gradual_release import draw_chain, refine_noise
from mechanisms.protocol import Epsilons, FunctionalTest, Levels, Noise, NoisePath
from mechanisms.three_valued import Verdicts
from mechanisms.threshold.one_shot import round_up_to_float

_MANY_OF = 8  # one key of so many is enough to work on all: to find a key, and put it back, takes that much longer
_FEW = 1 << 13  # keys of which nothing is worth saving

_ALL = slice(None)


@dataclass(frozen=True, slots=True, eq=False)
class ChosenKeys:
    """The keys that take a look.

    Without a `mask`, `where` has the keys' numbers. With a `mask`, `where` covers all keys and `mask` selects among
    them. Draws and results have `size` entries, one for each key of `where`.
    """

    where: Integers | slice
    mask: Booleans | None
    size: int

    @staticmethod
    def from_mask(chosen: Booleans, *, allows_mask: bool) -> "ChosenKeys":
        """Return the keys of a mask. Many keys keep it as a mask if `allows_mask`."""
        count = int(np.count_nonzero(chosen))
        if allows_mask and count > _FEW and count * _MANY_OF >= chosen.size:
            return ChosenKeys(_ALL, chosen, chosen.size)
        return ChosenKeys(np.flatnonzero(chosen), None, count)

    def write_verdicts(self, verdicts: Verdicts, found: Verdicts) -> None:
        """Store `found` for the chosen keys that have no verdict yet."""
        if self.mask is None:
            before = verdicts[self.where]
            verdicts[self.where] = np.where(before == 0, found, before)
        else:
            np.copyto(verdicts, found, where=self.mask & (verdicts == 0))


class NoisyValues:
    """The noisy values of one functional in a run: those of its stored path, and further ones that the run reveals.

    Guarantee: the values that are kept for a key, and counted as revealed, are exactly those that were revealed for it,
    and nothing finer.
    """

    def __init__(
        self, test: FunctionalTest, exact: Integers, path: NoisePath | None, sensitivity: int, *, keeps_path: bool
    ) -> None:
        before = () if path is None else path.rates
        own = list_levels(test)
        self.test = test
        self.rates = (*before, *(rate for rate in own if rate not in before))
        self.taken: Levels = np.zeros(exact.size, dtype=np.int8)
        # of what nobody has looked at before, as much is revealed as is taken
        self.reached: Levels = self.taken if path is None else path.reached.copy()
        self._rows = [self.rates.index(rate) for rate in own]
        self._before: Levels = self.reached.copy()
        self._exact = exact
        self._fresh = path is None
        # a look decides at once: what was revealed before it is kept for others alone, or to be refined
        self._newest_alone = self._fresh and not keeps_path
        self._noisy = np.zeros((1 if self._newest_alone else len(self.rates), exact.size), dtype=np.int64)
        self._chain: Integers | None = None  # the noise of looks to come, once a first one was taken
        self._scale = sensitivity if test.block == 1 else 1
        if path is not None:
            self._noisy[: len(before)] = path.values

    def choose_keys(self, keys: Booleans) -> ChosenKeys:
        """Return the keys of a mask, which then take a look."""
        return ChosenKeys.from_mask(keys, allows_mask=self._fresh)

    def is_known(self, look: int) -> Booleans:
        """Return True for the keys whose value at a look had been revealed before this run."""
        return np.asarray(self._before > self._rows[look], dtype=np.bool_)

    def reveal_look(self, look: int, keys: ChosenKeys, *, noise: Noise) -> None:
        """Reveal the look's value for keys that have taken all earlier looks.

        Unless the value was known before, all coarser values count as revealed together with it.
        """
        if self._fresh:
            self._reveal_next_level(look, keys, noise)
            return
        self.taken[keys.where] = look + 1
        row = self._rows[look]
        where = np.asarray(keys.where)
        behind = where[self.reached[where] <= row]
        first = int(self.reached[behind].min(initial=row))
        for level in range(first, row + 1):
            here = behind[self.reached[behind] == level]
            if here.size:
                self._reveal_next_level(level, ChosenKeys(here, None, here.size), noise)

    def compute_distances(self, cut: Cut, look: int, keys: ChosenKeys) -> tuple[Integers, int]:
        """Return the noisy values for a literal and an offset.

        The distance to the threshold is the value minus the offset. The keys must know the look's value. Both results
        are in blocks if the noise is on block indices.
        """
        noisy = self._noisy[self._find_kept_row(self._rows[look]), keys.where]
        if self.test.block > 1:
            exact = self._exact[keys.where]
            index = (exact - (cut.cut + 1)) // self.test.block + (noisy - exact)
            return (index, -1) if cut.above else (-index, 0)
        return (noisy, cut.cut) if cut.above else (-noisy, -(cut.cut + 1))

    def compute_total_loss(self) -> Epsilons:
        """Return for each key the epsilon of all values that this question has read, rounded up."""
        lost: Epsilons = _tabulate_losses(list_levels(self.test), scale=self._scale)[0, self.taken]
        return lost

    def compute_fresh_loss(self) -> Epsilons:
        """Return for each key the epsilon of the values that this run was the first to reveal, rounded up."""
        lost: Epsilons = _tabulate_losses(self.rates, scale=self._scale)[self._before, self.reached]
        return lost

    def make_path(self) -> NoisePath | None:
        """Return all revealed values as a path.

        Return None if values were not kept, and for noise on block indices, which no other threshold can use.
        """
        if self.test.block > 1 or self._newest_alone:
            return None
        return NoisePath(rates=self.rates, values=self._noisy, reached=self.reached)

    def _find_kept_row(self, level: int) -> int:
        return 0 if self._newest_alone else level

    def _reveal_next_level(self, level: int, keys: ChosenKeys, noise: Noise) -> None:
        """Reveal a level for keys that have revealed exactly the coarser levels."""
        drawn = self._draw_level(level, keys, noise)
        kept = self._noisy[self._find_kept_row(level)]
        if keys.mask is None:
            kept[keys.where] = self._exact[keys.where] + drawn
            self.reached[keys.where] = level + 1
            return
        if self._newest_alone:
            np.add(self._exact, drawn, out=kept)  # what the other keys have here is overwritten before they look
        else:
            np.copyto(kept, self._exact + drawn, where=keys.mask)
        self.reached += keys.mask

    def _draw_level(self, level: int, keys: ChosenKeys, noise: Noise) -> Integers:
        if self._fresh:
            if level == 0:  # a key's first look, whenever that comes
                chain = draw_chain(self.rates, size=keys.size, noise=noise)
                self._keep_chain(chain[1:], keys)
                return np.asarray(chain[0])
            assert self._chain is not None, "noise was drawn at the first look"
            drawn: Integers = self._chain[level - 1, keys.where]
            return drawn
        if level == 0:
            return noise.draw_discrete_laplace(rate=self.rates[0], size=keys.size)
        coarser = self._noisy[level - 1, keys.where] - self._exact[keys.where]
        return refine_noise(coarser, coarse=self.rates[level - 1], fine=self.rates[level], noise=noise)

    def _keep_chain(self, finer: Integers, keys: ChosenKeys) -> None:
        if self._chain is None and keys.mask is not None:
            self._chain = finer
            return
        if self._chain is None:
            self._chain = np.zeros((len(self.rates) - 1, self.taken.size), dtype=np.int64)
        if keys.mask is None:
            self._chain[:, keys.where] = finer
        else:
            np.copyto(self._chain, finer, where=keys.mask)


def list_levels(test: FunctionalTest) -> tuple[Fraction, ...]:
    """Return the rates of all looks of a test, coarse to fine."""
    return (*(look.rate for look in test.looks), test.rate)


@lru_cache(maxsize=128)
def _tabulate_losses(rates: tuple[Fraction, ...], *, scale: int) -> Epsilons:
    """Return a table of the epsilons from one level to another, rounded up.

    Level 0 is no value. A coarser level costs zero.
    """
    every = (Fraction(0), *rates)
    return np.array(
        [[round_up_to_float(max(Fraction(0), fine - coarse) * scale) for fine in every] for coarse in every]
    )
