"""`keyhole diagnose roc|calibration|residuals`: the owner's command for curves of scores, charged and then public."""

from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from proxy.cli.common import (
    DEFAULT_POLICY,
    Json,
    PolicyPath,
    check_page,
    print_json,
    reason,
    refusals,
    show_work,
    write_html,
)
from proxy.cli.diagnose.report import TITLES, DiagnosisReport
from proxy.release.charged import check_affordable, find_release
from proxy.release.diagnosis import (
    METHODS,
    SENTENCES,
    DiagnosisAsked,
    DiagnosisRelease,
    Method,
    Plot,
    make_diagnosis,
    plan_diagnosis,
)
from proxy.release.dry_run import plan_alone, rehearse
from proxy.report.section import show_lines, show_page
from proxy.service.service import Service


def diagnose(
    plot: Annotated[Plot, typer.Argument(help="What is drawn.")],
    table: Annotated[str, typer.Argument(help="The private table.")],
    score: Annotated[str, typer.Option("--score", help="The score or prediction: a column, or an expression of some.")],
    outcome: Annotated[
        str,
        typer.Option("--outcome", help="What came: a condition such as \"y = 'late'\", or a column that is 0 or 1."),
    ],
    epsilon: Annotated[str, typer.Option("--epsilon", help="What it may cost each group, such as 0.5.")],
    by: Annotated[str | None, typer.Option("--by", help="Grouping columns, such as model: one curve for each.")] = None,
    where: Annotated[str, typer.Option("--where", help="A condition on rows, as in SQL.")] = "",
    method: Annotated[Method, typer.Option("--method", help="How noise is spent.")] = Method.OURS,
    bins: Annotated[
        int | None, typer.Option("--bins", min=2, max=256, help="Equal bins of scores; if not given, what errs least.")
    ] = None,
    rows_per_unit: Annotated[
        int, typer.Option("--rows-per-unit", min=1, max=1000, help="Rows of one unit that count in a group.")
    ] = 1,
    units: Annotated[
        int | None, typer.Option("--units", min=1, help="About how many units a group has, if that is public.")
    ] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    why: Annotated[str | None, typer.Option("--why", help="Why, for the record; needed with --yes.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Pay and release it; without it the cost is shown.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the cost and what would be read; open no source.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to a file, as HTML.")] = None,
    as_json: Json = False,
) -> None:
    """Release how well scores foretell outcomes, privately; charged."""
    if yes and why is None:
        raise typer.BadParameter("say why, for whoever reads the ledger later", param_hint="--why")
    _check_method(plot, method, bins)
    columns = tuple(part.strip() for part in by.split(",")) if by else ()
    if len(set(columns)) < len(columns):
        raise typer.BadParameter("every column once", param_hint="--by")
    asked = DiagnosisAsked(
        plot=plot,
        table=table,
        score=score,
        outcome=outcome,
        by=columns,
        where=where.strip(),
        epsilon=_parse_epsilon(epsilon),
        method=method,
        bins=bins,
        most_rows=rows_per_unit,
        units=units,
        why=reason(why) if why is not None else "",
    )
    with refusals(as_json=as_json):
        check_page(html)
        if dry_run:
            _rehearse(policy, asked, as_json=as_json)
            return
        with Service.open(policy) as service:
            planned = plan_diagnosis(asked, service.catalog, service.source.dialect)
            known = find_release(service, planned.release)
            if known is None:
                check_affordable(service, planned.release)
            if known is None and not yes:
                if as_json:
                    print_json(_offer_document(planned))
                else:
                    print(*_offer(planned), sep="\n")
                return
            with show_work("counting rows"):
                found, released = make_diagnosis(service, planned)
            report = DiagnosisReport(planned, found, released)
        if html is not None:
            write_html(html, show_page(report.sections(), title=f"Keyhole: {TITLES[plot]} of {table}", private=False))
        if as_json:
            print_json(report.document())
        else:
            print("\n".join(show_lines(report.sections(), private=False)))


def _check_method(plot: Plot, method: Method, bins: int | None) -> None:
    """Refuse a method or bins that a plot does not have."""
    if method not in METHODS[plot]:
        able = ", ".join(METHODS[plot])
        raise typer.BadParameter(f"{plot.value} is made by {able}", param_hint="--method")
    if bins is not None and method is not Method.OURS:
        raise typer.BadParameter("this method finds its bins itself", param_hint="--bins")
    if bins is not None and plot is Plot.RESIDUALS:
        raise typer.BadParameter("a grid of residuals finds its cells itself", param_hint="--bins")


def _rehearse(policy: Path, asked: DiagnosisAsked, *, as_json: bool) -> None:
    """Show the cost and the statement without a source."""
    with plan_alone(policy) as alone:
        planned = plan_diagnosis(asked, alone.catalog, alone.dialect)
        rehearsed = rehearse(alone, planned.release)
    if as_json:
        print_json({**_offer_document(planned), **rehearsed.document()})
    else:
        print(*_offer(planned), *rehearsed.lines(), sep="\n")


def _offer(planned: DiagnosisRelease) -> Iterator[str]:
    asked, groups = planned.asked, planned.groups_of_one_unit
    number, each = len(planned.groups), float(asked.epsilon)
    named = "1 group" if number == 1 else f"{number:,} groups"
    yield f"{TITLES[asked.plot]} of {asked.score} against {asked.outcome} would be released of {named}."
    yield f"It costs each group {each:g} epsilon, and a unit {groups * each:g}. Nothing was read or spent."
    yield SENTENCES[asked.method]
    yield 'Add --yes --why "..." to pay and release it.'


def _offer_document(planned: DiagnosisRelease) -> dict[str, Any]:
    """What it would cost, for a program: `offered` says that nothing was read or spent."""
    each = float(planned.asked.epsilon)
    return {
        "offered": True,
        "plot": planned.asked.plot.value,
        "table": planned.asked.table,
        "groups": len(planned.groups),
        "epsilon": each,
        "unit_epsilon": planned.groups_of_one_unit * each,
    }


def _parse_epsilon(text: str) -> Fraction:
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal("NaN")
    if not value.is_finite():
        raise typer.BadParameter(f"{text} is not a number", param_hint="--epsilon")
    if not 0 < value <= 1000:
        raise typer.BadParameter("more than 0, at most 1000", param_hint="--epsilon")
    return Fraction(value)
