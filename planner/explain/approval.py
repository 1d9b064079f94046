"""That a question waits for its owner, as EXPLAIN says it: in the words of the refusal (KH308) that it would meet."""

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Waiting:
    """A question that the owner has to approve before it is asked.

    `question` is its id in the ledger, which the owner needs; `message`, `detail` and `hint` are those of KH308.
    """

    question: str
    message: str
    detail: str
    hint: str

    def lines(self) -> Iterator[str]:
        """The lines for EXPLAIN."""
        yield f"  Approval: {self.message}"
        yield f"    {self.detail}"
        yield f"    {self.hint}"
