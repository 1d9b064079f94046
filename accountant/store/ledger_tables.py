"""The ledger's tables in SQLAlchemy's terms. The migrations make them. Some are declared in modules of their own.

The statements that every question executes are built here once. Building one takes as long as executing it.
"""

import sqlalchemy as sa

from accountant.events.packed_losses import pack_losses, unpack_losses


class PackedLosses(sa.types.TypeDecorator[bytes]):
    """A column type for losses per key: stored packed, read unpacked."""

    impl = sa.LargeBinary
    cache_ok = True

    def process_bind_param(self, value: bytes | None, _dialect: sa.Dialect) -> bytes | None:
        """Return the packed bytes to store."""
        return None if value is None else pack_losses(value)

    def process_result_value(self, value: bytes | None, _dialect: sa.Dialect) -> bytes | None:
        """Return the stored losses. Raise `LedgerUnavailable` if they are damaged."""
        return None if value is None else unpack_losses(value)


METADATA = sa.MetaData()
EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("kind", "reservation", "at", "payload")),
    sa.Column("spent_keys", PackedLosses),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("previous_hash", "hash")),
)
DOMAINS = sa.Table(
    "domains",
    METADATA,
    sa.Column("digest", sa.Text, primary_key=True),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
ANSWERS = sa.Table(
    "answers",
    METADATA,
    sa.Column("reservation", sa.Text, primary_key=True),
    sa.Column("event", sa.BigInteger, nullable=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("fingerprint", "version", "analyst")),
    sa.Column("answer", sa.LargeBinary, nullable=False),
)
PATHS = sa.Table(
    "paths",
    METADATA,
    *(sa.Column(name, sa.Text, primary_key=True) for name in ("reservation", "identity")),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("family_table", "version")),
    sa.Column("event", sa.BigInteger, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
PRUNED = sa.Table(
    "pruned",
    METADATA,
    sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("family_table", "version")),
)
SNAPSHOTS = sa.Table(
    "snapshots",
    METADATA,
    sa.Column("event", sa.BigInteger, primary_key=True, autoincrement=False),
    *(sa.Column(name, sa.Text, nullable=False) for name in ("hash", "digest")),
    sa.Column("body", sa.LargeBinary, nullable=False),
)
WRITER = sa.Table("writer", METADATA, sa.Column("id", sa.Integer, primary_key=True))

APPEND_EVENT = EVENTS.insert()
ADD_ANSWER = ANSWERS.insert()
ADD_PATHS = PATHS.insert()
FIND_EVENTS = sa.select(EVENTS).where(EVENTS.c.reservation == sa.bindparam("by_reservation")).order_by(EVENTS.c.id)
"""The events about `by_reservation`, in order."""
FIND_FIRST_ANSWER = (
    sa.select(ANSWERS.c.reservation, ANSWERS.c.answer)
    .where(ANSWERS.c.fingerprint == sa.bindparam("question"), ANSWERS.c.version == sa.bindparam("of_version"))
    .order_by(ANSWERS.c.event)
    .limit(1)
)
"""The first answer to `question` on the data version `of_version`."""
FIND_PAID_ANSWER = FIND_FIRST_ANSWER.where(ANSWERS.c.reservation == sa.bindparam("paid_by"))
"""The same, if the reservation `paid_by` stored it."""
FIND_PATH = (
    sa.select(PATHS.c.body, EVENTS.c.payload)
    .join(EVENTS, EVENTS.c.id == PATHS.c.event)
    .where(
        PATHS.c.reservation == sa.bindparam("by_reservation"),
        PATHS.c.identity == sa.bindparam("path"),
        PATHS.c.version == sa.bindparam("of_version"),
    )
)
"""The state of a noise path that `by_reservation` stored, with the payload of its commit."""
FIND_DOMAINS = sa.select(DOMAINS.c.digest).where(DOMAINS.c.digest.in_(sa.bindparam("digests", expanding=True)))
"""Those of `digests` whose key values are stored."""
