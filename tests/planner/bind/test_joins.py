"""Joined public columns as columns of the question's table: their names, domains, bounds, limits and refusals."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind import lookup_columns
from planner.bind.bind_question import bind_question
from planner.bind.lookup_columns import make_lookup_column, move_conditions_to_bases
from planner.catalog.catalog import MOST_LISTED, Catalog, Column, Lookup, PublicTable, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.condition import ALWAYS, And, Compare, Condition, IsNull, Not, Or, Within, evaluate, find_columns
from planner.question.question import Accuracy, Question
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import Asking, classify
from tests.worlds import questions
from tests.worlds.analysts import analysts
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
    return bind_question(statement.questions[0], catalog, accuracy=ACCURACY, parameters={}, today=date(2011, 12, 9))


def test_columns_that_tell_a_keys_values_apart_are_that_key() -> None:
    """No agent is in the team of another: what is not combined in the public table is no group, and none is shown."""
    catalog = analysts("tickets")
    tickets = "FROM tickets t JOIN agents a ON a.agent_id = t.agent_id"

    def keys(listed: str) -> tuple[str, ...]:
        asking = classify(f"SELECT {listed} {tickets} GROUP BY {listed} HAVING count(*) < 30", catalog)
        assert isinstance(asking, Asking)
        (embedded,) = asking.questions
        return tuple(key.name for key in embedded.keys)

    assert keys("a.team, a.agent_name") == ("agent_id",)
    assert keys("a.agent_name, t.week, a.team") == ("agent_id", "week")
    assert keys("a.team") == ("team",)
    assert keys("a.agent_id, a.team, a.agent_name") == ("agent_id",)


def test_only_combinations_of_public_columns_that_there_are_are_groups() -> None:
    """There are eight pairs of a district and a capacity, of 32. A ranking within districts shows those alone."""
    catalog = analysts("rides")
    stations = "FROM rides r JOIN stations s ON s.station_id = r.start_station_id"
    found = _asked_of(f"SELECT s.district, s.capacity {stations} GROUP BY 1, 2 HAVING count(*) < 30", catalog)
    assert [len(key.domain or ()) for key in found.keys] == [8]
    assert (
        found.keys == _asked_of(f"SELECT 1 {stations} GROUP BY capacity, district HAVING count(*) < 30", catalog).keys
    )
    rain = "SELECT w.windy, w.temperature * 2 FROM rides r JOIN weather w ON w.day = r.day GROUP BY 1, 2, w.temperature"
    shown = _asked_of(f"{rain} HAVING count(*) < 30", catalog).shown_keys
    assert shown is not None
    assert [one.name for one in shown.items] == ["windy", "w.temperature * 2", "temperature"]
    ranked = classify(
        f"SELECT s.district, row_number() OVER (PARTITION BY district ORDER BY count(*) DESC) {stations} "
        "GROUP BY s.district, capacity",
        catalog,
    )
    assert isinstance(ranked, Asking)
    assert 'IN (SELECT "district", "capacity" FROM public."stations")' in str(ranked.outer)


def _asked_of(sql: str, catalog: Catalog) -> EmbeddedQuestion:
    asking = classify(sql, catalog)
    assert isinstance(asking, Asking)
    (embedded,) = asking.questions
    return embedded


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
    size = found.table.get_column("size")
    assert (size.bounds, size.grid) == ((Decimal("-0.125"), Decimal("2.50")), Decimal("0.001"))
    assert found.functionals[0].sensitivity == 2500


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3), max_size=9))
def test_a_looked_up_number_has_the_pinned_values_as_its_domain_and_bounds(found: list[int | None]) -> None:
    public = _public("places", {"name": _INTEGER, "size": _INTEGER}, *enumerate(found))
    base = Column("place", SqlType.INTEGER, "integer")
    column = make_lookup_column("size", public, "size", key="name", base=base, table=retail().tables[0])
    present = sorted({value for value in found if value is not None})
    assert column.domain == (tuple(present) or None)
    assert column.bounds == (Decimal(min(present, default=0)), Decimal(max(present, default=0)))
    names = tuple(range(len(found)))
    assert make_lookup_column("key", public, "name", key="name", base=base, table=retail().tables[0]).domain == (
        names or None
    )


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
    made = make_lookup_column("letter", PLACES, "country", key="name", base=base, table=table)
    assert made.immutable
    assert table.determines(made)
    assert not replace(table, unit=("customer_id",)).determines(made)


def _many(rows: int, different: int) -> PublicTable:
    values = tuple((f"place {i}", f"{i % different}", i % 7) for i in range(rows))
    return _public("many", {"name": _TEXT, "code": _TEXT, "size": _INTEGER}, *values)


MANY = _many(2 * MOST_LISTED, 20)


def test_what_is_said_of_a_large_public_table_stays_with_its_column() -> None:
    """A list of the private column's values would be as long as the table, in every question."""
    sql = "SELECT month FROM sales JOIN many m ON country = m.name WHERE m.code = '3' GROUP BY month HAVING {}"
    asked = _asked(sql.format("count(*) FILTER (WHERE m.size > 5) > 1000"), MANY)
    assert asked.where == And((Not(IsNull("many.name")), Compare("code", "=", "3")))
    assert [term.condition for term in asked.functionals[0].terms] == [Compare("size", ">", 5)]
    few = _asked(sql.format("count(*) FILTER (WHERE m.size > 5) > 1000"), _many(MOST_LISTED, 500))
    assert find_columns(few.where) == {"country"}


