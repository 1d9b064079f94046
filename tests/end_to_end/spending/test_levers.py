"""What a refusal for budget proposes: every way is tried, and leads to an answer or to what it announced."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from planner.errors import KeyholeError
from proxy.cli.check import check
from proxy.cli.main import app
from proxy.open_policy.service import Service
from proxy.pipeline import stages as pipeline
from proxy.pipeline.advice import affordable
from proxy.pipeline.answering import explain_question
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.messages import Answer, Asked
from tests.end_to_end.certainty import asked
from tests.worlds import shop
from tests.worlds.house import write_policy

STORES = "SELECT store FROM sales GROUP BY store HAVING "


@contextmanager
def poor(
    directory: Path, *, per_predicate: float = 900.0, per_query: float = 100.0, bobs: float = 1.0
) -> Iterator[Service]:
    """The shop with a budget of its own."""
    shop.fill_duckdb(directory / "shop.duckdb")
    policy = write_policy(
        directory, source="duckdb:///shop.duckdb", per_predicate=per_predicate, per_query=per_query, bobs=bobs
    )
    with Service.open(policy) as service:
        yield service


def ask(service: Service, question: Asked) -> Answer:
    return pipeline.answer(service, pipeline.plan_asked_question(service, question), question)


def refused(service: Service, question: Asked) -> KeyholeError:
    with pytest.raises(KeyholeError) as caught:
        ask(service, question)
    return caught.value


def ways(error: KeyholeError) -> list[str]:
    return (error.hint or "").split("  or  ")


def follow(service: Service, question: Asked, way: str) -> Asked:
    """The question as a way of a hint has it."""
    if "SELECT" in way:
        return replace(asked(service, way[way.index("SELECT") :].rstrip(";")), settings=question.settings)
    if way.startswith("ask for larger groups: "):
        guard = way.rpartition(": ")[2]
        number = guard.rpartition(" ")[2]
        sql, changed = re.subn(rf"{re.escape(guard.removesuffix(number))}\d+", guard, question.question.text)
        assert changed == 1
        return replace(asked(service, sql), settings=question.settings)
    found = re.findall(r"SET (keyhole\.\w+) = ('[^']*'|[^;]+);", way)
    assert found, way
    given = {name: value.strip("'") for name, value in found}
    return replace(question, settings={**question.settings, **given})


def cost(service: Service, question: Asked) -> float:
    return pipeline.plan_asked_question(service, question).worst_case_epsilon


def left(service: Service, question: Asked) -> float:
    """The most that one more question about the same groups may cost, whatever one question may."""
    made = make_current_claim(service, pipeline.plan_asked_question(service, question), question)
    lasting = replace(made, limits=replace(made.limits, per_query_nano=None))
    return affordable.find_question_balance(service, lasting).epsilon


def check_ways(service: Service, question: Asked, error: KeyholeError) -> list[str]:
    """Every way fits, and what would use all that is left says so. Nothing is spent."""
    remains = left(service, question)
    found = ways(error)
    for way in found:
        followed = follow(service, question, way)
        plan = pipeline.plan_asked_question(service, followed)
        made = make_current_claim(service, plan, followed)
        assert service.ledger.find_shortage(made.charge, made.limits) is None, way
        assert all(float(percent) <= 50 for percent in re.findall(r"([\d.]+)%", way)), way
        assert all(float(rate) <= 0.2 for rate in re.findall(r"keyhole\.fnr = ([\d.]+);", way)), way
        if way.startswith("SET") and "half" not in way:
            assert ("(this would use all that is left)" in way) is (plan.worst_case_epsilon > 0.9 * remains), way
        if "(half of it)" in way:
            assert plan.worst_case_epsilon <= remains / 2
    return found


def test_of_a_mean_larger_groups_are_proposed_first_and_what_would_use_all_says_so(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=2.0, per_query=2.0) as service:
        question = asked(service, STORES + "avg(amount) > 20")
        error = refused(service, question)
        assert error.code == "KH302"
        found = check_ways(service, question, error)
        assert found[0].startswith("SET keyhole.min_rows = ")
        assert any(way.startswith("SET keyhole.tolerance = ") for way in found)
        assert "(half of it)" in found[-1]
        ask(service, follow(service, question, found[0]))


def test_nothing_is_said_of_all_that_is_left_where_much_is(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=100.0, per_query=0.5) as service:
        question = asked(service, STORES + "count(*) > 60")
        error = refused(service, question)
        assert error.code == "KH302"
        assert "left" not in (error.hint or "")
        check_ways(service, question, error)


def test_a_guard_may_ask_for_larger_groups(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=1.0, per_query=0.4) as service:
        question = asked(service, STORES + "count(amount) >= 130 AND avg(amount) > 25")
        error = refused(service, question)
        found = check_ways(service, question, error)
        (raised,) = (way for way in found if way.startswith("ask for larger groups: count(amount) >= "))
        assert int(raised.rpartition(" ")[2]) > 130
        ask(service, follow(service, question, raised))


def test_the_other_groups_are_offered_and_the_exhausted_ones_named(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=1.0, per_query=1.0) as service:
        some = STORES.replace("GROUP", "WHERE store IN ('east', 'west') GROUP")
        ask(service, asked(service, some + "count(*) > 130"))
        question = asked(service, STORES + "count(*) > 140")
        question = replace(question, settings={"keyhole.reuse": "off"})
        error = refused(service, question)
        assert error.code == "KH301"
        assert "Too little is left for east, west." in (error.detail or "")
        found = check_ways(service, question, error)
        (others,) = (way for way in found if way.startswith("without the groups that have too little left: "))
        assert "WHERE store NOT IN ('east', 'west') GROUP BY" in others
        answer = ask(service, follow(service, question, others))
        assert {key for (key,) in answer.keys.keys} <= {"north", "south", "closed"}
        lines = explain_question(service, question, form="text")
        assert any(line.startswith("  Too little is left for ") for line in lines)


def test_an_or_in_where_is_kept_together(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=1.0, per_query=1.0) as service:
        ask(service, asked(service, STORES.replace("GROUP", "WHERE store = 'east' GROUP") + "count(*) > 130"))
        sql = STORES.replace("GROUP", "WHERE quantity > 3 OR score > 1 GROUP") + "count(*) > 140"
        error = refused(service, asked(service, sql, reuse="off"))
        assert "WHERE store NOT IN ('east') AND (quantity > 3 OR score > 1) GROUP BY" in (error.hint or "")
        check_ways(service, asked(service, sql, reuse="off"), error)


def test_a_cap_of_the_session_can_be_taken_off(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=9.0, per_query=9.0) as service:
        question = asked(service, STORES + "count(*) > 60", max_epsilon="0.2")
        error = refused(service, question)
        assert ways(error)[0].startswith("SET keyhole.max_epsilon = '';")
        check_ways(service, question, error)


def test_two_settings_are_changed_where_none_is_enough(tmp_path: Path) -> None:
    with poor(tmp_path, per_predicate=0.25, per_query=2.0) as service:
        question = asked(service, STORES + "count(*) > 60 AND avg(amount) > 25", tolerance="20%")
        error = refused(service, question)
        found = check_ways(service, question, error)
        assert any("; SET " in way for way in found), error.hint


def test_where_nothing_helps_the_hint_is_what_the_owner_runs(tmp_path: Path) -> None:
    """Each group has lost all but a thousandth of its budget; the owner grants what the hint says, and it fits."""
    with poor(tmp_path, per_predicate=0.151, per_query=2.0) as service:
        ask(service, asked(service, STORES + "count(*) > 500"))
        question = asked(service, STORES + "count(*) FILTER (WHERE quantity > 2) > 500")
        error = refused(service, question)
        assert error.code == "KH301"
        assert "only the data owner can help" in (error.hint or "")
        assert "Too little" not in (error.detail or "")
        grant = re.search(r"keyhole grant (.*) --why \.\.\.", error.hint or "")
        assert grant is not None
        words = [*grant[1].split(), "--why", "a test", "--policy", str(tmp_path / "keyhole.toml")]
        assert CliRunner().invoke(app, ["grant", *words]).exit_code == 0
        ask(service, question)


def test_an_analysts_own_cap_is_the_owners_to_raise(tmp_path: Path) -> None:
    with poor(tmp_path, bobs=0.0001) as service:
        bob = service.find_analyst("bob")
        question = replace(asked(service, STORES + "count(*) > 500"), analyst=bob)
        error = refused(service, question)
        assert error.code == "KH306"
        grant = re.search(r"keyhole grant (.* --analyst bob) --why \.\.\.", error.hint or "")
        assert grant is not None
        words = [*grant[1].split(), "--why", "a test", "--policy", str(tmp_path / "keyhole.toml")]
        result = CliRunner().invoke(app, ["grant", *words])
        assert result.exit_code == 0, result.output
        ask(service, question)


def test_a_cap_on_one_question_is_the_owners_to_raise(tmp_path: Path) -> None:
    with poor(tmp_path, per_query=0.001) as service:
        error = refused(service, asked(service, STORES + "count(*) > 60"))
        assert error.code == "KH302"
        assert (error.hint or "").endswith("ask the owner for a higher epsilon_per_query.")


def test_others_outcomes_do_not_name_groups_where_analysts_are_accounted_for_one_by_one(tmp_path: Path) -> None:
    """What ada's progressive question cost each store follows from the data, and bob has a cap: his refusal names
    stores by what was reserved for them, the same for all."""
    with poor(tmp_path, per_predicate=0.4, per_query=2.0, bobs=9.0) as service:
        ada = asked(service, STORES + "count(*) > 2900", mechanism="progressive", tolerance="0.5%")
        reserved = cost(service, ada)
        assert 0.2 < reserved < 0.4
        ask(service, ada)
        other = STORES + "count(*) FILTER (WHERE quantity >= 0) > 1000"
        bob = replace(asked(service, other, tolerance="0.9%"), analyst=service.find_analyst("bob"))
        assert cost(service, bob) > 0.4 - reserved
        error = refused(service, bob)
        assert error.code == "KH301"
        assert "5 of 5 groups" in error.message
        assert "Too little is left for" not in (error.detail or "")


def test_a_difference_is_offered_a_wider_part_of_its_bounds(tmp_path: Path) -> None:
    """In percent of a threshold of 0 it would be refused."""
    sql = f"{STORES}count(*) FILTER (WHERE quantity > 2) > count(*) FILTER (WHERE quantity <= 2)"
    with poor(tmp_path, per_predicate=2.0, per_query=0.5) as service:
        question = replace(asked(service, sql), settings={"keyhole.tolerance": "1% of bounds"})
        error = refused(service, question)
        assert error.code == "KH302"
        found = check_ways(service, question, error)
        (offered,) = (way for way in found if "keyhole.tolerance" in way and "and" not in way)
        assert re.match(r"SET keyhole\.tolerance = '\d+(\.\d)?% of bounds';", offered)


def test_of_a_share_larger_totals_are_proposed(tmp_path: Path) -> None:
    total = "(SELECT count(*) FROM sales)"
    with poor(tmp_path, per_predicate=2.0, per_query=0.5) as service:
        question = asked(service, f"{STORES}count(*) > 0.3 * {total} AND {total} >= 60")
        found = check_ways(service, question, refused(service, question))
        (larger,) = (way for way in found if way.startswith("SET keyhole.min_base = ") and "tolerance" not in way)
        assert int(larger.split("= ")[1].split(";")[0]) > 60
        ask(service, follow(service, question, larger))


URGENT = "SELECT ward FROM visits WHERE kind = 'urgent' GROUP BY ward HAVING count(*) > 100"


@contextmanager
def with_kinds(directory: Path, *, per_query: float) -> Iterator[Service]:
    """The shop whose patients have one visit of each kind in a ward, and up to two in it."""
    shop.fill_duckdb(directory / "shop.duckdb", "ALTER TABLE visits ADD COLUMN kind text DEFAULT 'urgent'")
    policy = write_policy(directory, source="duckdb:///shop.duckdb", per_query=per_query)
    kinds = """
