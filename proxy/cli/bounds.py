"""The `keyhole bounds` command, which finds bounds privately for the owner, and its report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from accountant.unit_balance import NO_UNIT_LOSS, UnitRoom
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Grouping, Table
from planner.errors import KeyholeError
from planner.explain.rounded_numbers import write_percent
from planner.lower.unit_statistics import LOW_SIDES, BoundKind
from planner.parser.lexer import quote_identifier
from planner.plan import build as planning
from planner.policy.sections import split_keys
from planner.question.plan import Plan
from planner.question.unit_groups import count_unit_groups
from planner.statements import settings
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
from proxy.open_policy.accounts import convert_to_nano
from proxy.open_policy.service import Service
from proxy.owner.typed_figures import read_epsilon, read_number, read_share
from proxy.pipeline.claim import find_worst_curve
from proxy.pipeline.messages import read_bare_question
from proxy.release.bounds import BETA, BoundsRelease, BoundsRequest, FoundBound, FoundBounds, find_bounds, plan_bounds
from proxy.release.charged import PaidRelease, check_affordable, find_release
from proxy.release.declared_bounds import find_declared_bound, is_wider_than_declared
from proxy.release.dry_run import open_policy_without_source, run_dry
from proxy.report.html.page import Verbatim
from proxy.report.html.plots import Bar, draw_bar_plot
from proxy.report.section import ReportSection, show_page

_SURE = f"{float(100 * (1 - BETA / 2)):g} % sure"
_WIDER = "pasted into the policy, more of each unit counts than now, and questions cost more or need more tolerance"
_TIMES = 20  # a tolerance of so many times a bound is what ordinary questions have: noise is a twentieth of it then


@dataclass(frozen=True, slots=True)
class BoundsReport:
    """The report on released bounds: the bounds, how to write them in the policy, and the cost of the release."""

    planned_release: BoundsRelease
    found_bounds: FoundBounds
    paid_release: PaidRelease
    table: Table
    catalog: Catalog

    def lines(self) -> Iterator[str]:
        """Yield the report's lines for a terminal. Text to paste into the policy comes last."""
        asked, found = self.planned_release.request, self.found_bounds
        paid = (
            "released before, so it costs nothing"
            if self.paid_release.is_repeated
            else f"paid {float(asked.epsilon):g} epsilon"
        )
        yield f"Bounds of one ({self.table.unit_text}) in {self.table.name}: {paid}"
        surely = " (counted with noise)" if found.is_counted else " (declared)"
        yield f"  at least {found.units:,} units{surely}"
        if found.cut is None:
            yield "  these are too few for any bound at this epsilon: noise would outweigh them"
            return
        if found.cut > float(asked.cut):
            least = write_percent(found.cut, places=2)
            yield f"  too few to cut {_write_percent(asked.cut)} only: each bound is for at most {least}"
        for one in found.bounds:
            yield f"  {_write_sentence(one)}{self._describe_declared(one)}"
        if any(is_wider_than_declared(one, self.table) for one in found.bounds):
            yield f"  {_WIDER}"
        yield from self._describe_tradeoff()
        standing = [_describe(one) for one in found.bounds if self._is_declared(one)]
        if standing:
            yield f"  the policy has {'these' if len(standing) < len(found.bounds) else 'all'} already: " + "; ".join(
                standing
            )
        snippet = list(self._write_snippet())
        if snippet:
            yield ""
            yield f"# found by keyhole bounds, {float(asked.epsilon):g} epsilon; a table that is there gets these lines"
            yield from snippet

    def sections(self) -> tuple[ReportSection, ...]:
        """Return the report's sections for a page."""
        head, *told = [line.strip() for line in self.lines()]
        if self.found_bounds.cut is None:
            return (ReportSection("bounds", head, tuple(told)),)
        units = max(self.found_bounds.units, 1)
        bars = [
            Bar(
                _describe(one),
                one.most_beyond / units,
                f"{one.most_beyond:,} of {units:,}",
                float(self.planned_release.request.cut),
            )
            for one in self.found_bounds.bounds
        ]
        sentences = told[: told.index("")] if "" in told else told
        drawing = draw_bar_plot("Units beyond each bound, at most; the mark is what was asked for", bars)
        snippet = "\n".join(self._write_snippet())
        policy = (ReportSection("policy", "For the policy", (Verbatim(snippet),)),) if snippet else ()
        return (ReportSection("bounds", head, (*sentences, drawing)), *policy)

    def make_document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        return {
            "table": self.table.name,
            "epsilon": float(self.planned_release.request.epsilon),
            "paid_before": self.paid_release.is_repeated,
            "version": self.paid_release.version,
            "units_at_least": self.found_bounds.units,
            "units_counted": self.found_bounds.is_counted,
            "cut": self.found_bounds.cut,
            "bounds": [
                {
                    "of": one.kind.value,
                    "keys": list(one.keys),
                    "column": one.column,
                    "bound": _write_number(one.bound),
                    "most_units_beyond": one.most_beyond,
                    "largest_candidate": one.is_last,
                    "stands": self._is_declared(one),
                    "declared": _write_optional(find_declared_bound(one, self.table)),
                    "wider_than_declared": is_wider_than_declared(one, self.table),
                }
                for one in self.found_bounds.bounds
            ],
            "policy": "\n".join(self._write_snippet()),
        }

    def _describe_declared(self, one: FoundBound) -> str:
        """Return the end of a sentence: that a bound lets more count than the declared one; else an empty text."""
        declared = find_declared_bound(one, self.table)
        if declared is None or not is_wider_than_declared(one, self.table):
            return ""
        compared = "less" if one.kind in LOW_SIDES else "more"
        return f"; {compared} than the {_write_number(declared)} that the policy declares"

    def _is_declared(self, one: FoundBound) -> bool:
        """Return True if the policy declares exactly the bound that was found."""
        return find_declared_bound(one, self.table) == _round_for_policy(one)

    def _is_new(self, of: Sequence[BoundKind], keys: tuple[str, ...], column: str | None = None) -> bool:
        """Return True if an end of a column's range was found that the policy does not declare."""
        return any(
            one.kind in of and (one.keys, one.column) == (keys, column) and not self._is_declared(one)
            for one in self.found_bounds.bounds
        )

    def _find_released_bound(self, of: BoundKind, keys: tuple[str, ...], column: str | None = None) -> Decimal | None:
        return next(
            (o.bound for o in self.found_bounds.bounds if (o.kind, o.keys, o.column) == (of, keys, column)), None
        )

    def _describe_tradeoff(self) -> Iterator[str]:
        for keys in self.planned_release.request.keys:
            found = self._find_released_bound(BoundKind.GROUPS, keys)
            cost = None if found is None else self._describe_cost(keys, max(1, int(found)))
            if cost is not None:
                yield f"  {', '.join(keys)}: {cost}"

    def _describe_cost(self, keys: tuple[str, ...], groups: int) -> str | None:
        """Return the cost of a question by these keys with the bound, as the planner computes it."""
        if not self.table.unit:
            return None
        plain = tuple(name for name in keys if not self.table.get_column(name).computed)
        made = tuple(name for name in keys if name not in plain)
        known = tuple(column for column in self.table.columns if not column.computed)
        declared = (Grouping(plain, groups, None, (), made),)
        bounded = replace(self.table, columns=known, groupings=declared, groups_per_unit=groups)
        others = tuple(bounded if one.name == bounded.name else one for one in self.catalog.tables)
        catalog = replace(self.catalog, tables=others)
        names = ", ".join(name if name in made else quote_identifier(name) for name in keys)
        unit = ", ".join(map(quote_identifier, self.table.unit))
        unit = f"({unit})" if len(self.table.unit) > 1 else unit
        relation = quote_identifier(bounded.name)
        sql = f"SELECT {names} FROM {relation} GROUP BY {names} HAVING count(DISTINCT {unit}) > 1000"
        try:
            accuracy = settings.read_accuracy({"keyhole.tolerance": str(_TIMES)}, catalog.defaults)
            today = datetime.now(UTC).date()
            question = bind_question(
                read_bare_question(sql, catalog), catalog, accuracy=accuracy, parameters={}, today=today, is_utc=True
            )
            plan = planning.plan_question(question, dialect=self.planned_release.release.counts.dialect)
        except KeyholeError:
            return None
        counted = count_unit_groups(plan.question)
        group, unit_cost = plan.worst_case_epsilon, counted * plan.worst_case_epsilon
        told = f"a question with a tolerance of {_TIMES} units costs {group:.2g} a group, {unit_cost:.2g} a unit"
        return f"{told}{self._count_fitting(plan, counted)}. Half as many groups would cost half."

    def _count_fitting(self, plan: Plan, groups: int) -> str:
        """Say how many of these questions fit into the budget of a unit that is in the given number of groups."""
        cap, delta = self.catalog.budget.per_unit, self.catalog.budget.delta
        if cap is None:
            return ""
        each = groups * convert_to_nano(plan.worst_case_epsilon)
        most = UnitRoom(NO_UNIT_LOSS, convert_to_nano(cap), delta).count_further_questions(each, find_worst_curve(plan))
        plain = UnitRoom(NO_UNIT_LOSS, convert_to_nano(cap), None).count_further_questions(each, None)
        without = f" but for a delta of {delta:g}, {plain:,} without one" if most > plain else ""
        return f"; {most:,} fit into a unit's budget of {cap:g}{without}"

    def _write_snippet(self) -> Iterator[str]:
        """Yield the new bounds as lines of a policy."""
        named = [
            (keys, entries)
            for keys in self.planned_release.request.keys
            if (entries := list(self._write_entries(keys)))
        ]
        if named:
            yield f"[tables.{_quote_key(self.table.name)}.groupings]"
            for keys, entries in named:
                yield f"{_quote_key(', '.join(keys))} = {{ {', '.join(entries)} }}"
        for name in self.planned_release.request.columns:
            high = self._find_released_bound(BoundKind.HIGHEST_VALUE, (), name)
            if high is not None and self._is_new((BoundKind.LOWEST_VALUE, BoundKind.HIGHEST_VALUE), (), name):
                declared = self.table.get_column(name).bounds
                low = self._find_released_bound(BoundKind.LOWEST_VALUE, (), name)
                yield f"[tables.{_quote_key(self.table.name)}.columns.{_quote_key(name)}]"
                least = low if low is not None else declared[0] if declared is not None else Decimal(0)
                yield f"bounds = [{_write_number(least)}, {_write_number(high)}]"

    def _write_entries(self, keys: tuple[str, ...]) -> Iterator[str]:
        for of, name in ((BoundKind.GROUPS, "max_groups"), (BoundKind.ROWS, "rows")):
            found = self._find_released_bound(of, keys)
            if found is not None and self._is_new((of,), keys):
                yield f"{name} = {max(1, int(found))}"
        totals = []
        for name in self.planned_release.request.totals:
            low, high = (
                self._find_released_bound(BoundKind.LOWEST_TOTAL, keys, name),
                self._find_released_bound(BoundKind.HIGHEST_TOTAL, keys, name),
            )
            if self._is_new((BoundKind.LOWEST_TOTAL, BoundKind.HIGHEST_TOTAL), keys, name):
                totals.append(
                    f"{_quote_key(name)} = [{_write_number(low or Decimal(0))}, {_write_number(high or Decimal(0))}]"
                )
        if totals:
            yield f"per_unit = {{ {', '.join(totals)} }}"


