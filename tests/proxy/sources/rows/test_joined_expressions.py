"""Expressions over columns of two private tables, joined on their unit: groups are those that PostgreSQL counts, and
one person moves no sum by more than is said."""

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

import duckdb
import numpy as np
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.question.unit_groups import count_unit_groups
from tests.effort import examples
from tests.planner.asked import asked_once, written_once
from tests.proxy.sources.unit_paths.shop import compiled, name_plainly
from tests.proxy.sources.worlds import Engines, spelled
from tests.worlds.policies import VERIFIER

Rows: TypeAlias = Mapping[str, Sequence[tuple[Any, ...]]]

TYPES: Mapping[str, Mapping[str, str]] = {
    "people": {"person": "integer", "born": "date", "weight": "double precision", "height": "numeric(4,2)"},
    "doses": {"person": "integer", "ward": "integer", "came": "timestamp", "dose": "integer"},
}
POLICY = f"""\
[source]
url = "duckdb:///clinic.duckdb"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 4

[tables.people]
privacy_unit = "person"
refresh = "static"
max_groups_per_unit = 1
rows_per_unit = 2

[tables.people.columns]
born = {{}}
weight = {{}}
height = {{}}

[tables.doses]
privacy_unit = "person"
same_unit_as = "people"
refresh = "static"
max_groups_per_unit = 3
rows_per_unit = 4

[tables.doses.columns]
ward = {{ key = {{ range = [1, 3] }} }}
came = {{}}
dose = {{}}

[analysts.ada]
password = "{VERIFIER}"
"""
WHERE = (
    "extract(year FROM age(s.came, p.born)) >= 65",
    "s.came > p.born + interval '18 years'",
    "s.came::date - p.born BETWEEN 0 AND 400",
    "s.came < date_trunc('month', p.born) + interval '1 month'",
    "extract(year FROM s.came) - extract(year FROM p.born) >= 2",
    "s.dose > 0.5 * p.weight",
    "s.dose / nullif(p.height, 0) > 20 AND p.born IS NOT NULL",
    "s.dose * p.height <= 35.5 OR s.came::time < '12:00'",
    "CASE WHEN s.dose > p.weight THEN 1 ELSE 0 END = 0",
    "coalesce(s.dose, p.height) >= 2",
)
FOUND: Mapping[str, tuple[Any, ...]] = {
    "person": (1, 1, 2, 2, 3, None),
    "born": (date(1950, 1, 31), date(1960, 2, 29), date(2024, 1, 31), date(2025, 12, 31), date(1, 1, 1), None),
    "weight": (0.0, 10.0, 60.5, 71.25, None),
    "height": (Decimal("0.00"), Decimal("1.75"), Decimal("2.00"), None),
    "ward": (1, 1, 2, 3, None),
    "came": (
        *(datetime(2025, 2, 28, 23, 59), datetime(2025, 1, 31), datetime(2026, 1, 1), datetime(1969, 12, 31, 6)),
        *(datetime(2024, 1, 31, 12), datetime(9999, 12, 31, 23), None),
    ),
    "dose": (0, 1, 20, 36, 2**31 - 1, None),
}


def clinic() -> Catalog:
    """The catalog of the clinic."""
    return name_plainly(compiled(POLICY, TYPES))


CLINIC = clinic()


def clinics() -> st.SearchStrategy[dict[str, list[tuple[Any, ...]]]]:
    """Few people with one row or two, each with no more visits than are counted."""
    rows = {name: st.tuples(*(st.sampled_from(FOUND[one]) for one in types)) for name, types in TYPES.items()}
    drawn = st.fixed_dictionaries({name: st.lists(row, min_size=3, max_size=12) for name, row in rows.items()})
    return drawn.map(lambda found: {"people": _first(found["people"], 2), "doses": _first(found["doses"], 2)})


def _first(rows: Sequence[tuple[Any, ...]], most: int) -> list[tuple[Any, ...]]:
    """The first rows of each person."""
    return [row for i, row in enumerate(rows) if sum(one[0] == row[0] for one in rows[:i]) < most]


