"""The form and the types of a CSV file are pinned: no row decides them afterwards, and none makes a question fail."""

from contextlib import closing
from pathlib import Path

import pytest

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.check import check
from proxy.open_policy.pins import read_pinned_catalog
from proxy.owner.measure import measure
from proxy.sources.shared import open_policy_source

POLICY = """\
[source]
url = "duckdb://"
[budget]
epsilon_per_predicate = 4
epsilon_per_query = 2
[tables.x]
relation = "{relation}"
privacy_unit = "row"
refresh = "static"
[tables.x.columns.v]
bounds = [0, 100]
[tables.x.columns.g]
[tables.x.columns.d]
[tables.x.columns.w]
type = "numeric(6,2)"
"""
HEADER = "g,v,d,w\n"
ROWS = [f"a,{i % 100},2026-01-{1 + i % 28:02d},1.25\n" for i in range(3000)]
ODD = {
    "n/a": ("a,n/a,n/a,n/a", (3000, 2999, 2999, 2999)),
    "a decimal": ("a,1.5,2026-01-01 10:00,1e2", (3000, 2999, 2999, 3000)),
    "too large": ("a,99999999999999999999,2026-02-30,99999.99", (3000, 2999, 2999, 2999)),
    "not finite": ("a,inf,infinity,NaN", (3000, 2999, 2999, 2999)),
    "too few fields": ("a,1", (2999, 2999, 2999, 2999)),
    "too many fields": ("a,1,2026-01-01,1,1", (3000, 3000, 3000, 3000)),
    "line ends": ('"a\nb",1,2026-01-01,1', (3000, 3000, 3000, 3000)),
    "a NUL": ("a\0,1,2026-01-01,1", (3000, 3000, 3000, 3000)),
    "broken UTF-8": ("a,1\udcff,2026-01-01,1", (2999, 2999, 2999, 2999)),
    "a long text": ("x" * 3_000_000 + ",1,2026-01-01,1", (2999, 2999, 2999, 2999)),
    "an open quote": ('"a,1,2026-01-01,1', (3000, 3000, 3000, 3000)),
    "nothing": ("", (2999, 2999, 2999, 2999)),
}


def write(folder: Path, *, rows: list[str], header: str = HEADER, file: str = "x.csv") -> None:
    (folder / file).write_bytes((header + "".join(rows)).encode("utf-8", "surrogateescape"))


def install(folder: Path, *, relation: str = "x.csv") -> Path:
    path = folder / "keyhole.toml"
    path.write_text(POLICY.format(relation=relation), encoding="utf-8")
    return path


def counts(path: Path) -> tuple[object, ...]:
    policy = Policy.load(path)
    with closing(open_policy_source(policy)) as source:
        (table,) = read_pinned_catalog(policy, source).tables
        sql = f"SELECT count(*), count(v), count(d), count(w) FROM {table.relation}"
        (found,) = source.read_for_owner(table.relation, sql)
        assert {column.name: column.stored for column in table.columns} == {
            "v": "bigint",
            "g": "text",
            "d": "date",
            "w": "numeric(6,2)",
        }
    return found


def test_no_row_decides_a_type_or_fails(tmp_path: Path) -> None:
    path = install(tmp_path)
    write(tmp_path, rows=ROWS)
    check(path, confirm=False)
    pinned = path.with_suffix(".pins.json").read_text(encoding="utf-8")
    assert counts(path) == (3000,) * 4
    for at in (5, 2990):
        for name, (row, expected) in ODD.items():
            write(tmp_path, rows=[*ROWS[:at], f"{row}\n", *ROWS[at + 1 :]])
            assert counts(path) == expected, (name, at)
    check(path, confirm=False)
    assert path.with_suffix(".pins.json").read_text(encoding="utf-8") == pinned


def test_a_measure_that_was_guessed_to_be_text_is_given_a_type(tmp_path: Path) -> None:
    """A text among the first lines is all that the guess knows: the owner says what the column is."""
    write(tmp_path, rows=["a,n/a,2026-01-01,1\n", *ROWS])
    path = install(tmp_path)
    with pytest.raises(KeyholeError, match=r"KH004.*columns\.v\.bounds.*of type text") as refused:
        check(path, confirm=False)
    assert "In a CSV file, `type` sets a column's type" in str(refused.value.hint)
    path.write_text(path.read_text().replace("bounds = [0, 100]", 'bounds = [0, 100]\ntype = "bigint"'))
    check(path, confirm=False)
    assert counts(path) == (3001, 3000, 3001, 3001)


def test_another_first_line_is_another_file(tmp_path: Path) -> None:
    path = install(tmp_path)
    write(tmp_path, rows=ROWS)
    with pytest.raises(KeyholeError, match="KH007"):
        counts(path)
    check(path, confirm=False)
    write(tmp_path, rows=ROWS, header="g,w,d,v\n")
    with pytest.raises(KeyholeError, match="KH006"):
        counts(path)
    write(tmp_path, rows=[f"new,{row}" for row in ROWS], header="new,g,v,d,w\n")
    check(path, confirm=False)
    assert counts(path) == (3000,) * 4


def test_files_that_are_laid_out_otherwise_are_named(tmp_path: Path) -> None:
    path = install(tmp_path, relation="x*.csv")
    write(tmp_path, rows=ROWS, file="x1.csv")
    write(tmp_path, rows=ROWS, file="x2.csv", header="g,d,v,w\n")
    with pytest.raises(KeyholeError, match=r"KH014.*x2\.csv"):
        check(path, confirm=False)
    write(tmp_path, rows=ROWS, file="x2.csv")
    check(path, confirm=False)
    assert counts(path) == (6000,) * 4


def test_the_owner_learns_how_many_texts_are_no_values(tmp_path: Path) -> None:
    path = install(tmp_path)
    write(tmp_path, rows=ROWS)
    findings = check(path, confirm=False)
    write(tmp_path, rows=[*ROWS, "a,n/a,2026-02-30,1\n", "a,,2026-01-01,99999.99\n", "a,1.5,,\n"])
    (found,) = measure(path, findings.pinning.catalog)
    assert [(one.name, one.values) for one in found.unconverted] == [("v", 2), ("d", 1), ("w", 1)]
    assert "  v: 2 texts are no bigint, and are read as NULL" in list(found.write_lines())


def test_a_file_that_quotes_is_read_so_and_the_owner_is_warned(tmp_path: Path) -> None:
    path = install(tmp_path, relation="x*.csv")
    write(tmp_path, rows=ROWS, file="x1.csv")
    assert not [one for one in check(path, confirm=False).warnings if "quote" in one]
    path.with_suffix(".pins.json").unlink()
    write(tmp_path, rows=[*ROWS, '"a,b",1,2026-01-01,1\n'], file="x2.csv")
    assert [one for one in check(path, confirm=True).warnings if "takes all rows behind it" in one]
    assert counts(path) == (6001,) * 4
