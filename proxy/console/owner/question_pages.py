"""The questions on the owner's pages: waiting questions, past questions, and one question in full."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from accountant.charges import NANO
from accountant.ledger import Ledger
from accountant.reports.history import AskedQuestion
from accountant.store.waiting import WaitingQuestion
from proxy.report.ledger_tables import (
    SHOWN_LOSSES,
    describe_question,
    describe_reuse,
    describe_subject,
    find_cost,
    list_loss_levels,
    write_epsilon,
)
from proxy.report.terminal import make_visible

KEPT_NO_TEXT = "(the policy keeps no texts)"


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A question that waits for approval, with all analysts who asked it.

    `declined` says when and why the question was declined before, if it was.
    """

    question: str
    analysts: str
    asked_at: str
    table: str
    epsilon: str
    text: str
    guarantee: str
    declined: str


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """One past question as a row of text in the owner's list."""

    reservation: str
    at: str
    analyst: str
    about: str
    groups: str
    worst: str
    cost: str
    status: str
    reuse: str


@dataclass(frozen=True, slots=True)
class QuestionInFull:
    """One question in full: facts by name, and a table of how many groups lost how much."""

    reservation: str
    facts: tuple[tuple[str, str], ...]
    losses: tuple[tuple[str, str, str], ...]
    smaller: str


def list_waiting_rows(ledger: Ledger) -> Iterator[WaitingRow]:
    """Yield one row for each waiting question of all analysts, newest first."""
    together: dict[str, list[WaitingQuestion]] = {}
    for one in ledger.owner.find_waiting_questions():
        together.setdefault(one.question, []).append(one)
    for question, asked in together.items():
        newest, declined = asked[0], ledger.find_decline_reason(question)
        yield WaitingRow(
            question=question,
            analysts=", ".join(make_visible(name) for name in sorted({one.analyst for one in asked})),
            asked_at=newest.asked_at.isoformat(sep=" ", timespec="seconds"),
            table=make_visible(newest.table),
            epsilon=f"{newest.needed_nano / NANO:.4f}",
            text=KEPT_NO_TEXT if newest.text is None else make_visible(newest.text),
            guarantee="" if newest.guarantee is None else make_visible(newest.guarantee),
            declined="" if declined is None else f"{declined.at:%Y-%m-%d %H:%M} UTC: {make_visible(declined.why)}",
        )


def list_question_rows(asked: Iterable[AskedQuestion]) -> Iterator[QuestionRow]:
    """Yield one row for each question, in the given order."""
    for one in asked:
        yield QuestionRow(
            reservation=one.reservation,
            at=one.asked_at.isoformat(sep=" ", timespec="seconds"),
            analyst=make_visible(one.charge.analyst),
            about=make_visible(describe_subject(one)),
            groups=f"{one.charge.cells.key_count:,}",
            worst=write_epsilon(one.charge.epsilon_nano),
            cost=write_epsilon(find_cost(one)),
            status=one.status,
            reuse=make_visible(describe_reuse(one)),
        )


def list_facts_and_losses(question: AskedQuestion) -> QuestionInFull:
    """Return the facts about a question in the ledger, and its greatest losses with the groups that have them."""
    levels = [] if question.spent is None else list_loss_levels(question, question.spent)
    rest = levels[SHOWN_LOSSES:]
    return QuestionInFull(
        reservation=question.reservation,
        facts=tuple((name, make_visible(told)) for name, told in describe_question(question)),
        losses=tuple(
            (write_epsilon(loss), f"{count:,}", make_visible("; ".join(names) + (" ..." if count > len(names) else "")))
            for loss, count, names in levels[:SHOWN_LOSSES]
        ),
        smaller=f"and {sum(count for _, count, _ in rest):,} groups with smaller losses" if rest else "",
    )
