"""Comparisons of groups on noise that earlier ones left: free where that is fine enough, and of the same sums alone."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from accountant.errors import LedgerUnavailable
from accountant.ledger import Ledger
from planner.errors import KeyholeError
from planner.plan.question_identity import identify_paths
from proxy.cli.check import refresh
from proxy.open_policy.service import Service
from proxy.pipeline import ledger_verbs
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline import stages as pipeline
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.messages import Answer
from tests.end_to_end.spending.test_reuse import BUSY, NOTHING, Room, broken, room
from tests.seeded_noise import SeededNoise
from tests.worlds import shop
from tests.worlds.house import hurried, notices, opened, write_policy

SHARE = "SELECT store FROM sales GROUP BY store HAVING count(*) > {} * (SELECT count(*) FROM sales)"
AVERAGE = """SELECT store FROM sales GROUP BY store
HAVING count(*) > (SELECT avg(n) FROM (SELECT store, count(*) AS n FROM sales GROUP BY store) AS q)"""
MONTHS = """SELECT store, month FROM sales GROUP BY store, month
HAVING {0} > {1} * lag({0}) OVER (PARTITION BY store ORDER BY month)"""
BUSY_STORES = (("north",), ("south",))


def is_charged_again(here: Room, answer: Answer) -> bool:
    """Return True if everybody has paid for noise of a question's own."""
    charge = here.last.charge
    return charge.shared and charge.path_continuation is None and answer.noise_notice is None


def is_free(here: Room, answer: Answer) -> bool:
    """Return True if only its analyst has paid."""
    return not here.last.charge.shared and NOTHING in (answer.noise_notice or "")


@pytest.mark.parametrize("mechanism", ["keyhole", "progressive"])
def test_other_factors_and_thresholds_are_read_off_the_same_values(tmp_path: Path, mechanism: str) -> None:
    """No data is read: the source fails. The balances of all stay as they were, and the answers are right."""
    with room(tmp_path, mechanism=mechanism) as here:
        assert (
            here.ask(SHARE.format("0.3"), tolerance="count(*) - 0.3 * sum(count(*)) OVER ()=50").keys.keys
            == BUSY_STORES
        )
        before, first = here.spent(), here.last.charge.epsilon_nano
        assert set(before.values()) == {first}
        with broken(here.service), hurried(here.service):
            for sql, who in ((SHARE.format("0.25"), "ada"), (SHARE.format("0.35"), "bob"), (AVERAGE, "bob")):
                answer = here.ask(sql, who, tolerance="150")
                assert answer.keys.keys == BUSY_STORES
                assert is_free(here, answer)
                assert any("Reuse: same noise as" in line for line in here.explain(sql, "bob", tolerance="160"))
            assert is_free(here, here.ask(BUSY.format(1000), "bob", tolerance="60"))  # one group's sum alone
        assert here.spent() == before
        assert here.service.ledger.list_open_reservations() == ()
        here.service.ledger.verify_everything()


@pytest.mark.parametrize(
    "limit", ["1000 + percentile_cont(0.5) WITHIN GROUP (ORDER BY n)", "avg(n) + 0.1 * stddev_pop(n)"]
)
def test_statistics_of_groups_are_read_off_what_a_share_left(tmp_path: Path, limit: str) -> None:
    with room(tmp_path) as here:
        here.ask(SHARE.format("0.3"), tolerance="count(*) - 0.3 * sum(count(*)) OVER ()=50")
        before = here.spent()
        answer = here.ask(AVERAGE.replace("avg(n)", limit), "bob", tolerance="500")
        assert answer.keys.keys == BUSY_STORES
        assert is_free(here, answer)
        assert here.spent() == before


