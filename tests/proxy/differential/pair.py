"""The same messages to Keyhole and to a plain PostgreSQL, and what each of them answers, made comparable."""

import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TypeAlias

from proxy.wire import backend
from proxy.wire.backend import BackendMessage, DataRow, ReadyForQuery, Report, RowDescription
from proxy.wire.frames import Frame, FrameReader
from proxy.wire.frontend import FrontendMessage, Query, Startup, Sync
from tests.proxy.raw_client import RawClient

GUARANTEE = b"at most 1.9 epsilon"
END = b"this is the end"
_PLACES_IN_THE_SERVERS_SOURCE = (b"F", b"L", b"R")
_UNREADABLE = frozenset(map(ord, "AGHVWcd"))

Answer: TypeAlias = BackendMessage | Frame


class Client:
    """Sends messages, and reads answers frame by frame."""

    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self.socket.settimeout(60)
        self._reader = FrameReader(limit_bytes=1 << 30, merges_rows=False)
        self._writer = ThreadPoolExecutor(max_workers=1)  # so that it reads what is large while it sends what is large

    def send(self, *messages: FrontendMessage) -> None:
        self._writer.submit(self.socket.sendall, b"".join(message.encode() for message in messages))

    def next(self) -> Answer:
        while (frame := self._reader.read_typed_frame()) is None:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionResetError("hung up")
            self._reader.feed(data)
        return frame if frame.kind in _UNREADABLE else backend.decode(frame)

    def until_ready(self) -> list[Answer]:
        found = [self.next()]
        while not isinstance(found[-1], ReadyForQuery):
            found.append(self.next())
        return found

    def until_end(self) -> list[Answer]:
        """Everything that was asked for, told by a statement that only a finished conversation answers."""
        self.send(Sync(), Query(b"ROLLBACK"), Query(b"SELECT '" + END + b"'"))
        found = [self.next()]
        while found[-1] != DataRow((END,)):
            found.append(self.next())
        return found + self.until_ready()

    def close(self) -> None:
        self._writer.shutdown(wait=True, cancel_futures=True)
        self.socket.close()


def keyhole_client(port: int) -> Client:
    """A client that Keyhole has let in."""
    return Client(RawClient(port).socket)


def plain_client(path: str, settings: dict[str, str]) -> Client:
    """A client of the plain PostgreSQL behind a socket, with the same settings as Keyhole's sessions have."""
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(path)
    client = Client(connected)
    client.send(Startup((3, 0), tuple((name.encode(), value.encode()) for name, value in settings.items())))
    client.until_ready()
    return client


@dataclass
class Pair:
    """One client of each."""

    keyhole: Client
    plain: Client

    def talk(self, *messages: FrontendMessage, apart: bool = False) -> tuple[list[Answer], list[Answer]]:
        """Both conversations to their end; `apart`: each batch waits for the answer to the one before."""
        return converse(self.keyhole, messages, apart=apart), converse(self.plain, messages, apart=apart)

    def same(self, *messages: FrontendMessage, apart: bool = False) -> list[Answer]:
        """Both conversations, which must be the same; what was said."""
        try:
            ours, theirs = self.talk(*messages, apart=apart)
        except ConnectionError as error:
            raise AssertionError(f"{error!r}: {apart=} {messages}") from None
        ours = [_without_hint(our, their) for our, their in zip(ours, theirs, strict=False)] + ours[len(theirs) :]
        assert ours == theirs, f"{first_difference(ours, theirs)}\n  {apart=} {messages}"
        self.forget()
        return ours

    def same_sql(self, *texts: str) -> list[Answer]:
        """The same as simple queries, one after the other."""
        return self.same(*(Query(text.encode()) for text in texts))

    def forget(self) -> None:
        """Make both sessions new."""
        for client in (self.keyhole, self.plain):
            client.send(Query(b"SET client_encoding = 'UTF8'"), Query(b"DISCARD ALL"))
            client.until_ready()
            assert not any(isinstance(answer, Report) for answer in client.until_ready())

    def close(self) -> None:
        self.keyhole.close()
        self.plain.close()


def converse(client: Client, messages: Sequence[FrontendMessage], *, apart: bool) -> list[Answer]:
    """A whole conversation, made comparable."""
    found: list[Answer] = []
    if apart:
        batch: list[FrontendMessage] = []
        for message in messages:
            batch.append(message)
            if isinstance(message, Sync):
                client.send(*batch)
                found += client.until_ready()
                batch = []
        messages = batch
    client.send(*messages)
    found += client.until_end()
    return [comparable(answer) for answer in found if not _is_guarantee(answer)]


def comparable(answer: Answer) -> Answer:
    """Without what may differ: the numbers of tables, and lines of the server's source."""
    match answer:
        case RowDescription(fields=fields):
            return RowDescription(tuple(replace(field, table=0, column=0) for field in fields))
        case Report(kind=kind, fields=fields):
            return Report(
                kind, tuple((name, text) for name, text in fields if name not in _PLACES_IN_THE_SERVERS_SOURCE)
            )
        case _:
            return answer


def _is_guarantee(answer: Answer) -> bool:
    return isinstance(answer, Report) and answer.kind == "N" and answer.find_field(b"M") == GUARANTEE


def first_difference(ours: Sequence[Answer], theirs: Sequence[Answer]) -> str:
    """Where two conversations part."""
    for index, (our, their) in enumerate(zip_longest(ours, theirs)):
        if our != their:
            return f"answer {index}\n  Keyhole:    {our}\n  PostgreSQL: {their}"
    return "none"


def sqlstates(answers: Sequence[Answer]) -> list[bytes | None]:
    """The codes of the errors, in order."""
    return [answer.find_field(b"C") for answer in answers if isinstance(answer, Report) and answer.kind == "E"]


def _without_hint(our: Answer, their: Answer) -> Answer:
    """Leave out the hint of a name, the one thing that Keyhole adds to an error of PostgreSQL that has none."""
    if not isinstance(our, Report) or not isinstance(their, Report) or their.find_field(b"H"):
        return our
    if our.find_field(b"C") not in (b"42P01", b"42703"):
        return our
    return Report(our.kind, tuple(field for field in our.fields if field[0] != b"H"))
