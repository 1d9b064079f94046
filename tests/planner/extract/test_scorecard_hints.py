"""Who shows sizes is told how to show bands: the same statement, with what the owner declared in each one's place."""

from dataclasses import replace
from decimal import Decimal

import pytest

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Bands, Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.hints import INSTEAD
from tests.worlds.retail import SALES, VISITS, retail


def _thresholds(*numbers: int) -> tuple[Decimal, ...]:
    return tuple(map(Decimal, numbers))


def _banded() -> Catalog:
    """retail, with bands of every kind on sales, and on visits of averages alone."""
    of_amount = (Bands("sum", _thresholds(100_000, 200_000, 500_000)), Bands("avg", _thresholds(-50, 200)))
    of_quantity = (Bands("sum", _thresholds(-90_000, -50_000, 50_000)),)
    given = {"amount": of_amount, "quantity": of_quantity}
    columns = tuple(replace(column, bands=given.get(column.name, ())) for column in SALES.columns)
    counted = (Bands("rows", _thresholds(5000, 10_000)), Bands("units", _thresholds(100, 500)))
    ages = tuple(
        replace(column, bands=(Bands("avg", _thresholds(40, 65)),)) if column.name == "age" else column
        for column in VISITS.columns
    )
    tables = {"sales": replace(SALES, columns=columns, bands=counted), "visits": replace(VISITS, columns=ages)}
    catalog = retail()
    return replace(catalog, tables=tuple(tables.get(table.name, table) for table in catalog.tables))


def _hint(sql: str) -> str | None:
    with pytest.raises(KeyholeError, match="KH101") as refused:
        classify(sql, _banded())
    return (refused.value.hint or "").removeprefix(INSTEAD)


def _price(sql: str) -> float:
    """What a statement may cost a group at most, once it is read, bound and planned under the policy's defaults."""
    catalog = _banded()
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    wanted = replace(read_accuracy({}, catalog.defaults), mechanism="progressive")
    return max(
        plan_question(
            bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY), dialect=POSTGRES
        ).worst_case_epsilon
        for part in statement.questions
    )


