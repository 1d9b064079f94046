"""Which cells a join of private tables, or a condition on totals per unit, is charged to, and how much of each."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import pytest

from accountant.model import NANO, Spent
from planner.errors import KeyholeError
from planner.explain.guarantee import PROMISE_OF_CELLS
from planner.plan import build as planning
from planner.policy.file import Policy
from planner.question.plan import Plan
from proxy.cli.check import check
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_question
from proxy.pipeline.messages import Asked, bare_question
from proxy.service.accounts import nano
from proxy.service.service import Service

POLICY = """\
[source]
url = "duckdb:///clinic.duckdb"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 900
epsilon_per_query = 4

[tables.stays]
privacy_unit = "patient_id"
refresh = "static"
max_groups_per_unit = 3
rows_per_unit = 1

[tables.stays.columns.ward]
key = { values = ["A", "B", "C", "D"] }

[tables.tests]
privacy_unit = "person"
max_groups_per_unit = 1
rows_per_unit = 2
same_unit_as = "stays"
refresh = "static"

[tables.tests.columns.day]
key = { values = ["1", "2"] }

[tables.tests.columns.kind]
key = { values = ["blood", "other"] }

[tables.tests.columns.value]
bounds = [-5, 5]
per_unit = [-5, 5]
"""
JOINED = "FROM stays s JOIN tests t ON t.person = s.patient_id"
BY_WARD = f"SELECT ward {JOINED} {{}} GROUP BY ward HAVING count(DISTINCT s.patient_id) > 40"
BY_DAY = "SELECT day FROM tests GROUP BY day HAVING count(DISTINCT person) > 40"
PER_UNIT = (
    "SELECT {keys} FROM (SELECT {keys}, person, count(*) AS n FROM tests GROUP BY {keys}, person) v GROUP BY {keys} "
    "HAVING count(*) FILTER (WHERE n > 1) > 40 AND count(*) FILTER (WHERE n <= 1) > 40"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory = tmp_path_factory.mktemp("clinic")
    with duckdb.connect(str(directory / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE stays (patient_id integer, ward text)")
        connection.execute(
            "INSERT INTO stays SELECT g, chr((65 + (g + w) % 4)::integer) FROM range(400) s(g), range(3) t(w)"
        )
        connection.execute("CREATE TABLE tests (person integer, day text, kind text, value integer)")
        connection.execute("INSERT INTO tests SELECT g, '1', 'blood', 1 FROM range(400) s(g)")
    policy: Path = directory / "keyhole.toml"
    policy.write_text(POLICY, encoding="utf-8")
    check(policy, confirm=False)
    with Service.open(policy) as opened:
        yield opened


def _asked(service: Service, sql: str) -> Asked:
    return Asked(
        question=bare_question(sql, service.catalog),
        settings={"keyhole.mechanism": "keyhole", "keyhole.tolerance": "25%", "keyhole.reuse": "off"},
        parameters={},
        analyst=service.analyst(None),
        today=date(2012, 1, 1),
    )


def _claim(service: Service, sql: str) -> tuple[Plan, charging.Claim]:
    asked = _asked(service, sql)
    plan = pipeline.prepare(service, asked)
    return plan, charging.claim(plan, service.catalog, asked=asked, version=service.version(plan.question.table))


@pytest.mark.parametrize(
    ("sql", "columns", "times", "units"),
    [
        pytest.param(BY_WARD.format(""), (), 3, 3, id="a day's tests show in three wards"),
        pytest.param(BY_WARD.format("WHERE ward = 'A'"), (), 1, 1, id="in one ward, of which all days are charged"),
        pytest.param(
            f"SELECT ward {JOINED} GROUP BY ward HAVING sum(value) > 40",
            (),
            6,
            3,
            id="a total of both signs is doubled",
        ),
        pytest.param(BY_DAY, ("tests.day",), 1, 1, id="one table by its own keys"),
    ],
)
def test_a_cell_is_charged_what_its_rows_can_change(
    service: Service, sql: str, columns: tuple[str, ...], times: int, units: int
) -> None:
    plan, claim = _claim(service, sql)
    group = nano(plan.worst_case_epsilon)
    assert (claim.charge.epsilon_nano, claim.charge.unit_epsilon_nano) == (times * group, units * group)
    assert tuple(name.split(" ")[0] for name in claim.charge.family.columns) == columns


def test_wards_asked_one_by_one_add_up_on_a_day_of_tests(service: Service) -> None:
    """Each tells of the same tests; the days' balance saw the largest of them before, and a sum was true."""
    _, of_day = _claim(service, BY_DAY)
    before = service.ledger.left_for(of_day.charge, of_day.limits).epsilon_nano
    spent = 0
    for ward in "ABCD":
        plan, claim = _claim(service, BY_WARD.format(f"WHERE ward = '{ward}'"))
        reservation = service.ledger.reserve(claim.charge, claim.limits)
        service.ledger.commit(
            reservation,
            Spent.uniform(claim.charge.epsilon_nano, unit_epsilon_nano=claim.charge.unit_epsilon_nano),
            b"",
        )
        spent += nano(plan.worst_case_epsilon)
    assert before - service.ledger.left_for(of_day.charge, of_day.limits).epsilon_nano == spent


