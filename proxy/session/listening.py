"""The notifications of monitors in a session. The shadow handles LISTEN, and Keyhole sends the notifications.

Only the shadow knows to which channels a session listens after commits, rollbacks and DISCARD ALL. Keyhole asks the
shadow whenever the channels may have changed and the session is idle. As in PostgreSQL, a notification comes while the
client is idle outside a transaction, or just before a ReadyForQuery that says so.
"""

import asyncio
import codecs
import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from planner.errors import KeyholeError
from planner.statements.listening import name_channel
from proxy.concurrency.cancellable_work import QuestionWork
from proxy.monitors.alert_json import make_clearing_document, write_iso
from proxy.monitors.notifications import AdmittedMonitor, AlertHub, AlertNotice, Change, MonitorNews, NewsRequest
from proxy.session.error_fields import encode_notice
from proxy.shadow.answers import ExpectedAnswer
from proxy.shadow.exchange import ShadowExchange
from proxy.shadow.relay import ShadowRelay
from proxy.wire.backend import NotificationResponse

MOST_PAYLOAD_BYTES = 7_999  # as much as NOTIFY takes, so that no program has to expect more
_MOST_UNREAD_BYTES = 64 * 1024  # written ahead of a client that does not read; all sessions share what waits here
_ASCII = codecs.lookup("ascii")


@dataclass(frozen=True, slots=True)
class _ChannelQuery:
    """A request to the shadow for the session's channels. `listened` is the number of LISTEN commands before it."""

    answer: ExpectedAnswer
    listened: int


class NotificationListener:
    """The notifications for one session of `analyst`. Without a `hub`, there are none."""

    def __init__(
        self,
        relay: ShadowRelay,
        exchange: ShadowExchange,
        *,
        client: asyncio.StreamWriter,
        work: QuestionWork,
        hub: AlertHub | None,
        analyst: str,
    ) -> None:
        self._relay = relay
        self._exchange = exchange
        self._client = client
        self._work = work
        self._hub = hub
        self._analyst = analyst
        self._is_idle: Callable[[], bool] = bool
        self._known = 0
        self._question: _ChannelQuery | None = None
        self._admitted: dict[bytes, AdmittedMonitor] = {}
        self._heard: dict[bytes, Callable[[], None]] = {}
        self._pending: deque[Change | KeyholeError] = deque()

    def begin(self, is_idle: Callable[[], bool]) -> None:
        """Start sending notifications in an open session.

        `is_idle` returns True while the client has nothing running and is in no transaction.
        """
        self._is_idle = is_idle
        if self._hub is not None:
            self._relay.before_ready, self._relay.on_settled = self._take_notifications, self.update

    def end(self) -> None:
        """Stop sending notifications, at the end of the session."""
        for stop in self._heard.values():
            stop()
        self._heard.clear()
        self._pending.clear()

    async def admit_channel(self, channel: str) -> None:
        """Check that the client may LISTEN on a channel, and charge the analyst for the channel's monitor.

        Listening to a monitor counts as reading it, so it is charged. Only a monitor that the analyst may read has a
        channel. Notifications are sent once the shadow has run the LISTEN. Raise KH306 if the analyst's own cap does
        not cover it, and KH502 if the ledger is not available.
        """
        if self._hub is None:
            return
        found = await self._work.run(partial(self._hub.desk.admit_channel, channel, analyst=self._analyst))
        if found is not None:
            self._admitted[channel.encode()] = found

    def update(self) -> None:
        """Do the next step that is due: read the shadow's list of channels, request it, or send notifications.

        Call it whenever a statement or an answer has ended.
        """
        if self._question is not None and self._question.answer.is_complete:
            self._update_channels(self._question)
        if not self._admitted or not self._is_idle():
            return
        if not self._knows_channels:
            self._question = self._question or _ChannelQuery(
                self._exchange.ask_channels(), self._relay.answers.listened
            )
        elif self._pending and self._relay.unread_bytes <= _MOST_UNREAD_BYTES:
            self._client.write(self._take_notifications())

    @property
    def _knows_channels(self) -> bool:
        return self._known == self._relay.answers.listened

    def _update_channels(self, question: _ChannelQuery) -> None:
        self._question, self._known = None, question.listened
        channels = self._exchange.decode_channels(question.answer)
        if channels is None:
            return  # the shadow had no time for it: as before, until the next LISTEN
        for channel, admitted in tuple(self._admitted.items()):
            if channel in channels and channel not in self._heard:
                self._subscribe(channel, admitted)
            elif channel not in channels and channel in self._heard:
                self._heard.pop(channel)()
                self._drop_pending(admitted.monitor)

    def _subscribe(self, channel: bytes, admitted: AdmittedMonitor) -> None:
        assert self._hub is not None
        wanted = NewsRequest(admitted.monitor, self._analyst, admitted.last_look)
        self._admitted[channel] = AdmittedMonitor(admitted.monitor, None)  # another LISTEN begins where it says itself

        def take(news: MonitorNews | KeyholeError | None) -> None:
            match news:
                case MonitorNews(changes=changes):
                    self._pending.extend(changes)
                case KeyholeError():
                    self._heard.pop(channel, None)
                    self._pending.append(news)
            self.update()

        self._heard[channel] = self._hub.subscribe(wanted, take)

    def _drop_pending(self, monitor: str) -> None:
        kept = [one for one in self._pending if isinstance(one, KeyholeError) or one.monitor != monitor]
        self._pending = deque(kept)

    def _take_notifications(self) -> bytes:
        """Return the next notifications as frames, up to the number that may wait unread by the client."""
        frames = bytearray()
        while self._knows_channels and self._pending and len(frames) <= _MOST_UNREAD_BYTES:
            told = self._pending.popleft()
            if isinstance(told, KeyholeError):
                frames += encode_notice(f"{told.code}: {told.message}", codec=_ASCII)
            else:
                frames += NotificationResponse(0, name_channel(told.monitor).encode(), encode_payload(told)).encode()
        return bytes(frames)


def encode_payload(change: Change) -> bytes:
    """Return a notification's payload: ASCII JSON, which is the same in every encoding.

    If a key is too long for a payload, it is left out.
    """
    told = _make_alert_payload(change) if isinstance(change, AlertNotice) else make_clearing_document(change)
    payload = json.dumps(told).encode()
    return payload if len(payload) <= MOST_PAYLOAD_BYTES else json.dumps(told | {"key": None}).encode()


def _make_alert_payload(alert: AlertNotice) -> dict[str, Any]:
    return {
        "monitor": alert.monitor,
        "key": dict(alert.key),
        "window": write_iso(alert.window_start),
        "alerted_at": alert.alerted_at.isoformat(),
        "look": alert.number,
    }
