"""The `keyhole` command. Here are those that set it up, serve and report.

`proxy/cli/ask.py` has what an analyst asks, `proxy/cli/owner.py` what the owner decides, `proxy/cli/ledger.py` what the
owner reads and copies.
"""

import os
import sys
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from resource import RLIMIT_CORE, getrlimit, setrlimit
from typing import TYPE_CHECKING, Annotated

import typer

from accountant.store.private_files import OTHERS
from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    Progress,
    print_heat_maps,
    print_json,
    print_left_out_tables,
    print_refusals,
    print_renderable,
    show_progress,
    show_work,
    write_svg,
)
from proxy.cli.presets import Purpose, Unit
from proxy.cli.sections import Sections
from proxy.concurrency.interpreter import freeze_objects
from proxy.owner.mistyped import Mistyped

if TYPE_CHECKING:
    from proxy.play.own_streams import OwnStreams

app = typer.Typer(
    cls=Sections,
    name="keyhole",
    epilog="keyhole COMMAND --help lists the flags of a command; docs/commands.md has all.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)

Own = Annotated[str | None, typer.Option("--as", help="Show what this analyst may see. Default: the owner's view.")]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"keyhole {version('keyhole')}")
        raise typer.Exit


@app.callback()
def keyhole(
    version_wanted: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Which groups cross a threshold? Private answers to GROUP BY ... HAVING, over PostgreSQL's protocol."""


def audit(
    samples: Annotated[
        int,
        typer.Option(min=1000, help="Draws from each database of each pair."),
    ] = 20_000,
    mechanism: Annotated[
        str | None,
        typer.Option(help="Audit only this: a mechanism, a stream, or alarm, cells, join, ranking, bounds or table."),
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, max=256, help="Audits at a time. Default: one for each core.")
    ] = None,
    progress: Progress = False,
    as_json: Json = False,
) -> None:
    """Try to prove that the mechanisms are not private.

    Needs no policy and reads no data. Ends with status 1 if a claim is refuted, or if the draws are too few to refute
    an eighth of it. Takes about a minute on two cores.
    """
    from mechanisms.audit.subjects import UNASKED, plan_audits
    from mechanisms.registry import MECHANISMS
    from mechanisms.side_by_side import count_usable_cores
    from proxy.cli.audit import describe_reports, run_audits

    if mechanism is not None and mechanism not in (known := (*MECHANISMS, *(one.mechanism for one in UNASKED))):
        raise typer.BadParameter(f"one of {', '.join(known)}", param_hint="--mechanism")
    planned = plan_audits([] if mechanism is None else [mechanism])
    with show_progress("auditing", total=len(planned), asked=progress) as done:
        reports = run_audits(planned, samples=samples, processes=processes or count_usable_cores(), done=done)
    if as_json:
        told = ({"flagged": report.is_flagged, "conclusive": report.is_conclusive} for report in reports)
        print_json([asdict(report) | verdict for report, verdict in zip(reports, told, strict=True)])
    else:
        print(*describe_reports(reports), sep="\n")
    if any(report.is_flagged or not report.is_conclusive for report in reports):
        raise typer.Exit(1)


def budget(
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: Own = None,
    heat: Annotated[
        bool,
        typer.Option(
            "--map",
            help="Draw a map of each group's spent budget, in percent.",
        ),
    ] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the map to a file, as SVG.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="Only this table.")] = None,
    rows: Annotated[int, typer.Option(min=1, help="The most rows of a map in the terminal.")] = 40,
    as_json: Json = False,
) -> None:
    """Show what is spent and what is left. The owner's view is exact; --as shows what one analyst may see."""
    from proxy.open_policy.service import Service
    from proxy.report import budget as budgets
    from proxy.report.budget_terminal import make_tables
    from proxy.report.heat_map_svg import draw_heat_maps

    with print_refusals(as_json=as_json), Service.open_for_reading(policy) as service:
        with show_work("adding up the ledger"):
            maps = budgets.make_maps(service, analyst, table=table) if heat or svg else ()
            shown = () if heat or as_json else make_tables(service, analyst)
        title = f"Keyhole: percent of each group's budget that is spent{f', {analyst}' if analyst else ''}"
        if svg is not None:
            write_svg(svg, draw_heat_maps(maps, title=title))
        if as_json:
            print_json(budgets.make_document(service, analyst))
        elif heat:
            print_heat_maps(maps, most_rows=rows)
        else:
            print_renderable(*shown)
        print_left_out_tables(service)


