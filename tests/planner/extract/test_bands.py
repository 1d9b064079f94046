"""Columns of bands, as tools drag them, are the bands themselves: in the select list, ORDER BY and HAVING."""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from functools import cache

import duckdb
import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Bands, Catalog
from planner.errors import KeyholeError
from planner.extract.extract import extract_questions
from planner.extract.outer_query import Asking, write_outer_sql
from planner.parser.lexer import read_tokens
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.worlds.retail import SALES, VISITS, retail

BOUNDS = (3, 5, 9)


def _banded() -> Catalog:
    of_amount = (Bands("sum", (Decimal(-90), Decimal(200), Decimal(500))), Bands("avg", (Decimal(40), Decimal(65))))
    given = {"amount": of_amount, "quantity": (Bands("sum", (Decimal(900), Decimal("1000.5"))),)}
    columns = tuple(replace(column, bands=given.get(column.name, ())) for column in SALES.columns)
    counted = (Bands("rows", tuple(map(Decimal, BOUNDS))), Bands("units", (Decimal(100),)))
    return replace(retail(), tables=(replace(SALES, columns=columns, bands=counted), VISITS))


def _read(sql: str) -> Asking:
    found = extract_questions(sql, read_tokens(sql), _banded())
    assert found is not None
    return found


def _asked(sql: str) -> str:
    """A statement's question, which can be bound under the policy's defaults."""
    catalog = _banded()
    (question,) = _read(sql).questions
    bind_question(question, catalog, accuracy=read_accuracy({}, catalog.defaults), parameters={}, today=TODAY)
    return question.text


QUANTITY = "((sum({0}quantity) >= 900)::int + (sum({0}quantity) >= 1000.5)::int)"
AVERAGE = "CASE WHEN avg(amount) > 65 THEN 2 WHEN avg(amount) > 40 THEN 1 ELSE 0 END"
SPELLED = {
    "SELECT country, max(quantity_sum_band) FROM sales GROUP BY country": (
        f"SELECT country, {QUANTITY.format('')} AS max FROM sales GROUP BY country"
    ),
    'SELECT s.country, MIN(s."quantity_sum_band")::float8 FROM sales s GROUP BY 1 ORDER BY MAX(s.quantity_sum_band)': (
        f"SELECT s.country, {QUANTITY.format('s.')}::float8 AS min FROM sales s GROUP BY 1"
    ),
    "SELECT country, avg(amount_avg_band) AS a FROM sales GROUP BY country": (
        f"SELECT country, ({AVERAGE})::numeric AS a FROM sales GROUP BY country"
    ),
    "SELECT country, MAX(amount_sum_band) a FROM sales GROUP BY country": (
        "SELECT country, CASE WHEN sum(amount) < -90 THEN 0 WHEN sum(amount) >= 500 THEN 3 "
        "WHEN sum(amount) >= 200 THEN 2 ELSE 1 END a FROM sales GROUP BY country"
    ),
    "SELECT country, max(units_band) u FROM sales GROUP BY country": (
        "SELECT country, ((count(DISTINCT (customer_id, month)) >= 100)::int) u FROM sales GROUP BY country"
    ),
    # Tableau, Metabase and Power BI
    'SELECT "sales"."country" AS "country", MAX("sales"."quantity_sum_band") AS "max:quantity_sum_band:ok" '
    'FROM "public"."sales" "sales" GROUP BY 1': (
        f"""SELECT "sales"."country" AS "country", {QUANTITY.format('"sales".')} AS "max:quantity_sum_band:ok" """
        'FROM "public"."sales" "sales" GROUP BY 1'
    ),
    'SELECT "public"."sales"."country" AS "country", MAX("public"."sales"."quantity_sum_band") AS "max" '
    'FROM "public"."sales" GROUP BY "public"."sales"."country"': (
        f"""SELECT "public"."sales"."country" AS "country", {QUANTITY.format('"public"."sales".')} AS "max" """
        'FROM "public"."sales" GROUP BY "public"."sales"."country"'
    ),
    'select "_"."country", "_"."a0" from (select "rows"."country" as "country", max("rows"."quantity_sum_band") as '
    '"a0" from (select "country", "quantity_sum_band" from "public"."sales" "$Table") "rows" group by "country") "_" '
    'where not "_"."a0" is null limit 1000001': (
        f"""select "rows"."country" as "country", {QUANTITY.format('"rows".')} as "a0" """
        'from  "public"."sales"  "rows" group by "country"'
    ),
}


