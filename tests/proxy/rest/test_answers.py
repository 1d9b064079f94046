"""Answers in pages, as lines and as CSV: the same keys in every form, and memory that does not grow with them."""

import asyncio
import csv
import io
import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.responses import StreamingResponse

from accountant.charges import Spent, StoredAnswer
from proxy.cli import check as checking
from proxy.open_policy.service import Service
from proxy.pipeline.messages import Denial, KeySet, from_bytes
from proxy.rest import page_cache as rest_kept
from proxy.rest.answers import CSV, FORMS, JSON, LINES, SLICE_KEYS, KeyRange, Reply, choose_media_type, make_response
from proxy.rest.app import create_app
from proxy.rest.page_cache import KeySetCache
from tests.accountant.verbs.test_idempotency import CHARGE
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.proxy.rest.test_app import ADA, refused, send
from tests.worlds.rest_house import UNHURRIED
from tests.worlds.wards import TOKENS, install

BOB = {"Authorization": f"Bearer {TOKENS['bob']}"}
DAYS = "SELECT day, ward FROM visits GROUP BY day, ward HAVING count(*) > {}"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    path = install(tmp_path_factory.mktemp("wards"))
    checking.check(path, confirm=False)
    with Service.open(path) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(service: Service) -> FastAPI:
    return create_app(service, UNHURRIED)


def ask(app: FastAPI, query: str = "", *, threshold: int = 40, accept: str = JSON, **fields: Any) -> httpx.Response:
    """Ward A has 107 or 108 visits on each of the 28 days, the others two at most."""
    body = {"sql": DAYS.format(threshold), "tolerance": "40%", **fields}
    return send(app, "POST", f"/v1/question{query}", headers=ADA | {"Accept": accept}, json=body)


def page(app: FastAPI, cursor: str, size: int, headers: dict[str, str] = ADA) -> httpx.Response:
    return send(app, "GET", f"/v1/answer?cursor={cursor}&page_size={size}", headers=headers)


def test_pages_together_are_the_answer_and_cost_nothing(app: FastAPI, service: Service) -> None:
    first = ask(app, "?page_size=10").json()
    events = service.ledger.verify_everything()
    keys, following, pages = first["keys"], first["next"], 1
    while following is not None:
        found = page(app, following, 10).json()
        assert found["count"] == first["count"]
        assert found["data_version"] == first["data_version"]
        keys, following, pages = keys + found["keys"], found["next"], pages + 1
    assert len(keys) == first["count"] >= 20
    assert pages == -(-len(keys) // 10)
    whole = ask(app).json()
    assert (whole["keys"], whole["next"]) == (keys, None)
    assert service.ledger.verify_everything() == events


def test_an_answer_that_pages_are_read_from_is_decoded_once(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    cursor = ask(app, "?page_size=10", threshold=43).json()["next"]
    decoded: list[bytes] = []

    def counting(stored: bytes) -> KeySet | Denial:
        decoded.append(stored)
        return from_bytes(stored)

    monkeypatch.setattr(rest_kept, "from_bytes", counting)
    pages = [page(app, cursor, 5) for _ in range(3)]
    assert len(decoded) == 1
    assert {answer.content for answer in pages} == {pages[0].content}
    refused(page(app, cursor, 5, BOB), "KH408", status=404)  # being kept, it is nobody else's yet


def stored(reservation: str, keys: int) -> StoredAnswer:
    released = KeySet(("ward",), tuple((str(number),) for number in range(keys)))
    return StoredAnswer(
        reservation, CHARGE, Spent.from_uniform(1, unit_epsilon_nano=0), released.to_bytes(), is_held=True
    )


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), max_size=40))
def test_of_kept_key_sets_there_are_never_too_many(reads: list[tuple[int, int]]) -> None:
    kept, sizes = KeySetCache(most_keys=8), dict(reads)
    for number, _ in reads:
        found = kept.find_keys(stored(str(number), sizes[number]))
        assert found is not None
        assert len(found.keys) == sizes[number]
        assert len(kept) <= max(8, sizes[number])
    assert kept.find_keys(replace(stored("denied", 0), answer=Denial().to_bytes())) is None


