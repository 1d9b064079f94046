"""What a session holds that Keyhole must answer: prepared statements, portals, and names that PREPARE gave."""

from dataclasses import dataclass

from planner.errors import KeyholeError
from planner.session_statement import refused
from proxy.asker import Part
from proxy.shadow.exchange import STAND_IN, Described, Exchange
from proxy.wire.frontend import Bind

_SAVEPOINT_WORDS = frozenset({"savepoint", "release", "rollback"})
_NAME_BYTES = 60  # of the 63 that PostgreSQL keeps of a name: whoever asks by fewer finds too much, never too little


@dataclass(frozen=True, slots=True)
class Statement:
    """A prepared statement of the client that Keyhole must answer, as the shadow described it.

    `text` is what the client sent. Its portals are made of `stand_in`, another statement of the shadow with the text
    `stand_in_text`. `in_sql`: by PREPARE, so that positions in its text mean nothing to who binds it.
    """

    part: Part
    text: bytes
    described: Described
    stand_in: bytes
    stand_in_text: bytes
    in_sql: bool = False


@dataclass(frozen=True, slots=True)
class Portal:
    """A bound statement that Keyhole must answer and has not answered yet.

    `executed`: by EXECUTE, so that positions in its text mean nothing to the client.
    """

    statement: Statement
    bound: Bind
    executed: bool = False


class Held:
    """The client's statements and portals for Keyhole, by name.

    An entry may outlive what it stands for: SQL forgets statements too, and transactions end. So whoever uses one makes
    sure that the shadow still has it; the shadow itself denies running what has been forgotten here.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.statements: dict[bytes, Statement] = {}
        self.portals: dict[bytes, Portal] = {}
        self._exchange = exchange
        self._prepared: set[bytes] = set()
        self._forgotten = 0
        self._savepoints: set[bytes] = set()
        self._executed: set[bytes] = set()

    def check_parse(self, name: bytes, first_word: str, executing: str | None) -> None:
        """Refuse (KH102) a statement of the protocol that an EXECUTE could run as no savepoint may be run.

        PostgreSQL 18.4 crashes, with all its sessions, when EXECUTE runs SAVEPOINT, RELEASE or ROLLBACK TO, which only
        the protocol can prepare, outside a transaction.
        """
        if executing is not None:
            self._executed.add(_key(executing))
        elif name and first_word in _SAVEPOINT_WORDS:
            if _key(name) in self._executed:
                raise _no_savepoints(None)
            self._savepoints.add(_key(name))

    def check_execute(self, name: str, *, position: int) -> None:
        """Refuse (KH102) an EXECUTE of what may be such a statement."""
        if _key(name) in self._savepoints:
            raise _no_savepoints(position)

    def prepared(self, name: str | bytes) -> None:
        """PREPARE is about to give a question this name."""
        self._prepared.add(_key(name))

    def may_be_question(self, name: str | bytes) -> bool:
        """Whether a question may be prepared under a name."""
        return _key(name) in self._prepared or any(_key(held) == _key(name) for held in self.statements)

    def may_be_prepared(self, name: bytes) -> bool:
        """Whether PREPARE may have given a question this name."""
        return _key(name) in self._prepared

    def forget(self, statement: bytes) -> None:
        """The client closes a statement."""
        if self.statements.pop(statement, None) is not None:
            self._exchange.close(b"S", STAND_IN + statement)

    def replaced(self, name: bytes) -> None:
        """A name has come to mean something that is not for Keyhole."""
        self.forget(name)
        self._prepared.discard(name)

    def outdated(self, forgotten: int) -> bool:
        """Whether `check` has something to do."""
        return forgotten != self._forgotten and bool(self.statements or self._prepared)

    async def check(self, forgotten: int) -> None:
        """Forget what the shadow has not kept, if SQL has made it forget statements since the last time.

        `forgotten` counts how often it has. Another statement may have the same name by now. Raises ShadowFailed.
        """
        if not self.outdated(forgotten):
            return
        kept = await self._exchange.all_held()
        texts = {one.name: one.text for one in kept if not one.in_sql}
        for name, statement in tuple(self.statements.items()):
            if name != b"" and texts.get(name) != statement.text:
                self.forget(name)
        self._prepared &= {_key(one.name) for one in kept}
        self._forgotten = forgotten


def _no_savepoints(position: int | None) -> KeyholeError:
    return refused(
        "EXECUTE of SAVEPOINT, RELEASE and ROLLBACK is not allowed",
        position=position,
        hint="Send the statement itself, or bind what is prepared by protocol messages.",
    )


def _key(name: str | bytes) -> bytes:
    """What names that may be the same to PostgreSQL have in common, in whatever encoding they come."""
    raw = name.encode("utf-8", "replace") if isinstance(name, str) else name
    return raw[:_NAME_BYTES] if raw.isascii() else b"\xff"
