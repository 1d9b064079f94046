"""Pins: what was confirmed answers until the owner confirms otherwise, and the file cannot be edited unnoticed."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Table
from planner.catalog.pins import Pins, pin_table
from planner.catalog.refresh import parse_refresh
from planner.catalog.sql_types import SourceColumn
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.open_policy.data_versions import DataVersions, find_data_version
from proxy.open_policy.pins import (
    Pinning,
    find_pins_path,
    pin,
    read_pinned_catalog,
    read_pins,
    read_private_pins,
    refresh,
    write_pins,
)
from proxy.sources.open import open_source
from tests.worlds.policies import compiled

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
POLICY = """\
[source]
url = "duckdb:///clinic.duckdb"
[budget]
epsilon_per_predicate = 4
epsilon_per_query = 2
[tables.visits]
privacy_unit = "row"
refresh = "explicit"
[tables.visits.columns.ward]
key = { values_from = "wards.name" }
[tables.visits.columns.floor]
key = { range = [1, 3] }
[tables.wards]
public = true
"""


def clinic(directory: Path, *statements: str) -> None:
    with duckdb.connect(str(directory / "clinic.duckdb")) as connection:
        for statement in statements:
            connection.execute(statement)


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    clinic(
        tmp_path,
        "CREATE TABLE visits (ward TEXT, floor INTEGER)",
        "CREATE TABLE wards (name TEXT, beds INTEGER, opened DATE, price DECIMAL(6,2))",
        "INSERT INTO wards VALUES ('B', 4, NULL, 1.50), ('A', NULL, DATE '2001-02-03', NULL)",
    )
    return loaded(tmp_path, POLICY)


def loaded(directory: Path, text: str) -> Policy:
    path = directory / "keyhole.toml"
    path.write_text(text, encoding="utf-8")
    return Policy.load(path, environment={})


def checked(policy: Policy, *, confirm: bool = False) -> Pinning:
    source = open_source(policy.source.url, directory=policy.directory)
    try:
        return pin(policy, source, confirm=confirm, now=NOW)
    finally:
        source.close()


def test_the_first_check_pins_tables_and_domains(policy: Policy) -> None:
    found = checked(policy)
    assert [str(change) for change in found.changes] == [
        "new: wards (2 rows)",
        "new: visits.ward (2 key values)",
        "new: visits.floor (3 key values)",
    ]
    (visits,) = found.catalog.tables
    assert visits.get_column("ward").domain == ("A", "B")
    assert read_pins(find_pins_path(policy)) == found.pins
    assert checked(policy).changes == ()


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO wards VALUES ('C', 1, NULL, NULL)",
        "DELETE FROM wards WHERE name = 'B'",
        "UPDATE wards SET beds = 5 WHERE name = 'B'",
        "ALTER TABLE wards ADD COLUMN more TEXT",
    ],
)
def test_a_changed_public_table_waits_for_the_owner(policy: Policy, statement: str) -> None:
    before = checked(policy)
    clinic(policy.directory, statement)
    with pytest.raises(KeyholeError, match="KH007") as refused:
        checked(policy)
    assert "--confirm" in str(refused.value.hint)
    assert read_pins(find_pins_path(policy)) == before.pins
    after = checked(policy, confirm=True)
    assert after.pins != before.pins
    assert checked(policy).catalog == after.catalog


def test_the_order_of_public_rows_means_nothing(policy: Policy) -> None:
    checked(policy)
    clinic(
        policy.directory,
        "CREATE TABLE w AS FROM wards ORDER BY name",
        "DROP TABLE wards",
        "ALTER TABLE w RENAME TO wards",
    )
    assert checked(policy).changes == ()


def test_a_changed_key_domain_waits_for_the_owner(policy: Policy) -> None:
    checked(policy)
    wider = loaded(policy.directory, POLICY.replace("[1, 3]", "[1, 4]"))
    with pytest.raises(KeyholeError, match=r"KH007.*visits\.floor"):
        checked(wider)
    source = open_source(wider.source.url, directory=wider.directory)
    with pytest.raises(KeyholeError, match="KH007"):
        read_pinned_catalog(wider, source)
    source.close()
    (visits,) = checked(wider, confirm=True).catalog.tables
    assert visits.get_column("floor").domain == (1, 2, 3, 4)


def test_a_column_of_another_type_waits_for_the_owner(policy: Policy) -> None:
    before = checked(policy)
    assert before.pins.get_types("visits") == {"ward": "text", "floor": "integer"}
    clinic(policy.directory, "ALTER TABLE visits ADD COLUMN more TEXT")
    assert checked(policy).changes == ()
    clinic(policy.directory, "ALTER TABLE visits ALTER floor TYPE BIGINT")
    with pytest.raises(KeyholeError, match=r"KH007.*tables\.visits\.columns\.floor"):
        checked(policy)
    source = open_source(policy.source.url, directory=policy.directory)
    with pytest.raises(KeyholeError, match=r"KH007.*of type bigint in the source, and was of type integer"):
        read_pinned_catalog(policy, source)
    source.close()
    changes = [str(change) for change in checked(policy, confirm=True).changes]
    assert changes == ["changed: tables.visits.columns.floor (integer -> bigint)"]
    assert checked(policy).changes == ()


def test_a_pin_file_without_types_is_checked_again(policy: Policy) -> None:
    checked(policy)
    path = find_pins_path(policy)
    written = json.loads(path.read_text(encoding="utf-8"))
    del written["columns"]
    path.write_text(json.dumps(written), encoding="utf-8")
    source = open_source(policy.source.url, directory=policy.directory)
    with pytest.raises(KeyholeError, match=r"KH007.*not pinned yet") as refused:
        read_pinned_catalog(policy, source)
    source.close()
    assert refused.value.hint == "Run keyhole check."
    assert checked(policy).changes == ()


def test_serving_uses_the_pinned_rows(policy: Policy) -> None:
    checked(policy)
    clinic(policy.directory, "INSERT INTO wards VALUES ('C', 1, NULL, NULL)")
    source = open_source(policy.source.url, directory=policy.directory)
    catalog = read_pinned_catalog(policy, source)
    source.close()
    assert catalog.tables[0].get_column("ward").domain == ("A", "B")
    assert len(catalog.public_tables[0].rows) == 2


def test_a_view_cannot_be_public(policy: Policy) -> None:
    clinic(policy.directory, "DROP TABLE wards", "CREATE VIEW wards AS SELECT DISTINCT ward AS name FROM visits")
    with pytest.raises(KeyholeError, match=r"KH002.*view"):
        checked(policy)


def test_an_edited_pin_file_is_refused(policy: Policy) -> None:
    checked(policy)
    path = find_pins_path(policy)
    written = json.loads(path.read_text(encoding="utf-8"))
    written["tables"]["wards"]["rows"][0][0] = "Z"
    for text in (json.dumps(written), "{}", "not json", '{"format": 2, "tables": {}, "domains": {}, "refreshes": {}}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(KeyholeError, match="KH007"):
            checked(policy, confirm=True)


@given(
    st.lists(
        st.tuples(
            st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
            st.none() | st.integers(-(2**63), 2**63 - 1),
            st.none() | st.decimals(allow_nan=False, allow_infinity=False, places=2),
            st.none() | st.dates(),
            st.none() | st.datetimes(),
            st.none() | st.booleans(),
        ),
        max_size=5,
    )
)
def test_pins_survive_the_file(tmp_path_factory: pytest.TempPathFactory, rows: Sequence[Sequence[object]]) -> None:
    types = ("text", "bigint", "numeric(30,2)", "date", "timestamp without time zone", "boolean")
    columns = [SourceColumn(f"c{index}", declared, True) for index, declared in enumerate(types)]
    types_seen = (("u", (("x", "text"), ("y", "numeric(6,2)"))), ("v", ()))
    pins = Pins(tables=(pin_table("t", columns, rows),), refreshes=(("u", NOW),), columns=types_seen)
    path = tmp_path_factory.mktemp("pins") / "pins.json"
    write_pins(path, pins)
    assert read_pins(path) == pins
    assert read_private_pins(path) == replace(pins, tables=())
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8"))), encoding="utf-8")
    assert read_pins(path) == pins
    assert read_private_pins(path) == replace(pins, tables=())


def test_rows_of_a_pin_file_are_its_own_in_their_order(tmp_path: Path) -> None:
    """They are not sorted again as it is read, so that another order is an edited file."""
    columns = [SourceColumn("name", "text", True)]
    path = tmp_path / "pins.json"
    write_pins(path, Pins(tables=(pin_table("t", columns, [("b",), (None,), ("a",)]),)))
    written = json.loads(path.read_text(encoding="utf-8"))
    assert written["tables"]["t"]["rows"] == [[None], ["a"], ["b"]]
    written["tables"]["t"]["rows"].reverse()
    path.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(KeyholeError, match="KH007"):
        read_pins(path)


@given(st.lists(st.tuples(st.sampled_from(["", "a", "ab", None]), st.sampled_from(["", "b", "c", None])), max_size=3))
def test_digests_tell_tables_apart(rows: list[tuple[str | None, str | None]]) -> None:
    columns = [SourceColumn("x", "text", True), SourceColumn("y", "text", True)]
    digest = pin_table("t", columns, rows).digest
    assert digest == pin_table("t", columns, rows[::-1]).digest
    assert digest != pin_table("t", columns, [*rows, ("", "")]).digest
    assert digest != pin_table("t", [columns[0], SourceColumn("z", "text", True)], rows).digest
    swapped = [(right, left) for left, right in rows]
    assert (digest == pin_table("t", columns, swapped).digest) == (sorted(map(str, rows)) == sorted(map(str, swapped)))


def test_many_rows_are_read_as_they_were_written_and_hashed_one_by_one(tmp_path: Path) -> None:
    """Values that are equal and written otherwise stay so, whether or not a column repeats them."""
    declared = ("text", "bigint", "numeric", "date", "text")
    columns = [SourceColumn(f"c{number}", kind, True) for number, kind in enumerate(declared)]
    rows = [
        (
            f"é{i}",
            i,
            Decimal("2.5" if i % 2 else "2.50"),
            date(2026, 1, 1 + i % 9),
            None if i % 7 == 0 else "ab" * (i % 3),
        )
        for i in range(2_500)
    ]
    table = pin_table("t", columns, rows)
    digest = sha256()
    for text in (text for column in columns for text in (column.name, column.declared)):
        digest.update(len(text).to_bytes(8, "big") + text.encode())
    for value in (value for row in table.rows for value in row):
        text = "" if value is None else str(value)
        digest.update((b"\xff" * 8 if value is None else len(text.encode()).to_bytes(8, "big")) + text.encode())
    assert table.digest == digest.hexdigest()
    write_pins(tmp_path / "pins.json", Pins(tables=(table,)))
    assert repr(read_pins(tmp_path / "pins.json").get_table("t")) == repr(table)


def test_values_that_no_type_holds_are_refused() -> None:
    for declared, value in (("jsonb", "{}"), ("integer", "1"), ("boolean", 1)):
        with pytest.raises(ValueError, match="column"):
            pin_table("t", [SourceColumn("x", declared, True)], [(value,)])
    (row,) = pin_table("t", [SourceColumn("x", "double precision", True)], [(0.1,)]).rows
    assert row == (Decimal("0.1"),)


def table(refreshed: str) -> Table:
    text = 'refresh = "daily 02:00"'
    base = compiled().tables[0]
    assert text.endswith(f'{base.refresh}"')
    return Table(**{name: getattr(base, name) for name in Table.__slots__} | {"refresh": refreshed})


@pytest.mark.parametrize(
    ("refreshed", "now", "version"),
    [
        ("static", NOW, "static"),
        ("daily 12:00", NOW, "2026-03-01"),
        ("daily 12:01", NOW, "2026-02-28"),
        ("daily 12:00", NOW.astimezone(timezone(timedelta(hours=13))), "2026-03-01"),
        ("hourly", NOW + timedelta(minutes=59), "2026-03-01 12:00"),
    ],
)
def test_calendars_name_the_latest_tick_in_utc(refreshed: str, now: datetime, version: str) -> None:
    assert find_data_version(table(refreshed), now=now, pins=Pins()) == version


def test_a_live_table_never_has_the_same_version_twice() -> None:
    versions = {find_data_version(table("live"), now=NOW, pins=Pins()) for _ in range(100)}
    assert len(versions) == 100


@given(st.datetimes(timezones=st.just(UTC)), st.timedeltas(timedelta(0), timedelta(days=3)))
def test_versions_never_go_back(now: datetime, passed: timedelta) -> None:
    try:
        later = now + passed
    except OverflowError:
        return
    if now.year < 2:
        return
    for text in ("static", "hourly", "daily 23:30"):
        known, next_known = parse_refresh(text).name_tick(now), parse_refresh(text).name_tick(later)
        assert known is not None
        assert next_known is not None
        assert known.rjust(16, "0") <= next_known.rjust(16, "0")


def test_an_explicit_refresh_is_seen_by_a_running_server(policy: Policy) -> None:
    catalog = checked(policy).catalog
    versions = DataVersions(find_pins_path(policy))
    first = versions.find_version(catalog.tables[0], now=NOW)
    assert versions.find_version(catalog.tables[0], now=NOW + timedelta(days=9)) == first
    second = refresh(policy, "visits", now=NOW + timedelta(days=9))
    assert versions.find_version(catalog.tables[0], now=NOW) == second != first
    assert checked(policy).changes == ()
    assert versions.find_version(catalog.tables[0], now=NOW) == second


@pytest.mark.parametrize("indent", [None, 2], ids=["as written", "laid out by hand"])
def test_a_refresh_leaves_public_tables_as_they_were_confirmed(policy: Policy, indent: int | None) -> None:
    """An edited row is found out behind it as well as before."""
    checked(policy)
    path = find_pins_path(policy)
    if indent is not None:
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")), indent=indent), encoding="utf-8")
    before = read_pins(path)
    refresh(policy, "visits", now=NOW)
    after, written = read_pins(path), path.read_bytes()
    assert after == replace(before, refreshes=after.refreshes)
    assert dict(after.refreshes) == {"visits": NOW}
    write_pins(path, after)
    assert path.read_bytes() == written
    path.write_bytes(written.replace(b"2001-02-03", b"2001-02-04", 1))
    assert path.read_bytes() != written
    refresh(policy, "visits", now=NOW + timedelta(hours=1))
    with pytest.raises(KeyholeError, match="KH007"):
        read_pins(path)


def test_only_explicit_tables_are_refreshed_by_hand(policy: Policy) -> None:
    for name in ("wards", "nothing"):
        with pytest.raises(KeyholeError, match="KH002"):
            refresh(policy, name, now=NOW)
    with pytest.raises(KeyholeError, match="KH007"):
        DataVersions(find_pins_path(policy)).find_version(table("explicit"), now=NOW)


def test_what_the_source_insists_on_is_kept_for_public_tables(policy: Policy) -> None:
    plain = checked(policy)
    (before,) = plain.catalog.public_tables
    assert (before.not_null_columns, before.unique) == ((), ())
    clinic(policy.directory, "ALTER TABLE wards ADD PRIMARY KEY (name)")
    with pytest.raises(KeyholeError, match="KH007"):  # a column that was nullable is another column
        read_pinned_catalog(policy, opened := open_source(policy.source.url, directory=policy.directory))
    opened.close()
    after = checked(policy, confirm=True)
    (wards,) = after.catalog.public_tables
    assert (wards.not_null_columns, wards.unique) == (("name",), ("name",))
    assert wards.rows == before.rows
    assert after.catalog.digest != plain.catalog.digest
    assert read_pins(find_pins_path(policy)) == after.pins


def test_pins_of_before_say_nothing_of_uniqueness(policy: Policy) -> None:
    checked(policy)
    path = find_pins_path(policy)
    written = json.loads(path.read_text())
    for table in written["tables"].values():
        del table["unique"]
    path.write_text(json.dumps(written))
    assert [table.unique for table in read_pins(path).tables] == [()]
