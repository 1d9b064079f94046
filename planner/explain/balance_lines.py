"""EXPLAIN's lines about the ledger: the price of a question, what is left for it, and stored answers."""

from collections.abc import Iterator

from planner.explain.balances import QuestionBalance
from planner.explain.guarantee import shared_noise_sentence
from planner.explain.rounded_numbers import at_least
from planner.question.plan import Plan


def balance_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Write what a question would cost, and what is left for it, with every detail."""
    yield from _price_lines(plan, left)
    if left.stored is None and left.payment is not None and left.payment.unit_form is not None:
        yield f"  Unit: {left.payment.unit_form.sentence}"
    if left.stored is None:
        yield _left_line(left, verdict=_verdict(plan, left))
    yield from _further_lines(plan, left)


def brief_balance_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Write what a question would cost, what is left for it if that is too little, and what is reused."""
    yield from _price_lines(plan, left)
    if left.stored is None and left.payment is not None:
        form = left.payment.unit_form
        if form is not None and form.by_curve:
            yield f"  Unit: {form.sentence}"
    if left.stored is None and left.refuses(plan):
        yield _left_line(left, verdict=_verdict(plan, left))
    yield from _further_lines(plan, left)


def _price_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    if left.stored is not None:
        yield f"  Stored: {left.stored.sentence}{_verdict(plan, left)}"
    elif left.payment is not None:
        yield f"  Cost: {left.payment.before()}"


def _left_line(left: QuestionBalance, *, verdict: str) -> str:
    return f"  Left for these groups: {at_least(left.epsilon)}{verdict}"


def _verdict(plan: Plan, left: QuestionBalance) -> str:
    return "   -> this question would be refused" if left.refuses(plan) else ""


def _further_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Write which noise is reused, how a refused question would fit, who has to approve it, and its time."""
    if left.stored is None and left.noise is not None:
        yield f"  Reuse: {shared_noise_sentence(left.noise)}"
    if left.refuses(plan):
        yield from left.remedies()
    if left.waiting is not None:
        yield from left.waiting.lines()
    if left.time is not None and left.stored is None:
        yield f"  Time: {left.time.sentence}"
