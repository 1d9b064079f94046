"""The policy file: what is accepted means what it says; what is refused names line, key, value and fix."""

import tomllib
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.rules.document import describe_warnings
from planner.policy.toml_lines import find_key_lines, find_line
from tests.in_turn import in_turn
from tests.worlds.policies import BASE, VERIFIER, changed, parsed


def test_the_base_policy_is_read_as_written() -> None:
    policy = parsed()
    assert list(policy.private_tables) == ["visits"]
    assert list(policy.public_tables) == ["diseases"]
    assert policy.tables["visits"].privacy_unit == ("patient_id",)
    assert policy.budget.epsilon_per_predicate == 4.0
    assert str(policy.tables["visits"].columns["cost"].grid) == "0.01"
    assert policy.accuracy.tolerance == "10%"
    assert policy.ledger.url == "sqlite:///keyhole.db"
    assert describe_warnings(policy) == ()


@pytest.mark.parametrize(
    ("written", "unit"),
    [('"row"', ()), ('"patient_id"', ("patient_id",)), ('["patient_id", "month"]', ("patient_id", "month"))],
)
def test_a_privacy_unit_is_the_row_a_column_or_several(written: str, unit: tuple[str, ...]) -> None:
    text = changed(('privacy_unit = "patient_id"', f"privacy_unit = {written}"))
    if not unit:
        for line in ("max_groups_per_unit = 3\n", "rows_per_unit = 20\n"):
            text = text.replace(line, "")
        text = text.replace("per_unit = [0, 2200]\n", "").replace("per_unit = [0, 8000]\n", "")
    assert parsed(text).tables["visits"].privacy_unit == unit