def test_deviations_of_rows_are_read_off_what_others_left(tmp_path: Path) -> None:
    """Another factor reads the same squares, a mean alone the same sums. Stores with few sales fail their counts."""
    deviation = "SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT avg(amount) - {} FROM sales)"
    counts = " AND count(amount) >= 2000 AND sum(count(amount)) OVER () >= 6000"
    with room(tmp_path) as here:
        answer = here.ask(deviation.format("2 * stddev(amount)") + counts, tolerance="10%, avg=10")
        assert answer.keys.keys == BUSY_STORES
        before = here.spent()
        for other in ("stddev_pop(amount)", "10"):
            answer = here.ask(deviation.format(other) + counts, "bob", tolerance="12%, avg=14")
            assert answer.keys.keys == BUSY_STORES
            assert is_free(here, answer)
        assert here.spent() == before


def test_quantiles_of_rows_are_read_off_what_others_left(tmp_path: Path) -> None:
    """Another factor reads the same bins. Stores with few sales fail their counts."""
    quantile = "{} * percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)"
    asked = f"SELECT store FROM sales GROUP BY store HAVING avg(amount) > (SELECT {quantile} - 20 FROM sales)"
    counts = " AND count(amount) >= 2000 AND sum(count(amount)) OVER () >= 6000"
    with room(tmp_path) as here:
        answer = here.ask(asked.format(1) + counts, tolerance="10%, avg=20")
        assert answer.keys.keys == BUSY_STORES
        before = here.spent()
        for times in ("0.9", "0.6"):
            answer = here.ask(asked.format(times) + counts, "bob", tolerance="10%, avg=28")
            assert answer.keys.keys == BUSY_STORES
            assert is_free(here, answer)
        assert here.spent() == before


def test_a_share_is_read_off_what_thresholds_left(tmp_path: Path) -> None:
    """The other way round: every group's noisy count is there, and its total is that of all groups."""
    with room(tmp_path) as here:
        here.ask(BUSY.format(1000), tolerance="1%")
        before = here.spent()
        answer = here.ask(SHARE.format("0.3"), tolerance="700")
        assert answer.keys.keys == BUSY_STORES
        assert is_free(here, answer)
        assert here.spent() == before


def test_a_sharper_share_costs_everybody_the_difference(tmp_path: Path) -> None:
    with room(tmp_path) as here:
        here.ask(SHARE.format("0.3"), tolerance="400")
        first = here.last.charge.epsilon_nano
        here.ask(SHARE.format("0.35"), "bob", tolerance="100")
        charge = here.last.charge
        assert charge.epsilon_nano > 2 * first
        assert charge.path_continuation is not None
        assert abs(charge.shared_amounts.epsilon_nano - (charge.epsilon_nano - first)) <= 2
        assert all(abs(lost - charge.epsilon_nano) <= 2 for lost in here.spent().values())
        assert here.own("bob") == charge.epsilon_nano
        # and the finer values are there for the next one
        assert is_free(here, here.ask(SHARE.format("0.3"), "bob", tolerance="100"))


OTHERS = (
    "SELECT store FROM sales WHERE quantity > 2 GROUP BY store"
    " HAVING count(*) > 0.3 * (SELECT count(*) FROM sales WHERE quantity > 2)",
    "SELECT store FROM sales GROUP BY store HAVING count(note) > 0.3 * (SELECT count(note) FROM sales)",
    "SELECT store FROM sales GROUP BY store HAVING sum(amount) > 0.3 * (SELECT sum(amount) FROM sales)",
    MONTHS.format("count(*)", "1.2"),
)


def test_other_sums_rows_and_groups_have_noise_of_their_own(tmp_path: Path) -> None:
    with room(tmp_path) as here:
        here.ask(SHARE.format("0.3"), tolerance="100")
        for sql in OTHERS:
            assert is_charged_again(here, here.ask(sql, tolerance="1000"))


def test_another_version_or_policy_or_the_wish_for_new_noise_draws_again(tmp_path: Path) -> None:
    amounts = OTHERS[2]
    with room(tmp_path) as here:
        here.ask(SHARE.format("0.3"), tolerance="100")
        here.ask(amounts, tolerance="2000")
        assert is_charged_again(here, here.ask(SHARE.format("0.4"), tolerance="100", reuse="off"))
        refresh(tmp_path / "keyhole.toml", "sales")
        assert is_charged_again(here, here.ask(SHARE.format("0.5"), tolerance="100"))
        here.ask(amounts.replace("0.3", "0.5"), tolerance="2000")
    with room(tmp_path, edit={"bounds = [0, 100]": "bounds = [0, 90]"}) as here:
        assert is_charged_again(here, here.ask(amounts.replace("0.3", "0.4"), tolerance="2000"))


