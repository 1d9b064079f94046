"""Answers as JSON, JSON lines or CSV, whole or one page. Large answers are sent in pieces."""

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response, StreamingResponse

from accountant.charges import StoredAnswer
from accountant.errors import LedgerError
from planner.catalog.catalog import Analyst
from planner.explain.numbers_told import write_numbers_json
from planner.scorecard.key_order import KeyOrder, SortedColumn
from planner.scorecard.select_list import SelectList, read_select_list
from proxy.open_policy.service import Service
from proxy.open_policy.service_refusals import report_unavailable_ledger
from proxy.pipeline.messages import Answer, Asked, KeySet, from_bytes
from proxy.rest.page_cache import KeySetCache
from proxy.rest.request_refusals import refuse_unknown_cursor, refuse_unknown_form
from proxy.rest.sorted_keys import LabelledKeys, show_keys
from proxy.shadow.key_labels import KeyLabels

JSON, LINES, CSV = "application/json", "application/x-ndjson", "text/csv"
FORMS = (JSON, LINES, CSV)
SLICE_KEYS = 2_000  # made text at a time: memory held for an answer, against turns between sending and making
MOST_PAGE_KEYS = 100_000  # one page of JSON is held whole while it is sent
_CURSOR = re.compile(r"([0-9a-f]{32})-([0-9]{1,9})(?:-((?:[0-9]{1,4}[tTnN])+))?")
_SORTED_COLUMN = re.compile(r"([0-9]+)([tTnN])(!?)")
LONGEST_CURSOR = 2_000  # as many sorted columns as a question has predicates, and more
_WEIGHT = re.compile(r"q=(0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)")


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply to a question: the answer's keys, and the rest of its JSON document.

    `head` is the document without the keys. `reservation` is the one under which the keys are stored, or None for a
    constant answer. `select_list` is the select list of a scorecard, or None if it is unknown or only PostgreSQL could
    run it. `order` is the order of the keys. `labels` are the displayed forms of computed keys.
    """

    head: Mapping[str, Any]
    keys: KeySet | LabelledKeys
    reservation: str | None
    select_list: SelectList | None = None
    order: KeyOrder = ()
    labels: KeyLabels | None = None

    @staticmethod
    def from_answer(answer: Answer, asked: Asked, labels: KeyLabels | None) -> "Reply":
        """Return the reply for an answer that was just given. `labels` are the displayed forms of computed keys."""
        keys = show_keys(answer.keys, labels, asked.order)
        head = {**answer.make_head(), "numbers": write_numbers_json(asked.question.numbers)}
        shown = read_select_list(asked.question)
        return Reply(
            head=head, keys=keys, reservation=answer.reservation, select_list=shown, order=asked.order, labels=labels
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the key columns, then of the predicates.

        Predicates have the names of the promise, if there is one.
        """
        names = tuple(self.head.get("guarantee", {}).get("predicates", ()))
        return self.keys.columns[: len(self.keys.columns) - len(names)] + names


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The range of keys to send: `size` keys starting at number `start`, or all keys from there if `size` is None."""

    start: int = 0
    size: int | None = None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """The start of a page of keys in a stored answer.

    `reservation` is the one that stored the answer, and `start` is the number of the page's first key in the order
    `order`. A cursor need not be secret, since only analysts who have paid for the answer, or read it, may use it.
    """

    reservation: str
    start: int
    order: KeyOrder = ()

    @staticmethod
    def parse(text: str) -> "PageCursor":
        """Parse a cursor from its text. Raise KH408 if the text is malformed."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise refuse_unknown_cursor()
        return PageCursor(match[1], int(match[2]), read_order(match[3] or ""))

    def __str__(self) -> str:
        order = write_order(self.order)
        return f"{self.reservation}-{self.start}" + (f"-{order}" if order else "")


def write_order(order: KeyOrder) -> str:
    """Return an order of keys as text, for cursors and stored replies."""
    kinds = (("tTnN"[one.is_number * 2 + one.descending], "!" * one.has_unusual_nulls) for one in order)
    return "".join(f"{one.index}{kind}{astray}" for one, (kind, astray) in zip(order, kinds, strict=True))


