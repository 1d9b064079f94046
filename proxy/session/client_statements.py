"""The prepared statements and portals of a client that Keyhole must answer, by name."""

from dataclasses import dataclass
from sys import getsizeof

from planner.parser.lexer import read_tokens
from proxy.pipeline.messages import StatementPart
from proxy.session.client_text import ClientText
from proxy.session.session_refusals import refuse_executed_savepoint
from proxy.shadow.exchange import OWN_NAMES, ShadowExchange
from proxy.shadow.findings import StatementDescription
from proxy.shadow.relay import ShadowRelay
from proxy.wire.backend import RowDescription
from proxy.wire.frontend import Bind

UNNAMED = b""
_SAVEPOINT_WORDS = frozenset({"savepoint", "release", "rollback"})
_FETCHING = frozenset({"fetch", "move"})
_NAME_BYTES = 60  # of the 63 that PostgreSQL keeps of a name: whoever asks by fewer finds too much, never too little
_MOST_NAMES = 1000
"""The default capacity of a session; beyond it every name is looked up in the shadow: slower, never wrong."""
_MOST_SAVEPOINTS = 10_000  # ten times what a session may hold by default; beyond it every EXECUTE of a name is refused


@dataclass(frozen=True, slots=True)
class Statement:
    """A client's prepared statement that Keyhole must answer.

    `text` is the client's text, and `description` is the shadow's description of parameters and columns. `stand_in`
    names another statement in the shadow, with the text `stand_in_text`; the client's portals are made from it.
    `is_from_prepare` is True if PREPARE made the statement. The client then has not sent this text by Parse, so error
    positions in it would mean nothing.
    """

    part: StatementPart
    text: str
    description: StatementDescription
    stand_in: bytes
    stand_in_text: str
    is_from_prepare: bool = False

    @property
    def held_bytes(self) -> int:
        """Return the memory of the statement's texts, in bytes."""
        return sum(map(getsizeof, (self.part.text, self.text, self.stand_in_text)))


@dataclass(frozen=True, slots=True)
class Portal:
    """A client's portal on a statement that Keyhole must answer, and has not answered yet.

    `reading_settings` are the settings by which its parameters were read. It is None if no setting changes what they
    mean. `is_from_execute` is True if EXECUTE bound it: positions in its text mean nothing to the client.
    """

    statement: Statement
    bind_message: Bind
    reading_settings: tuple[bytes, ...] | None = None
    is_from_execute: bool = False


