"""No odd value of a parquet file makes a question to Sail fail, or moves more than its own bound."""

from pathlib import Path
from typing import TYPE_CHECKING

from tests.proxy.sources.rows.odd_values import check_odd_rows, policy
from tests.proxy.sources.rows.test_odd_values import DUCKDB, NO_PARQUET, opened_service, with_raw, write_files

if TYPE_CHECKING:
    from tests.proxy.sources.spark.engines import Sail

UNREAD = {*NO_PARQUET, "key", "nanos"}  # one is read as bytes, with the other the whole file is refused


def test_parquet_files_on_sail(sail: "Sail", tmp_path: Path) -> None:
    columns = {name: column for name, column in with_raw(DUCKDB, tmp_path).items() if name not in UNREAD}
    write_files(columns, tmp_path)
    source = f'url = "{sail.url}"\nengine = "sail"\nskip_blocks = true\n'
    with opened_service(tmp_path, policy(columns, source=source, relation="{}.parquet")) as service:
        check_odd_rows(service, columns, has_few_patterns=True)
