"""Keyhole's own conversation with the shadow inside a client's batch: hidden from the client, errors excepted.

All of it is extended protocol without Sync, so it belongs to the client's transaction and to its batch: an error in it
is an error of the batch. Names that start with `keyhole.` are Keyhole's.
"""

import codecs
import json
from collections.abc import Sequence
from dataclasses import dataclass

from planner.catalog import Value
from planner.errors import KeyholeError
from proxy.shadow.answers import ERROR, NOTHING, Ending, Expected
from proxy.shadow.array import TEXT_ARRAY, text_array
from proxy.shadow.parameter import value, values_sql
from proxy.shadow.relay import Relay
from proxy.shadow.schema import UNANSWERED
from proxy.wire import backend
from proxy.wire.backend import DataRow, ParameterDescription, RowDescription
from proxy.wire.frames import FrameReader
from proxy.wire.frontend import Bind, Close, Describe, Execute, Parse

OWN_NAMES = b"keyhole."
OUTER = b"keyhole.outer"
REHEARSAL = b"keyhole.rehearsal"
STATE = b"keyhole.state"
VALUES = b"keyhole.values"
REFUSED = b"keyhole.refused"
TYPES = b"keyhole.types"
HELD = b"keyhole.held"
ARGUMENTS = b"keyhole.arguments"
GIVEN = b"keyhole.given"
STAND_IN = b"keyhole.for."
PART = b"keyhole.part"
NAMES = b"keyhole.names"
BLOCK = b"keyhole.block"
MOST_PARAMETERS = 65_535
_TEXT = 25
_HELD_SQL = (
    b"SELECT name, statement, from_sql FROM pg_catalog.pg_prepared_statements"
    b" WHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.name::pg_catalog.text"
)
_GIVEN_SQL = b'EXECUTE "' + ARGUMENTS + b'"'


class ShadowFailed(Exception):
    """The shadow reported an error, which the client has seen; the batch is over."""


@dataclass(frozen=True, slots=True)
class Described:
    """What a statement takes and gives. `rows` is None where it gives no rows."""

    types: tuple[int, ...]
    rows: RowDescription | None

    @property
    def signature(self) -> tuple[tuple[bytes, int], ...]:
        """Names and types of the columns."""
        return () if self.rows is None else tuple((field.name, field.type) for field in self.rows.fields)


@dataclass(frozen=True, slots=True)
class Kept:
    """A prepared statement as the shadow has it. `in_sql`: by PREPARE, which is part of the text."""

    name: bytes
    text: bytes
    in_sql: bool


def _utc(zone: bytes | None) -> bool:
    return zone is not None and zone.lower() in (b"utc", b"etc/utc", b"gmt", b"etc/gmt")


@dataclass(frozen=True, slots=True)
class SessionState:
    """What the session has set: `keyhole.*` values (None or empty means unset), and whether it wants notices, and
    whether its TimeZone is UTC. `portal` is the text of the statement behind the portal that was asked about."""

    settings: dict[str, str | None]
    wants_notices: bool
    utc: bool
    portal: bytes | None


