"""The odometer: all losses so far, over all budget windows, in sentences that an owner can put into a report.

The numbers are exact, and only for the owner. They bound the loss by all answers ever released, and follow from the
ledger alone.

Reference: docs/proofs/accounting.md, theorems 1 to 3; docs/decisions/0005-cells.md.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from accountant.charges import NANO, ROW_UNIT
from accountant.events.owner_events import Published, WindowOpened
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.reports.balance_report import BudgetReport, FamilyBalance
from planner.policy.file import Policy
from proxy.report.terminal import make_visible

_MOST_FACTOR = 1e6  # a factor of more than that says nothing but that there is no protection
_MOST_DIGITS = 4  # behind the point of a percentage: beyond 99.9999 % nobody makes a difference


@dataclass(frozen=True, slots=True)
class TableReading:
    """The losses of one table.

    `epsilon` is the largest loss of any unit in one cell, by all answers ever released. For each cell, that bound holds
    except with probability `delta` (None: always). `unit` is "row", or has the names of the unit's columns.
    """

    table: str
    unit: str
    questions: int
    epsilon: float
    delta: float | None = None


@dataclass(frozen=True, slots=True)
class AnalystReading:
    """The largest losses by one analyst's own questions: in one cell, and of one unit over all tables."""

    analyst: str
    questions: int
    epsilon: float
    unit_epsilon: float


@dataclass(frozen=True, slots=True)
class PublishedReading:
    """A published file that no budget covers, with a sentence on what it discloses."""

    on: str
    by: str
    why: str
    table: str
    method: str
    file: str
    file_hash: str
    statement: str


@dataclass(frozen=True, slots=True)
class OdometerReading:
    """The losses so far, over all budget windows, with the caps of the policy.

    `unit_epsilon` is the largest loss of one unit, over all tables with units of several rows. That bound holds except
    with probability `delta` (None: always). `unit_balance` is the same loss as the cap on a unit counts it. No number
    covers the files in `published`.

    Caps are the policy's, for one budget window and without grants.
    """

    windows: int
    since: str | None
    until: str | None
    questions: int
    open_reservations: int
    monitors: tuple[str, ...]
    tables: tuple[TableReading, ...]
    analysts: tuple[AnalystReading, ...]
    unit_epsilon: float
    unit_balance: float
    delta: float | None
    epsilon_per_predicate: float
    epsilon_per_unit: float | None
    cap_delta: float | None
    group_delta: float | None
    granted: int
    published: tuple[PublishedReading, ...]

    def make_document(self) -> dict[str, Any]:
        """Return the losses as a JSON document. Each epsilon is followed by its factor, e to the epsilon."""
        found = asdict(self)
        for item in (*found["tables"], *found["analysts"]):
            item["factor"] = math.exp(item["epsilon"])
        return found | {"unit_factor": math.exp(self.unit_epsilon), "statements": list(self.write_lines())}

    def write_lines(self) -> Iterator[str]:
        """Yield the losses in sentences."""
        yield from self._describe_answered()
        yield from self._describe_published()

    def _describe_published(self) -> Iterator[str]:
        for one in self.published:
            yield ""
            yield (
                f"Outside of all of this, {make_visible(one.by)} published {one.table} on {one.on} as {one.file} "
                f"({one.method}; {make_visible(one.why)})."
            )
            yield f"  {one.statement}"
            yield f"  SHA-256 {one.file_hash}"
        several = Counter(one.table for one in self.published)
        for table, times in several.items():
            if times > 1:
                yield ""
                yield (
                    f"{table} was published like that {times} times: for a record that is in several of these files "
                    "the factors multiply."
                )

    def _describe_answered(self) -> Iterator[str]:
        if not self.questions:
            if self.published:
                yield "No question has spent anything."
            else:
                yield "No question has spent anything: nothing was told about anybody."
            return
        yield (
            f"{self.questions:,} question{_write_plural(self.questions)} from {self.since} to {self.until}, "
            f"in {self.windows} budget window{_write_plural(self.windows)}, all counted together."
        )
        for table in self.tables:
            yield ""
            yield from _describe_table(table)
        if any(table.unit != ROW_UNIT for table in self.tables):
            yield ""
            yield f"Over all tables: {_describe_unit(self.unit_epsilon, self.delta)}"
            if self.delta is not None:
                yield (
                    f"  The cap counts this as epsilon {self.unit_balance:.4f} with delta {self.delta:g}: one unit has "
                    "changed the probability of no answer by more than that factor and that difference."
                )
        yield ""
        yield "Each analyst alone, without what the others were told:"
        within = "" if self.delta is None else f" with delta {self.delta:g}"
        of_group = next((f" with delta {table.delta:g}" for table in self.tables if table.delta is not None), "")
        for one in self.analysts:
            unit = f", a whole unit {one.unit_epsilon:.4f}{within}" if one.unit_epsilon else ""
            yield (
                f"  {one.analyst}: {one.questions:,} question{_write_plural(one.questions)}; of a group epsilon "
                f"{one.epsilon:.4f}{of_group} ({write_factor(one.epsilon)}){unit}."
            )
        yield ""
        yield from self._describe_possible()

    def _describe_possible(self) -> Iterator[str]:
        cap = self.epsilon_per_predicate
        within = "" if self.group_delta is None else f", each window with delta {self.group_delta:g}"
        yield (
            f"The policy lets a group lose epsilon {cap:g} in one window ({write_factor(cap)}); over {self.windows} "
            f"window{_write_plural(self.windows)} that is {cap * self.windows:g} ({write_factor(cap * self.windows)})"
            f"{within}."
        )
        if self.epsilon_per_unit is not None:
            whole = self.epsilon_per_unit * self.windows
            within = "" if self.cap_delta is None else f", each window with delta {self.cap_delta:g}"
            yield f"A whole unit may lose epsilon {self.epsilon_per_unit:g} in one window, {whole:g} over all{within}."
        if self.granted:
            yield f"{self.granted} grant{_write_plural(self.granted)} in force let some balances lose more than that."
        if self.open_reservations:
            yield (
                f"{self.open_reservations} reservation{_write_plural(self.open_reservations)} never finished "
                f"{'is' if self.open_reservations == 1 else 'are'} counted in full."
            )
        if self.monitors:
            yield (
                f"{len(self.monitors)} monitor{_write_plural(len(self.monitors))} "
                f"({', '.join(map(make_visible, self.monitors))}) "
                f"{'stands' if len(self.monitors) == 1 else 'stand'}: windows that are still to come are counted."
            )


