"""Private tables joined on their unit: what is joined, what is refused, what it is called, and how much it costs."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.bind.bind_question import bind_question
from planner.bind.unit_join import join_on_unit
from planner.catalog.catalog import Catalog, RowCap, SqlType, Table
from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.postgres import POSTGRES
from planner.plan.build import plan_question
from planner.question.plan import Plan
from planner.question.unit_groups import count_unit_groups
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.open_policy.data_versions import find_data_version
from proxy.open_policy.service import OWNER
from proxy.pipeline.claim import make_claim
from proxy.pipeline.messages import Asked
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.spec import pairs
from tests.worlds.stays import LABS, PATIENTS, STAYS, people

JOINED = "SELECT {} FROM stays s JOIN patients p USING (patient_id) GROUP BY {} HAVING count(*) > 100"


def _plans(sql: str, catalog: Catalog | None = None) -> list[Plan]:
    catalog = catalog or people()
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    wanted = read_accuracy({}, catalog.defaults)
    asked = [bind_question(one, catalog, accuracy=wanted, parameters={}, today=TODAY) for one in statement.questions]
    return [plan_question(one, dialect=POSTGRES) for one in asked]


def _planned(sql: str, catalog: Catalog | None = None) -> Plan:
    (made,) = _plans(sql, catalog)
    return made


def _outcome(sql: str) -> str:
    try:
        question = _planned(sql).question
    except KeyholeError as error:
        pointed = "" if error.position is None else sql[error.position - 1 :].split()[0]
        return f"{error.code} {pointed}"
    table = question.table
    keys = ", ".join(question.keys.names)
    return f"{table.name} by {keys}, {table.groups_per_unit} groups of {table.rows_per_unit} rows"


@in_turn(("sql", "outcome"), pairs("same_unit.sql"))
def test_statement(sql: str, outcome: str) -> None:
    assert _outcome(sql) == outcome


@in_turn("sql", [sql for sql, outcome in pairs("same_unit.sql") if outcome.startswith("KH")])
def test_a_hint_that_shows_a_question_or_a_join_shows_one_that_works(sql: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        _plans(sql)
    hint = refused.value.hint or ""
    if "HAVING" in hint and "..." not in hint:
        _plans(hint[hint.index("SELECT") :])
    elif found := re.search(r"Write JOIN \.\.\. ON (.*)\.$", hint):
        named = {alias: table for table, alias in re.findall(r"(stays|patients|labs) ([spl])\b", sql)}
        first, second = (f"{named[alias]} {alias}" for alias in re.findall(r"(\w+)\.\w+", found[1]))
        _plans(f"SELECT s.ward FROM {first} JOIN {second} ON {found[1]} GROUP BY s.ward HAVING count(*) > 100")


CONJUNCTS = {
    "p.patient_id = s.patient_id": True,
    "s.patient_id = p.patient_id": True,
    "((s.patient_id)) = p.patient_id": True,
    "p.sex = 'f'": False,
    "s.patient_id = 3 AND p.patient_id = 3": False,
    "(p.patient_id = s.patient_id OR s.age > 3)": False,
    "NOT (p.patient_id <> s.patient_id)": False,
    "s.stay_id = p.patient_id": False,
    "p.patient_id = p.patient_id": False,
    "abs(p.patient_id) = s.patient_id": False,
    "(p.patient_id = s.patient_id) IS NOT FALSE": False,
    "CASE WHEN TRUE THEN p.patient_id = s.patient_id END": False,
    "s.patient_id IN (p.patient_id)": False,
    "p.patient_id IS NOT DISTINCT FROM s.patient_id": False,
}
FROMS: tuple[Callable[[str, str], str], ...] = (
    lambda on, where: f"stays s JOIN patients p ON {on} WHERE {where}",
    lambda on, where: f"patients p INNER JOIN stays s ON ({on}) WHERE ({where})",
    lambda on, where: f"stays s, patients p WHERE {on} AND {where}",
    lambda on, where: f"wards w, stays s CROSS JOIN patients p WHERE w.name = s.ward AND ({where} AND ({on}))",
    lambda on, where: f"stays s LEFT JOIN patients p ON {on} WHERE {where}",
    lambda on, where: f"stays s JOIN patients p ON TRUE OR ({on}) WHERE {where} OR {on}",
    lambda on, where: f"stays s, LATERAL (SELECT * FROM patients p WHERE {on}) p WHERE {where}",
    lambda on, where: f"(stays s JOIN patients p ON {on}) WHERE {where}",
)


@given(
    on=st.lists(st.sampled_from(list(CONJUNCTS)), min_size=1, max_size=2),
    where=st.lists(st.sampled_from(list(CONJUNCTS)), min_size=1, max_size=2),
    shape=st.sampled_from(range(len(FROMS))),
)
def test_nothing_is_answered_unless_the_whole_unit_is_equated(on: list[str], where: list[str], shape: int) -> None:
    text = FROMS[shape](" AND ".join(on), " AND ".join(where))
    said = (*on, *where) if shape < 4 else on if shape == 4 else ()
    equated = any(CONJUNCTS[part] for part in said)
    try:
        (made,) = _plans(f"SELECT s.ward FROM {text} GROUP BY s.ward HAVING count(*) > 100")
    except KeyholeError:
        return
    assert equated
    assert made.question.table.unit == ("patient_id",)
    assert "m0.keyhole_u0 = m1.keyhole_u0" in made.rewritten.sql


def test_of_a_unit_of_two_columns_each_is_equated_with_its_own() -> None:
    stays = replace(STAYS, unit=("patient_id", "stay_id"))
    patients = replace(PATIENTS, unit=("patient_id", "weight"), root=stays.ledger_root)
    catalog = replace(people(), tables=(stays, patients))
    text = "SELECT sex FROM stays s JOIN patients p ON {} GROUP BY sex HAVING count(*) > 100"
    _plans(text.format("s.patient_id = p.patient_id AND s.stay_id = p.weight"), catalog)
    for crossed in (
        "s.patient_id = p.patient_id",
        "s.patient_id = p.weight AND s.stay_id = p.patient_id",
        "s.patient_id = p.patient_id AND s.stay_id = p.patient_id",
        "s.stay_id = p.weight",
    ):
        with pytest.raises(KeyholeError, match="whole privacy unit"):
            _plans(text.format(crossed), catalog)


def test_tables_that_are_joined_with_one_another_and_not_with_the_first_are_refused() -> None:
    with pytest.raises(KeyholeError, match="whole privacy unit"):
        _plans(
            "SELECT s.ward FROM stays s, patients p JOIN labs ON person = p.patient_id GROUP BY 1 HAVING count(*) > 9"
        )


@in_turn("join", ["LEFT JOIN patients p ON p.patient_id = s.patient_id", "LEFT JOIN patients p USING (patient_id)"])
def test_a_left_join_on_the_unit_says_who_is_counted_by_an_inner_one(join: str) -> None:
    """The unit is equated in full, so that a hint to equate it would lead nowhere."""
    with pytest.raises(KeyholeError, match="LEFT JOIN of private tables") as refused:
        _plans(f"SELECT s.ward FROM stays s {join} GROUP BY s.ward HAVING count(*) > 100")
    assert (refused.value.hint or "").startswith("Write JOIN, which counts the units with rows in both.")


def test_no_table_of_a_join_may_keep_some_rows_of_a_group() -> None:
    for capped in ("stays", "patients"):
        cap = RowCap(rows=2, unique="stay_id" if capped == "stays" else "weight")
        tables = tuple(replace(t, row_cap=cap) if t.name == capped else t for t in people().tables)
        with pytest.raises(KeyholeError, match="KH107") as refused:
            _plans(JOINED.format("s.ward", "s.ward"), replace(people(), tables=tables))
        assert capped in str(refused.value)


def test_one_question_however_its_tables_are_listed() -> None:
    found = {
        _planned(f"SELECT year FROM {', '.join(order)} WHERE {both} GROUP BY year HAVING count(*) > 9").fingerprint
        for order in permutations(("stays s", "patients p", "labs l"))
        for both in (
            "s.patient_id = p.patient_id AND l.person = p.patient_id",
            "l.person = s.patient_id AND p.patient_id = s.patient_id",
        )
    }
    assert len(found) == 1


CHANGES: dict[str, Callable[[Table], Table]] = {
    "relation": lambda table: replace(table, relation="other"),
    "rows": lambda table: replace(table, rows_per_unit=7),
    "groups": lambda table: replace(table, groups_per_unit=1),
    "seed": lambda table: replace(table, seed="other"),
    "joined rows": lambda table: replace(table, joined_rows=7),
    "refresh": lambda table: replace(table, refresh="hourly"),
}


@in_turn("changed", CHANGES)
@in_turn("table", ["stays", "patients"])
def test_another_table_of_the_join_is_another_question(table: str, changed: str) -> None:
    sql = JOINED.format("sex, s.ward", "sex, s.ward")
    tables = tuple(CHANGES[changed](t) if t.name == table else t for t in people().tables)
    assert _planned(sql).fingerprint != _planned(sql, replace(people(), tables=tables)).fingerprint


def test_every_column_has_one_name_and_the_units_are_one() -> None:
    for several in (*combinations((STAYS, PATIENTS, LABS), 2), (STAYS, PATIENTS, LABS)):
        joined = join_on_unit(several)
        names = [column.name for column in joined.columns]
        assert len(names) == len(set(names)) == 1 + sum(len(table.columns) - 1 for table in several)
        for member in joined.members:
            for stored, named in member.columns:
                assert joined.get_column(named).sql_type is member.table.get_column(stored).sql_type
            assert {dict(member.columns)[name] for name in member.table.unit} == set(joined.unit)


def test_a_repeated_total_may_be_as_large_as_the_join_makes_it() -> None:
    joined = join_on_unit((STAYS, PATIENTS))
    assert joined.get_column("cost").per_unit == (Decimal(0), Decimal(2000))
    assert joined.get_column("weight").per_unit == (Decimal(0), Decimal(6000))
    assert joined.rows_per_unit == 40


SHARES: list[tuple[list[int | None], list[int]]] = [
    ([None, None], [1000, 1000]),
    ([None, None, None], [100, 100, 100]),
    ([None] * 7, [10] * 7),
    ([1, None], [1, 1_000_000]),
    ([None, 1, None], [1000, 1, 1000]),
    ([20_000, None, 5_000], [20_000, 10, 5_000]),
    ([20_000, 5_000], [20_000, 5_000]),
]


@in_turn(("declared", "read"), SHARES)
def test_the_rows_that_are_joined_multiply_to_a_million_unless_the_owner_wants_more(
    declared: list[int | None], read: list[int]
) -> None:
    tables = [
        replace(STAYS, name=f"t{i}", joined_rows=rows, root=PATIENTS.root or STAYS.ledger_root)
        for i, rows in enumerate(declared)
    ]
    assert [member.rows for member in join_on_unit(tables).members] == read


def _claimed(sql: str) -> tuple[str, str, tuple[str, ...], str]:
    catalog = people()
    made = _planned(sql)
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    asked = Asked(question=statement.questions[0], settings={}, parameters={}, analyst=OWNER, today=TODAY)
    family = make_claim(made, catalog, asked=asked, version="1").charge.family
    return family.table, family.unit, family.columns, family.filter


def test_a_join_spends_from_all_cells_of_the_tables() -> None:
    """Rows of any cell of one table decide in which groups rows of the other count."""
    alone = "SELECT {0} FROM {1} GROUP BY {0} HAVING count(*) > 100"
    for key, table, written in (
        ("ward", "stays", "s.ward"),
        ("day", "stays", "day"),
        ("sex", "patients", "sex"),
        ("ward", "patients", "p.ward"),
    ):
        assert _claimed(alone.format(key, table)) != _claimed(JOINED.format(written, written))
        assert _claimed(JOINED.format(written, written)) == ("stays", "patient_id", (), "")
    assert _claimed(alone.format("year", "patients"))[:2] == ("stays", "patient_id")


def test_public_columns_of_joined_tables_spare_no_cell() -> None:
    looked_up = "JOIN wards w ON w.name = {0}.ward GROUP BY floor HAVING count(*) > 100"
    joined = "SELECT floor FROM stays s JOIN patients p USING (patient_id) " + looked_up
    for member in ("s", "p"):
        assert _claimed(joined.format(member)) == ("stays", "patient_id", (), "")


def test_a_unit_is_in_the_groups_of_the_tables_that_own_the_keys() -> None:
    stays, patients = replace(STAYS, groups_per_unit=3), replace(PATIENTS, groups_per_unit=1)
    catalog = replace(people(), tables=(stays, patients))
    for keys, groups in (("s.ward", 3), ("sex", 1), ("sex, s.ward", 3), ("p.ward, s.ward", 3)):
        assert count_unit_groups(_planned(JOINED.format(keys, keys), catalog).question) == groups


def test_a_joined_version_is_that_of_all_tables() -> None:
    now, later = datetime(2026, 1, 1, 10, 30, tzinfo=UTC), datetime(2026, 1, 1, 11, 30, tzinfo=UTC)
    hourly = replace(PATIENTS, refresh="hourly")
    for tables in ((STAYS, hourly), (hourly, STAYS)):
        joined = join_on_unit(tables)
        version = find_data_version(joined, now=now, pins=Pins())
        assert version == "patients 2026-01-01 10:00, stays static"
        assert find_data_version(joined, now=later, pins=Pins()) != version
    for live in ((replace(STAYS, refresh="live"), hourly), (STAYS, replace(hourly, refresh="live"))):
        joined = join_on_unit(live)
        assert find_data_version(joined, now=now, pins=Pins()) != find_data_version(joined, now=now, pins=Pins())
        assert joined.refresh == "live"
    explicit = join_on_unit((STAYS, replace(PATIENTS, refresh="explicit")))
    with pytest.raises(KeyholeError, match="KH007"):
        find_data_version(explicit, now=now, pins=Pins())
    one = find_data_version(explicit, now=now, pins=Pins().mark_refreshed("patients", at=now))
    assert one != find_data_version(explicit, now=now, pins=Pins().mark_refreshed("patients", at=later))


def test_a_unit_column_is_a_key_where_its_values_are_declared_once() -> None:
    stays, patients = (
        replace(table, columns=tuple(replace(c, domain=domain) if c.name == "patient_id" else c for c in table.columns))
        for table, domain in ((STAYS, None), (PATIENTS, (1, 2)))
    )
    assert join_on_unit((stays, patients)).get_column("patient_id").domain == (1, 2)
    twice = replace(
        stays, columns=tuple(replace(c, domain=(1, 3)) if c.name == "patient_id" else c for c in stays.columns)
    )
    assert join_on_unit((twice, patients)).get_column("patient_id").domain is None
    assert join_on_unit((twice, patients)).get_column("patient_id").sql_type is SqlType.INTEGER


def _refuse(sql: str, catalog: Catalog | None = None) -> KeyholeError:
    with pytest.raises(KeyholeError) as refused:
        _plans(sql, catalog)
    return refused.value


@pytest.mark.parametrize(
    ("sql", "hint", "qualified"),
    [
        (
            "SELECT sex FROM stays GROUP BY sex HAVING count(*) > 100",
            "sex lies in patients: add JOIN patients USING (patient_id) after stays. Both have ward: write stays.ward.",
            "sex",
        ),
        (
            "SELECT ward FROM stays s WHERE sex = 'f' GROUP BY ward HAVING count(*) > 100",
            "sex lies in patients: add JOIN patients USING (patient_id) after s. Both have ward: write s.ward.",
            "s.ward",
        ),
        (
            "SELECT ward FROM stays s GROUP BY ward HAVING sum(weight) > 9000",
            "weight lies in patients: add JOIN patients USING (patient_id) after s. Both have ward: write s.ward.",
            "s.ward",
        ),
        (
            "SELECT kind FROM stays GROUP BY kind HAVING count(*) > 100",
            "kind lies in labs: add JOIN labs ON stays.patient_id = labs.person after stays.",
            "kind",
        ),
    ],
)
def test_a_column_of_another_table_gets_a_hint_of_the_join_that_answers(sql: str, hint: str, qualified: str) -> None:
    refused = _refuse(sql)
    assert (refused.code, refused.hint) == ("KH201", hint)
    found = re.search(r"add (JOIN .*) after (\w+)\.", hint)
    assert found
    written = re.sub(r"FROM stays( s)?", lambda of: f"{of[0]} {found[1]}", sql)
    (made,) = _plans(re.sub(r"\bward\b", qualified, written) if "ward" in qualified else written)
    assert [member.table.name for member in made.question.table.members] == ["stays", found[1].split()[1]]


def test_using_names_the_table_that_lacks_the_column() -> None:
    missing = (
        ("sex", "patients USING (sex)", '"stays"'),
        ("kind", "patients USING (patient_id) JOIN labs USING (kind)", '"stays" or "patients"'),
    )
    for column, joined, tables in missing:
        refused = _refuse(f"SELECT s.ward FROM stays s JOIN {joined} GROUP BY s.ward HAVING count(*) > 9")
        assert f'column "{column}" in USING is not exposed by table {tables}' in str(refused)


def test_no_join_is_offered_that_the_policy_does_not_let_answer() -> None:
    assert _refuse("SELECT sex FROM capped GROUP BY sex HAVING count(*) > 100").hint is None
    without = replace(people(), tables=tuple(table for table in people().tables if table.name != "patients"))
    assert _refuse("SELECT sex FROM stays GROUP BY sex HAVING count(*) > 100", without).hint is None
    assert _refuse("SELECT wart FROM stays GROUP BY wart HAVING count(*) > 100").hint == "Perhaps you meant ward."