AMOUNTS = "ARRAY[100000, 200000, 500000]"
SUGGESTED = {
    "SELECT country, sum(amount) FROM sales GROUP BY country": (
        f"SELECT country, width_bucket(sum(amount), {AMOUNTS}) FROM sales GROUP BY country;"
    ),
    "SELECT country, sum(amount) AS total FROM sales GROUP BY 1 ORDER BY sum(amount) DESC LIMIT 10;": (
        f"SELECT country, width_bucket(sum(amount), {AMOUNTS}) AS total FROM sales GROUP BY 1 "
        f"ORDER BY width_bucket(sum(amount), {AMOUNTS}) DESC LIMIT 10;"
    ),
    "SELECT country, sum(amount) t FROM sales GROUP BY country ORDER BY t DESC, country": (
        f"SELECT country, width_bucket(sum(amount), {AMOUNTS}) t FROM sales GROUP BY country ORDER BY t DESC, country;"
    ),
    "SELECT country, count(*) FROM sales GROUP BY 1, month HAVING count(*) > 8000 ORDER BY round(avg(amount), 2)": (
        "SELECT country, width_bucket(count(*), ARRAY[5000, 10000]) FROM sales GROUP BY 1, month HAVING "
        "count(*) > 8000 ORDER BY CASE WHEN avg(amount) > 200 THEN 2 WHEN avg(amount) > -50 THEN 1 ELSE 0 END;"
    ),
    "SELECT month, sum(quantity) FROM sales GROUP BY month": (
        "SELECT month, CASE WHEN sum(quantity) < -90000 THEN 0 WHEN sum(quantity) < -50000 THEN 1 "
        "WHEN sum(quantity) >= 50000 THEN 3 ELSE 2 END FROM sales GROUP BY month;"
    ),
    "SELECT month, count(*), count(DISTINCT (customer_id, month)), count(DISTINCT customer_id) FROM sales GROUP BY 1": (
        "SELECT month, width_bucket(count(*), ARRAY[5000, 10000]), "
        "width_bucket(count(DISTINCT (customer_id, month)), ARRAY[100, 500]), "
        "width_bucket(count(DISTINCT customer_id), ARRAY[100, 500]) FROM sales GROUP BY 1;"
    ),
    "SELECT country, count(DISTINCT customer_id) FROM sales GROUP BY country": (
        "SELECT country, count(DISTINCT customer_id) > 1000 FROM sales GROUP BY country;"
    ),
    "SELECT country, count(stock_code) FROM sales GROUP BY country": (
        "SELECT country, count(stock_code) > 5000 FROM sales GROUP BY country;"
    ),
    "SELECT ward, sum(cost) FROM visits GROUP BY ward": "SELECT ward, sum(cost) > 500000 FROM visits GROUP BY ward;",
    "SELECT ward, COALESCE(ROUND(AVG(age)::numeric, 1), 0) a FROM visits WHERE insured GROUP BY ward": (
        "SELECT ward, CASE WHEN AVG(age) > 65 THEN 2 WHEN AVG(age) > 40 THEN 1 ELSE 0 END a "
        "FROM visits WHERE insured GROUP BY ward;"
    ),
    "SELECT ward, count(*) FILTER (WHERE insured) FROM visits GROUP BY ward": (
        "SELECT ward, count(*) FILTER (WHERE insured) > 1000 FROM visits GROUP BY ward;"
    ),
    "SELECT month, width_bucket(sum(amount), ARRAY[20000, 5000]) AS band FROM sales GROUP BY month": (
        f"SELECT month, width_bucket(sum(amount), {AMOUNTS}) AS band FROM sales GROUP BY month;"
    ),
    # what Metabase and Looker write for a sum or a count with a condition
    "SELECT month, SUM(CASE WHEN gift THEN amount ELSE 0.0 END) AS s, SUM(CASE WHEN gift THEN 1 ELSE 0.0 END) AS n, "
    "COUNT(CASE WHEN NOT gift THEN 1 ELSE NULL END) AS m FROM sales GROUP BY month": (
        f"SELECT month, width_bucket(SUM(CASE WHEN gift THEN amount ELSE 0.0 END), {AMOUNTS}) AS s, "
        "width_bucket(SUM(CASE WHEN gift THEN 1 ELSE 0.0 END), ARRAY[5000, 10000]) AS n, "
        "width_bucket(COUNT(CASE WHEN NOT gift THEN 1 ELSE NULL END), ARRAY[5000, 10000]) AS m "
        "FROM sales GROUP BY month;"
    ),
    'SELECT "sales"."country" AS "country", SUM(1) AS "cnt" FROM "public"."sales" "sales" GROUP BY 1': (
        'SELECT "sales"."country" AS "country", width_bucket(SUM(1), ARRAY[5000, 10000]) AS "cnt" '
        'FROM "public"."sales" "sales" GROUP BY 1;'
    ),
    "SELECT month, sum(amount) > 300000 AS big, sum(amount) FROM sales GROUP BY month": (
        f"SELECT month, sum(amount) > 300000 AS big, width_bucket(sum(amount), {AMOUNTS}) FROM sales GROUP BY month;"
    ),
    "SELECT r.region, s.country, sum(s.amount) FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2": (
        f"SELECT r.region, s.country, width_bucket(sum(s.amount), {AMOUNTS}) "
        "FROM sales s JOIN regions r ON r.name = s.country GROUP BY 1, 2;"
    ),
    # what Superset, Metabase, Tableau and Power BI write for a measure that is dragged into a chart
    'SELECT country AS country, SUM(amount) AS "SUM(amount)"\nFROM public.sales\nGROUP BY country\n'
    'ORDER BY "SUM(amount)" DESC\nLIMIT 1000': (
        f'SELECT country AS country, width_bucket(SUM(amount), {AMOUNTS}) AS "SUM(amount)"\nFROM public.sales\n'
        'GROUP BY country\nORDER BY "SUM(amount)" DESC\nLIMIT 1000;'
    ),
    'SELECT "public"."sales"."country" AS "country", SUM("public"."sales"."amount") AS "sum" FROM "public"."sales" '
    'GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC': (
        f'SELECT "public"."sales"."country" AS "country", width_bucket(SUM("public"."sales"."amount"), {AMOUNTS}) '
        'AS "sum" FROM "public"."sales" GROUP BY "public"."sales"."country" ORDER BY "public"."sales"."country" ASC;'
    ),
    'SELECT "sales"."country" AS "country", SUM("sales"."amount") AS "sum:amount:ok" FROM "public"."sales" "sales" '
    "GROUP BY 1 HAVING (COUNT(1) > 0)": (
        f'SELECT "sales"."country" AS "country", width_bucket(SUM("sales"."amount"), {AMOUNTS}) AS "sum:amount:ok" '
        'FROM "public"."sales" "sales" GROUP BY 1;'
    ),
    'select "_"."country", "_"."a0" from (select "rows"."country" as "country", sum("rows"."amount") as "a0" from '
    '(select "country", "amount" from "public"."sales" "$Table") "rows" group by "country") "_" '
    'where not "_"."a0" is null limit 1000001': (
        f'select "rows"."country" as "country", width_bucket(sum("rows"."amount"), {AMOUNTS}) as "a0" from  '
        '"public"."sales"  "rows" group by "country";'
    ),
}