def _round_for_policy(one: FoundBound) -> Decimal:
    """Return a bound as a number for the policy: each unit is in at least one group, with at least one row."""
    return Decimal(max(1, int(one.bound))) if one.kind in (BoundKind.GROUPS, BoundKind.ROWS) else one.bound


def _describe(one: FoundBound) -> str:
    number = f"{one.bound:,f}".rstrip("0").rstrip(".") if "." in f"{one.bound:f}" else f"{one.bound:,f}"
    where = f"by {', '.join(one.keys)}: " if one.keys else ""
    what = {
        BoundKind.GROUPS: f"in at most {number} groups",
        BoundKind.ROWS: f"at most {number} rows in one group",
        BoundKind.HIGHEST_TOTAL: f"at most {number} of {one.column} in one group",
        BoundKind.LOWEST_TOTAL: f"at least {number} of {one.column} in one group",
        BoundKind.HIGHEST_VALUE: f"{one.column} at most {number}",
        BoundKind.LOWEST_VALUE: f"{one.column} at least {number}",
    }[one.kind]
    return f"{where}{what}"


def _write_sentence(one: FoundBound) -> str:
    beyond = "below" if one.kind in LOW_SIDES else "above"
    last = "; it is the largest that is looked at" if one.is_last else ""
    last += "; it may be larger than need be: few are above, and noise hides how few" if one.is_loose else ""
    return f"{_describe(one)}; at most {one.most_beyond:,} units are {beyond} ({_SURE}){last}"


