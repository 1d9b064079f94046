"""The commands by which an analyst asks: `keyhole query`, `explain`, `plan`, `simulate`."""

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    check_new_file,
    check_page,
    make_unwritable_error,
    print_json,
    print_left_out_tables,
    print_picture,
    print_refusals,
    print_renderable,
    show_work,
    write_html,
    write_svg,
)
from proxy.cli.settings import NOTHING_GIVEN, Given, add_setting_flags

if TYPE_CHECKING:
    from planner.question.plan import Plan
    from proxy.cli.simulate import Simulation
    from proxy.cli.simulate_monitor import MonitorSimulation
    from proxy.open_policy.service import Service
    from proxy.pipeline.messages import Asked
    from proxy.shadow.key_labels import KeyLabels

As = Annotated[str | None, typer.Option("--as", help="The analyst who asks. Default: the policy's first one.")]
Sql = Annotated[str, typer.Argument(help="The question.")]


@add_setting_flags
def query(
    sql: Sql,
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: As = None,
    given: Given = NOTHING_GIVEN,
    drawn: Annotated[bool, typer.Option("--map", help="Draw the answer as a map of keys by keys, with bands.")] = False,
    rows: Annotated[int, typer.Option(min=1, help="The most rows of the map in the terminal.")] = 40,
    html: Annotated[Path | None, typer.Option("--html", help="Write the map to a file, as HTML.")] = None,
    as_json: Json = False,
) -> None:
    """Ask one question and print the keys that pass. Spends budget."""
    from planner.explain.numbers_told import write_number_notices, write_numbers_json
    from proxy.cli.pictures import draw_answer, render_answer_page
    from proxy.open_policy.service import Service
    from proxy.pipeline import stages as pipeline
    from proxy.report.terminal import write_psql_table, write_row_count
    from proxy.rest.sorted_keys import show_keys

    with print_refusals(as_json=as_json, sql=sql), Service.open(policy) as service:
        asked = _make_asked(service, sql, given, analyst)
        check_page(html)
        if (drawn or html is not None) and asked.question.shown_keys is not None:
            raise typer.BadParameter("computed keys are not drawn", param_hint="--map" if drawn else "--html")
        with show_work("asking"):
            plan = pipeline.plan_asked_question(service, asked)
            labels = _read_labels(service, asked, plan)
            answer = pipeline.answer(service, plan, asked)
            keys = show_keys(answer.keys, labels, ())
        if html is not None:
            write_html(html, render_answer_page(answer, sql))
        if as_json:
            told = answer.make_document() | {"numbers": write_numbers_json(asked.question.numbers)}
            if labels is not None:
                told |= {"columns": list(keys.columns), "keys": list(keys.keys)}
            print_json(told)
            return
        if drawn:
            print_picture(partial(draw_answer, answer, most_rows=rows))
        else:
            columns = answer.columns if labels is None else keys.columns
            print(*write_psql_table(columns, [[text or "" for text in key] for key in keys.keys]), sep="\n")
        print(
            f"({write_row_count(len(answer.keys.keys))}"
            f"{', released before: nothing is spent' if answer.is_reused else ''})"
        )
        for sentence in write_number_notices(asked.question.numbers):
            print(f"\n{sentence}", end="")
        print(f"\nGuarantee: {answer.make_document()['guarantee']['sentence']}")
        if answer.payment is not None:
            print(f"Cost: {answer.payment.write_charged()}")
        if answer.noise_notice is not None:
            print(answer.noise_notice)
        for warning in answer.plan.warnings:
            print(f"Warning: {warning}")