def test_what_a_run_cost_is_charged_by_the_same_rule(service: Service) -> None:
    """Ex post, too, a cell bears its unit's groups, and a question over both is answered and refused like any other."""
    asked = _asked(service, BY_WARD.format("WHERE ward IN ('A', 'B')"))
    plan = pipeline.prepare(service, asked)
    answer = pipeline.answer(service, plan, asked)
    assert answer.keys.keys == (("A",), ("B",))
    assert answer.payment is not None
    assert answer.payment.group == pytest.approx(2 * plan.worst_case_epsilon, abs=2 / NANO)
    assert "for presence in any cell" in answer.payment.cost
    refused = None
    for threshold in range(50, 90):
        again = _asked(service, BY_WARD.format("WHERE ward IN ('A', 'B')").replace("> 40", f"> {threshold}"))
        try:
            pipeline.answer(service, pipeline.prepare(service, again), again)
        except KeyholeError as refusal:
            refused = refusal
            break
    assert refused is not None
    assert refused.code == "KH301"
    assert explain_question(service, again, form="text")


@pytest.mark.parametrize(("keys", "times"), [("day", 2), ("day, kind", 1)])
def test_totals_per_unit_are_doubled_where_a_group_is_several_cells(service: Service, keys: str, times: int) -> None:
    plan, claim = _claim(service, PER_UNIT.format(keys=keys))
    assert claim.charge.epsilon_nano == times * nano(plan.worst_case_epsilon)
    assert claim.charge.unit_epsilon_nano == nano(plan.worst_case_epsilon)


def test_explain_makes_the_promise_of_cells(service: Service) -> None:
    told = "\n".join(explain_question(service, _asked(service, BY_DAY), form="text"))
    assert f"Cells: {PROMISE_OF_CELLS}" in told


@pytest.mark.parametrize(
    ("sql", "columns", "times"),
    [
        ("SELECT ward FROM stays GROUP BY ward HAVING count(*) > 40", (), 2),
        (BY_WARD.format(""), (), 6),
        ("SELECT day FROM tests GROUP BY day HAVING sum(value) > 40", (), 2),
        ("SELECT 1 FROM tests HAVING count(*) > 40", (), 1),
        ("SELECT 1 FROM tests HAVING sum(value) > 40", (), 2),
    ],
)
def test_every_unit_is_covered_where_the_owner_wants_that(
    service: Service, sql: str, columns: tuple[str, ...], times: int
) -> None:
    tables = tuple(replace(table, cells_of_cut_units=True) for table in service.catalog.tables)
    catalog = replace(service.catalog, tables=tables)
    asked = replace(_asked(service, BY_DAY), question=bare_question(sql, catalog))
    plan = planning.plan(asked.read_question(catalog, asked.accuracy(catalog)), dialect=service.source.dialect)
    claim = charging.claim(plan, catalog, asked=asked, version=service.version(plan.question.table))
    assert claim.charge.family.columns == columns
    assert claim.charge.epsilon_nano == times * nano(plan.worst_case_epsilon)


def test_the_policy_says_whose_cells_are_covered(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY.replace("[budget]", '[budget]\ncells = "every unit"'), encoding="utf-8")
    assert Policy.load(path).budget.cells == "every unit"
    assert not any(table.cells_of_cut_units for table in service.catalog.tables)
