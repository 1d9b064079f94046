"""What an experiment asks about: exact integer aggregates of some functionals over a public set of keys."""

from dataclasses import dataclass

from mechanisms.formula import Integers


@dataclass(frozen=True, slots=True)
class Measures:
    """Aggregates, int64 of shape (functionals, keys), with what is public about them.

    `sensitivities` is what one record changes at most; `declared` the largest value that an owner would declare for a
    key; `typed` the thresholds that an analyst would type and `bands` a tenth of them, all in integer units. `origin`
    says where the rows come from.
    """

    name: str
    origin: str
    functionals: tuple[str, ...]
    aggregates: Integers
    sensitivities: tuple[int, ...]
    declared: tuple[int, ...]
    typed: tuple[int, ...]
    bands: tuple[int, ...]

    @property
    def keys(self) -> int:
        """The number of groups that are asked about."""
        return int(self.aggregates.shape[1])
