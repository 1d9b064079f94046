"""What an analyst has asked, its cost at most and what is left: as `keyhole.queries` and `GET /v1/budget` tell it."""

from typing import Any

from fastapi import APIRouter, Request, Response

from accountant.model import NANO, ROW_UNIT
from accountant.reports.history import AskedQuestion
from proxy.console.page import page
from proxy.console.parts import ConsoleParts
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
    """The page of what was asked."""

    @router.get("/console/history")
    def show_history(request: Request) -> Response:
        who = request.state.analyst
        with parts.serving.using() as service:
            asked = service.questions(who)
            lines = [line for line in budget.lines(service, who) if line.scope != "group"]
            kept = service.keep_text == "full"
        shown = [_describe(one) for one in reversed(asked[-MOST_LISTED:])]
        older = max(0, len(asked) - MOST_LISTED)
        return page(
            request, "analyst/history.html", section="history", asked=shown, older=older, lines=lines, kept=kept
        )


def _describe(one: AskedQuestion) -> dict[str, Any]:
    charge, wording = one.charge, one.wording
    unit = None if charge.family.unit == ROW_UNIT else f"{charge.unit_epsilon_nano / NANO:.4f}"
    state, tone = _STATES.get(one.status, (one.status, ""))
    return {
        "at": f"{one.at:%Y-%m-%d %H:%M} UTC",
        "table": charge.family.table,
        "text": None if wording is None else wording.text,
        "guarantee": None if wording is None else wording.guarantee,
        "groups": f"{charge.cells.size:,}",
        "group": f"{charge.epsilon_nano / NANO:.4f}",
        "unit": unit,
        "state": state,
        "tone": tone,
    }
