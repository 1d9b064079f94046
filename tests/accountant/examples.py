"""Charges that the tests share."""

from accountant.model import NANO, Cells, Charge, Family, Limits, Spent

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
    return Charge(question, analyst, family, keys, epsilon_nano, unit_epsilon_nano, shared)


def limits(
    per_predicate: int = 4 * NANO,
    *,
    per_unit: int | None = 100 * NANO,
    per_query: int | None = None,
    analyst_per_predicate: int | None = None,
    analyst_per_unit: int | None = None,
    apart: bool = False,
) -> Limits:
    return Limits(
        per_predicate_nano=per_predicate,
        per_unit_nano=per_unit,
        per_query_nano=per_query,
        analyst_per_predicate_nano=analyst_per_predicate,
        analyst_per_unit_nano=analyst_per_unit,
        apart=apart,
    )


def all_of(reserved: Charge) -> Spent:
    return Spent.uniform(reserved.epsilon_nano, unit_epsilon_nano=reserved.unit_epsilon_nano)
