"""Which cells a join of private tables, or a condition on totals per unit, is charged to, and how much of each."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pytest

from accountant.charges import NANO, Spent
from mechanisms.audit.auditor import Neighbours, audit_subject, claim_always
from mechanisms.formula import Integers
from mechanisms.registry import MECHANISMS
from planner.catalog.catalog import Column, Derivation, SqlType
from planner.errors import KeyholeError
from planner.explain.guarantee import PROMISE_OF_CELLS
from planner.plan import build as planning
from planner.policy.file import Policy
from planner.question.plan import Plan
from proxy.cli.check import check
from proxy.open_policy.accounts import convert_to_nano
from proxy.open_policy.service import Service
from proxy.pipeline import claim as charging
from proxy.pipeline import stages as pipeline
from proxy.pipeline.answering import explain_question
from proxy.pipeline.messages import Asked, read_bare_question
from tests.effort import rounds
from tests.seeded_noise import SeededNoise

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
groupable = false
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
        question=read_bare_question(sql, service.catalog),
        settings={"keyhole.mechanism": "keyhole", "keyhole.tolerance": "25%", "keyhole.reuse": "off"},
        parameters={},
        analyst=service.find_analyst(None),
        today=date(2012, 1, 1),
    )


def _claim(service: Service, sql: str) -> tuple[Plan, charging.Claim]:
    asked = _asked(service, sql)
    plan = pipeline.plan_asked_question(service, asked)
    return plan, charging.make_claim(
        plan, service.catalog, asked=asked, version=service.find_version(plan.question.table)
    )


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
    group = convert_to_nano(plan.worst_case_epsilon)
    assert (claim.charge.epsilon_nano, claim.charge.unit_epsilon_nano) == (times * group, units * group)
    assert tuple(name.split(" ")[0] for name in claim.charge.family.columns) == columns


BY_TOTAL = f"SELECT ward {JOINED} GROUP BY ward HAVING sum(value) > 400"
OTHERS = 35  # in each ward, just above where the noisy count is cut: the answer tells most there
CROWD = 70  # likewise with totals of 5


@pytest.mark.parametrize(
    ("sql", "others", "left", "times", "forgotten"),
    [
        pytest.param(BY_WARD.format(""), OTHERS, (), 1, 3, id="one ward is charged for three"),
        pytest.param(BY_TOTAL, CROWD, (("2", -5),), 2, 2, id="a total that changes its sign is charged once"),
    ],
)
def test_an_audit_proves_most_of_what_the_ledger_charges_to_a_cell(
    service: Service, sql: str, others: int, left: tuple[tuple[str, int], ...], times: int, forgotten: int
) -> None:
    """A person in three wards, with and without the tests of one day: 200,000 answers from either world, at
    quick 60,000.

    False alarm 1e-6. The same draws refute a charge that is smaller by the factor that a rule could forget.
    """
    plan, claim = _claim(service, sql)
    charged = claim.charge.epsilon_nano / NANO
    day = (("1", 5), ("1", 5))
    worlds = [_read_world(plan, others=others, tests=tests) for tests in ((*day, *left), left)]
    (functional,) = plan.question.functionals
    assert (worlds[0] - worlds[1]).tolist() == [[times * functional.sensitivity] * 3 + [0]]
    mechanism, noise = MECHANISMS[plan.calibration.mechanism], SeededNoise(51)

    def draw_from(values: Integers) -> Callable[[int], Integers]:
        def draw(samples: int) -> Integers:
            answered = mechanism.decide(plan.calibration, np.tile(values, samples), noise=noise)
            return answered.passed.reshape(samples, -1).astype(np.int64)

        return draw

    def run(epsilon: float) -> tuple[bool, bool]:
        first, second = (claim_always(draw_from(values), epsilon=epsilon) for values in worlds)
        pair = Neighbours(description="a day of tests", first=first, second=second)
        report = audit_subject("a joined cell", [pair], samples=rounds(200_000, quick=60_000))
        return report.is_flagged, report.epsilon_lower > 0.6 * charged

    assert run(charged) == (False, True)
    assert run(charged / forgotten) == (True, True)


def _read_world(plan: Plan, *, others: int, tests: tuple[tuple[str, int], ...]) -> Integers:
    """Return the sums per ward of others with one ward and one test each, and of a person in A, B and C."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE stays (patient_id integer, ward text)")
        connection.execute("CREATE TABLE tests (person integer, day text, kind text, value integer)")
        connection.execute(
            f"INSERT INTO stays SELECT g * 4 + w, chr((65 + w)::integer) FROM range({others}) s(g), range(4) t(w)"
        )
        connection.execute("INSERT INTO tests SELECT patient_id, '1', 'blood', 5 FROM stays")
        connection.execute("INSERT INTO stays VALUES (-1, 'A'), (-1, 'B'), (-1, 'C')")
        for day, value in tests:
            connection.execute("INSERT INTO tests VALUES (-1, ?, 'blood', ?)", [day, value])
        found = dict(connection.execute(plan.rewritten.sql).fetchall())
    return np.array([[int(found.get(ward, 0)) for ward in "ABCD"]], dtype=np.int64)