def _write_number(value: Decimal) -> str:
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _write_optional(value: Decimal | None) -> str | None:
    return None if value is None else _write_number(value)


def _write_percent(share: Fraction) -> str:
    return f"{float(100 * share):g} %"


def _quote_key(name: str) -> str:
    """Return a key as TOML writes it."""
    bare = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return name if bare else f'"{escaped}"'


def bounds(
    table: Annotated[str, typer.Argument(help="The private table.")],
    epsilon: Annotated[
        str,
        typer.Option("--epsilon", help="The epsilon of all bounds together, for each group and unit."),
    ],
    keys: Annotated[
        list[str] | None,
        typer.Option(
            "--keys",
            help="Keys, such as store,week: find the number of a unit's groups, and of its rows in one.",
        ),
    ] = None,
    total: Annotated[
        list[str] | None,
        typer.Option(
            "--total",
            help="A measure with bounds: find a unit's largest total in a group of each --keys, and its least.",
        ),
    ] = None,
    column: Annotated[
        list[str] | None,
        typer.Option(
            "--column",
            help="A column of numbers: find its largest and least value. A declared least value stays unless negative.",
        ),
    ] = None,
    cut: Annotated[
        str, typer.Option("--cut", help="The share of units that may lie beyond a bound, as 5% or 0.05.")
    ] = "5%",
    units: Annotated[
        int | None,
        typer.Option(
            "--units",
            min=1,
            help="The least number of units, if public. Else a tenth of the epsilon counts them.",
        ),
    ] = None,
    most: Annotated[
        list[str] | None,
        typer.Option("--most", help="COLUMN=NUMBER: the largest possible value, if the type does not say."),
    ] = None,
    policy: PolicyPath = DEFAULT_POLICY,
    why: Annotated[str | None, typer.Option("--why", help="Why, for the record; needed with --yes.")] = None,
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="Find the bounds and charge the epsilon. Without this flag nothing is read or spent."
        ),
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
    """Find bounds for the policy in the data, privately; charged.

    The same command on the same data version prints the same bounds and costs nothing.
    """
    if yes and why is None:
        raise typer.BadParameter("say why, for later readers of the ledger", param_hint="--why")
    asked = BoundsRequest(
        table=table,
        keys=tuple(split_keys(one) for one in keys or ()),
        totals=tuple(total or ()),
        columns=tuple(column or ()),
        epsilon=read_typed_flag(read_epsilon, epsilon, "--epsilon"),
        cut=read_typed_flag(read_share, cut, "--cut"),
        units=units,
        most=_parse_most_values(most or ()),
        why=read_reason(why) if why is not None else "",
    )
    _check_bounds_named_once(asked)
    if asked.totals and not asked.keys:
        raise typer.BadParameter("totals are those of one group: name the grouping columns", param_hint="--keys")
    with print_refusals(as_json=as_json):
        check_page(html)
        if dry_run:
            with open_policy_without_source(policy) as alone:
                planned = plan_bounds(asked, alone.catalog, alone.dialect)
                rehearsed = run_dry(alone, planned.release)
            planned.check_reachable()
            if as_json:
                print_json({**_make_offer_document(planned), **rehearsed.make_document()})
            else:
                print(*_describe_offer(planned), *rehearsed.write_lines(), sep="\n")
            return
        _find_bounds(policy, asked, yes=yes, html=html, as_json=as_json)