class PossibleNames:
    """A set of prepared statements' names that answers "maybe" or "no". Names may be in any encoding.

    Guarantee: every name that was added, and not removed, is found. Names that PostgreSQL may treat as the same are
    found together. Once there are more than `most` names, every name is found.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._keys: set[bytes] = set()
        self._all = False

    def __bool__(self) -> bool:
        return self._all or bool(self._keys)

    def __contains__(self, name: str | bytes) -> bool:
        return self._all or _shorten_name(name) in self._keys

    def add(self, name: str | bytes) -> None:
        """Add the name of a prepared statement."""
        if not self._all:
            self._keys.add(_shorten_name(name))
            self._all = len(self._keys) > self._most
            if self._all:
                self._keys.clear()

    def discard(self, name: bytes) -> None:
        """Remove a name, unless PostgreSQL may treat it as the same as another name in the set."""
        if name.isascii() and len(name) < _NAME_BYTES:
            self._keys.discard(name)

    def keep_only(self, names: set[bytes]) -> None:
        """Remove every name that is not in `names`."""
        keys = {_shorten_name(name) for name in names}
        self._keys = keys if self._all else self._keys & keys
        self._all = len(self._keys) > self._most


class ClientStatements:
    """The client's statements and portals that Keyhole answers, by the names that the client gave them.

    An entry may outlive its statement, because SQL also deallocates statements and transactions end portals. A caller
    therefore checks that the shadow still has the statement. The shadow refuses to run one that it no longer has.
    """

    def __init__(self, relay: ShadowRelay, exchange: ShadowExchange, text: ClientText) -> None:
        self.statements: dict[bytes, Statement] = {}
        self.portals: dict[bytes, Portal] = {}
        self.described: dict[bytes, RowDescription] = {}
        """By the names of portals, answered or not, the columns as the client's own text has them."""
        self._relay = relay
        self._exchange = exchange
        self._text = text
        self._held_bytes = 0
        self._readies = 0
        self._forgotten = 0
        self._prepared = PossibleNames(most=_MOST_NAMES)
        self._pending: dict[bytes, str] = {}
        self._savepoints = PossibleNames(most=_MOST_SAVEPOINTS)
        self._executed = PossibleNames(most=_MOST_NAMES)

    def check_parse(self, name: bytes, first_word: str, executing: str | None) -> None:
        """Raise KH102 if the client prepares a savepoint statement under a name that EXECUTE could run.

        PostgreSQL 18.4 crashes, with all its sessions, when EXECUTE runs SAVEPOINT, RELEASE or ROLLBACK TO outside a
        transaction. Only the protocol can prepare these statements.
        """
        if executing is not None:
            self._executed.add(executing)
        elif name and first_word in _SAVEPOINT_WORDS:
            if name in self._executed:
                raise refuse_executed_savepoint(None)
            self._savepoints.add(name)

    def check_execute(self, name: str, *, position: int) -> None:
        """Raise KH102 for EXECUTE of a name that may belong to a prepared savepoint statement."""
        if name in self._savepoints:
            raise refuse_executed_savepoint(position)

    async def forget_savepoints(self) -> None:
        """Forget the names of savepoint statements that the shadow no longer has.

        Raise ShadowFailed if the shadow fails.
        """
        self._savepoints.keep_only({one.name for one in await self._exchange.list_prepared_statements()})

    def note_prepare(self, name: str | bytes) -> None:
        """Note that a PREPARE of a question under this name is about to run."""
        self._prepared.add(name)

    def note_other_statement(self, name: bytes, parts: tuple[StatementPart, ...]) -> None:
        """Note that the client prepared a statement under this name that Keyhole does not answer.

        Its text may itself be a PREPARE of a question, which the client may run later.
        """
        self.forget_statement(name)
        self._prepared.discard(name)
        self._pending.pop(name, None)
        if len(parts) == 1 and parts[0].prepared_name is not None and len(self._pending) < _MOST_NAMES:
            self._pending[name] = parts[0].prepared_name

    def may_be_question(self, name: str | bytes) -> bool:
        """Return True if a prepared statement with this name may be a question."""
        return name in self._prepared or any(may_be_same_name(held, name) for held in self.statements)

    def may_be_from_prepare(self, name: bytes) -> bool:
        """Return True if a PREPARE of a question may have used this name."""
        return name in self._prepared

    def keep_question(self, name: bytes, statement: Statement) -> None:
        """Store a question that the client prepared under this name."""
        self.forget_statement(name)
        self.statements[name] = statement
        self._held_bytes += statement.held_bytes

    def forget_statement(self, name: bytes) -> None:
        """Remove a statement that the client closes, or whose name it prepares again."""
        statement = self.statements.pop(name, None)
        if statement is not None:
            self._held_bytes -= statement.held_bytes
        if statement is not None and statement.stand_in.startswith(OWN_NAMES):
            self._exchange.close(b"S", statement.stand_in)

    @property
    def held_bytes(self) -> int:
        """Return the memory of all stored texts and parameters, in bytes."""
        bound = (value for portal in self.portals.values() for value in portal.bind_message.values)
        return self._held_bytes + sum(map(getsizeof, bound))

    def find_fetched_portal(self, parts: tuple[StatementPart, ...]) -> bytes | None:
        """Return the name of the waiting portal that FETCH or MOVE reads, if the text has no other statement."""
        if not self.portals or len(parts) != 1 or parts[0].first_word not in _FETCHING:
            return None
        name = read_tokens(parts[0].text)[-1].value.encode()
        portal = self.portals.get(name)
        return None if portal is None or portal.statement.part.copied_query is not None else name

    def forget_ended_portals(self) -> None:
        """Remove the portals whose transaction has ended."""
        answers = self._relay.answers
        if answers.readies != self._readies and answers.status == b"I":
            self.portals.clear()
            self.described.clear()
        self._readies = answers.readies

    @property
    def is_outdated(self) -> bool:
        """Return True if the shadow may have lost statements since the last `forget_lost_statements`."""
        return self._relay.answers.forgotten != self._forgotten and bool(self.statements or self._prepared)

    async def forget_lost_statements(self) -> None:
        """Remove the statements that the shadow no longer has, if SQL may have deallocated any.

        In the shadow, another statement may have the same name by now. The unnamed statement is always kept. If its
        stand-in is lost, prepare the stand-in again. Raise ShadowFailed if the shadow fails.
        """
        if not self.is_outdated:
            return
        forgotten = self._relay.answers.forgotten
        kept = await self._exchange.list_prepared_statements()
        if len(self._pending) < _MOST_NAMES:
            self._prepared.keep_only({one.name for one in kept})
            for pending in self._pending.values():
                self._prepared.add(pending)
        texts = {one.name: one.text for one in kept if not one.is_from_prepare}
        for name, statement in tuple(self.statements.items()):
            own = statement.stand_in.startswith(OWN_NAMES)
            if name != UNNAMED:
                if texts.get(name) != statement.text:
                    self.forget_statement(name)
            elif own and statement.stand_in not in texts:
                sql = self._text.encode(statement.stand_in_text)
                self._exchange.parse(statement.stand_in, sql, statement.description.types)
        self._forgotten = forgotten


def may_be_same_name(one: str | bytes, other: str | bytes) -> bool:
    """Return True if PostgreSQL may treat two names as the same."""
    return _shorten_name(one) == _shorten_name(other)


def _shorten_name(name: str | bytes) -> bytes:
    """Return one key for all names that PostgreSQL may treat as the same.

    The key is the first bytes of the name if they are ASCII. All other names share one key, because each encoding
    writes them with other bytes.
    """
    raw = (name.encode("utf-8", "replace") if isinstance(name, str) else name)[:_NAME_BYTES]
    return raw if raw.isascii() else b"\xff"
