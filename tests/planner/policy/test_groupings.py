"""`groupings` in a policy: what is read, what is refused, and what is warned of."""

from decimal import Decimal

import pytest

from planner.catalog.catalog import CutRows, Grouping
from planner.errors import KeyholeError
from planner.policy.rules.document import describe_warnings
from tests.in_turn import in_turn
from tests.worlds.policies import BASE, changed, compiled, parsed

PLACE = "[tables.visits.columns.ward]"


def _with(*lines: str, text: str = BASE) -> str:
    return changed((PLACE, "\n".join(("[tables.visits.groupings]", *lines, "", PLACE))), text=text)


def test_groupings_are_read_by_their_keys() -> None:
    (table,) = compiled(
        _with(
            "month = { max_groups = 12 }",
            '"ward, disease" = { max_groups = 2, rows = 5, per_unit = { cost = [0, 400] } }',
        )
    ).tables
    assert table.groupings == (
        Grouping(("month",), 12, None, ()),
        Grouping(("ward", "disease"), 2, 5, (("cost", (Decimal(0), Decimal(400))),)),
    )
    assert table.groups_per_unit == 3


def test_bounds_of_other_keys_leave_a_catalogs_identity() -> None:
    """What was answered and paid for is there when the owner adds bounds for other keys."""
    before, after = compiled(), compiled(_with("month = { max_groups = 12 }"))
    assert before.digest == after.digest


def test_expressions_stand_beside_keys() -> None:
    """A comma inside of parentheses or a text parts nothing."""
    named = '''"width_bucket(cost, 0, 400, 4), ward, note = 'a, b'"'''
    (table,) = compiled(_with(f"{named} = {{ max_groups = 3 }}")).tables
    computed = ("width_bucket(cost, 0, 400, 4)", "note = 'a, b'")
    assert table.groupings == (Grouping(("ward",), 3, None, (), computed),)


def test_what_an_owner_tells_of_cut_rows_is_read_and_changes_no_answer() -> None:
    told = 'cut_rows = { ward = "12%", "ward, month" = "7.5 %" }'
    text = changed(("rows_per_unit = 20", f"rows_per_unit = 20\n{told}"))
    (table,) = compiled(text).tables
    assert table.cut_rows == (CutRows(("ward",), "12 %"), CutRows(("ward", "month"), "7.5 %"))
    assert compiled(text).digest == compiled().digest


@pytest.mark.parametrize(
    ("told", "code", "message"),
    [
        ('{ age = "5 %" }', "KH005", 'cut_rows.age = "5 %": names "age", which is not a key of the table'),
        ('{ "ward, month" = "5 %", "month, ward" = "6 %" }', "KH005", 'names the same keys as "ward, month"'),
        ('{ ward = "101 %" }', "KH002", "a share with at most one digit after the point is expected"),
        ("{ ward = 5 }", "KH002", "a share with at most one digit after the point is expected"),
    ],
)
def test_a_share_that_says_nothing_of_the_table_is_refused(told: str, code: str, message: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        parsed(changed(("rows_per_unit = 20", f"rows_per_unit = 20\ncut_rows = {told}")))
    assert refused.value.code == code
    assert message in refused.value.message


REFUSED = [
    ("age = { max_groups = 2 }", "KH005", 'groupings.age: names "age", which is not a key of the table'),
    ('"ward, wrd" = { max_groups = 2 }', "KH005", 'names "wrd", which is not a key of the table'),
    ('"ward, ward" = { max_groups = 2 }', "KH005", "names a key twice"),
    ('"ward, month" = { rows = 2 }\n"month, ward" = { rows = 3 }', "KH005", 'names the same keys as "ward, month"'),
    ("ward = {}", "KH005", "bounds nothing"),
    ("ward = { max_groups = 0 }", "KH002", "max_groups"),
    ("ward = { groups = 2 }", "KH002", "groupings.ward.groups = 2: is not a key of the policy"),
    ("ward = { per_unit = { month = [0, 5] } }", "KH004", "per_unit.month = [0, 5]: is not a measure of the table"),
    ("ward = { per_unit = { cost = [5, 9] } }", "KH004", "per_unit.cost = [5, 9]: does not contain 0"),
    ("ward = { per_unit = { cost = [0, 0.005] } }", "KH004", "the ends are not on the grid"),
    (
        "ward = { max_groups = 2000000000, per_unit = { cost = [0, 90000000] } }",
        "KH004",
        "spans more than 2^53 steps",
    ),
    ("ward = { max_groups = 2000000000, rows = 2000000000 }", "KH004", "does not fit into 2^62 steps"),
]


@in_turn(("line", "code", "message"), REFUSED)
def test_what_bounds_nothing_of_the_table_is_refused(line: str, code: str, message: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        parsed(_with(line))
    assert (refused.value.code, message in refused.value.message) == (code, True), refused.value.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('privacy_unit = "patient_id"\nmax_groups_per_unit = 3\nrows_per_unit = 20', 'privacy_unit = "row"'), "row"),
        (("rows_per_unit = 20", 'max_rows_per_group = { rows = 5, unique = "id" }'), "clips no totals"),
    ],
)
def test_groupings_bound_as_the_table_does(change: tuple[str, str], message: str) -> None:
    text = _with("ward = { per_unit = { cost = [0, 500] } }", text=changed(change))
    for line in ("per_unit = [0, 2200]\n", "per_unit = [0, 8000]\n"):
        text = changed((line, ""), text=text)
    with pytest.raises(KeyholeError) as refused:
        parsed(text)
    assert message in f"{refused.value.message} {refused.value.hint}"


def test_bounds_that_cannot_be_reached_are_a_doubt() -> None:
    lines = "ward = { max_groups = 9, rows = 3 }", '"ward, month" = { max_groups = 4, rows = 7 }'
    said = [one for one in describe_warnings(parsed(_with(*lines))) if "groupings" in one]
    assert len(said) == 2
    assert 'is in 9 groups by "ward", and in no more than 4 by "ward, month"' in said[0]
    assert 'has 7 rows in a group by "ward, month", and no more than 3' in said[1]
    assert not describe_warnings(
        parsed(_with("ward = { max_groups = 2, rows = 9 }", '"ward, month" = { max_groups = 4 }'))
    )