def test_some_groups_are_read_off_all_but_their_total_is_their_own(tmp_path: Path) -> None:
    """The total is that of the question's rows, as PostgreSQL filters first. More groups than are stored start anew."""
    some = """SELECT store FROM sales WHERE store IN ('west', 'north') GROUP BY store
HAVING count(*) > 0.8 * (SELECT count(*) FROM sales WHERE store IN ('west', 'north'))"""
    with room(tmp_path) as here:
        here.ask(SHARE.format("0.3"), tolerance="100")
        answer = here.ask(some, tolerance="200")
        assert answer.keys.keys == (("north",),)  # of all sales it has four sevenths
        assert is_free(here, answer)
    other = tmp_path / "other"
    other.mkdir()
    with room(other) as here:
        here.ask(some, tolerance="200")
        assert is_charged_again(here, here.ask(SHARE.format("0.3"), tolerance="100"))


def test_what_an_analyst_with_a_cap_reads_counts_in_full_and_is_never_dear(tmp_path: Path) -> None:
    """Noise far finer than a question needs is left alone, since reading it costs its analyst more than new noise."""
    with room(tmp_path, capped=True) as here:
        here.ask(SHARE.format("0.3"), tolerance="100")
        first = here.last.charge.epsilon_nano
        assert is_free(here, here.ask(SHARE.format("0.35"), "bob", tolerance="150"))
        assert here.own("bob") == first
        assert is_charged_again(here, here.ask(SHARE.format("0.35"), "bob", tolerance="1000"))
        assert here.last.charge.epsilon_nano < first / 2
        assert is_charged_again(here, here.ask(BUSY.format(1000), "bob", tolerance="300"))
        assert here.own("bob") < 2 * first


def _find(here: Room, sql: str, **settings: str) -> reuse.QuestionOnPaths | None:
    asked = here.asked(sql, **settings)
    claim = make_current_claim(here.service, pipeline.plan_asked_question(here.service, asked), asked)
    return reuse.find_earlier_noise(here.service, claim)[1]


def test_a_question_that_fails_leaves_no_noise_and_stays_spent(tmp_path: Path) -> None:
    """In the source, and in the commit: the noise was drawn then, and nobody ever reads it."""
    with room(tmp_path) as here:

        def fail(*_: object, **__: object) -> None:
            raise LedgerUnavailable("a test")

        with broken(here.service), hurried(here.service), pytest.raises(KeyholeError, match="KH501"):
            here.ask(SHARE.format("0.3"), tolerance="100")
        with pytest.MonkeyPatch.context() as breaking:
            breaking.setattr(Ledger, "commit", fail)
            with hurried(here.service), pytest.raises(KeyholeError, match="KH502"):
                here.ask(SHARE.format("0.4"), tolerance="100")
        assert len(here.service.ledger.list_open_reservations()) == 2
        assert _find(here, SHARE.format("0.35"), tolerance="100") is None
        assert is_charged_again(here, here.ask(SHARE.format("0.35"), tolerance="100"))
        # of one that refines it, the commit fails: what was stored is read still, and never refined again
        with pytest.MonkeyPatch.context() as breaking:
            breaking.setattr(Ledger, "commit", fail)
            with hurried(here.service), pytest.raises(KeyholeError, match="KH502"):
                here.ask(SHARE.format("0.3"), tolerance="20")
        assert is_free(here, here.ask(SHARE.format("0.25"), tolerance="100"))
        assert is_charged_again(here, here.ask(SHARE.format("0.3"), tolerance="19"))
        here.service.ledger.verify_everything()


