"""The interface of mechanisms for standing questions. A state is drawn before data are read, then used at each look."""

from dataclasses import dataclass, field
from typing import Protocol

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Epsilons, Noise


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of one look.

    `state` is as secret as the data. `alerted` is True for each key in the answer, shape (keys,).
    """

    state: bytes = field(repr=False)
    alerted: Booleans


class Standing(Protocol):
    """The interface of a calibrated standing question. Windows are independent.

    A state is about one window and all keys.

    `worst_case_epsilon` bounds the loss of one privacy unit through one key's window, for any data. `fnr` and `fpr` are
    the guaranteed error rates, or None without a guarantee.
    """

    @property
    def worst_case_epsilon(self) -> float:
        """The loss bound of one key and window, rounded up."""

    @property
    def fnr(self) -> float | None:
        """A bound on the probability that a key is missing at a look at which the formula is true."""

    @property
    def fpr(self) -> float | None:
        """A bound on the probability that a key alerts in a window in which the relaxed formula is always false."""

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Draw the state of a window before its first look.

        The state must be stored before data are read. It is as secret as the data.
        """

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Take look number `look` of the window, counted from 1. Looks may be left out.

        Parameters:
            state: the state after the look before.
            values: exact, int64, shape (functionals, keys), as of the look's time.

        Raises:
            ValueError: a state or values of another number of keys, or a look that is not after the last one.
        """

    def compute_spent_losses(self, state: bytes) -> Epsilons:
        """Return the loss through each key's window up to this state, rounded up, shape (keys,)."""
