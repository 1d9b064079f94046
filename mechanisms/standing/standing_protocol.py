"""The interface that decides a standing question: calibrated without data, drawn before data are read, then used."""

from dataclasses import dataclass, field
from typing import Protocol

from mechanisms.formula import Booleans, Integers
from mechanisms.protocol import Epsilons, Noise


@dataclass(frozen=True, slots=True)
class LookResult:
    """The result of one look.

    `state` is as secret as the data; `alerted` are the keys that are in the answer by now, shape (keys,).
    """

    state: bytes = field(repr=False)
    alerted: Booleans


class Standing(Protocol):
    """A standing question's calibration. Windows are independent of each other; a state is of one window, all keys.

    `worst_case_epsilon` bounds what one key's window tells of one privacy unit, whatever comes. `fnr`, `fpr` are what
    is guaranteed, None where nothing is.
    """

    @property
    def worst_case_epsilon(self) -> float:
        """Of one key and window, rounded up."""

    @property
    def fnr(self) -> float | None:
        """The chance, at most, that a key is missing at a look at which the formula is true."""

    @property
    def fpr(self) -> float | None:
        """The chance, at most, that a key for which the relaxed formula is false all through a window alerts in it."""

    def draw_state(self, *, keys: int, noise: Noise) -> bytes:
        """Draw the state of a window before its first look.

        It must be stored before data are read, and is as secret as they are.
        """

    def take_look(self, state: bytes, values: Integers, *, look: int, noise: Noise) -> LookResult:
        """Make one look, the `look`th of its window from 1 on. Looks may be left out.

        Parameters:
            state: after the look before.
            values: exact, int64, shape (functionals, keys), as of the look's time.

        Raises:
            ValueError: a state or values of another number of keys, a look that was made.
        """

    def compute_spent(self, state: bytes) -> Epsilons:
        """Return the loss of each key's window by then, rounded up, shape (keys,)."""