def test_that_a_row_of_a_large_public_table_is_found_is_said_once() -> None:
    """A key that is looked up in it says so already; a key that it is looked up by loses its other values."""
    sql = "SELECT {0} FROM sales {1} JOIN many m ON country = m.name GROUP BY {0} HAVING count(*) > 1000"
    assert _asked(sql.format("m.code", ""), MANY).where == ALWAYS
    assert _asked(sql.format("m.code", "LEFT"), MANY).where == ALWAYS
    assert _asked(sql.format("month", "LEFT"), MANY).where == ALWAYS
    found = _public("many", {"name": _TEXT, "code": _TEXT, "size": _INTEGER}, ("Norway", "0", 1), *MANY.rows)
    by_key = _asked(sql.format("country", ""), found)
    assert (by_key.keys.values, by_key.where) == ((("Norway",),), ALWAYS)


def test_a_large_public_table_is_computed_once_and_stands_in_no_statement() -> None:
    joined = "FROM sales JOIN many m ON country = m.name"
    sql = f"SELECT m.code {joined} WHERE m.size > {{}} GROUP BY m.code HAVING sum(m.size) > 9"
    found = [plan_question(_asked(sql.format(size), MANY), dialect=POSTGRES) for size in (1, 2)]
    read = [one.rewritten.pinned_relations for one in found]
    assert len({relation.name for (relation,) in read}) == 1
    assert all(a.values is b.values for a, b in zip(read[0][0].columns, read[1][0].columns, strict=True))
    assert all("place 1" not in one.rewritten.sql and len(one.rewritten.sql) < 5_000 for one in found)
    other = replace(MANY, rows=(*MANY.rows[:-1], ("place x", "0", 0)), digest="of other rows")
    ((changed,),) = [plan_question(_asked(sql.format(1), other), dialect=POSTGRES).rewritten.pinned_relations]
    assert changed.name != read[0][0].name


def test_texts_that_are_too_long_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup_columns, "MOST_CHARACTERS", 40)
    sql = "SELECT m.code FROM sales JOIN many m ON country = m.name GROUP BY m.code HAVING count(*) > 1000"
    assert _asked(sql, _many(5, 5)).keys.size == 5
    with pytest.raises(KeyholeError) as refused:
        _asked(sql, _many(6, 5))
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
        made = make_lookup_column(name, PLACES, column, key="name", base=table.get_column("country"), table=table)
        table = replace(table, columns=(*table.columns, made))
    asked = questions.question(questions.above(0, 10, 1), questions.count(table=table), table=table, where=condition)
    found = move_conditions_to_bases(asked).where
    assert find_columns(found) <= {"country", "customer_id"}
    for base, customer in product(_BASES, (1, 7, None)):
        row: dict[str, Value | None] = {"country": base, "customer_id": customer}
        for name in ("letter", "number"):
            lookup = table.get_column(name).derivation
            assert isinstance(lookup, Lookup)
            row[name] = None if base is None else dict(lookup.pairs).get(base)
        assert (evaluate(found, row) is True) == (evaluate(condition, row) is True)
