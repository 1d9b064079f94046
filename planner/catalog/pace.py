"""The speed of a source, as `keyhole check` measured it on generated rows, and the table sizes that the owner declares.

Guarantee: nothing here follows from private rows. A table's size is the policy's `size`, and the speed is measured on
rows that the engine generates.
"""

from dataclasses import astuple, dataclass

LONGEST_TIMEOUT_MS = 86_400_000  # a day: a question that takes longer is for a batch, not for a session
UNCERTAINTY_FACTOR = 2.0
"""EXPLAIN warns of a question if so many times what is expected is above the timeout. Of forty questions on TPC-H's
line items and orders at scale .3, half on DuckDB and half on PostgreSQL, none took more than 1.5 times as long as
expected (of the processors' time), most .4 to 1.1 times; other work on the machine comes on top."""


@dataclass(frozen=True, slots=True)
class TableSize:
    """The approximate number of rows and of privacy units of a table, as its owner declares them. Both are public."""

    rows: int
    units: int


@dataclass(frozen=True, slots=True)
class EngineWork:
    """The amounts of work that a question causes in an engine.

    `row_aggregates` is rows times aggregates, `pairs` the number of units in groups, and `choices` the number of pairs
    that are sorted so that some can be chosen.
    """

    statements: float = 0.0
    rows: float = 0.0
    row_aggregates: float = 0.0
    pairs: float = 0.0
    pair_aggregates: float = 0.0
    choices: float = 0.0
    groups: float = 0.0

    @property
    def amounts(self) -> tuple[float, ...]:
        """All amounts of work, in the order of the fields."""
        return astuple(self)


@dataclass(frozen=True, slots=True)
class Pace:
    """The seconds per amount of each kind of work. `engine` is a digest of the source and its settings."""

    engine: str
    seconds: EngineWork

    def estimate_time(self, work: EngineWork, *, timeout_ms: int) -> "ExpectedTime":
        """Return the expected time of some work at the measured pace, with the timeout as its limit."""
        parts = zip(self.seconds.amounts, work.amounts, strict=True)
        return ExpectedTime(sum(seconds * amount for seconds, amount in parts), timeout_ms / 1000)


@dataclass(frozen=True, slots=True)
class ExpectedTime:
    """The expected time of a question at the source, and its limit, in seconds."""

    seconds: float
    timeout_s: float

    @property
    def is_too_long(self) -> bool:
        """Return True if the question is expected to take longer than the timeout. It is then refused."""
        return self.seconds > self.timeout_s

    @property
    def sentence(self) -> str:
        """EXPLAIN's line about the expected time."""
        about = f"about {write_seconds(self.seconds)} at the source"
        limit = f"the timeout is {write_seconds(self.timeout_s)}"
        if self.is_too_long:
            return f"{about}; {limit}   -> this question would be refused"
        if self.seconds * UNCERTAINTY_FACTOR > self.timeout_s:
            return f"{about}; {limit}, and a question that runs into it stays charged"
        return about


def write_seconds(seconds: float) -> str:
    """Return seconds as text with two significant digits, at least a tenth."""
    if seconds < 10:
        return f"{max(seconds, 0.1):.1f} s"
    return f"{float(f'{seconds:.2g}'):,.0f} s"
