"""A formula's trees as one SVG picture with labels, readable by people and by screen readers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from planner.explain.formula_tree import Branch, NodeKind

_CHARACTER = 7.3  # width in pixels at the font size below
_FONT = 12  # size of the font in pixels; all sizes here only have to be readable beside it
_ROW = 40  # height of a row, with the space to the next
_BOX = 30  # height of a node, room for a text and a note below it
_PAD = 9  # between a node's edge and its text
_GAP = 34  # between two columns, room for the lines that join them
_MARGIN = 16  # around the picture, and between its trees
_TITLE = 26  # height of a tree's heading

_FILLS = {
    NodeKind.AND: "#dbe7f5",
    NodeKind.OR: "#f7e6cf",
    NodeKind.LITERAL: "#e3f1e1",
    NodeKind.IDLE: "#eeeeee",
    NodeKind.CONSTANT: "#eeeeee",
    NodeKind.SCORECARD: "#eeeeee",
    NodeKind.COLUMN: "#eeeeee",
}


@dataclass(frozen=True, slots=True)
class _PlacedNode:
    """A node with its place: its column from the left, and the middle of its row in pixels from the top of its tree."""

    branch: Branch
    column: int
    middle: float
    children: tuple["_PlacedNode", ...]

    def walk(self) -> Iterator["_PlacedNode"]:
        yield self
        for child in self.children:
            yield from child.walk()


def draw_formula(trees: Sequence[tuple[str, Branch]], *, title: str) -> str:
    """Return the SVG text of the trees, one below the other, each under its heading.

    Guarantee: well-formed XML for all texts. It contains every node's text and note, escaped. Nothing is loaded from
    elsewhere and nothing runs.

    Parameters:
        trees: headings and trees.
        title: the title of the picture, for its title element.
    """
    parts: list[str] = []
    top, width = float(_MARGIN), _measure_text(title)
    for heading, root in trees:
        parts.append(_draw_text(_MARGIN, top + _FONT, heading, is_bold=True))
        top += _TITLE
        placed, rows = _lay_out_node(root, column=0, row=0)
        lefts, right = _lay_out_columns(placed)
        parts += _draw_nodes(placed, lefts, top)
        width = max(width, right + _MARGIN, _measure_text(heading) + 2 * _MARGIN)
        top += rows * _ROW + _MARGIN
    size = f'width="{width:.0f}" height="{top:.0f}" viewBox="0 0 {width:.0f} {top:.0f}"'
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="monospace" font-size="{_FONT}">',
            f"<title>{_escape_text(title)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        )
    )


def _lay_out_node(branch: Branch, *, column: int, row: int) -> tuple[_PlacedNode, int]:
    """Return the node in its place, and the number of rows that it and its descendants take."""
    if not branch.children:
        return _PlacedNode(branch=branch, column=column, middle=(row + 0.5) * _ROW, children=()), 1
    children: list[_PlacedNode] = []
    taken = 0
    for child in branch.children:
        placed, rows = _lay_out_node(child, column=column + 1, row=row + taken)
        children.append(placed)
        taken += rows
    middle = 0.5 * (children[0].middle + children[-1].middle)
    return _PlacedNode(branch=branch, column=column, middle=middle, children=tuple(children)), taken


def _lay_out_columns(root: _PlacedNode) -> tuple[list[float], float]:
    """Return the left edge of every column, and the right edge of the last."""
    widest: dict[int, float] = {}
    for node in root.walk():
        widest[node.column] = max(widest.get(node.column, 0.0), _measure_branch(node.branch))
    lefts, left = [], float(_MARGIN)
    for column in range(len(widest)):
        lefts.append(left)
        left += widest[column] + _GAP
    return lefts, left - _GAP


def _measure_branch(branch: Branch) -> float:
    return max(_measure_text(branch.text), _measure_text(branch.note)) + 2 * _PAD


def _measure_text(text: str) -> float:
    return len(_spell_invisible(text)) * _CHARACTER


def _draw_nodes(root: _PlacedNode, lefts: Sequence[float], top: float) -> Iterator[str]:
    for node in root.walk():
        left, middle = lefts[node.column], top + node.middle
        breadth = _measure_branch(node.branch)
        for child in node.children:
            x, y = lefts[child.column], top + child.middle
            bend = x - _GAP / 2
            yield (
                f'<path d="M {left + breadth:.1f} {middle:.1f} H {bend:.1f} V {y:.1f} H {x:.1f}" '
                'fill="none" stroke="#888888"/>'
            )
        yield (
            f'<rect x="{left:.1f}" y="{middle - _BOX / 2:.1f}" width="{breadth:.1f}" height="{_BOX}" rx="5" '
            f'fill="{_FILLS[node.branch.kind]}" stroke="#888888"/>'
        )
        if node.branch.note:
            yield _draw_text(left + _PAD, middle - 3, node.branch.text, is_bold=False)
            yield _draw_text(left + _PAD, middle + 11, node.branch.note, is_bold=False, fill="#555555")
        else:
            yield _draw_text(left + _PAD, middle + 4, node.branch.text, is_bold=False)


def _draw_text(x: float, y: float, text: str, *, is_bold: bool, fill: str = "#111111") -> str:
    weight = ' font-weight="bold"' if is_bold else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" fill="{fill}"{weight} xml:space="preserve">{_escape_text(text)}</text>'


def _escape_text(text: str) -> str:
    return escape(_spell_invisible(text), {'"': "&quot;", "'": "&apos;"})


def _spell_invisible(text: str) -> str:
    """Return the text with escapes for characters that XML cannot hold, or that reorder or break lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
