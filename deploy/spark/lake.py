"""The demo's sale lines over and over, each time by other customers for other amounts, as a folder of parquet files.

    python -m deploy.spark.lake FOLDER ROWS

fills the folder for docker-compose.yml, once.
"""

import sys
from pathlib import Path

import duckdb

from deploy.demo import build

_FILE_ROWS = 1_000_000
_COPIES = """
COPY (
    SELECT customer_id + 100000 * copy::integer AS customer_id, country, invoice_date, stock_code, quantity,
           -- half to one and a half times what was paid
           CAST(amount * (50 + hash(line, copy) % 101)::integer / 100 AS DECIMAL(12, 2)) AS amount
    FROM (SELECT *, row_number() OVER () AS line FROM retail.sales) AS lines, range({first}, {behind}) AS copies(copy)
    LIMIT {rows}
) TO '{file}' (FORMAT parquet)
"""


def write_lake(folder: Path, *, rows: int) -> int:
    """Write `rows` sale lines to `sales/*.parquet`, and the public countries to `countries.parquet`.

    Returns how often the demo's lines are in them, rounded up.
    """
    database = build.build(folder)
    (folder / "sales").mkdir()
    with duckdb.connect() as connection:
        connection.execute(f"ATTACH '{database}' AS retail (READ_ONLY)")
        (lines,) = connection.execute("SELECT count(*) FROM retail.sales").fetchone() or (0,)
        copies: int = -(-rows // lines)
        step = -(-_FILE_ROWS // lines)
        for first in range(0, copies, step):
            file = folder / "sales" / f"{first:05}.parquet"
            behind, left = min(first + step, copies), rows - first * lines
            connection.execute(_COPIES.format(first=first, behind=behind, rows=left, file=file))
    database.unlink()
    build.write_countries(folder / "countries.parquet")
    return copies


if __name__ == "__main__":
    there, wanted = Path(sys.argv[1]), int(sys.argv[2])
    if (there / "countries.parquet").exists():  # which is written last
        print("the lake was filled before", flush=True)
    else:
        write_lake(there, rows=wanted)
        print("the lake is filled", flush=True)
