"""The queue of answers expected from the shadow. It decides who gets each answer, and does no I/O.

The answer to each message of the extended protocol has exactly one final frame. An error ends the answers to all
messages up to the next Sync. So the queue knows for each received frame whether the client or Keyhole asked for it.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from proxy.wire import backend
from proxy.wire.backend import CommandComplete, Report, RowDescription
from proxy.wire.frames import Frame


class AnswerEnd(Enum):
    """The type of the frame that ends the answer to a message. Each type of message has one."""

    PARSE = auto()
    BIND = auto()
    CLOSE = auto()
    DESCRIBE = auto()
    EXECUTE = auto()
    SYNC = auto()
    QUERY = auto()  # an error does not end it: ReadyForQuery does


_LETTERS = {
    AnswerEnd.PARSE: b"1",
    AnswerEnd.BIND: b"2",
    AnswerEnd.CLOSE: b"3",
    AnswerEnd.DESCRIBE: b"Tn",
    AnswerEnd.EXECUTE: b"CIs",
    AnswerEnd.SYNC: b"Z",
    AnswerEnd.QUERY: b"Z",
}

_TO_READY = frozenset(ending for ending, letters in _LETTERS.items() if letters == b"Z")
ALL = frozenset(range(256))  # every byte that a frame can begin with
NOTHING: frozenset[int] = frozenset()
ERROR = frozenset({ord("E")})
ROWS = frozenset(map(ord, "DCIENHdc"))  # H, d and c are what COPY sends
DESCRIPTION = frozenset(map(ord, "TEN"))
_RESULT = frozenset(map(ord, "DC"))
_RUN = frozenset(map(ord, "Cs"))
# DISCARD ALL is one by itself
_TRANSACTIONS = (b"BEGIN", b"START TRANSACTION", b"COMMIT", b"ROLLBACK", b"DISCARD ALL")
_FORGET = (b"DEALLOCATE", b"DISCARD ALL")
_LISTENS = (b"LISTEN", b"UNLISTEN", b"DISCARD ALL")
_TOO_LARGE = (b"53200", b"53400")  # out of memory, and of temporary files
_SHORT_BYTES = 2 * 1024  # of a text that is held for the hint of its error: with a thousand unanswered, two megabytes
_ALWAYS = frozenset(map(ord, "SA"))  # ParameterStatus, NotificationResponse
_STATUS, _READY = ord("S"), ord("Z")


@dataclass(slots=True)
class ExpectedAnswer:
    """The expected answer to one message. Frames whose type is in `shown_frames` go to the client; others are kept.

    `tag` replaces the tag of a CommandComplete. `offset` is added to an error's position; None removes the position.
    `text` is the SQL to which error positions refer, if it is short. `when_too_large` is the hint for an error about
    exhausted memory or disk. `described_columns` has columns with their tables: a row description with the same
    columns gets these tables.

    `waits_for_rows` makes the description wait for the first row or the end of what follows. A simple query waits so if
    its whole result is made before any of it is shown. If an error comes first, the description is dropped.
    """

    ending: AnswerEnd
    shown_frames: frozenset[int] = ALL
    tag: bytes | None = None
    offset: int | None = 0
    waits_for_rows: bool = False
    text: bytes = b""
    when_too_large: bytes = b""
    described_columns: RowDescription | None = None
    kept_frames: list[Frame] = field(default_factory=list)
    is_complete: bool = False
    failed: bool = False

    def find_frame(self, kind: str) -> Frame | None:
        """Return the first kept frame of that type, or None."""
        return next((frame for frame in self.kept_frames if frame.kind == ord(kind)), None)


class AnswerQueue:
    """The queue of expected answers, and the state of the session as the shadow's replies have shown it.

    `skipping` is True if the shadow ignores every message after an error, until a Sync is sent. `status` is the status
    of the last ReadyForQuery.

    Counters: `readies` counts ReadyForQuery messages, `errors` errors, and `completed` finished answers. `forgotten`
    counts commands that deallocate prepared statements. `listened` counts commands that change the session's channels
    once their transaction commits. `executed` counts the client's Executes in batches. If `executed` exceeds `told`,
    settings may have changed. The shadow reports changed settings only with the next ReadyForQuery.

    `ran` is True if the client has executed something in the open transaction since the last ReadyForQuery, even in
    part. PostgreSQL then treats what follows as part of a transaction block. `bound` is True if the client has made
    portals. `mend_error` gets each error with the SQL that failed, and returns the error to send.
    """

    def __init__(self) -> None:
        self.skipping = False
        self.status = b"I"
        self.readies = 0
        self.forgotten = 0
        self.listened = 0
        self.ran = False
        self.bound = False
        self.executed = 0
        self.told = 0
        self.errors = 0
        self.completed = 0
        self.mend_error: Callable[[Frame, bytes], Frame] = _return_unchanged
        self._description = b""
        self._statuses: list[bytes] = []  # that came before a ReadyForQuery which the client does not see
        self._queue: deque[ExpectedAnswer] = deque()

    @property
    def is_fresh(self) -> bool:
        """Return True if a Sync now would end nothing that the client has begun.

        The client has neither run nor bound anything since the last Sync, or since the end of a transaction.
        """
        return not (self.ran or self.bound)

    @property
    def has_failed(self) -> bool:
        """Return True if the transaction had failed at the last ReadyForQuery, and nothing has ended it since."""
        return self.status == b"E" and self.executed == self.told

    @property
    def is_settled(self) -> bool:
        """Return True if no more answers are expected."""
        return not self._queue

    @property
    def waiting(self) -> int:
        """Return the number of answers still expected."""
        return len(self._queue)

    def expect(self, expected: ExpectedAnswer) -> ExpectedAnswer:
        """Add the expected answer to a message that is being sent, and return that answer."""
        if self.skipping:
            if expected.ending is not AnswerEnd.SYNC:
                expected.is_complete = expected.failed = True
                return expected
            self.skipping = False
        self._queue.append(expected)
        return expected

    def take_frame(self, frame: Frame) -> bytes:
        """Process a received frame, and return the bytes for the client."""
        if not self._queue:
            return frame.raw
        current = self._queue[0]
        if frame.kind == _STATUS and current.ending in _TO_READY and _READY not in current.shown_frames:
            self._statuses.append(frame.raw)  # PostgreSQL tells it just before the ReadyForQuery of the whole text
            return b""
        if frame.kind in _ALWAYS:
            return frame.raw
        shown = self._show_frame(current, frame)
        if frame.kind == ord("C") and frame.payload.startswith(_FORGET):
            self.forgotten += 1
        if frame.kind == ord("C") and frame.payload.startswith(_LISTENS):
            self.listened += 1
        if frame.kind == ord("C") and current.ending is AnswerEnd.EXECUTE and frame.kind in current.shown_frames:
            self.ran = not frame.payload.startswith(_TRANSACTIONS)
            self.bound = self.bound and self.ran
        if current.ending is AnswerEnd.BIND and frame.kind in current.shown_frames:
            self.bound = True
        if frame.kind in _RUN and current.ending is AnswerEnd.EXECUTE and frame.kind in current.shown_frames:
            self.executed += 1
            self.ran = self.ran or frame.kind == ord("s")
        if frame.kind == ord("E"):
            self._drop_until_sync(current)
        elif frame.kind in _LETTERS[current.ending]:
            current.is_complete = True
            self.completed += 1
            self._queue.popleft()
            if frame.kind == ord("Z"):
                self.status = frame.raw[5:6]
                self.readies += 1
                self.ran = self.bound = False
                self.told = self.executed
        return shown

    def _show_frame(self, current: ExpectedAnswer, frame: Frame) -> bytes:
        if frame.kind == ord("E"):
            frame = self.mend_error(frame, current.text)
        if frame.kind not in current.shown_frames:
            current.kept_frames.append(frame)
            return b""
        if frame.kind == ord("E"):
            self._description = b""
            told = _add_hint(frame, current.when_too_large) if current.when_too_large else frame
            return told.raw if current.offset == 0 else _shift_error(told, current.offset)
        if frame.kind == ord("T") and current.waits_for_rows:
            self._description = frame.raw
            return b""
        raw = frame.raw
        if frame.kind == ord("T") and current.described_columns is not None:
            raw = _name_tables(frame, current.described_columns)
        if frame.kind == ord("C") and current.tag is not None:
            raw = CommandComplete(current.tag).encode()
        if self._description and frame.kind in _RESULT:
            raw, self._description = self._description + raw, b""
        if frame.kind == _READY and self._statuses:
            raw = b"".join(self._statuses) + raw
            self._statuses.clear()
        return raw

    def _drop_until_sync(self, current: ExpectedAnswer) -> None:
        self.errors += 1
        if current.ending is AnswerEnd.QUERY:
            current.failed = True
            return
        while self._queue and self._queue[0].ending is not AnswerEnd.SYNC:
            dropped = self._queue.popleft()
            dropped.is_complete = dropped.failed = True
        self.skipping = not self._queue


def keep_if_short(sql: bytes) -> bytes:
    """Return the SQL of a message if it is short enough to be kept for error positions. Otherwise return b""."""
    return sql if len(sql) <= _SHORT_BYTES else b""


def _return_unchanged(frame: Frame, _: bytes) -> Frame:
    """Return the frame of an error unchanged."""
    return frame


def _name_tables(frame: Frame, described_columns: RowDescription) -> bytes:
    """Return a row description with the tables of `described_columns`, if both have the same columns."""
    described = backend.decode(frame)
    if not isinstance(described, RowDescription) or described.signature != described_columns.signature:
        return frame.raw
    fields = zip(described.fields, described_columns.fields, strict=True)
    return RowDescription(
        tuple(replace(field, table=place.table, column=place.column) for field, place in fields)
    ).encode()


def _add_hint(frame: Frame, hint: bytes) -> Frame:
    """Return an error with this hint if memory or temporary files were used up. Otherwise return it unchanged."""
    report = backend.decode(frame)
    if not isinstance(report, Report) or report.find_field(b"C") not in _TOO_LARGE or report.find_field(b"H"):
        return frame
    return Frame(frame.kind, Report(report.kind, (*report.fields, (b"H", hint))).encode())


def _shift_error(frame: Frame, offset: int | None) -> bytes:
    """Return an error with its position moved by `offset`, or without a position if `offset` is None."""
    report = backend.decode(frame)
    if not isinstance(report, Report):
        return frame.raw
    fields = tuple(
        (name, str(int(value) + offset).encode() if name == b"P" and offset is not None else value)
        for name, value in report.fields
        if name != b"P" or offset is not None
    )
    return Report(kind=report.kind, fields=fields).encode()
