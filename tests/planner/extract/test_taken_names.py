"""Names of the select list that columns have as well: every clause reads them as PostgreSQL does, or says so before."""

from dataclasses import replace
from typing import Any

import psycopg
import pytest

from planner.errors import KeyholeError
from tests.planner.asked import all_hold, asking
from tests.planner.exact_answers import exact_answer, list_columns
from tests.worlds.retail import COUNTRIES, MONTHS, retail

CATALOG = replace(retail(), defaults=replace(retail().defaults, numbers="null"))
_TABLE = (
    "CREATE TEMPORARY TABLE sales (country text, month date, invoice_date timestamp, quantity integer, gift boolean, "
    "weight double precision, stock_code text)"
)
_FILL = "INSERT INTO sales SELECT %s, %s, %s, n %% 5, n %% 2 = 0, 1, 'a' FROM generate_series(1, %s) AS s(n)"
_MONTH = "date_trunc('month', invoice_date)::date"
_LARGE = "HAVING count(*) > 20"

# where PostgreSQL answers
ANSWERED = (
    f"SELECT country, count(*) AS quantity FROM sales GROUP BY country {_LARGE} ORDER BY country",
    "SELECT country, count(*) > 60 AS gift FROM sales GROUP BY country ORDER BY gift, country",
    f"SELECT country AS month, month AS country FROM sales GROUP BY month, country {_LARGE} ORDER BY month, country",
    f"SELECT upper(country) AS country FROM sales GROUP BY country {_LARGE} ORDER BY country",
    f"SELECT upper(country) AS country, count(*) AS n FROM sales GROUP BY country {_LARGE} ORDER BY length(country), 1",
    f"SELECT country, sum(quantity) / length(country) AS month FROM sales GROUP BY month, country {_LARGE} ORDER BY 1",
    f"SELECT country, count(*) AS month FROM sales GROUP BY country, month {_LARGE} ORDER BY country",
    f"SELECT month, lag(count(*)) OVER (ORDER BY month) AS country FROM sales GROUP BY month {_LARGE} ORDER BY month",
    f"SELECT {_MONTH} AS month, count(*) AS n FROM sales GROUP BY 1 {_LARGE} ORDER BY month",
)
# where PostgreSQL knows of no column that a column is derived from another one
DERIVED = (
    f"SELECT {{month}} AS month, count(*) AS n FROM sales GROUP BY month {_LARGE} ORDER BY month",
    "SELECT {month} AS month, count(*) > 60 AS n FROM sales GROUP BY month ORDER BY month",
    f"SELECT {{month}} AS month, lag(count(*)) OVER (ORDER BY month) FROM sales GROUP BY month {_LARGE} ORDER BY 1",
    f"SELECT month, lag(count(*)) OVER (ORDER BY {{month}}) AS n FROM sales GROUP BY month {_LARGE} ORDER BY 1",
    f"SELECT month, sum(quantity) / extract(day from {{month}}) AS n FROM sales GROUP BY month {_LARGE} ORDER BY 1",
)
# where PostgreSQL says that a column is not grouped; the hint is by positions where there is one
REFUSED = (
    (
        "SELECT country, count(*) AS quantity FROM sales GROUP BY country HAVING quantity > 20",
        "country HAVING count(*) >",
    ),
    (
        "SELECT country, sum(quantity) AS quantity FROM sales GROUP BY 1 HAVING sum(quantity) > 9 AND quantity < 99",
        "country HAVING sum(quantity) > 9 AND sum(quantity) <",
    ),
    (
        f"SELECT date_trunc('quarter', invoice_date)::date AS month, count(*) AS n FROM sales GROUP BY month {_LARGE}",
        "1",
    ),
    (f"SELECT left(country, 1) AS gift FROM sales GROUP BY gift {_LARGE} ORDER BY gift", "1"),
    (f"SELECT country AS month FROM sales GROUP BY month {_LARGE}", "1"),
    (f"SELECT count(*) AS n, month AS country, country AS month FROM sales GROUP BY country {_LARGE}", None),
    (f"SELECT sales.month AS country, count(*) AS n FROM sales GROUP BY country {_LARGE}", "1"),
    (f"SELECT quantity > 3 AS gift, count(*) AS n FROM sales GROUP BY month, gift {_LARGE}", "month, 1"),
    (f"SELECT left(country, 1) AS month, lag(count(*)) OVER (ORDER BY month) FROM sales GROUP BY month {_LARGE}", None),
    (f"SELECT country, sum(quantity) + weight AS n FROM sales GROUP BY country {_LARGE}", None),
    (f"SELECT country, sum(quantity) AS quantity FROM sales GROUP BY country {_LARGE} ORDER BY abs(quantity)", None),
)


def test_a_name_that_is_taken_means_what_it_means_to_postgresql(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute(_TABLE)
        for number, country in enumerate(COUNTRIES):
            for month in MONTHS:
                connection.execute(_FILL, (country, month, month, 12 + 7 * number))
        all_hold(_answers_as_postgresql, [(connection, sql, sql) for sql in ANSWERED])
        derived = [(connection, sql.format(month=_MONTH), sql.format(month="month")) for sql in DERIVED]
        all_hold(_answers_as_postgresql, derived)
        all_hold(_is_refused_before, [(connection, *case) for case in REFUSED])


def _answers_as_postgresql(connection: psycopg.Connection[Any], sql: str, alike: str) -> None:
    """It shows what PostgreSQL does of a statement that means the same, with NULL for sizes."""
    with connection.execute(alike.encode()) as cursor:
        wanted, names = cursor.fetchall(), [called for called, _ in list_columns(cursor)]
    found, shown = exact_answer(sql, CATALOG, connection)
    assert [called for called, _ in shown] == names
    told = [place for place in range(len(names)) if any(row[place] is not None for row in found)]
    assert told
    assert [[row[place] for place in told] for row in found] == [[row[place] for place in told] for row in wanted]


def _is_refused_before(connection: psycopg.Connection[Any], sql: str, items: str | None) -> None:
    with pytest.raises(psycopg.errors.GroupingError), connection.transaction():
        connection.execute(sql.encode())
    with pytest.raises(KeyholeError) as refused:
        asking(sql, CATALOG)
    hint = refused.value.hint
    assert refused.value.code in ("KH101", "KH207")
    assert hint is not None
    assert items is None or f"GROUP BY {items} " in hint
    asking(hint.removeprefix("Instead you can ask: "), CATALOG)
