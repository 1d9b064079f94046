"""The `keyhole publish` command: tables that are handed out whole, charged or, on request, not private."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from proxy.cli.common import (
    DEFAULT_POLICY,
    By,
    Json,
    PolicyPath,
    print_json,
    print_refusals,
    read_decider,
    read_reason,
    read_typed_flag,
    show_work,
)
from proxy.cli.publish.place import FilePlace, WrittenFile, check_name, find_place
from proxy.cli.publish.report import PublishedReport, describe_offer, make_offer_document, write_charged_statement
from proxy.open_policy.service import Service
from proxy.owner.typed_figures import read_epsilon, read_share
from proxy.release.charged import check_affordable, find_release
from proxy.release.dry_run import DryRun, open_policy_without_source, run_dry
from proxy.release.publication import Publication, PublicationRequest, TableMethod, plan_publication, publish_counts
from proxy.release.published_file import FileForm, PublishedTable, find_unused_name, write_published_file
from proxy.release.release_refusals import refuse_unprotected
from proxy.release.unprotected import find_publication, publish_unprotected


class CriterionName(StrEnum):
    """The rule by which `sps` decides which groups are too large."""

    CHERNOFF = "chernoff"
    EXACT = "exact"


def publish(
    table: Annotated[str, typer.Argument(help="The private table.")],
    public: Annotated[
        str,
        typer.Option("--public", help="The keys beside the sensitive one, such as ward,month."),
    ],
    sensitive: Annotated[str, typer.Option("--sensitive", help="The key that is counted beside them.")],
    out: Annotated[
        str,
        typer.Option(
            "--out",
            help="The name of the published table, and of its file in releases/.",
        ),
    ],
    epsilon: Annotated[
        str | None,
        typer.Option(
            "--epsilon",
            help="The epsilon that each combination is charged. Required for table and rows.",
        ),
    ] = None,
    where: Annotated[str, typer.Option("--where", help="For table and rows: a condition on rows, as in SQL.")] = "",
    method: Annotated[
        TableMethod,
        typer.Option(
            "--method",
            help="table: noisy counts. rows: rows made from these. perturbed, and sps (thinned), are not private.",
        ),
    ] = TableMethod.TABLE,
    rows_per_unit: Annotated[
        int, typer.Option("--rows-per-unit", min=1, max=1000, help="Rows of one unit that count in a combination.")
    ] = 1,
    criterion: Annotated[
        CriterionName,
        typer.Option(
            "--criterion",
            help="For sps, what must be at least --unsure. exact: an error's probability. chernoff: its upper bound.",
        ),
    ] = CriterionName.CHERNOFF,
    retention: Annotated[
        str, typer.Option("--retention", help="For perturbed and sps: the share of records that keep their value.")
    ] = "0.5",
    within: Annotated[
        str,
        typer.Option("--within", help="For sps: how far an estimate of a group's largest share must be able to err."),
    ] = "30%",
    unsure: Annotated[
        str, typer.Option("--unsure", help="For sps: the least probability of an error above --within, to either side.")
    ] = "30%",
    meant: Annotated[
        bool,
        typer.Option(
            "--not-differentially-private", help="Required for perturbed and sps, which show who is in the table."
        ),
    ] = False,
    form: Annotated[
        FileForm | None, typer.Option("--format", help="The format of the file. Default: one that the source can read.")
    ] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    why: Annotated[str | None, typer.Option("--why", help="Why, for the record; needed with --yes.")] = None,
    by: By = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Publish the table. Without this flag nothing is read or spent.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the cost, whether the budgets have room, and the statement that would be read. Opens no source.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Publish a table of counts or rows, with noise; charged."""
    if yes and why is None:
        raise typer.BadParameter("say why, for later readers of the ledger", param_hint="--why")
    check_name(out)
    _check_method(method, epsilon, where=where, meant=meant)
    columns = tuple(part.strip() for part in public.split(","))
    if len({*columns, sensitive}) != len(columns) + 1:
        raise typer.BadParameter("every column once, and the sensitive one not among them", param_hint="--public")
    asked = PublicationRequest(
        table=table,
        public=columns,
        sensitive=sensitive,
        method=method,
        epsilon=None if epsilon is None else read_typed_flag(read_epsilon, epsilon, "--epsilon"),
        most_rows=rows_per_unit,
        retention=read_typed_flag(read_share, retention, "--retention"),
        within=read_typed_flag(read_share, within, "--within"),
        unsure=read_typed_flag(read_share, unsure, "--unsure"),
        exact=criterion is CriterionName.EXACT,
        name=out,
        where=where.strip(),
        why=read_reason(why) if why is not None else "",
    )
    with print_refusals(as_json=as_json):
        if not method.is_charged and not meant:
            raise refuse_unprotected(method)
        place = find_place(policy, out, form)
        if dry_run:
            _rehearse_without_source(policy, asked, place, as_json=as_json)
            return
        with Service.open(policy) as service:
            planned = plan_publication(asked, service.catalog, service.source.dialect)
            known = _is_known(service, planned)
            if not known:
                _check_possible(service, planned, place)
            if not (known or yes):
                _show_offer(planned, as_json=as_json)
                return
            with show_work("counting rows"):
                if method.is_charged:
                    report = _charge_and_write(service, planned, place)
                else:
                    report = _perturb(service, planned, place, by=read_decider(by))
        if as_json:
            print_json(report.make_document())
        else:
            print(*report.lines(), sep="\n")