def read_order(text: str) -> KeyOrder:
    """Parse an order of keys from the text of `write_order`."""
    return tuple(
        SortedColumn(int(place), is_number=kind in "nN", descending=kind in "TN", has_unusual_nulls=bool(astray))
        for place, kind, astray in _SORTED_COLUMN.findall(text)
    )


def find_stored_reply(service: Service, cursor: PageCursor, analyst: Analyst, *, kept: KeySetCache) -> Reply:
    """Return the stored answer that a cursor names, as a reply.

    Raise KH408 unless the analyst has paid for the answer or read it. Raise KH502 if the ledger is not available.
    """
    stored = _find_stored_answer(service, cursor.reservation, analyst)
    try:
        keys = None if stored is None else kept.find_keys(stored, cursor.order)
    except (IndexError, ValueError):  # nobody was given such an order
        raise refuse_unknown_cursor() from None
    if stored is None or keys is None or not 0 < cursor.start < len(keys.keys):
        raise refuse_unknown_cursor()
    head = {"data_version": stored.charge.family.version}
    return Reply(head=head, keys=keys, reservation=stored.reservation, order=cursor.order)


def find_stored_keys(service: Service, reservation: str, analyst: Analyst) -> KeySet | None:
    """Return the key set that a reservation stored, or None unless the analyst has paid for it or read it.

    Raise KH502 if the ledger is not available.
    """
    stored = _find_stored_answer(service, reservation, analyst)
    return None if stored is None else _read_keys(stored)


def _find_stored_answer(service: Service, reservation: str, analyst: Analyst) -> StoredAnswer | None:
    try:
        return service.ledger.idempotency.find_answer(reservation, analyst=analyst.name)
    except LedgerError:
        raise report_unavailable_ledger() from None


def _read_keys(stored: StoredAnswer) -> KeySet | None:
    released = from_bytes(stored.answer)
    return released if isinstance(released, KeySet) else None


def choose_media_type(accept: Sequence[str]) -> str:
    """Return the response's media type, chosen by the Accept headers. Raise KH408 if none fits.

    The media type with the highest weight is chosen. Among equal weights, the most exactly named one is chosen.
    """
    ranges = [part for header in accept or ("*/*",) for part in header.split(",")]
    wanted = [(_weigh(form, ranges), form) for form in FORMS]
    (weight, _), form = max(wanted, key=lambda one: one[0])
    if weight == 0:
        raise refuse_unknown_form(FORMS)
    return form


def _weigh(form: str, ranges: Sequence[str]) -> tuple[float, int]:
    """Return the weight of the most exact Accept range for a media type, and its exactness (RFC 9110, 12.5.1)."""
    weight, exactness = 0.0, -1
    for part in ranges:
        media, *parameters = (piece.strip().lower() for piece in part.split(";"))
        covers = {form: 2, f"{form.partition('/')[0]}/*": 1, "*/*": 0}
        if covers.get(media, -1) > exactness:
            said = [float(match[1]) for one in parameters if (match := _WEIGHT.fullmatch(one))]
            weight, exactness = said[0] if said else 1.0, covers[media]
    return weight, exactness


