"""How many prepared statements and portals a session holds in the shadow, against its limits."""

from planner.errors import KeyholeError
from proxy.shadow.exchange import Exchange


class Counted:
    """Upper bounds, kept without asking the shadow: names may be gone, or never have come to be.

    Once the bound on statements is reached the shadow tells how many there are. `transactions` is the count of
    transactions at the last portal.
    """

    def __init__(self, exchange: Exchange, *, statements: int, portals: int) -> None:
        self.transactions = 0
        self._exchange = exchange
        self._most_statements = statements
        self._most_portals = portals
        self._statements = 0
        self._portals: set[bytes] = set()

    def has_room(self) -> bool:
        """Count one more statement; False, and it does not count, if there may be too many."""
        if self._statements >= self._most_statements:
            return False
        self._statements += 1
        return True

    async def look(self) -> None:
        """Ask the shadow how many statements there are, and count one more. Raises KH410, ShadowFailed."""
        self._statements = await self._exchange.count_held()
        if not self.has_room():
            raise _too_many("prepared statements", self._most_statements)

    def bind(self, portal: bytes, *, transactions: int) -> None:
        """A portal is about to be made. Raises KH410."""
        if transactions != self.transactions:
            self.transactions = transactions
            self._portals.clear()
        if portal not in self._portals and len(self._portals) >= self._most_portals:
            raise _too_many("portals", self._most_portals)
        self._portals.add(portal)

    def close(self, portal: bytes) -> None:
        """The client closes a portal."""
        self._portals.discard(portal)


def _too_many(what: str, most: int) -> KeyholeError:
    return KeyholeError(
        "KH410",
        f"a session holds at most {most:,} {what}",
        hint="Close those that are not needed any more, or set the driver's statement cache lower.",
    )
