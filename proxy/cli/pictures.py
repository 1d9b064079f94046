"""An answer as a picture, in the terminal or as one HTML file: a grid of its keys, or the bands of a scorecard."""

from collections.abc import Iterator

from rich.console import RenderableType

from proxy.pipeline.messages import Answer
from proxy.report.scorecard import draw_scorecard
from proxy.report.scorecard_html import MOST_COLUMNS, MOST_ROWS, write_scorecard_html
from proxy.report.scorecard_terminal import count_fitting_columns, print_scorecard


def draw_answer(answer: Answer, width: int, *, most_rows: int) -> Iterator[RenderableType]:
    """Yield the parts of an answer's picture for a terminal of `width` characters."""
    card = draw_scorecard(answer.plan, answer.keys.keys, most_rows=most_rows, most_columns=count_fitting_columns(width))
    return print_scorecard(card, width=width)


def render_answer_page(answer: Answer, sql: str) -> str:
    """Return an answer's picture as one HTML file, with the question and the answer's promise."""
    card = draw_scorecard(answer.plan, answer.keys.keys, most_rows=MOST_ROWS, most_columns=MOST_COLUMNS)
    told = (
        f"Guarantee: {answer.make_document()['guarantee']['sentence']}",
        f"Data version: {answer.version}.",
        *(f"Warning: {warning}." for warning in answer.plan.warnings),
    )
    return write_scorecard_html(
        card, title=f"{answer.plan.question.table.name} by {answer.plan.question.keys.description}", sql=sql, told=told
    )
