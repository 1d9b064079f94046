"""ORDER BY an aggregate LIMIT k: the first groups in PostgreSQL's order, and nothing of how large they are."""

import json

import psycopg
import pytest
from psycopg import errors

from proxy.pipeline import noise_reuse
from proxy.pipeline import stages as pipeline
from proxy.pipeline.claim import find_run_loss, make_current_claim
from proxy.pipeline.ranking import rank_passed_keys
from tests.effort import cases
from tests.end_to_end.certainty import asked, truth
from tests.end_to_end.plain_sql import both_answers
from tests.worlds.house import House, notices, unchanged

ENGINES = ("duckdb", "postgres")  # at quick each statement is asked on one of them
# Stores have 4000, 3000, 200, 50 sales of 30 and 20, and none; wards 900, 600, 30 visits of 100, and none.
TOLERANCE = "5, sum(amount)=151, count(DISTINCT patient_id)=2, sum(cost)=211"
STATEMENTS = [
    "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2",
    "SELECT store FROM sales GROUP BY store ORDER BY sum(amount) DESC NULLS LAST, store FETCH FIRST 2 ROWS ONLY",
    "SELECT upper(store) AS s FROM sales WHERE quantity > 1 GROUP BY store ORDER BY 3 - 2 * count(*) LIMIT 2",
    "SELECT store, month FROM (SELECT store, date_trunc('month', day) AS month FROM sales "
    "GROUP BY 1, 2 ORDER BY count(*) DESC LIMIT 2) q ORDER BY month DESC",
    "WITH top AS (SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2) SELECT count(*) FROM top",
    "SELECT ward FROM visits GROUP BY ward ORDER BY count(DISTINCT patient_id) DESC LIMIT 2",
    "SELECT ward FROM (SELECT ward, patient_id, sum(cost) AS total FROM visits GROUP BY 1, 2) v GROUP BY ward "
    "ORDER BY count(DISTINCT patient_id) FILTER (WHERE total > 50) DESC LIMIT 2",
    "SELECT region FROM sales JOIN stores ON store = name WHERE region IS NOT NULL GROUP BY region "
    "ORDER BY count(*) DESC LIMIT 1",
    "SELECT store FROM sales GROUP BY store HAVING count(*) > 907 ORDER BY count(*) DESC",
    "SELECT store, count(*) > 3507 AS busy FROM sales GROUP BY store HAVING sum(amount) > 30007 "
    "ORDER BY sum(amount) DESC LIMIT 5",
    "SELECT store, rank() OVER (ORDER BY count(*) DESC) <= 2 AS top FROM sales GROUP BY store HAVING count(*) > 107",
    "SELECT store, CASE WHEN row_number() OVER (ORDER BY sum(amount) DESC, store) = 2 THEN 'second' ELSE 'other' END "
    "FROM sales GROUP BY store HAVING count(*) > 107",
    "SELECT store, rank() OVER (ORDER BY count(*)), dense_rank() OVER (ORDER BY count(*)) FROM sales GROUP BY store "
    "HAVING count(*) > 107",
    "SELECT store, ntile(2) OVER (ORDER BY count(*) DESC) AS part, percent_rank() OVER (ORDER BY count(*) DESC), "
    "cume_dist() OVER (ORDER BY count(*) DESC) < 0.4 FROM sales GROUP BY store HAVING count(*) > 107",
    "SELECT store FROM (SELECT store, row_number() OVER (ORDER BY count(*) DESC) AS place FROM sales GROUP BY store) q "
    "WHERE place <= 2",
    "WITH q AS (SELECT store, rank() OVER (ORDER BY sum(amount) DESC) AS r FROM sales GROUP BY store) "
    "SELECT store, r FROM q WHERE r BETWEEN 2 AND 3 ORDER BY r",
    "SELECT store, rank FROM (SELECT store, rank() OVER (ORDER BY count(*) DESC) FROM sales GROUP BY store) q "
    "ORDER BY rank LIMIT 2",
    "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2 OFFSET 1",
    "SELECT DISTINCT ON (1) date_trunc('month', day) AS month, store FROM sales GROUP BY store, 1 "
    "HAVING count(*) > 107 ORDER BY month, count(*) DESC",
    "SELECT month, store FROM (SELECT date_trunc('month', day) AS month, store, row_number() OVER (PARTITION BY "
    "date_trunc('month', day) ORDER BY sum(amount) DESC) AS place FROM sales GROUP BY 1, 2 HAVING count(*) > 107) q "
    "WHERE place <= 2",
    "SELECT store, rank() OVER (PARTITION BY date_trunc('month', day) ORDER BY count(*) DESC) = 1 AS first FROM sales "
    "GROUP BY store, date_trunc('month', day) HAVING count(*) > 107",
    "WITH m AS (SELECT store, date_trunc('month', day) AS month, count(*) AS n FROM sales GROUP BY 1, 2 "
    "HAVING count(*) > 107), r AS (SELECT store, month, rank() OVER (PARTITION BY month ORDER BY n DESC) FROM m) "
    "SELECT month, store, rank FROM r WHERE rank <= 2",
    "SELECT store FROM (SELECT store, sum(amount) AS total FROM sales GROUP BY store) q ORDER BY total DESC LIMIT 2",
    "WITH q AS (SELECT store, count(*) AS n FROM sales GROUP BY store) "
    "SELECT store FROM q WHERE n = (SELECT max(n) FROM q)",
    "SELECT store FROM sales GROUP BY store HAVING sum(amount) >= ALL (SELECT sum(amount) FROM sales GROUP BY store)",
    "SELECT store FROM sales s GROUP BY store HAVING (SELECT max(n) FROM (SELECT count(*) AS n FROM sales GROUP BY "
    "store) q) = count(*) ORDER BY store",
    "SELECT month, store FROM (SELECT date_trunc('month', day) AS month, store, sum(amount) AS n, "
    "max(sum(amount)) OVER (PARTITION BY date_trunc('month', day)) AS most FROM sales GROUP BY 1, 2 "
    "HAVING count(*) > 107) q WHERE n = most",
    "SELECT DISTINCT date_trunc('month', day) AS month, first_value(store) OVER (PARTITION BY date_trunc('month', day) "
    "ORDER BY count(*) DESC) FROM sales GROUP BY 1, store HAVING count(*) > 107",
    "WITH a AS (SELECT date_trunc('month', day) AS month, store, sum(amount) AS total, count(*) AS n FROM sales "
    "GROUP BY 1, 2 HAVING count(*) > 107), b AS (SELECT a.*, rank() OVER (PARTITION BY month ORDER BY total DESC) AS r "
    "FROM a) SELECT month, store FROM b WHERE r = 2 AND n > 107 OR n > 3407 ORDER BY month",
    "SELECT DISTINCT ON (month) month, store FROM (SELECT date_trunc('month', day) AS month, store, count(*) AS n "
    "FROM sales GROUP BY 1, 2) q WHERE store <> 'north' AND n > 107 ORDER BY month DESC, n DESC, store",
    "SELECT region, store FROM (SELECT r.region, s.store, row_number() OVER (PARTITION BY r.region "
    "ORDER BY count(*) DESC) AS place FROM sales s JOIN stores r ON s.store = r.name "
    "GROUP BY r.region, s.store HAVING count(*) > 107) q WHERE place = 1 AND region IS NOT NULL ORDER BY store",
    "SELECT DISTINCT ON (r.region) r.region, r.name FROM sales s JOIN stores r ON s.store = r.name "
    "WHERE r.region IS NOT NULL GROUP BY 1, 2 HAVING count(*) > 107 ORDER BY r.region, sum(amount) DESC",
    "SELECT w.ward, w.rank FROM (SELECT ward, rank() OVER (ORDER BY count(DISTINCT patient_id) DESC) FROM visits "
    "GROUP BY ward) w WHERE rank < 3",
    "SELECT store FROM sales GROUP BY store ORDER BY 100.0 * count(*) / (SELECT count(*) FROM sales) DESC LIMIT 2",
    "SELECT date_trunc('month', day) AS month FROM sales WHERE day >= '2026-01-01' AND day < '2026-03-01' GROUP BY 1 "
    "ORDER BY count(*) - lag(count(*)) OVER (ORDER BY date_trunc('month', day)) DESC NULLS LAST LIMIT 1",
]


