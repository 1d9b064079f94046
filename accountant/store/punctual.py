"""A connection to PostgreSQL that limits every wait, even if the server never answers.

Guarantee: no call waits longer than the connection's `longest_s`, or beyond the moment that a surrounding
`deadline.limit_waits_until` sets. This needs no help of the server. After a wait that was given up the connection is
closed: the server may still run the statement, and its answer must not be read as that of a later one.
"""

import math
import time
from collections.abc import Mapping
from typing import Any, Self, TypeVar

import psycopg
from psycopg import conninfo as connection_strings
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from accountant.store.deadline import find_block_deadline

_Result = TypeVar("_Result")

# for a server that works, and says nothing until it is done: the catalog, a balance, a commit; set, not measured
LONGEST_S = 30.0
# between two looks at the clock and at signals while waiting: psycopg's own
_LOOK_S = 0.1
# a time limit of zero would be none
_LEAST_S = 0.001
# So that firewalls do not forget a connection that does nothing, and a machine that is gone is noticed within a minute
# by connections that nobody waits on.
_TCP: Mapping[str, int] = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


class PunctualConnection(psycopg.Connection[tuple[Any, ...]]):
    """psycopg's connection with limited waits. A longer wait closes the connection and raises OperationalError."""

    longest_s = LONGEST_S

    @classmethod
    def connect(cls, conninfo: str = "", **kwargs: Any) -> Self:
        """Connect as psycopg does. Use keep-alives on TCP unless the address says otherwise."""
        named = {*connection_strings.conninfo_to_dict(conninfo), *kwargs}
        own: dict[str, Any] = {name: value for name, value in _TCP.items() if name not in named}
        most_s = float(kwargs.get("connect_timeout") or LONGEST_S)
        if (moment := find_block_deadline()) is not None:
            most_s = min(most_s, moment - time.monotonic())
        if "connect_timeout" in kwargs or "connect_timeout" not in named or moment is not None:
            kwargs["connect_timeout"] = max(1, math.ceil(most_s))
        return super().connect(conninfo, **own, **kwargs)

    def wait(self, gen: PQGen[_Result], interval: float = _LOOK_S, timeout: float | None = None) -> _Result:
        """Wait as psycopg does, but not beyond the deadline of the surrounding block."""
        moment = find_block_deadline()
        left_s = self.longest_s if moment is None else moment - time.monotonic()
        try:
            return super().wait(gen, interval, max(_LEAST_S, left_s if timeout is None else min(left_s, timeout)))
        except psycopg.OperationalError:
            if self.info.transaction_status is TransactionStatus.ACTIVE:
                self.close()
            raise
