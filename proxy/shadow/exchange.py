"""Keyhole's own messages to the shadow inside a client's batch. The client sees only their errors.

They use the extended protocol without Sync, so they belong to the client's transaction and batch. An error in one is an
error of the batch. Names that start with `keyhole.` are Keyhole's.
"""

import codecs
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from planner.errors import KeyholeError
from planner.statements import kinds
from planner.values import parameter_casts
from planner.values.constant import ParameterCast, ParameterValue
from proxy.shadow.answers import ERROR, NOTHING, AnswerEnd, ExpectedAnswer, keep_if_short
from proxy.shadow.array import TEXT_ARRAY, encode_text_array
from proxy.shadow.findings import (
    READING_SETTINGS,
    PreparedStatement,
    SessionState,
    ShadowFailed,
    StatementDescription,
    find_reading_settings,
    find_skipped_midnights,
    is_utc,
    parse_description,
    parse_prepared_statement,
    read_row,
    read_rows,
)
from proxy.shadow.parameter import read_value, write_values_query
from proxy.shadow.relay import ShadowRelay
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
    """The values of a portal's parameters, numbered from 1, and of casts of parameters in a question."""

    parameters: Mapping[int, ParameterValue | None] = field(default_factory=dict)
    casts: Mapping[ParameterCast, ParameterValue | None] = field(default_factory=dict)


def _write_cast(cast: ParameterCast) -> tuple[str, int]:
    """Return SQL for a cast of a parameter, and the OID of its type."""
    number, kinds = cast
    return f"${number}" + "".join(
        f"::pg_catalog.{parameter_casts.TYPES[kind][0]}" for kind in kinds
    ), parameter_casts.TYPES[kinds[-1]][1]