[tables.visits.columns.kind]
key = { values = ["urgent", "planned"] }

[tables.visits.groupings]
"ward, kind" = { max_groups = 2, rows = 1 }

[tables.stores]"""
    policy.write_text(policy.read_text().replace("\n[tables.stores]", kinds))
    check(policy, confirm=True)
    with Service.open(policy) as service:
        yield service


def test_a_question_about_one_value_of_a_key_costs_what_it_costs_grouped_by_it(tmp_path: Path) -> None:
    """The owner declares fewer rows of a unit in the finer groups: WHERE is enough to have their price."""
    with with_kinds(tmp_path, per_query=100.0) as service:
        question = asked(service, URGENT)
        finer = cost(service, asked(service, URGENT.replace("BY ward", "BY ward, kind")))
        both = cost(service, asked(service, URGENT.replace("= 'urgent'", "IN ('urgent', 'planned')")))
        assert cost(service, question) == finer < 0.6 * both
        (note,) = (line for line in explain_question(service, question, form="verbose") if "WHERE leaves" in line)
        assert note == "  Bounding: WHERE leaves 1 value of kind: the bounds are those of groups by kind as well"
        assert ask(service, question).keys.keys == (("A",), ("B",))


def test_patients_are_offered_in_the_place_of_visits_before_less_accuracy(tmp_path: Path) -> None:
    """A patient has up to two visits in a ward, and is one patient there."""
    with with_kinds(tmp_path, per_query=1.0) as service:
        question = asked(service, "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 100")
        error = refused(service, question)
        found = check_ways(service, question, error)
        assert found[0] == (
            "Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 100;"
        )
        assert [way[:22] for way in found[1:3]] == ["SET keyhole.tolerance ", "SET keyhole.fnr = 0.13"]


def test_no_tolerance_above_half_and_no_rate_above_a_fifth_is_offered(tmp_path: Path) -> None:
    """Twice the tolerance first, and never one with which an answer says little about its threshold."""
    with poor(tmp_path, per_query=0.02) as service:
        for tolerance in ("10%", "40%", "60%", "5"):
            question = asked(service, STORES + "count(*) > 60", tolerance=tolerance)
            error = refused(service, question)
            assert error.code == "KH302"
            assert "fnr = 0.3" not in (error.hint or "")
            assert "100%" not in (error.hint or "")
            if "SET" in (error.hint or ""):
                check_ways(service, question, error)
            else:
                assert "No setting" in (error.hint or "")
