"""The report of a planned list, as text and as JSON, and the list's SQL with tolerances that make it fit."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from accountant.charges import NANO
from accountant.errors import BalanceScope
from planner.catalog.tolerance import quote_literal
from planner.explain.rounded_numbers import spell_number, write_ceiling, write_floor
from proxy.dashboard.question_list import ListedQuestion
from proxy.dashboard.tolerance_split import FACTORS, PlannedList
from proxy.open_policy.service import Service
from proxy.pipeline.rehearsal import Quote, RehearsedList
from proxy.report.terminal import make_visible, write_psql_table

_SCOPES = {
    BalanceScope.PER_QUERY: "what one question may cost",
    BalanceScope.PER_PREDICATE: "a group's budget",
    BalanceScope.PER_UNIT: "a unit's budget",
    BalanceScope.PER_TABLE: "the table's budget",
    BalanceScope.ANALYST_PER_PREDICATE: "your own cap for a group",
    BalanceScope.ANALYST_PER_UNIT: "your own cap for a unit",
}
WITH_DELTA = (
    "The policy has a delta, so what fits is an estimate: how a unit is charged depends on what is left at that time."
)


@dataclass(frozen=True, slots=True, eq=False)
class PlanReport:
    """The report of a planned list. `service` is the service that would answer the questions."""

    planned: PlannedList
    service: Service

    def lines(self) -> tuple[str, ...]:
        """Return the report's lines for a terminal."""
        return tuple(self._write_lines())

    def _write_lines(self) -> Iterator[str]:
        planned = self.planned
        many = len(planned.questions)
        yield f"{many} question{'' if many == 1 else 's'}, in this order; nothing was asked, nothing is spent."
        if not many:
            return
        yield from _write_table(planned, planned.unchanged, {}, self._find_tolerance)
        yield from _describe_sum(planned.unchanged, most_nano=planned.most_nano)
        yield from self._describe_factor()
        if self._has_delta:
            yield WITH_DELTA
        if planned.narrowed is not None:
            yield ""
            yield "The best split that was found, to be set before each question:"
            yield from _write_table(planned, planned.narrowed, planned.tolerances, self._find_tolerance)
            yield from _describe_sum(planned.narrowed, most_nano=planned.most_nano)

    @property
    def _has_delta(self) -> bool:
        budget = self.service.catalog.budget
        return budget.delta is not None or budget.delta_per_cell is not None

    def _describe_factor(self) -> Iterator[str]:
        planned = self.planned
        fitting = sum(quote.fits for quote in planned.unchanged.quotes)
        many = len(planned.unchanged.quotes)
        every = f"{fitting} of {many} fit as wished"
        match planned.factor:
            case None if all(quote.fits for quote in planned.unchanged.quotes):
                yield f"{every}, and cost nothing."
            case None if not any(quote.charge or quote.short_balance for quote in planned.unchanged.quotes):
                yield f"{every}."
            case None:
                yield f"{every}. No factor up to {FACTORS[-1]} on their tolerances makes all fit."
                yield from self._describe_unfitting("", None)
            case factor if planned.unfitting:
                yield from self._describe_unfitting(every, factor)
            case factor if factor > 1:
                yield f"{every}. All that are questions fit with every tolerance times {factor.normalize():f}."
            case factor if factor < 1:
                yield f"{every}. They would with every tolerance times {factor.normalize():f}, too."
            case _:
                yield f"{every}, but not with tolerances a hundredth narrower."

    def _describe_unfitting(self, every: str, factor: Decimal | None) -> Iterator[str]:
        """Yield lines about questions that do not fit with any tolerance, and about what the others need."""
        beyond = [
            str(number)
            for number, one in enumerate(self.planned.questions, start=1)
            if one.statement in self.planned.unfitting
        ]
        if factor is not None:
            with_factor = "as wished" if factor <= 1 else f"with every tolerance times {factor.normalize():f}"
            yield f"{every}. All but {', '.join(beyond)} fit {with_factor}."
        if beyond:
            yield f"No tolerance makes {', '.join(beyond)} fit: keyhole explain says what would, such as min_rows."

    def _find_tolerance(self, one: ListedQuestion) -> str:
        """Return the tolerance that a question has before any change."""
        return "" if one.asked_question is None else one.asked_question.read_accuracy(self.service.catalog).tolerance

    def make_document(self) -> dict[str, Any]:
        """Return the report as a JSON document."""
        planned = self.planned
        return {
            "questions": _describe_questions(planned, planned.unchanged, {}, self._find_tolerance),
            "together": _describe_joint_cost(planned.unchanged),
            "fit": sum(quote.fits for quote in planned.unchanged.quotes),
            "sure": not self._has_delta,
            "max_epsilon": None if planned.most_nano is None else planned.most_nano / NANO,
            "factor": None if planned.factor is None else float(planned.factor),
            "split": None
            if planned.narrowed is None
            else {
                "questions": _describe_questions(planned, planned.narrowed, planned.tolerances, self._find_tolerance),
                "together": _describe_joint_cost(planned.narrowed),
            },
        }


def write_tolerances(sql: str, planned: PlannedList) -> str:
    """Return the list's SQL, with statements that set the tolerances of the split.

    Without a split, return it unchanged.

    A statement that sets the tolerance precedes each changed question. Another one after it restores the setting.
    """
    parts: list[str] = []
    at = 0
    begun: set[int] = set()
    for one in planned.questions:
        if one.statement in begun or one.statement not in planned.tolerances:
            continue
        begun.add(one.statement)
        parts += [
            sql[at : one.offset],
            f"SET keyhole.tolerance = '{quote_literal(planned.tolerances[one.statement])}';\n",
        ]
        at = one.offset + len(one.text)
        parts.append(f"{sql[one.offset : at]};\n{_write_setting(one)}")
        at += _measure_ending(sql[at:])
    return "".join((*parts, sql[at:]))


