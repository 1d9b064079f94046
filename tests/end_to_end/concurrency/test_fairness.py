"""However many slow questions one analyst asks, they keep nobody else from an answer."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.worlds import shop
from tests.worlds.house import House, eventually, locked, opened, write_policy

SHARE = 4  # of the source's eight turns


def turns(house: House, state: str) -> float | None:
    return house.service.telemetry.registry.get_sample_value("keyhole_source_turns", {"state": state})


def test_bob_is_answered_while_all_that_ada_asks_waits(source_url: str, tmp_path: Path) -> None:
    policy = write_policy(tmp_path, source=source_url, bobs=900)
    slow = [shop.BUSY.replace("sales", f"sales WHERE quantity > -{number}") for number in range(1, 13)]

    def ask(sql: str) -> list[tuple[object, ...]]:
        with house.connect() as ada:
            return ada.execute(sql.encode()).fetchall()

    with opened(policy) as house, locked(source_url, "sales") as lock, ThreadPoolExecutor(len(slow)) as threads:
        asked = [threads.submit(ask, sql) for sql in slow]
        lock.wait_for_somebody(SHARE)
        with house.connect("bob") as bob:
            assert bob.execute(shop.WARDS).fetchall() == shop.BUSY_WARDS
        assert turns(house, "taken") == SHARE
        assert not any(one.done() for one in asked)
        lock.release()
        assert [one.result() for one in asked] == [shop.BUSY_STORES] * len(slow)
        eventually(lambda: turns(house, "taken") == 0)