def test_a_page_says_where_the_next_one_is(app: FastAPI) -> None:
    answer = ask(app, "?page_size=10")
    assert answer.headers["link"] == f'</v1/answer?cursor={answer.json()["next"]}&page_size=10>; rel="next"'


def test_a_cursor_of_another_analyst_is_unknown_until_he_has_read_the_answer(app: FastAPI, service: Service) -> None:
    cursor = ask(app, "?page_size=10").json()["next"]
    mine = page(app, cursor, 5)
    assert mine.status_code == 200
    before = service.ledger.verify_everything()
    others = page(app, cursor, 5, BOB)
    unknown = page(app, f"{'0' * 32}-10", 5, BOB)
    assert others.json() == unknown.json()
    refused(others, "KH408", status=404)
    assert service.ledger.verify_everything() == before


@in_turn(
    "cursor",
    [
        "",
        "x",
        "-",
        "{r}",
        "{r}-",
        "{r}--1",
        "{r}-0",
        "{r}-100000",
        "{r}-9999999999",
        "{R}-10",
        "{r}-10%00",
        "{r}-1%C2%B2",
    ],
)
def test_a_cursor_that_was_never_given_is_unknown(app: FastAPI, cursor: str) -> None:
    reservation = ask(app, "?page_size=10").json()["next"].partition("-")[0]
    sent = cursor.replace("{r}", reservation).replace("{R}", reservation.upper())
    if sent != f"{reservation}-10":
        refused(page(app, sent, 5), "KH408", status=404)


@in_turn("size", ["0", "-1", "100001", "1.5", "x", "1e3", ""])
def test_pages_have_a_size(app: FastAPI, service: Service, size: str) -> None:
    before = service.ledger.verify_everything()
    refused(ask(app, f"?page_size={size}", threshold=41), "KH408", status=400)
    assert service.ledger.verify_everything() == before


def test_lines_and_csv_have_the_same_keys(app: FastAPI) -> None:
    whole = ask(app).json()
    lines = ask(app, accept=LINES)
    assert lines.headers["content-type"] == LINES
    head, *keys = [json.loads(line) for line in lines.text.splitlines()]
    assert keys == whole["keys"]
    assert head == {name: value for name, value in whole.items() if name not in ("keys", "shown")} | {
        "reused": True,
        "cost": None,
    }
    table = ask(app, accept=CSV)
    assert table.headers["content-type"].startswith(CSV)
    names, *rows = csv.reader(io.StringIO(table.text, newline=""))
    assert (names, rows) == (whole["columns"], whole["keys"])
    assert json.loads(table.headers["keyhole-guarantee"]) == whole["guarantee"]["sentence"]
    assert table.headers["keyhole-count"] == str(whole["count"])
    assert "keyhole-cost" not in table.headers


def test_csv_says_what_it_cost(app: FastAPI) -> None:
    table = ask(app, accept=CSV, threshold=47, reuse="off")
    assert json.loads(table.headers["keyhole-cost"]).startswith("at most 0.")


def test_a_page_may_have_any_form(app: FastAPI) -> None:
    first = ask(app, "?page_size=10", accept=LINES)
    head = json.loads(first.text.splitlines()[0])
    assert len(first.text.splitlines()) == 11
    found = send(app, "GET", f"/v1/answer?cursor={head['next']}", headers=ADA | {"Accept": CSV})
    assert len(found.text.splitlines()) == 1 + head["count"] - 10


def test_nothing_is_asked_for_a_form_that_there_is_not(app: FastAPI, service: Service) -> None:
    before = service.ledger.verify_everything()
    refused(ask(app, accept="application/xml", threshold=42), "KH408", status=406)
    assert service.ledger.verify_everything() == before


