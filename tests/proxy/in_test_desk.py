"""A news desk that alerts what a test says, for sessions: who may read, and what it costs, is decided here."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Lock

from planner.errors import KeyholeError
from proxy.monitors.notifications import AdmittedMonitor, AlertNotice, MonitorNews, NewsRequest

BEGAN = datetime(2026, 1, 5, tzinfo=UTC)


def alert(number: int, country: str) -> AlertNotice:
    """What the monitor `crowded` alerts at an hourly look."""
    return AlertNotice(
        "crowded",
        number,
        (("country", country),),
        window_start=BEGAN,
        alerted_at=BEGAN + timedelta(hours=number),
        window_closes=BEGAN + timedelta(days=1),
    )


@dataclass
class InTestDesk:
    """The monitor `crowded`, which ada may read and bob may not. `refusal` is what reading it ends with from now on."""

    told: list[AlertNotice] = field(default_factory=list)
    last_look: int = 0
    refusal: KeyholeError | None = None
    readings: int = 0
    lock: Lock = field(default_factory=Lock)

    def look(self, number: int, *countries: str) -> None:
        """A look at which these came into the answer."""
        with self.lock:
            self.told += [alert(number, country) for country in countries]
            self.last_look = number

    def admit_channel(self, channel: str, *, analyst: str) -> AdmittedMonitor | None:
        if channel != "keyhole_crowded" or analyst != "ada":
            return None
        if self.refusal is not None:
            raise self.refusal
        with self.lock:
            return AdmittedMonitor("crowded", self.last_look)

    def read_news(self, wanted: Collection[NewsRequest]) -> Mapping[NewsRequest, MonitorNews | KeyholeError]:
        with self.lock:
            self.readings += 1
            found: dict[NewsRequest, MonitorNews | KeyholeError] = {}
            for one in wanted:
                if self.refusal is not None:
                    found[one] = self.refusal
                elif one.after is None or self.last_look > one.after:
                    alerts = tuple(told for told in self.told if told.number > (one.after or 0))
                    found[one] = MonitorNews("crowded", "running", "", self.last_look, 1, alerts)
            return found