REFUSED: list[tuple[str, str, str, str, str]] = [
    # old text, new text, code, dotted key, a word of message or hint
    ("bounds = [0, 110]", "bounds = [110, 0]", "KH004", "tables.visits.columns.age.bounds", "[0, 110]"),
    ("bounds = [0, 110]", "bounds = [0]", "KH004", "tables.visits.columns.age.bounds", "[0, 110]"),
    ("bounds = [0, 110]", 'bounds = [0, "x"]', "KH002", "tables.visits.columns.age.bounds", "number"),
    ("bounds = [0, 110]", "bounds = [0, inf]", "KH002", "tables.visits.columns.age.bounds", "finite"),
    ("bounds = [0, 110]", "bounds = [0, 110.5]", "KH004", "tables.visits.columns.age.bounds", "grid = 1"),
    ("bounds = [0, 110]\n", "", "KH004", "tables.visits.columns.age.grid", "bounds ="),
    ("bounds = [0, 5000]", "bounds = [0, 1e15]", "KH004", "tables.visits.columns.cost.bounds", "2^53"),
    ("bounds = [0, 5000]", "bounds = [0, 1e40]", "KH004", "tables.visits.columns.cost.bounds", "2^53"),
    ("grid = 0.01", "grid = 0", "KH004", "tables.visits.columns.cost.grid", "0.01"),
    ("grid = 0.01", "grid = true", "KH002", "tables.visits.columns.cost.grid", "number"),
    ("per_unit = [0, 8000]", "per_unit = [1, 8000]", "KH004", "tables.visits.columns.cost.per_unit", "0"),
    ("per_unit = [0, 8000]", "per_unit = [0, 8000.001]", "KH004", "tables.visits.columns.cost.per_unit", "grid"),
    ("per_unit = [0, 8000]\n", "", "KH004", "tables.visits.columns.cost.per_unit", "is missing"),
    ("per_unit = [0, 8000]", "per_units = [0, 8000]", "KH002", "tables.visits.columns.cost.per_units", "per_unit?"),
    ("grid = 0.01", "grid = 0.01\nbands = [9, 5]", "KH004", "tables.visits.columns.cost.bands", "Write [5, 9]."),
    ("grid = 0.01", "grid = 0.01\nbands = [5, 5]", "KH004", "tables.visits.columns.cost.bands", "Write [5]."),
    ("grid = 0.01", "grid = 0.01\nbands = []", "KH004", "tables.visits.columns.cost.bands", "1 to 32 numbers"),
    ("grid = 0.01", "grid = 0.01\nbands = 5", "KH002", "tables.visits.columns.cost.bands", "bands"),
    ("grid = 0.01", "grid = 0.01\nbands = [2026-01-01]", "KH002", "tables.visits.columns.cost.bands", "a number"),
    ("grid = 0.01", "grid = 0.01\nbands = ['5']", "KH002", "tables.visits.columns.cost.bands", "without quotes"),
    ("grid = 0.01", "grid = 0.01\nbands = [1e400]", "KH004", "tables.visits.columns.cost.bands", "10^15"),
    ("grid = 0.01", "grid = 0.01\nbands = [1e-400]", "KH004", "tables.visits.columns.cost.bands", "6 digits"),
    ("grid = 0.01", "grid = 0.01\nbands = [nan]", "KH002", "tables.visits.columns.cost.bands", "finite"),
    ("grid = 0.01", "grid = 0.01\nbands = { avg = [3, 2] }", "KH004", "columns.cost.bands.avg", "[2, 3]"),
    ("grid = 0.01", "grid = 0.01\nbands = { max = [3] }", "KH002", "columns.cost.bands.max", "not a key"),
    ("grid = 0.01", "grid = 0.01\nbands = { units = [3] }", "KH004", "columns.cost.bands.units", "avg"),
    ("grid = 0.01", "grid = 0.01\nbands = {}", "KH004", "tables.visits.columns.cost.bands", "no thresholds"),
    ("[tables.visits.columns.note]", "[tables.visits.columns.note]\nbands = [3]", "KH004", "note.bands", "bounds"),
    (
        "[tables.visits.columns.note]",
        "[tables.visits.columns.note]\nfilter = true\nbands = [3]",
        "KH002",
        "note",
        "bands",
    ),
    ("rows_per_unit = 20", "rows_per_unit = 20\nbands = [3]", "KH002", "tables.visits.bands", "bands"),
    ("rows_per_unit = 20", "rows_per_unit = 20\nbands = { sum = [3] }", "KH004", "visits.bands.sum", "measure"),
    ("rows_per_unit = 20", "rows_per_unit = 20\nbands = { rows = [0] }", "KH004", "visits.bands.rows", "whole"),
    ("rows_per_unit = 20", "rows_per_unit = 20\nbands = { units = [2.5] }", "KH004", "visits.bands.units", "whole"),
    ("public = true", "public = true\nbands = { rows = [1] }", "KH002", "tables.diseases.bands", "Remove"),
    ("rows_per_unit = 20\n", "", "KH005", "tables.visits.rows_per_unit", "is missing"),
    ("rows_per_unit = 20", "max_rows_per_group = 20", "KH002", "max_rows_per_group", "{ rows = ..., unique = ... }"),
    ("[views.crowded]", "[views]\ncrowded = 3\n[views.other]", "KH002", "views.crowded", "keys of its own"),
    ("rows_per_unit = 20", "rows_per_unit = 0", "KH002", "tables.visits.rows_per_unit", "greater than"),
    ("rows_per_unit = 20", "rows_per_unit = 2.5", "KH002", "tables.visits.rows_per_unit", "int"),
    ("max_groups_per_unit = 3\n", "", "KH005", "tables.visits.max_groups_per_unit", "is missing"),
    ("max_groups_per_unit = 3", "max_group_per_unit = 3", "KH002", "max_group_per_unit", "max_groups_per_unit?"),
    ("epsilon_per_unit = 8.0\n", "", "KH005", "budget.epsilon_per_unit", "patient_id"),
    ("epsilon_per_query = 2.0\n", "", "KH002", "budget.epsilon_per_query", "is missing"),
    ("epsilon_per_query = 2.0", "epsilon_per_query = -1", "KH002", "budget.epsilon_per_query", "greater than 0"),
    ("epsilon_per_query = 2.0", 'epsilon_per_query = "2"', "KH002", "budget.epsilon_per_query", "number"),
    ('privacy_unit = "patient_id"\n', "", "KH005", "tables.visits.privacy_unit", "row"),
    ('privacy_unit = "patient_id"', 'privacy_unit = ""', "KH005", "tables.visits.privacy_unit", "row"),
    ('privacy_unit = "patient_id"', 'privacy_unit = ["a", "a"]', "KH005", "tables.visits.privacy_unit", "once"),
    ('privacy_unit = "patient_id"', 'privacy_unit = "row"', "KH005", "max_groups_per_unit", "Remove"),
    ('refresh = "daily 02:00"\n', "", "KH002", "tables.visits.refresh: is missing, and has no default", "vouch"),
    ('refresh = "daily 02:00"', 'refresh = ""', "KH002", "tables.visits.refresh", "vouch"),
    ('refresh = "daily 02:00"', 'refresh = "daily 25:00"', "KH002", "tables.visits.refresh", "daily 02:00"),
    ("date_trunc('month', admitted)", "length(note)", "KH010", "tables.visits.columns.month.expression", "date_trunc"),
    ("date_trunc('month'", "date_trunc('century'", "KH010", "tables.visits.columns.month.expression", "month"),
    ('values_from = "diseases.name"', 'values_from = "visits.ward"', "KH003", "disease.key.values_from", "public"),
    ('values_from = "diseases.name"', 'values_from = "disease.name"', "KH003", "values_from", "diseases"),
    ("values = [", "range = [1, 2], values = [", "KH003", "tables.visits.columns.ward.key", "exactly one"),
    ("[tables.visits.columns.note]", "[tables.visits.columns.note]\nfilter = false", "KH002", "note.filter", "true"),
    ("public = true", "public = true\nrefresh = 'live'", "KH002", "tables.diseases.refresh", "Remove"),
    ("public = true", "public = true\ncolumns.name.bounds = [0, 1]", "KH002", "tables.diseases.columns.name", "Remove"),
    ("[tables.diseases]", '[tables.diseases]\nrelation = "visits"', "KH002", "tables.diseases.relation", "budget"),
    ("[tables.visits]\n", '[tables.visits]\nknown_as = "visits"\n', "KH002", "tables.visits.known_as", "schema.table"),
    ("[tables.visits]\n", '[tables.visits]\nknown_as = "a.b.c"\n', "KH002", "tables.visits.known_as", "schema.table"),
    ("[tables.visits]\n", '[tables.visits]\nknown_as = "keyhole.x"\n', "KH002", "tables.visits.known_as", "keyhole"),
    ("[tables.visits]\n", '[tables.visits]\nknown_as = "PG_x.y"\n', "KH002", "tables.visits.known_as", "PostgreSQL"),
    ("[tables.diseases]", '[tables.diseases]\nrelation = "d.csv"', "KH002", "tables.diseases.relation", "duckdb"),
    ("[tables.diseases]", "[tables.pg_class]", "KH002", "tables.pg_class", "pg_"),
    ("[views.crowded]", "[views.visits]", "KH002", "views.visits", "name of a table"),
    ("[analysts.dashboard]", "[analysts.postgres]", "KH002", "analysts.postgres", "reserved"),
    (VERIFIER, "hunter2", "KH002", "analysts.dashboard.password", "keyhole passwd"),
    (VERIFIER, "${NOWHERE}", "KH002", "analysts.dashboard.password", "NOWHERE"),
    ("[views.crowded]", "[accuracy]\nfnr = 0.5\n[views.crowded]", "KH002", "accuracy.fnr", "less than 0.5"),
    ("[views.crowded]", "[accuracy]\ntolerance = 'lots'\n[views.crowded]", "KH002", "accuracy.tolerance", "10%"),
    ("[views.crowded]", "[accuracy]\nmechanism = 'magic'\n[views.crowded]", "KH002", "mechanism", "keyhole"),
    ("[views.crowded]", "[accuracy]\nmechanisms = []\n[views.crowded]", "KH002", "accuracy.mechanisms", "progressive"),
    ("[views.crowded]", "[accuracy]\nmechanisms = 'svt'\n[views.crowded]", "KH002", "accuracy.mechanisms", "list"),
    ("[views.crowded]", "[accuracy]\nmechanisms = ['keyhoel']\n[views.crowded]", "KH002", "mechanisms", "keyhole?"),
    ("[views.crowded]", "[accuracy]\nmechanisms = ['mim', 'mim']\n[views.crowded]", "KH002", "mechanisms", "once"),
    ("[views.crowded]", "[accuracy]\nmechanisms = ['svt']\n[views.crowded]", "KH002", "accuracy.mechanism", "allow it"),
    ("[views.crowded]", "[accuracy]\nmechanism = 'nlm'\n[views.crowded]", "KH002", "accuracy.mechanism", '"nlm"]'),
    ("[source]", "[sorce]\nurl = 'x'\n[source]", "KH002", "sorce", "source?"),
    ("[budget]", "[budget", "KH001", "keyhole.toml", "syntax"),
]


