"""A scorecard as one HTML file of tables, which screen readers can read too. It runs nothing and loads nothing."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape

from proxy.report.scorecard import ABSENT, BandMap, Scale, Scorecard, choose_ink
from proxy.report.terminal import make_visible

MOST_ROWS = 1_000  # of a file: with more a browser grows slow, and nobody reads them
MOST_COLUMNS = 200  # as for rows
_PAGE = """body{font:14px sans-serif;margin:2em;color:#111;background:#fff}
table{border-collapse:collapse;margin:.5em 0}
caption{text-align:left;font-weight:bold;padding:.3em 0}
th{font-weight:normal;text-align:left;padding:.1em .6em;white-space:nowrap}
td{text-align:center;padding:.1em .6em;border:1px solid #fff;print-color-adjust:exact}
pre{background:#f4f4f4;padding:.6em;white-space:pre-wrap}"""


def write_scorecard_html(card: Scorecard, *, title: str, sql: str, told: Sequence[str]) -> str:
    """Return HTML text: the question, the grids as tables with legends, and the sentences of `told`.

    Guarantee: keys, names and the question are only text. All are escaped, and the file has neither script nor link.
    Its content security policy lets a browser load nothing and apply only the style in the file. Each cell has its mark
    in words beside the colour.
    """
    shades = {scale.find_shade(level): None for scale in card.legends for level in range(len(scale.marks))}
    classes = {shade: f"s{number}" for number, shade in enumerate(shades)}
    style = "\n".join(
        (_PAGE, *(f".{name}{{background:{shade};color:{choose_ink(shade)}}}" for shade, name in classes.items()))
    )
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    nothing = "" if card.grids else "No group is in the answer."
    asked = "\n".join(map(_escape, sql.strip().split("\n")))
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{_escape(title)}</title>",
            f"<style>{style}</style>",
            "</head>",
            "<body>",
            f"<h1>{_escape(title)}</h1>",
            f"<pre>{asked}</pre>",
            *(
                line
                for grid in card.grids
                for line in (*_write_table(grid, classes), *_write_legends(grid.scales, classes))
            ),
            *(f"<p>{_escape(line)}</p>" for line in (nothing, card.remark, *told) if line),
            "</body>",
            "</html>\n",
        )
    )


def _write_table(grid: BandMap, classes: dict[str, str]) -> Iterator[str]:
    yield f"<table>\n<caption>{_escape(grid.title)}</caption>"
    headings = "".join(f'<th scope="col">{_escape(name)}</th>' for name in grid.columns)
    yield f"<tr><td></td>{headings}</tr>"
    for name, levels in zip(grid.rows, grid.levels.tolist(), strict=True):
        cells = "".join(_write_cell(grid.find_scale(column), level, classes) for column, level in enumerate(levels))
        yield f'<tr><th scope="row">{_escape(name)}</th>{cells}</tr>'
    yield "</table>"


def _write_cell(scale: Scale, level: int, classes: dict[str, str]) -> str:
    if level == ABSENT:
        return "<td></td>"
    return f'<td class="{classes[scale.find_shade(level)]}">{_escape(scale.find_mark(level))}</td>'


def _write_legends(scales: Sequence[Scale], classes: dict[str, str]) -> Iterator[str]:
    for scale in scales:
        yield f"<table>\n<caption>{_escape(scale.title)}</caption>"
        for level, meaning in enumerate(scale.meanings):
            if not meaning:
                continue
            yield f"<tr>{_write_cell(scale, level, classes)}<th>{_escape(meaning)}</th></tr>"
        yield "</table>"


def _escape(text: str) -> str:
    return escape(make_visible(text), quote=True)
