"""Flattened statements give the rows of the ones that were written: both run on a real PostgreSQL, over real tables."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from planner.extract.normalise import normalise
from planner.parser.edited_query import EditedQuery
from planner.parser.edits import Origin
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.worlds.retail import retail

STATEMENTS = rounds(400, quick=25)
_ROWS = 240


@pytest.fixture(scope="module")
def server(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    """Temporary tables visits and regions with NULLs in every column, which the statements below read."""
    drawn = random.Random(7)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TEMP TABLE visits (visit_id bigint, ward text, day date, hour integer, arrived timestamp, "
            "age integer, cost numeric, height double precision, insured boolean, disease text, reference uuid)"
        )
        connection.execute("CREATE TEMP TABLE regions (name text, region text)")
        for one in retail().public_tables[0].rows:
            connection.execute("INSERT INTO regions VALUES (%s, %s)", one)
        for index in range(_ROWS):
            day = f"2026-01-{drawn.randint(1, 4):02}"
            row = (
                index,
                drawn.choice(["A", "B", "C", "France", None]),
                day,
                drawn.randint(0, 3),
                f"{day} 0{drawn.randint(0, 3)}:30",
                drawn.choice([None, *range(8)]),
                drawn.choice([None, 1, 2.5, 4]),
                None,
                drawn.choice([None, True, False]),
                drawn.choice([None, "flu", "cold"]),
                None,
            )
            connection.execute(f"INSERT INTO visits VALUES ({', '.join(['%s'] * len(row))})", row)
        yield connection


def _normalised(sql: str) -> EditedQuery:
    return normalise(EditedQuery(parse(sql, read_tokens(sql)), Origin(sql)), retail())


_CONDITIONS = ("{age} > 2", "{age} < 3 OR {age} IS NULL", "NOT {insured}", "{disease} = 'flu'", "{ward} <> 'B'")
_THRESHOLDS = (
    "{n} > 4",
    "{n} BETWEEN 3 AND 30",
    "{n} > 2 OR {a} > 3",
    "{a} < 4",
    "({n} > 3 AND {m} >= 2)",
    "{m} > 4.5",
)
_KEYWORDS = ("end", "case", "order", "group", "having", "union", "from", "where")
_NAMES = ("ward", "age", "insured", "disease", "years", "w", "x", "Odd name", "select", *_KEYWORDS)


def _quoted(called: str) -> str:
    return f'"{called}"' if called in ("Odd name", "select", *_KEYWORDS) else called


def _after(before: str, called: str) -> str:
    """The name after a dot or AS, where PostgreSQL takes keywords unquoted; elsewhere as it must be."""
    return before + (called if before and called in _KEYWORDS else _quoted(called))


def _condition(drawn: random.Random, names: dict[str, str], alias: str) -> str:
    qualifier = drawn.choice(["", f"{alias}."])
    return drawn.choice(_CONDITIONS).format(**{base: _after(qualifier, now) for base, now in names.items()})


def _statement(drawn: random.Random) -> str:
    """Wrappers that filter and rename, some as WITH queries, in a question with its threshold inside or outside."""
    names = {base: base for base in ("ward", "age", "insured", "disease")}
    source, with_ = "visits", []
    for level in range(drawn.randint(0, 3)):
        alias = f"v{level}"
        where = f" WHERE {_condition(drawn, names, alias)}" if drawn.random() < 0.7 else ""
        if drawn.random() < 0.3:
            shown, after = "*", names
        else:
            chosen = drawn.sample(_NAMES, len(names))
            after = dict(zip(names, chosen, strict=True)) if drawn.random() < 0.6 else names
            shown = ", ".join(_after(f"{alias}.", names[base]) + _after(" AS ", after[base]) for base in names)
        query = f"SELECT {shown} FROM {source} {alias}{where}"
        names = after
        if drawn.random() < 0.4:
            with_.append(f"c{level} AS ({query})")
            source = f"c{level}"
        else:
            source = f"({query})"
    ward = _quoted(names["ward"])
    where = f" WHERE {_condition(drawn, names, 'z')}" if drawn.random() < 0.5 else ""
    key = drawn.choice([ward, _after("z.", names["ward"])])
    own = {"n": "count(*)", "a": f"avg({_quoted(names['age'])})", "m": f"max({_after('z.', names['age'])})"}
    body = f"FROM {source} z{where} GROUP BY {key}"
    if drawn.random() < 0.4:
        asked = f"SELECT {key} {body} HAVING {drawn.choice(_THRESHOLDS).format(**own)}"
    else:
        grouped = f"SELECT {own['n']} AS n, {key} AS k, {own['a']} AS end, {own['m']} AS case {body}"
        if drawn.random() < 0.3:
            grouped += " HAVING count(*) > 1"
        outer = drawn.choice(["", "t."])
        wanted = " AND ".join(
            one.format(n=f"{outer}n", a=_after(outer, "end"), m=_after(outer, "case"))
            if " OR " not in one
            else f"({one.format(n='n', a=_after(outer, 'end'))})"
            for one in drawn.sample(_THRESHOLDS, drawn.randint(1, 2))
        )
        more = drawn.choice(["", " AND k <> 'A'", " AND (k = 'A' OR k = 'C')", " OR n = 5"])
        joined = drawn.choice(["", "", " LEFT JOIN regions r ON r.name = t.k"])
        if drawn.random() < 0.4:
            with_.append(f"t AS ({grouped})")
            grouped = "t"
        else:
            grouped = f"({grouped}) AS t"
        asked = f"SELECT k FROM {grouped}{joined} WHERE {wanted}{more} ORDER BY k"
    return (f"WITH {', '.join(with_)} " if with_ else "") + asked


def _rows(server: psycopg.Connection[Any], sql: str) -> tuple[list[Any], list[str]]:
    cursor = server.execute(sql.encode())
    assert cursor.description is not None
    return sorted(cursor.fetchall(), key=repr), [column.name for column in cursor.description]


def test_a_flattened_statement_has_the_rows_of_the_one_that_was_written(server: psycopg.Connection[Any]) -> None:
    """400 random statements, 60 at quick; equality of rows and column names is exact: no false alarm is possible."""
    drawn = random.Random(20260111)
    changed = told = 0
    for _ in range(STATEMENTS):
        sql = _statement(drawn)
        origin = _normalised(sql).origin
        if not origin.edits:
            continue
        changed += 1
        rows, names = _rows(server, sql)
        assert _rows(server, origin.text) == (rows, names), (sql, origin.text)
        told += 0 < len(rows) < 5
    assert changed >= STATEMENTS * 0.7, changed
    assert told >= STATEMENTS * 0.3, told


def _joined_statement(drawn: random.Random) -> str:
    """A question over subqueries and WITH queries that join or are joined; names clash where they may."""
    key, wide = drawn.choice(
        (("r.region", "*"), ("r.region AS ward", "v.age, v.*"), ("left(region, 1) AS region", "v.*"))
    )
    more = drawn.choice(("age * 2 AS twice", "v.cost AS insured", "r.name", "hour + v.age AS hour", "disease AS age"))
    items = drawn.choice(
        (f"{key}, {more}, day AS d", f"{key}, day AS d, {wide}" if wide != "*" else "v.*, region, day AS d")
    )
    joined = drawn.choice(
        (
            "visits v JOIN regions r ON r.name = v.ward",
            "visits v LEFT JOIN regions r ON v.ward = r.name",
            "regions r JOIN visits AS v ON r.name = v.ward",
            "visits v, regions r",
        )
    )
    conditions = ["r.name = v.ward"] if "," in joined else []
    conditions += drawn.sample(("v.age > 1 OR insured", "region <> 'North'", "hour < 3"), drawn.randint(0, 2))
    where = f" WHERE ({') AND ('.join(conditions)})" if conditions else ""
    if drawn.random() < 0.5:
        source, called = f"SELECT {items} FROM {joined}{where}", drawn.choice(("q", "v", "visits"))
        shown = "ward" if "AS ward" in items and "v.*" not in items else "region"
        if drawn.random() < 0.4:
            source = f"SELECT *, d AS e FROM ({source}) {drawn.choice('vzr')} WHERE d < '2026-01-04'"
        outer = drawn.choice(("", f" WHERE {called}.d > '2026-01-01'"))
        if drawn.random() < 0.4:
            source = f"WITH {called}1 AS ({source}) SELECT {{}} FROM {called}1 {called}{outer}"
        else:
            source = f"SELECT {{}} FROM ({source}) AS {called}{outer}"
        kept = drawn.choice((shown, f"{called}.{shown}", f"coalesce({shown}, 'none') AS age"))
        hides_age = "v.*" in items or "AS age" in items  # then `age` in GROUP BY is a column
        key = "1" if hides_age and " AS age" in kept else drawn.choice(("1", kept.split(" AS ")[-1]))
        asked = source.format(f"{kept}, count(*) AS n, max({called}.d) AS d")
        return f"{asked} GROUP BY {key} HAVING count(*) > 2 ORDER BY n DESC, 1"
    private = drawn.choice(
        ("(SELECT * FROM visits w WHERE w.age > 2) v", "(SELECT ward, day, age FROM visits) AS v", "visits v")
    )
    wanted = drawn.choice(("", " WHERE region <> 'North' OR s.name LIKE 'F%'"))
    public = f"(SELECT s.name, region AS age_group FROM regions s{wanted}) r"
    side = drawn.choice(("JOIN", "LEFT JOIN", "INNER JOIN"))
    with_ = ""
    if drawn.random() < 0.4:
        with_, public = f"WITH p AS {public[:-2]} ", "p r"
    if drawn.random() < 0.3:
        of = drawn.choice(("v.ward = r.name", "v.ward = r.name AND v.day > '2026-01-01'"))
        return f"{with_}SELECT age_group, count(v.day) FROM {public} JOIN {private} ON {of} GROUP BY age_group"
    after = drawn.choice(("", " WHERE r.age_group <> 'West' OR day > '2026-01-02'"))
    shown = drawn.choice(
        ("age_group, count(*)", "r.age_group AS name, max(age)", "age_group || '!' AS ward, count(v.age)")
    )
    return (
        f"{with_}SELECT {shown} FROM {private} {side} {public} ON r.name = v.ward{after} GROUP BY 1 HAVING count(*) > 1"
    )


def test_joins_of_subqueries_have_the_rows_of_what_was_written(server: psycopg.Connection[Any]) -> None:
    """Rows and column names; exact: no false alarm is possible."""
    drawn = random.Random(20261129)
    changed = told = 0
    for _ in range(STATEMENTS):
        sql = _joined_statement(drawn)
        origin = _normalised(sql).origin
        if "pull_up_joins" not in origin.rules:
            continue
        changed += 1
        rows, names = _rows(server, sql)
        assert _rows(server, origin.text) == (rows, names), (sql, origin.text)
        assert "visits" in origin.text
        told += bool(rows)
    assert changed >= STATEMENTS * 0.6, changed
    assert told >= STATEMENTS * 0.4, told


@pytest.mark.parametrize(
    "condition",
    [
        "ward IN (SELECT name FROM regions WHERE region = 'West')",
        "ward NOT IN (SELECT r.name FROM regions r WHERE r.region <> 'West' OR r.name LIKE 'F%')",
        "NOT (ward IN (SELECT name FROM public.regions) AND age > 2)",
    ],
)
def test_a_list_of_pinned_values_keeps_the_rows(server: psycopg.Connection[Any], condition: str) -> None:
    """Exact: no false alarm is possible."""
    sql = f"SELECT ward FROM visits WHERE {condition} GROUP BY ward HAVING count(*) > 3"
    origin = _normalised(sql).origin
    assert "SELECT name" not in origin.text
    written = sql.replace("public.", "")
    assert _rows(server, origin.text) == _rows(server, written)


_KEYED = ("ward", "day", "hour", "v.ward", "v.hour")
_COMPUTED = (
    "(age > 2)",
    "v.age IS NULL",
    "left(ward, 1)",
    "(hour / 2)",
    "floor(cost / 2)",
    "extract(dow FROM v.arrived)",
    "(CASE WHEN age > 3 THEN 'old' WHEN v.insured THEN 'in' END)",
    "date_trunc('week', v.arrived)",
    "width_bucket(v.cost, 0, 4, 2)",
    "to_char(day, 'YYYY-MM')",
    "insured",
)


def _several_groupings(drawn: random.Random) -> str:
    first, other, third = drawn.choices(_KEYED if drawn.random() < 0.4 else _KEYED + _COMPUTED, k=3)
    grouped = drawn.choice(
        (
            f"ROLLUP ({first}, {other})",
            f"CUBE ({first}, {other})",
            f"{first}, ROLLUP (({other}, {third}))",
            f"GROUPING SETS ({first}, ({other}, {third}), ())",
            f"GROUPING SETS (({first}), ROLLUP ({other}, {third}))",
            f"ROLLUP ({first}), CUBE ({other})",
        )
    )
    keys = [one for one in (first, other, third) if one in grouped]
    shown = [
        drawn.choice((key, f"{key} AS k{at}", f"grouping({key})", f"coalesce({key}::text, 'all') AS c{at}"))
        for at, key in enumerate(keys)
    ]
    shown.append(f"grouping({', '.join(keys)}) AS level")
    shown += drawn.sample(["count(*) > 9 AS many", "count(v.ward)", "max(day) FILTER (WHERE hour > 1) AS last", "1"], 2)
    level = f"count(*) > CASE grouping({first}) WHEN 1 THEN 30 ELSE 12 END"
    having = drawn.choice(
        ("count(*) > 20", f"count(hour) > 12 OR grouping({first}) = 1", f"{first} IS NULL", level, "")
    )
    after = f" HAVING {having}" if having else ""
    if drawn.random() < 0.2:
        after += f" ORDER BY {len(shown)}, {shown[0].partition(' AS ')[0]}"
    distinct = "DISTINCT " if drawn.random() < 0.2 else ""
    return f"SELECT {distinct}{', '.join(shown)} FROM visits v WHERE age < 5 GROUP BY {grouped}{after}"


def test_groupings_that_are_written_out_have_the_rows_of_the_ones_that_were_written(
    server: psycopg.Connection[Any],
) -> None:
    """Rows as often as they come, names and types; exact: no false alarm is possible."""
    drawn = random.Random(20261128)
    changed = 0
    for _ in range(STATEMENTS):
        sql = _several_groupings(drawn)
        origin = _normalised(sql).origin
        if origin.edits:
            changed += 1
            assert _rows(server, origin.text) == _rows(server, sql), (sql, origin.text)
    assert changed >= STATEMENTS * 0.7, changed


_WITH_SIZES = [
    "SELECT day, sum(n) AS n, sum(c) / sum(n) AS mean, max(most), sum(n) FROM (SELECT day, ward, count(*) AS n, "
    "sum(cost) AS c, max(age) AS most FROM visits v WHERE age > 1 GROUP BY 1, 2) m GROUP BY day HAVING sum(n) > 9 "
    "ORDER BY n",
    "WITH m AS (SELECT v.ward AS w, hour + 1 AS h, insured, count(age) FILTER (WHERE age > 3) AS n FROM visits v "
    "GROUP BY 1, 2, insured) SELECT h, w, sum(n) / 2 AS half FROM m GROUP BY m.w, 1 HAVING sum(n) > 3",
    "WITH q AS (SELECT day, ward, count(*) AS n, sum(age) AS s FROM visits GROUP BY 1, 2), "
    "r AS (SELECT q.*, rank() OVER (PARTITION BY day ORDER BY n DESC) AS place FROM q WHERE ward <> 'B') "
    "SELECT day, ward, n, n > 11 AS large FROM r WHERE place <= 2 AND (s > 40 OR n > 12) AND n < 30",
    "SELECT * FROM (SELECT *, dense_rank() OVER (ORDER BY n) FROM (SELECT ward, count(*) AS n FROM visits GROUP BY 1) "
    "q) r WHERE dense_rank < 3 OR n BETWEEN 40 AND 60",
    "SELECT DISTINCT ON (1) day AS d, q.ward, n AS most FROM (SELECT day, ward, count(*) AS n FROM visits GROUP BY 1, 2"
    ") q WHERE ward IS NOT NULL ORDER BY d DESC, n DESC, ward",
    "SELECT * FROM (SELECT ward, count(*) AS n, sum(age) AS s FROM visits GROUP BY 1) q ORDER BY s DESC, ward LIMIT 2",
    "SELECT ward, n * 100 / sum(n) OVER () AS pct, round(s / 2.0), s - lag(s) OVER (ORDER BY ward), n FROM (SELECT "
    "ward, count(*) AS n, sum(age) AS s FROM visits GROUP BY 1) q WHERE n > 20 ORDER BY 1",
    "WITH a AS (SELECT ward, count(*) AS n FROM visits GROUP BY 1), b AS (SELECT ward, n AS m FROM a LIMIT 9), "
    "c AS (SELECT *, m / 2 AS half FROM b WHERE m > 30) SELECT c.ward, half FROM c WHERE NOT (m > 90 OR ward = 'A')",
    "SELECT a.ward, n, m FROM (SELECT ward, count(*) AS n FROM visits WHERE age > 1 GROUP BY 1) a JOIN (SELECT v.ward "
    "AS w, count(*) AS m FROM visits v GROUP BY v.ward) b ON w = ward WHERE n > 10 AND (b.m < 60 OR b.m > 70)",
    "WITH a AS (SELECT ward, count(*) AS n FROM visits WHERE insured GROUP BY 1), b AS (SELECT ward, count(*) AS n "
    "FROM visits WHERE NOT insured GROUP BY 1) SELECT ward FROM a JOIN b USING (ward) WHERE a.n > 5 AND b.n < 99",
]


@in_turn("sql", _WITH_SIZES)
def test_numbers_and_ranks_of_subqueries_keep_the_rows(server: psycopg.Connection[Any], sql: str) -> None:
    """Exact: no false alarm is possible."""
    read = normalise(EditedQuery(parse(sql, read_tokens(sql)), Origin(sql)), retail().replace_numbers("null"))
    assert read.origin.edits
    rows, names = _rows(server, sql)
    assert rows
    assert _rows(server, read.origin.text) == (rows, names), read.origin.text


def test_a_position_is_where_the_word_was_written() -> None:
    """Every kept word of a flattened statement is found again in the original one."""
    drawn = random.Random(5)
    for _ in range(STATEMENTS // 4):
        sql = _statement(drawn)
        origin = _normalised(sql).origin
        if origin.edits:
            at = origin.text.index("GROUP BY")
            assert sql[origin.find_offset(at) :].startswith("GROUP BY"), (sql, origin.text)
