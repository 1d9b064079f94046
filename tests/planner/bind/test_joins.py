"""Joined public columns as columns of the question's table: their names, domains, bounds, limits and refusals."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind.lookup_columns import MOST_ROWS, looked_up, store_conditions
from planner.bind.question import ask
from planner.catalog.model import Catalog, Column, Lookup, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.question.condition import And, Compare, Condition, IsNull, Not, Or, Within, columns, evaluate
from planner.question.model import Accuracy, Question
from planner.statements.classify import Asking, classify
from tests.worlds import questions
from tests.worlds.retail import retail

ACCURACY = Accuracy(fnr=0.05, fpr=0.1, tolerance="10%", min_rows=50, mechanism="keyhole")


def _public(
    name: str, declared: dict[str, tuple[SqlType, str]], *rows: tuple[Value | None, ...], digest: str = "d"
) -> PublicTable:
    return PublicTable(
        name=name,
        columns=tuple(Column(column, kind, written) for column, (kind, written) in declared.items()),
        rows=rows,
        digest=digest,
    )


_TEXT, _INTEGER = (SqlType.TEXT, "text"), (SqlType.INTEGER, "integer")
PLACES = _public(
    "places",
    {"name": _TEXT, "country": _TEXT, "month": _INTEGER, "size": (SqlType.NUMERIC, "numeric"), "number": _INTEGER},
    ("France", "F", 1, Decimal("2.50"), 1),
    ("Norway", "N", 2, Decimal("-0.125"), 2),
    ("Atlantis", None, None, None, 3),
)


def _asked(sql: str, *public: PublicTable, table: Table | None = None) -> Question:
    catalog: Catalog = replace(retail(), public_tables=public, stored_questions=())
    if table is not None:
        catalog = replace(catalog, tables=(table,))
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    return ask(statement.questions[0], catalog, accuracy=ACCURACY, parameters={}, today=date(2011, 12, 9))


def test_names_that_the_table_has_already_keep_their_qualifier() -> None:
    """`country` and `month` are columns of sales too; each name means what it means in PostgreSQL."""
    sql = "SELECT p.country, sales.month FROM sales JOIN places p ON sales.country = p.name GROUP BY 1, 2 HAVING {}"
    found = _asked(sql.format("count(*) > 1000"), PLACES)
    assert found.keys.names == ("p.country", "month")
    assert found.keys.values[0] == ("F", "N")
    with pytest.raises(KeyholeError, match='column "country" is ambiguous'):
        _asked(sql.format("count(*) FILTER (WHERE country = 'F') > 1000"), PLACES)


def test_a_measure_is_bounded_by_its_least_and_greatest_pinned_value() -> None:
    found = _asked(
        "SELECT visits.month FROM visits JOIN places ON ward = name GROUP BY visits.month HAVING sum(size) > 100",
        PLACES,
        table=replace(questions.ROWS, name="visits", columns=(*questions.COLUMNS, Column("ward", *_TEXT))),
    )
    size = found.table.column("size")
    assert (size.bounds, size.grid) == ((Decimal("-0.125"), Decimal("2.50")), Decimal("0.001"))
    assert found.functionals[0].sensitivity == 2500


def test_only_what_is_needed_of_a_joined_table_is_kept() -> None:
    found = _asked(
        "SELECT s.month FROM sales s JOIN places p ON s.country = p.name WHERE p.size > 0 AND p.number < 3 "
        "GROUP BY s.month HAVING count(*) > 1000",
        PLACES,
    )
    assert not any(isinstance(column.derivation, Lookup) for column in found.table.columns)
    assert found.where == Compare("country", "=", "France")


def test_a_chain_of_joins_is_one_lookup() -> None:
    letters = _public("letters", {"letter": _TEXT, "title": _TEXT}, ("F", "eff"), ("N", None), ("X", "ex"))
    sql = (
        "SELECT l.title FROM letters l, sales s, places p WHERE l.letter = p.country AND s.country = p.name "
        "GROUP BY l.title HAVING count(*) > 1000"
    )
    found = _asked(sql, PLACES, letters)
    lookup = found.keys.columns[0].derivation
    assert isinstance(lookup, Lookup)
    assert (lookup.column, dict(lookup.pairs)) == ("country", {"France": "eff", "Norway": None, "Atlantis": None})
    assert found.keys.values == (("eff",),)


def test_what_the_unit_determines_by_lookup_is_determined() -> None:
    """A column is immutable, and fixed for a unit, where the column that it is looked up by is."""
    base = replace(questions.COLUMNS[1], immutable=True)
    table = replace(questions.CLIPPED, columns=(questions.COLUMNS[0], base), unit=("country",))
    made = looked_up("letter", PLACES, "country", key="name", base=base, table=table)
    assert made.immutable
    assert table.determines(made)
    assert not replace(table, unit=("customer_id",)).determines(made)


def test_a_public_table_that_is_too_large_is_refused() -> None:
    def many(rows: int, different: int) -> PublicTable:
        values = tuple((f"place {i}", f"{i % different}") for i in range(rows))
        return _public("many", {"name": _TEXT, "code": _TEXT}, *values)

    sql = "SELECT {} FROM sales JOIN many ON country = name GROUP BY {} HAVING count(*) > 1000"
    assert _asked(sql.format("code", "code"), many(MOST_ROWS, 500)).keys.size == 500
    with pytest.raises(KeyholeError) as refused:
        _asked(sql.format("code", "code"), many(MOST_ROWS + 1, 2))
    assert refused.value.code == "KH213"


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ((("France", 1), ("France", 1)), "places.name is not unique in the pinned copy"),
        ((("France", 1), (None, 2)), "places.name holds NULL in the pinned copy"),
    ],
)
def test_a_public_column_with_duplicates_or_null_joins_nothing(
    rows: tuple[tuple[Value | None, ...], ...], problem: str
) -> None:
    public = _public("places", {"name": _TEXT, "number": _INTEGER}, *rows)
    for join in (
        "JOIN places ON country = name",
        "LEFT JOIN places ON country = name",
        ", places WHERE name = country",
    ):
        with pytest.raises(KeyholeError) as refused:
            _asked(f"SELECT country FROM sales {join} GROUP BY country HAVING count(*) > 1000", public)
        assert (refused.value.code, refused.value.message) == ("KH107", problem)


def test_joined_columns_have_one_type() -> None:
    sql = "SELECT s.month FROM sales s JOIN places p ON s.country = p.number GROUP BY s.month HAVING count(*) > 1000"
    with pytest.raises(KeyholeError, match="they do not join") as refused:
        _asked(sql, PLACES)
    assert refused.value.code == "KH107"


_BASES = ("France", "Germany", "Norway", "elsewhere", None)
_leaves: st.SearchStrategy[Condition] = st.sampled_from(
    (
        Compare("letter", "=", "F"),
        Compare("letter", "<>", "F"),
        Within("letter", ("F", "N")),
        IsNull("letter"),
        Compare("number", ">", 1),
        IsNull("number"),
        Compare("country", "=", "France"),
        Compare("customer_id", "<", 5),
    )
)
_conditions: st.SearchStrategy[Condition] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        inner.map(Not),
        st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
    ),
    max_leaves=6,
)


@given(_conditions)
def test_a_condition_on_the_private_column_holds_where_the_one_on_public_columns_does(condition: Condition) -> None:
    table = replace(questions.ROWS, columns=questions.COLUMNS)
    for name, column in (("letter", "country"), ("number", "number")):
        made = looked_up(name, PLACES, column, key="name", base=table.column("country"), table=table)
        table = replace(table, columns=(*table.columns, made))
    asked = questions.question(questions.above(0, 10, 1), questions.count(table=table), table=table, where=condition)
    found = store_conditions(asked).where
    assert columns(found) <= {"country", "customer_id"}
    for base, customer in product(_BASES, (1, 7, None)):
        row: dict[str, Value | None] = {"country": base, "customer_id": customer}
        for name in ("letter", "number"):
            lookup = table.column(name).derivation
            assert isinstance(lookup, Lookup)
            row[name] = None if base is None else dict(lookup.pairs).get(base)
        assert (evaluate(found, row) is True) == (evaluate(condition, row) is True)