def _describe_table(table: TableReading) -> Iterator[str]:
    head = f"{table.table} ({table.questions:,} question{_write_plural(table.questions)}):"
    all_answers = "All answers"
    if table.delta is not None:
        all_answers = f"With probability all but {_write_one_in(table.delta)}, all answers"
    if table.unit == ROW_UNIT:
        yield (
            f"{head} {all_answers} together can have changed anybody's odds on whether a certain row is in the data by "
            f"at most {write_factor(table.epsilon)} (epsilon {table.epsilon:.4f})."
        )
        yield "  Compared are the data as they are, and the same data with that one row added or left out."
        yield f"  {write_belief(table.epsilon, of='that a row')}"
        return
    unit = f"({table.unit.replace(',', ', ')})"
    yield (
        f"{head} {all_answers} together can have changed anybody's odds on whether a certain {unit} is in a certain "
        f"group by at most {write_factor(table.epsilon)} (epsilon {table.epsilon:.4f})."
    )
    yield (
        f"  Compared are the data as they are, and the same data with all that one {unit} has in that group, the "
        "finest that questions distinguish, added or left out."
    )
    yield f"  {write_belief(table.epsilon, of=f'that a {unit} is in a group')}"


def _describe_unit(epsilon: float, delta: float | None) -> str:
    but = "" if delta is None else f"with probability all but {_write_one_in(delta)}, "
    return (
        f"{but}all answers together can have changed anybody's odds on whether a certain privacy unit is in the data "
        f"at all, in whatever groups, by at most {write_factor(epsilon)} (epsilon {epsilon:.4f})."
    )


def _write_one_in(delta: float) -> str:
    """Return a small probability in words, such as `one in a billion`."""
    times = math.floor(1 / delta + 0.5)
    named = {10**6: "a million", 10**9: "a billion", 10**12: "a trillion"}
    return f"one in {named.get(times) or f'{times:,}'}"


def write_factor(epsilon: float) -> str:
    """Return e to the epsilon in words, such as `a factor of 4.5`, rounded up to two digits."""
    if epsilon > math.log(_MOST_FACTOR):
        return "a factor of more than a million"
    value = math.exp(epsilon)
    step = 10.0 ** (math.floor(math.log10(value)) - 1)
    up = math.ceil(value / step - 1e-9) * step
    return f"a factor of {up:.1f}" if up < 10 else f"a factor of {up:,.0f}"


def write_belief(epsilon: float, *, of: str) -> str:
    """Return in words how sure an attacker can become through this loss, starting from even odds."""
    subject = f"{of} is in the data" if of.endswith("row") else of
    return f"Whoever thought it as likely as not {subject} can now be {_write_certainty(epsilon)} of it."


