"""How many requests of analysts are worked on at a time: no more than the policy says, and no fewer."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import httpx
import pytest

from planner.errors import KeyholeError
from planner.policy.sections import RestSection
from proxy.open_policy.service import Service
from proxy.rest.app import create_app
from proxy.rest.gate import Gate
from proxy.security.failed_logins import FailedLogins
from tests.effort import PATIENCE_S
from tests.proxy.rest.test_app import ADA, send
from tests.proxy.rest.test_gate import ANALYSTS, EXPLAIN
from tests.worlds.rest_house import UNHURRIED, own_house


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with own_house(tmp_path_factory.mktemp("wards")) as opened:
        yield opened


def test_so_many_at_a_time_and_no_more() -> None:
    gate = Gate(RestSection(concurrent_requests=3, concurrent_requests_per_analyst=2), FailedLogins(1))
    with ExitStack() as working:
        for _ in range(2):
            working.enter_context(gate.take_slot(ANALYSTS[0]))
        with pytest.raises(KeyholeError, match="KH430"), gate.take_slot(ANALYSTS[0]):
            pass
        with gate.take_slot(ANALYSTS[1]), pytest.raises(KeyholeError, match="KH406"), gate.take_slot(ANALYSTS[1]):
            pass
    with gate.take_slot(ANALYSTS[0]):
        pass


def test_the_place_of_a_request_is_free_once_it_is_answered(service: Service) -> None:
    """Whatever it came to; and while it is worked on it is not."""
    limits = UNHURRIED.model_copy(update={"concurrent_requests_per_analyst": 1, "concurrent_requests": 1})
    app = create_app(service, limits)
    for content in (b"{", json.dumps(EXPLAIN).encode(), b'{"sql": "DROP TABLE visits"}'):
        for _ in range(3):
            headers = ADA | {"Content-Type": "application/json"}
            assert send(app, "POST", "/v1/explain", headers=headers, content=content).status_code in (200, 400, 403)

    async def both() -> list[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole", headers=ADA) as client:
            answers = await asyncio.gather(*(client.post("/v1/explain", json=EXPLAIN) for _ in range(2)))
            return sorted(answer.status_code for answer in answers)

    assert asyncio.run(both()) == [200, 503]


def test_as_many_are_at_work_as_the_policy_says(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than the forty threads that there are by themselves: each waits until all are there."""
    meeting = threading.Barrier(45, timeout=PATIENCE_S)
    monkeypatch.setattr("proxy.report.budget.make_document", lambda *_: {"met": meeting.wait() >= 0})
    limits = UNHURRIED.model_copy(update={"concurrent_requests": 45, "concurrent_requests_per_analyst": 45})
    app = create_app(service, limits)

    async def together() -> set[int]:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://keyhole", headers=ADA) as client:
            return {one.status_code for one in await asyncio.gather(*(client.get("/v1/budget") for _ in range(45)))}

    assert asyncio.run(together()) == {200}
