"""The shadow's replies to Keyhole's own messages, as values."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from proxy.shadow.answers import ExpectedAnswer
from proxy.wire import backend
from proxy.wire.backend import DataRow, ParameterDescription, RowDescription
from proxy.wire.frames import FrameReader

_FIRST_YEAR, _LAST_YEAR = 1970, 2100  # clocks were moved at midnight in these years, or may be
READING_SETTINGS = ("DateStyle", "IntervalStyle", "TimeZone", "client_encoding")


class ShadowFailed(Exception):
    """The error for an error of the shadow that the client has already seen. The batch has ended."""


@dataclass(frozen=True, slots=True)
class StatementDescription:
    """The parameters and columns of a statement. `rows` is None if it returns no rows."""

    types: tuple[int, ...]
    rows: RowDescription | None

    @property
    def signature(self) -> tuple[tuple[bytes, int], ...]:
        """The name and type OID of each column."""
        return () if self.rows is None else self.rows.signature


@dataclass(frozen=True, slots=True)
class PreparedStatement:
    """A prepared statement that the shadow has. The name is in UTF-8.

    `is_from_prepare` is True if SQL's PREPARE made the statement; the text then begins with PREPARE.
    """

    name: bytes
    text: str
    is_from_prepare: bool


@dataclass(frozen=True, slots=True)
class SessionState:
    """The settings of the session, and the text of the statement behind a portal.

    The settings are the `keyhole.*` values (None or empty means unset), whether the client wants notices, and whether
    its TimeZone is UTC. `skipped_midnights` are the days on which clocks there jump over midnight.
    `portal` is the text of the statement behind the portal that was asked about.
    `reading_settings` are the settings by which PostgreSQL reads parameters in text form, in the order of
    `READING_SETTINGS`.
    """

    settings: dict[str, str | None]
    wants_notices: bool
    is_utc: bool
    skipped_midnights: tuple[date, ...]
    portal: str | None
    reading_settings: tuple[bytes, ...]


def parse_description(expected: ExpectedAnswer) -> StatementDescription:
    """Parse a statement's description from the reply to `ShadowExchange.describe`."""
    types: tuple[int, ...] = ()
    rows: RowDescription | None = None
    for frame in expected.kept_frames:
        match backend.decode(frame):
            case ParameterDescription(types=types):
                pass
            case RowDescription() as rows:
                pass
    return StatementDescription(types=types, rows=rows)


def find_reading_settings(found: tuple[bytes | None, ...]) -> tuple[bytes, ...]:
    """Return the settings of `READING_SETTINGS`, which are the last columns of a row."""
    return tuple(value or b"" for value in found[-len(READING_SETTINGS) :])


def parse_prepared_statement(found: tuple[bytes | None, ...]) -> PreparedStatement:
    """Parse a prepared statement from a row of the shadow's reply."""
    name, text, in_sql = found
    return PreparedStatement(
        name=name or b"", text=(text or b"").decode("utf-8", "replace"), is_from_prepare=in_sql == b"t"
    )


def read_row(expected: ExpectedAnswer) -> tuple[bytes | None, ...]:
    """Return the only row of a reply. Raise ShadowFailed if there is none."""
    frame = expected.find_frame("D")
    message = None if frame is None else backend.decode(frame)
    if not isinstance(message, DataRow):
        raise ShadowFailed
    return message.values


def read_rows(expected: ExpectedAnswer) -> list[tuple[bytes | None, ...]]:
    """Return all rows of a reply. One frame may contain several rows."""
    found: list[tuple[bytes | None, ...]] = []
    for frame in expected.kept_frames:
        if frame.kind == ord("D"):
            reader = FrameReader(limit_bytes=1 << 30, merges_rows=False)
            reader.feed(frame.raw)
            while (single := reader.read_typed_frame()) is not None:
                message = backend.decode(single)
                if isinstance(message, DataRow):
                    found.append(message.values)
    return found


def is_utc(zone: bytes | None) -> bool:
    """Return True if a TimeZone setting means UTC."""
    return zone is not None and zone.lower() in (b"utc", b"etc/utc", b"gmt", b"etc/gmt")


@lru_cache(maxsize=64)
def find_skipped_midnights(zone: bytes | None) -> tuple[date, ...]:
    """Return the days whose midnight a TimeZone's clocks jump over. Return none for a zone without a known history.

    >>> date(2018, 11, 4) in find_skipped_midnights(b"America/Sao_Paulo")
    True
    >>> find_skipped_midnights(b"Europe/Berlin")
    ()
    """
    try:
        known = ZoneInfo((zone or b"UTC").decode("ascii"))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ()
    found: list[date] = []
    day, end = datetime(_FIRST_YEAR, 1, 1, tzinfo=known), datetime(_LAST_YEAR, 1, 1, tzinfo=known)
    while day < end:
        later = day + timedelta(weeks=1)
        if later.utcoffset() != day.utcoffset():  # clocks were moved in that week
            week = (day + timedelta(days=number) for number in range(8))
            found += [one.date() for one in week if _is_skipped(one, known)]
        day = later
    return tuple(dict.fromkeys(found))


def _is_skipped(time: datetime, zone: ZoneInfo) -> bool:
    return time.astimezone(UTC).astimezone(zone).replace(tzinfo=None) != time.replace(tzinfo=None)
