"""Arc looks through the whole way: set by name over the wire, charged by curve, told, stored and served again."""

from pathlib import Path

from tests.worlds import shop
from tests.worlds.house import notices, opened, unchanged, write_policy

MANY = "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > {}"


def test_answers_and_charges_over_the_wire(tmp_path: Path) -> None:
    """Values are tens of times the tolerance away from the threshold: another answer has a probability below 1e-9."""
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb", bobs=100.0)
    text = policy.read_text(encoding="utf-8").replace("[budget]\n", "[budget]\ndelta = 1e-9\n", 1)
    policy.write_text(text.replace('mechanisms = ["keyhole"', 'mechanisms = ["arc", "keyhole"', 1), encoding="utf-8")
    with opened(policy) as house:
        with house.connect() as ada:
            heard = notices(ada)
            ada.execute("SET keyhole.mechanism = 'arc'")
            assert ada.execute(MANY.format(300).encode()).fetchall() == shop.BUSY_WARDS
            assert heard
            (asked,) = house.service.ledger.read_history()
            assert asked.charge.unit_epsilon_nano == 2 * asked.charge.epsilon_nano
            explained = "\n".join(line for (line,) in ada.execute(b"EXPLAIN VERBOSE " + MANY.format(301).encode()))
            assert "with mechanism arc" in explained
            assert "Look of A" in explained
            with unchanged(house):
                assert ada.execute(MANY.format(300).encode()).fetchall() == shop.BUSY_WARDS
            # nothing is left that another threshold could read
            ada.execute(MANY.format(301).encode())
            first, second = house.service.ledger.read_history()
            assert first.charge.epsilon_nano == second.charge.epsilon_nano
            assert second.charge.path_continuation is None
            ada.execute("SET keyhole.mechanism = 'progressive'")
            ada.execute(MANY.format(302).encode())
            assert house.service.ledger.read_history()[-1].charge.path_continuation is None
        assert house.service.ledger.list_open_reservations() == ()
        assert house.service.ledger.verify_everything() == 6