NUMBERED = [
    "WITH m AS (SELECT store, sum(amount) AS total FROM sales WHERE quantity > 1 GROUP BY store) "
    "SELECT store, dense_rank() OVER (ORDER BY total DESC) AS r, total FROM m ORDER BY r LIMIT 2",
    "SELECT DISTINCT ON (month) * FROM (SELECT date_trunc('month', day) AS month, store, count(*) AS n FROM sales "
    "GROUP BY 1, 2 HAVING count(*) > 107) q ORDER BY month, n DESC",
    "SELECT * FROM (SELECT q.*, rank() OVER (ORDER BY n DESC) AS r, n AS size FROM (SELECT store, count(*) AS n "
    "FROM sales GROUP BY store) q WHERE store IN ('north', 'south', 'east')) t WHERE n BETWEEN 107 AND 3507 ORDER BY r",
    "SELECT store, count(*) * 100.0 / sum(count(*)) OVER () AS share, lag(count(*)) OVER (ORDER BY store DESC), "
    "rank() OVER (ORDER BY count(*) DESC) AS r FROM sales GROUP BY store HAVING count(*) > 107 ORDER BY r",
    "SELECT store, n / 7, round(100 * n / sum(n) OVER (), 1) AS share FROM (SELECT store, count(*) AS n FROM sales "
    "GROUP BY store) q WHERE n > 107 ORDER BY store",
]