def make_response(reply: Reply, *, form: str, cut: KeyRange, headers: Mapping[str, str]) -> Response:
    """Return the HTTP response with a range of the keys, in the media type `form`.

    Guarantee: besides the key set, memory holds at most `SLICE_KEYS` keys as text, and sent text that the client has
    not read. A short answer has a Content-Length, and a long one is sent in chunks.
    """
    count = len(reply.keys.keys)
    end = count if cut.size is None else min(count, cut.start + cut.size)
    # a reply that is stored nowhere, or otherwise than it is shown, cannot be continued, and comes whole
    paged = cut.size is not None and reply.reservation is not None and reply.labels is None
    end = end if paged else count
    following = (
        PageCursor(reply.reservation, end, reply.order)
        if paged and reply.reservation is not None and end < count
        else None
    )
    head = {**reply.head, "count": count, "next": None if following is None else str(following)}
    pieces = _WRITERS[form](reply, head, cut.start, end)
    own = dict(headers)
    if following is not None:
        own["Link"] = f'</v1/answer?cursor={following}&page_size={cut.size}>; rel="next"'
    if form == CSV:
        own |= {f"Keyhole-{name}": value for name, value in _make_headers(head).items()}
        form = "text/csv; charset=utf-8; header=present"
    if end - cut.start <= SLICE_KEYS:
        return Response(b"".join(pieces), media_type=form, headers=own)
    return StreamingResponse(_yield_pieces(pieces), media_type=form, headers=own)


async def _yield_pieces(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
        await asyncio.sleep(0)  # what is sent to nobody, or read at once, waits for nothing: let others have their turn


def _slice_keys(keys: KeySet | LabelledKeys, start: int, end: int) -> Iterator[Sequence[tuple[str | None, ...]]]:
    for first in range(start, end, SLICE_KEYS):
        yield keys.keys[first : min(first + SLICE_KEYS, end)]


def _write_compact(document: Any) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def _write_json(reply: Reply, head: Mapping[str, Any], start: int, end: int) -> Iterator[bytes]:
    yield f'{{"columns":{_write_compact(reply.columns)},"keys":['.encode()
    yield from _list_items(_slice_keys(reply.keys, start, end))
    yield b"],"
    if (shown := reply.select_list) is not None:
        yield f'"shown":{{"columns":{_write_compact(shown.names)},"rows":['.encode()
        yield from _list_items([shown.show(key) for key in slice_] for slice_ in _slice_keys(reply.keys, start, end))
        yield b"]},"
    elif "guarantee" in reply.head:  # no page, of whose question nothing is known
        yield b'"shown":null,'
    yield _write_compact(head)[1:].encode()


def _list_items(slices: Iterable[Sequence[Any]]) -> Iterator[bytes]:
    before = ""
    for slice_ in slices:
        yield (before + ",".join(map(_write_compact, slice_))).encode()
        before = ","


def _write_lines(reply: Reply, head: Mapping[str, Any], start: int, end: int) -> Iterator[bytes]:
    yield _escape_line_ends(f"{_write_compact({'columns': reply.columns, **head})}\n").encode()
    for slice_ in _slice_keys(reply.keys, start, end):
        yield _escape_line_ends("".join(f"{_write_compact(key)}\n" for key in slice_)).encode()


def _escape_line_ends(lines: str) -> str:
    """Return lines of JSON in which only a line feed ends a line. All other line separators are escaped."""
    if lines.isascii():
        return lines
    return lines.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _write_csv(reply: Reply, _: Mapping[str, Any], start: int, end: int) -> Iterator[bytes]:
    yield _write_csv_lines((reply.columns,))
    for slice_ in _slice_keys(reply.keys, start, end):
        yield _write_csv_lines(slice_)


def _write_csv_lines(rows: Sequence[tuple[str | None, ...]]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerows(rows)
    return written.getvalue().encode()


_WRITERS: Mapping[str, Callable[[Reply, Mapping[str, Any], int, int], Iterator[bytes]]] = {
    JSON: _write_json,
    LINES: _write_lines,
    CSV: _write_csv,
}


def _make_headers(head: Mapping[str, Any]) -> dict[str, str]:
    """Return the head of a reply as ASCII headers, for CSV.

    Texts are JSON strings, so nothing in them can end a header.
    """
    told = {"Count": str(head["count"]), "Data-Version": json.dumps(head["data_version"])}
    if head["next"] is not None:
        told["Next"] = head["next"]
    if "guarantee" in head:
        told |= {"Reused": json.dumps(head["reused"]), "Guarantee": json.dumps(head["guarantee"]["sentence"])}
    if head.get("cost") is not None:
        told["Cost"] = json.dumps(head["cost"]["sentence"])
    return told
