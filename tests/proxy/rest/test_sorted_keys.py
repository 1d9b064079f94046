"""ORDER BY over REST: keys as the shadow's PostgreSQL sorts them, in the answer, its pages and its repetitions."""

import random
from collections.abc import Iterator

import httpx
import numpy as np
import psycopg
import pytest
from fastapi import FastAPI

from planner.scorecard.key_order import SortedColumn
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.pipeline.key_rows import KeyRows
from proxy.pipeline.messages import KeySet, from_bytes
from proxy.rest.app import create_app
from proxy.rest.sorted_keys import sort_keys
from proxy.shadow.address import OWNER, ShadowAddress
from tests.effort import rounds
from tests.proxy.rest.test_app import ADA, refused, send
from tests.worlds.rest_house import UNHURRIED
from tests.worlds.wards import install

ORDERS = (
    ("day, ward", "day DESC, ward"),
    ("day, ward", "2, 1 DESC"),
    ("day, ward", "ward NULLS FIRST, day DESC NULLS LAST"),
    ("day, ward", "visits.ward DESC, visits.day, ward ASC"),
    ("ward", "ward DESC, day DESC"),
    ("ward AS day, day AS ward", "day, ward DESC"),
    ("'x' AS kind, day, ward", "kind, 3 DESC, (2) DESC"),
    ("'x' AS kind, 7, day, ward", "2, 1, day DESC, 4"),
)


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FastAPI]:
    path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    with Service.open(path) as service:
        yield create_app(service, UNHURRIED)


@pytest.fixture(scope="module")
def postgresql(shadow: ShadowAddress) -> Iterator[psycopg.Cursor]:
    """The shadow, with its collation."""
    with psycopg.connect(shadow.make_conninfo(user=OWNER, database="retail"), autocommit=True) as connection:
        yield connection.cursor()


def ask(app: FastAPI, sql: str, query: str = "", key: str | None = None) -> httpx.Response:
    headers = ADA if key is None else ADA | {"Idempotency-Key": key}
    return send(app, "POST", f"/v1/question{query}", headers=headers, json={"sql": sql, "tolerance": "40%"})


def test_keys_are_sorted_as_postgresql_sorts_them(app: FastAPI, postgresql: psycopg.Cursor) -> None:
    """By names, aliases and positions, in an answer that is free."""
    usual = ask(app, "SELECT day FROM visits GROUP BY day, ward HAVING true").json()["keys"]
    days, wards = zip(*usual, strict=True)
    for shown, order in ORDERS:
        asked = f"SELECT {shown} FROM visits GROUP BY day, ward HAVING true ORDER BY {order}"
        postgresql.execute(
            f"SELECT {shown}, visits.day::text AS d, visits.ward AS w FROM unnest(%s::date[], %s::text[]) "
            f"AS visits(day, ward) GROUP BY visits.day, visits.ward ORDER BY {order}".encode(),
            [list(days), list(wards)],
        )
        expected = [list(row[-2:]) for row in postgresql.fetchall()]
        for form in (asked, f"  {asked.replace('FROM visits', 'FROM (SELECT ward, day FROM visits) AS visits')};"):
            answer = ask(app, form).json()
            assert answer["keys"] == expected != usual, (form, answer)


def test_pages_and_repetitions_keep_the_order(app: FastAPI) -> None:
    asked = "SELECT day, ward FROM visits GROUP BY day, ward HAVING count(*) > {} ORDER BY ward DESC, day DESC"
    for threshold, key in ((40, "stored"), (-1, "constant")):
        whole = ask(app, asked.format(threshold), "?page_size=10", key).json()
        assert ask(app, asked.format(threshold), "?page_size=10", key).json() == whole
        keys, following = whole["keys"], whole["next"]
        while following is not None:
            found = send(app, "GET", f"/v1/answer?cursor={following}&page_size=10").json()
            keys, following = keys + found["keys"], found["next"]
        assert len(keys) == whole["count"] >= 20
        assert keys == sorted(keys, key=lambda one: (one[1], one[0]), reverse=True)
    cursor = ask(app, asked.format(40), "?page_size=10").json()["next"]
    for other in (cursor.replace("1T0T", "1T7T"), cursor.replace("1T0T", "1N"), cursor.replace("1T0T", "1x")):
        assert other != cursor
        refused(send(app, "GET", f"/v1/answer?cursor={other}"), "KH408", status=404)


