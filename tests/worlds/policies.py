"""Policies and schemas to test with: a base that is right, and single changes that make it wrong."""

from collections.abc import Mapping
from pathlib import Path

from planner.catalog.catalog import Catalog
from planner.catalog.pins import Pins, pin_table
from planner.policy.compile import SourceColumn, compile_catalog, list_key_domains
from planner.policy.file import Policy

VERIFIER = (
    "SCRAM-SHA-256$4096:cRseQyJpnuPGn3e6d6u6JdJWk2BXOcv5wrDRBrjpCoU=$"
    "cRseQyJpnuPGn3e6d6u6JdJWk2BXOcv5wrDRBrjpCoU=:cRseQyJpnuPGn3e6d6u6JdJWk2BXOcv5wrDRBrjpCoU="
)

BASE = f"""\
[source]
url = "postgresql://reader@db/hospital"

[budget]
epsilon_per_predicate = 4
epsilon_per_unit = 8.0
epsilon_per_query = 2.0

[tables.visits]
privacy_unit = "patient_id"
max_groups_per_unit = 3
rows_per_unit = 20
immutable = ["ward"]
refresh = "daily 02:00"

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C"] }}

[tables.visits.columns.disease]
key = {{ values_from = "diseases.name" }}

[tables.visits.columns.month]
expression = "date_trunc('month', admitted)"
key = {{ range = ["2025-12-01", "2026-02-01"], step = "1 month" }}

[tables.visits.columns.age]
bounds = [0, 110]
grid = 1
per_unit = [0, 2200]

[tables.visits.columns.cost]
bounds = [0, 5000]
per_unit = [0, 8000]
grid = 0.01
comment = "in euros"

[tables.visits.columns.note]

[tables.diseases]
public = true

[views.crowded]
sql = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 40"

[analysts.dashboard]
password = "{VERIFIER}"
epsilon_per_predicate = 2.0
"""

SCHEMA: Mapping[str, tuple[SourceColumn, ...]] = {
    "visits": (
        SourceColumn("id", "bigint", False),
        SourceColumn("patient_id", "bigint", False),
        SourceColumn("ward", "character varying(10)", True),
        SourceColumn("disease", "text", True),
        SourceColumn("age", "smallint", True),
        SourceColumn("cost", "numeric(10,2)", True),
        SourceColumn("admitted", "timestamp without time zone", True),
        SourceColumn("discharged", "timestamp with time zone", True),
        SourceColumn("note", "text", True),
        SourceColumn("scan", "bytea", True),
    ),
    "diseases": (SourceColumn("name", "text", False), SourceColumn("chapter", "integer", True)),
}

DISEASES = (("measles", 1), ("flu", 2), ("gout", None))


def parsed(text: str = BASE) -> Policy:
    """The policy that a text says."""
    return Policy.parse(text, path=Path("keyhole.toml"), environment={})


def changed(*changes: tuple[str, str], text: str = BASE) -> str:
    """The base policy with every (old, new) replaced; each old text must occur."""
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return text


def pins_for(policy: Policy, schema: Mapping[str, tuple[SourceColumn, ...]] = SCHEMA) -> Pins:
    """What `keyhole check` would pin for a policy whose only public table is `diseases`."""
    pins = Pins(tables=(pin_table("diseases", schema["diseases"], DISEASES),))
    return Pins(
        tables=pins.tables, domains=tuple(pinned for pinned, _ in list_key_domains(policy, schema=schema, pins=pins))
    )


def compiled(text: str = BASE, schema: Mapping[str, tuple[SourceColumn, ...]] = SCHEMA) -> Catalog:
    """The catalog of a policy text, everything pinned."""
    policy = parsed(text)
    return compile_catalog(policy, schema=schema, pins=pins_for(policy, schema), directory=Path("/data"))