def _write_setting(one: ListedQuestion) -> str:
    """Return SQL that sets the tolerance for the statements after it."""
    before = None if one.asked_question is None else one.asked_question.settings.get("keyhole.tolerance")
    return f"SET keyhole.tolerance = '{quote_literal(before)}';" if before else "RESET keyhole.tolerance;"


def _measure_ending(rest: str) -> int:
    """Return the length of the semicolon that ends a statement, including the blanks before the semicolon."""
    blanks = len(rest) - len(rest.lstrip())
    return blanks + 1 if rest[blanks : blanks + 1] == ";" else 0


def _write_table(
    planned: PlannedList,
    rehearsed: RehearsedList,
    tolerances: Mapping[int, str],
    wished: Callable[[ListedQuestion], str],
) -> Iterator[str]:
    rows = []
    for number, (one, quote) in enumerate(zip(planned.questions, rehearsed.quotes, strict=True), start=1):
        tolerance = tolerances.get(one.statement) or wished(one)
        price = (
            _write_epsilon(quote.analyst_cost.epsilon_nano),
            _describe_unit(quote),
            _write_epsilon(quote.shared_cost.epsilon_nano),
        )
        told = quote.refusal is None
        rows.append(
            (
                str(number),
                str(one.line),
                tolerance,
                *(price if told else ("", "", "")),
                quote.basis.value if told else "",
                "yes" if quote.fits else "no",
            )
        )
    yield from write_psql_table(("#", "line", "tolerance", "group", "unit", "new", "decided on", "fits"), rows)
    for number, quote in enumerate(rehearsed.quotes, start=1):
        if quote.refusal is not None:
            yield f"{number}: {make_visible(f'{quote.refusal.code}: {quote.refusal.message}')}"
        elif quote.short_balance is not None:
            yield f"{number}: {_describe_shortage(quote)}"
        if quote.fits and quote.needs_approval:
            yield f"{number}: waits for the owner's approval"


def _describe_shortage(quote: Quote) -> str:
    short = quote.short_balance
    assert short is not None, "asked where a balance is short"
    what = "--max-epsilon" if quote.is_list_budget else _SCOPES[short.scope]
    needed, left = write_ceiling(short.needed_nano / NANO), write_floor(short.left_nano / NANO)
    return f"{what} does not cover it: {needed} epsilon needed, {left} left"


def _describe_sum(rehearsed: RehearsedList, *, most_nano: int | None) -> Iterator[str]:
    together = rehearsed.total
    unit = f", one unit {_write_epsilon(together.unit_epsilon_nano)}" if together.unit_epsilon_nano else ""
    yield f"Together those that fit cost one group at most {_write_epsilon(together.epsilon_nano)} epsilon{unit}."
    left = [
        f"{_write_floor(one.left_nano)} of {_write_floor(one.cap_nano)} ({_SCOPES[one.scope]})"
        for one in rehearsed.balances_left
    ]
    if most_nano is not None:
        left.insert(
            0,
            f"{_write_floor(most_nano - together.epsilon_nano)} of {_write_floor(most_nano)} (--max-epsilon)",
        )
    if left:
        yield f"Left then, of the groups asked about: {', '.join(left)}."


def _describe_questions(
    planned: PlannedList,
    rehearsed: RehearsedList,
    tolerances: Mapping[int, str],
    wished: Callable[[ListedQuestion], str],
) -> list[dict[str, Any]]:
    return [
        {
            "line": one.line,
            "sql": one.text,
            "tolerance": tolerances.get(one.statement) or wished(one),
            "fits": quote.fits,
            "waits_for_approval": quote.needs_approval,
            "decided_on": quote.basis.value if quote.refusal is None else None,
            "group_at_most": quote.analyst_cost.epsilon_nano / NANO,
            "unit_at_most": quote.analyst_cost.unit_epsilon_nano / NANO
            if quote.analyst_cost.unit_epsilon_nano
            else None,
            "new_at_most": quote.shared_cost.epsilon_nano / NANO,
            "refused": None if quote.refusal is None else f"{quote.refusal.code}: {quote.refusal.message}",
            "short": None if quote.short_balance is None else _describe_shortage(quote),
        }
        for one, quote in zip(planned.questions, rehearsed.quotes, strict=True)
    ]


def _describe_joint_cost(rehearsed: RehearsedList) -> dict[str, Any]:
    together = rehearsed.total
    return {
        "group_at_most": together.epsilon_nano / NANO,
        "unit_at_most": together.unit_epsilon_nano / NANO if together.unit_epsilon_nano else None,
        "left": [
            {"of": one.scope.value, "epsilon": one.left_nano / NANO, "cap": one.cap_nano / NANO}
            for one in rehearsed.balances_left
        ],
    }


def _describe_unit(quote: Quote) -> str:
    return _write_epsilon(quote.analyst_cost.unit_epsilon_nano) if quote.analyst_cost.unit_epsilon_nano else ""


def _write_epsilon(nano: int) -> str:
    return write_ceiling(nano / NANO)


def _write_floor(nano: int) -> str:
    return spell_number(Decimal(write_floor(max(0, nano) / NANO)))
