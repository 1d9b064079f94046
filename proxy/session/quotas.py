"""The limits on prepared statements, cursors and portals that a session holds in the shadow."""

from proxy.pipeline.messages import StatementPart
from proxy.session.parts import SessionParts
from proxy.session.session_refusals import refuse_too_many_held


class StatementQuotas:
    """Counters of the prepared statements, cursors and portals that a session may hold at most in the shadow.

    Without asking the shadow, they are upper bounds: some counted names may be gone, or never existed. If a limit is
    reached, the shadow is asked for the true number.
    """

    def __init__(self, session: SessionParts, *, statements: int, portals: int) -> None:
        self._relay = session.relay
        self._exchange = session.exchange
        self._held = session.client_statements
        self._transactions = 0
        self._most_statements = statements
        self._most_portals = portals
        self._statements = 0
        self._cursors = 0
        self._since = 0
        self._portals: set[bytes] = set()

    @property
    def is_nearly_full(self) -> bool:
        """Return True if the quota should be checked now, between two batches."""
        full = 4 * self._statements > 3 * self._most_statements or 4 * self._cursors > 3 * self._most_portals
        return full and 8 * self._since > min(self._most_statements, self._most_portals)

    async def make_room(self, parts: tuple[StatementPart, ...], name: bytes = b"") -> bool:
        """Check the quota before a text is sent that prepares statements, declares cursors or is itself named.

        Return True if the shadow was asked. It cannot be asked in a failed transaction. Then only statements that end
        the transaction can be prepared, and the limits are doubled. Raise KH410 and ShadowFailed.
        """
        words = [part.first_word for part in parts]
        statements, cursors = bool(name) + words.count("prepare"), words.count("declare")
        if not statements and not cursors:
            return False
        if self._statements + statements <= self._most_statements and self._cursors + cursors <= self._most_portals:
            self._count(statements=statements, cursors=cursors)
            return False
        await self._exchange.settle()
        failed = self._relay.answers.status == b"E"
        if not failed:
            await self.recount()
        self._check_room(statements=statements, cursors=cursors, room=2 if failed else 1)
        return not failed

    async def recount(self) -> None:
        """Ask the shadow for the number of its prepared statements and cursors.

        Raise ShadowFailed if the shadow fails.
        """
        await self._held.forget_savepoints()
        self._since = 0
        self._statements = await self._exchange.count_prepared_statements()
        self._cursors = await self._exchange.count_cursors()

    def count_portal(self, portal: bytes) -> None:
        """Count a portal that is about to be made. Raise KH410 if there are too many."""
        answers = self._relay.answers
        if answers.status == b"I" and answers.readies != self._transactions:
            self._transactions = answers.readies
            self._portals.clear()  # no earlier portal can be left
        if portal not in self._portals and len(self._portals) >= self._most_portals:
            raise refuse_too_many_held("portals", most=self._most_portals)
        self._portals.add(portal)

    def forget_portal(self, portal: bytes) -> None:
        """Stop counting a portal that the client closes."""
        self._portals.discard(portal)

    def _check_room(self, *, statements: int, cursors: int, room: int) -> None:
        if statements and self._statements + statements > room * self._most_statements:
            raise refuse_too_many_held("prepared statements", most=self._most_statements)
        if cursors and self._cursors + cursors > room * self._most_portals:
            raise refuse_too_many_held("cursors", most=self._most_portals)
        self._count(statements=statements, cursors=cursors)

    def _count(self, *, statements: int, cursors: int) -> None:
        self._statements += statements
        self._cursors += cursors
        self._since += statements + cursors
