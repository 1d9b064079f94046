"""The odometer never says less than the ledger: factors and chances are rounded up, windows are added together."""

import math
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant.charges import NANO, Cells, Charge, Family, Spent
from accountant.ledger import Ledger
from accountant.limits import Limits
from planner.policy.file import Policy
from proxy.report import odometer
from tests.worlds.wards import install

LIMITS = Limits(
    per_predicate_nano=1000 * NANO,
    per_unit_nano=1000 * NANO,
    per_query_nano=None,
    analyst_per_predicate_nano=None,
    analyst_per_unit_nano=None,
    separates_analysts=False,
)


@given(st.floats(0, 13.8))
def test_a_factor_is_never_understated(epsilon: float) -> None:
    told = float(odometer.write_factor(epsilon).removeprefix("a factor of ").replace(",", ""))
    assert math.exp(epsilon) * (1 - 1e-7) <= told <= math.exp(epsilon) * 1.11


@given(st.floats(0, 40))
def test_a_chance_is_never_understated_nor_certain(epsilon: float) -> None:
    told = odometer.write_belief(epsilon, of="that a row")
    found = re.search(r"at most ([\d.]+) %", told)
    true = 100 * math.exp(epsilon) / (1 + math.exp(epsilon))
    if found is None:
        assert "as good as sure of it" in told
        assert true > 99.9998
    else:
        assert true - 1e-5 <= float(found[1]) <= true + 0.11
        assert float(found[1]) < 100


def test_words_for_what_is_usual() -> None:
    assert odometer.write_factor(1.5) == "a factor of 4.5"
    assert odometer.write_factor(math.log(2)) == "a factor of 2.0"
    assert odometer.write_factor(math.log(9.96)) == "a factor of 10"
    assert odometer.write_factor(30) == "a factor of more than a million"
    assert "at most 81.8 % sure" in odometer.write_belief(1.5, of="that a row")
    assert "at most 99.97 % sure" in odometer.write_belief(8, of="that a row")


def charge(number: int, *, table: str, unit: str, analyst: str = "ada", key: str = "A") -> Charge:
    family = Family(table, unit, ("ward",), "", "static", frozenset())
    unit_nano = 0 if unit == "row" else 3 * NANO
    return Charge(f"{number:064x}", analyst, family, Cells((("ward", (key,)),)), NANO, unit_nano, shared=True)


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    return Policy.load(install(tmp_path))


def test_a_reading_counts_every_window_every_open_reservation_and_each_analyst(policy: Policy) -> None:
    with Ledger.open(f"sqlite:///{policy.directory}/x.db", clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as ledger:
        empty = odometer.read_odometer(policy, ledger)
        assert list(empty.write_lines()) == ["No question has spent anything: nothing was told about anybody."]
        half = Spent.from_uniform(NANO // 2, unit_epsilon_nano=0)
        ledger.commit(ledger.reserve(charge(1, table="visits", unit="row"), LIMITS), half, None)
        ledger.owner.open_window(by="kim", why="x")
        ledger.commit(ledger.reserve(charge(2, table="visits", unit="row", analyst="bob"), LIMITS), half, None)
        ledger.commit(ledger.reserve(charge(3, table="visits", unit="row", key="B"), LIMITS), half, None)
        ledger.reserve(charge(4, table="stays", unit="person,month"), LIMITS)
        ledger.release(ledger.reserve(charge(5, table="stays", unit="person,month"), LIMITS))
        reading = odometer.read_odometer(policy, ledger)
    assert (reading.windows, reading.questions, reading.open_reservations) == (2, 4, 1)
    assert {(table.table, table.epsilon) for table in reading.tables} == {("visits", 1.0), ("stays", 1.0)}
    assert reading.unit_epsilon == 3.0
    assert {(one.analyst, one.questions, one.epsilon) for one in reading.analysts} == {
        ("ada", 3, 1.0),
        ("bob", 1, 0.5),
    }
    told = "\n".join(reading.write_lines())
    assert "4 questions from 2026-03-01 to 2026-03-01, in 2 budget windows" in told
    assert "whether a certain row is in the data by at most a factor of 2.8 (epsilon 1.0000)" in told
    assert "whether a certain (person, month) is in a certain group by at most a factor of 2.8" in told
    assert "in whatever groups, by at most a factor of 21 (epsilon 3.0000)" in told
    assert "over 2 windows that is 8 (a factor of 3,000)" in told
    assert "1 reservation never finished is counted in full" in told
    assert reading.make_document()["unit_factor"] == pytest.approx(math.exp(3))
