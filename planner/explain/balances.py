"""The ledger's view of a question before it is asked: balances, earlier noise, whether its owner comes first."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalog.pace import ExpectedTime
from planner.explain.payment import Payment
from planner.question.plan import Plan


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that the owner has to approve before it is asked.

    `question` is its id in the ledger, which the owner needs; `message`, `detail` and `hint` are those of the refusal
    that it would meet, KH308 or KH318.
    """

    question: str
    message: str
    detail: str
    hint: str

    def lines(self) -> Iterator[str]:
        """Yield the lines for EXPLAIN."""
        yield f"  Approval: {self.message}"
        yield f"    {self.detail}"
        yield f"    {self.hint}"


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """That a question is decided on noise which `earlier` questions drew or read.

    `fresh` is the most that it costs the shared balances, `own` what it reads in all and its analyst's own balances are
    charged at most, both per key; `fits` whether the balances admit that.
    """

    earlier: int
    fresh: float
    own: float
    fits: bool = True


@dataclass(frozen=True, slots=True)
class Stored:
    """That the question was answered on its data version before.

    `payment` is what reading that answer costs the analyst's own caps, None where it is read for nothing; `fits`
    whether these admit it.
    """

    payment: Payment | None
    fits: bool = True

    @property
    def sentence(self) -> str:
        """Return the result of asking now, for EXPLAIN."""
        told = "an answer to this question is stored for this data version: asking returns it again"
        if self.payment is None:
            return f"{told} and costs nothing."
        return f"{told} and costs the shared budget nothing, but counts towards your own caps: {self.payment.before()}"


@dataclass(frozen=True, slots=True)
class QuestionBalance:
    """The ledger's view of a question before it is asked.

    `version` is the public data version. `epsilon` is the largest worst case per key that every balance still admits.
    `would_fit` are settings with which the question would pass where it does not: "keyhole.tolerance = '13%'"; `hint`
    is all that would help, as the refusal says it, and `short_groups` names the groups that have too little left.
    `noise` is there where earlier questions' noise would be read. `question` is the question's id in the ledger, and
    `waiting` is there where the owner has to approve it first. `payment` is what it costs on noise of its own, None
    where it costs nothing. `stored`: an answer to it is stored, which asking tells again, whatever is left; its reader
    pays `payment` then, of caps of the own. `time` is about how long the source works on it.
    """

    version: str
    epsilon: float
    would_fit: tuple[str, ...] = ()
    hint: str = ""
    short_groups: str = ""
    noise: SharedNoise | None = None
    question: str = ""
    waiting: Waiting | None = None
    payment: Payment | None = None
    stored: Stored | None = None
    time: ExpectedTime | None = None

    def remedies(self) -> Iterator[str]:
        """Yield the lines for EXPLAIN of a question that would be refused."""
        if self.short_groups:
            yield f"  Too little is left for {self.short_groups}"
        if self.would_fit:
            yield f"  Would fit: {', or '.join(self.would_fit)}"
        if self.hint and self.hint != "  or  ".join(f"SET {setting};" for setting in self.would_fit):
            yield f"  Would help: {self.hint}"

    def refuses(self, plan: Plan) -> bool:
        """Return True if asking now would be refused for lack of budget."""
        if self.stored is not None:
            return not self.stored.fits
        on_shared_noise = self.noise is not None and self.noise.fits
        return plan.worst_case_epsilon > self.epsilon and not on_shared_noise
