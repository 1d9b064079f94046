"""Which cells a question is charged to, asked through the pipeline over the demo's data."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from accountant.charges import NANO
from deploy.demo.build import install_demo
from planner.errors import KeyholeError
from planner.question.plan import Plan
from proxy.open_policy.accounts import read_label
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_question
from proxy.pipeline.messages import Answer, Asked, read_bare_question
from tests.worlds.house import check_once

SETTINGS = {"keyhole.mechanism": "keyhole", "keyhole.tolerance": "25%"}
IN_FRANCE = (
    "SELECT country, month FROM sales WHERE {} country = 'France' AND month = '2011-11-01' "
    "GROUP BY country, month HAVING count(DISTINCT customer_id) > 20"
)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with Service.open(check_once(install_demo(tmp_path))) as opened:
        yield opened


def _asked(service: Service, sql: str) -> Asked:
    return Asked(
        question=read_bare_question(sql, service.catalog),
        settings=SETTINGS,
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2012, 1, 1),
    )


def _planned(service: Service, sql: str) -> tuple[Plan, charging.Claim]:
    asked = _asked(service, sql)
    plan = pipeline.plan_asked_question(service, asked)
    version = service.find_version(plan.question.table)
    return plan, charging.make_claim(plan, service.catalog, asked=asked, version=version)


def _answer(service: Service, sql: str) -> Answer:
    asked = _asked(service, sql)
    return pipeline.answer(service, pipeline.plan_asked_question(service, asked), asked)


def test_hours_of_one_group_share_its_budget(service: Service) -> None:
    """A customer may have rows at each hour: what is asked hour by hour adds up on the customer's country and month."""
    cap = service.catalog.budget.per_predicate
    each = _planned(service, IN_FRANCE.format("hour = 0 AND"))[0].worst_case_epsilon
    affordable = int(cap / each)
    for hour in range(affordable):
        _answer(service, IN_FRANCE.format(f"hour = {hour} AND"))
    with pytest.raises(KeyholeError, match="not enough budget") as refusal:
        _answer(service, IN_FRANCE.format(f"hour = {affordable} AND"))
    assert refusal.value.code == "KH301"
    spent = affordable * each
    _, claim = _planned(service, IN_FRANCE.format(""))
    left = service.ledger.find_headroom(claim.charge, claim.limits).epsilon_nano / NANO
    assert left <= cap - spent + 1e-6


def test_a_month_brings_its_own_budget(service: Service) -> None:
    """The unit is a customer's month, so a filter on months tells units apart."""
    _, claim = _planned(
        service,
        "SELECT country FROM sales WHERE month = '2011-11-01' GROUP BY country HAVING count(DISTINCT customer_id) > 20",
    )
    cells = {read_label(label): values for label, values in claim.charge.cells.columns}
    assert cells["month"] == ("2011-11-01",)
    assert claim.charge.family.filter == ""


@pytest.mark.parametrize("key", ["country = 'Atlantis'", "country = 'France' AND country = 'Norway'"])
def test_a_question_without_groups_is_answered_for_nothing(service: Service, key: str) -> None:
    """No group is left: no key, no charge, no failure, in EXPLAIN neither."""
    sql = f"SELECT country, month FROM sales WHERE {key} GROUP BY country, month HAVING count(*) > 1000"
    answer = _answer(service, sql)
    assert answer.keys.keys == ()
    assert answer.plan.worst_case_epsilon == 0
    assert service.report_balances(None).unit_spent_nano == 0
    assert explain_question(service, _asked(service, sql), form="text")
    assert explain_question(service, _asked(service, sql), form="json")


def test_the_order_of_the_keys_does_not_choose(service: Service) -> None:
    """With G = 1 a customer's month counts at one hour, the same however GROUP BY is typed."""
    found = []
    for keys in ("country, hour", "hour, country"):
        plan, _ = _planned(
            service, f"SELECT {keys} FROM sales WHERE month = '2011-11-01' GROUP BY {keys} HAVING count(*) > 1000"
        )
        space = plan.question.keys
        aggregates = service.source.read_aggregates(plan.rewritten, space, functionals=1, timeout_ms=60_000)
        found.append(aggregates.values[0].reshape(space.shape))
    assert np.array_equal(found[0], found[1].T)
