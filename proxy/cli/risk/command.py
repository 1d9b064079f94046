"""`keyhole risk`: the owner's command. It opens no source, and the ledger only if it is asked what was spent."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from planner.catalog.pins import Pins
from planner.parser.lexer import quote_identifier
from planner.policy.file import Policy
from planner.policy.simulated_catalog import SizeNeeded, stand_in_catalog
from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    check_page,
    owners_ledger,
    print_json,
    refusals,
    show_work,
    write_html,
)

if TYPE_CHECKING:
    from proxy.owner.risk.questions import RiskQuestion


class LossFrom(StrEnum):
    """Whose epsilon the report is about: what may be lost, or what was."""

    CAPS = "caps"
    LEDGER = "ledger"


def risk(
    sql: Annotated[list[str] | None, typer.Argument(help="Questions to hold against it.", show_default=False)] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    views: Annotated[bool, typer.Option("--views", help="Also all stored questions of the policy.")] = False,
    keys: Annotated[
        int | None, typer.Option(min=1, help="Values of a key column whose domain the policy does not list.")
    ] = None,
    source: Annotated[
        LossFrom, typer.Option("--from", help="What the caps allow, or also what the ledger says was spent.")
    ] = LossFrom.CAPS,
    target: Annotated[
        str | None,
        typer.Option(help='A wanted risk: "advantage 0.1", "posterior 0.01 -> 0.05" or "guess 100 0.05".'),
    ] = None,
    simulate: Annotated[
        int, typer.Option("--simulate", min=0, max=1000, help="Try random counts on so many made-up cells.")
    ] = 0,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to a file, as HTML.")] = None,
    as_json: Json = False,
) -> None:
    """Say what the promises mean for people, in odds and guesses. Reads no private data and opens no source."""
    from proxy.cli.owner import what_is_pinned
    from proxy.cli.simulate import read_alone
    from proxy.owner.risk.report import RiskAsked, write_sections
    from proxy.owner.risk.targets import parse_target
    from proxy.report.odometer import read_odometer
    from proxy.report.section import show_document, show_lines, show_page

    with refusals(as_json=as_json):
        check_page(html)
        try:
            wish = None if target is None else parse_target(target)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--target") from None
        loaded, pins = read_alone(policy)
        spent = None
        if source is LossFrom.LEDGER:
            with show_work("adding up the ledger"), owners_ledger(policy, knowledge=what_is_pinned(loaded)) as ledger:
                spent = read_odometer(loaded, ledger)
        try:
            questions = tuple(_questions(loaded, pins, sql or [], views=views, keys=keys))
        except SizeNeeded as missing:
            told = f"the policy lists no values of {missing.column}: say how many there are"
            raise typer.BadParameter(told, param_hint="--keys") from None
        sections = write_sections(RiskAsked(loaded, questions, spent, wish, simulate))
        if html is not None:
            write_html(html, show_page(sections, title="Keyhole: what the promises mean", private=False))
        if as_json:
            print_json({"from": source.value, **show_document(sections, private=False)})
        else:
            print("\n".join(show_lines(sections, private=False)))


def _questions(
    policy: Policy, pins: Pins, given: Sequence[str], *, views: bool, keys: int | None
) -> "Iterator[RiskQuestion]":
    from proxy.owner.risk.questions import plan_questions
    from proxy.sources.open import source_dialect

    dialect = source_dialect(policy.source)
    texts = [(f"question {place}", text, text) for place, text in enumerate(given, start=1)]
    if views:
        stored = policy.views.items()
        texts += [(name, f"SELECT * FROM {quote_identifier(name)}", view.sql) for name, view in stored]
    for name, text, spelled in texts:
        catalog = stand_in_catalog(policy, spelled, pins=pins, keys=keys).catalog
        yield from plan_questions(name, text, catalog, dialect)
