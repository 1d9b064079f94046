"""`keyhole check --measure`: exact shares of what a policy leaves out, on both engines, marked as the owner's."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from proxy.cli.check import check
from proxy.owner.measure import WARNING, TableLeftOut, measure
from tests.worlds.house import new_database

# Of 20 households each is in all of five weeks with two rows of 10 in each; 5 in a second store, once, with 90.
STATEMENTS = (
    "CREATE TABLE baskets (household integer, bought date, store text, amount double precision)",
    "INSERT INTO baskets SELECT g, DATE '2026-01-05' + (7 * w)::integer, 's' || (g % 2), 10"
    " FROM generate_series(1, 20) AS s(g), generate_series(0, 4) AS t(w), generate_series(1, 2) AS r(i)",
    "INSERT INTO baskets SELECT g, DATE '2026-01-05', 's' || ((g + 1) % 2), 90 FROM generate_series(1, 5) AS s(g)",
    "INSERT INTO baskets SELECT NULL, DATE '2026-01-05', 's0', 10 FROM generate_series(1, 15) AS s(g)",
    "INSERT INTO baskets SELECT 99, DATE '2026-01-05', CASE WHEN g < 4 THEN 'new' END, 'NaN' FROM"
    " generate_series(1, 5) AS s(g)",
    "CREATE TABLE visits AS SELECT household, store FROM baskets",
    "CREATE TABLE calls AS SELECT household, store FROM baskets",
)
POLICY = """\
[source]
url = "{source}"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 40
epsilon_per_query = 4

[tables.baskets]
privacy_unit = "household"
refresh = "explicit"
max_groups_per_unit = 2
{bounding}

[tables.baskets.columns.week]
expression = "date_trunc('week', bought)"
key = {{ range = ["2026-01-05", "2026-02-02"], step = "7 days" }}

[tables.baskets.columns.store]
key = {{ values = ["s0", "s1"] }}

