"""The rows of the virtual relations under `keyhole.`. They follow from the ledger, the policy and the session alone.

A `MonitorReader` returns the rows about monitors.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from accountant.charges import NANO, ROW_UNIT
from accountant.reports.history import AskedQuestion
from planner.catalog.catalog import Catalog
from planner.catalog.key_space import format_value
from planner.errors import CATALOGUE
from planner.statements import stored_parameters
from planner.statements.kinds import ExplainFormat
from planner.statements.settings import ALL_SETTINGS
from proxy.open_policy.service import Service
from proxy.report import budget

MOST_LISTED = 10_000  # values of one key, since reading any makes the rows of all; SELECT DISTINCT lists more
VirtualRow: TypeAlias = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class RelationRows:
    """The rows of a relation, with values in column order, and sentences that the client gets as NOTICEs."""

    rows: tuple[VirtualRow, ...]
    notices: tuple[str, ...] = ()


class MonitorReader(Protocol):
    """Monitors as analysts see them. Every method may be called from any thread, and may raise KH502."""

    def check_readable(self, name: str, *, analyst: str, position: int | None) -> None:
        """Raise KH605 unless the analyst may read the monitor. `position` is where the text names it."""

    def read_alerts(self, name: str, *, analyst: str) -> RelationRows:
        """Return a monitor's alerts, as the rows of its relation.

        Raise KH306 if the analyst's own cap does not cover it, and KH605 if the analyst may not read the monitor.
        """

    def list_monitors(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.monitors`: the monitors that the analyst may read."""

    def list_alerts(self, *, analyst: str) -> RelationRows:
        """Return the rows of `keyhole.alerts`: the alerts of monitors that the analyst may read.

        Raise KH306 if the analyst's own cap does not cover it.
        """

    def explain(self, name: str, *, analyst: str, form: ExplainFormat) -> tuple[str, ...]:
        """Return EXPLAIN's lines for a query of the monitor's relation.

        Raise KH605 if the analyst may not read the monitor.
        """


def list_virtual_rows(
    service: Service, name: str, *, analyst: str, settings: Mapping[str, str | None]
) -> tuple[VirtualRow, ...]:
    """Return the rows of the relation `keyhole.` + `name` that `analyst` may see. Values are in column order."""
    match name:
        case "budget":
            return tuple(line.list_summary() for line in budget.list_summary(service, analyst))
        case "budget_details":
            return tuple(line.list_details() for line in budget.list_budget(service, analyst))
        case "queries":
            return _list_queries(service, analyst)
        case "answers":
            return tuple(_list_answers(service, analyst))
        case "settings":
            known = {each.name: (each.default(service.catalog.defaults), each.meaning) for each in ALL_SETTINGS}
            told = stored_parameters.list_meanings(service.catalog)
            known |= {
                each: (usual, told[each]) for each, usual in stored_parameters.list_settings(service.catalog).items()
            }
            return tuple((each, settings.get(each) or usual, usual, said) for each, (usual, said) in known.items())
        case "domains":
            return tuple(_list_domains(service.catalog))
        case "errors":
            return tuple((entry.code, entry.sqlstate, entry.meaning) for entry in CATALOGUE.values())
        case _:
            raise ValueError("no such relation")


def _list_domains(catalog: Catalog) -> Iterator[VirtualRow]:
    for table in catalog.tables:
        for column in table.columns:
            if column.domain is None:
                continue
            named = (table.name, column.name, column.declared, str(len(column.domain)))
            if len(column.domain) > MOST_LISTED:
                yield (*named, None, None)
            else:
                yield from (
                    (*named, str(place), format_value(value)) for place, value in enumerate(column.domain, start=1)
                )


def _list_queries(service: Service, analyst: str) -> tuple[VirtualRow, ...]:
    return tuple(
        (
            asked.asked_at.isoformat(sep=" "),
            asked.charge.family.table,
            asked.charge.question,
            str(asked.charge.cells.key_count),
            f"{asked.charge.epsilon_nano / NANO:.4f}",
            asked.status,
            _find_unit_epsilon(asked),
            None if asked.wording is None else asked.wording.text,
        )
        for asked in service.read_questions(analyst)
    )


def _list_answers(service: Service, analyst: str) -> Iterator[VirtualRow]:
    """Yield one row for each of the analyst's own answered questions, with its cost, rounded up."""
    for asked in service.read_questions(analyst):
        if asked.status not in ("committed", "read"):
            continue
        charge, wording = asked.charge, asked.wording
        yield (
            asked.asked_at.isoformat(sep=" "),
            charge.family.table,
            charge.family.version,
            charge.question,
            None if wording is None else wording.text,
            str(charge.cells.key_count),
            None if wording is None else wording.guarantee,
            None if wording is None else wording.fnr,
            None if wording is None else wording.fpr,
            f"{charge.epsilon_nano / NANO:.4f}",
            _find_unit_epsilon(asked),
        )


def _find_unit_epsilon(asked: AskedQuestion) -> str | None:
    """Return the largest loss of one unit, as text. Return None if each row is a unit."""
    charge = asked.charge
    return None if charge.family.unit == ROW_UNIT else f"{charge.unit_epsilon_nano / NANO:.4f}"
