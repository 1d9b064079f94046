"""A process that asks one question over REST's application and dies at a chosen moment: `python -m ... POLICY WHEN`."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import httpx

from proxy.open_policy.service import Service
from proxy.rest.app import create_app
from tests.worlds.wards import QUESTION, TOKENS

KEY = "11111111-2222-3333-4444-555555555555"
MOMENTS = ("before reserving", "before the data", "before the commit", "before it is told")


def die(*_: Any, **__: Any) -> NoReturn:
    """As a power cut: nothing is flushed, nothing is cleaned up."""
    os._exit(9)


def main() -> None:
    policy, moment = Path(sys.argv[1]), sys.argv[2]
    service: Any = Service.open(policy)
    match moment:
        case "before reserving":
            service.ledger.reserve = die
        case "before the data":
            service.source.read_aggregates = die
        case "before the commit":
            service.ledger.commit = die
        case "before it is told":
            service.ledger.idempotency.store_response = die
    transport = httpx.ASGITransport(app=create_app(service))

    async def ask() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole") as client:
            headers = {"Authorization": f"Bearer {TOKENS['ada']}", "Idempotency-Key": KEY}
            await client.post("/v1/question", headers=headers, json={"sql": QUESTION.format(1500)})

    asyncio.run(ask())


if __name__ == "__main__":
    main()