@pytest.mark.parametrize("sql", SPELLED)
def test_the_column_of_a_band_is_the_band(sql: str) -> None:
    assert _asked(sql) == SPELLED[sql]


def test_a_band_is_called_what_the_tools_aggregate_is_called() -> None:
    sql = "SELECT country, (max(quantity_sum_band)), max(rows_band) + 1, avg(units_band) FROM sales GROUP BY country"
    written = write_outer_sql(_read(sql), first_parameter=1).sql
    assert written.count(" AS max,") == 1  # PostgreSQL gives no name to a sum
    assert written.count(" AS avg ") == 1


COMPARED = [
    "NOT IN ({}, 2)",
    "NOT BETWEEN {} AND 2",
    "= {}",
    "<> {}",
    ">= {}",
    "> {}",
    "<= {}",
    "< {}",
    "BETWEEN {} AND 2",
    "BETWEEN 1 AND {}",
    "IN ({}, 2)",
]


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        yield opened


@in_turn("compared", COMPARED)
@in_turn("band", ["width_bucket(count(*), ARRAY[3, 5, 9])", "max(rows_band)", "MIN(sales.rows_band)"])
def test_a_band_in_having_means_the_thresholds_around_it(
    band: str, compared: str, connection: duckdb.DuckDBPyConnection
) -> None:
    """For every number, in range or not, what is left of the comparison holds for the same counts."""
    for number in range(-1, 5):
        sql = f"SELECT country FROM sales GROUP BY country HAVING {band} {compared.format(number)}"
        having = _read(sql).questions[0].text.partition("HAVING ")[2]
        if "band" in having or "width" in having:  # it always or never holds: refused like other constants
            holds = [_number_compared(at, compared.format(number), connection) for at in range(len(BOUNDS) + 1)]
            assert all(holds) or not any(holds)
            continue
        shown = having.replace("count(*)", "n")
        held = connection.execute(f"SELECT {shown} FROM range(11) AS counts(n) ORDER BY n").fetchall()
        meant = [_number_compared(at, compared.format(number), connection) for at in range(len(BOUNDS) + 1)]
        assert held == [(meant[bisect_right(BOUNDS, count)],) for count in range(11)], having


@cache
def _number_compared(number: int, compared: str, connection: duckdb.DuckDBPyConnection) -> bool:
    row = connection.execute(f"SELECT {number} {compared}").fetchone()
    assert row is not None
    return bool(row[0])


@pytest.mark.parametrize(
    ("having", "question"),
    [
        ("max(quantity_sum_band) >= 1", "(sum(quantity) >= 900)"),
        (
            "NOT (max(quantity_sum_band) = 2) AND count(*) > 5000",
            "NOT (((sum(quantity) >= 1000.5))) AND count(*) > 5000",
        ),
        ("(MAX(amount_avg_band) > 1)", "((avg(amount) > 65))"),
        ("width_bucket(sum(amount), 0, 1000, 2)::int >= 3", None),
        ("width_bucket(sum(amount), ARRAY[200, 500]) >= 1", "(sum(amount) >= 200)"),
    ],
)
def test_what_tools_write_for_a_filter_on_a_band_is_read(having: str, question: str | None) -> None:
    read = _read(f"SELECT country FROM sales GROUP BY country HAVING {having}").questions[0].text
    expected = having if question is None else question
    assert read == f"SELECT country FROM sales GROUP BY country HAVING {expected}"