@pytest.mark.parametrize(("house", "sql"), cases(ENGINES, NUMBERED, quick=len(NUMBERED)), indirect=["house"])
def test_numbers_beside_ranks_have_their_column(house: House, on_postgres_url: str, sql: str) -> None:
    """A false alarm has a probability below 1e-9 for each statement."""
    found, wanted = both_answers(house, on_postgres_url, sql, tolerance=TOLERANCE)
    told = [
        tuple(None if own is None else true for own, true in zip(row, one, strict=True))
        for row, one in zip(found, wanted, strict=True)
    ]
    assert found == told
    assert any(None in row for row in found)


@pytest.mark.parametrize("house", ENGINES, indirect=True)
def test_what_stands_in_no_public_row_together_is_in_no_partition(house: House) -> None:
    """Few stores are in the upper region; those of others, without sales there, would have the next places."""
    sql = (
        "SELECT region, store FROM (SELECT region, store, rank() OVER (PARTITION BY region ORDER BY count(*) DESC) "
        "AS r FROM sales JOIN stores ON store = name WHERE region IS NOT NULL GROUP BY 1, 2) q WHERE r <= 2 ORDER BY 2"
    )
    with house.connect() as connection:
        connection.execute("SET keyhole.tolerance = '5'")
        found = set(connection.execute(sql).fetchall())
    assert found - {("upper", "closed")} == {("upper", "north"), ("lower", "south"), ("lower", "west")}


@pytest.mark.parametrize(("house", "sql"), cases(ENGINES, STATEMENTS, quick=len(STATEMENTS)), indirect=["house"])
def test_answers_are_those_of_plain_sql(house: House, on_postgres_url: str, sql: str) -> None:
    """A false alarm has a probability below 1e-9 for each statement."""
    found, wanted = both_answers(house, on_postgres_url, sql, tolerance=TOLERANCE)
    assert found == wanted


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT store FROM sales GROUP BY store HAVING count(*) > 907 "
        "ORDER BY count(*) FILTER (WHERE note = 's') * 100.0 / count(*) DESC LIMIT 1",
        "SELECT date_trunc('month', day) AS month "
        "FROM sales GROUP BY 1 HAVING count(*) > 907 ORDER BY avg(CASE WHEN note = 'n' THEN amount ELSE 0 END) LIMIT 1",
        "SELECT ward, rank() OVER (ORDER BY avg(CASE WHEN patient_id > 600 THEN cost ELSE 0 END) DESC) FROM visits "
        "GROUP BY ward HAVING count(*) > 407",
    ],
)
def test_means_are_ranked_as_in_plain_sql(house: House, on_postgres_url: str, sql: str) -> None:
    """A false alarm has a probability below 1e-9 for each statement."""
    found, wanted = both_answers(house, on_postgres_url, sql, tolerance="1, avg=0.2", min_rows=500)
    assert found == wanted