def _check_method(method: TableMethod, epsilon: str | None, *, where: str, meant: bool) -> None:
    """Refuse flags that the method does not have."""
    if method.is_charged != (epsilon is not None):
        problem = "what it may cost, such as 0.5" if method.is_charged else f"{method} has none: no budget covers it"
        raise typer.BadParameter(problem, param_hint="--epsilon")
    if method.is_charged and meant:
        raise typer.BadParameter(f"{method} is private", param_hint="--not-differentially-private")
    if where.strip() and not method.is_charged:
        problem = f"{method} takes all rows: those of another condition would be drawn again, and could be averaged"
        raise typer.BadParameter(problem, param_hint="--where")


def _check_possible(service: Service, planned: Publication, place: FilePlace) -> None:
    """Refuse a charge or a draw without a result: if the file exists already, or the balance is too small."""
    place.check_new()
    if planned.request.epsilon is not None:
        check_affordable(service, planned.release)


def _rehearse_without_source(policy: Path, asked: PublicationRequest, place: FilePlace, *, as_json: bool) -> None:
    """Print the cost and the statement about privacy, without opening the source."""
    with open_policy_without_source(policy) as alone:
        planned = plan_publication(asked, alone.catalog, alone.dialect)
        if asked.epsilon is None:
            found = DryRun(is_known=find_publication(alone, planned) is not None, sql=planned.counts.sql)
        else:
            found = run_dry(alone, planned.release)
    if not found.is_known:
        place.check_new()
    if as_json:
        print_json({"offered": True} | make_offer_document(planned) | dict(found.make_document()))
    else:
        print(*describe_offer(planned), *found.write_lines(), sep="\n")


def _show_offer(planned: Publication, *, as_json: bool) -> None:
    if as_json:
        print_json({"offered": True} | make_offer_document(planned))
    else:
        print(*describe_offer(planned), sep="\n")


def _is_known(service: Service, planned: Publication) -> bool:
    """Return True if the same was published before, and is returned again without a charge."""
    if planned.request.epsilon is None:
        return find_publication(service, planned) is not None
    return find_release(service, planned.release) is not None


def _charge_and_write(service: Service, planned: Publication, place: FilePlace) -> PublishedReport:
    """Charge the publication unless it was charged before. Write its file unless the file already has this content."""
    place.check_folder()
    counts, released = publish_counts(service, planned)
    of_rows = planned.request.method is TableMethod.ROWS
    count_name = None if of_rows else find_unused_name("noisy_count", planned.question.keys.names)
    table = PublishedTable(planned.columns, counts, count_name)
    with place.explain_write_errors():
        file_hash = write_published_file(table, place.path, write_charged_statement(planned))
    written = WrittenFile(place, table.types, file_hash, table.rows)
    return PublishedReport(planned, written, released.version, was_published_before=released.is_repeated)


def _perturb(service: Service, planned: Publication, place: FilePlace, *, by: str) -> PublishedReport:
    with place.explain_write_errors():
        found = publish_unprotected(service, planned, place.path, by=by)
    written = WrittenFile(place, found.types, found.file_hash, found.rows)
    return PublishedReport(planned, written, found.version, was_published_before=found.is_repeated)