def _write_certainty(epsilon: float) -> str:
    """Return a certainty in words, such as `at most 75.3 % sure`: rounded up, but never to 100 %."""
    for places in range(1, _MOST_DIGITS + 1):
        step = 10**places
        percent = math.ceil(100 * step / (1 + math.exp(-epsilon)) - 1e-9) / step
        if percent < 100:
            return f"at most {percent:.{places}f} % sure"
    return "as good as sure"


def write_window_risk(*, windows: int, per_predicate: float) -> tuple[str, ...]:
    """Return sentences on the risk of opening budget window number `windows`."""
    total = windows * per_predicate
    return (
        f"This opens window {windows}: all balances start at nothing, for everybody.",
        "What was answered before is known and stays known; new answers add to it.",
        f"Each window lets a group lose epsilon {per_predicate:g} ({write_factor(per_predicate)}). Over all "
        f"{windows} that "
        f"is epsilon {total:g}: {write_factor(total)}.",
        "Do it only where nobody in the data relies on the cap for all time, say because all rows are new.",
        "It cannot be undone. Noise kept from earlier questions is not continued across it.",
    )


def count_windows(ledger: Ledger) -> int:
    """Return the number of budget windows so far: the first one, and each one that an owner opened."""
    return 1 + sum(isinstance(event, WindowOpened) for event in ledger.owner.read_decisions())


def read_odometer(policy: Policy, ledger: Ledger) -> OdometerReading:
    """Compute the odometer from a ledger. Raise `LedgerUnavailable` if the storage fails."""
    budget = policy.budget
    report = ledger.report_balances(_find_limits(policy), covers_all_windows=True)
    asked = [question for question in ledger.read_history() if question.status != "released"]
    counts = Counter((question.charge.family.table, question.charge.family.unit) for question in asked)
    return OdometerReading(
        windows=report.window_count,
        since=None if not asked else asked[0].asked_at.date().isoformat(),
        until=None if not asked else asked[-1].asked_at.date().isoformat(),
        questions=len(asked),
        open_reservations=len(report.open_reservations),
        monitors=tuple(run.monitor for run in report.running_monitors),
        tables=tuple(
            TableReading(
                table=table,
                unit=unit,
                questions=count,
                epsilon=_find_largest_odds_change(report, table, unit) / NANO,
                delta=_find_group_delta(report, table, unit, budget.delta_per_cell),
            )
            for (table, unit), count in sorted(counts.items())
        ),
        analysts=tuple(
            AnalystReading(
                analyst=one.analyst,
                questions=sum(question.charge.analyst == one.analyst for question in asked),
                epsilon=one.most_spent_nano / NANO,
                unit_epsilon=one.unit_spent_nano / NANO,
            )
            for one in report.analysts
        ),
        unit_epsilon=report.unit_loss.bound_odds_change(budget.delta) / NANO,
        unit_balance=report.unit_spent_nano / NANO,
        delta=budget.delta if report.unit_loss.in_curve_nano else None,
        epsilon_per_predicate=budget.epsilon_per_predicate,
        epsilon_per_unit=budget.epsilon_per_unit,
        cap_delta=budget.delta,
        group_delta=budget.delta_per_cell,
        granted=len(ledger.owner.list_grants()),
        published=tuple(_read_publication(event) for event in ledger.owner.find_publications()),
    )


def _read_publication(event: Published) -> PublishedReading:
    return PublishedReading(
        on=event.at.date().isoformat(),
        by=event.by,
        why=event.why,
        table=event.table,
        method=event.method,
        file=event.file,
        file_hash=event.file_hash,
        statement=event.statement,
    )


def _list_families(report: BudgetReport, table: str, unit: str) -> list[FamilyBalance]:
    return [one for one in report.families if (one.family.table, one.family.unit) == (table, unit)]


def _find_largest_odds_change(report: BudgetReport, table: str, unit: str) -> int:
    return max((balance.odds_nano for balance in _list_families(report, table, unit)), default=0)


def _find_group_delta(report: BudgetReport, table: str, unit: str, delta: float | None) -> float | None:
    """Return the delta if some group of the table is charged by curve."""
    return delta if any(balance.is_by_curve for balance in _list_families(report, table, unit)) else None


def _find_limits(policy: Policy) -> Limits:
    budget = policy.budget
    return Limits(
        per_predicate_nano=int(budget.epsilon_per_predicate * NANO),
        per_unit_nano=None if budget.epsilon_per_unit is None else int(budget.epsilon_per_unit * NANO),
        per_query_nano=None,
        analyst_per_predicate_nano=None,
        analyst_per_unit_nano=None,
        delta=budget.delta,
        cell_delta=budget.delta_per_cell,
        separates_analysts=False,
    )


def _write_plural(count: int) -> str:
    return "" if count == 1 else "s"
