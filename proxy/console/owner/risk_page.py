"""The report of `keyhole risk` for a page, from the policy that answers and, if wished for, the ledger."""

from dataclasses import dataclass

from planner.errors import KeyholeError
from planner.parser.lexer import quote_identifier
from proxy.owner.decisions import Mistyped
from proxy.owner.risk.groups import DeclaredSizes
from proxy.owner.risk.questions import RiskQuestion, plan_questions
from proxy.owner.risk.report import RiskAsked, write_sections
from proxy.owner.risk.targets import parse_target
from proxy.report.html.page import Drawing, PageTable, Part, Verbatim
from proxy.report.odometer import read_odometer
from proxy.report.section import ReportSection
from proxy.report.terminal import visible
from proxy.service.service import Service

_NO_RUNS = 0  # of attacks on made-up cells: they take minutes, and the command has them


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of a section: `kind` says how it is shown. `svg` alone is no text."""

    kind: str
    text: str = ""
    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    svg: str = ""


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of the report."""

    title: str
    parts: tuple[ShownPart, ...]


def read_risk(service: Service, *, from_ledger: bool, target: str) -> tuple[ShownSection, ...]:
    """The sections, stored questions among them. Raises `Mistyped` for a target that is none, KH009."""
    try:
        wish = parse_target(target) if target.strip() else None
    except ValueError as error:
        raise Mistyped("target", str(error)) from None
    spent = read_odometer(service.policy, service.ledger) if from_ledger else None
    asked = RiskAsked(service.policy, tuple(_plan_stored(service)), spent, wish, _NO_RUNS, DeclaredSizes(None, None))
    return tuple(show_section(section) for section in write_sections(asked))


def _plan_stored(service: Service) -> list[RiskQuestion]:
    """The stored questions that can be planned; what is wrong with others, asking them says."""
    found: list[RiskQuestion] = []
    for name in service.policy.views:
        text = f"SELECT * FROM {quote_identifier(name)}"
        try:
            found += plan_questions(name, text, service.catalog, service.source.dialect)
        except KeyholeError:
            continue
    return found


def show_section(section: ReportSection) -> ShownSection:
    """A section of any report for a template."""
    return ShownSection(visible(section.title), tuple(_show(part) for part in section.parts))


def _show(part: Part) -> ShownPart:
    match part:
        case str():
            return ShownPart("text", visible(part))
        case Verbatim(text):
            return ShownPart("verbatim", "\n".join(visible(line) for line in text.strip("\n").split("\n")))
        case Drawing(svg):
            return ShownPart("drawing", svg=svg)
        case PageTable():
            rows = tuple(tuple(visible(cell) for cell in row) for row in part.rows)
            return ShownPart("table", title=visible(part.title), columns=part.columns, rows=rows)
