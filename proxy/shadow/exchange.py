"""Keyhole's own conversation with the shadow inside a client's batch: hidden from the client, errors excepted.

All of it is extended protocol without Sync, so it belongs to the client's transaction and to its batch: an error in it
is an error of the batch. Names that start with `keyhole.` are Keyhole's.
"""

import codecs
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.errors import KeyholeError
from planner.statements import kinds
from planner.values import parameter_casts
from planner.values.constant import ParameterCast, ParameterValue
from proxy.shadow.answers import ERROR, NOTHING, Ending, Expected, short_text
from proxy.shadow.array import TEXT_ARRAY, text_array
from proxy.shadow.findings import (
    READ_BY,
    Described,
    Kept,
    SessionState,
    ShadowFailed,
    is_utc,
    read_by,
    read_described,
    read_kept,
    row,
    rows_of,
)
from proxy.shadow.parameter import read_value, values_sql
from proxy.shadow.relay import Relay
from proxy.shadow.schema import UNANSWERED
from proxy.wire.frontend import Bind, Close, Describe, Execute, Parse, Sync

OWN_NAMES = kinds.OWN_NAMES.encode()
OUTER = b"keyhole.outer"
REHEARSAL = b"keyhole.rehearsal"
STATE = b"keyhole.state"
VALUES = b"keyhole.values"
REFUSED = b"keyhole.refused"
TYPES = b"keyhole.types"
HELD = b"keyhole.held"
ARGUMENTS = b"keyhole.arguments"
GIVEN = b"keyhole.given"
STAND_IN = b"keyhole.for"
PART = b"keyhole.part"
NAMES = b"keyhole.names"
BLOCK = b"keyhole.block"
ENCODING = b"keyhole.encoding"
READING = b"keyhole.reading"
SETTING = b"keyhole.setting"
COPIED = b"keyhole.copied"
CHANNELS = b"keyhole.channels"
MOST_PARAMETERS = 65_535  # Bind counts them in 16 bits
_TEXT = 25  # the type text's oid
_ALL_HELD_SQL = (  # as UTF-8, whatever the client's encoding is and lacks
    b"SELECT pg_catalog.convert_to(name, 'UTF8'), pg_catalog.convert_to(statement, 'UTF8'), from_sql"
    b" FROM pg_catalog.pg_prepared_statements"
)
_HELD_SQL = _ALL_HELD_SQL + b" WHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.name::pg_catalog.text"
_CHANNELS_SQL = (
    b"SELECT pg_catalog.convert_to(c, 'UTF8') FROM pg_catalog.pg_listening_channels() AS c"  # names, in any encoding
)
_HELD_FORMATS = (1, 1, 0)  # texts as bytes, the boolean as text
_GIVEN_SQL = b'EXECUTE "' + ARGUMENTS + b'"'


@dataclass(frozen=True, slots=True)
class GivenValues:
    """The parameters of a portal, numbered from 1, and the casts of them that a question writes."""

    parameters: Mapping[int, ParameterValue | None] = field(default_factory=dict)
    casts: Mapping[ParameterCast, ParameterValue | None] = field(default_factory=dict)


def _cast_sql(cast: ParameterCast) -> tuple[str, int]:
    """Return a cast of a parameter, and the oid of its type."""
    number, kinds = cast
    return f"${number}" + "".join(
        f"::pg_catalog.{parameter_casts.TYPES[kind][0]}" for kind in kinds
    ), parameter_casts.TYPES[kinds[-1]][1]


