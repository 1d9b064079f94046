"""Lists of rows of one key within a unit: which equalities name the key by which rows find their unit."""

import pytest

from planner.errors import KeyholeError
from planner.plan.question_identity import find_fingerprint
from tests.in_turn import in_turn
from tests.planner.asked import asked
from tests.proxy.sources.unit_paths.shop import compiled
from tests.worlds.policies import VERIFIER

TYPES = {
    "visits": {"clinic": "integer", "visit": "bigint", "person": "integer", "month": "integer", "room": "text"},
    "tests": {"t_clinic": "integer", "t_visit": "bigint", "kind": "integer", "small": "integer", "at": "text"},
    "parts": {"p_clinic": "integer", "p_visit": "bigint", "part": "integer"},
}
CLINIC = compiled(
    f"""\
[source]
url = "duckdb:///clinic.duckdb"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8
epsilon_per_query = 4

[tables.visits]
privacy_unit = "person"
refresh = "static"
unique = ["clinic", "visit"]
max_groups_per_unit = 3
rows_per_unit = 9

[tables.visits.columns]
clinic = {{}}
visit = {{}}
room = {{}}
month = {{ key = {{ range = [1, 3] }} }}

[tables.tests]
privacy_unit = {{ through = ["visits.clinic", "visits.visit"], by = ["t_clinic", "t_visit"] }}
refresh = "static"
max_groups_per_unit = 3
rows_per_unit = 9

[tables.tests.columns]
t_clinic = {{}}
t_visit = {{}}
at = {{}}
small = {{}}
kind = {{ key = {{ range = [1, 3] }} }}

[tables.parts]
privacy_unit = {{ through = ["visits.clinic", "visits.visit"], by = ["p_clinic", "p_visit"] }}
refresh = "static"
max_groups_per_unit = 3
rows_per_unit = 9

[tables.parts.columns]
p_clinic = {{}}
p_visit = {{}}
part = {{ key = {{ range = [1, 3] }} }}

[analysts.ada]
password = "{VERIFIER}"
""",
    TYPES,
)
_VISITS = "SELECT month FROM visits v WHERE {} GROUP BY month HAVING count(*) > 4"
_TESTS = "SELECT kind FROM tests t WHERE {} GROUP BY kind HAVING count(*) > 4"


@in_turn(
    "sql, conditions",
    [
        (
            _VISITS,
            (
                "EXISTS (SELECT 1 FROM tests WHERE t_clinic = clinic AND t_visit = visit AND kind = 1)",
                "(clinic, visit) IN (SELECT t_clinic, t_visit FROM tests WHERE kind = 1)",
                "visit = ANY (SELECT t_visit FROM tests x WHERE v.clinic = x.t_clinic AND kind IN (1))",
                "(visit, clinic) IN (SELECT t_visit, t_clinic FROM tests WHERE kind = 1 GROUP BY 1, 2)",
            ),
        ),
        (
            _TESTS,
            (
                "EXISTS (SELECT 1 FROM visits WHERE clinic = t_clinic AND visit = t_visit AND month = 1)",
                "(t_visit, t_clinic) IN (SELECT visit, clinic FROM visits WHERE month = 1)",
                "t_visit = ANY (SELECT visit FROM visits v WHERE t.t_clinic = v.clinic AND month IN (1))",
            ),
        ),
        (
            _TESTS,
            (
                "EXISTS (SELECT 1 FROM tests x WHERE x.t_clinic = t.t_clinic AND t.t_visit = x.t_visit"
                " AND x.kind > t.kind)",
                "(t_clinic, t_visit) IN (SELECT x.t_clinic, x.t_visit FROM tests x WHERE t.kind < x.kind)",
            ),
        ),
        (
            _TESTS,
            (
                "EXISTS (SELECT 1 FROM tests x WHERE x.t_clinic = t.t_clinic AND t.t_visit = x.t_visit"
                " AND x.kind <= t.kind)",
                "(t_clinic, t_visit) IN (SELECT x.t_clinic, x.t_visit FROM tests x WHERE t.kind >= x.kind)",
            ),
        ),
    ],
)
def test_a_list_of_keys_is_what_it_says_however_it_is_spelled(sql: str, conditions: tuple[str, ...]) -> None:
    found = [asked(sql.format(where), catalog=CLINIC) for where in conditions]
    assert all(len(one.table.unit_lists) == 1 and len(one.table.unit_lists[0].key_columns) == 2 for one in found)
    assert len(set(map(find_fingerprint, found))) == 1


def test_other_comparisons_and_tables_are_other_lists() -> None:
    of_tests = "EXISTS (SELECT 1 FROM tests x WHERE x.t_clinic = t.t_clinic AND x.t_visit = t.t_visit AND {})"
    of_parts = "EXISTS (SELECT 1 FROM parts WHERE p_clinic = t_clinic AND p_visit = t_visit)"
    conditions = (*(of_tests.format(f"x.kind {one} t.kind") for one in ("<", "<=", ">", ">=", "<>")), of_parts)
    found = [asked(_TESTS.format(where), catalog=CLINIC) for where in conditions]
    assert len(set(map(find_fingerprint, found))) == len(conditions)


@in_turn(
    "sql, where",
    [
        (_VISITS, "EXISTS (SELECT 1 FROM tests WHERE t_visit = visit)"),
        (_VISITS, "visit IN (SELECT t_visit FROM tests)"),
        (_VISITS, "(visit, clinic) IN (SELECT t_clinic, t_visit FROM tests)"),
        (_VISITS, "EXISTS (SELECT 1 FROM tests WHERE t_clinic = clinic AND t_visit = visit AND kind = v.month)"),
        (_VISITS, "EXISTS (SELECT 1 FROM tests WHERE t_clinic = clinic AND t_visit = visit AND at = room)"),
        (_VISITS, "EXISTS (SELECT 1 FROM tests WHERE small = clinic AND t_visit = visit)"),
        (_TESTS, "EXISTS (SELECT 1 FROM tests x WHERE x.t_visit = t.t_visit AND x.kind > t.kind)"),
        (_TESTS, "EXISTS (SELECT 1 FROM parts WHERE p_clinic = small AND p_visit = t_visit)"),
    ],
)
def test_what_names_less_than_the_key_or_more_is_refused(sql: str, where: str) -> None:
    """Rows of another unit can have the same values there, so that one unit's rows would decide about another's."""
    with pytest.raises(KeyholeError) as refused:
        asked(sql.format(where), catalog=CLINIC)
    assert refused.value.code == "KH107", refused.value
    assert "does not list privacy units by exactly their columns" in refused.value.message