@in_turn("sql", SUGGESTED)
def test_a_size_is_answered_with_the_statement_that_shows_its_band(sql: str) -> None:
    assert (_hint(sql) or "").split("  or  ")[-1] == SUGGESTED[sql]
    assert _price(SUGGESTED[sql].rstrip(";")) > 0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT country, sum(amount), count(*) FROM sales GROUP BY country",
        "SELECT country, sum(amount), count(DISTINCT (customer_id, month)) FROM sales GROUP BY country",
        "SELECT country, sum(quantity) FROM sales GROUP BY country",
        "SELECT ward, count(*), sum(cost) FROM visits GROUP BY ward",
        "SELECT country, count(*) FROM capped_sales GROUP BY country",
        "SELECT country, sum(amount), sum(quantity) FROM capped_sales GROUP BY country",
        "SELECT sum(amount) FROM sales",
        "SELECT count(*) FROM sales",
    ],
)
def test_what_is_proposed_without_the_owners_bands_can_be_afforded(sql: str) -> None:
    """One question of it may cost what a policy ordinarily allows one: 2 epsilon, at 10 % tolerance."""
    with pytest.raises(KeyholeError, match="KH101") as refused:
        classify(sql, retail())
    assert refused.value.hint is not None
    assert _price(refused.value.hint.removeprefix(INSTEAD).rstrip(";")) <= retail().budget.per_query


@in_turn(
    ("sql", "hint"),
    [
        # nothing has a band that the question could show as well
        ("SELECT month, max(amount) FROM sales GROUP BY month", "HAVING count(*) > 1000;"),
        ("SELECT month, sum(amount), stddev(amount) FROM sales GROUP BY month", "HAVING sum(amount) > 200000;"),
        ("SELECT month, sum(amount) / count(*) FROM sales GROUP BY month", "HAVING sum(amount) > 200000;"),
        ("SELECT month, sum(amount), rank() OVER (ORDER BY sum(amount)) FROM sales GROUP BY 1", "> 200000;"),
        ("SELECT month, sum(amount), random() FROM sales GROUP BY month", "HAVING sum(amount) > 200000;"),
        ("SELECT month, sum(amount), gift FROM sales GROUP BY month", "HAVING sum(amount) > 200000;"),
        ("SELECT sum(amount) FROM sales", "GROUP BY country HAVING sum(amount) > 200000;"),
        ("SELECT avg(age) FROM visits", "GROUP BY ward HAVING avg(age) > 65;"),
        # aggregates of aggregates are no sizes that a band could stand for
        ("SELECT ward, sum(CASE WHEN count(*) > 70 THEN 1 END) FROM visits GROUP BY ward", "HAVING count(*) > 70;"),
        # it asks already, and there is no band to show beside
        (
            "SELECT ward, count(*) n FROM visits GROUP BY 1 HAVING count(*) > 7000",
            "GROUP BY ward HAVING count(*) > 7000;",
        ),
        # a query around it asks which groups pass
        ("SELECT * FROM (SELECT month, sum(amount) s FROM sales GROUP BY 1 LIMIT 9) t WHERE s > 9", "> 200000;"),
    ],
)
def test_what_cannot_be_shown_as_bands_is_answered_with_a_threshold(sql: str, hint: str) -> None:
    found = _hint(sql)
    assert found is not None
    assert found.endswith(hint)
    assert _price(found.rstrip(";")) > 0


