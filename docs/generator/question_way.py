"""The picture of a question's way: the stages that `proxy/pipeline/stages.py` goes through, from SQL to keys.

Every `Stage` has its box, so that a new one cannot be forgotten. The picture has a background of its own, light or dark
as the reader's system is.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

from proxy.observe.telemetry import Stage

PICTURE = Path(__file__).resolve().parents[1] / "question-way.svg"
WIDTH, HEIGHT = 1000, 360
TITLE, SMALL = 15, 12  # sizes of letters
WIDEST_LETTER = 0.56  # of a letter's size, on average over a line in common sans-serif fonts

STYLE = """
  svg { color-scheme: light dark; font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; }
  .page { fill: #ffffff; } .frame { fill: #f3f5f8; stroke: #b6bfcb; }
  .box { fill: #ffffff; stroke: #55616f; } .ledger { fill: #e3edfb; stroke: #2f6bb8; }
  .private { fill: #fdeee0; stroke: #b8641a; }
  .title { fill: #17202b; font-weight: 600; } .small { fill: #3d4855; }
  .way { stroke: #55616f; fill: none; stroke-width: 1.6; } .tip { fill: #55616f; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0f141a; } .frame { fill: #171e27; stroke: #46525f; }
    .box { fill: #202a35; stroke: #93a1b0; } .ledger { fill: #17304f; stroke: #6ea8f0; }
    .private { fill: #43290f; stroke: #e59a4f; }
    .title { fill: #f0f4f8; } .small { fill: #c3ccd6; }
    .way { stroke: #a9b6c4; } .tip { fill: #a9b6c4; }
  }
"""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a title and lines below it."""

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...]
    kind: str = "box"

    @property
    def middle(self) -> int:
        """Its horizontal middle."""
        return self.x + self.width // 2


_TOP, _BOTTOM, _COLUMNS, _ACROSS, _DOWN = 60, 248, (204, 346, 488, 630), 122, 84

STAGES: dict[Stage, Box] = {
    Stage.PARSE: Box(_COLUMNS[0], _TOP, _ACROSS, _DOWN, "parse", ("text to question,", "by the policy")),
    Stage.PLAN: Box(_COLUMNS[1], _TOP, _ACROSS, _DOWN, "plan", ("noise, SQL and", "worst case fixed")),
    Stage.TURN: Box(_COLUMNS[2], _TOP, _ACROSS, _DOWN, "turn", ("a place at the", "source, in turn")),
    Stage.RESERVE: Box(_COLUMNS[3], _TOP, _ACROSS, _DOWN, "reserve", ("the worst case,", "durably")),
    Stage.AGGREGATE: Box(
        822, 156, 154, 104, "aggregate", ("one scan, units", "bounded in the SQL,", "integers alone"), "private"
    ),
    Stage.DECIDE: Box(_COLUMNS[3], _BOTTOM, _ACROSS, _DOWN, "decide", ("integers and", "exact noise")),
    Stage.COMMIT: Box(_COLUMNS[2], _BOTTOM, _ACROSS, _DOWN, "commit", ("what it cost,", "with the answer")),
}
OTHERS = (
    Box(16, _TOP, 132, _BOTTOM + _DOWN - _TOP, "analyst", ("psql, BI tool,", "driver, REST")),
    Box(_COLUMNS[2], 172, 264, 48, "ledger", ("what every group has lost",), "ledger"),
    Box(
        _COLUMNS[0],
        _BOTTOM,
        264,
        _DOWN,
        "answer",
        ("the keys that pass, nothing else;", "sorted, joined in a data-free shadow"),
    ),
)
FRAMES = (
    (184, 12, 588, 336, "Keyhole: spends only what the ledger allows"),
    (806, 12, 186, 336, "source: private rows"),
)
WAYS = (
    "M148 102 H200",
    "M326 102 H342",
    "M468 102 H484",
    "M610 102 H626",
    "M691 144 V168",
    "M752 102 H899 V152",
    "M899 260 V290 H756",
    "M630 290 H614",
    "M549 248 V224",
    "M488 290 H472",
    "M204 290 H152",
)
AGAIN = "M407 144 V244"
WORDS = (
    (166, 92, "SQL", "middle"),
    (166, 280, "keys", "middle"),
    (399, 190, "asked before: the same", "end"),
    (399, 206, "answer, nothing spent", "end"),
    (789, 92, "SQL", "middle"),
    (899, 310, "true aggregates", "middle"),
)


def estimate_width(text: str, size: int) -> float:
    """About how wide a line of text is drawn."""
    return len(text) * size * WIDEST_LETTER


def draw_question_way() -> str:
    """Return the picture as SVG text; the same on every run."""
    parts = [f'<rect class="page" width="{WIDTH}" height="{HEIGHT}" rx="10"/>']
    for x, y, width, height, name in FRAMES:
        parts.append(f'<rect class="frame" x="{x}" y="{y}" width="{width}" height="{height}" rx="10"/>')
        parts.append(_draw_text(x + width // 2, y + 24, name, "title", SMALL + 1))
    for box in (*STAGES.values(), *OTHERS):
        parts += _draw_box(box)
    parts += [f'<path class="way" d="{way}" marker-end="url(#tip)"/>' for way in WAYS]
    parts.append(f'<path class="way" d="{AGAIN}" stroke-dasharray="5 4" marker-end="url(#tip)"/>')
    parts += [_draw_text(x, y, text, "small", SMALL, anchor) for x, y, text, anchor in WORDS]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"'
        ' aria-labelledby="what how">',
        '<title id="what">The way of a question through Keyhole</title>',
        f'<desc id="how">{escape(_describe_way())}</desc>',
        f"<style>{STYLE}</style>",
        '<defs><marker id="tip" markerWidth="9" markerHeight="8" refX="7" refY="4" orient="auto">',
        '<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
    )
    return "\n".join((*head, *parts, "</svg>\n"))


def _describe_way() -> str:
    stages = ", ".join(f"{box.title} ({' '.join(box.lines)})" for box in STAGES.values())
    return f"SQL comes from the analyst and passes the stages {stages}. Keys go back, and nothing else."


def _draw_box(box: Box) -> list[str]:
    rectangle = f'<rect class="{box.kind}" x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}" rx="8"/>'
    top = box.y + (box.height - TITLE - 17 * len(box.lines)) // 2 + TITLE - 2
    lines = [_draw_text(box.middle, top + 17 * n, text, "small", SMALL) for n, text in enumerate(box.lines, start=1)]
    return [rectangle, _draw_text(box.middle, top, box.title, "title", TITLE), *lines]


def _draw_text(x: int, y: int, text: str, kind: str, size: int, anchor: str = "middle") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
