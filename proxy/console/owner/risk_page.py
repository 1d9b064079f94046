"""The report of `keyhole risk` as a page. It follows from the current policy, the form and, on request, the ledger.

No private row is read for the page. Only the command has `--private`.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from mechanisms.noise.exact import make_system_noise
from planner.errors import KeyholeError
from planner.parser.lexer import quote_identifier
from proxy.open_policy.service import Service
from proxy.owner.mistyped import Mistyped
from proxy.owner.risk.attacker_section import OUTSIDER, AttackTooLarge, find_attacked_question, write_attackers_section
from proxy.owner.risk.groups import DeclaredSizes
from proxy.owner.risk.open_keys import CsvText, OpenKeys, Prior, read_open_keys, read_prior
from proxy.owner.risk.question_risks import RiskQuestion, plan_questions
from proxy.owner.risk.risk_sections import RiskInput, write_sections
from proxy.owner.risk.sensitive import SensitiveValue, check_columns, parse_sensitive
from proxy.owner.risk.targets import parse_target
from proxy.report.html.page import Drawing, PageTable, Part, Verbatim
from proxy.report.odometer import read_odometer
from proxy.report.section import ReportSection
from proxy.report.terminal import make_visible

ATTACKERS = ("colleague", "porter")
"""The first names of the form's two attackers; the outsider, who knows no count, is always there."""

_NO_RUNS = 0  # of attacks on made-up cells: they take minutes, and the command has them
_MOST_WORK = 400_000  # of attackers: eight seconds, beside the questions of analysts; set by trying
_SEED = 1  # of made-up days, as the command's
_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True)
class RiskForm:
    """The submitted form, with the flags of `keyhole risk` as text. `target` says whose epsilon is meant.

    Fields may be empty.
    """

    from_ledger: bool = False
    target: str = ""
    sensitive: str = ""
    units: str = ""
    rows: str = ""
    sql: str = ""
    prior: str = ""
    attackers: tuple[tuple[str, str], ...] = tuple((name, "") for name in ATTACKERS)

    @staticmethod
    def read_fields(fields: Mapping[str, str]) -> "RiskForm":
        """Return the form with these submitted fields."""
        known = [
            (fields.get(f"attacker{place}", name), fields.get(f"known{place}", ""))
            for place, name in enumerate(ATTACKERS)
        ]
        texts = {name: fields.get(name, "") for name in ("target", "sensitive", "units", "rows", "sql", "prior")}
        return RiskForm(from_ledger=fields.get("from") == "ledger", attackers=tuple(known), **texts)

    @property
    def says_more(self) -> bool:
        """Return True if a field in the part of the form that is collapsed at first is filled in."""
        typed = (self.sensitive, self.units, self.rows, self.sql, self.prior, *(text for _, text in self.attackers))
        return any(one.strip() for one in typed)


@dataclass(frozen=True, slots=True)
class UnplannedQuestion:
    """A stored question that the report leaves out, with the refusal that asking it would get."""

    name: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class ShownPart:
    """A part of a section, as values for a template. `kind` says how it is shown.

    Only `svg` is markup; the rest is text.
    """

    kind: str
    text: str = ""
    title: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    svg: str = ""


@dataclass(frozen=True, slots=True)
class ShownSection:
    """A section of the report, as values for a template."""

    title: str
    parts: tuple[ShownPart, ...]


@dataclass(frozen=True, slots=True)
class RiskReport:
    """The sections of the report, and the stored questions that it leaves out."""

    sections: tuple[ShownSection, ...]
    unplanned: tuple[UnplannedQuestion, ...] = field(default=())