def init(
    sources: Annotated[
        list[str],
        typer.Option(
            "--source",
            help="postgresql://reader@host/database, duckdb:///file.duckdb, sc://host:15002 (Spark, its token in "
            "KEYHOLE_SOURCE_TOKEN), or a .parquet or .csv file.",
        ),
    ],
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--table", help="One table, as `relation` names it. Default: all that the source lists; Sail lists none."
        ),
    ] = None,
    unit: Annotated[
        Unit | None,
        typer.Option(
            "--unit",
            help="Who is protected: a person, a visit (a person's day), or a row. Default: you fill it in.",
        ),
    ] = None,
    purpose: Annotated[
        Purpose,
        typer.Option(
            "--for",
            help="The purpose of questions: a dashboard (the same ones often), ad-hoc, or an audit "
            "(few and sharp). It decides the tolerance and the budgets.",
        ),
    ] = Purpose.DASHBOARD,
    refresh: Annotated[
        str | None,
        typer.Option(
            "--refresh", help='When rows of all tables change: "live", "static", "explicit", "hourly", "daily 02:00".'
        ),
    ] = None,
) -> None:
    """Write a starter policy to standard output.

    It reads the source's schema, never its data. A policy that still says FILL IN is refused.
    """
    from proxy.cli.init import write_policy_from_source

    with print_refusals(as_json=False):
        with show_work("reading the source's schema"):
            written = write_policy_from_source(
                *sources, directory=Path.cwd(), unit=unit, purpose=purpose, tables=tables or (), refresh=refresh
            )
        print(written, end="")