def test_the_limit_may_be_a_parameter(house: House) -> None:
    sql = "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT %s"
    with house.connect() as connection:
        connection.execute("SET keyhole.tolerance = '217'")
        for binary in (False, True):
            assert connection.execute(sql, (2,), binary=binary).fetchall() == [("north",), ("south",)]
        assert connection.execute(sql, (0,)).fetchall() == []
        with unchanged(house), pytest.raises(errors.InvalidRowCountInLimitClause):
            connection.execute(sql, (-1,))


def test_a_row_pays_once_and_a_patient_for_as_many_groups_as_are_returned(house: House) -> None:
    rows = pipeline.plan_asked_question(
        house.service,
        asked(house.service, "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2", tolerance="223"),
    )
    assert rows.ranking is not None
    assert len(rows.ranking.looks) > 1
    sql = "SELECT ward FROM visits GROUP BY ward ORDER BY count(DISTINCT patient_id) DESC LIMIT {}"
    for limit, groups in ((1, 1), (2, 2), (3, 2)):
        question = asked(house.service, sql.format(limit), tolerance="53")
        plan = pipeline.plan_asked_question(house.service, question)
        assert plan.ranking is not None
        assert (not plan.ranking.looks) is (limit == 1)  # a patient counts in two wards
        before = house.most_spent("visits")
        answer = pipeline.answer(house.service, plan, question)
        assert [key[0] for key in answer.keys.keys][:2] == ["A", "B"][:limit]
        assert answer.payment is not None
        assert answer.payment.group >= plan.ranking.worst_case_epsilon
        assert answer.payment.unit == pytest.approx(groups * answer.payment.group, abs=1e-8)
        assert house.most_spent("visits") <= before + plan.worst_case_epsilon + 1e-9


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "SELECT store FROM sales GROUP BY store HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) "
            "ORDER BY sum(amount) LIMIT 1",
            [("south",)],
        ),
        (
            "SELECT store FROM (SELECT store, count(*) AS n, sum(count(*)) OVER () AS total FROM sales GROUP BY store) "
            "q WHERE n > 0.01 * total AND store <> 'north' ORDER BY n DESC LIMIT 1",
            [("south",)],
        ),
        (
            "WITH q AS (SELECT store, count(*) AS n FROM sales GROUP BY store) SELECT store, rank() OVER (ORDER BY n) "
            "FROM q WHERE n > 0.75 * (SELECT avg(n) FROM q) ORDER BY 2",
            [("south", 1), ("north", 2)],
        ),
        (
            "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > "
            "0.2 * (SELECT count(DISTINCT patient_id) FROM visits) ORDER BY count(DISTINCT patient_id) LIMIT 1",
            [("B",)],
        ),
    ],
)
def test_groups_that_a_comparison_leaves_are_ranked(house: House, sql: str, rows: list[tuple[object, ...]]) -> None:
    """Groups are at least 100 tolerances from each threshold and from each other: a false alarm is below 1e-9."""
    with house.connect() as connection:
        connection.execute("SET keyhole.tolerance = '5, sum(amount)=151'")
        assert connection.execute(sql.encode()).fetchall() == rows


