"""A mechanism that looks and then stops without an answer: what it looked at is paid, and the stop is an answer."""

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import House, opened, write_policy

NEAR = "SELECT store FROM sales GROUP BY store HAVING count(*) > 2990"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """The shop on DuckDB with an empty ledger, and noise with which ProBE denies the question below."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with opened(write_policy(tmp_path, source="duckdb:///shop.duckdb", bobs=900.0)) as house:
        house.service.noise = SeededNoise(20)
        yield house


def denied(client: psycopg.Connection[tuple[str]], *, hint: str = "SET keyhole.mechanism = 'progressive';") -> None:
    with pytest.raises(psycopg.errors.ConfigurationLimitExceeded, match="KH307: the mechanism probe stopped") as found:
        client.execute(NEAR.encode())
    assert "the looks so far are spent" in " ".join((found.value.diag.message_detail or "").lower().split())
    assert found.value.diag.message_hint == hint


def test_a_denial_is_paid_once_and_told_again_for_nothing(house: House) -> None:
    with house.connect() as ada, house.connect("bob") as bob:
        for client in (ada, bob):
            client.execute("SET keyhole.mechanism = 'probe'")
        denied(ada)
        (asked,) = house.service.ledger.read_history()
        assert asked.status == "committed"
        assert asked.spent is not None
        assert 0 < asked.spent.epsilon_nano <= asked.charge.epsilon_nano
        assert house.service.ledger.list_open_reservations() == ()
        before = house.events
        denied(ada)
        assert house.events == before
        denied(bob)
        assert [question.status for question in house.service.ledger.read_history()] == ["committed", "read"]
        (hers,) = house.service.report_balances("ada").families
        (his,) = house.service.report_balances("bob").families
        assert hers.spent_nano == his.spent_nano
        ada.execute("SET keyhole.mechanism = 'progressive'")
        assert ada.execute(NEAR.encode()).fetchall()


@pytest.mark.parametrize(
    ("allowed", "hint"),
    [(["probe", "tslm"], "SET keyhole.mechanism = 'tslm';"), (["probe"], "SET keyhole.tolerance = '10%';")],
)
def test_the_hint_names_only_a_mechanism_that_the_policy_allows(tmp_path: Path, allowed: list[str], hint: str) -> None:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb")
    written = re.sub(r"(?m)^mechanism = .*$", "mechanism = 'probe'", policy.read_text())
    policy.write_text(re.sub(r"(?m)^mechanisms = .*$", f"mechanisms = {allowed}", written))
    with opened(policy) as house, house.connect() as ada:
        house.service.noise = SeededNoise(20)
        denied(ada, hint=hint)
