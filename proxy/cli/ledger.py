"""The `keyhole ledger` commands: past questions, the ledger's integrity, and copies. They show owners exact losses."""

import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from accountant.errors import LedgerMisuse, LedgerUnavailable
from accountant.ledger import Ledger
from accountant.monitor_model import MonitorState
from accountant.reports.history import AskedQuestion
from planner.policy.file import Policy
from proxy.cli.common import (
    DEFAULT_POLICY,
    By,
    Json,
    PolicyPath,
    Why,
    check_new_file,
    find_identity,
    make_unwritable_error,
    open_owner_ledger,
    print_json,
    print_refusals,
    read_decider,
    read_reason,
    show_work,
)
from proxy.open_policy.service import find_ledger_url
from proxy.open_policy.service_refusals import report_unopened_ledger, report_unreadable_ledger
from proxy.owner.verification import parse_kept_event, verify_ledger
from proxy.report import ledger_files
from proxy.report.ledger_tables import (
    SHORT_ID,
    list_published_lines,
    list_question_lines,
    make_document,
    make_losses_document,
    make_published_document,
    show_question,
)
from proxy.report.terminal import write_psql_table, write_row_count

app = typer.Typer(
    name="ledger",
    help="Read, check, settle and copy the ledger. For the data owner: losses are exact.",
    no_args_is_help=True,
)


class Form(StrEnum):
    """The file format of an exported log."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@app.command("list")
def list_questions(
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: Annotated[str | None, typer.Option(help="Only this analyst's questions.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="The number of questions.")] = 50,
    before: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Only questions reserved before this one: the next page.",
        ),
    ] = None,
    only_open: Annotated[bool, typer.Option("--open", help="Only questions that were never committed.")] = False,
    as_json: Json = False,
) -> None:
    """List the questions, newest first, with their cost and outcome."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy) as ledger:
        start = None if before is None else _find_reservation(ledger, before)
        page = ledger.read_page(analyst=analyst, before=start, limit=limit, only_open=only_open)
        everything = analyst is None and before is None and not only_open
        published = ledger.owner.find_publications() if everything else ()
    if as_json:
        found = [make_document(question) for question in page.questions]
        print_json([*found, *(make_published_document(one) for one in reversed(published))])
        return
    print(*list_question_lines(page.questions), sep="\n")
    older = (
        f", {page.older_count:,} older: --before {page.questions[-1].reservation[:SHORT_ID]}"
        if page.older_count
        else ""
    )
    print(f"({write_row_count(len(page.questions))}{older})")
    print("".join(f"{line}\n" for line in list_published_lines(published)), end="")


def _find_reservation(ledger: Ledger, identity: str) -> str:
    given = identity.strip().lower()
    found = ledger.find_questions(given) if given else ()
    return find_identity(given, (question.reservation for question in found), hint="--before")