@add_setting_flags
def explain(
    sql: Sql,
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: As = None,
    given: Given = NOTHING_GIVEN,
    tree: Annotated[
        bool,
        typer.Option(
            "--tree", help="Draw the formula twice: as you wrote it, and as it is tested, with the cost of each test."
        ),
    ] = False,
    svg: Annotated[Path | None, typer.Option("--svg", help="Write the drawing of --tree to a file, as SVG.")] = None,
    verbose: Annotated[
        bool,
        typer.Option("--verbose", help="Show as much as EXPLAIN VERBOSE."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the plan of a question and what it would cost.

    This spends nothing, and reads only pinned data, not the source.
    """
    from planner.explain.formula_tree import build_trees
    from proxy.open_policy.service import Service
    from proxy.pipeline import stages as pipeline
    from proxy.pipeline.answering import explain_as_document, explain_question

    with print_refusals(as_json=as_json, sql=sql), Service.open_for_reading(policy) as service:
        print_left_out_tables(service)
        asked = _make_asked(service, sql, given, analyst)
        drawn = build_trees(pipeline.plan_asked_question(service, asked)) if tree or svg else ()
        if svg is not None:
            from planner.explain.formula_svg import draw_formula

            write_svg(svg, draw_formula(drawn, title=sql))
        if as_json:
            print_json(explain_as_document(service, asked))
        elif tree:
            from proxy.report.terminal import make_formula_trees

            print_renderable(*make_formula_trees(drawn))
        else:
            print("\n".join(explain_question(service, asked, form="verbose" if verbose else "text")))
            print(_describe_question_id(service, asked))


def _describe_question_id(service: "Service", asked: "Asked") -> str:
    """Return the question's id in the ledger, and True if it waits for the owner."""
    from proxy.pipeline import approval
    from proxy.pipeline import stages as pipeline
    from proxy.pipeline.claim import make_current_claim

    plan = pipeline.plan_asked_question(service, asked)
    claim = make_current_claim(service, plan, asked)
    question = claim.charge.question
    if approval.find_needed_approval(service, claim) is not None:
        return f"Question id: {question} (waits for approval)"
    approved = claim.limits.approval_above_nano is not None and service.is_approved(question)
    return f"Question id: {question}{' (approved)' if approved else ''}"


@add_setting_flags
def simulate(
    units: Annotated[int, typer.Option(min=1, help="How many privacy units there are.")],
    sql: Annotated[str | None, typer.Argument(help="The question.", show_default=False)] = None,
    monitor: Annotated[str | None, typer.Option(help="A monitor of the policy instead of a question.")] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    keys: Annotated[
        int | None,
        typer.Option(min=1, help="The number of values of a key column without a listed domain."),
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="The number of rows, to estimate what the bounds leave out.")
    ] = None,
    groups: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="The mean number of groups that a unit is in, to estimate what bounds cut.",
        ),
    ] = None,
    given: Given = NOTHING_GIVEN,
    as_json: Json = False,
) -> None:
    """Show what a question or monitor would cost. Opens no source and no ledger, and needs no pins."""
    from planner.policy.simulated_catalog import SizeMissing
    from proxy.cli.simulate import Sizes
    from proxy.cli.simulate import simulate as simulated
    from proxy.cli.simulate_monitor import simulate_monitor

    if (sql is None) == (monitor is None):
        raise typer.BadParameter("give a question, or --monitor NAME", param_hint="sql")
    if monitor is not None and given:
        option = f"--{next(iter(given)).removeprefix('keyhole.').replace('_', '-')}"
        raise typer.BadParameter("a monitor's accuracy stands in its own section of the policy", param_hint=option)
    sizes = Sizes(units=units, keys=keys, rows=rows, groups=groups)
    with print_refusals(as_json=as_json, sql=sql):
        made: Simulation | MonitorSimulation
        try:
            if sql is None:
                made = simulate_monitor(policy, str(monitor), sizes=sizes)
            else:
                made = simulated(policy, sql, given=given, sizes=sizes)
        except SizeMissing as missing:
            told = f"the policy lists no values of {missing.column}: say how many there are"
            raise typer.BadParameter(told, param_hint="--keys") from None
        if as_json:
            print_json(made.make_document())
        else:
            print("\n".join(made.lines()))


def plan(
    file: Annotated[Path, typer.Argument(help="A file of SQL: questions, with the SETs of their tolerances.")],
    policy: PolicyPath = DEFAULT_POLICY,
    analyst: As = None,
    max_epsilon: Annotated[
        float | None,
        typer.Option(
            min=1e-9,
            max=1000.0,
            help="The most epsilon that the whole list may cost any group.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="Write a new file with tolerances at which all questions fit."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Plan a list of questions as a whole: what fits, and how all would. Spends nothing and opens no source."""
    from accountant.charges import NANO
    from proxy.dashboard.plan_report import PlanReport, write_tolerances
    from proxy.dashboard.question_list import read_list
    from proxy.dashboard.tolerance_split import plan_list
    from proxy.open_policy.service import Service

    try:
        sql = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise typer.BadParameter(f"{file} cannot be read ({error})", param_hint="FILE") from None
    with print_refusals(as_json=as_json, sql=sql), Service.open_for_reading(policy) as service:
        print_left_out_tables(service)
        listed = read_list(sql, service.catalog, analyst=service.find_analyst(analyst), given={})
        with show_work("planning"):
            planned = plan_list(service, listed, most_nano=None if max_epsilon is None else int(max_epsilon * NANO))
        report = PlanReport(planned, service)
        if write is not None:
            try:
                check_new_file(write, hint="--write").write_text(write_tolerances(sql, planned), encoding="utf-8")
            except OSError as error:
                raise make_unwritable_error(write, error, hint="--write") from None
        if as_json:
            print_json(report.make_document())
        else:
            print("\n".join(report.lines()))


def _read_labels(service: "Service", asked: "Asked", plan: "Plan") -> "KeyLabels | None":
    from proxy.cli.brief_labels import ShortLivedLabels

    return ShortLivedLabels(service).read_labels(asked.question, plan.question.keys, analyst=asked.analyst.name)


def _make_asked(service: "Service", sql: str, given: Given, analyst: str | None) -> "Asked":
    from planner.statements.settings import read_catalog
    from proxy.pipeline.messages import Asked, read_bare_question

    return Asked(
        question=read_bare_question(sql, read_catalog(service.catalog, given)),
        settings=given,
        parameters={},
        analyst=service.find_analyst(analyst),
        today=datetime.now(UTC).date(),
        is_utc=True,
    )