def test_two_processes_read_one_ledger_and_one_alone_refines(tmp_path: Path) -> None:
    with room(tmp_path) as here, Service.open(tmp_path / "keyhole.toml") as other:
        other.noise = SeededNoise(12)
        there = Room(other)
        here.ask(SHARE.format("0.3"), tolerance="100")
        assert is_free(there, there.ask(SHARE.format("0.35"), "bob", tolerance="150"))
        asked = there.asked(SHARE.format("0.35"), tolerance="40")
        claim = make_current_claim(other, pipeline.plan_asked_question(other, asked), asked)
        late = reuse.find_earlier_noise(other, claim)[1]
        assert late is not None
        assert late.is_continued
        here.ask(SHARE.format("0.3"), tolerance="50")
        before = here.spent()
        # what it found is no longer the newest state, so that it draws noise of its own and pays for it
        paid = ledger_verbs.reserve(other, claim, late)
        assert paid.on_paths is None
        assert here.last.charge.shared_amounts == claim.charge.own_amounts
        assert all(now - before[key] == claim.charge.epsilon_nano for key, now in here.spent().items())
        assert is_free(there, there.ask(SHARE.format("0.4"), "bob", tolerance="80"))
        there.service.ledger.verify_everything()


def test_nothing_that_later_questions_meet_follows_from_the_noise(tmp_path: Path) -> None:
    """Prices, levels and reservations are those of any seed."""
    chain: tuple[tuple[str, Mapping[str, str]], ...] = (
        (SHARE.format("0.3"), {"tolerance": "400"}),
        (BUSY.format(1000), {"mechanism": "progressive"}),
        (SHARE.format("0.31"), {"tolerance": "100"}),
        (AVERAGE, {"tolerance": "300"}),
    )
    met = []
    for seed in (1, 2, 3):
        directory = tmp_path / str(seed)
        directory.mkdir()
        with room(directory) as here:
            here.service.noise = SeededNoise(seed)
            for sql, chosen in chain:
                here.ask(sql, **chosen)
            seen = [(one.charge.own_amounts, one.charge.known_amounts) for one in here.service.ledger.read_history()]
            met.append((seen, here.spent()))
    assert met[0] == met[1] == met[2]


def test_months_beside_the_ones_before_are_read_off_the_same_sums(tmp_path: Path) -> None:
    with room(tmp_path) as here:
        names = []
        for sql in (SHARE.format("0.3"), BUSY.format(10), MONTHS.format("sum(amount)", "1.2")):
            question = pipeline.plan_asked_question(here.service, here.asked(sql, tolerance="5000")).question
            names.append(identify_paths(question, digest=here.service.catalog.digest))
        assert names[0] == names[1]
        assert len(names[2]) == 1
        assert set(names[2]).isdisjoint(names[0])
        here.ask(MONTHS.format("sum(amount)", "1.2"), tolerance="5000")
        before = here.spent()
        assert is_free(here, here.ask(MONTHS.format("sum(amount)", "1.5"), "bob", tolerance="9000"))
        assert here.spent() == before


def test_over_the_endpoint_the_second_share_is_free_and_says_so(tmp_path: Path) -> None:
    shop.fill_duckdb(tmp_path / "shop.duckdb")
    policy = write_policy(tmp_path, source="duckdb:///shop.duckdb", bobs=900.0)
    with opened(policy) as house, house.connect() as ada, house.connect("bob") as bob:
        for session in (ada, bob):
            session.execute("SET keyhole.tolerance = '100'")
        heard = notices(bob)
        assert sorted(ada.execute(SHARE.format("0.3").encode()).fetchall()) == sorted(BUSY_STORES)
        spent = house.most_spent("sales")
        assert spent > 0
        assert sorted(bob.execute(SHARE.format("0.25").encode()).fetchall()) == sorted(BUSY_STORES)
        assert any(line.startswith("NOTICE: same noise as 1 earlier question: nothing is new") for line in heard)
        assert house.most_spent("sales") == spent
        bob.execute("SET keyhole.reuse = off")
        bob.execute(SHARE.format("0.35").encode())
        assert house.most_spent("sales") > spent