class ShadowExchange:
    """The sender of Keyhole's own messages in a client's batch.

    `setting_names` are the `keyhole.*` settings to read.
    """

    def __init__(self, relay: ShadowRelay, *, setting_names: tuple[str, ...]) -> None:
        self._relay = relay
        self._names = setting_names
        columns = [
            f"pg_catalog.current_setting('{name}', true)"
            for name in (*setting_names, "client_min_messages", *READING_SETTINGS)
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
        """Wait for all answers from the shadow. Raise ShadowFailed if the batch has failed."""
        await self._relay.settle()
        if self._relay.answers.skipping:
            raise ShadowFailed

    async def undo_own_statement(self) -> None:
        """Make the client's next statement the first of its batch, as if Keyhole had sent no statement before it.

        Do nothing if the client itself has already run a statement in the batch.
        Raise ShadowFailed if the shadow fails.
        """
        await self.settle()
        if self._relay.answers.is_fresh:
            self._relay.send(Sync().encode(), ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING))

    def parse(self, statement: bytes, sql: bytes, types: tuple[int, ...] = (), *, offset: int | None = None) -> None:
        """Prepare a statement under a name. Close the statement that had the name before."""
        self._send_hidden(Close(b"S", statement).encode(), AnswerEnd.CLOSE)
        self._send_hidden(Parse(statement, sql, types).encode(), AnswerEnd.PARSE, offset=offset, text=sql)

    def bind(self, message: Bind, *, offset: int | None = None) -> None:
        """Make a portal by sending this Bind."""
        self._send_hidden(message.encode(), AnswerEnd.BIND, offset=offset)

    def close(self, what: bytes, name: bytes) -> None:
        """Close a statement or a portal, of the client or of Keyhole."""
        self._send_hidden(Close(what, name).encode(), AnswerEnd.CLOSE)

    def enter_transaction_block(self) -> None:
        """Make the next statements part of an implicit transaction, as in a text of several statements.

        A statement must have run before. The statement sent here takes no snapshot, so the client can still set the
        isolation level.
        """
        self.parse(BLOCK, b"SHOW server_version_num")
        self._run(Bind(BLOCK, BLOCK, (), (), ()))

    def run(self, sql: bytes, *, offset: int) -> None:
        """Run a statement that has no effect. The client sees only its errors."""
        self.parse(REHEARSAL, sql, offset=offset)
        self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()), offset=offset)

    async def read_encoding(self) -> str:
        """Return the client's current encoding.

        No snapshot is taken, so the client can still set the isolation level.
        """
        self.parse(ENCODING, b"SHOW client_encoding")
        answer = self._run(Bind(ENCODING, ENCODING, (), (), ()))
        await self.settle()
        (name,) = read_row(answer)
        return (name or b"").decode("ascii")

    async def read_setting(self, name: str) -> bytes | None:
        """Return the session's value of a setting, or None if it has none. Raise ShadowFailed if the shadow fails."""
        self.parse(SETTING, f"SELECT pg_catalog.current_setting('{name}', true)".encode())
        answer = self._run(Bind(SETTING, SETTING, (), (), ()))
        await self.settle()
        return read_row(answer)[0]

    def ask_channels(self) -> ExpectedAnswer:
        """Request the list of channels to which the session listens, between two batches.

        Once the returned answer `is_complete`, call `decode_channels`. The request is sent at once, ahead of anything
        that the client sends meanwhile. The client sees no error of it.
        """
        sync = ExpectedAnswer(AnswerEnd.SYNC, shown_frames=NOTHING)
        for message, ending in (
            (Close(b"S", CHANNELS), AnswerEnd.CLOSE),
            (Parse(CHANNELS, _CHANNELS_SQL), AnswerEnd.PARSE),
            (Bind(CHANNELS, CHANNELS, (), (), (1,)), AnswerEnd.BIND),
        ):
            self._relay.send(message.encode(), ExpectedAnswer(ending, shown_frames=NOTHING))
        answer = ExpectedAnswer(AnswerEnd.EXECUTE, shown_frames=NOTHING)
        self._relay.send(Execute(CHANNELS, 0).encode(), answer)
        self._relay.send(Sync().encode(), sync)
        return answer

    @staticmethod
    def decode_channels(answer: ExpectedAnswer) -> frozenset[bytes] | None:
        """Decode the reply to `ask_channels`. Return None if the request failed."""
        return None if answer.failed else frozenset(name or b"" for (name,) in read_rows(answer))

    async def count_prepared_statements(self) -> int:
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
        (count,) = read_row(answer)
        return int(count or b"0")

    async def list_prepared_statements(self) -> tuple[PreparedStatement, ...]:
        """Return all prepared statements of the session."""
        self.parse(NAMES, _ALL_HELD_SQL)
        answer = self._run(Bind(NAMES, NAMES, (), (), _HELD_FORMATS))
        await self.settle()
        return tuple(map(parse_prepared_statement, read_rows(answer)))

    def describe(self, what: bytes, name: bytes) -> ExpectedAnswer:
        """Request the description of a statement or portal. Call `parse_description` on the reply after `settle`."""
        return self._send_hidden(Describe(what, name).encode(), AnswerEnd.DESCRIBE)

    def ask_state(self, portal: bytes) -> ExpectedAnswer:
        """Request the session's settings, and the text of the statement behind a portal.

        After `settle`, call `decode_state` on the reply, and `decode_encoding` for the encoding in it.
        """
        self.parse(STATE, self._state_sql, (_TEXT,))
        return self._run(Bind(STATE, STATE, (), (portal,), self._state_formats))

    def ask_values(self, bound: Bind, types: tuple[int, ...], casts: tuple[ParameterCast, ...]) -> ExpectedAnswer:
        """Request the values of a bound portal's parameters and of their casts. Call `decode_values` on the reply."""
        given = [(f"${number}", oid) for number, oid in enumerate(types, start=1)]
        self.parse(VALUES, write_values_query((*given, *map(_write_cast, casts))).encode(), types)
        return self._run(Bind(VALUES, VALUES, bound.formats, bound.values, ()))

    async def find_prepared_statement(self, name: bytes) -> PreparedStatement | None:
        """Return the prepared statement that EXECUTE would find under a name, or None."""
        self.parse(HELD, _HELD_SQL, (_TEXT,))
        answer = self._run(Bind(HELD, HELD, (), (name,), _HELD_FORMATS))
        await self.settle()
        return None if answer.find_frame("D") is None else parse_prepared_statement(read_row(answer))

    async def evaluate_arguments(
        self, given: bytes, types: tuple[int, ...], *, given_at: int
    ) -> tuple[bytes | None, ...]:
        """Let PostgreSQL evaluate EXECUTE's arguments, and return the values in binary format.

        Raise ShadowFailed if the shadow fails.

        `given_at` is the position of the arguments in the client's text, to which error positions refer.
        """
        offset = given_at - len(_GIVEN_SQL)
        numbers = b", ".join(b"$%d" % number for number in range(1, len(types) + 1))
        self.parse(ARGUMENTS, b"SELECT " + numbers, types)
        self.parse(GIVEN, _GIVEN_SQL + given, offset=offset)
        answer = self._run(Bind(GIVEN, GIVEN, (), (), (1,)), offset=offset)
        await self.settle()
        return read_row(answer)

    def make_stand_in_name(self) -> bytes:
        """Return a new name for a kept stand-in. It does not contain the client's name, which may be too long."""
        self._stand_ins += 1
        return b"%b.%d" % (STAND_IN, self._stand_ins)

    async def prepare_stand_in(self, name: bytes, like: StatementDescription) -> bytes:
        """Prepare a stand-in for a question, and return its SQL text. The client's portals are bound to it at first.

        The stand-in has the same parameters and columns, and fails if it is ever run. The question itself cannot be
        bound, because PostgreSQL checks privileges when it makes a portal.
        """
        text = b"SELECT " + await self._write_null_columns(like) + b" FROM " + UNANSWERED.encode() + b"()"
        self.parse(name, text, like.types)
        return text

    async def _write_null_columns(self, like: StatementDescription) -> bytes:
        """Return SQL for a select list of columns with the same names and types."""
        assert like.rows is not None
        wanted = {(field.type, field.modifier) for field in like.rows.fields}
        if unknown := sorted(wanted - self._types.keys()):
            types = ", ".join(f"pg_catalog.format_type({oid}, {modifier})" for oid, modifier in unknown)
            self.parse(TYPES, f"SELECT {types}".encode())
            answer = self._run(Bind(TYPES, TYPES, (), (), ()))
            await self.undo_own_statement()
            self._types |= {known: name or b"text" for known, name in zip(unknown, read_row(answer), strict=True)}
        return b", ".join(
            b"NULL::" + self._types[field.type, field.modifier] + b' AS "' + field.name.replace(b'"', b'""') + b'"'
            for field in like.rows.fields
        )

    async def describe_copied_query(self, query: bytes, *, offset: int) -> StatementDescription:
        """Return the parameters and columns of the query inside a COPY. Raise ShadowFailed if the shadow fails."""
        self.parse(COPIED, query, offset=offset)
        expected = self.describe(b"S", COPIED)
        await self.settle()
        return parse_description(expected)

    async def rehearse_copy(self, like: StatementDescription, behind: bytes, *, behind_at: int) -> None:
        """Run a COPY of no rows, with the options of the client's COPY. The client sees only its errors.

        PostgreSQL checks these options only when a COPY runs. `behind_at` is their position in the client's text. Raise
        ShadowFailed.
        """
        before = b"COPY (SELECT " + await self._write_null_columns(like) + b" WHERE false"
        self.run(before + behind, offset=behind_at - len(before))
        await self.settle()

    def bind_copy(self, portal: bytes, sql: bytes, bound: Bind, *, when_too_large: bytes) -> None:
        """Bind a COPY to the client's portal name. The COPY's text contains the keys, since it takes no parameters."""
        self._send_hidden(Close(b"S", OUTER).encode(), AnswerEnd.CLOSE)
        self._send_hidden(Parse(OUTER, sql, ()).encode(), AnswerEnd.PARSE, when_too_large=when_too_large)
        self._send_hidden(Close(b"P", portal).encode(), AnswerEnd.CLOSE)
        message = Bind(portal, OUTER, (), (), bound.result_formats)
        self._send_hidden(message.encode(), AnswerEnd.BIND, when_too_large=when_too_large)

    def prepare_answer(self, sql: bytes, types: tuple[int, ...], *, arrays: int) -> ExpectedAnswer:
        """Prepare the statement that runs in place of a question, and request its description for `rehearse_answer`.

        Raise KH404.
        """
        if len(types) + arrays > MOST_PARAMETERS:
            raise KeyholeError(
                "KH404",
                f"a question takes at most {MOST_PARAMETERS - arrays:,} parameters",
                hint="Write some values into the text, or give a list as one array: = ANY ($1).",
            )
        self.parse(OUTER, sql, types + (TEXT_ARRAY,) * arrays)
        return self.describe(b"S", OUTER)

    async def rehearse_answer(
        self,
        bound: Bind,
        statements: Sequence[bytes],
        *,
        arrays: int,
        codec: codecs.CodecInfo,
        described: ExpectedAnswer,
        like: StatementDescription,
    ) -> None:
        """Bind the prepared answer without keys, because PostgreSQL then checks privileges.

        The client sees only errors. Check that the answer, as it was `described`, has the question's columns. With
        `statements`, also run the answer without keys, and then these statements.

        Raise ShadowFailed if PostgreSQL refuses something, and KH106.
        """
        self.bind_answer(REHEARSAL, bound, (encode_text_array((), codec),) * arrays)
        if statements:
            self._send_hidden(Execute(REHEARSAL, 0).encode(), AnswerEnd.EXECUTE)
        self._send_hidden(Close(b"P", REHEARSAL).encode(), AnswerEnd.CLOSE)
        await self.settle()
        if parse_description(described).signature != like.signature:
            raise KeyholeError(
                "KH106",
                "a whole row of a question cannot be returned",
                hint="Name the columns: SELECT key FROM (SELECT key FROM ... HAVING ...) AS t.",
            )
        for sql in statements:
            self.parse(REHEARSAL, sql)
            self._run(Bind(REHEARSAL, REHEARSAL, (), (), ()))
            await self.settle()

    def bind_answer(
        self, portal: bytes, bound: Bind, arrays: tuple[bytes, ...], *, when_too_large: bytes = b""
    ) -> None:
        """Bind the prepared answer with its keys, from `encode_text_array`, to the client's portal name.

        The result formats are those of the client's Bind.
        """
        formats = tuple(bound.get_format(index) for index in range(len(bound.values))) + (1,) * len(arrays)
        values = bound.values + arrays
        self._send_hidden(Close(b"P", portal).encode(), AnswerEnd.CLOSE)
        message = Bind(portal, OUTER, formats, values, bound.result_formats)
        self._send_hidden(message.encode(), AnswerEnd.BIND, when_too_large=when_too_large)

    def fail_transaction(self, text: bytes = b"Keyhole refuses the statement") -> ExpectedAnswer:
        """Make the shadow's transaction fail with a real error, which the client does not see.

        If `text` is the client's, the transaction fails only if PostgreSQL cannot prepare the text. The text is parsed,
        but never run or kept, so EXECUTE cannot run it.
        """
        expected = ExpectedAnswer(AnswerEnd.PARSE, shown_frames=NOTHING, text=keep_if_short(text))
        self._relay.send(Parse(REFUSED, text).encode(), expected)
        self._relay.send(Close(b"S", REFUSED).encode(), ExpectedAnswer(AnswerEnd.CLOSE, shown_frames=NOTHING))
        return expected

    def decode_state(self, expected: ExpectedAnswer, codec: codecs.CodecInfo) -> SessionState:
        """Return the session's state from the reply to `ask_state`."""
        found = read_row(expected)
        *settings, notices = found[: -len(READING_SETTINGS) - 1]
        zone, portal = found[-3], found[-1]
        texts = [None if text is None else codec.decode(text)[0] for text in settings]
        named = {name: text or None for name, text in zip(self._names, texts, strict=True)}
        wanted = notices not in (b"warning", b"error")
        running = None if portal is None else portal.decode("utf-8", "replace")
        return SessionState(
            settings=named,
            wants_notices=wanted,
            is_utc=is_utc(zone),
            skipped_midnights=find_skipped_midnights(zone),
            portal=running,
            reading_settings=find_reading_settings(found[:-1]),
        )

    def decode_encoding(self, expected: ExpectedAnswer) -> str:
        """Return the client's encoding from the reply to `ask_state`."""
        return (read_row(expected)[-2] or b"").decode("ascii")

    async def read_settings(self) -> tuple[bytes, ...]:
        """Return the `READING_SETTINGS`, by which PostgreSQL now reads parameters in text form, in their order."""
        columns = ", ".join(f"pg_catalog.current_setting('{name}')" for name in READING_SETTINGS)
        self.parse(READING, f"SELECT {columns}".encode())
        answer = self._run(Bind(READING, READING, (), (), ()))
        await self.settle()
        return find_reading_settings(read_row(answer))

    def decode_values(
        self,
        expected: ExpectedAnswer,
        types: tuple[int, ...],
        casts: tuple[ParameterCast, ...],
        codec: codecs.CodecInfo,
    ) -> GivenValues:
        """Return the values of the parameters and casts, from the reply to `ask_values`."""
        (document,) = read_row(expected)
        texts = json.loads(codec.decode(document or b"[]")[0])
        oids = (*types, *(oid for _, oid in map(_write_cast, casts)))
        found = [read_value(text, oid) for text, oid in zip(texts, oids, strict=True)]
        return GivenValues(
            parameters=dict(enumerate(found[: len(types)], start=1)),
            casts=dict(zip(casts, found[len(types) :], strict=True)),
        )

    def _run(self, bound: Bind, *, offset: int | None = None) -> ExpectedAnswer:
        self._send_hidden(Close(b"P", bound.portal).encode(), AnswerEnd.CLOSE)
        self.bind(bound)
        expected = self._send_hidden(Execute(bound.portal, 0).encode(), AnswerEnd.EXECUTE, offset=offset)
        self._send_hidden(Close(b"P", bound.portal).encode(), AnswerEnd.CLOSE)
        return expected

    def _send_hidden(
        self,
        raw: bytes,
        ending: AnswerEnd,
        *,
        offset: int | None = None,
        text: bytes = b"",
        when_too_large: bytes = b"",
    ) -> ExpectedAnswer:
        text = keep_if_short(text)
        expected = ExpectedAnswer(ending, shown_frames=ERROR, offset=offset, text=text, when_too_large=when_too_large)
        self._relay.send(raw, expected)
        return expected