def test_a_hint_has_no_more_thresholds_than_a_question() -> None:
    many = tuple(Decimal(100_000 + step) for step in range(32))
    columns = tuple(
        replace(column, bands=(Bands("sum", many),)) if column.bounds is not None else column
        for column in SALES.columns
    )
    catalog = replace(retail(), tables=(replace(SALES, columns=columns),))
    for shown, is_scorecard in (("sum(amount)", True), ("sum(amount), sum(quantity)", False)):
        with pytest.raises(KeyholeError) as refused:
            classify(f"SELECT country, {shown} FROM sales GROUP BY country", catalog)
        assert refused.value.hint is not None
        assert ("width_bucket" in refused.value.hint) is is_scorecard
        assert isinstance(classify(refused.value.hint.removeprefix(INSTEAD).rstrip(";"), catalog), Asking)


@pytest.mark.parametrize(
    ("sql", "ranking"),
    [
        (
            "SELECT country, sum(amount) AS total FROM sales GROUP BY country ORDER BY total DESC LIMIT 5",
            "SELECT country FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 5;",
        ),
        (
            'SELECT country AS "Land", count(*) FROM sales WHERE quantity > 3 GROUP BY 1 ORDER BY 2 LIMIT 3 OFFSET 0',
            'SELECT country AS "Land" FROM sales WHERE quantity > 3 GROUP BY 1 ORDER BY count(*) LIMIT 3;',
        ),
        (
            "SELECT country, sum(amount) FROM sales GROUP BY country HAVING COUNT(1) > 0 ORDER BY 2 DESC LIMIT 5",
            "SELECT country FROM sales GROUP BY country ORDER BY sum(amount) DESC LIMIT 5;",
        ),
        (
            "SELECT month, country, sum(amount), avg(amount) FROM sales GROUP BY month, country "
            "HAVING count(*) > 1000 ORDER BY sum(amount) DESC NULLS LAST FETCH FIRST 10 ROWS ONLY",
            "SELECT month, country FROM sales GROUP BY month, country HAVING count(*) > 1000 "
            "ORDER BY sum(amount) DESC NULLS LAST FETCH FIRST 10 ROWS ONLY;",
        ),
    ],
)
def test_what_is_cut_to_the_greatest_is_shown_as_a_ranking_first(sql: str, ranking: str) -> None:
    """Its tolerance in percent is one of the least band, so that it can be asked under a policy's defaults."""
    hint = _hint(sql) or ""
    first, *others = hint.split("  or  ")
    assert first == ranking
    assert len(others) == 1
    assert 0.0 < _price(first) < 4.0
    assert _price(others[0]) > 0.0


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT country, sum(amount) FROM sales GROUP BY country ORDER BY 2 DESC LIMIT 1000",
        "SELECT country, sum(amount) FROM sales GROUP BY country ORDER BY country LIMIT 5",
        "SELECT country, sum(amount) FROM sales GROUP BY country ORDER BY 2 DESC",
        "SELECT ward, count(*) FROM visits GROUP BY ward ORDER BY 2 DESC LIMIT 5",
        "SELECT sum(amount), country FROM sales GROUP BY 2 ORDER BY 1 DESC LIMIT 5",
        "SELECT DISTINCT country, sum(amount) FROM sales GROUP BY country ORDER BY 2 DESC LIMIT 5",
    ],
)
def test_what_is_not_cut_to_a_few_or_has_no_bands_is_no_ranking(sql: str) -> None:
    assert "  or  " not in (_hint(sql) or "")


@pytest.mark.parametrize(("measure", "least"), [("amount", 100_000), ("quantity", 50_000)])
def test_a_rankings_tolerance_in_percent_is_one_of_the_least_band_above_0(measure: str, least: int) -> None:
    """Bands of quantity begin at -90,000."""
    catalog = _banded()
    statement = classify(f"SELECT country FROM sales GROUP BY country ORDER BY sum({measure}) DESC LIMIT 2", catalog)
    assert isinstance(statement, Asking)
    (part,) = statement.questions
    wanted = read_accuracy({"keyhole.tolerance": f"sum({measure})=10%"}, catalog.defaults)
    question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY)
    assert question.ranked is not None
    assert (question.ranked.tolerance_value, question.ranked.percent_base) == (Decimal(least) / 10, Decimal(least))
    assert any(f"is a part of {least}, the least band" in one for one in question.warnings)
