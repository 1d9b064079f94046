"""An owner's walk from a hospital's six tables to a first answer: how many lines of the starter policy they change."""

import re
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from planner.errors import KeyholeError
from planner.policy.policy_refusals import BLANK
from proxy.cli.check import check
from proxy.cli.init import write_policy_from_source
from proxy.cli.presets import Unit
from tests.worlds.house import VERIFIER, new_database, opened

TABLES = (
    "wards (ward_id integer PRIMARY KEY, name text, specialty text)",
    "drugs (drug_id integer PRIMARY KEY, name text)",
    "patients (patient_id integer PRIMARY KEY, sex text, birth_year integer)",
    "stays (stay_id integer PRIMARY KEY, patient_id integer REFERENCES patients, ward_id integer REFERENCES wards,"
    " admitted timestamp)",
    "labs (lab_id integer PRIMARY KEY, stay_id integer REFERENCES stays, test text, value double precision)",
    "prescriptions (prescription_id integer PRIMARY KEY, stay_id integer REFERENCES stays,"
    " drug_id integer REFERENCES drugs, started date)",
)
ROWS = (
    "wards SELECT g, 'Ward ' || g, CASE WHEN g < 3 THEN 'surgery' ELSE 'medicine' END FROM generate_series(1, 4) s(g)",
    "drugs SELECT g, 'Drug ' || g FROM generate_series(1, 5) s(g)",
    "patients SELECT g, 'f', 1950 FROM generate_series(1, 4000) s(g)",
    # twice as many stays in wards 1 and 2, and labs of their patients alone
    "stays SELECT g, 1 + g % 4000, CASE WHEN g % 3 < 2 THEN 1 + g % 2 ELSE 3 + g % 2 END, TIMESTAMP '2026-01-01'"
    " FROM generate_series(1, 6000) s(g)",
    "labs SELECT g, g, 'crp', 1 FROM generate_series(1, 6000) s(g) WHERE g % 3 < 2",
    "prescriptions SELECT g, g, 1 + g % 5, DATE '2026-01-01' FROM generate_series(1, 6000) s(g)",
)
EDITS = (
    (f'^public = "{BLANK}"', "public = true"),
    (f'^max_groups_per_unit = "{BLANK}"', "max_groups_per_unit = 2"),
    (f'^rows_per_unit = "{BLANK}"', "rows_per_unit = 2"),
    (r"^# \[tables\.stays\.columns\.ward_id\].*", "[tables.stays.columns.ward_id]"),
    (r"^# key = \{ values_from = \"wards.ward_id\" \}", 'key = { values_from = "wards.ward_id" }'),
    (r"^# \[analysts\.somebody\]", "[analysts.ada]"),
    (r"^# password = .*", f'password = "{VERIFIER}"'),
)
ASKED = (
    ("SELECT ward_id FROM stays GROUP BY ward_id HAVING count(DISTINCT patient_id) > 1400", [1, 2]),
    (
        "SELECT w.specialty FROM labs JOIN stays USING (stay_id) JOIN wards w USING (ward_id) GROUP BY w.specialty"
        " HAVING count(*) > 2000",
        ["surgery"],
    ),
)


@pytest.mark.parametrize(("declared", "edits"), [(True, 12), (False, 13)], ids=["foreign keys", "names alone"])
def test_six_tables_are_asked_about_after_a_dozen_edits(
    declared: bool, edits: int, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a view nor a copy is made. Where no constraint is declared, one word more is asked for."""
    with new_database(postgres_url) as url:
        monkeypatch.setenv("KEYHOLE_SOURCE_PASSWORD", urlsplit(url).password or "")
        with psycopg.connect(url, autocommit=True) as connection:
            for written in TABLES:
                bare = re.sub(r" (PRIMARY KEY|REFERENCES \w+)", "", written)
                connection.execute(f"CREATE TABLE {written if declared else bare}".encode())
            for rows in ROWS:
                connection.execute(f"INSERT INTO {rows}".encode())
        starter = write_policy_from_source(url, directory=tmp_path, unit=Unit.PERSON, refresh="explicit")
        text = starter
        for old, new in EDITS:
            text = re.sub(old, new, text, flags=re.MULTILINE)
        policy = tmp_path / "keyhole.toml"
        policy.write_text(text, encoding="utf-8")
        if not declared:
            with pytest.raises(KeyholeError, match="no constraint of the source keeps stays by stay_id unique"):
                check(policy, confirm=False)
            text = text.replace("# unique =", "unique =")
            policy.write_text(text, encoding="utf-8")
        assert sum(a != b for a, b in zip(starter.splitlines(), text.splitlines(), strict=True)) == edits
        said = check(policy, confirm=False).warnings
        assert "tables.labs has no column with a key domain: ask it joined with stays." in said
        with opened(policy) as house, house.connect() as connection:
            for sql, keys in ASKED:
                assert sorted(key for (key,) in connection.execute(sql.encode()).fetchall()) == keys, sql
