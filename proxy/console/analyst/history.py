"""The page of an analyst's earlier questions, their cost, and the remaining budget.

The page shows the same data as `keyhole.queries` and `GET /v1/budget`.
"""

from contextlib import suppress
from typing import Any
from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from accountant.charges import NANO, ROW_UNIT
from accountant.reports.history import AskedQuestion
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.question_text import write_question_text
from proxy.console.page import render_page
from proxy.console.parts import ConsoleParts
from proxy.pipeline.messages import read_bare_question
from proxy.report import budget

MOST_LISTED = 200  # questions of a page, the newest; `keyhole.queries` has all
_STATES = {
    "committed": ("answered", "good"),
    "read": ("answered for nothing shared", "good"),
    "open": ("no answer, stays spent", "warn"),
    "released": ("nothing spent", ""),
    "settled": ("settled by the owner", "warn"),
    "standing": ("a monitor", ""),
    "ended": ("a monitor that ended", ""),
}


def add_history_pages(router: APIRouter, parts: ConsoleParts) -> None:
    """Add the page of the analyst's earlier questions to a router."""

    @router.get("/console/history")
    def show_history(request: Request) -> Response:
        who = request.state.analyst
        with parts.serving.hold_open() as service:
            asked = service.read_questions(who)
            lines = budget.list_summary(service, who)
            kept, stored = service.keep_text, _map_stored_texts(service.catalog)
        shown = [_describe(one, stored, repeats=kept == "full") for one in reversed(asked[-MOST_LISTED:])]
        older = max(0, len(asked) - MOST_LISTED)
        return render_page(
            request, "analyst/history.html", section="history", asked=shown, older=older, lines=lines, kept=kept
        )


def _map_stored_texts(catalog: Catalog) -> dict[str, str]:
    """Map the text of each stored question, without constants as in the ledger, to the question's name."""
    found = {}
    for one in catalog.stored_questions:
        with suppress(KeyholeError):
            found[write_question_text(read_bare_question(one.sql, catalog), {}, keeps_constants=False)] = one.name
    return found


def _describe(one: AskedQuestion, stored: dict[str, str], *, repeats: bool) -> dict[str, Any]:
    """Return an earlier question for the page."""
    charge, wording = one.charge, one.wording
    unit = None if charge.family.unit == ROW_UNIT else f"{charge.unit_epsilon_nano / NANO:.4f}"
    state, tone = _STATES.get(one.status, (one.status, ""))
    text = None if wording is None else wording.text
    name = stored.get(text or "")
    if text is not None and repeats:
        again, leads = f"sql={quote(text)}", "ask again"
    elif name is not None:
        again, leads = f"stored={quote(name)}", f"open the stored question {name}"
    else:
        again, leads = f"table={quote(charge.family.table)}", "build one like it"
    return {
        "again": again,
        "leads": leads,
        "at": f"{one.asked_at:%Y-%m-%d %H:%M} UTC",
        "table": charge.family.table,
        "text": text,
        "guarantee": None if wording is None else wording.guarantee,
        "groups": f"{charge.cells.key_count:,}",
        "group": f"{charge.epsilon_nano / NANO:.4f}",
        "unit": unit,
        "state": state,
        "tone": tone,
    }