def check(
    policy: PolicyPath = DEFAULT_POLICY,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Let changed public tables and key domains take effect.")
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="Also read the private rows, and print what bounds and key domains leave out. For the owner alone.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Validate the policy and pin public data.

    Reads the schema and public tables; private rows only with --measure. Says what the caps mean in odds.
    """
    from proxy.cli.check import check as check_policy
    from proxy.owner import measure as left_out

    with print_refusals(as_json=as_json):
        with show_work("reading the source's schema and public tables"):
            findings = check_policy(policy, confirm=confirm)
        found = None
        if measure:
            with show_work("reading private rows, for your eyes alone"):
                found = left_out.measure(policy, findings.pinning.catalog)
        if as_json:
            print_json(
                findings.make_document() | ({} if found is None else {"measured": left_out.make_document(found)})
            )
        else:
            print("\n".join(findings.lines()))
        if found is not None and not as_json:
            print("\n".join(["", left_out.WARNING, *(line for table in found for line in table.write_lines())]))
        if findings.broken:
            raise typer.Exit(1)


def refresh(
    tables: Annotated[list[str], typer.Argument(help='Tables with refresh = "explicit".')],
    policy: PolicyPath = DEFAULT_POLICY,
    wait: Annotated[float, typer.Option(min=0, help="Seconds to wait for running servers.")] = 10.0,
) -> None:
    """Declare new data in tables, and have running servers read them.

    Prints how many serving processes read the tables.
    """
    from proxy.cli.check import refresh as declare_new_data
    from proxy.cli.check import wait_for_servers

    with print_refusals(as_json=False):
        with show_work("reading the source's schema and public tables"):
            version_now = declare_new_data(policy, *tables)
        for table in tables:
            print(f"{table}: data version {version_now}")
        print(wait_for_servers(policy, seconds=wait))


def serve(
    policy: PolicyPath = DEFAULT_POLICY,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on. Default: the policy's, or loopback.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="PostgreSQL's port. Default: the policy's, or 6432."),
    ] = None,
    rest_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="REST's port. Default: the policy's, or 8432."),
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="The address of metrics. Default: the policy's, or loopback.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="The port of metrics and health. Default: the policy's, or not served.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="How many processes serve. Default: the policy's, or one."),
    ] = None,
) -> None:
    """Start the PostgreSQL endpoint and REST. They run until SIGINT or SIGTERM."""
    with print_refusals(as_json=False), ExitStack() as opened:
        with freeze_objects():
            from proxy.concurrency.signals import Signals
            from proxy.process.early_data import begin_early_data

            signals = Signals()
            if (early := begin_early_data(policy, signals)) is not None:
                opened.callback(early.close)
            from proxy.process.serve import serve_in_foreground

        serve_in_foreground(
            policy,
            host=host,
            port=port,
            rest_port=rest_port,
            metrics_host=metrics_host,
            metrics_port=metrics_port,
            workers=workers,
            signals=signals,
            early=early,
        )


def play(
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 for a free one.")] = 8433,
    scores: Annotated[
        Path,
        typer.Option("--scores", help="The SQLite file of the leader board and of traces."),
    ] = Path("keyhole-play.sqlite"),
    policy: Annotated[
        Path | None,
        typer.Option("--policy", "-p", help="Also show a table of this policy with its true counts."),
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="The table; needs --policy, --place and --time.")] = None,
    place: Annotated[str | None, typer.Option("--place", help="The key for places, with at most 1,000 values.")] = None,
    time: Annotated[
        str | None, typer.Option("--time", help="The key for times, with at most 5,000 values in order.")
    ] = None,
) -> None:
    """Play with a made-up building's noisy counts.

    Needs no policy and reads no data, except the private rows of one table with --policy, for the owner alone.
    """
    with freeze_objects():
        from proxy.console.play.standalone import serve_playground

    def print_address(address: str) -> None:
        print(f"the playground is at {address}; end it with Ctrl-C", flush=True)

    with print_refusals(as_json=False):
        own = _read_own_streams(policy, table=table, place=place, time=time)
        serve_playground(port=port, scores=scores, report_address=print_address, own=own)


def _read_own_streams(
    policy: Path | None, *, table: str | None, place: str | None, time: str | None
) -> "OwnStreams | None":
    """Return the table that the owner wants to see, if any. Raise Mistyped if only some of its options are given."""
    said = {"policy": policy, "table": table, "place": place, "time": time}
    missing = [f"--{name}" for name, value in said.items() if value is None]
    if len(missing) == len(said):
        return None
    if policy is None or table is None or place is None or time is None:
        given = next(name for name, value in said.items() if value is not None)
        wanted = "--policy, --table, --place and --time together name a table of your own"
        raise Mistyped(given, f"{wanted}; missing: {', '.join(missing)}")
    from proxy.owner.table_streams import read_streams

    with show_work("reading private rows, for your eyes alone"):
        return read_streams(policy, table=table, place=place, time=time)


def demo(
    keep: Annotated[bool, typer.Option("--keep", help="Keep serving afterwards.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the scorecard to a file, as HTML.")] = None,
    monitor_alone: Annotated[
        bool,
        typer.Option(
            "--monitor",
            help="Only a monitor, over four weeks of replayed sales.",
        ),
    ] = False,
) -> None:
    """Ask real questions about real customers."""
    from proxy.cli import monitor_demo
    from proxy.cli.demo import run_demo

    with print_refusals(as_json=False):
        if monitor_alone:
            monitor_demo.run_monitor_demo()
        else:
            run_demo(
                keep=keep, html=html, show_monitor=partial(monitor_demo.run_monitor_demo, days=monitor_demo.SHORT_DAYS)
            )


def main(arguments: list[str] | None = None) -> None:
    """Run the console script. Exit with 0 on success, with 1 after a refusal, with 2 for wrong arguments.

    Files that it writes can be read by their owner only, whatever the shell's umask. A crash writes no core dump.
    """
    before = os.umask(OTHERS)
    _, hard = getrlimit(RLIMIT_CORE)
    setrlimit(RLIMIT_CORE, (0, hard))
    try:
        _run_command(arguments)
    finally:
        os.umask(before)


def _run_command(arguments: list[str] | None) -> None:
    try:
        try:
            app(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # the reader of our output has gone; the interpreter would raise again at its last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        from proxy.report.report_refusals import make_internal_error, write_as_psql

        unforeseen = make_internal_error()
        unforeseen.hint = f"Please report it, with these words: {_locate_exception(error)}."
        print(write_as_psql(unforeseen, sql=None), file=sys.stderr)
        sys.exit(1)


def _locate_exception(error: BaseException) -> str:
    """Return an exception's type and the line of code that raised it, without its text, which might quote data."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return type(error).__name__
    return f"{type(error).__name__} at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