@in_turn(("old", "new", "code", "key", "word"), REFUSED)
def test_a_refusal_names_code_key_and_fix(old: str, new: str, code: str, key: str, word: str) -> None:
    with pytest.raises(KeyholeError) as refused:
        parsed(changed((old, new)))
    error = refused.value
    assert error.code == code
    assert key in error.message
    assert word in f"{error.message} {error.hint}"
    assert error.hint


def test_a_refusal_names_the_line_and_the_value() -> None:
    text = changed(("bounds = [0, 110]", "bounds = [110, 0]"))
    line = text.splitlines().index("bounds = [110, 0]") + 1
    with pytest.raises(KeyholeError) as refused:
        parsed(text)
    assert refused.value.message.startswith(f"keyhole.toml, line {line}: tables.visits.columns.age.bounds = [110, 0]: ")


def test_all_wrong_keys_are_named_at_once() -> None:
    text = changed(("epsilon_per_query = 2.0", "epsilon_per_query = 0"), ("rows_per_unit = 20", "rows_per_unit = 0"))
    with pytest.raises(KeyholeError) as refused:
        parsed(text)
    assert "epsilon_per_query" in refused.value.message
    assert "rows_per_unit" in str(refused.value.detail)


def test_secrets_come_from_the_environment_and_are_never_shown() -> None:
    text = changed(("reader@db", "reader:${PW}@db"), (VERIFIER, "${VERIFIER}"))
    policy = Policy.parse(text, path=Path("k.toml"), environment={"PW": "geheim", "VERIFIER": VERIFIER})
    assert policy.source.url == "postgresql://reader:geheim@db/hospital"
    assert policy.analysts["dashboard"].password == VERIFIER
    assert "geheim" not in repr(policy)
    assert VERIFIER not in repr(policy)
    with pytest.raises(KeyholeError) as refused:
        Policy.parse(text, path=Path("k.toml"), environment={"PW": "geheim", "VERIFIER": "plain-secret"})
    assert "plain-secret" not in f"{refused.value} {refused.value.detail} {refused.value.hint}"


