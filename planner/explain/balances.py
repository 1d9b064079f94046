"""The ledger's view of a question before it is asked: balances, reusable noise, and a pending approval."""

from collections.abc import Iterator
from dataclasses import dataclass

from planner.catalog.pace import ExpectedTime
from planner.explain.payment import Payment
from planner.question.plan import Plan


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A question that needs the owner's approval before it may be asked.

    `question` is its id in the ledger, by which the owner approves it. `message`, `detail` and `hint` are the texts of
    the refusal (KH308 or KH318) that it would get now.
    """

    question: str
    message: str
    detail: str
    hint: str

    def list_lines(self) -> Iterator[str]:
        """Yield EXPLAIN's lines about the approval that the question needs."""
        yield f"  Approval: {self.message}"
        yield f"    {self.detail}"
        yield f"    {self.hint}"


@dataclass(frozen=True, slots=True)
class SharedNoise:
    """Noise that `earlier_questions` drew or read, and that this question would read again.

    `shared_cost` is the most that the question charges the shared balances. `own_cost` is the loss of everything that
    it reads, which is the most that its analyst's own balances are charged. Both are epsilon per key. `is_affordable`
    is True if the balances have room for both.
    """

    earlier_questions: int
    shared_cost: float
    own_cost: float
    is_affordable: bool = True


@dataclass(frozen=True, slots=True)
class StoredPayment:
    """The cost of reading an answer that is stored for this question and data version.

    `payment` is the charge to the analyst's own caps, None if reading costs nothing. `is_affordable` is True if these
    caps have room for it.
    """

    payment: Payment | None
    is_affordable: bool = True

    @property
    def sentence(self) -> str:
        """The sentence for EXPLAIN about the result of asking now."""
        told = "an answer to this question is stored for this data version: asking returns it again"
        if self.payment is None:
            return f"{told} and costs nothing."
        price = self.payment.write_price()
        return f"{told} and costs the shared budget nothing, but counts towards your own caps: {price}"


@dataclass(frozen=True, slots=True)
class QuestionBalance:
    """The ledger's view of a question before it is asked.

    `version` is the public data version. `epsilon` is the largest worst case per key that every balance still admits.
    For a question that would be refused, `fitting_settings` are settings with which it would fit, as "keyhole.tolerance
    = '13%'"; `hint` is the hint of the refusal, and `short_groups` names the groups with too little left. `noise` is
    set if noise of earlier questions would be read. `question` is the question's id in the ledger. `waiting` is set if
    the owner has to approve it first. `payment` is its cost on fresh noise, None if it costs nothing. `stored` is set
    if an answer to it is stored. Asking then returns that answer, whatever budget is left, and the payment concerns the
    reader's own caps alone. `time` is the expected time at the source.
    """

    version: str
    epsilon: float
    fitting_settings: tuple[str, ...] = ()
    hint: str = ""
    short_groups: str = ""
    noise: SharedNoise | None = None
    question: str = ""
    waiting: PendingApproval | None = None
    payment: Payment | None = None
    stored: StoredPayment | None = None
    time: ExpectedTime | None = None

    def list_remedies(self) -> Iterator[str]:
        """Yield EXPLAIN's lines on how to change a question that would be refused."""
        if self.short_groups:
            yield f"  Too little is left for {self.short_groups}"
        if self.fitting_settings:
            yield f"  Would fit: {', or '.join(self.fitting_settings)}"
        if self.hint and self.hint != "  or  ".join(f"SET {setting};" for setting in self.fitting_settings):
            yield f"  Would help: {self.hint}"

    def refuses(self, plan: Plan) -> bool:
        """Return True if asking now would be refused for lack of budget."""
        if self.stored is not None:
            return not self.stored.is_affordable
        on_shared_noise = self.noise is not None and self.noise.is_affordable
        return plan.worst_case_epsilon > self.epsilon and not on_shared_noise