def test_wards_asked_one_by_one_add_up_on_a_day_of_tests(service: Service) -> None:
    """Each tells of the same tests; the days' balance saw the largest of them before, and a sum was true."""
    _, of_day = _claim(service, BY_DAY)
    before = service.ledger.find_headroom(of_day.charge, of_day.limits).epsilon_nano
    spent = 0
    for ward in "ABCD":
        plan, claim = _claim(service, BY_WARD.format(f"WHERE ward = '{ward}'"))
        reservation = service.ledger.reserve(claim.charge, claim.limits)
        service.ledger.commit(
            reservation,
            Spent.from_uniform(claim.charge.epsilon_nano, unit_epsilon_nano=claim.charge.unit_epsilon_nano),
            b"",
        )
        spent += convert_to_nano(plan.worst_case_epsilon)
    assert before - service.ledger.find_headroom(of_day.charge, of_day.limits).epsilon_nano == spent


def test_what_a_run_cost_is_charged_by_the_same_rule(service: Service) -> None:
    """Ex post, too, a cell bears its unit's groups, and a question over both is answered and refused like any other."""
    asked = _asked(service, BY_WARD.format("WHERE ward IN ('A', 'B')"))
    plan = pipeline.plan_asked_question(service, asked)
    answer = pipeline.answer(service, plan, asked)
    assert answer.keys.keys == (("A",), ("B",))
    assert answer.payment is not None
    assert answer.payment.group == pytest.approx(2 * plan.worst_case_epsilon, abs=2 / NANO)
    assert "for presence in any cell" in answer.payment.cost
    refused = None
    for threshold in range(50, 90):
        again = _asked(service, BY_WARD.format("WHERE ward IN ('A', 'B')").replace("> 40", f"> {threshold}"))
        try:
            pipeline.answer(service, pipeline.plan_asked_question(service, again), again)
        except KeyholeError as refusal:
            refused = refusal
            break
    assert refused is not None
    assert refused.code == "KH301"
    assert explain_question(service, again, form="text")


@pytest.mark.parametrize(("keys", "times"), [("day", 2), ("day, kind", 1)])
def test_totals_per_unit_are_doubled_where_a_group_is_several_cells(service: Service, keys: str, times: int) -> None:
    plan, claim = _claim(service, PER_UNIT.format(keys=keys))
    assert claim.charge.epsilon_nano == times * convert_to_nano(plan.worst_case_epsilon)
    assert claim.charge.unit_epsilon_nano == convert_to_nano(plan.worst_case_epsilon)


@pytest.mark.parametrize(("groupable", "times"), [(True, 2), (False, 1)])
def test_a_derived_column_by_which_one_may_group_makes_finer_cells(
    service: Service,
    groupable: bool,
    times: int,
) -> None:
    at = Column(name="at", sql_type=SqlType.TIMESTAMP, declared="timestamp", groupable=False)
    hour = Column(
        name="hour",
        sql_type=SqlType.INTEGER,
        declared="integer",
        derivation=Derivation("extract", "hour", "at"),
        groupable=groupable,
    )
    tables = tuple(
        replace(table, columns=(*table.columns, at, hour)) if table.name == "tests" else table
        for table in service.catalog.tables
    )
    catalog = replace(service.catalog, tables=tables)
    asked = replace(_asked(service, BY_DAY), question=read_bare_question(PER_UNIT.format(keys="day, kind"), catalog))
    plan = planning.plan_question(
        asked.read_question(catalog, asked.read_accuracy(catalog)), dialect=service.source.dialect
    )
    claim = charging.make_claim(plan, catalog, asked=asked, version=service.find_version(plan.question.table))
    assert claim.charge.epsilon_nano == times * convert_to_nano(plan.worst_case_epsilon)


def test_explain_makes_the_promise_of_cells(service: Service) -> None:
    told = "\n".join(explain_question(service, _asked(service, BY_DAY), form="verbose"))
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
    tables = tuple(replace(table, covers_cut_units=True) for table in service.catalog.tables)
    catalog = replace(service.catalog, tables=tables)
    asked = replace(_asked(service, BY_DAY), question=read_bare_question(sql, catalog))
    plan = planning.plan_question(
        asked.read_question(catalog, asked.read_accuracy(catalog)), dialect=service.source.dialect
    )
    claim = charging.make_claim(plan, catalog, asked=asked, version=service.find_version(plan.question.table))
    assert claim.charge.family.columns == columns
    assert claim.charge.epsilon_nano == times * convert_to_nano(plan.worst_case_epsilon)


def test_the_policy_says_whose_cells_are_covered(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "keyhole.toml"
    path.write_text(POLICY.replace("[budget]", '[budget]\ncells = "every unit"'), encoding="utf-8")
    assert Policy.load(path).budget.cells == "every unit"
    assert not any(table.covers_cut_units for table in service.catalog.tables)
