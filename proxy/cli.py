"""The `keyhole` command: demo, serve, query, explain, budget, init, check, refresh, passwd."""

import getpass
import json
import secrets
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from planner import explain as explaining
from planner.errors import KeyholeError
from proxy import budget as budgets
from proxy import checking, pipeline, starter
from proxy.answering import explained, explained_document
from proxy.answers import Asked, bare_question
from proxy.refusals import as_psql_prints, problem
from proxy.service import Service

app = typer.Typer(
    name="keyhole",
    help="Which groups cross a threshold? Private answers to GROUP BY ... HAVING, over PostgreSQL's protocol.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Policy = Annotated[Path, typer.Option("--policy", "-p", help="The policy file.", envvar="KEYHOLE_POLICY")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
As = Annotated[str | None, typer.Option("--as", help="The analyst who asks; the policy's first one if not given.")]
Sql = Annotated[str, typer.Argument(help="The question.")]
Fnr = Annotated[str | None, typer.Option(help="keyhole.fnr for this question.")]
Fpr = Annotated[str | None, typer.Option(help="keyhole.fpr for this question.")]
Tolerance = Annotated[str | None, typer.Option(help="keyhole.tolerance for this question, such as 10% or count=25.")]
Mechanism = Annotated[str | None, typer.Option(help="keyhole.mechanism for this question.")]
DEFAULT_POLICY = Path("keyhole.toml")


@contextmanager
def _refusals(*, as_json: bool, sql: str | None = None) -> Iterator[None]:
    """Print a refusal the way psql does, or as a problem document, and end with status 1."""
    try:
        yield
    except KeyholeError as error:
        if as_json:
            print(json.dumps(problem(error), indent=2, ensure_ascii=False))
        else:
            print(as_psql_prints(error, sql=sql), file=sys.stderr)
        raise typer.Exit(1) from None


def _settings(**given: str | None) -> dict[str, str | None]:
    return {f"keyhole.{name}": value for name, value in given.items() if value is not None}


def _asked(service: Service, sql: str, given: dict[str, str | None], analyst: str | None) -> Asked:
    return Asked(
        question=bare_question(sql, service.catalog),
        settings=given,
        parameters={},
        analyst=service.analyst(analyst),
        today=datetime.now(UTC).date(),
    )


def _print_json(document: Any) -> None:
    print(json.dumps(document, indent=2, ensure_ascii=False))


@app.command()
def query(
    sql: Sql,
    policy: Policy = DEFAULT_POLICY,
    analyst: As = None,
    fnr: Fnr = None,
    fpr: Fpr = None,
    tolerance: Tolerance = None,
    mechanism: Mechanism = None,
    as_json: Json = False,
) -> None:
    """Ask one question and print the keys that pass. Spends budget."""
    with _refusals(as_json=as_json, sql=sql), Service.open(policy) as service:
        given = _settings(fnr=fnr, fpr=fpr, tolerance=tolerance, mechanism=mechanism)
        asked = _asked(service, sql, given, analyst)
        plan = pipeline.prepare(service, asked)
        answer = pipeline.answer(service, plan, asked)
        guarantee = explaining.guarantee_json(plan)
        if as_json:
            _print_json(
                {
                    "columns": list(answer.keys.columns),
                    "keys": [list(key) for key in answer.keys.keys],
                    "guarantee": guarantee,
                    "data_version": answer.version,
                    "reused": answer.reused,
                }
            )
            return
        table = Table(*answer.keys.columns)
        for key in answer.keys.keys:
            table.add_row(*key)
        Console().print(table)
        print(f"({len(answer.keys.keys)} rows{', released before: nothing spent' if answer.reused else ''})")
        print(f"Guarantee: {guarantee['sentence']}")


@app.command()
def explain(
    sql: Sql,
    policy: Policy = DEFAULT_POLICY,
    analyst: As = None,
    fnr: Fnr = None,
    fpr: Fpr = None,
    tolerance: Tolerance = None,
    mechanism: Mechanism = None,
    as_json: Json = False,
) -> None:
    """Show the plan of a question and what it would cost. Spends nothing and touches no data."""
    with _refusals(as_json=as_json, sql=sql), Service.open(policy) as service:
        given = _settings(fnr=fnr, fpr=fpr, tolerance=tolerance, mechanism=mechanism)
        asked = _asked(service, sql, given, analyst)
        if as_json:
            _print_json(explained_document(service, asked))
        else:
            print("\n".join(explained(service, asked, form="text")))


@app.command()
def budget(policy: Policy = DEFAULT_POLICY, analyst: As = None, as_json: Json = False) -> None:
    """Show what is spent and what is left: exact for the owner, or one analyst's own view with --as."""
    with _refusals(as_json=as_json), Service.open(policy) as service:
        if as_json:
            _print_json(budgets.document(service, analyst))
        else:
            Console().print(*budgets.tables(service, analyst), sep="\n")


@app.command()
def init(source: Annotated[str, typer.Option("--source", help="duckdb:///file.duckdb or postgresql://...")]) -> None:
    """Write a starter policy to standard output, from the source's schema and never from its data."""
    with _refusals(as_json=False):
        print(starter.from_source(source, directory=Path.cwd()), end="")


@app.command()
def check(
    policy: Policy = DEFAULT_POLICY,
    confirm: Annotated[bool, typer.Option("--confirm", help="Pin changed public tables and key domains.")] = False,
    as_json: Json = False,
) -> None:
    """Validate the policy against the source, and pin public tables and key domains."""
    with _refusals(as_json=as_json):
        findings = checking.check(policy, confirm=confirm)
        if as_json:
            _print_json(findings.document())
        else:
            print("\n".join(findings.lines()))


@app.command()
def refresh(
    table: Annotated[str, typer.Argument(help='A table with refresh = "explicit".')], policy: Policy = DEFAULT_POLICY
) -> None:
    """Declare a new public data version of a table: stored answers are not served any more."""
    with _refusals(as_json=False):
        print(f"{table}: data version {checking.refresh(policy, table)}")


@app.command()
def passwd(
    token: Annotated[bool, typer.Option("--token", help="Make a bearer token for REST instead.")] = False,
) -> None:
    """Read a password and print its SCRAM-SHA-256 verifier for the policy file (or make a REST token)."""
    from hashlib import sha256

    from proxy.wire import scram

    if token:
        made = secrets.token_urlsafe(32)
        print(f"token (give it to the analyst, it is not kept): {made}")
        print(f'token_sha256 = "{sha256(made.encode()).hexdigest()}"')
        return
    password = getpass.getpass("Password: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\n")
    if not password:
        raise typer.BadParameter("an empty password")
    print(f'password = "{scram.verifier(password)}"')


@app.command()
def serve(
    policy: Policy = DEFAULT_POLICY,
    host: Annotated[str | None, typer.Option(help="Address to bind; the policy's, or loopback.")] = None,
    port: Annotated[int | None, typer.Option(help="PostgreSQL port; the policy's if not given.")] = None,
    rest_port: Annotated[int | None, typer.Option(help="REST port; the policy's if not given.")] = None,
) -> None:
    """Start the PostgreSQL endpoint and REST."""
    from proxy.serving import run

    with _refusals(as_json=False):
        run(policy, host=host, port=port, rest_port=rest_port)


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Stay up afterwards, so that psql can connect.")] = False,
) -> None:
    """Ask real questions about real customers, privately, through the PostgreSQL endpoint."""
    from proxy.demo import run

    with _refusals(as_json=False):
        run(keep=keep)


def main(arguments: list[str] | None = None, *, exit_with: Callable[[int], object] = sys.exit) -> None:
    """The console script."""
    exit_with(app(arguments, standalone_mode=False) or 0)
