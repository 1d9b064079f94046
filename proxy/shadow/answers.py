"""Which answer belongs to which message sent to the shadow, and who is to see it: the relay's bookkeeping, without I/O.

Every message of the extended protocol has exactly one ending; an error ends all up to the next Sync. A queue of what
is expected therefore tells, for every frame that comes back, whether the client asked for it or Keyhole did.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto

from proxy.wire import backend
from proxy.wire.backend import CommandComplete, Report, RowDescription
from proxy.wire.frames import Frame


class AnswerEnd(Enum):
    """The kind of a protocol message, as far as the end of its answer is concerned."""

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
    """The answer to one message. `shown` are the frame types that go to the client; the others are kept here.

    `tag` replaces the tag of a CommandComplete; `offset` is added to an error's position, or, when None, removes it.
    `text` is the SQL that was sent, if it is short: its errors have their positions in it.
    `when_too_large` is the hint of an error that says that memory or disk are used up.
    `places`: the columns of which a description tells the tables, if it has the same columns.
    `late`: the description waits for the first row or the end of what follows, as a simple query's does where the whole
    result is made before it is shown; an error there means that it never comes.
    """

    ending: AnswerEnd
    shown: frozenset[int] = ALL
    tag: bytes | None = None
    offset: int | None = 0
    late: bool = False
    text: bytes = b""
    when_too_large: bytes = b""
    places: RowDescription | None = None
    kept: list[Frame] = field(default_factory=list)
    done: bool = False
    failed: bool = False

    def find_frame(self, kind: str) -> Frame | None:
        """Return the first kept frame of that type."""
        return next((frame for frame in self.kept if frame.kind == ord(kind)), None)


class AnswerQueue:
    """The queue. `skipping`: an error has made the shadow drop everything up to a Sync that is not sent yet.

    `status` is the last ReadyForQuery's; `readies` counts them, `errors` the errors seen, `completed` the answers, and
    `forgotten` the commands that make the shadow forget prepared statements, `listened` those that change to which
    channels it listens, once their transaction commits. `ran`: since the last ReadyForQuery the
    client has executed something in the transaction that is open, to its end or not, so that PostgreSQL takes what
    follows for a part of a transaction block; `bound`, that it has made portals. `executed` counts what it has executed
    in batches; beyond `told`, settings may have changed of which the shadow tells only with the next ReadyForQuery.
    `mend_error` is given each error with the text of what failed, and returns it as it is to be told.
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
        """Return True if a Sync now would end nothing of the client's.

        It has neither run nor bound anything since the last, or since the end of a transaction.
        """
        return not (self.ran or self.bound)

    @property
    def has_failed(self) -> bool:
        """Return True if the transaction had failed at the last ReadyForQuery, and nothing to end it has run."""
        return self.status == b"E" and self.executed == self.told

    @property
    def is_settled(self) -> bool:
        """Return True if nothing is expected any more."""
        return not self._queue

    @property
    def waiting(self) -> int:
        """Return the number of expected answers."""
        return len(self._queue)

    def expect(self, expected: ExpectedAnswer) -> ExpectedAnswer:
        """Expect the answers to a message that is being sent."""
        if self.skipping:
            if expected.ending is not AnswerEnd.SYNC:
                expected.done = expected.failed = True
                return expected
            self.skipping = False
        self._queue.append(expected)
        return expected

    def take_frame(self, frame: Frame) -> bytes:
        """Take a frame that has come, and return what the client gets of it."""
        if not self._queue:
            return frame.raw
        current = self._queue[0]
        if frame.kind == _STATUS and current.ending in _TO_READY and _READY not in current.shown:
            self._statuses.append(frame.raw)  # PostgreSQL tells it just before the ReadyForQuery of the whole text
            return b""
        if frame.kind in _ALWAYS:
            return frame.raw
        shown = self._show_frame(current, frame)
        if frame.kind == ord("C") and frame.payload.startswith(_FORGET):
            self.forgotten += 1
        if frame.kind == ord("C") and frame.payload.startswith(_LISTENS):
            self.listened += 1
        if frame.kind == ord("C") and current.ending is AnswerEnd.EXECUTE and frame.kind in current.shown:
            self.ran = not frame.payload.startswith(_TRANSACTIONS)
            self.bound = self.bound and self.ran
        if current.ending is AnswerEnd.BIND and frame.kind in current.shown:
            self.bound = True
        if frame.kind in _RUN and current.ending is AnswerEnd.EXECUTE and frame.kind in current.shown:
            self.executed += 1
            self.ran = self.ran or frame.kind == ord("s")
        if frame.kind == ord("E"):
            self._drop_until_sync(current)
        elif frame.kind in _LETTERS[current.ending]:
            current.done = True
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
        if frame.kind not in current.shown:
            current.kept.append(frame)
            return b""
        if frame.kind == ord("E"):
            self._description = b""
            told = _add_hint(frame, current.when_too_large) if current.when_too_large else frame
            return told.raw if current.offset == 0 else _shift_error(told, current.offset)
        if frame.kind == ord("T") and current.late:
            self._description = frame.raw
            return b""
        raw = frame.raw
        if frame.kind == ord("T") and current.places is not None:
            raw = _name_tables(frame, current.places)
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
            dropped.done = dropped.failed = True
        self.skipping = not self._queue


def keep_if_short(sql: bytes) -> bytes:
    """Return the SQL of a message, if it may be held until its answer has come."""
    return sql if len(sql) <= _SHORT_BYTES else b""


def _return_unchanged(frame: Frame, _: bytes) -> Frame:
    """Return the frame of an error that nobody changes."""
    return frame


def _name_tables(frame: Frame, places: RowDescription) -> bytes:
    """Return a description with the origin of its columns, if they are the same."""
    described = backend.decode(frame)
    if not isinstance(described, RowDescription) or described.signature != places.signature:
        return frame.raw
    fields = zip(described.fields, places.fields, strict=True)
    return RowDescription(
        tuple(replace(field, table=place.table, column=place.column) for field, place in fields)
    ).encode()


def _add_hint(frame: Frame, hint: bytes) -> Frame:
    """Return the error with a hint if memory or temporary files were used up; else unchanged."""
    report = backend.decode(frame)
    if not isinstance(report, Report) or report.find_field(b"C") not in _TOO_LARGE or report.find_field(b"H"):
        return frame
    return Frame(frame.kind, Report(report.kind, (*report.fields, (b"H", hint))).encode())


def _shift_error(frame: Frame, offset: int | None) -> bytes:
    """Return the error with its position counted in a longer text, or without one."""
    report = backend.decode(frame)
    if not isinstance(report, Report):
        return frame.raw
    fields = tuple(
        (name, str(int(value) + offset).encode() if name == b"P" and offset is not None else value)
        for name, value in report.fields
        if name != b"P" or offset is not None
    )
    return Report(kind=report.kind, fields=fields).encode()
