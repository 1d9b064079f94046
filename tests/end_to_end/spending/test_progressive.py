"""A progressive mechanism through the whole way: groups far from the threshold lose less, and the ledger knows it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.effort import cases
from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import House, opened, write_policy


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[House]:
    """The shop on DuckDB with an empty ledger."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with opened(without_caps(write_policy(tmp_path, source="duckdb:///shop.duckdb"))) as house:
        yield house


def without_caps(policy: Path) -> Path:
    """The policy in which no analyst has a cap of their own."""
    text = policy.read_text(encoding="utf-8")
    kept, bob, capped = text.partition("[analysts.bob]")
    lines = [line for line in capped.splitlines() if not line.startswith("epsilon_per_predicate")]
    assert len(lines) == len(capped.splitlines()) - 1
    policy.write_text(kept + bob + "\n".join(lines) + "\n", encoding="utf-8")
    return policy


@pytest.mark.parametrize(
    ("mechanism", "sql"), cases(["progressive", "ppwlm", "mim_progressive"], [shop.BUSY, shop.WARDS], quick=3)
)
def test_far_groups_cost_less_than_was_reserved(fresh: House, sql: str, mechanism: str) -> None:
    """On seeded noise. An early look has its own share of the errors however far a group is, so what is returned is
    left to the statistical tests; here it is the same for everybody, and so is its price."""
    fresh.service.noise = SeededNoise(20)
    with fresh.connect() as ada, fresh.connect("bob") as bob:
        for client in (ada, bob):
            client.execute(f"SET keyhole.mechanism = '{mechanism}'".encode())
        answer = ada.execute(sql.encode()).fetchall()
        (reserved,) = {asked.charge.epsilon_nano for asked in fresh.service.ledger.read_history()}
        (family,) = fresh.service.report_balances(None).families
        assert max(family.spent_nano) <= reserved
        assert sum(family.spent_nano) < len(family.spent_nano) * reserved
        assert min(family.spent_nano) > 0
        before = fresh.events
        assert ada.execute(sql.encode()).fetchall() == answer
        assert fresh.events == before
        assert bob.execute(sql.encode()).fetchall() == answer
        assert fresh.service.report_balances(None).families == (family,)
        (read,) = fresh.service.report_balances("bob").families
        assert read.spent_nano == family.spent_nano
    assert fresh.service.ledger.list_open_reservations() == ()


def test_refunds_are_no_way_around_another_analysts_cap(tmp_path: Path) -> None:
    """Where somebody has a cap, others' questions count at their worst case in what an analyst sees of the shared
    balances: it follows from public inputs and the own answers. The owner, and the asking analyst, see the refunds."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    with opened(write_policy(tmp_path, source="duckdb:///shop.duckdb", bobs=900.0)) as house:
        house.service.noise = SeededNoise(20)
        with house.connect() as ada, house.connect("bob") as bob:
            for client in (ada, bob):
                client.execute("SET keyhole.mechanism = 'progressive'")
            bob.execute("SET keyhole.reuse = off")
            ada.execute(shop.WARDS.encode())
            bob.execute(shop.WARDS.replace("> 300", "> 320").encode())
        (asked, other) = house.service.ledger.read_history()
        reports = {name: house.service.report_balances(name) for name in (None, "ada", "bob")}
        (whole,) = reports[None].families
        assert asked.spent is not None
        assert sum(whole.spent_nano) < len(whole.spent_nano) * (asked.charge.epsilon_nano + other.charge.epsilon_nano)
        (hers,), (his,) = reports["ada"].families, reports["bob"].families
        both = [mine + yours for mine, yours in zip(hers.spent_nano, his.spent_nano, strict=True)]
        assert both == list(whole.spent_nano)
        cap = whole.spent_nano[0] + whole.left_nano[0]
        assert hers.left_nano == tuple(cap - other.charge.epsilon_nano - own for own in hers.spent_nano)
        assert his.left_nano == tuple(cap - asked.charge.epsilon_nano - own for own in his.spent_nano)