def test_a_scorecard_is_sorted_by_its_truths(app: FastAPI) -> None:
    listed = "SELECT ward, count(*) > 1500 AS big FROM visits GROUP BY ward ORDER BY"
    for order in ("big DESC, ward DESC", "2 DESC, 1 DESC", "count(*) > 1500 DESC, ward DESC"):
        answer = ask(app, f"{listed} {order}").json()
        assert answer["shown"]["rows"] == [["A", True], ["[bold]C", False], ["B", False]], order
        assert answer["keys"] == [["A", "true"], ["[bold]C", "false"], ["B", "false"]]


def test_what_cannot_be_sorted_by_is_refused_for_nothing(app: FastAPI) -> None:
    asked = "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 40 ORDER BY {}"
    ambiguous = refused(ask(app, asked.replace("day FROM", "day AS ward FROM").format("ward")), "KH201")
    assert ambiguous["title"] == 'ORDER BY "ward" is ambiguous'
    for order, code, at in (
        ("7", "KH215", "7"),
        ("ward, 0", "KH215", "0"),
        ("1.5", "KH100", "1.5"),
        ("'ward'", "KH100", "'ward'"),
        ("nothing", "KH201", "nothing"),
        ("age", "KH101", "age"),
        ("lower(ward)", "KH106", "lower(ward)"),
        ("ward LIMIT 3", "KH106", ""),
        ("ward OFFSET 3", "KH106", ""),
        ("ward FETCH FIRST ROW ONLY", "KH106", ""),
        ("ward FOR UPDATE", "KH106", ""),
    ):
        sql = "  " + asked.format(order)
        document = refused(ask(app, sql), code)
        found = document.get("position")
        assert at == "" or (found is not None and sql[found - 1 :].startswith(at)), (order, document)


def test_texts_and_numbers_are_sorted_as_by_postgresql(postgresql: psycopg.Cursor) -> None:
    """Of random keys, however they are held: 40 sets, 8 at quick."""
    drawn = random.Random(20261128)
    pieces = ("", " ", "a", "A", "b", "_", "-", "ä", "ß", "Z", "\u00a0", "\uffee", "\U0001f600", "10", "9")
    for _ in range(rounds(40, quick=8)):
        texts = tuple({"".join(drawn.choices(pieces, k=3)) for _ in range(30)})
        numbers = tuple({str(drawn.randint(-1000, 1000)) for _ in range(20)})
        rows = KeyRows(
            (texts, numbers), tuple(np.array(drawn.choices(range(len(of)), k=60), np.uint32) for of in (texts, numbers))
        )
        falling, rising = drawn.choice((("DESC", "ASC"), ("ASC", "DESC"))), drawn.choice((False, True))
        text, number = (SortedColumn(at, is_number=at == 1, descending=falling[at] == "DESC") for at in (0, 1))
        order, names = ((text, number), "k, n::int") if rising else ((number, text), "n::int, k")
        first, second = names.split(", ")
        ways = falling if rising else falling[::-1]
        postgresql.execute(
            f"SELECT k, n FROM unnest(%s::text[], %s::text[]) AS u(k, n) "
            f"ORDER BY {first} {ways[0]}, {second} {ways[1]}".encode(),
            [list(column) for column in rows.arrays],
        )
        expected = [tuple(row) for row in postgresql.fetchall()]
        for keys in (rows, tuple(rows)):
            assert list(sort_keys(KeySet(("k", "n"), keys), order).keys) == expected


def test_a_truth_that_is_null_is_kept_and_sorted_as_postgresql_does() -> None:
    """NULL is behind true unless the order says otherwise, also among keys that are packed."""
    rows = (("a", None), ("b", "true"), ("c", "false"))
    packed = KeyRows(
        (("a", "b", "c"), ("false", "true", None)),
        (np.array([0, 1, 2], dtype=np.uint32), np.array([2, 1, 0], dtype=np.uint32)),
    )
    for keys in (rows, packed):
        kept = from_bytes(KeySet(columns=("ward", "up"), keys=keys).to_bytes())
        assert isinstance(kept, KeySet)
        for (descending, unusual), wanted in {
            (False, False): "cba", (True, False): "abc", (False, True): "acb", (True, True): "bca"
        }.items():  # fmt: skip
            order = (SortedColumn(1, is_number=False, descending=descending, has_unusual_nulls=unusual),)
            assert "".join(str(ward) for ward, _ in sort_keys(kept, order).keys) == wanted