class Exchange:
    """Messages that Keyhole adds to a client's batch. `setting_names` are the `keyhole.*` settings to read."""

    def __init__(self, relay: Relay, *, setting_names: tuple[str, ...]) -> None:
        self._relay = relay
        self._names = setting_names
        columns = [
            f"pg_catalog.current_setting('{name}', true)" for name in (*setting_names, "client_min_messages", *READ_BY)
        ]
        columns.append(
            "(SELECT pg_catalog.convert_to(statement, 'UTF8') FROM pg_catalog.pg_cursors"
            " WHERE name OPERATOR(pg_catalog.=) $1::pg_catalog.name::pg_catalog.text LIMIT 1)"
        )
        self._state_sql = f"SELECT {', '.join(columns)}".encode()
        self._state_formats = (0,) * (len(columns) - 1) + (1,)
        self._stand_ins = 0
        self._types: dict[tuple[int, int], bytes] = {}

    async def settle(self) -> None:
        """Wait for all answers. Raise ShadowFailed if the batch has failed."""
        await self._relay.settle()
        if self._relay.answers.skipping:
            raise ShadowFailed

    async def step_back(self) -> None:
        """Step back after a statement of Keyhole's own.

        The client's next statement is still the first of its batch, if it would have been. Raise ShadowFailed.
        """
        await self.settle()
        if self._relay.answers.fresh:
            self._relay.send(Sync().encode(), Expected(Ending.SYNC, shown=NOTHING))

    def parse(self, statement: bytes, sql: bytes, types: tuple[int, ...] = (), *, offset: int | None = None) -> None:
        """Prepare a statement, first closing what had its name."""
        self._send_hidden(Close(b"S", statement).encode(), Ending.CLOSE)
        self._send_hidden(Parse(statement, sql, types).encode(), Ending.PARSE, offset=offset, text=sql)

    def bind(self, message: Bind, *, offset: int | None = None) -> None:
        """Make a portal."""
        self._send_hidden(message.encode(), Ending.BIND, offset=offset)

    def close(self, what: bytes, name: bytes) -> None:
        """Forget a statement or a portal, of the client or of Keyhole."""
        self._send_hidden(Close(what, name).encode(), Ending.CLOSE)

    def enter_block(self) -> None:
        """Make what follows part of an implicit transaction, as every statement of a text of several is.

        Something must have run before; what runs here takes no snapshot, so that isolation levels can still be set.
        """
        self.parse(BLOCK, b"SHOW server_version_num")
        self._run(Bind(BLOCK, BLOCK, (), (), ()))

    def run(self, sql: bytes, *, offset: int) -> None:
        """Run a statement of no effect, unseen except for its errors."""
        self.parse(REHEARSAL, sql, offset=offset)
        self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()), offset=offset)

    async def read_encoding(self) -> str:
        """Return the client's encoding now; it takes no snapshot, so that isolation levels can still be set."""
        self.parse(ENCODING, b"SHOW client_encoding")
        answer = self._run(Bind(ENCODING, ENCODING, (), (), ()))
        await self.settle()
        (name,) = row(answer)
        return (name or b"").decode("ascii")

    async def read_setting(self, name: str) -> bytes | None:
        """Return the session's value; None if nothing. Raise ShadowFailed."""
        self.parse(SETTING, f"SELECT pg_catalog.current_setting('{name}', true)".encode())
        answer = self._run(Bind(SETTING, SETTING, (), (), ()))
        await self.settle()
        return row(answer)[0]

    def ask_channels(self) -> Expected:
        """Ask, between batches, to which channels the session listens; once that is `done`, `channels` reads it.

        Sent at once, so that whatever the client sends meanwhile comes behind it; no error in it is shown.
        """
        sync = Expected(Ending.SYNC, shown=NOTHING)
        for message, ending in (
            (Close(b"S", CHANNELS), Ending.CLOSE),
            (Parse(CHANNELS, _CHANNELS_SQL), Ending.PARSE),
            (Bind(CHANNELS, CHANNELS, (), (), (1,)), Ending.BIND),
        ):
            self._relay.send(message.encode(), Expected(ending, shown=NOTHING))
        answer = Expected(Ending.EXECUTE, shown=NOTHING)
        self._relay.send(Execute(CHANNELS, 0).encode(), answer)
        self._relay.send(Sync().encode(), sync)
        return answer

    @staticmethod
    def channels(answer: Expected) -> frozenset[bytes] | None:
        """Decode the reply to `ask_channels`. Return None if the request failed."""
        return None if answer.failed else frozenset(name or b"" for (name,) in rows_of(answer))

    async def count_held(self) -> int:
        """Return the number of the client's prepared statements."""
        return await self._count(b"pg_prepared_statements")

    async def count_cursors(self) -> int:
        """Return the number of the client's cursors and named portals."""
        return await self._count(b"pg_cursors")

    async def _count(self, view: bytes) -> int:
        self.parse(
            NAMES,
            b"SELECT pg_catalog.count(*) FROM pg_catalog." + view + b" WHERE name OPERATOR(pg_catalog.<>) ''"
            b" AND NOT pg_catalog.starts_with(name, '" + OWN_NAMES + b"')",
        )
        answer = self._run(Bind(NAMES, NAMES, (), (), ()))
        await self.settle()
        (count,) = row(answer)
        return int(count or b"0")

    async def all_held(self) -> tuple[Kept, ...]:
        """Return all prepared statements of the session."""
        self.parse(NAMES, _ALL_HELD_SQL)
        answer = self._run(Bind(NAMES, NAMES, (), (), _HELD_FORMATS))
        await self.settle()
        return tuple(map(read_kept, rows_of(answer)))

    def describe(self, what: bytes, name: bytes) -> Expected:
        """Ask what a statement or portal is; after `settle`, `read_described` reads it."""
        return self._send_hidden(Describe(what, name).encode(), Ending.DESCRIBE)

    def read_state(self, portal: bytes) -> Expected:
        """Ask for the session's settings, and what a portal runs.

        After `settle`, `state` reads them, and `encoding_of` how to.
        """
        self.parse(STATE, self._state_sql, (_TEXT,))
        return self._run(Bind(STATE, STATE, (), (portal,), self._state_formats))

    def read_values(self, bound: Bind, types: tuple[int, ...], casts: tuple[ParameterCast, ...]) -> Expected:
        """Ask for the parameters of a bound portal, and for casts of them; after `settle`, `values` reads both."""
        given = [(f"${number}", oid) for number, oid in enumerate(types, start=1)]
        self.parse(VALUES, values_sql((*given, *map(_cast_sql, casts))).encode(), types)
        return self._run(Bind(VALUES, VALUES, bound.formats, bound.values, ()))

    async def find_kept(self, name: bytes) -> Kept | None:
        """Return the statement that EXECUTE finds under a name; None if there is none."""
        self.parse(HELD, _HELD_SQL, (_TEXT,))
        answer = self._run(Bind(HELD, HELD, (), (name,), _HELD_FORMATS))
        await self.settle()
        return None if answer.find("D") is None else read_kept(row(answer))

    async def arguments(self, given: bytes, types: tuple[int, ...], *, given_at: int) -> tuple[bytes | None, ...]:
        """Return EXECUTE's arguments, in binary, by PostgreSQL's own rules for them. Raise ShadowFailed.

        They stand at `given_at` in the client's text, where positions of errors count.
        """
        offset = given_at - len(_GIVEN_SQL)
        numbers = b", ".join(b"$%d" % number for number in range(1, len(types) + 1))
        self.parse(ARGUMENTS, b"SELECT " + numbers, types)
        self.parse(GIVEN, _GIVEN_SQL + given, offset=offset)
        answer = self._run(Bind(GIVEN, GIVEN, (), (), (1,)), offset=offset)
        await self.settle()
        return row(answer)

    def new_stand_in(self) -> bytes:
        """Return a name for a stand-in that is kept: not made of the client's name, which may be too long for that."""
        self._stand_ins += 1
        return b"%b.%d" % (STAND_IN, self._stand_ins)

    async def stand_in(self, name: bytes, like: Described) -> bytes:
        """Prepare what portals of a question that gives rows are bound to until it is answered; its text.

        Same parameters, same columns, and an error if it is ever run. The original itself cannot be bound: PostgreSQL
        checks privileges when it makes a portal.
        """
        text = b"SELECT " + await self._null_columns(like) + b" FROM " + UNANSWERED.encode() + b"()"
        self.parse(name, text, like.types)
        return text

    async def _null_columns(self, like: Described) -> bytes:
        """Return columns of the same names and types, to be selected."""
        assert like.rows is not None
        wanted = {(field.type, field.modifier) for field in like.rows.fields}
        if unknown := sorted(wanted - self._types.keys()):
            types = ", ".join(f"pg_catalog.format_type({oid}, {modifier})" for oid, modifier in unknown)
            self.parse(TYPES, f"SELECT {types}".encode())
            answer = self._run(Bind(TYPES, TYPES, (), (), ()))
            await self.step_back()
            self._types |= {known: name or b"text" for known, name in zip(unknown, row(answer), strict=True)}
        return b", ".join(
            b"NULL::" + self._types[field.type, field.modifier] + b' AS "' + field.name.replace(b'"', b'""') + b'"'
            for field in like.rows.fields
        )

    async def describe_copied(self, query: bytes, *, offset: int) -> Described:
        """Return the parameters and columns of the query of a COPY. Raise ShadowFailed."""
        self.parse(COPIED, query, offset=offset)
        expected = self.describe(b"S", COPIED)
        await self.settle()
        return read_described(expected)

    async def rehearse_copy(self, like: Described, behind: bytes, *, behind_at: int) -> None:
        """Copy nothing, unseen, with the options of a COPY, which PostgreSQL reads when it runs.

        They stand at `behind_at` in the client's text. Raise ShadowFailed.
        """
        before = b"COPY (SELECT " + await self._null_columns(like) + b" WHERE false"
        self.run(before + behind, offset=behind_at - len(before))
        await self.settle()

    def bind_copy(self, portal: bytes, sql: bytes, bound: Bind, *, when_too_large: bytes) -> None:
        """Put a COPY, keys included since it takes no parameters, under the client's portal name."""
        self._send_hidden(Close(b"S", OUTER).encode(), Ending.CLOSE)
        self._send_hidden(Parse(OUTER, sql, ()).encode(), Ending.PARSE, when_too_large=when_too_large)
        self._send_hidden(Close(b"P", portal).encode(), Ending.CLOSE)
        message = Bind(portal, OUTER, (), (), bound.result_formats)
        self._send_hidden(message.encode(), Ending.BIND, when_too_large=when_too_large)

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
        if read_described(expected).signature != like.signature:
            raise KeyholeError(
                "KH106",
                "a whole row of a question cannot be returned",
                hint="Name the columns: SELECT key FROM (SELECT key FROM ... HAVING ...) AS t.",
            )

    async def rehearse(self, bound: Bind, statements: Sequence[bytes], *, arrays: int, codec: codecs.CodecInfo) -> None:
        """Bind what was prepared over no keys, unseen except for errors: PostgreSQL checks privileges when it does.

        With `statements`, also run it over no keys, and then them. Raises ShadowFailed where one fails.
        """
        self.bind_outer(REHEARSAL, bound, (text_array((), codec),) * arrays)
        if statements:
            self._send_hidden(Execute(REHEARSAL, 0).encode(), Ending.EXECUTE)
        self._send_hidden(Close(b"P", REHEARSAL).encode(), Ending.CLOSE)
        await self.settle()
        for sql in statements:
            self.parse(REHEARSAL, sql)
            self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()))
            await self.settle()

    def bind_outer(self, portal: bytes, bound: Bind, arrays: tuple[bytes, ...], *, when_too_large: bytes = b"") -> None:
        """Put the prepared statement with its keys, of `text_array`, under the client's portal name.

        The formats are the client's.
        """
        formats = tuple(bound.format_of(index) for index in range(len(bound.values))) + (1,) * len(arrays)
        values = bound.values + arrays
        self._send_hidden(Close(b"P", portal).encode(), Ending.CLOSE)
        message = Bind(portal, OUTER, formats, values, bound.result_formats)
        self._send_hidden(message.encode(), Ending.BIND, when_too_large=when_too_large)

    def fail(self, text: bytes = b"Keyhole refuses the statement") -> Expected:
        """Make the shadow's transaction fail by a real error, which the client does not see.

        With a text of the client's, only if PostgreSQL cannot prepare it: it is parsed, never run, and not kept, or
        EXECUTE could run it.
        """
        expected = Expected(Ending.PARSE, shown=NOTHING, text=short_text(text))
        self._relay.send(Parse(REFUSED, text).encode(), expected)
        self._relay.send(Close(b"S", REFUSED).encode(), Expected(Ending.CLOSE, shown=NOTHING))
        return expected

    def state(self, expected: Expected, codec: codecs.CodecInfo) -> SessionState:
        """Read the reply to `read_state`."""
        found = row(expected)
        *settings, notices = found[: -len(READ_BY) - 1]
        zone, portal = found[-3], found[-1]
        texts = [None if text is None else codec.decode(text)[0] for text in settings]
        named = {name: text or None for name, text in zip(self._names, texts, strict=True)}
        wanted = notices not in (b"warning", b"error")
        running = None if portal is None else portal.decode("utf-8", "replace")
        return SessionState(
            settings=named, wants_notices=wanted, utc=is_utc(zone), portal=running, read_by=read_by(found[:-1])
        )

    def encoding_of(self, expected: Expected) -> str:
        """Return the client's encoding in the reply to `read_state`."""
        return (row(expected)[-2] or b"").decode("ascii")

    async def read_settings(self) -> tuple[bytes, ...]:
        """Return the settings by which PostgreSQL reads parameters in text now, in the order of `READ_BY`."""
        columns = ", ".join(f"pg_catalog.current_setting('{name}')" for name in READ_BY)
        self.parse(READING, f"SELECT {columns}".encode())
        answer = self._run(Bind(READING, READING, (), (), ()))
        await self.settle()
        return read_by(row(answer))

    def values(
        self, expected: Expected, types: tuple[int, ...], casts: tuple[ParameterCast, ...], codec: codecs.CodecInfo
    ) -> GivenValues:
        """Read the reply to `read_values`."""
        (document,) = row(expected)
        texts = json.loads(codec.decode(document or b"[]")[0])
        oids = (*types, *(oid for _, oid in map(_cast_sql, casts)))
        found = [read_value(text, oid) for text, oid in zip(texts, oids, strict=True)]
        return GivenValues(
            parameters=dict(enumerate(found[: len(types)], start=1)),
            casts=dict(zip(casts, found[len(types) :], strict=True)),
        )

    def _run(self, bound: Bind, *, offset: int | None = None) -> Expected:
        self._send_hidden(Close(b"P", bound.portal).encode(), Ending.CLOSE)
        self.bind(bound)
        expected = self._send_hidden(Execute(bound.portal, 0).encode(), Ending.EXECUTE, offset=offset)
        self._send_hidden(Close(b"P", bound.portal).encode(), Ending.CLOSE)
        return expected

    def _send_hidden(
        self, raw: bytes, ending: Ending, *, offset: int | None = None, text: bytes = b"", when_too_large: bytes = b""
    ) -> Expected:
        text = short_text(text)
        expected = Expected(ending, shown=ERROR, offset=offset, text=text, when_too_large=when_too_large)
        self._relay.send(raw, expected)
        return expected