def test_variables_are_expanded_in_secrets_alone() -> None:
    text = changed(('comment = "in euros"', 'comment = "${HOME}"'))
    assert parsed(text).tables["visits"].columns["cost"].comment == "${HOME}"


def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KeyholeError, match="KH001"):
        Policy.load(tmp_path / "absent.toml")


def test_a_loaded_policy_knows_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "keyhole.toml"
    path.write_text(BASE, encoding="utf-8")
    assert Policy.load(path, environment={}).directory == tmp_path.resolve()


def test_what_is_surely_not_meant_is_warned_of() -> None:
    text = changed(
        ("epsilon_per_query = 2.0", "epsilon_per_query = 5.0"),
        ("epsilon_per_predicate = 2.0", "epsilon_per_predicate = 20.0"),
        ('refresh = "daily 02:00"', 'refresh = "live"'),
    )
    said = " ".join(describe_warnings(parsed(text)))
    assert "epsilon_per_query (5)" in said
    assert "analysts.dashboard.epsilon_per_predicate (20)" in said
    assert "live" in said


def test_every_line_of_a_policy_is_found() -> None:
    text = 'a = 1\n[t."x y"]\n# c = 1\nb = [\n  1, # d = 2\n  2]\nc.d = """\n[no]\ne = 1\n"""\nf = { g = 1 }\n'
    text += '[u]\n"k=1" = 2\n'
    lines = find_key_lines(text)
    assert lines == {
        ("a",): 1,
        ("t", "x y"): 2,
        ("t", "x y", "b"): 4,
        ("t", "x y", "c", "d"): 7,
        ("t", "x y", "f"): 11,
        ("u",): 12,
        ("u", "k=1"): 13,
    }
    assert find_line(("t", "x y", "f", "g"), lines) == 11
    assert find_line(("w",), lines) is None


