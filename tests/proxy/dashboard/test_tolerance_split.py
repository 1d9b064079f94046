"""The factor and the split that are told make all fit: planned again, and asked of the real source."""

from collections.abc import Callable
from decimal import Decimal

import pytest

from planner.errors import KeyholeError
from proxy.concurrency.fair_queue import FairTurns
from proxy.dashboard import tolerance_split
from proxy.dashboard.plan_report import PlanReport, write_tolerances
from proxy.dashboard.tolerance_split import FACTORS, plan_list, plan_list_in_queue, rehearse_list
from proxy.open_policy.service import Service
from proxy.pipeline.rehearsal import DecisionBasis
from tests.proxy.dashboard.test_rehearsal import ask, put

DEAR = """-- what the board asks
SET keyhole.tolerance = '3%';
SELECT week FROM baskets GROUP BY week HAVING count(*) > 260;
SELECT week FROM receipts GROUP BY week HAVING count(*) > 260 ; -- rows
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 7000
"""


def with_factor(sql: str, factor: Decimal) -> str:
    return sql.replace("3%", f"{3 * factor:f}%")


def test_the_least_factor_is_the_least_and_the_split_is_answered(open_grocer: Callable[..., Service]) -> None:
    """The factor by which all fit, and not a hundredth less; the split as its file says it, asked for real."""
    service = open_grocer(mechanism="keyhole", caps="epsilon_per_predicate = 1.0")
    listed = put(service, DEAR)
    planned = plan_list(service, listed, most_nano=None)
    assert not all(quote.fits for quote in planned.unchanged.quotes)
    factor = planned.factor
    assert factor is not None
    below = FACTORS[FACTORS.index(factor) - 1]
    for tried, fits in ((factor, True), (below, False)):
        again = rehearse_list(service, put(service, with_factor(DEAR, tried)), most_nano=None)
        assert all(quote.fits for quote in again.quotes) == fits
    written = write_tolerances(DEAR, planned)
    assert written.startswith("-- what the board asks\nSET keyhole.tolerance = '3%';\n")
    assert " -- rows\n" in written
    split = put(service, written)
    assert [one.text for one in split] == [one.text for one in listed]
    told = planned.narrowed
    assert told is not None
    assert all(quote.fits for quote in told.quotes)
    widened = [Decimal(one[:-1]) / 3 for one in planned.tolerances.values()]
    assert max(widened) <= 2 * factor
    product = Decimal(1)
    for one in widened:
        product *= one
    assert product <= factor ** len(listed)
    again = rehearse_list(service, split, most_nano=None)
    assert [quote.analyst_cost for quote in again.quotes] == [quote.analyst_cost for quote in told.quotes]
    assert all(ask(service, one) for one in split)


def test_a_budget_of_the_list_itself_is_kept(open_grocer: Callable[..., Service]) -> None:
    """Of what is left only so much: what fits costs a group no more together; a wider one leaves the list as it is."""
    service = open_grocer(mechanism="keyhole")
    listed = put(service, DEAR)
    free = plan_list(service, listed, most_nano=None)
    assert all(quote.fits for quote in free.unchanged.quotes)
    assert free.narrowed is None
    assert write_tolerances(DEAR, free) == DEAR
    assert free.factor is not None
    assert free.factor < 1
    most = free.unchanged.total.epsilon_nano // 2
    planned = plan_list(service, listed, most_nano=most)
    assert [quote.is_list_budget for quote in planned.unchanged.quotes if not quote.fits]
    assert planned.unchanged.total.epsilon_nano <= most
    assert planned.narrowed is not None
    assert planned.narrowed.total.epsilon_nano <= most
    assert all(quote.fits for quote in planned.narrowed.quotes)
    lines = PlanReport(planned, service).lines()
    assert any("--max-epsilon does not cover it" in line for line in lines)
    assert max(map(len, lines[:6])) <= 80


