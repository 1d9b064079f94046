"""Charges that the tests share."""

from dataclasses import replace

from accountant.charges import NANO, Amounts, Cells, Charge, Family, PathContinuation, PathState, Spent
from accountant.limits import Limits

COUNTRIES = ("DE", "FR", "UK")
MONTHS = ("2011-01", "2011-02")


def cells(**columns: tuple[str, ...]) -> Cells:
    return Cells(tuple(sorted(columns.items())))


def charge(
    epsilon_nano: int = NANO,
    *,
    keys: Cells | None = None,
    analyst: str = "ann",
    question: str = "q1",
    table: str = "sales",
    unit: str = "row",
    unit_epsilon_nano: int | None = None,
    where: str = "",
    version: str = "v1",
    immutable: frozenset[str] = frozenset(),
    shared: bool = True,
    continuing: PathContinuation | None = None,
) -> Charge:
    keys = cells(country=COUNTRIES) if keys is None else keys
    family = Family(
        table=table,
        unit=unit,
        columns=tuple(name for name, _ in keys.columns),
        filter=where,
        version=version,
        immutable=immutable,
    )
    if unit_epsilon_nano is None:
        unit_epsilon_nano = 0 if unit == "row" else epsilon_nano
    return Charge(question, analyst, family, keys, epsilon_nano, unit_epsilon_nano, shared, continuing)


def limits(
    per_predicate: int = 4 * NANO,
    *,
    per_unit: int | None = 100 * NANO,
    per_query: int | None = None,
    analyst_per_predicate: int | None = None,
    analyst_per_unit: int | None = None,
    apart: bool = False,
    per_table: int | None = None,
    approval_above: int | None = None,
) -> Limits:
    return Limits(
        per_predicate_nano=per_predicate,
        per_unit_nano=per_unit,
        per_query_nano=per_query,
        analyst_per_predicate_nano=analyst_per_predicate,
        analyst_per_unit_nano=analyst_per_unit,
        separates_analysts=apart,
        per_table_nano=per_table,
        approval_above_nano=approval_above,
    )


def all_of(reserved: Charge) -> Spent:
    return Spent.from_uniform(reserved.epsilon_nano, unit_epsilon_nano=reserved.unit_epsilon_nano)


def continuing(*paths: PathState, shared: int, known: int, unit: str = "row") -> PathContinuation:
    """What continues the paths; one unit is in one key."""
    has_unit = unit != "row"
    return PathContinuation(
        tuple(sorted(paths)),
        shared_loss=Amounts(shared, shared if has_unit else 0),
        public_loss=Amounts(known, known if has_unit else 0),
    )


def per_key(own: list[int], *, fresh: list[int] | None = None, unit: str = "row") -> Spent:
    """A loss per key, and what of it is fresh; one unit is in one key."""
    has_unit = unit != "row"
    news = None if fresh is None else Spent.from_keys(fresh, unit_epsilon_nano=max(fresh) if has_unit else 0)
    return replace(Spent.from_keys(own, unit_epsilon_nano=max(own) if has_unit else 0), fresh=news)
