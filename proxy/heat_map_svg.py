"""Heat maps as one picture: SVG text, every cell with its number, so that it reads in black and white as well."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from proxy.heat_map import DARK_FROM, HeatMap, figure, fill, legend
from proxy.psql_table import visible

MOST_ROWS = 120
MOST_COLUMNS = 120
_CHARACTER = 7.3  # width in pixels at the font size below
_FONT = 12
_HIGH = 20
_WIDE = 32
_MARGIN = 16
_LABEL = 30
_LEGEND = 134


def heat_map_svg(maps: Sequence[HeatMap], *, title: str) -> str:
    """The maps one below the other, with a legend.

    Guarantee: well-formed XML whatever the key values are; every value stands in it, escaped, cut after 30 characters
    with the whole one in the cell's tooltip; nothing is loaded from elsewhere and nothing runs. Of a map with more than
    120 rows or columns the most spent are drawn, and it says so.
    """
    parts: list[str] = [_text(_MARGIN, _MARGIN + _FONT, title, bold=True)]
    top, width = _MARGIN + 2.0 * _HIGH, _MARGIN * 2 + len(title) * _CHARACTER
    for whole in maps:
        shown = whole.at_most(rows=MOST_ROWS, columns=MOST_COLUMNS)
        drawn, right, bottom = _drawn(shown, top)
        parts += drawn
        top, width = bottom + _HIGH, max(width, right)
    parts += _legend(top)
    width = max(width, _MARGIN * 2 + _LEGEND * len(legend()))
    size = f'width="{width:.0f}" height="{top + 2 * _HIGH:.0f}"'
    view = f'viewBox="0 0 {width:.0f} {top + 2 * _HIGH:.0f}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" font-family="monospace" '
            f'font-size="{_FONT}">',
            f"<title>{_escaped(title)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        )
    )


def _drawn(shown: HeatMap, top: float) -> tuple[list[str], float, float]:
    """A map's parts, its right edge and its bottom."""
    heading = f"{shown.title}. {shown.remark}".strip() if shown.remark else shown.title
    parts = [_text(_MARGIN, top, heading, bold=True)]
    left = _MARGIN + max(len(_short(name)) for name in shown.rows) * _CHARACTER + 8
    # column headings are written upwards
    body = top + 8 + max(len(_short(name)) for name in shown.columns) * _CHARACTER + 8
    for number, name in enumerate(shown.columns):
        x = left + number * _WIDE + _WIDE / 2 + 4
        parts.append(_text(x, body - 6, _short(name), turned=True))
    for down, (row, shares) in enumerate(zip(shown.rows, shown.percent.tolist(), strict=True)):
        y = body + down * _HIGH
        parts.append(_text(_MARGIN, y + 14, _short(row)))
        parts += _row(row, shown.columns, shares, left=left, y=y)
    right = max(left + _WIDE * len(shown.columns), _MARGIN + len(heading) * _CHARACTER) + _MARGIN
    return parts, right, body + _HIGH * len(shown.rows) + _HIGH


def _row(row: str, columns: Sequence[str], shares: Sequence[int], *, left: float, y: float) -> Iterator[str]:
    for number, (column, percent) in enumerate(zip(columns, shares, strict=True)):
        x = left + number * _WIDE
        told = "never asked" if percent < 0 else f"{percent} % spent"
        yield (
            f"<g><title>{_escaped(f'{row}, {column}: {told}')}</title>"
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{_WIDE}" height="{_HIGH}" fill="{fill(percent)}" stroke="#888888"/>'
            f"{_text(x + 5, y + 14, figure(percent), fill=_ink(percent))}</g>"
        )


def _legend(top: float) -> Iterator[str]:
    for number, (percent, words) in enumerate(legend()):
        x = _MARGIN + number * _LEGEND
        yield f'<rect x="{x}" y="{top:.1f}" width="16" height="16" fill="{fill(percent)}" stroke="#888888"/>'
        yield _text(x + 22, top + 13, words)


def _ink(percent: int) -> str:
    return "#ffffff" if percent >= DARK_FROM else "#111111"


def _short(name: str) -> str:
    told = visible(name)
    return told if len(told) <= _LABEL else f"{told[: _LABEL - 3]}..."


def _text(x: float, y: float, text: str, *, bold: bool = False, fill: str = "#111111", turned: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{weight}{turn} xml:space="preserve">{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    return escape(visible(text), {'"': "&quot;", "'": "&apos;"})
