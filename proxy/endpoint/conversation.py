"""A session's both directions, from its greeting to its end.

Guarantee: what a client asked for before it ended its sending, or said good-bye, is answered as far as the client is
there to hear it, and its system has the answer before Keyhole hangs up.
"""

import asyncio
from itertools import count

from proxy.endpoint.hang_ups import probe_client
from proxy.endpoint.login import ClientGone, ClientStream
from proxy.session.session import Session
from proxy.shadow.relay import ShadowRelay
from proxy.wire.frontend import Terminate
from proxy.wire.server_side import ReceivedMessage

_AT_A_TIME = 64  # messages, most of which need no wait: thousands lie in one read


async def relay_both_ways(stream: ClientStream, relay: ShadowRelay, session: Session) -> None:
    """Relay both directions until either side ends. Raise the error that ended them, if there is one."""
    pump = asyncio.create_task(relay.forward_answers())
    statements = asyncio.create_task(_handle_statements(stream, session, relay))
    try:
        await asyncio.wait({pump, statements}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pump, statements):
            task.cancel()
        outcomes = await asyncio.gather(pump, statements, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome


async def _handle_statements(stream: ClientStream, session: Session, relay: ShadowRelay) -> None:
    """Handle the client's messages one by one, and have the shadow answer all of them.

    A message is handled only after the answers to the earlier ones were read. A client that sends without end lets
    other clients have their turn.
    """
    for number in count(1):
        if number % _AT_A_TIME == 0:
            await asyncio.sleep(0)
        await relay.keep_pace()
        received = stream.connection.next_message() or await _read_next_message(stream)
        if received is None or isinstance(received.message, Terminate):
            break
        relay.gathers = stream.connection.has_more
        with stream.count_as_held(received):
            await session.handle(received)
    if not relay.answers.is_settled:
        probe_client(stream, relay)  # it may have gone, and then nothing is to be left running for it
        await relay.settle()
    await stream.wait_until_sent()


async def _read_next_message(stream: ClientStream) -> ReceivedMessage | None:
    """Return the client's next message; None if no more comes."""
    try:
        return await stream.read_message()
    except ClientGone:
        return None