def test_what_no_tolerance_mends_is_told_and_left_out(open_grocer: Callable[..., Service]) -> None:
    """A statement that is no question and a stored answer, beside one that is dear."""
    service = open_grocer(mechanism="keyhole", caps="epsilon_per_predicate = 1.0")
    (first,) = put(service, "SELECT week FROM receipts GROUP BY week HAVING count(*) > 205")
    assert ask(service, first)
    listed = put(
        service,
        "SELECT week FROM receipts GROUP BY week HAVING count(*) > 205; SELECT 1; SELECT count(*) FROM receipts;"
        "SET LOCAL keyhole.tolerance = '0.5%'; SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 9000;"
        "COMMIT; SELECT week FROM baskets GROUP BY week HAVING avg(amount) > 30",
    )
    planned = plan_list(service, listed, most_nano=None)
    stored, refused, dear, means = planned.unchanged.quotes
    assert (stored.basis, stored.fits, stored.analyst_cost.epsilon_nano) == (DecisionBasis.STORED, True, 0)
    assert refused.refusal is not None
    assert refused.refusal.code == "KH101"
    assert not dear.fits
    assert planned.narrowed is not None
    assert 0 not in planned.tolerances
    assert [quote.fits for quote in planned.narrowed.quotes] == [True, False, True, True]
    assert means.plan is not None
    assert [one.asked_question.read_accuracy(service.catalog).tolerance for one in listed if one.asked_question] == [
        "20%",
        "0.5%",
        "20%",
    ]


def test_what_fits_with_no_tolerance_is_named_and_the_others_are_planned(open_grocer: Callable[..., Service]) -> None:
    """More than three baskets cannot be told from none within what one question may cost, whatever the tolerance."""
    service = open_grocer(mechanism="keyhole", caps="epsilon_per_predicate = 1.0")
    asked = DEAR.removesuffix("\n") + ";\nSELECT week FROM baskets GROUP BY week HAVING count(*) > 3"
    planned = plan_list(service, put(service, asked), most_nano=None)
    assert planned.unfitting == (planned.questions[-1].statement,)
    assert planned.factor is not None
    assert planned.narrowed is not None
    assert [quote.fits for quote in planned.narrowed.quotes] == [True, True, True, False]
    lines = PlanReport(planned, service).lines()
    assert any(f"All but 4 fit with every tolerance times {planned.factor.normalize():f}." in line for line in lines)
    assert any(line.startswith("No tolerance makes 4 fit: ") for line in lines)


def test_nothing_is_told_where_no_factor_does(open_grocer: Callable[..., Service]) -> None:
    """A budget below what the widest tolerance costs."""
    service = open_grocer(mechanism="keyhole")
    planned = plan_list(service, put(service, DEAR), most_nano=1)
    assert planned.factor is None
    assert planned.narrowed is None
    assert any("No factor up to 1000" in line for line in PlanReport(planned, service).lines())


@pytest.mark.parametrize("refresh", ["live", "static"])
def test_the_same_question_of_live_data_is_another_one(open_grocer: Callable[..., Service], refresh: str) -> None:
    """Of data that do not change it is one answer."""
    service = open_grocer(mechanism="keyhole", refresh=refresh)
    question = "SELECT week FROM receipts GROUP BY week HAVING count(*) > 200;"
    first, second = rehearse_list(service, put(service, 2 * question), most_nano=None).quotes
    assert first.basis is DecisionBasis.ANEW
    assert second.basis is (DecisionBasis.ANEW if refresh == "live" else DecisionBasis.REPEATED)


def test_a_list_that_takes_too_long_ends_and_so_does_waiting_for_others(
    open_grocer: Callable[..., Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = open_grocer(mechanism="keyhole")
    listed, turns = put(service, DEAR), FairTurns(1)
    monkeypatch.setattr(tolerance_split, "_PLANNING", turns)
    with pytest.raises(KeyholeError, match="KH430: the list takes too long to plan"):
        plan_list_in_queue(service, listed, most_nano=None, analyst="ada", longest_ms=0)
    with turns.take_turn("bob", timeout_ms=60_000) as free_again:
        assert free_again
        with pytest.raises(KeyholeError, match="KH430: other lists are being planned"):
            plan_list_in_queue(service, listed, most_nano=None, analyst="ada", longest_wait_ms=0)
    assert plan_list_in_queue(service, (), most_nano=None, analyst="ada").questions == ()
