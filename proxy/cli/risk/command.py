"""The `keyhole risk` command of the owner.

It opens the source only with `--private`, and the ledger only if the report is about what was spent.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from planner.catalog.pins import Pins
from planner.parser.lexer import quote_identifier
from planner.policy.file import Policy
from planner.policy.simulated_catalog import SizeMissing, simulate_catalog
from planner.policy.stored_questions import spell_parameters
from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    check_page,
    open_owner_ledger,
    print_json,
    print_refusals,
    read_typed_flag,
    show_work,
    write_html,
)

if TYPE_CHECKING:
    from proxy.owner.risk.attacker_section import AttackersInput
    from proxy.owner.risk.open_keys import OpenKeys, Prior
    from proxy.owner.risk.question_risks import RiskQuestion
    from proxy.owner.risk.risk_sections import RiskInput
    from proxy.report.section import ReportSection

_Read = TypeVar("_Read")
_SEED = 1  # of made-up days: the same report shows the same people


class LossFrom(StrEnum):
    """The loss that a report is about: the epsilon that may still be lost, or the epsilon that is lost already."""

    CAPS = "caps"
    LEDGER = "ledger"


def risk(
    sql: Annotated[list[str] | None, typer.Argument(help="Questions to judge.", show_default=False)] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    views: Annotated[bool, typer.Option("--views", help="Also judge the policy's stored questions.")] = False,
    units: Annotated[
        int | None,
        typer.Option("--units", min=1, help="The number of privacy units, for groups' mean size."),
    ] = None,
    rows: Annotated[
        int | None,
        typer.Option("--rows", min=1, help="The number of rows, to predict what bounds cut; with --units."),
    ] = None,
    keys: Annotated[
        int | None, typer.Option(min=1, help="The number of values of a key column without a listed domain.")
    ] = None,
    source: Annotated[
        LossFrom, typer.Option("--from", help="caps: the allowed loss; ledger: also the spent loss.")
    ] = LossFrom.CAPS,
    target: Annotated[
        str | None,
        typer.Option(
            help='A wanted risk, turned into budgets: "advantage 0.1", "posterior 0.01 -> 0.05", "guess 100 0.05".'
        ),
    ] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option("--sensitive", help='A sensitive value and its share: "education=Doctorate:0.012".'),
    ] = None,
    attacker: Annotated[
        list[str] | None,
        typer.Option(
            "--attacker", help="NAME=FILE.csv: an attacker who knows the counts of the keys in the file; with --prior."
        ),
    ] = None,
    prior: Annotated[
        Path | None,
        typer.Option(
            "--prior",
            help="A CSV file of usual numbers of people: key columns, the place first, and the number last.",
        ),
    ] = None,
    simulate: Annotated[
        int, typer.Option("--simulate", min=0, max=1000, help="Try random counts on this many made-up cells.")
    ] = 0,
    private: Annotated[
        bool,
        typer.Option(
            "--private",
            help="Also read the private rows. For the owner alone.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the report to a file: one page of HTML without script.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what the promises mean for people, in odds and guesses.

    Opens the source and reads private rows only with --private.
    """
    from proxy.cli.owner import find_pinned_knowledge
    from proxy.cli.simulate import read_policy_and_pins
    from proxy.owner.risk.groups import DeclaredSizes
    from proxy.owner.risk.risk_sections import RiskInput, write_sections
    from proxy.owner.risk.sensitive import check_columns, parse_sensitive
    from proxy.owner.risk.targets import parse_target
    from proxy.report.odometer import read_odometer
    from proxy.report.section import OWNER_ONLY, show_document, show_lines, show_page

    with print_refusals(as_json=as_json):
        check_page(html)
        wish = None if target is None else read_typed_flag(parse_target, target, "--target")
        values = tuple(read_typed_flag(parse_sensitive, text, "--sensitive") for text in sensitive or ())
        usual, known = _read_attackers(prior, attacker or [])
        loaded, pins = read_policy_and_pins(policy)
        _parse_flag(lambda: check_columns(loaded, values), "--sensitive")
        spent = None
        if source is LossFrom.LEDGER:
            with (
                show_work("adding up the ledger"),
                open_owner_ledger(policy, knowledge=find_pinned_knowledge(loaded)) as ledger,
            ):
                spent = read_odometer(loaded, ledger)
        texts = _list_texts(loaded, sql or [], views=views)
        try:
            questions = tuple(_plan_without_source(loaded, pins, texts, keys=keys))
        except SizeMissing as missing:
            told = f"the policy lists no values of {missing.column}: say how many there are"
            raise typer.BadParameter(told, param_hint="--keys") from None
        asked = RiskInput(loaded, questions, spent, wish, simulate, DeclaredSizes(units, rows), values)
        if usual is not None:
            asked = replace(asked, attackers=_make_attack_section(_make_attackers(questions, usual, known)))
        if private:
            with show_work("reading private rows, for your eyes alone"):
                asked = replace(asked, private=_read_private_sections(policy, texts, asked, usual, known))
        sections = write_sections(asked)
        if html is not None:
            write_html(html, show_page(sections, title="Keyhole: what the promises mean", is_private=private))
        if as_json:
            print_json({**show_document(sections, is_private=private), "from": source.value})
        else:
            print("\n".join(show_lines(sections, is_private=private)))
        if private and as_json:
            print(OWNER_ONLY, file=sys.stderr)


