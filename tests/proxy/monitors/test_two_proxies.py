"""Two Keyholes on one PostgreSQL ledger: each look is made once, whoever comes first."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proxy.open_policy.service import Service
from tests.worlds.clinic import HOUR, START, clinic, visits
from tests.worlds.house import new_database

pytestmark = pytest.mark.server


def test_each_look_is_made_once_by_one_of_two(tmp_path: Path, postgres_url: str) -> None:
    with (
        new_database(postgres_url) as ledger,
        clinic(tmp_path, postgres_url, ledger=ledger, every="2 hours") as wards,
        Service.open(wards.policy) as other,
        ThreadPoolExecutor(2) as both,
    ):
        run = wards.start()
        runners = [wards.runner(), wards.runner(other)]
        wards.arrive(visits("A", 300, at=START) + visits("A", 900, at=START + 5 * HOUR))
        for look in range(1, 13):
            wards.now = START + look * 2 * HOUR
            # a round of each at once; and once more, as whoever had no lease comes back
            for _ in range(2):
                list(both.map(lambda runner: runner.make_due_looks(), runners))
        (found,) = wards.service.ledger.monitors.list_runs()
        assert (found.looks_made, found.last_look) == (12, 12)
        assert wards.service.ledger.monitors.list_closed_windows(run) == {0}
        assert [(number, ward) for number, _, ward in wards.alerts(run)] == [(3, "A")]
        assert wards.service.ledger.verify_everything() > 0