class Exchange:
    """Messages that Keyhole adds to a client's batch. `setting_names` are the `keyhole.*` settings to read."""

    def __init__(self, relay: Relay, *, setting_names: tuple[str, ...]) -> None:
        self._relay = relay
        self._names = setting_names
        columns = [
            f"pg_catalog.current_setting('{name}', true)"
            for name in (*setting_names, "client_min_messages", "TimeZone")
        ]
        columns.append(
            "(SELECT statement FROM pg_catalog.pg_cursors"
            " WHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.text LIMIT 1)"
        )
        self._state_sql = f"SELECT {', '.join(columns)}".encode()

    async def settle(self) -> None:
        """Wait for all answers. Raises ShadowFailed if the batch has failed."""
        await self._relay.settle()
        if self._relay.answers.skipping:
            raise ShadowFailed

    def parse(self, statement: bytes, sql: bytes, types: tuple[int, ...] = (), *, offset: int | None = None) -> None:
        """Prepare a statement, first closing what had its name."""
        self._hidden(Close(b"S", statement).encode(), Ending.CLOSE)
        self._hidden(Parse(statement, sql, types).encode(), Ending.PARSE, offset=offset)

    def bind(self, message: Bind, *, offset: int | None = None) -> None:
        """Make a portal."""
        self._hidden(message.encode(), Ending.BIND, offset=offset)

    def close(self, what: bytes, name: bytes) -> None:
        """Forget a statement or a portal, of the client or of Keyhole."""
        self._hidden(Close(what, name).encode(), Ending.CLOSE)

    def enter_block(self) -> None:
        """Make what follows part of an implicit transaction, as every statement of a text of several is.

        Something must have run before; what runs here takes no snapshot, so that isolation levels can still be set.
        """
        self.parse(BLOCK, b"SHOW server_version_num")
        self._run(Bind(BLOCK, BLOCK, (), (), ()))

    def run(self, sql: bytes, *, offset: int) -> None:
        """Run a statement of no effect, unseen but for its errors."""
        self.parse(REHEARSAL, sql, offset=offset)
        self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()))

    async def count_held(self) -> int:
        """How many prepared statements the client has."""
        self.parse(
            NAMES,
            b"SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements"
            b" WHERE NOT pg_catalog.starts_with(name, '" + OWN_NAMES + b"')",
        )
        answer = self._run(Bind(NAMES, NAMES, (), (), ()))
        await self.settle()
        (count,) = _row(answer)
        return int(count or b"0")

    async def all_held(self) -> tuple[Kept, ...]:
        """All prepared statements of the session."""
        self.parse(NAMES, b"SELECT name, statement, from_sql FROM pg_catalog.pg_prepared_statements")
        answer = self._run(Bind(NAMES, NAMES, (), (), ()))
        await self.settle()
        return tuple(
            Kept(name=name or b"", text=text or b"", in_sql=in_sql == b"t") for name, text, in_sql in _rows(answer)
        )

    def describe(self, what: bytes, name: bytes) -> Expected:
        """Ask what a statement or portal is; after `settle`, `described` reads it."""
        return self._hidden(Describe(what, name).encode(), Ending.DESCRIBE)

    def read_state(self, portal: bytes) -> Expected:
        """Ask for the session's settings, and what a portal runs; after `settle`, `state` reads them."""
        self.parse(STATE, self._state_sql, (_TEXT,))
        return self._run(Bind(STATE, STATE, (), (portal,), ()))

    def read_values(self, bound: Bind, types: tuple[int, ...]) -> Expected:
        """Ask for the parameters of a bound portal as canonical text; after `settle`, `values` reads them."""
        self.parse(VALUES, values_sql(len(types)).encode(), types)
        return self._run(Bind(VALUES, VALUES, bound.formats, bound.values, ()))

    async def held(self, name: bytes) -> Kept | None:
        """The statement that EXECUTE finds under a name; None if there is none."""
        self.parse(HELD, _HELD_SQL, (_TEXT,))
        answer = self._run(Bind(HELD, HELD, (), (name,), ()))
        await self.settle()
        if answer.find("D") is None:
            return None
        found, text, in_sql = _row(answer)
        assert found is not None
        return None if text is None else Kept(name=found, text=text, in_sql=in_sql == b"t")

    async def arguments(self, given: bytes, types: tuple[int, ...], *, given_at: int) -> tuple[bytes | None, ...]:
        """What EXECUTE's arguments are, in binary, by PostgreSQL's own rules for them. Raises ShadowFailed.

        They stand at `given_at` in the client's text, where positions of errors count.
        """
        offset = given_at - len(_GIVEN_SQL)
        numbers = b", ".join(b"$%d" % number for number in range(1, len(types) + 1))
        self.parse(ARGUMENTS, b"SELECT " + numbers, types)
        self.parse(GIVEN, _GIVEN_SQL + given, offset=offset)
        answer = self._run(Bind(GIVEN, GIVEN, (), (), (1,)), offset=offset)
        await self.settle()
        return _row(answer)

    async def stand_in(self, statement: bytes, sql: bytes, like: Described) -> tuple[bytes, bytes]:
        """Prepare what portals of a question with the text `sql` are bound to until it is answered: its name and text.

        Same parameters, same columns, and an error if it is ever run. The original itself cannot be bound: PostgreSQL
        checks privileges when it makes a portal. DECLARE gives no rows and can be: it checks them when it runs.
        """
        if like.rows is None:
            return statement, sql
        fields = like.rows.fields
        types = ", ".join(f"pg_catalog.format_type({field.type}, {field.modifier})" for field in fields)
        self.parse(TYPES, f"SELECT {types}".encode())
        answer = self._run(Bind(TYPES, TYPES, (), (), ()))
        await self.settle()
        columns = b", ".join(
            b"NULL::" + (declared or b"text") + b' AS "' + field.name.replace(b'"', b'""') + b'"'
            for field, declared in zip(fields, _row(answer), strict=True)
        )
        name = STAND_IN + statement
        text = b"SELECT " + columns + b" FROM " + UNANSWERED.encode() + b"()"
        self.parse(name, text, like.types)
        return name, text

    async def prepare(self, sql: bytes, types: tuple[int, ...], *, arrays: int, like: Described) -> None:
        """Prepare what will run in place of a question, and insist that it gives the same columns.

        Raises KH106, KH404.
        """
        if len(types) + arrays > MOST_PARAMETERS:
            raise KeyholeError(
                "KH404",
                f"a question takes at most {MOST_PARAMETERS - arrays:,} parameters",
                hint="Write some of them into the text, or give a list as one array: = ANY ($1).",
            )
        self.parse(OUTER, sql, types + (TEXT_ARRAY,) * arrays)
        expected = self.describe(b"S", OUTER)
        await self.settle()
        if described(expected).signature != like.signature:
            raise KeyholeError(
                "KH106",
                "a whole row of a question cannot be returned",
                hint="Name the columns: SELECT key FROM (SELECT key FROM ... HAVING ...) AS t.",
            )

    async def rehearse(self, bound: Bind, statements: Sequence[bytes], *, arrays: int, codec: codecs.CodecInfo) -> None:
        """Bind what was prepared over no keys, unseen but for errors: PostgreSQL checks privileges when it does.

        With `statements`, also run it over no keys, and then them. Raises ShadowFailed where one fails.
        """
        self.bind_outer(REHEARSAL, bound, ((),) * arrays, codec=codec)
        if statements:
            self._hidden(Execute(REHEARSAL, 0).encode(), Ending.EXECUTE)
        self._hidden(Close(b"P", REHEARSAL).encode(), Ending.CLOSE)
        await self.settle()
        for sql in statements:
            self.parse(REHEARSAL, sql)
            self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()))
            await self.settle()

    def bind_outer(
        self,
        portal: bytes,
        bound: Bind,
        arrays: tuple[tuple[str | None, ...], ...],
        *,
        codec: codecs.CodecInfo,
    ) -> None:
        """Put the prepared statement with its keys under the client's portal name, in the client's formats."""
        formats = tuple(bound.format_of(index) for index in range(len(bound.values))) + (1,) * len(arrays)
        values = bound.values + tuple(text_array(array, codec) for array in arrays)
        self._hidden(Close(b"P", portal).encode(), Ending.CLOSE)
        self.bind(Bind(portal, OUTER, formats, values, bound.result_formats))

    def fail(self, text: bytes = b"Keyhole refuses the statement") -> Expected:
        """Make the shadow's transaction fail by a real error, which the client does not see.

        With a text of the client's, only if PostgreSQL cannot prepare it: it is parsed, and never run.
        """
        expected = Expected(Ending.PARSE, shown=NOTHING)
        self._relay.send(Parse(REFUSED, text).encode(), expected)
        return expected

    def state(self, expected: Expected, codec: codecs.CodecInfo) -> SessionState:
        """What `read_state` brought."""
        *settings, notices, zone, portal = _row(expected)
        texts = [None if text is None else codec.decode(text)[0] for text in settings]
        named = {name: text or None for name, text in zip(self._names, texts, strict=True)}
        wanted = notices not in (b"warning", b"error")
        return SessionState(settings=named, wants_notices=wanted, utc=_utc(zone), portal=portal)

    def values(self, expected: Expected, types: tuple[int, ...], codec: codecs.CodecInfo) -> dict[int, Value | None]:
        """What `read_values` brought, numbered from 1."""
        (document,) = _row(expected)
        texts = json.loads(codec.decode(document or b"[]")[0])
        return {number: value(text, oid) for number, (text, oid) in enumerate(zip(texts, types, strict=True), start=1)}

    def _run(self, bound: Bind, *, offset: int | None = None) -> Expected:
        self._hidden(Close(b"P", bound.portal).encode(), Ending.CLOSE)
        self.bind(bound)
        expected = self._hidden(Execute(bound.portal, 0).encode(), Ending.EXECUTE, offset=offset)
        self._hidden(Close(b"P", bound.portal).encode(), Ending.CLOSE)
        return expected

    def _hidden(self, raw: bytes, ending: Ending, *, offset: int | None = None) -> Expected:
        expected = Expected(ending, shown=ERROR, offset=offset)
        self._relay.send(raw, expected)
        return expected


def described(expected: Expected) -> Described:
    """What `Exchange.describe` brought."""
    types: tuple[int, ...] = ()
    rows: RowDescription | None = None
    for frame in expected.kept:
        match backend.decode(frame):
            case ParameterDescription(types=types):
                pass
            case RowDescription() as rows:
                pass
    return Described(types=types, rows=rows)


def _row(expected: Expected) -> tuple[bytes | None, ...]:
    frame = expected.find("D")
    message = None if frame is None else backend.decode(frame)
    if not isinstance(message, DataRow):
        raise ShadowFailed
    return message.values


def _rows(expected: Expected) -> list[tuple[bytes | None, ...]]:
    """All rows, which may come as runs of frames."""
    found: list[tuple[bytes | None, ...]] = []
    for frame in expected.kept:
        if frame.kind == ord("D"):
            reader = FrameReader(limit_bytes=1 << 30, merges_rows=False)
            reader.feed(frame.raw)
            while (single := reader.typed()) is not None:
                message = backend.decode(single)
                if isinstance(message, DataRow):
                    found.append(message.values)
    return found