_Texts = list[tuple[str, str, str]]
"""Of each question its name, the text that asks it, and the text that spells it out."""


def _parse_flag(read: Callable[[], _Read], flag: str) -> _Read:
    """Return the parsed text of a flag. An invalid text is an error in the arguments."""
    try:
        return read()
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


def _read_attackers(prior: Path | None, attackers: Sequence[str]) -> "tuple[Prior | None, tuple[OpenKeys, ...]]":
    from proxy.owner.risk.attacker_section import OUTSIDER
    from proxy.owner.risk.open_keys import CsvText, read_prior

    if prior is None:
        if attackers:
            raise typer.BadParameter("say where people usually are, as a CSV file", param_hint="--prior")
        return None, ()
    usual = _parse_flag(lambda: read_prior(CsvText.read(prior)), "--prior")
    found: dict[str, OpenKeys] = {}
    for text in attackers:
        name, _, file = text.partition("=")
        if not name.strip() or not file.strip() or name in found or name == OUTSIDER:
            told = f"say NAME=FILE.csv, each name once, and not {OUTSIDER}, who knows no count and is always there"
            raise typer.BadParameter(told, param_hint="--attacker")
        found[name] = _parse_flag(partial(_read_known_counts, name, Path(file), usual), "--attacker")
    return usual, tuple(found.values())


def _read_known_counts(name: str, path: Path, usual: "Prior") -> "OpenKeys":
    from proxy.owner.risk.open_keys import CsvText, read_open_keys

    return read_open_keys(name, CsvText.read(path), usual)


def _list_texts(policy: Policy, given: Sequence[str], *, views: bool) -> _Texts:
    texts = [(f"question {place}", text, text) for place, text in enumerate(given, start=1)]
    if views:
        for name, view in policy.views.items():
            spelled = spell_parameters(view.sql, view.parameters)
            texts.append((name, f"SELECT * FROM {quote_identifier(name)}", spelled))
    return texts


def _plan_without_source(policy: Policy, pins: Pins, texts: _Texts, *, keys: int | None) -> "Iterator[RiskQuestion]":
    """Yield the questions, planned without a source."""
    from proxy.owner.risk.question_risks import plan_questions
    from proxy.sources.open import choose_dialect

    dialect = choose_dialect(policy.source)
    for name, text, spelled in texts:
        catalog = simulate_catalog(policy, spelled, pins=pins, keys=keys).catalog
        planned = tuple(plan_questions(name, text, catalog, dialect))
        if not planned:
            raise typer.BadParameter(f"{name} asks nothing of a private table", param_hint="[sql]")
        yield from planned


def _make_attackers(
    questions: "Sequence[RiskQuestion]", prior: "Prior", attackers: "tuple[OpenKeys, ...]"
) -> "AttackersInput":
    from proxy.owner.risk.attacker_section import find_attacked_question

    return _parse_flag(lambda: find_attacked_question(questions, prior, attackers), "--prior")


def _make_attack_section(asked: "AttackersInput") -> "ReportSection":
    from mechanisms.noise.exact import make_system_noise
    from proxy.owner.risk.attacker_section import write_attackers_section

    with show_work("holding attackers against it"):
        return _parse_flag(lambda: write_attackers_section(asked, seed=_SEED, noise=make_system_noise()), "--prior")


def _read_private_sections(
    path: Path, texts: _Texts, asked: "RiskInput", prior: "Prior | None", attackers: "tuple[OpenKeys, ...]"
) -> "tuple[ReportSection, ...]":
    """Return the sections from private data, for questions planned as analysts would ask them."""
    from proxy.owner.risk.private import open_owner_source, write_bounding_section, write_shares_section
    from proxy.owner.risk.question_risks import plan_questions

    with open_owner_source(Policy.load(path)) as reading:
        planned = [
            question
            for name, text, _ in texts
            for question in plan_questions(name, text, reading.catalog, reading.source.dialect)
        ]
        sections = [
            write_shares_section(reading, planned, asked.sensitive, epsilon=asked.epsilon),
            write_bounding_section(reading, planned),
        ]
        if prior is not None:
            held = _make_attackers(planned, prior, attackers)
            counts = reading.count_keys(held.question)
            sections.append(_make_attack_section(_parse_flag(lambda: held.with_counts(counts), "--prior")))
    return tuple(sections)