@given(st.lists(st.sampled_from(BASE.splitlines()), max_size=12))
def test_finding_lines_never_fails_on_valid_toml(picked: list[str]) -> None:
    text = "\n".join(picked)
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert all(1 <= line <= len(picked) for line in find_key_lines(text).values())


def test_rollups_are_kept_where_the_owner_says() -> None:
    assert (parsed().source.rollups, parsed().source.scratch) == (4, None)
    url = 'url = "postgresql://reader@db/hospital"'
    source = parsed(changed((url, f'{url}\nrollups = 0\nscratch = "copies"'))).source
    assert (source.rollups, source.scratch) == (0, "copies")
    for wrong in ('url = "duckdb:///x.duckdb"\nscratch = "copies"', f"{url}\nrollups = -1", f'{url}\nscratch = ""'):
        with pytest.raises(KeyholeError, match="KH002"):
            parsed(changed((url, wrong)))


def test_bands_are_of_sums_or_of_the_aggregates_that_they_name() -> None:
    (bands,) = [
        parsed(changed(("grid = 0.01", "grid = 0.01\nbands = [0.5, 2e3]"))).tables["visits"].columns["cost"].bands
    ]
    assert bands is not None
    assert (bands.sum, bands.avg) == ((Decimal("0.5"), Decimal(2000)), None)
    named = "bands = { sum = [5], avg = [-1.5, 0, 20] }"
    bands = parsed(changed(("grid = 0.01", f"grid = 0.01\n{named}"))).tables["visits"].columns["cost"].bands
    assert bands is not None
    assert (bands.sum, bands.avg) == ((Decimal(5),), (Decimal("-1.5"), Decimal(0), Decimal(20)))
    counted = "bands = { rows = [100, 1000], units = [20] }"
    of_table = parsed(changed(("rows_per_unit = 20", f"rows_per_unit = 20\n{counted}"))).tables["visits"].bands
    assert of_table is not None
    assert (of_table.rows, of_table.units) == ((Decimal(100), Decimal(1000)), (Decimal(20),))


def test_a_row_that_is_a_unit_is_counted_once() -> None:
    text = changed(
        ('privacy_unit = "patient_id"\nmax_groups_per_unit = 3\nrows_per_unit = 20', 'privacy_unit = "row"'),
        ("per_unit = [0, 2200]\n", ""),
        ("per_unit = [0, 8000]\n", ""),
    )
    bounded = text.replace('privacy_unit = "row"', 'privacy_unit = "row"\nbands = { rows = [5], units = [5] }')
    with pytest.raises(KeyholeError, match=r"KH004.*visits\.bands\.units"):
        parsed(bounded)
    assert parsed(bounded.replace(", units = [5]", "")).tables["visits"].bands is not None