@in_turn(
    ("thresholds", "reached"),
    [
        ("ARRAY[200, 500]::numeric[]", "(sum(amount) >= 200)::int + (sum(amount) >= 500)::int"),
        ("ARRAY[200, 500]::int[]", "(sum(amount) >= 200)::int + (sum(amount) >= 500)::int"),
        ("CAST(ARRAY[200] AS bigint[])", "(sum(amount) >= 200)::int"),
        ("ARRAY[$1, $2]", "(sum(amount) >= $1)::int + (sum(amount) >= $2)::int"),
        ("ARRAY[200, $1, 900]", "(sum(amount) >= 200)::int + (sum(amount) >= $1)::int + (sum(amount) >= 900)::int"),
        ("ARRAY[200.5, 500]::int[]", None),
        ("ARRAY[0.1]::real[]", None),
        ("ARRAY[0.1]::double precision[]", None),
        ("ARRAY[1.25]::numeric(9,1)[]", None),
        ("ARRAY[500, $1, 200]", None),
        ("ARRAY[quantity]", None),
        ("ARRAY[]::numeric[]", None),
    ],
)
def test_thresholds_are_numbers_and_parameters(thresholds: str, reached: str | None) -> None:
    sql = f"SELECT country, width_bucket(sum(amount), {thresholds}) AS b FROM sales GROUP BY country"
    if reached is not None:
        assert f"({reached}) AS b" in _read(sql).questions[0].text
        return
    with pytest.raises(KeyholeError, match="KH101"):
        _read(sql)


def test_a_filter_around_a_band_is_run_over_the_answer() -> None:
    sql = "SELECT * FROM (SELECT country, max(quantity_sum_band) AS b FROM sales GROUP BY country) t WHERE b >= 2"
    asking = _read(sql)
    assert "HAVING" not in asking.questions[0].text
    assert write_outer_sql(asking, first_parameter=1).sql.endswith("t WHERE b >= 2")


@pytest.mark.parametrize(
    ("sql", "code", "hint"),
    [
        (
            "SELECT country, sum(rows_band) FROM sales GROUP BY 1",
            "KH101",
            "country, max(rows_band) FROM sales GROUP BY 1;",
        ),
        ("SELECT country, count(rows_band) n FROM sales GROUP BY 1 ORDER BY 2", "KH101", "max(rows_band) n FROM sales"),
        ("SELECT rows_band FROM sales GROUP BY rows_band HAVING count(*) > 9", "KH201", "Show max(rows_band)"),
        ("SELECT country FROM sales WHERE rows_band > 1 GROUP BY 1 HAVING count(*) > 900", "KH201", "max(rows_band)"),
        ("SELECT country, max(v.rows_band) FROM sales s GROUP BY country", "KH101", ""),
        ("SELECT country, max(rows_band) FILTER (WHERE gift) FROM sales GROUP BY country", "KH101", ""),
        ("SELECT rows_band FROM sales", "KH103", ""),
    ],
)
def test_the_column_of_a_band_is_nothing_else(sql: str, code: str, hint: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        _asked(sql)
    assert refused.value.code == code
    assert hint in (refused.value.hint or "")


def test_a_table_without_rows_has_the_columns_of_its_bands() -> None:
    empty = write_outer_sql(_read("SELECT * FROM sales WHERE false"), first_parameter=1).sql
    assert 'NULL::integer AS "amount_sum_band"' in empty
    assert 'NULL::integer AS "units_band"' in empty


SHEET = 'SELECT "sales"."country" AS "country", MAX("sales"."rows_band") AS "max" FROM "public"."sales" "sales" '


@pytest.mark.parametrize("having", ["HAVING (COUNT(1) > 0)", "having count(1) > 0"])
def test_that_a_scorecards_groups_have_rows_is_not_asked(having: str) -> None:
    """As Tableau writes it; for a list of keys, and without keys, it stays what it was."""
    assert _asked(f"{SHEET} GROUP BY 1 {having}") == _asked(f"{SHEET} GROUP BY 1")
    asking = _read(f"{SHEET} GROUP BY 1 {having} ORDER BY 1 LIMIT 9")
    assert write_outer_sql(asking, first_parameter=1).sql.endswith(" ORDER BY 1 LIMIT 9")
    for sql in (
        f"SELECT country FROM sales GROUP BY 1 {having}",
        f"SELECT count(*) > 5000 FROM sales {having}",
        f"{SHEET} GROUP BY 1 {having} AND count(*) > 5000",
        f"{SHEET} GROUP BY 1 {having.replace('1 ', '* ', 1).replace('(1)', '(*)')}",
    ):
        assert "having" in _read(sql).questions[0].text.lower()