def _find_bounds(policy: Path, asked: BoundsRequest, *, yes: bool, html: Path | None, as_json: bool) -> None:
    """Find the bounds, or show what they cost."""
    with Service.open(policy) as service:
        planned = plan_bounds(asked, service.catalog, service.source.dialect)
        known = find_release(service, planned.release)
        if known is None:
            planned.check_reachable()
            check_affordable(service, planned.release)
        if known is None and not yes:
            if as_json:
                print_json(_make_offer_document(planned))
            else:
                print(*_describe_offer(planned), sep="\n")
            return
        with show_work("counting units"):
            found, released = find_bounds(service, planned)
        bounded = planned.release.table
        report = BoundsReport(planned, found, released, bounded, service.catalog)
        if html is not None:
            page = show_page(report.sections(), title=f"Keyhole: bounds of {bounded.name}", is_private=False)
            write_html(html, page)
        if as_json:
            print_json(report.make_document())
        else:
            print(*report.lines(), sep="\n")


def _check_bounds_named_once(asked: BoundsRequest) -> None:
    """Refuse a bound that is named twice, and an end of a range that no column has.

    Each named bound gets a share of the epsilon.
    """
    doubled = any(len(set(keys)) < len(keys) for keys in asked.keys)
    for hint, values, twice in (
        ("--keys", [frozenset(keys) for keys in asked.keys], doubled),
        ("--total", asked.totals, False),
        ("--column", asked.columns, False),
    ):
        if twice or len(set(values)) < len(values):
            raise typer.BadParameter("name each once: every bound takes a part of the epsilon", param_hint=hint)
    strange = next((name for name in asked.most if name not in asked.columns), None)
    if strange is not None:
        raise typer.BadParameter(f"no bounds of {strange} are asked for (--column {strange})", param_hint="--most")