[tables.baskets.columns.amount]
bounds = [0, 50]
grid = 1
{per_unit}
"""


@pytest.fixture(params=["duckdb", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "duckdb":
        with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
            for statement in STATEMENTS:
                connection.execute(statement)
        yield "duckdb:///grocer.duckdb"
        return
    with new_database(request.getfixturevalue("postgres_url")) as url:
        with psycopg.connect(url) as owner:
            for statement in STATEMENTS:
                owner.execute(statement.encode())
        yield url


def _measured(directory: Path, source: str, *, bounding: str, per_unit: str = "") -> TableLeftOut:
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(source=source, bounding=bounding, per_unit=per_unit), encoding="utf-8")
    (found,) = measure(path, check(path, confirm=False).pinning.catalog)
    return found


def test_shares_are_exact(source: str, tmp_path: Path) -> None:
    found = _measured(tmp_path, source, bounding="rows_per_unit = 1", per_unit="per_unit = [0, 15]")
    assert (found.rows, found.rows_without_unit) == (225, 15)
    (outside,) = found.outside
    assert (outside.name, outside.rows, outside.values) == ("store", 5, (("new", 3), (None, 2)))
    (amounts,) = found.clipped
    assert (amounts.values, amounts.below, amounts.above) == (220, 0, 5)
    assert amounts.total.left_out == pytest.approx((90 - 50) * 5 / (215 * 10 + 5 * 90))
    stores, weeks, whole = found.groupings
    # 21 units: the household without a store is in one week. Of five weeks two count, of two rows one.
    assert (weeks.keys, weeks.groups_per_unit, weeks.units, weeks.units_cut) == (("week",), 2, 21, 20)
    assert weeks.mean_groups == pytest.approx(101 / 21)
    assert weeks.most_groups == 5
    assert weeks.memberships.left_out == pytest.approx(60 / 101)
    assert weeks.rows.left_out == pytest.approx(1 - (100 * 0.4 + 1) / 210)
    ((_, total),) = weeks.totals
    assert total.left_out == pytest.approx(1 - 100 * 15 * 0.4 / (200 * 10 + 5 * 50))
    # The first week has 40 rows, 5 of a second store and 5 of the household without a store, of which one counts.
    assert weeks.most_cut_groups[0].key[0].startswith("2026-01-05")
    assert weeks.most_cut_groups[0].rows.left_out == pytest.approx(1 - (20 * 0.4 + 1) / 50)
    assert weeks.most_cut_groups[1].rows.left_out == pytest.approx(0.8)
    assert weeks.most_cut_groups[1].units.left_out == pytest.approx(0.6)
    assert (weeks.possible, weeks.groups, weeks.groups_past_tenth, weeks.groups_past_half) == (5, 5, 5, 5)
    # Both stores of a household count: nothing of its groups is cut.
    assert (stores.units, stores.units_cut, stores.memberships.left_out) == (20, 0, 0.0)
    # But each has more than one row there, and the household without a store ten in its week: a bound cuts them all.
    assert (weeks.units_above_a_bound, stores.units_above_a_bound) == (21, 20)
    assert stores.rows.left_out == pytest.approx(1 - 25 / 205)
    # Without keys one row and a total of 15 of each household count; the one without a store is there, without amounts.
    assert (whole.keys, whole.units, whole.groups, whole.memberships.left_out) == ((), 21, 1, 0.0)
    assert whole.rows.left_out == pytest.approx(1 - 21 / 210)
    ((_, total),) = whole.totals
    assert total.left_out == pytest.approx(1 - 20 * 15 / (200 * 10 + 5 * 50))
    lines = list(found.write_lines())
    at = lines.index("  of questions without keys, for which all rows of one (household) are in one group:")
    assert lines[at + 3] == "    left out are 90.0 % of rows, 86.7 % of the total of amount"
    assert "cut_rows" not in "".join(lines[at:])


def test_values_that_questions_read_as_null_are_counted(source: str, tmp_path: Path) -> None:
    far = "INSERT INTO baskets VALUES (1, 'infinity', 's0', 7), (1, DATE '9999-12-31' + 1, 's0', 7), (1, NULL, 's0', 7)"
    lost = [("week", "date", 2)]
    if source.startswith("duckdb"):
        with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
            connection.execute(far)
            connection.execute(
                "CREATE OR REPLACE TABLE baskets AS SELECT * REPLACE (amount::DECIMAL(38,0)::HUGEINT AS amount)"
                " FROM baskets WHERE NOT isnan(amount)"
            )
            connection.execute("INSERT INTO baskets VALUES (1, NULL, 's0', 170141183460469231731687303715884105727)")
        lost.append(("amount", "numeric(38,0)", 1))
    else:
        with psycopg.connect(source) as owner:
            owner.execute(far.encode())
    found = _measured(tmp_path, source, bounding="rows_per_unit = 1", per_unit="per_unit = [0, 15]")
    assert [(one.name, one.declared, one.values) for one in found.unconverted] == sorted(lost)
    assert "  week: 2 values are no date, and are read as NULL" in list(found.write_lines())


# Beside 20 households with two rows in each week, one has 20 in the first week alone: by week it loses 16 of them.
FREQUENT = (
    "CREATE TABLE baskets (household integer, bought date, store text, amount double precision)",
    "INSERT INTO baskets SELECT g, DATE '2026-01-05' + (7 * w)::integer, 's0', 10"
    " FROM generate_series(1, 20) AS s(g), generate_series(0, 4) AS t(w), generate_series(1, 2) AS r(i)",
    "INSERT INTO baskets SELECT 21, DATE '2026-01-05', 's0', 10 FROM generate_series(1, 20) AS s(g)",
)


def test_rows_are_cut_where_no_group_of_a_unit_is(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "grocer.duckdb")) as connection:
        for statement in FREQUENT:
            connection.execute(statement)
    bounding = 'rows_per_unit = 4\ngroupings.week = { max_groups = 5 }\ncut_rows."week" = "6 %"'
    found = _measured(tmp_path, "duckdb:///grocer.duckdb", bounding=bounding, per_unit="per_unit = [0, 100]")
    (weeks, _, _) = found.groupings
    assert weeks.memberships.left_out == 0
    assert weeks.rows.left_out == pytest.approx(16 / 220)
    # More than a tenth of the rows is missing in one week, 16 of 60, and in none more than half.
    assert (weeks.groups_past_tenth, weeks.groups_past_half) == (1, 0)
    ((first,),) = (weeks.most_cut_groups,)
    assert first.rows.left_out == pytest.approx(16 / 60)
    lines = list(found.write_lines())
    assert "    more than a tenth of the rows is left out in 1 of 5 groups with rows, more than half in 0" in lines
    assert any(line.endswith("(26.7 % of its rows, 0.0 % of its units)") for line in lines)
    told = 'where it says 6 %: cut_rows."week" = "8 %"'
    assert f"    if everybody may know, tell analysts in the policy, {told}" in lines


def test_of_chosen_rows_totals_are_cut_as_rows_are(source: str, tmp_path: Path) -> None:
    found = _measured(tmp_path, source, bounding='max_rows_per_group = { rows = 1, unique = "household" }')
    _, weeks, _ = found.groupings
    assert weeks.rows.left_out == pytest.approx(1 - (100 * 0.4 + 1) / 210)
    ((_, total),) = weeks.totals
    # 15 households have 20 in each week; 5 have 20 in four weeks, and 70 of three rows in one.
    assert total.left_out == pytest.approx(1 - 0.4 * (95 * 10 + 5 * 70 / 3) / (95 * 20 + 5 * 70))


JOINED = """
[tables.{name}]
privacy_unit = "household"
refresh = "explicit"
max_groups_per_unit = 2
rows_per_unit = 1
same_unit_as = "baskets"
{read}
[tables.{name}.columns.store]
key = {{ values = ["s0", "s1"] }}
"""


def test_units_are_counted_of_which_a_join_reads_fewer_rows(source: str, tmp_path: Path) -> None:
    """15 households have ten rows, 5 eleven, one five. A join with `visits` reads all, one with `calls` as well ten."""
    path = tmp_path / "keyhole.toml"
    text = POLICY.format(source=source, bounding="rows_per_unit = 1", per_unit="per_unit = [0, 15]")
    text += JOINED.format(name="visits", read="joined_rows_per_unit = 50000")
    text += JOINED.format(name="calls", read="joined_rows_per_unit = 90000")
    path.write_text(text, encoding="utf-8")
    baskets, visits, calls = measure(path, check(path, confirm=False).pinning.catalog)
    with_one, with_other, with_both = baskets.joins
    assert [(one.tables, one.rows_of_unit) for one in baskets.joins] == [
        (("visits",), 20),
        (("calls",), 11),
        (("visits", "calls"), 10),
    ]
    assert (with_one.units_cut, with_other.units_cut) == (0, 0)
    assert (with_both.units, with_both.units_cut) == (21, 5)
    assert with_both.rows.left_out == pytest.approx(5 / 210)
    assert [one.rows_of_unit for one in (*visits.joins, *calls.joins)] == [50_000, 90_000]
    lines = list(baskets.write_lines())
    assert "  a join with visits, calls reads 10 rows of a unit:" in lines
    assert "    23.8 % of the units have more, 5 in all;" in lines
    assert "    2.4 % of the rows are left out (joined_rows_per_unit)" in lines
    assert sum("a join with" in line for line in lines) == 1


def test_the_report_is_marked_as_the_owners_and_asked_for(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("grocer.duckdb") as connection:
        for statement in STATEMENTS:
            connection.execute(statement)
    bounding = "rows_per_unit = 9\ngroupings.week = { max_groups = 5 }"
    text = POLICY.format(source="duckdb:///grocer.duckdb", bounding=bounding, per_unit="per_unit = [0, 500]")
    Path("keyhole.toml").write_text(text, encoding="utf-8")
    told = run("check").out
    assert "OWNER ONLY" not in told
    assert "225" not in told
    assert "cut_rows" not in told
    told = run("check", "--measure").out
    assert WARNING in told
    assert "  store: 2.2 % of the rows have a value outside the domain\n    new: 3 rows\n    NULL: 2 rows" in told
    assert "  by week, where one (household) counts in at most 5 groups:" in told
    assert "    nothing is left out" in told
    document = json.loads(run("check", "--measure", "--json").out)["measured"]
    assert document["owner_only"] == WARNING
    assert document["tables"][0]["rows_without_unit"] == 15
