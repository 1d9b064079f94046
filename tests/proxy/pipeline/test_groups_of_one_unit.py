"""How many groups of a question one privacy unit can be in: those that it does not determine, and never more than G."""

from dataclasses import replace

from mechanisms.formula import TRUE
from planner.catalog.catalog import Column, Derivation, Lookup, LookupValues, SqlType, Value
from planner.catalog.key_space import KeySpace
from planner.question.unit_groups import count_unit_groups
from tests.in_turn import in_turn
from tests.worlds.questions import CLIPPED, COUNTRIES, MONTHS, ROWS, count, question

REGION = Column(
    "region",
    SqlType.TEXT,
    "text",
    domain=("West", "North"),
    derivation=Lookup(
        "country",
        "countries.region by name",
        LookupValues.from_pairs((("France", "West"), ("Norway", "North"), ("Spain", None))),
    ),
)
YEAR = Column(
    "year", SqlType.INTEGER, "integer", domain=(2010, 2011), derivation=Derivation("extract", "year", "month")
)
TABLE = replace(CLIPPED, columns=(*CLIPPED.columns, REGION, YEAR), groups_per_unit=3)


@in_turn(
    ("unit", "keys", "groups"),
    [
        (("customer_id",), {"month": MONTHS}, 3),
        (("customer_id",), {"month": MONTHS[:2]}, 2),
        (("customer_id",), {"country": COUNTRIES, "month": MONTHS}, 3),
        (("customer_id", "month"), {"month": MONTHS}, 1),
        (("customer_id", "month"), {"year": (2010, 2011)}, 1),
        (("customer_id", "country"), {"region": ("West", "North")}, 1),
        (("customer_id", "country"), {"region": ("West", "North"), "year": (2010, 2011)}, 2),
        (("customer_id", "country"), {"region": ("West", "North"), "month": MONTHS}, 3),
        (("customer_id", "country", "month"), {"country": COUNTRIES, "region": ("West", "North"), "year": (2010,)}, 1),
        (("customer_id",), {"month": ()}, 1),
    ],
)
def test_groups_of_one_unit(unit: tuple[str, ...], keys: dict[str, tuple[Value, ...]], groups: int) -> None:
    table = replace(TABLE, unit=unit)
    space = KeySpace(columns=tuple(table.get_column(name) for name in keys), values=tuple(keys.values()))
    assert count_unit_groups(replace(question(TRUE, count(), table=table), keys=space)) == groups


def test_a_row_is_in_one_group() -> None:
    assert count_unit_groups(question(TRUE, count(), table=replace(ROWS, groups_per_unit=5))) == 1
