"""The rows of the relations under `keyhole.`: functions of the ledger, the policy and the session alone."""

from collections.abc import Iterator, Mapping

from accountant.model import NANO
from planner.catalog.key_space import as_text
from planner.catalog.model import Catalog
from planner.errors import CATALOGUE
from planner.statements import stored_parameters
from planner.statements.settings import ALL_SETTINGS
from proxy.report import budget
from proxy.service.service import Service

MOST_LISTED = 10_000  # values of one key, since reading any makes the rows of all; SELECT DISTINCT lists more
VirtualRow = tuple[str | None, ...]


def virtual_rows(
    service: Service, name: str, *, analyst: str, settings: Mapping[str, str | None]
) -> tuple[VirtualRow, ...]:
    """The rows that `analyst` may see of `keyhole.name`, in the relation's column order."""
    match name:
        case "budget":
            return tuple(line.texts() for line in budget.lines(service, analyst))
        case "queries":
            return _queries(service, analyst)
        case "settings":
            known = {each.name: (each.default(service.catalog.defaults), each.meaning) for each in ALL_SETTINGS}
            told = stored_parameters.meanings(service.catalog)
            known |= {
                each: (usual, told[each]) for each, usual in stored_parameters.settings_of(service.catalog).items()
            }
            return tuple((each, settings.get(each) or usual, usual, said) for each, (usual, said) in known.items())
        case "domains":
            return tuple(_domains(service.catalog))
        case "errors":
            return tuple((entry.code, entry.sqlstate, entry.meaning) for entry in CATALOGUE.values())
        case _:
            raise ValueError("no such relation")


def _domains(catalog: Catalog) -> Iterator[VirtualRow]:
    for table in catalog.tables:
        for column in table.columns:
            if column.domain is None:
                continue
            named = (table.name, column.name, column.declared, str(len(column.domain)))
            if len(column.domain) > MOST_LISTED:
                yield (*named, None, None)
            else:
                yield from ((*named, str(place), as_text(value)) for place, value in enumerate(column.domain, start=1))


def _queries(service: Service, analyst: str) -> tuple[VirtualRow, ...]:
    return tuple(
        (
            asked.at.isoformat(sep=" "),
            asked.charge.family.table,
            asked.charge.question,
            str(asked.charge.cells.size),
            f"{asked.charge.epsilon_nano / NANO:.4f}",
            asked.status,
        )
        for asked in service.questions(analyst)
    )
