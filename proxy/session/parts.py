"""The parts of one session: its client, its connection to the shadow, and the objects between the two."""

import asyncio
from concurrent.futures import Executor
from dataclasses import dataclass

from proxy.concurrency.cancellable_work import QuestionWork
from proxy.monitors.notifications import AlertHub
from proxy.observe.telemetry import Telemetry
from proxy.session.client_statements import ClientStatements
from proxy.session.client_text import ClientText
from proxy.session.listening import NotificationListener
from proxy.session.port import Asker
from proxy.shadow.exchange import ShadowExchange
from proxy.shadow.relay import ShadowRelay
from proxy.wire.server_side import ServerProtocol


@dataclass(frozen=True, slots=True)
class SessionParts:
    """The parts of one session, in which `analyst` asks `asker`.

    `client` and `connection` are the client's socket and protocol state. `relay` copies messages to and from the
    shadow, and `exchange` sends Keyhole's own messages there. `client_statements` has the client's statements and
    portals that Keyhole must answer. `notifications` sends the notifications of monitors.
    """

    client: asyncio.StreamWriter
    connection: ServerProtocol
    relay: ShadowRelay
    exchange: ShadowExchange
    text: ClientText
    client_statements: ClientStatements
    notifications: NotificationListener
    work: QuestionWork
    asker: Asker
    analyst: str
    telemetry: Telemetry

    @staticmethod
    def make_for_session(
        relay: ShadowRelay,
        *,
        client: asyncio.StreamWriter,
        connection: ServerProtocol,
        asker: Asker,
        analyst: str,
        workers: Executor,
        telemetry: Telemetry,
        hub: AlertHub | None = None,
    ) -> "SessionParts":
        """Return the parts of a session that has just been opened in the shadow.

        Questions run in the threads of `workers`. Alerts of monitors come from `hub`.
        """
        work = QuestionWork(workers)
        exchange = ShadowExchange(relay, setting_names=tuple(asker.settings))
        text = ClientText(relay, exchange)
        return SessionParts(
            client=client,
            connection=connection,
            relay=relay,
            exchange=exchange,
            text=text,
            client_statements=ClientStatements(relay, exchange, text),
            notifications=NotificationListener(relay, exchange, client=client, work=work, hub=hub, analyst=analyst),
            work=work,
            asker=asker,
            analyst=analyst,
            telemetry=telemetry,
        )
