"""The `keyhole` command: demo, serve, query, explain, simulate, audit, budget, init, check, refresh, passwd.

`proxy/cli/owner.py` has what the owner decides, `proxy/cli/ledger.py` what the owner reads and copies.
"""

import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from mechanisms.noise.exact import system_noise
from mechanisms.registry import MECHANISMS
from planner.explain.formula_svg import formula_svg
from planner.explain.formula_tree import trees
from planner.policy.simulated_catalog import SizeNeeded
from proxy.cli import (
    check as checking,
)
from proxy.cli import (
    init as starter,
)
from proxy.cli import (
    ledger as ledger_cli,
)
from proxy.cli import (
    owner as owner_cli,
)
from proxy.cli import (
    simulate as simulating,
)
from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    print_heat_maps,
    print_json,
    print_rich,
    refusals,
    write_svg,
)
from proxy.cli.simulate import Sizes
from proxy.pipeline import approval
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explained, explained_document
from proxy.pipeline.messages import Asked, bare_question
from proxy.report import budget as budgets
from proxy.report.heat_map_svg import heat_map_svg
from proxy.report.refusals import as_psql_prints, internal_error
from proxy.report.terminal import formula_trees, psql_table, row_count
from proxy.service.service import Service

app = typer.Typer(
    name="keyhole",
    help="Which groups cross a threshold? Private answers to GROUP BY ... HAVING, over PostgreSQL's protocol.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

As = Annotated[str | None, typer.Option("--as", help="The analyst who asks; the policy's first one if not given.")]
Own = Annotated[str | None, typer.Option("--as", help="The view of one analyst; the owner's if not given.")]
Sql = Annotated[str, typer.Argument(help="The question.")]
Fnr = Annotated[str | None, typer.Option(help="keyhole.fnr for this question.")]
Fpr = Annotated[str | None, typer.Option(help="keyhole.fpr for this question.")]
Tolerance = Annotated[str | None, typer.Option(help="keyhole.tolerance for this question, such as 10% or count=25.")]
MinRows = Annotated[str | None, typer.Option(help="keyhole.min_rows for this question.")]
Mechanism = Annotated[str | None, typer.Option(help="keyhole.mechanism for this question.")]
MostPositives = Annotated[str | None, typer.Option(help="keyhole.most_positives for this question.")]
Reuse = Annotated[str | None, typer.Option(help="keyhole.reuse for this question, on or off.")]
PublicKnowledge = Annotated[str | None, typer.Option(help="keyhole.public_knowledge for this question.")]
MaxEpsilon = Annotated[str | None, typer.Option(help="keyhole.max_epsilon for this question.")]


def _settings(**given: str | None) -> dict[str, str | None]:
    return {f"keyhole.{name}": value for name, value in given.items() if value is not None}


def _asked(service: Service, sql: str, given: dict[str, str | None], analyst: str | None) -> Asked:
    return Asked(
        question=bare_question(sql, service.catalog),
        settings=given,
        parameters={},
        analyst=service.analyst(analyst),
        today=datetime.now(UTC).date(),
        utc=True,
    )


def _version(wanted: bool) -> None:
    if wanted:
        print(f"keyhole {version('keyhole')}")
        raise typer.Exit


@app.callback()
def keyhole(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Which groups cross a threshold? Private answers to GROUP BY ... HAVING, over PostgreSQL's protocol."""


@app.command()
def query(
    sql: Sql,
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: As = None,
    fnr: Fnr = None,
    fpr: Fpr = None,
    tolerance: Tolerance = None,
    min_rows: MinRows = None,
    mechanism: Mechanism = None,
    most_positives: MostPositives = None,
    public_knowledge: PublicKnowledge = None,
    max_epsilon: MaxEpsilon = None,
    reuse: Reuse = None,
    as_json: Json = False,
) -> None:
    """Ask one question and print the keys that pass. Spends budget."""
    given = _settings(
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
        min_rows=min_rows,
        mechanism=mechanism,
        most_positives=most_positives,
        public_knowledge=public_knowledge,
        max_epsilon=max_epsilon,
        reuse=reuse,
    )
    with refusals(as_json=as_json, sql=sql), Service.open(policy) as service:
        asked = _asked(service, sql, given, analyst)
        answer = pipeline.answer(service, pipeline.prepare(service, asked), asked)
        if as_json:
            print_json(answer.document())
            return
        print(*psql_table(answer.keys.columns, answer.keys.keys), sep="\n")
        print(f"({row_count(len(answer.keys.keys))}{', released before: nothing is spent' if answer.reused else ''})")
        print(f"\nGuarantee: {answer.document()['guarantee']['sentence']}")
        if answer.noise is not None:
            print(answer.noise)
        for warning in answer.plan.warnings:
            print(f"Warning: {warning}")


@app.command()
def explain(
    sql: Sql,
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: As = None,
    fnr: Fnr = None,
    fpr: Fpr = None,
    tolerance: Tolerance = None,
    min_rows: MinRows = None,
    mechanism: Mechanism = None,
    most_positives: MostPositives = None,
    public_knowledge: PublicKnowledge = None,
    max_epsilon: MaxEpsilon = None,
    reuse: Reuse = None,
    tree: Annotated[bool, typer.Option("--tree", help="Draw the formula as typed and as it is evaluated.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write that drawing to a file, as SVG.")] = None,
    as_json: Json = False,
) -> None:
    """Show the plan of a question and what it would cost. Spends nothing and touches no data."""
    given = _settings(
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
        min_rows=min_rows,
        mechanism=mechanism,
        most_positives=most_positives,
        public_knowledge=public_knowledge,
        max_epsilon=max_epsilon,
        reuse=reuse,
    )
    with refusals(as_json=as_json, sql=sql), Service.open(policy) as service:
        asked = _asked(service, sql, given, analyst)
        drawn = trees(pipeline.prepare(service, asked)) if tree or svg else ()
        if svg is not None:
            write_svg(svg, formula_svg(drawn, title=sql))
        if as_json:
            print_json(explained_document(service, asked))
        elif tree:
            print_rich(*formula_trees(drawn))
        else:
            print("\n".join(explained(service, asked, form="text")))
            print(_question_id(service, asked))


def _question_id(service: Service, asked: Asked) -> str:
    """What the ledger calls the question, and whether it waits for the owner."""
    plan = pipeline.prepare(service, asked)
    version = service.version(plan.question.table)
    claim = charging.claim(plan, service.catalog, asked=asked, version=version)
    question = claim.charge.question
    if approval.waiting(service, claim, plan, asked) is not None:
        return f"Question id: {question} (waits for approval)"
    approved = claim.limits.approval_above_nano is not None and service.is_approved(question)
    return f"Question id: {question}{' (approved)' if approved else ''}"


@app.command()
def simulate(
    sql: Sql,
    units: Annotated[int, typer.Option(min=1, help="How many privacy units there are.")],
    policy: PolicyPath = DEFAULT_POLICY,
    keys: Annotated[
        int | None, typer.Option(min=1, help="Values of a key column whose domain the policy does not list.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows there are, to tell what bounding cuts.")
    ] = None,
    fnr: Fnr = None,
    fpr: Fpr = None,
    tolerance: Tolerance = None,
    min_rows: MinRows = None,
    mechanism: Mechanism = None,
    most_positives: MostPositives = None,
    public_knowledge: PublicKnowledge = None,
    as_json: Json = False,
) -> None:
    """Show what a question would cost under a policy that is not in use yet. Opens no source and no ledger."""
    given = _settings(
        fnr=fnr,
        fpr=fpr,
        tolerance=tolerance,
        min_rows=min_rows,
        mechanism=mechanism,
        most_positives=most_positives,
        public_knowledge=public_knowledge,
    )
    with refusals(as_json=as_json, sql=sql):
        try:
            made = simulating.simulate(policy, sql, given=given, sizes=Sizes(units=units, keys=keys, rows=rows))
        except SizeNeeded as missing:
            told = f"the policy lists no values of {missing.column}: say how many there are"
            raise typer.BadParameter(told, param_hint="--keys") from None
        if as_json:
            print_json(made.document())
        else:
            print("\n".join(made.lines()))


@app.command()
def audit(
    samples: Annotated[
        int, typer.Option(min=1000, help="Draws from each database of each pair; 100000 finds finer faults.")
    ] = 20_000,
    mechanism: Annotated[str | None, typer.Option(help="Audit this mechanism only.")] = None,
    as_json: Json = False,
) -> None:
    """Try to prove that the mechanisms are not private. Needs no policy, touches no data; ends with 1 if one is not."""
    from mechanisms.audit.auditor import audit_all

    if mechanism is not None and mechanism not in MECHANISMS:
        raise typer.BadParameter(f"one of {', '.join(MECHANISMS)}", param_hint="--mechanism")
    chosen = tuple(MECHANISMS.values()) if mechanism is None else (MECHANISMS[mechanism],)
    console = Console(stderr=True)
    with console.status("auditing") as status:
        reports = audit_all(samples=samples, noise=system_noise(), mechanisms=chosen, progress=status.update)
    if as_json:
        print_json([asdict(report) | {"flagged": report.flagged} for report in reports])
    else:
        headings = ("mechanism, question", "claims epsilon", "proved at least", "verdict")
        rows = [
            (
                report.subject,
                f"{report.claimed_epsilon:.3f}",
                f"{report.epsilon_lower:.3f}",
                "NOT PRIVATE" if report.flagged else "not refuted",
            )
            for report in reports
        ]
        print(*psql_table(headings, rows), sep="\n")
        print("A claim that is not refuted is not thereby proved: the proofs are in docs/proofs.")
    if any(report.flagged for report in reports):
        raise typer.Exit(1)


@app.command()
def budget(
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: Own = None,
    heat: Annotated[bool, typer.Option("--map", help="Draw which groups' budget is used up.")] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write that map to a file, as SVG.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="That map for one table only.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="The most rows of a map in the terminal.")] = 40,
    as_json: Json = False,
) -> None:
    """Show what is spent and what is left. Over everybody for the owner, or one analyst's own view with --as."""
    with refusals(as_json=as_json), Service.open(policy) as service:
        maps = budgets.maps(service, analyst, table=table) if heat or svg else ()
        title = f"Keyhole: percent of each group's budget that is spent{f', {analyst}' if analyst else ''}"
        if svg is not None:
            write_svg(svg, heat_map_svg(maps, title=title))
        if as_json:
            print_json(budgets.document(service, analyst))
        elif heat:
            print_heat_maps(maps, most_rows=rows)
        else:
            print_rich(*budgets.tables(service, analyst))


owner_cli.register(app)
app.add_typer(ledger_cli.app)


@app.command()
def init(
    source: Annotated[
        str, typer.Option("--source", help="postgresql://..., duckdb:///file.duckdb, or a .parquet or .csv file.")
    ],
) -> None:
    """Write a starter policy to standard output. It comes from the source's schema, never from its data."""
    with refusals(as_json=False):
        print(starter.from_source(source, directory=Path.cwd()), end="")


@app.command()
def check(
    policy: PolicyPath = DEFAULT_POLICY,
    confirm: Annotated[bool, typer.Option("--confirm", help="Pin changed public tables and key domains.")] = False,
    as_json: Json = False,
) -> None:
    """Validate the policy and pin public data. Reads the source's schema and public tables, never a private row."""
    with refusals(as_json=as_json):
        findings = checking.check(policy, confirm=confirm)
        if as_json:
            print_json(findings.document())
        else:
            print("\n".join(findings.lines()))


@app.command()
def refresh(
    table: Annotated[str, typer.Argument(help='A table with refresh = "explicit".')],
    policy: PolicyPath = DEFAULT_POLICY,
) -> None:
    """Declare new data in a table. Answers stored for the old data are not served any more."""
    with refusals(as_json=False):
        print(f"{table}: data version {checking.refresh(policy, table)}")


@app.command()
def serve(
    policy: PolicyPath = DEFAULT_POLICY,
    host: Annotated[str | None, typer.Option(help="Address to bind; the policy's, or loopback.")] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="PostgreSQL port; the policy's if not given.")
    ] = None,
    rest_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="REST port; the policy's if not given.")
    ] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address of metrics and health; loopback.")] = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Their port; without one they are not served.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Processes on the same ports; the policy's, or one.")
    ] = None,
) -> None:
    """Start the PostgreSQL endpoint and REST."""
    from proxy.process.serve import run

    with refusals(as_json=False):
        run(
            policy,
            host=host,
            port=port,
            rest_port=rest_port,
            metrics_host=metrics_host,
            metrics_port=metrics_port,
            workers=workers,
        )


@app.command()
def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Stay up afterwards, so that psql can connect.")] = False,
) -> None:
    """Ask real questions about real customers. Privately, through the PostgreSQL endpoint, in a temporary folder."""
    from proxy.cli.demo import run

    with refusals(as_json=False):
        run(keep=keep)


def main(arguments: list[str] | None = None) -> None:
    """The console script: exits with 0, with 1 after a refusal, with 2 when it was called wrongly."""
    try:
        try:
            app(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # whoever read our output has gone; the interpreter would complain when it flushes once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        unforeseen = internal_error()
        unforeseen.hint = f"Please report it, with these words: {_place(error)}."
        print(as_psql_prints(unforeseen, sql=None), file=sys.stderr)
        sys.exit(1)


def _place(error: BaseException) -> str:
    """The kind of an exception and the line of code it came from: no text of its own, which might quote data."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__} at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
