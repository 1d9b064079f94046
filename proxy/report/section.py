"""A section of a report. It is written once, and shown in a terminal, on a page, and as a JSON document."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import wrap
from typing import Any

from proxy.report.html.page import Drawing, PageSection, PageTable, Part, Verbatim, compose_page
from proxy.report.terminal import make_visible, write_psql_table

OWNER_ONLY = "OWNER ONLY: exact figures from private data. Do not hand this on."
_WIDTH = 100  # characters of a line of text: a paragraph that can be read


@dataclass(frozen=True, slots=True)
class ReportSection:
    """One section of a report: `name` and `figures` for JSON, `title` and `parts` for people."""

    name: str
    title: str
    parts: tuple[Part, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)

    def write_lines(self) -> Iterator[str]:
        """Yield the section's lines for a terminal, without its drawings."""
        yield make_visible(self.title)
        yield "=" * len(self.title)
        for part in self.parts:
            match part:
                case str():
                    yield from wrap(make_visible(part), _WIDTH, break_long_words=False, break_on_hyphens=False)
                    yield ""
                case Verbatim(text):
                    yield from (f"    {make_visible(line)}" for line in text.strip("\n").split("\n"))
                    yield ""
                case PageTable():
                    if part.title:
                        yield make_visible(part.title)
                    yield from write_psql_table(part.columns, part.rows)
                    yield ""
                case Drawing():
                    continue

    def make_document(self) -> dict[str, Any]:
        """Return the section as a JSON document, with its figures and its text."""
        tables = [part for part in self.parts if isinstance(part, PageTable)]
        return {
            "section": self.name,
            "title": self.title,
            "figures": dict(self.figures),
            "sentences": [part for part in self.parts if isinstance(part, str)],
            "tables": [
                {"title": one.title, "columns": list(one.columns), "rows": [list(row) for row in one.rows]}
                for one in tables
            ],
        }


def show_lines(sections: Sequence[ReportSection], *, is_private: bool) -> Iterator[str]:
    """Yield the lines of all sections for a terminal. If private data was read, the first and last line say so."""
    if is_private:
        yield OWNER_ONLY
        yield ""
    for section in sections:
        yield from section.write_lines()
    if is_private:
        yield OWNER_ONLY


def show_document(sections: Sequence[ReportSection], *, is_private: bool) -> dict[str, Any]:
    """Return all sections as a JSON document."""
    head = {"owner_only": OWNER_ONLY} if is_private else {}
    return {**head, "sections": [section.make_document() for section in sections]}


def show_page(sections: Sequence[ReportSection], *, title: str, is_private: bool) -> str:
    """Return all sections as one HTML file."""
    pages = [PageSection(section.title, section.parts) for section in sections]
    title = f"OWNER ONLY: {title}" if is_private else title
    return compose_page(title, pages, warning=OWNER_ONLY if is_private else None)
