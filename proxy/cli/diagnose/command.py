"""The `keyhole diagnose roc|calibration|residuals` command: curves of scores, charged to the owner and then public."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    check_page,
    print_json,
    print_refusals,
    read_reason,
    read_typed_flag,
    show_work,
    write_html,
)
from proxy.cli.diagnose.report import TITLES, DiagnosisReport
from proxy.cli.diagnose.table import tabulate
from proxy.cli.publish.place import FilePlace, WrittenFile, check_name, find_place
from proxy.open_policy.service import Service
from proxy.owner.typed_figures import read_epsilon
from proxy.release.charged import check_affordable, find_release
from proxy.release.diagnosis import (
    METHODS,
    SENTENCES,
    DiagnosisKind,
    DiagnosisRelease,
    DiagnosisRequest,
    Method,
    make_diagnosis,
    plan_diagnosis,
)
from proxy.release.dry_run import open_policy_without_source, run_dry
from proxy.release.published_file import FileForm, write_published_file
from proxy.report.section import show_lines, show_page
from proxy.report.terminal import write_row_count


def diagnose(
    plot: Annotated[DiagnosisKind, typer.Argument(help="The plot: roc, calibration or residuals.")],
    table: Annotated[str, typer.Argument(help="The private table.")],
    score: Annotated[str, typer.Option("--score", help="The score or prediction: an expression of columns.")],
    outcome: Annotated[
        str,
        typer.Option(
            "--outcome",
            help="The outcome: a condition, or a column that is 0 or 1; for residuals any number.",
        ),
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", help="The epsilon that each group is charged.")],
    by: Annotated[str | None, typer.Option("--by", help="Grouping columns: one curve for each group.")] = None,
    where: Annotated[str, typer.Option("--where", help="A condition on rows, as in SQL.")] = "",
    method: Annotated[
        Method,
        typer.Option("--method", help="ours, adaptive for saturated scores, or a published method."),
    ] = Method.OURS,
    bins: Annotated[
        int | None,
        typer.Option(
            "--bins",
            min=2,
            max=256,
            help="The number of bins of `ours`. Default: the one with the least error.",
        ),
    ] = None,
    rows_per_unit: Annotated[
        int, typer.Option("--rows-per-unit", min=1, max=1000, help="Rows of one unit that count in a group.")
    ] = 1,
    units: Annotated[
        int | None, typer.Option("--units", min=1, help="About how many units a group has, if public.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", help="Also write the curves as a table of this name, beside the policy."),
    ] = None,
    form: Annotated[
        FileForm | None, typer.Option("--format", help="The format of --out. Default: one that the source can read.")
    ] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    why: Annotated[str | None, typer.Option("--why", help="Why, for the record; needed with --yes.")] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Release the plot. Without this flag nothing is read or spent.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the cost, whether the budgets have room, and the statement that would be read. Opens no source.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write the report to a file: one page of HTML without script.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Release how well scores predict outcomes, privately; charged."""
    if yes and why is None:
        raise typer.BadParameter("say why, for later readers of the ledger", param_hint="--why")
    _check_method(plot, method, bins)
    if out is not None:
        check_name(out)
    elif form is not None:
        raise typer.BadParameter("there is a file only with --out", param_hint="--format")
    columns = tuple(part.strip() for part in by.split(",")) if by else ()
    if len(set(columns)) < len(columns):
        raise typer.BadParameter("every column once", param_hint="--by")
    asked = DiagnosisRequest(
        kind=plot,
        table=table,
        score=score,
        outcome=outcome,
        by=columns,
        where=where.strip(),
        epsilon=read_typed_flag(read_epsilon, epsilon, "--epsilon"),
        method=method,
        bins=bins,
        most_rows=rows_per_unit,
        units=units,
        why=read_reason(why) if why is not None else "",
    )
    with print_refusals(as_json=as_json):
        check_page(html)
        place = None if out is None else find_place(policy, out, form)
        if dry_run:
            _rehearse_without_source(policy, asked, place, as_json=as_json)
            return
        with Service.open(policy) as service:
            planned = plan_diagnosis(asked, service.catalog, service.source.dialect)
            known = find_release(service, planned.release)
            if known is None:
                _check_possible(service, planned, place)
            if known is None and not yes:
                _show_offer(planned, place, as_json=as_json)
                return
            if place is not None:
                place.check_folder()
            with show_work("counting rows"):
                found, released = make_diagnosis(service, planned)
            report = DiagnosisReport(planned, found, released)
        written = None if place is None else _write_curves(report, place)
        if html is not None:
            write_html(
                html, show_page(report.sections(), title=f"Keyhole: {TITLES[plot]} of {table}", is_private=False)
            )
        _show_report(report, written, as_json=as_json)


