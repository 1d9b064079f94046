"""How often tokens and passwords may be tried: one count for REST and PostgreSQL's port, of one process.

Guarantee: from one network (an address, with IPv6 64 bits of it) at most `per_minute` wrong tokens are looked at, as
many wrong passwords of each user, and ten times as many of all users and tokens together; as many again in every minute
after that. Nothing that another network does counts, so nobody is kept out from elsewhere. Users who do not exist are
counted like those who do.
"""

import time
from collections.abc import Callable

from proxy.security.rate_limit import RateLimit

ALL_USERS = 10  # the failures of everybody in a network, in those of one: many people behind one address mistype, too
_USER_CHARACTERS = 64  # of a name: as many as PostgreSQL tells apart, so that long ones take no memory
_NOBODY = ""  # a wrong token names no user


class FailedLogins:
    """The failures of the last minutes. For one event loop: nothing here waits or locks."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_users = RateLimit(per_minute, clock=clock)
        self._of_networks = RateLimit(per_minute * ALL_USERS, clock=clock)

    def get_wait_s(self, network: str, *, user: str = _NOBODY) -> int:
        """Return the whole seconds until the next token, or password of a user, is looked at; 0 if it is now."""
        return max(self._of_users.get_wait_s(_join_name(network, user)), self._of_networks.get_wait_s(network))

    def note_failure(self, network: str, *, user: str = _NOBODY) -> None:
        """Note that a token, or a password of a user, was wrong."""
        self._of_users.count_if_allowed(_join_name(network, user))
        self._of_networks.count_if_allowed(network)


def _join_name(network: str, user: str) -> str:
    return f"{network} {user[:_USER_CHARACTERS]}"