@in_turn(
    ("accept", "form"),
    [
        (None, JSON),
        ("*/*", JSON),
        ("text/*", CSV),
        ("text/html, */*;q=0.1", JSON),
        ("application/x-ndjson", LINES),
        ("application/json;q=0.5, text/csv", CSV),
        ("application/json;q=0, */*", LINES),
        ("TEXT/CSV; charset=utf-8", CSV),
        ("*/*, text/csv", CSV),
        ("text/csv;q=2, application/x-ndjson;q=0.2", CSV),
    ],
)
def test_the_form_that_is_wanted_most(accept: str | None, form: str) -> None:
    assert choose_media_type([] if accept is None else [accept]) == form


def test_a_constant_answer_comes_whole(app: FastAPI) -> None:
    body = {"sql": "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 5 OR NOT count(*) > 5"}
    answer = send(app, "POST", "/v1/question?page_size=1", json=body).json()
    assert (len(answer["keys"]), answer["next"]) == (3, None)


def body_of(answer: Any) -> bytes:
    if not isinstance(answer, StreamingResponse):
        return bytes(answer.body)

    async def gather() -> bytes:
        return b"".join([piece async for piece in answer.body_iterator if isinstance(piece, bytes)])

    return asyncio.run(gather())


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=20), st.integers(0, 10), st.none() | st.integers(1, 30))
@example([("a\u2028b", "\x85"), ("\u2029", "c\n")], 0, None)
def test_every_key_survives_every_form(keys: list[tuple[str, str]], start: int, size: int | None) -> None:
    start = min(start, max(0, len(keys) - 1))
    head = {"data_version": "v\r\nSet-Cookie: a=b", "reused": False, "guarantee": {"sentence": "ä\r\nX: y"}}
    reply = Reply(head, KeySet(("a,\r\nb", "c"), tuple(keys)), "0" * 32)
    wanted = [list(key) for key in keys[start : None if size is None else start + size]]
    found = {form: make_response(reply, form=form, cut=KeyRange(start, size), headers={}) for form in FORMS}
    assert json.loads(body_of(found[JSON]))["keys"] == wanted
    # as Python and many a client count lines: U+2028 and its like end one
    assert [json.loads(line) for line in body_of(found[LINES]).decode().splitlines()[1:]] == wanted
    assert list(csv.reader(io.StringIO(body_of(found[CSV]).decode(), newline="")))[1:] == wanted
    for answer in found.values():
        assert not any(b"\r" in value or b"\n" in value for _, value in answer.raw_headers)


MANY_KEYS = rounds(1_000_000, quick=100_000)


@pytest.mark.parametrize(("form", "count"), [(LINES, MANY_KEYS), (JSON, 100_000), (CSV, 100_000)])
def test_a_million_keys_take_no_memory_of_their_own(form: str, count: int) -> None:
    keys = KeySet(("customer", "month"), tuple((f"{number:07}", "2011-03-01") for number in range(count)))
    answer = make_response(Reply({"data_version": "v"}, keys, "0" * 32), form=form, cut=KeyRange(), headers={})
    assert isinstance(answer, StreamingResponse)
    tracemalloc.start()

    async def consume() -> int:
        return sum([len(piece) async for piece in answer.body_iterator])

    try:
        sent = asyncio.run(consume())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent > 20 * count
    assert peak < 3_000_000


def test_a_long_answer_lets_others_have_their_turn() -> None:
    """Sending waits for nothing where the client has gone, or reads at once."""
    keys = KeySet(("customer",), tuple((str(number),) for number in range(20 * SLICE_KEYS)))
    answer = make_response(Reply({"data_version": "v"}, keys, "0" * 32), form=LINES, cut=KeyRange(), headers={})
    assert isinstance(answer, StreamingResponse)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def consume() -> None:
        neighbour = asyncio.create_task(other())
        async for _ in answer.body_iterator:
            pass
        neighbour.cancel()

    asyncio.run(consume())
    assert turns >= 20


def test_the_house_is_as_the_questions_think(tmp_path: Path) -> None:
    lines = (install(tmp_path).parent / "visits.csv").read_text(encoding="ascii").splitlines()
    counts = [sum(line.split(",")[1:4:2] == ["A", f"2026-01-{day:02}"] for line in lines) for day in range(1, 29)]
    assert set(counts) == {107, 108}
