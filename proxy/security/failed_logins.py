"""The limit on wrong tokens and passwords, counted together for REST and the PostgreSQL port of one process.

Guarantee: a network (an address, or the first 64 bits of an IPv6 address) may have at most `per_minute` wrong tokens
looked at. The same holds for wrong passwords of each user, and ten times as many for all users and tokens together. As
many again are allowed in every minute after that. Failures of other networks do not count, so nobody can lock out a
user from elsewhere. Users who do not exist are counted like those who do.
"""

import time
from collections.abc import Callable

from proxy.security.rate_limit import RateLimit

ALL_USERS = 10  # the failures of everybody in a network, in those of one: many people behind one address mistype, too
_USER_CHARACTERS = 64  # of a name: as many as PostgreSQL tells apart, so that long ones take no memory
_NOBODY = ""  # a wrong token names no user


class FailedLogins:
    """The counters of recent failed logins. Use them from one event loop, since no method waits or locks."""

    def __init__(self, per_minute: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._of_users = RateLimit(per_minute, clock=clock)
        self._of_networks = RateLimit(per_minute * ALL_USERS, clock=clock)

    def get_wait_s(self, network: str, *, user: str = _NOBODY) -> int:
        """Return the seconds until another token, or another password of this user, may be tried; 0 if now."""
        return max(self._of_users.get_wait_s(_join_name(network, user)), self._of_networks.get_wait_s(network))

    def note_failure(self, network: str, *, user: str = _NOBODY) -> None:
        """Count a wrong token, or a wrong password of this user."""
        self._of_users.count_if_allowed(_join_name(network, user))
        self._of_networks.count_if_allowed(network)


def _join_name(network: str, user: str) -> str:
    return f"{network} {user[:_USER_CHARACTERS]}"