def test_a_group_pays_for_its_comparison_and_its_place_and_a_place_is_by_its_own_size(house: House) -> None:
    """A group that the comparison leaves out has no place, and pays for the comparison alone."""
    sql = (
        "SELECT store FROM sales GROUP BY store HAVING count(*) > 0.1 * (SELECT count(*) FROM sales) "
        "ORDER BY sum(amount) LIMIT 1"
    )
    question = asked(house.service, sql, tolerance="353, sum(amount)=3530")
    plan = pipeline.plan_asked_question(house.service, question)
    assert plan.ranking is not None
    compared, ranked = plan.calibration.worst_case_epsilon, plan.ranking.worst_case_epsilon
    assert plan.worst_case_epsilon == pytest.approx(compared + ranked, abs=1e-9)
    answer = pipeline.answer(house.service, plan, question)
    assert [key[0] for key in answer.keys.keys] == ["south"]
    assert answer.payment is not None
    assert compared < answer.payment.group <= plan.worst_case_epsilon + 1e-9


def test_what_is_ranked_is_said(house: House) -> None:
    sql = "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2"
    with house.connect() as connection:
        told = notices(connection)
        connection.execute("SET keyhole.tolerance = '227'")
        lines = [line for (line,) in connection.execute(f"EXPLAIN VERBOSE {sql}".encode())]
        assert lines[1].startswith(
            "  Ranked by count(*), greatest first: 2 of 5 groups   either order within 227   epsilon 0.0"
        )
        assert lines[2].startswith("  Noise of the ranking: sensitivity 1; looks 9 times at most, first at epsilon ")
        assert lines[3].startswith("  Worst case 0.02 with mechanism ranking")
        ((document,),) = connection.execute(f"EXPLAIN (FORMAT JSON) {sql}".encode())
        assert connection.execute(sql).fetchall() == [("north",), ("south",)]
    whole = json.loads(document) if isinstance(document, str) else document
    ranking = whole[0]["Keyhole"]["ranking"]
    assert whole[0]["Keyhole"]["guarantee"]["tolerance"] == {"count(*)": 227.0}
    assert (ranking["by"], ranking["order"], ranking["limit"], ranking["tolerance"]) == (
        "count(*)",
        "greatest first",
        2,
        227.0,
    )
    assert any(
        "one of the first 2 groups that is ahead of the next by more than 227 in count(*) is missed at most 5 % of the "
        "time; a group that is behind the last of them by more than that is returned at most 10 % of the time" in one
        for one in told
    )
    assert any("the ranking has every value of store, with rows of data or without" in one for one in told)


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELECT store FROM sales GROUP BY store ORDER BY count(*) FETCH FIRST 3 ROWS WITH TIES", "FETCH FIRST 3 R"),
        (
            "SELECT store, row_number() OVER () FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2",
            "SELECT q.*, row_number() OVER () FROM "
            "(SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2) AS q;",
        ),
        ("SELECT store FROM sales GROUP BY store ORDER BY stddev(amount) LIMIT 3", "ORDER BY count(*) DESC"),
        ("SELECT store FROM sales GROUP BY store ORDER BY min(amount) LIMIT 3", "ORDER BY count(*) DESC"),
        ("SELECT store FROM sales GROUP BY store ORDER BY 0 * count(*) LIMIT 3", "ORDER BY count(*) DESC"),
    ],
)
def test_what_a_ranking_would_show_beside_its_first_groups_is_refused(house: House, sql: str, hint: str) -> None:
    with house.connect() as connection, unchanged(house):
        connection.execute("SET keyhole.tolerance = '229'")
        with pytest.raises(psycopg.Error) as refused:
            connection.execute(sql.encode())
    assert hint in (refused.value.diag.message_hint or "")


