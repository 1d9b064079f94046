"""Doubles that are no finite numbers, in the rows of persons, and questions about values of each person's own rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal

from planner.catalog.catalog import Catalog, Column, SqlType
from tests.proxy.sources.unit_values.valued import BUYS, CATALOG

DOUBLES: Catalog = replace(
    CATALOG,
    tables=(
        replace(
            BUYS,
            columns=(
                Column("person", SqlType.TEXT, "text"),
                Column("n", SqlType.INTEGER, "integer", domain=tuple(range(10))),
                Column("part", SqlType.INTEGER, "integer", domain=(0, 1)),
                Column("x", SqlType.DOUBLE, "double precision", bounds=(Decimal(-9), Decimal(9)), grid=Decimal("0.01")),
            ),
        ),
    ),
)
PERSONS: Mapping[int, Sequence[str | None]] = {
    0: ("NaN", "1.5"),
    1: ("1.5", "NaN"),
    2: ("Infinity",),
    3: ("-Infinity",),
    4: (None, "-Infinity", "1e308"),
    5: ("NaN", "Infinity"),
    6: ("NaN", "NaN"),
    7: ("0", "-0"),
    8: ("-0", "0"),
    9: (None, None),
}
"""What each person's rows hold. The number is a key, so that each person has groups of its own."""
_VALUE = "SELECT n FROM buys JOIN (SELECT person, {} AS v FROM buys GROUP BY 1) q USING (person) WHERE {}"
_PLACED = "SELECT n, part FROM (SELECT *, {}() OVER (PARTITION BY person ORDER BY x{}) AS i FROM buys) q WHERE i = 1"
_END = " GROUP BY {} HAVING count(*) > 0"
OF_DOUBLES = (
    *(
        _VALUE.format(f"{end}(x)", test) + _END.format("1")
        for end in ("min", "max")
        for test in ("v = x", "v > 2", "v < -2", "v = 0")
    ),
    *(
        _PLACED.format(function, way) + _END.format("1, 2")
        for function in ("row_number", "rank")
        for way in ("", " DESC")
    ),
    _VALUE.format("sum(x)", "v > x") + _END.format("1"),
    _VALUE.format("count(DISTINCT x)", "v > 1") + _END.format("1"),
)


def load_doubles_sql(persons: Mapping[int, Sequence[str | None]]) -> list[str]:
    """The statements that make a table of these persons' rows."""
    values = ", ".join(
        f"('{n}', {n}, {part}, {'NULL' if x is None else repr(x)})"
        for n, found in persons.items()
        for part, x in enumerate(found)
    )
    made = "CREATE TABLE buys (person text, n integer, part integer, x double precision)"
    return ["DROP TABLE IF EXISTS buys", made, f"INSERT INTO buys VALUES {values}"]
