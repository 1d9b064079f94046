"""What a planned list says is what the ledger charges once its questions are asked, one after the other."""

from collections.abc import Callable

import pytest

from planner.errors import KeyholeError
from proxy.dashboard.question_list import ListedQuestion, read_list
from proxy.dashboard.tolerance_split import rehearse_list
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.rehearsal import DecisionBasis
from tests.effort import cases

LIST = """
SELECT week FROM baskets GROUP BY week HAVING count(*) > 200;
SELECT week FROM baskets GROUP BY week HAVING count(*) > 250;
SET keyhole.tolerance = '8%';
SELECT week FROM baskets GROUP BY week HAVING count(*) > 240;
SELECT week FROM baskets WHERE week IN (1, 2) GROUP BY week HAVING count(*) > 230 AND sum(amount) > 6000;
SELECT week FROM receipts GROUP BY week HAVING count(*) > 200 OR sum(amount) > 9000;
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 8500;
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 8500;
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 1.2 * lag(sum(amount)) OVER (ORDER BY week);
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 0.3 * (SELECT sum(amount) FROM receipts);
SET keyhole.tolerance = '2%';
SELECT week FROM receipts GROUP BY week HAVING sum(amount) > 8000;
SELECT week FROM baskets GROUP BY week HAVING avg(amount) > 30;
RESET keyhole.tolerance;
SET keyhole.reuse = off;
SELECT week FROM receipts GROUP BY week HAVING count(*) > 210;
SELECT week FROM receipts GROUP BY week HAVING count(*) > 10 OR count(*) <= 10;
SET keyhole.mechanism = 'svt';
SET keyhole.most_positives = 2;
SET keyhole.tolerance = '40%';
SELECT week FROM receipts GROUP BY week HAVING count(*) > 220;
"""


def put(service: Service, sql: str, *, analyst: str = "ada") -> tuple[ListedQuestion, ...]:
    return read_list(sql, service.catalog, analyst=service.find_analyst(analyst), given={})


def ask(service: Service, one: ListedQuestion) -> bool:
    """Whether it is answered."""
    assert one.asked_question is not None
    try:
        pipeline.answer(service, pipeline.plan_asked_question(service, one.asked_question), one.asked_question)
    except KeyholeError as refusal:
        if refusal.code not in OVER_BUDGET:
            raise
        return False
    return True


OVER_BUDGET = ("KH301", "KH302", "KH305", "KH306", "KH309")
EARLIER = """
SELECT week FROM baskets WHERE week IN (2, 3) GROUP BY week HAVING count(*) > 220;
SELECT week FROM receipts GROUP BY week HAVING count(*) > 205;
"""
CAPS = "epsilon_per_predicate = 1.5\nepsilon_per_unit = 3.5"


@pytest.mark.parametrize(
    ("mechanism", "caps", "earlier"), cases(["keyhole", "progressive"], ["", CAPS], [False, True], quick=3)
)
def test_what_is_planned_is_what_is_charged(
    open_grocer: Callable[..., Service], mechanism: str, caps: str, *, earlier: bool
) -> None:
    """Each charge of the ledger's is the planned one, or, of what everybody pays together, at most that: how far keys
    got before a question continues their noise depends on that noise. A one-shot mechanism has no such thing, and there
    what is planned not to fit is refused; else more may be left by then, and only what fits is asked."""
    service = open_grocer(mechanism=mechanism, caps=caps)
    for one in put(service, EARLIER, analyst="bob") if earlier else ():
        assert ask(service, one)
    before = len(service.ledger.read_history())
    listed = put(service, LIST)
    quotes = rehearse_list(service, listed, most_nano=None).quotes
    assert len(service.ledger.read_history()) == before, "planning charges nothing"
    assert {DecisionBasis.ANEW, DecisionBasis.REPEATED, DecisionBasis.NOTHING, DecisionBasis.CONTINUED} <= {
        one.basis for one in quotes
    }
    assert not all(quote.fits for quote in quotes)
    exact = mechanism == "keyhole"
    for one, quote in zip(listed, quotes, strict=True):
        if exact or quote.fits:
            assert ask(service, one) == quote.fits
    planned = [quote for quote in quotes if quote.fits and quote.charge is not None]
    charged = [asked.charge for asked in service.ledger.read_history()[before:]]
    assert [charge.own_amounts for charge in charged] == [quote.analyst_cost for quote in planned]
    for charge, quote in zip(charged, planned, strict=True):
        if exact or caps:
            assert charge.known_amounts == quote.shared_cost
        assert charge.known_amounts.epsilon_nano <= quote.shared_cost.epsilon_nano
        assert charge.known_amounts.unit_epsilon_nano <= quote.shared_cost.unit_epsilon_nano
