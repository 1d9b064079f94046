"""The drawing of heat maps as one SVG picture. Each cell shows its number, so it can be read in black and white."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

from proxy.report.heat_map import HeatMap
from proxy.report.heat_map_layout import EDGE, FONT, Box, TextLabel, lay_out_maps
from proxy.report.terminal import make_visible


def draw_heat_maps(maps: Sequence[HeatMap], *, title: str) -> str:
    """Return SVG text with the maps one below the other, and a legend.

    Guarantee: the result is well-formed XML whatever the key values are. Every value is escaped, and cut after 30
    characters; the cell's tooltip has the whole value. The picture loads nothing and runs nothing. If a map has more
    than 120 rows or columns, only the most spent ones are drawn, with a remark.
    """
    picture = lay_out_maps(maps, title=title)
    size = f'width="{picture.width:.0f}" height="{picture.height:.0f}"'
    view = f'viewBox="0 0 {picture.width:.0f} {picture.height:.0f}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} {view} role="img" font-family="monospace" '
            f'font-size="{FONT}">',
            f"<title>{_escape_text(title)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *(_draw_box(part) if isinstance(part, Box) else _draw_text(part) for part in picture.parts),
            "</svg>\n",
        )
    )


def _draw_box(box: Box) -> str:
    drawn = (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:g}" height="{box.height:g}" fill="{box.fill}" '
        f'stroke="{EDGE}"/>'
    )
    if box.label is None:
        return drawn
    return f"<g><title>{_escape_text(box.tooltip)}</title>{drawn}{_draw_text(box.label)}</g>"


def _draw_text(label: TextLabel) -> str:
    weight = ' font-weight="bold"' if label.is_bold else ""
    turn = f' transform="rotate(-90 {label.x:.1f} {label.y:.1f})"' if label.is_vertical else ""
    return (
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" fill="{label.ink}"{weight}{turn} xml:space="preserve">'
        f"{_escape_text(label.text)}</text>"
    )


def _escape_text(text: str) -> str:
    return escape(make_visible(text), {'"': "&quot;", "'": "&apos;"})
