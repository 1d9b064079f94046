"""Text keys are told apart byte by byte: a collation that merges them is refused before any question."""

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from planner.catalog.pins import Pins
from planner.errors import KeyholeError
from planner.policy.compile import compile_catalog
from planner.policy.file import Policy
from proxy.sources.open import Source, open_source

_POLICY = """\
[source]
url = "postgresql://reader@db/wards"

[budget]
epsilon_per_predicate = 4.0
epsilon_per_query = 2.0

[tables.cased]
privacy_unit = "row"
refresh = "static"

[tables.cased.columns.ward]
key = { values = ["a", "A"] }
"""


@pytest.fixture
def source(postgres_url: str, tmp_path: Path) -> Iterator[Source]:
    with psycopg.connect(postgres_url, autocommit=True) as server:
        server.execute("DROP TABLE IF EXISTS cased; DROP COLLATION IF EXISTS caseless")
        server.execute(
            "CREATE COLLATION caseless (locale = 'C');"
            'CREATE TABLE cased (ward text COLLATE caseless, name text, code varchar(5) COLLATE "C", age integer)'
        )
        # only ICU makes such a collation, which the embedded server lacks; the catalog is what counts
        server.execute("SET allow_system_table_mods = on")
        server.execute("UPDATE pg_collation SET collisdeterministic = false WHERE collname = 'caseless'")
    opened = open_source(postgres_url, directory=tmp_path)
    yield opened
    opened.close()


def test_the_schema_tells_which_collation_merges(source: Source) -> None:
    assert {column.name: column.has_nondeterministic_collation for column in source.read_schema("cased")} == {
        "ward": True,
        "name": False,
        "code": False,
        "age": False,
    }


def test_such_a_column_cannot_be_exposed(source: Source) -> None:
    policy = Policy.parse(_POLICY, path=Path("keyhole.toml"), environment={})
    with pytest.raises(KeyholeError, match="nondeterministic collation") as refused:
        compile_catalog(policy, schema={"cased": source.read_schema("cased")}, pins=Pins(), directory=Path("/data"))
    assert refused.value.code == "KH006"
    assert 'ward COLLATE "C"' in (refused.value.hint or "")
