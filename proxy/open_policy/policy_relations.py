"""The check that the policy's tables are the same relations of the source as in the pins and in the ledger.

Guarantee: no relation of the source has two table names, each with its own budget. No relation is asked under another
name than it was charged under before, unless the owner confirmed that.
"""

from collections.abc import Mapping
from typing import Protocol

from accountant.errors import LedgerError
from accountant.ledger import Ledger
from planner.catalog.fault import Fault
from planner.catalog.pins import Pins
from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.policy.compile_column import list_exposed_names
from planner.policy.file import Policy
from planner.policy.rules.relation_rules import find_shared_relations
from planner.policy.rules.table_rules import find_unit_root
from planner.policy.source_faults import REPIN
from proxy.open_policy.service_refusals import refuse_renamed_table, report_unreadable_ledger

Identities = Mapping[str, RelationIdentity]


class RelationSource(Protocol):
    """The methods of a source that this module needs."""

    def identify(self, relation: str) -> RelationIdentity:
        """Return the stored tables and files that a relation reads. Raise KH006 if the relation cannot be read."""


def identify_tables(policy: Policy, source: RelationSource) -> Identities:
    """Return, for every table of the policy, the stored tables and files that it reads.

    Raise KH002 if two tables are the same relation, and KH006.
    """
    identities = {name: source.identify(policy.write_relation(name)) for name in policy.tables}
    for place, fault in find_shared_relations(policy, identities):
        raise policy.refuse(place, fault)
    return identities


def check_pinned_relations(policy: Policy, identities: Identities, pins: Pins) -> None:
    """Raise KH007 unless every private table is the relation that was pinned."""
    for name in policy.private_tables:
        pinned = pins.get_relation(name)
        if pinned is None:
            fault = Fault("KH007", "names a relation of the source that is not pinned yet", hint="Run keyhole check.")
            raise policy.refuse(("tables", name), fault)
        if pinned[0] != identities[name].name:
            problem = f"is {identities[name].name} in the source, and was {pinned[0]} when it was pinned"
            raise policy.refuse(("tables", name, "relation"), Fault("KH007", problem, hint=REPIN))


def find_exposed_types(policy: Policy, name: str, source: tuple[SourceColumn, ...]) -> dict[str, str]:
    """Map each stored column that a table exposes to its type in the source."""
    exposed = list_exposed_names(policy, name)
    return {column.name: column.declared for column in source if column.name in exposed}


def check_pinned_types(policy: Policy, schema: Mapping[str, tuple[SourceColumn, ...]], pins: Pins) -> None:
    """Raise KH007 unless the exposed columns of every private table have their pinned types.

    A column that was exposed after pinning is not compared.
    """
    for name in policy.private_tables:
        pinned = pins.get_types(name)
        if pinned is None:
            hint = "Run keyhole check."
            fault = Fault("KH007", "has column types that are not pinned yet", hint=hint)
            raise policy.refuse(("tables", name), fault)
        for column, kind in find_exposed_types(policy, name, schema[name]).items():
            if pinned.get(column, kind) != kind:
                problem = f'its column "{column}" is of type {kind} in the source, and was of type {pinned[column]}'
                fault = Fault("KH007", f"{problem} when it was pinned", hint=REPIN)
                raise policy.refuse(("tables", name, "columns", column), fault)


def check_names(policy: Policy, identities: Identities, ledger: Ledger) -> None:
    """Refuse a table whose relation was charged under another name, as its balances would start from zero again.

    Raises:
        KeyholeError: KH007, which explains what confirming means, and KH009.
    """
    for name in policy.private_tables:
        try:
            before = ledger.exposures.find_charged_names(
                identities[name].names, names=(name, _find_ledger_name(policy, name))
            )
        except LedgerError as error:
            raise report_unreadable_ledger(error) from None
        if before:
            raise refuse_renamed_table(policy.path.name, name, before[0], identities[name].name)


def remember_names(policy: Policy, pins: Pins, ledger: Ledger) -> None:
    """Store in the ledger the relations that its tables read, so that a later change of name is noticed.

    Raise KH009.
    """
    tables: dict[str, set[str]] = {}
    for name in policy.private_tables:
        tables.setdefault(_find_ledger_name(policy, name), set()).update(pins.get_relation(name) or ())
    try:
        ledger.exposures.store_relations(tables)
    except LedgerError as error:
        raise report_unreadable_ledger(error) from None


def _find_ledger_name(policy: Policy, name: str) -> str:
    return find_unit_root(policy, name) or name
