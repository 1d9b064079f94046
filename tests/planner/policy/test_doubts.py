"""What `keyhole check` warns of: allowed, and weaker than it looks. Each is one sentence, and none is said in vain."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from planner.catalog.relation_names import RelationIdentity
from planner.policy.rules.document import describe_warnings
from planner.policy.rules.doubts import describe_source_doubts
from proxy.cli.check import check
from tests.in_turn import in_turn
from tests.worlds import shop
from tests.worlds.house import new_database, write_policy
from tests.worlds.policies import changed, parsed

DUCKDB_FILE = "duckdb:///shop.duckdb"
DOUBTS = [
    (("epsilon_per_predicate = 4", "epsilon_per_predicate = 10.5"), "budget.epsilon_per_predicate (10.5) is above 10"),
    (("epsilon_per_unit = 8.0", "epsilon_per_unit = 40"), "budget.epsilon_per_unit (40) is above 10"),
    (("bounds = [0, 110]", "bounds = [0, 104.37]\n"), "columns.age has bounds that look as if they were read"),
    (("per_unit = [0, 8000]", "per_unit = [0, 8123.45]"), "columns.cost has bounds that look as if they were read"),
    (
        ("bounds = [0, 110]", "bounds = [0, 110]\nbands = { avg = [65, 120] }"),
        "age.bands has the average 120, which none",
    ),
    (
        ("bounds = [0, 110]", "bounds = [0, 110]\nbands = { avg = [0, 65] }"),
        "age.bands has the average 0, which all reach",
    ),
    (("bounds = [0, 5000]", "bounds = [0, 5000]\nbands = [0, 65]"), "cost.bands has the sum 0, which all reach"),
    (
        ("bounds = [0, 5000]\nper_unit = [0, 8000]", "bounds = [-50, 0]\nper_unit = [-80, 0]\nbands = [-65, 65]"),
        "cost.bands has the sum 65, which none reaches",
    ),
    (
        ("[tables.visits.columns.note]", "[tables.visits.columns.patient_id]\nkey = { range = [1, 9] }"),
        "tables.visits has its whole privacy unit (patient_id) as keys",
    ),
]


@in_turn(("change", "sentence"), DOUBTS)
def test_a_doubtful_policy_is_warned_of_in_one_sentence(change: tuple[str, str], sentence: str) -> None:
    text = changed(change)
    if "104.37" in text:
        text = text.replace("grid = 1\n", "grid = 0.01\n", 1)
    (said,) = [one for one in describe_warnings(parsed(text)) if sentence in one]
    assert said.endswith(".")
    assert said.count(". ") == 0
    assert not any(sentence in one for one in describe_warnings(parsed()))


@pytest.mark.parametrize("bounds", ["[1900, 2026]", "[0, 5000]", "[0, 0.25]", "[-365, 365]", "[0, 100000]"])
def test_bounds_that_somebody_may_have_chosen_are_no_doubt(bounds: str) -> None:
    text = changed(
        (
            "bounds = [0, 110]\ngrid = 1\nper_unit = [0, 2200]",
            f"bounds = {bounds}\ngrid = 0.01\nper_unit = [-9000, 9000]",
        )
    )
    assert describe_warnings(parsed(text)) == ()


def test_bands_that_groups_may_be_on_both_sides_of_are_no_doubt() -> None:
    text = changed(
        ("bounds = [0, 110]", "bounds = [0, 110]\nbands = { sum = [1, 100000], avg = [1, 110] }"),
        ("bounds = [0, 5000]\nper_unit = [0, 8000]", "bounds = [-50, 50]\nper_unit = [-80, 80]\nbands = [-65, 0, 65]"),
    )
    assert describe_warnings(parsed(text)) == ()


def test_a_units_column_is_not_proposed_as_a_key(tmp_path: Path) -> None:
    from planner.errors import KeyholeError
    from proxy.open_policy.service import Service
    from proxy.pipeline import stages
    from tests.end_to_end.certainty import asked

    shop.fill_duckdb(tmp_path / "shop.duckdb")
    path = write_policy(tmp_path, source=DUCKDB_FILE)
    with Service.open(path) as service:
        for column, proposes in (("patient_id", False), ("cost", True)):
            with pytest.raises(KeyholeError, match="KH202") as refused:
                stages.plan_asked_question(
                    service, asked(service, f"SELECT {column} FROM visits GROUP BY {column} HAVING count(*) > 9")
                )
            assert ("Declare" in (refused.value.hint or "")) is proposes


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_the_sources_catalog_shows_what_else_is_doubtful(
    engine: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    made = (
        "ALTER TABLE sales ADD COLUMN customer_id integer",
        "CREATE TABLE keyed (visit integer UNIQUE, twin integer, other_id integer PRIMARY KEY, patient_id integer)",
        "CREATE VIEW seen AS SELECT * FROM keyed",
    )
    tables = """
[tables.keyed]
privacy_unit = "patient_id"
refresh = "static"
max_groups_per_unit = 1
max_rows_per_group = { rows = 2, unique = "UNIQUE" }

[tables.seen]
privacy_unit = "row"
refresh = "static"
same = 1
"""
    own = new_database(request.getfixturevalue("postgres_url")) if engine == "postgres" else nullcontext(DUCKDB_FILE)
    with own as url:
        if engine == "postgres":
            shop.fill_postgres(url, *made)
        else:
            shop.fill_duckdb(tmp_path / "shop.duckdb", *made)
        path = write_policy(tmp_path, source=url)
        keyed, seen = tables.split("\n[tables.seen]")
        policy = path.read_text(encoding="utf-8")

        def said(more: str) -> list[str]:
            path.write_text(policy + more, encoding="utf-8")
            return [one for one in check(path, confirm=True).warnings if "is above 10" not in one]

        rows = [one for one in said("") if "protects each row by itself" in one]
        assert [one.partition(",")[0] for one in rows] == ["tables.sales protects each row by itself"]
        assert "customer_id" in rows[0]
        listed = said("\n[tables.sales.columns.customer_id]\nkey = { range = [1, 9] }\n")
        assert not any("protects each row by itself" in one for one in listed)
        assert not any("chooses rows by" in one for one in said(keyed.replace("UNIQUE", "visit")))
        assert any("chooses rows by twin" in one for one in said(keyed.replace("UNIQUE", "twin")))
        viewed = said("\n[tables.seen]" + seen.replace("same = 1\n", ""))
        assert any("tables.seen reads a view" in one for one in viewed)


def test_a_standby_and_hidden_rows_are_told_of() -> None:
    """What they mean for a data version and for a count, in a sentence each."""
    policy, plain = parsed(), RelationIdentity(names=("visits",), bases=frozenset(), is_view=False, is_join=False)

    def said(identity: RelationIdentity) -> list[str]:
        names = dict.fromkeys(policy.tables, identity)
        return list(describe_source_doubts(policy, names, dict.fromkeys(policy.tables, ())))

    assert said(plain) == []
    (late,) = said(replace(plain, replay_delay="1h"))
    assert "its server's changes 1h or more (recovery_min_apply_delay) after them: run keyhole refresh only" in late
    assert "its server's changes some time after them" in said(replace(plain, replay_delay="0"))[0]
    hidden = said(replace(plain, hides_rows=True))
    assert [one.partition(", which")[0] for one in hidden] == [
        f"tables.{name} has row-level security" for name in policy.private_tables
    ]
    assert not any(". " in one for one in (late, *hidden))
