"""EXPLAIN's lines about the ledger: the price of a question, what is left for it, and stored answers."""

from collections.abc import Iterator

from planner.explain.balances import QuestionBalance
from planner.explain.guarantee import write_shared_noise
from planner.explain.rounded_numbers import write_floor
from planner.question.plan import Plan


def write_balance_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Yield the cost of a question and its remaining budgets, with every detail, as lines of EXPLAIN."""
    yield from _write_price_lines(plan, left)
    if left.stored is None and left.payment is not None and left.payment.form is not None:
        yield f"  {left.payment.form.label}: {left.payment.form.sentence}"
    if left.stored is None:
        yield _write_left_line(left, verdict=_write_verdict(plan, left))
    yield from _write_further_lines(plan, left)


def write_brief_balance_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Yield the cost of a question as lines of EXPLAIN.

    Add the remaining budgets if they do not suffice, and reused noise.
    """
    yield from _write_price_lines(plan, left)
    if left.stored is None and left.payment is not None:
        form = left.payment.form
        if form is not None and form.uses_curve:
            yield f"  {form.label}: {form.sentence}"
    if left.stored is None and left.refuses(plan):
        yield _write_left_line(left, verdict=_write_verdict(plan, left))
    yield from _write_further_lines(plan, left)


def _write_price_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    if left.stored is not None:
        yield f"  Stored: {left.stored.sentence}{_write_verdict(plan, left)}"
    elif left.payment is not None:
        yield f"  Cost: {left.payment.write_price()}"


def _write_left_line(left: QuestionBalance, *, verdict: str) -> str:
    return f"  Left for these groups: {write_floor(left.epsilon)}{verdict}"


def _write_verdict(plan: Plan, left: QuestionBalance) -> str:
    return "   -> this question would be refused" if left.refuses(plan) else ""


def _write_further_lines(plan: Plan, left: QuestionBalance) -> Iterator[str]:
    """Yield lines about reused noise, settings that make a refused question fit, its approval, and its time."""
    if left.stored is None and left.noise is not None:
        yield f"  Reuse: {write_shared_noise(left.noise)}"
    if left.refuses(plan):
        yield from left.list_remedies()
    if left.waiting is not None:
        yield from left.waiting.list_lines()
    if left.time is not None and left.stored is None:
        yield f"  Time: {left.time.sentence}"
