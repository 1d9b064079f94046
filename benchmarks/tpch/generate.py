"""TPC-H's tables as parquet files: `python generate.py SCALE FOLDER`, in an environment with `requirements.txt`.

DuckDB's own extension makes them, which is built for one release of DuckDB: it is not imported by the benchmark.
"""

import argparse
from importlib.resources import files
from pathlib import Path

import duckdb


def generate(scale: float, folder: Path) -> None:
    """Write the eight tables at a scale: 6,000,000 lines at 1."""
    extension = next(Path(str(files("duckdb_extension_tpch"))).rglob("tpch.duckdb_extension"))
    folder.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as connection:
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"CALL dbgen(sf = {scale})")
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f"COPY {table} TO '{folder / table}.parquet'")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scale", type=float)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    generate(given.scale, given.folder)
