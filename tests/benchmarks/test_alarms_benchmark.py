"""What watching a value costs is what the documentation says; alarms keep their rates on the stand-in's pick-ups."""

import numpy as np
import pytest

from benchmarks.alarms.__main__ import COLUMNS, WINDOWS, describe_replay, describe_windows, price_rivals
from benchmarks.alarms.pickups import HOURS, pickups
from benchmarks.alarms.replay import replay
from benchmarks.experiments.taxi import VARIABLE
from tests.effort import rounds

PRICES = {
    24: (5.32, 7.09, 93.9, 40.6, 20.0, 30.1, 17.0, 15.5, 13.7, 23.3),
    168: (7.26, 9.04, 657.2, 86.6, 34.0, 37.9, 20.3, 19.0, 16.9, 30.8),
    365: (8.04, 9.81, 1427.9, 104.3, 42.1, 41.0, 21.6, 20.3, 18.1, 33.8),
    10_000: (11.35, 13.12, 39_120.2, 207.5, 77.3, 54.2, 26.8, 25.7, 23.2, 46.9),
}


@pytest.mark.parametrize("looks", [24, 365][: rounds(2, quick=1)])
def test_prices_of_the_rivals(looks: int) -> None:
    found = price_rivals(looks)
    assert len(found) == len(COLUMNS) - 1
    assert found == pytest.approx(PRICES[looks], abs=0.051)


def test_every_kind_of_window_is_described() -> None:
    told = list(describe_windows())
    assert len(told) == len(WINDOWS)
    assert "an alarm 7.1 (clears in 24)" in told[0]
    assert "an alarm for each epoch 19.1 (clears in 24)" in told[6]


def test_a_replay_keeps_the_contract(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window is late with probability .05 at most, wrong with .1: of some fifty true ones more than twenty are late
    with probability 1e-12, of hundreds of others more than a quarter wrong with one far smaller."""
    monkeypatch.delenv(VARIABLE, raising=False)
    by_hour = pickups(seed=1).by_hour
    assert by_hour.shape == (258 * 40, HOURS)
    assert np.all(np.diff(by_hour, axis=1) >= 0)
    found = replay(by_hour[: rounds(2_000, quick=240)], cut=50, tolerance=10)
    assert (round(found.alarm, 3), round(found.ladder, 3), round(found.afresh, 2)) == (0.645, 0.872, 8.54)
    assert found.true >= 50
    assert found.late <= 0.2 * found.true + 10
    assert found.wrong <= 0.25 * found.beyond + 10
    assert found.ladder_mean <= found.ladder
    assert "0.645" in describe_replay(50, 10, found)