@app.command()
def show(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="The reservation's or question's id, or its beginning.")
    ],
    policy: PolicyPath = DEFAULT_POLICY,
    as_json: Json = False,
) -> None:
    """Show a question in full, with the losses of its groups. A question's id shows every time it was asked."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy) as ledger:
        questions = _find_asked_questions(ledger, identity)
    if as_json:
        print_json([make_document(question) | {"losses": make_losses_document(question)} for question in questions])
        return
    print("\n\n".join("\n".join(show_question(question)) for question in questions))


def _find_asked_questions(ledger: Ledger, identity: str) -> tuple[AskedQuestion, ...]:
    given = identity.strip().lower()
    found = ledger.find_questions(given) if given else ()
    about = {question.charge.question for question in found}
    if len(about) != 1:
        problem = "nothing in the ledger has that id" if not about else "several start with that; give more characters"
        raise typer.BadParameter(problem, param_hint="ID")
    return found


@app.command()
def verify(
    policy: PolicyPath = DEFAULT_POLICY,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            help="HASH:NUMBER that an earlier verify printed: also find missing events.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Check database, chain, stored answers and balances. The first fault ends with status 1."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy, trust=True) as ledger:
        kept = None if expect is None else parse_kept_event(expect)
        with show_work("reading the ledger again"):
            found = verify_ledger(ledger, kept=kept)
        ledger.check_witness()
        if as_json:
            print_json(found.make_document())
        else:
            print(*found.write_lines(), sep="\n")


@app.command()
def settle(
    identity: Annotated[
        str, typer.Argument(metavar="ID", help="The reservation's or question's id, or its beginning.")
    ],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    spent: Annotated[
        bool,
        typer.Option("--spent", help="Count the reservation's worst case as spent. This or --untouched is required."),
    ] = False,
    untouched: Annotated[
        bool,
        typer.Option(
            "--untouched", help="Refund its worst case: you confirm that the question never reached the data."
        ),
    ] = False,
    by: By = None,
) -> None:
    """Close a reservation that a dead process left open."""
    if spent == untouched:
        raise typer.BadParameter("say one of the two", param_hint="--spent, --untouched")
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        monitors = (run.run for run in ledger.monitors.list_runs() if run.state is not MonitorState.ENDED)
        opened = (item.id for item in ledger.list_open_reservations())
        reservation = find_identity(identity, (*opened, *monitors), hint="ID")
        try:
            ledger.owner.settle_reservation(reservation, untouched=untouched, by=read_decider(by), why=read_reason(why))
        except LedgerMisuse as error:
            raise typer.BadParameter(str(error), param_hint="ID") from None
    print(f"{reservation}: {'given back, on your word' if untouched else 'spent for good at its worst case'}")


@app.command()
def export(
    file: Annotated[Path, typer.Argument(help="The new file.")],
    policy: PolicyPath = DEFAULT_POLICY,
    form: Annotated[Form, typer.Option("--format", help="JSON lines or parquet.")] = Form.JSONL,
) -> None:
    """Write every event to a file. It has exact losses, and no true aggregate, noisy value or answer."""
    write = ledger_files.write_json_lines if form is Form.JSONL else ledger_files.write_parquet
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        try:
            with show_work("writing the events"):
                count = write(ledger.owner.export_events(), check_new_file(file, hint="FILE"))
        except OSError as error:
            raise make_unwritable_error(file, error, hint="FILE") from None
    print(f"{file}: {count:,} events")


@app.command()
def backup(file: Annotated[Path, typer.Argument(help="The new file.")], policy: PolicyPath = DEFAULT_POLICY) -> None:
    """Copy an SQLite ledger while it is in use, and verify the copy. For PostgreSQL print a command."""
    with print_refusals(as_json=False):
        url = find_ledger_url(Policy.load(policy))
        if not ledger_files.is_sqlite(url):
            print("Nothing was copied: the ledger is in PostgreSQL. This copies it:", file=sys.stderr)
            print(ledger_files.write_pg_dump_command(url, file))
            raise typer.Exit(1)
        try:
            with show_work("copying the ledger and verifying the copy"):
                number, newest = ledger_files.backup_sqlite(url, check_new_file(file, hint="FILE"))
        except LedgerUnavailable as error:
            raise report_unreadable_ledger(error) from None
        except OSError as error:
            raise make_unwritable_error(file, error, hint="FILE") from None
    print(f"{file}: {number:,} events, verified. Keep this elsewhere: {newest}:{number}")


@app.command()
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The ledger's URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The URL of a new file or an empty database.")],
) -> None:
    """Copy a ledger into another database, and verify the copy.

    Stop every Keyhole that uses it first; files are relative to the current folder.
    """
    for url, hint in ((source, "FROM"), (target, "TO")):
        with suppress(ArgumentError):
            make_url(url)
            continue
        raise typer.BadParameter("write sqlite:///FILE or postgresql://USER@HOST/DATABASE", param_hint=hint)
    with print_refusals(as_json=False):
        try:
            with show_work("copying the ledger and verifying the copy"):
                number, newest = ledger_files.copy_verified(source, target)
        except LedgerMisuse as error:
            raise typer.BadParameter(str(error), param_hint="TO") from None
        except LedgerUnavailable as error:
            raise report_unopened_ledger(error) from None
    print(f"{number:,} events copied, and verified. Let ledger.url name the copy, and put the original away.")
    print(f"Keep this elsewhere: {newest}:{number}")


@app.command()
def paths(policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """List the stored noise paths. Later questions may read or sharpen them."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy) as ledger:
        sizes = ledger.owner.measure_paths()
    if as_json:
        print_json(
            [
                {
                    "table": size.table,
                    "data_version": size.version,
                    "states": size.state_count,
                    "bytes": size.size_bytes,
                }
                for size in sizes
            ]
        )
        return
    rows = [(size.table, size.version, f"{size.state_count:,}", f"{size.size_bytes / 1e6:.1f}") for size in sizes]
    print(*write_psql_table(("table", "data version", "states", "MB"), rows), sep="\n")
    print(f"({write_row_count(len(rows))})")


@app.command()
def prune(
    table: Annotated[str, typer.Argument(help="The table, as keyhole ledger paths names it.")],
    version: Annotated[str, typer.Argument(help="The data version, as keyhole ledger paths names it.")],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
) -> None:
    """Remove the noise paths of a table's old data version. Balances and stored answers stay."""
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        found = [size for size in ledger.owner.measure_paths() if (size.table, size.version) == (table, version)]
        if not found:
            raise typer.BadParameter("no noise path of that table and data version is stored", param_hint="VERSION")
        ledger.owner.prune_paths(table, version, by=read_decider(by), why=read_reason(why))
    print(f"{table}, {version}: {found[0].state_count:,} states of noise paths removed")
