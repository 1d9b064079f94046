"""The layout of a picture of heat maps: positions of texts and boxes, in pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.report.heat_map import DARK_FROM, SUMMARY, HeatMap, choose_colour, list_legend, summarise, write_percent
from proxy.report.terminal import make_visible

MOST_ROWS = 120  # of a picture: more would not be read from a screen; the map says how many it leaves out
MOST_COLUMNS = 120  # as for rows
FONT = 12  # pixels, as all sizes here
EDGE = "#888888"
INK = "#111111"
CHARACTER = 7.3  # the most that a letter is wide on average, in pixels at the font size above
_HIGH = 20  # of a cell and of a line of text
_WIDE = 32  # of a cell: four characters
_MARGIN = 16  # around everything
_LABEL = 30  # characters of a name of a row or column; longer ones are cut
_LEGEND = 134  # from one sample of the legend to the next
_SAMPLE = 16  # of a sample's edge


@dataclass(frozen=True, slots=True)
class TextLabel:
    """A line of text whose baseline starts at `x` and `y`, in pixels. If `is_vertical`, it is written upwards."""

    x: float
    y: float
    text: str
    ink: str = INK
    is_bold: bool = False
    is_vertical: bool = False


@dataclass(frozen=True, slots=True)
class Box:
    """A filled rectangle with an edge. `x` and `y` are its upper left corner, in pixels."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    label: TextLabel | None = None
    tooltip: str = ""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture on white. `parts` are in the order of drawing."""

    title: str
    width: float
    height: float
    parts: tuple[TextLabel | Box, ...]


def lay_out_maps(maps: Sequence[HeatMap], *, title: str) -> Picture:
    """Return a picture of the maps, one below the other, with a legend.

    Names are cut after 30 characters, and control characters are made visible. If a map has more than 120 rows or
    columns, only the most spent ones are drawn, with a remark.
    """
    parts: list[TextLabel | Box] = [TextLabel(_MARGIN, _MARGIN + FONT, make_visible(title), is_bold=True)]
    top, width = _MARGIN + 2.0 * _HIGH, _MARGIN * 2 + len(title) * CHARACTER
    cut = [whole.keep_most_spent(rows=MOST_ROWS, columns=MOST_COLUMNS) for whole in maps]
    if any(shown.remark for shown in cut):
        for line in (SUMMARY, *summarise(maps)):
            parts.append(TextLabel(_MARGIN, top, make_visible(line)))
            top, width = top + _HIGH, max(width, _MARGIN * 2 + len(make_visible(line)) * CHARACTER)
        top += _HIGH
    for shown in cut:
        drawn, right, bottom = _lay_out_map(shown, top)
        parts += drawn
        top, width = bottom + _HIGH, max(width, right)
    parts += _lay_out_legend(top)
    width = max(width, _MARGIN * 2 + _LEGEND * len(list_legend()))
    return Picture(title=title, width=width, height=top + 2 * _HIGH, parts=tuple(parts))


def _lay_out_map(shown: HeatMap, top: float) -> tuple[list[TextLabel | Box], float, float]:
    """Return a map's parts, its right edge and its bottom."""
    heading = f"{shown.title}. {shown.remark}".strip() if shown.remark else shown.title
    parts: list[TextLabel | Box] = [TextLabel(_MARGIN, top, make_visible(heading), is_bold=True)]
    left = _MARGIN + max(len(_shorten(name)) for name in shown.rows) * CHARACTER + 8
    # column headings are written upwards
    body = top + 8 + max(len(_shorten(name)) for name in shown.columns) * CHARACTER + 8
    for number, name in enumerate(shown.columns):
        parts.append(TextLabel(left + number * _WIDE + _WIDE / 2 + 4, body - 6, _shorten(name), is_vertical=True))
    for down, (row, shares) in enumerate(zip(shown.rows, shown.percent.tolist(), strict=True)):
        y = body + down * _HIGH
        parts.append(TextLabel(_MARGIN, y + 14, _shorten(row)))
        parts += _lay_out_row(row, shown.columns, shares, left=left, y=y)
    right = max(left + _WIDE * len(shown.columns), _MARGIN + len(heading) * CHARACTER) + _MARGIN
    return parts, right, body + _HIGH * len(shown.rows) + _HIGH


def _lay_out_row(row: str, columns: Sequence[str], shares: Sequence[int], *, left: float, y: float) -> Iterator[Box]:
    for number, (column, percent) in enumerate(zip(columns, shares, strict=True)):
        x = left + number * _WIDE
        told = "never asked" if percent < 0 else f"{percent} % spent"
        number_in_it = TextLabel(x + 5, y + 14, write_percent(percent), ink="#ffffff" if percent >= DARK_FROM else INK)
        yield Box(
            x,
            y,
            _WIDE,
            _HIGH,
            choose_colour(percent),
            label=number_in_it,
            tooltip=make_visible(f"{row}, {column}: {told}"),
        )


def _lay_out_legend(top: float) -> Iterator[TextLabel | Box]:
    for number, (percent, words) in enumerate(list_legend()):
        x = float(_MARGIN + number * _LEGEND)
        yield Box(x, top, _SAMPLE, _SAMPLE, choose_colour(percent))
        yield TextLabel(x + 22, top + 13, words)


def _shorten(name: str) -> str:
    told = make_visible(name)
    return told if len(told) <= _LABEL else f"{told[: _LABEL - 3]}..."
