"""The table of questions that wait for the owner's approval, outside the chain of events."""

from dataclasses import dataclass
from datetime import UTC, datetime

import sqlalchemy as sa

from accountant.errors import LedgerUnavailable
from accountant.events.digests import digest_row

MOST_OF_AN_ANALYST = 100  # older ones are forgotten: refusals do not fill the ledger, and a person reads them
_waiting = sa.Table(
    "waiting",
    sa.MetaData(),
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("question", "analyst")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("asked_at", "family_table", "needed_nano")),
    *(sa.Column(name, sa.Text) for name in ("text", "guarantee")),
    sa.Column("digest", sa.Text, nullable=False),
)


@dataclass(frozen=True, slots=True)
class WaitingQuestion:
    """A question that was refused until the owner approves it.

    `question` is its fingerprint, `needed_nano` the worst-case loss of a group in 1e-9 epsilon. Text and guarantee are
    kept as far as the policy allows.
    """

    question: str
    analyst: str
    asked_at: datetime
    table: str
    needed_nano: int
    text: str | None
    guarantee: str | None


class WaitingQuestions:
    """Read and write access to the waiting questions, inside one transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def store_question(self, one: WaitingQuestion) -> None:
        """Store a question, or replace its row. Delete an analyst's oldest questions if there are too many."""
        mine = _waiting.c.analyst == one.analyst
        self._connection.execute(_waiting.delete().where(mine, _waiting.c.question == one.question))
        row = {
            "question": one.question,
            "analyst": one.analyst,
            "asked_at": one.asked_at.astimezone(UTC).isoformat(timespec="microseconds"),
            "family_table": one.table,
            "needed_nano": str(one.needed_nano),
            "text": one.text,
            "guarantee": one.guarantee,
        }
        self._connection.execute(_waiting.insert(), {**row, "digest": digest_row(row.values())})
        newest = sa.select(_waiting.c.question).where(mine).order_by(_waiting.c.asked_at.desc(), _waiting.c.question)
        kept = self._connection.scalars(newest.limit(MOST_OF_AN_ANALYST)).all()
        self._connection.execute(_waiting.delete().where(mine, _waiting.c.question.not_in(kept)))

    def find_questions(self, question: str | None = None) -> tuple[WaitingQuestion, ...]:
        """Return all questions, or those of one fingerprint, the newest first."""
        chosen = sa.select(_waiting).order_by(_waiting.c.asked_at.desc(), _waiting.c.question)
        if question is not None:
            chosen = chosen.where(_waiting.c.question == question)
        return tuple(
            WaitingQuestion(
                row.question,
                row.analyst,
                datetime.fromisoformat(row.asked_at),
                row.family_table,
                int(row.needed_nano),
                row.text,
                row.guarantee,
            )
            for row in self._connection.execute(chosen)
        )

    def delete_question(self, question: str) -> None:
        """Delete a question that no longer waits."""
        self._connection.execute(_waiting.delete().where(_waiting.c.question == question))

    def check_rows(self) -> None:
        """Raise `LedgerUnavailable` unless every row is as it was written."""
        for *cells, written in self._connection.execute(sa.select(_waiting)):
            if digest_row(cells) != written:
                raise LedgerUnavailable("a question that waits for approval is not what was written")
