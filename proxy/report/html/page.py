"""A report as one HTML file of sentences, tables and drawings. All text is escaped."""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from proxy.report.terminal import make_visible

_STYLE = """body{font:15px/1.45 sans-serif;margin:2em auto;max-width:58em;padding:0 1em;color:#111;background:#fff}
h1{font-size:1.5em}
h2{font-size:1.15em;margin:1.8em 0 .3em;border-top:1px solid #ccc;padding-top:.8em}
.warning{font-weight:bold;border:2px solid #a00;padding:.6em}
@media print{.warning{position:fixed;top:0;left:0;right:0;margin:0;background:#fff}body{margin-top:5em}}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.8em 0}
caption{text-align:left;font-weight:bold;padding:.3em 0}
th,td{text-align:left;padding:.2em .8em;border-bottom:1px solid #ddd;vertical-align:top}
td.number{text-align:right;font-variant-numeric:tabular-nums}
pre{background:#f4f4f4;padding:.6em;white-space:pre-wrap}
svg{max-width:100%;height:auto;margin:.5em 0}"""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture as SVG text, from `plots.py`. It is the only part of a page that is not escaped again."""

    svg: str


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table: column names, and rows of texts. Numbers are aligned right, other texts left."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """Lines that are shown unchanged, such as an SQL statement or a piece of a policy."""

    text: str


Part = str | PageTable | Verbatim | Drawing


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading and the parts below it. A part of type `str` is a paragraph."""

    title: str
    parts: tuple[Part, ...]


def compose_page(title: str, sections: Sequence[PageSection], *, warning: str | None = None) -> str:
    """Return a report as HTML text.

    The `warning`, if any, is the first line, and is repeated on every printed page.

    Guarantee: titles, names and keys are only text. All are escaped, control characters are made visible, and the file
    has neither script nor link. Its content security policy lets a browser load nothing and apply only the style in the
    file.
    """
    allowed = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; base-uri 'none'; form-action 'none'"
    return "\n".join(
        (
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="referrer" content="no-referrer">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape_text(title)}</title>",
            f"<style>{_STYLE}</style>",
            "</head>",
            "<body>",
            *([] if warning is None else [f'<p class="warning">{escape_text(warning)}</p>']),
            f"<h1>{escape_text(title)}</h1>",
            *(line for section in sections for line in _write_section(section)),
            "</body>",
            "</html>\n",
        )
    )


def escape_text(text: str) -> str:
    """Return a text escaped for HTML and SVG, with control characters made visible."""
    return escape(make_visible(text), quote=True)


def _write_section(section: PageSection) -> Iterator[str]:
    yield "<section>"
    yield f"<h2>{escape_text(section.title)}</h2>"
    for part in section.parts:
        match part:
            case str():
                yield f"<p>{escape_text(part)}</p>"
            case Verbatim(text):
                yield "<pre>" + "\n".join(map(escape_text, text.strip("\n").split("\n"))) + "</pre>"
            case Drawing(svg):
                yield svg
            case PageTable():
                yield from _write_grid(part)
    yield "</section>"


def _write_grid(grid: PageTable) -> Iterator[str]:
    caption = f"<caption>{escape_text(grid.title)}</caption>" if grid.title else ""
    yield f'<div class="wide"><table>{caption}'
    yield "<tr>" + "".join(f'<th scope="col">{escape_text(name)}</th>' for name in grid.columns) + "</tr>"
    for row in grid.rows:
        yield "<tr>" + "".join(map(_write_cell, row)) + "</tr>"
    yield "</table></div>"


def _write_cell(text: str) -> str:
    figure = text.strip("+-<>=%~ ").replace(",", "").replace(".", "").replace(" ", "")
    return f'<td class="number">{escape_text(text)}</td>' if figure.isdecimal() else f"<td>{escape_text(text)}</td>"
