"""A sparse vector through the whole way: no more groups than its limit, and one privacy unit pays the answer once."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.worlds import shop
from tests.worlds.house import House, command, notices, opened, unchanged, write_policy

MANY = "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[House]:
    """The shop on DuckDB with an empty ledger; a patient counts in two wards."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with opened(write_policy(tmp_path, source="duckdb:///shop.duckdb", bobs=100.0)) as house:
        yield house


def test_the_limit_and_the_charge(fresh: House) -> None:
    """Values are a hundred times the noise away from the threshold: another answer has a probability below 1e-9."""
    with fresh.connect() as ada:
        heard = notices(ada)
        ada.execute("SET keyhole.mechanism = 'svt'")
        for limit, wards in ((1, shop.BUSY_WARDS[:1]), (3, shop.BUSY_WARDS)):
            before = fresh.service.report_balances(None).unit_spent_nano
            ada.execute(f"SET keyhole.most_positives = {limit}".encode())
            assert ada.execute(MANY.encode()).fetchall() == wards
            asked = max(fresh.service.ledger.read_history(), key=lambda question: question.charge.epsilon_nano)
            charge = asked.charge
            assert charge.unit_epsilon_nano == charge.epsilon_nano > 0
            assert fresh.service.report_balances(None).unit_spent_nano == before + charge.epsilon_nano
            assert any(f"at most {limit} group" in notice and "without a bound" in notice for notice in heard)
            with unchanged(fresh):
                assert ada.execute(MANY.encode()).fetchall() == wards
        first, second = (question.charge.epsilon_nano for question in fresh.service.ledger.read_history())
        (family,) = fresh.service.report_balances(None).families
        assert set(family.spent_nano) == {first + second}
    assert fresh.service.ledger.list_open_reservations() == ()


def test_other_mechanisms_pay_for_each_group_of_a_unit(fresh: House) -> None:
    with fresh.connect() as ada:
        ada.execute("SET keyhole.mechanism = 'keyhole'")
        ada.execute(MANY.encode())
        (asked,) = fresh.service.ledger.read_history()
        assert asked.charge.unit_epsilon_nano == 2 * asked.charge.epsilon_nano


def test_the_caps_admit_exactly_the_whole_answer(tmp_path: Path) -> None:
    """What EXPLAIN says is left for a unit is what an answer may cost: not its half because of two wards."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    settings = ("--mechanism", "svt", "--most-positives", "2")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb")
    needed = command("explain", policy, *settings, MANY)["worst_case_epsilon"]
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb", per_unit=1.1 * needed, bobs=100.0)
    told = command("explain", policy, *settings, MANY)
    assert told["left"] == pytest.approx(1.1 * needed, rel=1e-6)
    assert not told["refused"]
    answer = command("query", policy, *settings, MANY)
    assert [tuple(key) for key in answer["keys"]] == shop.BUSY_WARDS
    assert (answer["guarantee"]["fnr"], answer["guarantee"]["most_groups"]) == (None, 2)
    with opened(policy) as house, house.connect() as ada, unchanged(house):
        ada.execute("SET keyhole.mechanism = 'svt'")
        ada.execute("SET keyhole.most_positives = 2")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="KH305") as refusal:
            ada.execute(MANY.replace("300", "299").encode())
        assert refusal.value.diag.message_hint


def test_a_limit_out_of_all_proportion_is_refused_before_anything_is_reserved(fresh: House) -> None:
    with fresh.connect() as ada, unchanged(fresh):
        ada.execute("SET keyhole.mechanism = 'svt'")
        ada.execute("SET keyhole.most_positives = 1000")
        sums = "SELECT ward FROM visits GROUP BY ward HAVING sum(cost) > 20000"
        for statement in (sums, f"EXPLAIN {sums}"):
            with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="KH302: the question costs"):
                ada.execute(statement.encode())


def test_a_session_is_told_how_to_use_it(fresh: House) -> None:
    with fresh.connect() as ada, unchanged(fresh):
        ada.execute("SET keyhole.mechanism = 'svt'")
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="KH402") as refusal:
            ada.execute(MANY.encode())
        assert refusal.value.diag.message_hint == "SET keyhole.most_positives = 3;"
        ada.execute(refusal.value.diag.message_hint.encode())
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="KH303") as refusal:
            ada.execute(shop.WARDS.encode())
        ada.execute(str(refusal.value.diag.message_hint).encode())
        assert ada.execute(f"EXPLAIN {shop.WARDS}".encode()).fetchall()
        ada.execute("RESET keyhole.mechanism")
        with pytest.raises(psycopg.errors.InvalidParameterValue, match=r"KH402: keyhole\.most_positives is set"):
            ada.execute(f"EXPLAIN {MANY}".encode())
        ada.execute("RESET keyhole.most_positives")
        assert ada.execute(f"EXPLAIN {MANY}".encode()).fetchall()