def read_risk(service: Service, wish: RiskForm) -> RiskReport:
    """Return the risk report for a form.

    Raise `Mistyped` for an invalid field, KH502 if the ledger is not available.
    """
    target = None if not wish.target.strip() else _parse_field("target", partial(parse_target, wish.target))
    values = tuple(_read_sensitive(service, wish.sensitive))
    sizes = DeclaredSizes(_read_size("units", wish.units), _read_size("rows", wish.rows))
    prior, known = _read_attackers(wish)
    spent = read_odometer(service.policy, service.ledger) if wish.from_ledger else None
    questions, unplanned = _plan_questions(service, wish.sql)
    asked = RiskInput(service.policy, questions, spent, target, _NO_RUNS, sizes, values)
    if prior is not None:
        held = _parse_field("prior", lambda: find_attacked_question(questions, prior, known))
        try:
            section = write_attackers_section(held, seed=_SEED, noise=make_system_noise(), most_work=_MOST_WORK)
        except AttackTooLarge as error:
            raise Mistyped("prior", f"{error}; keyhole risk --prior works out fifty times as many") from None
        asked = replace(asked, attackers=section)
    return RiskReport(tuple(show_section(section) for section in write_sections(asked)), unplanned)


def _parse_field(name: str, read: Callable[[], _Read]) -> _Read:
    try:
        return read()
    except ValueError as error:
        raise Mistyped(name, str(error)) from None


def _read_sensitive(service: Service, text: str) -> Iterator[SensitiveValue]:
    for line in filter(str.strip, text.splitlines()):
        value = _parse_field("sensitive", partial(parse_sensitive, line))
        _parse_field("sensitive", partial(check_columns, service.policy, (value,)))
        yield value


def _read_size(name: str, text: str) -> int | None:
    typed = text.strip().replace(",", "")
    if not typed:
        return None
    if not (typed.isascii() and typed.isdigit() and 0 < len(typed) <= _MOST_DIGITS and int(typed) > 0):
        raise Mistyped(name, "a whole number above 0")
    return int(typed)


_MOST_DIGITS = 15  # of a size: there are fewer rows than that anywhere


def _read_attackers(wish: RiskForm) -> tuple[Prior | None, tuple[OpenKeys, ...]]:
    named = [(name.strip(), text) for name, text in wish.attackers if text.strip()]
    if not wish.prior.strip():
        if named:
            raise Mistyped("prior", "say where people usually are: attackers are held against that")
        return None, ()
    prior = _parse_field("prior", lambda: read_prior(CsvText("the prior", wish.prior.strip())))
    names = [name for name, _ in named]
    if "" in names or OUTSIDER in names or len(set(names)) < len(names):
        raise Mistyped(
            "attacker", f"each a name of its own, and not {OUTSIDER}, who knows no count and is always there"
        )
    read = [
        _parse_field("attacker", partial(read_open_keys, name, CsvText(f"what {name} knows", text.strip()), prior))
        for name, text in named
    ]
    return prior, tuple(read)


def _plan_questions(service: Service, text: str) -> tuple[tuple[RiskQuestion, ...], tuple[UnplannedQuestion, ...]]:
    """Return the planned questions, typed ones before stored ones, and the stored ones that cannot be planned."""
    catalog, dialect = service.catalog, service.source.dialect
    found: list[RiskQuestion] = []
    unplanned: list[UnplannedQuestion] = []
    if text.strip():
        try:
            found += plan_questions("the question", text, catalog, dialect)
        except KeyholeError as error:
            raise Mistyped("sql", f"{error.code}: {error.message}") from None
        if not found:
            raise Mistyped("sql", "it asks nothing of a private table")
    for name in service.policy.views:
        try:
            found += plan_questions(name, f"SELECT * FROM {quote_identifier(name)}", catalog, dialect)
        except KeyholeError as error:
            unplanned.append(UnplannedQuestion(make_visible(name), error.code, make_visible(error.message)))
    return tuple(found), tuple(unplanned)


def show_section(section: ReportSection) -> ShownSection:
    """Return a section of any report as values for a template."""
    return ShownSection(make_visible(section.title), tuple(_show_part(part) for part in section.parts))


def _show_part(part: Part) -> ShownPart:
    match part:
        case str():
            return ShownPart("text", make_visible(part))
        case Verbatim(text):
            return ShownPart("verbatim", "\n".join(make_visible(line) for line in text.strip("\n").split("\n")))
        case Drawing(svg):
            return ShownPart("drawing", svg=svg)
        case PageTable():
            rows = tuple(tuple(make_visible(cell) for cell in row) for row in part.rows)
            return ShownPart("table", title=make_visible(part.title), columns=part.columns, rows=rows)
