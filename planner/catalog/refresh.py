"""The times at which a table's data version changes: by a calendar or by the owner's word, never by the data."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta

from planner.catalog.fault import Fault

REFRESH_CHOICES = (
    'Say when its data change: "live" (at any time; nothing is used twice), "static" (never; you vouch for that), '
    '"explicit" (when you run keyhole refresh), "hourly" or "daily 02:00" (UTC; then and at no other time).'
)
_DAILY = re.compile(r"daily\s+([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True)
class Refresh:
    """A table's `refresh`: "static", "live", "explicit", "hourly" or "daily" at a time of day in UTC."""

    kind: str
    at: time = time(0, 0)

    def name_tick(self, now: datetime) -> str | None:
        """Return the public name of the latest tick at the time `now`. Return None if no calendar decides it."""
        now = now.astimezone(UTC)
        match self.kind:
            case "static":
                return "static"
            case "hourly":
                return now.strftime("%Y-%m-%d %H:00")
            case "daily":
                ticked = now if now.time() >= self.at else now - timedelta(days=1)
                return ticked.date().isoformat()
            case _:
                return None


def parse_refresh(text: str) -> Refresh:
    """Parse a policy's `refresh`. Raise a `Fault` (KH002) for any other text."""
    if text in ("static", "live", "explicit", "hourly"):
        return Refresh(kind=text)
    if match := _DAILY.fullmatch(text):
        return Refresh(kind="daily", at=time(int(match[1]), int(match[2])))
    raise Fault("KH002", "is not a refresh that Keyhole knows", hint=REFRESH_CHOICES)