def test_without_a_tolerance_the_price_is_fixed_and_the_sharpness_told(house: House) -> None:
    sql = "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2"
    quarter = house.service.catalog.budget.per_query / 4
    plan = pipeline.plan_asked_question(house.service, asked(house.service, sql))
    assert plan.ranking is not None
    assert plan.question.ranked is not None
    assert 0 < plan.ranking.worst_case_epsilon <= quarter
    with house.connect() as connection:
        told = notices(connection)
        assert connection.execute(sql).fetchall() == [("north",), ("south",)]
        lines = [line for (line,) in connection.execute(f"EXPLAIN {sql}".encode())]
        distance = plan.question.ranked.tolerance_value
        within = f"groups within {distance:f} of each other in count(*) may stand in either order"
        assert any(within in one for one in told)
        assert any(within in one for one in lines)
        connection.execute("SET keyhole.tolerance = 'count(*)=10%'")
        with unchanged(house), pytest.raises(psycopg.Error) as refused:
            connection.execute(sql)
        hint = refused.value.diag.message_hint or ""
        for setting in hint.split("  or  "):
            connection.execute(setting.encode())
            assert len(connection.execute(f"EXPLAIN {sql}".encode()).fetchall()) > 5
            connection.execute("RESET keyhole.tolerance")


def test_a_ranking_that_is_too_dear_is_told_the_amount_that_fits(on_duckdb: House) -> None:
    """No percentage would do: it is one of nothing here."""
    sql = "SELECT store FROM sales GROUP BY store ORDER BY count(*) DESC LIMIT 2"
    with on_duckdb.connect() as connection:
        connection.execute("SET keyhole.tolerance = '3'")
        connection.execute("SET keyhole.max_epsilon = '0.03'")
        with unchanged(on_duckdb), pytest.raises(psycopg.Error) as refused:
            connection.execute(sql)
        ways = (refused.value.diag.message_hint or "").split("  or  ")
        (wider,) = [way for way in ways if "count(*)=" in way]
        connection.execute(wider.encode())
        assert connection.execute(f"EXPLAIN {sql}".encode()).fetchall()
        assert len(connection.execute(sql).fetchall()) == 2


def test_groups_that_having_leaves_out_lose_nothing_to_the_ranking(house: House) -> None:
    sql = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1907 ORDER BY sum(amount) DESC LIMIT 2"
    question = asked(house.service, sql, tolerance="6, sum(amount)=157")
    assert truth(house.service, sql, tolerance="6, sum(amount)=157") == [("north", "1"), ("south", "2")]
    plan = pipeline.plan_asked_question(house.service, question)
    assert plan.ranking is not None
    values = house.service.source.read_aggregates(
        plan.rewritten, plan.question.keys, functionals=len(plan.question.computed_functionals), timeout_ms=60_000
    ).values
    outcome = noise_reuse.decide_question(plan, None, values, is_drawn_at_once=False, noise=house.service.noise)
    ranking = rank_passed_keys(plan, outcome, values, noise=house.service.noise)
    assert ranking is not None
    assert ranking.epsilon[~outcome.passed].tolist() == [0.0] * 3
    assert (ranking.epsilon[outcome.passed] > 0).all()
    claim = make_current_claim(house.service, plan, question)
    spent = find_run_loss(claim, outcome, ranking)
    assert spent.epsilon_nano <= claim.charge.epsilon_nano
    decided = find_run_loss(claim, outcome)
    assert spent.epsilon_nano > decided.epsilon_nano


def test_equal_questions_are_one_and_others_are_not(house: House) -> None:
    base = "SELECT store FROM sales GROUP BY store ORDER BY {} LIMIT {}"

    def fingerprint(by: str, limit: str, tolerance: str = "239") -> str:
        return pipeline.plan_asked_question(
            house.service, asked(house.service, base.format(by, limit), tolerance=tolerance)
        ).fingerprint

    same = fingerprint("count(*) DESC", "2")
    assert fingerprint("count(*) DESC NULLS LAST", "1 + 1") == same
    assert fingerprint("-count(*)", "2") == same
    others = [
        fingerprint("count(*)", "2"),
        fingerprint("count(*) DESC", "3"),
        fingerprint("count(*) DESC", "2", "240"),
        fingerprint("count(*) FILTER (WHERE quantity > 3) DESC", "2"),
        fingerprint("count(DISTINCT note) DESC", "2"),
    ]
    assert len({same, *others}) == 6
    assert fingerprint("count(*) DESC", "50") == fingerprint("count(*) DESC", "5")
