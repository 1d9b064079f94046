"""The caps in force: the policy's caps plus the owner's grants."""

from collections.abc import Iterable
from dataclasses import replace

from accountant.charges import MOST_CAP_NANO
from accountant.errors import BalanceScope
from accountant.events.owner_events import Grant
from accountant.limits import Limits


def apply_grants(limits: Limits, grants: Iterable[Grant], *, table: str | None, analyst: str | None) -> Limits:
    """Return the limits of one analyst's question on one table.

    Grants on the table raise each cap; `per_table_nano` is then the cap of that table.

    Without a table, grants for a single table are left out. Without an analyst, grants for a single analyst are. Caps
    that are not set stay unset; none is above `MOST_CAP_NANO`, so that balances can be compared with it.
    """
    of_tables: dict[str | None, int] = dict(limits.own_per_table_nano)
    more = dict.fromkeys(BalanceScope, 0)
    for grant in grants:
        if grant.table in (None, table) and grant.analyst in (None, analyst):
            more[grant.scope] += grant.amount_nano

    def raise_limit(limit_nano: int | None, scope: BalanceScope) -> int | None:
        return None if limit_nano is None else min(limit_nano + more[scope], MOST_CAP_NANO)

    return replace(
        limits,
        per_predicate_nano=min(limits.per_predicate_nano + more[BalanceScope.PER_PREDICATE], MOST_CAP_NANO),
        per_query_nano=raise_limit(limits.per_query_nano, BalanceScope.PER_QUERY),
        per_unit_nano=raise_limit(limits.per_unit_nano, BalanceScope.PER_UNIT),
        per_table_nano=raise_limit(of_tables.get(table, limits.per_table_nano), BalanceScope.PER_TABLE),
        analyst_per_predicate_nano=raise_limit(limits.analyst_per_predicate_nano, BalanceScope.ANALYST_PER_PREDICATE),
        analyst_per_unit_nano=raise_limit(limits.analyst_per_unit_nano, BalanceScope.ANALYST_PER_UNIT),
    )