def _describe_offer(planned: BoundsRelease) -> Iterator[str]:
    asked, count = planned.request, len(planned.release.counts.statistics)
    counted = "" if asked.units is not None else ", and the units are counted"
    yield f"{count} bound{'s' if count > 1 else ''} would be found for {float(asked.epsilon):g} epsilon{counted}."
    yield "That much is gone from the budget of every group and every unit of the table. Nothing was read or spent."
    yield 'Add --yes --why "..." to pay and find them.'


def _make_offer_document(planned: BoundsRelease) -> dict[str, Any]:
    """Return the cost as a JSON document. `offered` says that nothing was read or charged."""
    asked = planned.request
    return {
        "offered": True,
        "table": asked.table,
        "epsilon": float(asked.epsilon),
        "bounds": len(planned.release.counts.statistics),
        "units_counted": asked.units is None,
    }


def _parse_most_values(texts: Sequence[str]) -> dict[str, Decimal]:
    found = dict(map(_parse_largest_value, texts))
    if len(found) < len(texts):
        raise typer.BadParameter("say how large a column can be once", param_hint="--most")
    return found


def _parse_largest_value(text: str) -> tuple[str, Decimal]:
    name, _, number = text.rpartition("=")
    if not name.strip():
        raise typer.BadParameter(f"say COLUMN=NUMBER, such as {_write_example(text)}", param_hint="--most")
    value = read_typed_flag(read_number, number, "--most")
    if value <= 0:
        raise typer.BadParameter("COLUMN=NUMBER, more than 0", param_hint="--most")
    return name.strip(), value


def _write_example(text: str) -> str:
    """Return an example of the expected form, with the typed text if it has a name and a number."""
    name, _, number = text.replace(":", " ").rpartition(" ")
    return f"{name.strip()}={number}" if name.strip() and number.isdecimal() else "age=110"