def _show_report(report: DiagnosisReport, written: WrittenFile | None, *, as_json: bool) -> None:
    if as_json:
        print_json(report.make_document() | ({} if written is None else written.make_document()))
        return
    print("\n".join(show_lines(report.sections(), is_private=False)))
    if written is not None:
        print(f"As a table: {written.place.file}, {write_row_count(written.rows or 0)}.", *written.lines(), sep="\n")


def _show_offer(planned: DiagnosisRelease, place: FilePlace | None, *, as_json: bool) -> None:
    if as_json:
        print_json(_make_offer_document(planned, place))
    else:
        print(*_describe_offer(planned, place), sep="\n")


def _check_possible(service: Service, planned: DiagnosisRelease, place: FilePlace | None) -> None:
    """Refuse a charge without a result: if the file exists already, or the balance is too small."""
    if place is not None:
        place.check_new()
    check_affordable(service, planned.release)


def _write_curves(report: DiagnosisReport, place: FilePlace) -> WrittenFile:
    """Write the curves, or find the file with the same curves."""
    table = tabulate(report.planned_release, report.groups)
    with place.explain_write_errors():
        file_hash = write_published_file(table, place.path, report.statement)
    return WrittenFile(place, table.types, file_hash, table.rows)


def _check_method(plot: DiagnosisKind, method: Method, bins: int | None) -> None:
    """Refuse a method or a number of bins that the plot does not have."""
    if method not in METHODS[plot]:
        able = ", ".join(METHODS[plot])
        raise typer.BadParameter(f"{plot.value} is made by {able}", param_hint="--method")
    if bins is not None and method is not Method.OURS:
        raise typer.BadParameter("this method finds its bins itself", param_hint="--bins")
    if bins is not None and plot is DiagnosisKind.RESIDUALS:
        raise typer.BadParameter("a grid of residuals finds its cells itself", param_hint="--bins")


def _rehearse_without_source(policy: Path, asked: DiagnosisRequest, place: FilePlace | None, *, as_json: bool) -> None:
    """Print the cost and the statement about privacy, without opening the source."""
    with open_policy_without_source(policy) as alone:
        planned = plan_diagnosis(asked, alone.catalog, alone.dialect)
        rehearsed = run_dry(alone, planned.release)
    if place is not None and not rehearsed.is_known:
        place.check_new()
    if as_json:
        print_json({**_make_offer_document(planned, place), **rehearsed.make_document()})
    else:
        print(*_describe_offer(planned, place), *rehearsed.write_lines(), sep="\n")


def _describe_offer(planned: DiagnosisRelease, place: FilePlace | None) -> Iterator[str]:
    asked, groups = planned.request, planned.groups_of_one_unit
    number, each = len(planned.groups), float(asked.epsilon)
    named = "1 group" if number == 1 else f"{number:,} groups"
    written = "" if place is None else f", and written as {place.file}"
    yield f"{TITLES[asked.kind]} of {asked.score} against {asked.outcome} would be released of {named}{written}."
    yield f"It costs each group {each:g} epsilon, and a unit {groups * each:g}. Nothing was read or spent."
    yield SENTENCES[asked.method]
    yield 'Add --yes --why "..." to pay and release it.'


def _make_offer_document(planned: DiagnosisRelease, place: FilePlace | None) -> dict[str, Any]:
    """Return the cost, as a JSON document: `offered` says that nothing was read or spent."""
    each = float(planned.request.epsilon)
    return {
        "offered": True,
        "plot": planned.request.kind.value,
        "table": planned.request.table,
        "groups": len(planned.groups),
        "epsilon": each,
        "unit_epsilon": planned.groups_of_one_unit * each,
    } | ({} if place is None else {"file": place.file})