def load_sql(rows: Rows) -> list[str]:
    """The statements that make both tables."""
    made = []
    for name, types in TYPES.items():
        columns = ", ".join(f"{column} {kind}" for column, kind in types.items())
        values = ", ".join(f"({', '.join(map(spelled, row, types.values()))})" for row in rows[name])
        made += [f"DROP TABLE IF EXISTS {name}", f"CREATE TABLE {name} ({columns})"]
        made += [f"INSERT INTO {name} VALUES {values}"] if values else []
    return made


@examples(160, quick=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=clinics(), person=st.sampled_from((1, 2, 3)))
def test_conditions_over_two_tables_are_those_of_postgresql(
    engines: Engines, rows: dict[str, list[tuple[Any, ...]]], person: int
) -> None:
    """Both engines count what PostgreSQL counts. Without a person only that person's joined rows are gone."""
    joined = "FROM doses s JOIN people p ON s.person = p.person WHERE"
    asks = [(f"SELECT ward {joined} {one} GROUP BY ward HAVING count(*) > 4", one) for one in WHERE]
    worlds = []
    with duckdb.connect() as duck:
        for world in (rows, {name: [row for row in found if row[0] != person] for name, found in rows.items()}):
            for statement in load_sql(world):
                duck.execute(statement)
            engines.writer.execute("; ".join(load_sql(world)).encode())
            answers = []
            for sql, condition in asks:
                question = asked_once(sql, CLINIC)
                truth = f"SELECT ward, count(*) {joined} ({condition}) AND ward IS NOT NULL GROUP BY ward"
                expected = dict(engines.writer.execute(truth.encode()).fetchall())
                ours = duck.execute(written_once(question, DUCKDB)).fetchall()
                assert {group: count for group, count in ours if count} == expected, condition
                ours = engines.writer.execute(written_once(question, POSTGRES).encode()).fetchall()
                assert {group: count for group, count in ours if count} == expected, condition
                answers.append(expected)
            worlds.append(answers)
    for (sql, _), before, after in zip(asks, *worlds, strict=True):
        question = asked_once(sql, CLINIC)
        moved = [group for group in before.keys() | after.keys() if before.get(group, 0) != after.get(group, 0)]
        assert len(moved) <= count_unit_groups(question)
        most = question.functionals[0].sensitivity
        assert all(0 <= before.get(one, 0) - after.get(one, 0) <= most for one in moved)


SUMS = (
    "avg(extract(year FROM age(s.came, p.born))) > 60",
    "avg(s.dose - p.weight) > 5",
    "avg(s.came - p.born) > interval '30 days'",
    "sum(s.dose * p.height) FILTER (WHERE s.dose BETWEEN 0 AND 50 AND p.height BETWEEN 0 AND 3) > 60",
)


@examples(160, quick=12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rows=clinics(), person=st.sampled_from((1, 2, 3)))
def test_one_person_moves_sums_over_two_tables_by_their_sensitivity(
    engines: Engines, rows: dict[str, list[tuple[Any, ...]]], person: int
) -> None:
    questions = [asked_once(f"SELECT ward FROM doses s JOIN people p USING (person) GROUP BY 1 HAVING {one}", CLINIC)
                 for one in SUMS]  # fmt: skip
    worlds = []
    with duckdb.connect() as duck:
        for world in (rows, {name: [row for row in found if row[0] != person] for name, found in rows.items()}):
            for statement in load_sql(world):
                duck.execute(statement)
            engines.writer.execute("; ".join(load_sql(world)).encode())
            answers = []
            for question in questions:
                ours = duck.execute(written_once(question, DUCKDB)).fetchall()
                theirs = engines.writer.execute(written_once(question, POSTGRES).encode()).fetchall()
                assert sorted(ours) == sorted(theirs)
                answers.append({key: np.array(values, dtype=object) for key, *values in ours})
            worlds.append(answers)
    for question, before, after in zip(questions, *worlds, strict=True):
        none = np.array([0] * len(question.functionals), dtype=object)
        limits = np.array([one.sensitivity for one in question.functionals], dtype=object)
        for key in before.keys() | after.keys():
            moved = abs(before.get(key, none) - after.get(key, none))
            assert all(moved <= limits), (key, moved, limits)
