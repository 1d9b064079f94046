"""A table of very many keys in DuckDB, and a question about them."""

from pathlib import Path

import duckdb

from proxy.cli.check import check

POLICY = """\
[source]
url = "duckdb:///keys.duckdb"
[ledger]
url = "sqlite:///keyhole.db"
[limits]
max_keys = 10_000_000
statement_timeout_ms = 600_000
[budget]
epsilon_per_predicate = 400
epsilon_per_query = 100
[tables.lines]
privacy_unit = "row"
refresh = "static"
[tables.lines.columns.place]
key = {{ range = [1, {places}] }}
[tables.lines.columns.product]
key = {{ range = [1, {products}] }}
[tables.lines.columns.amount]
bounds = [0, 10]
"""
QUESTION = "SELECT place, product FROM lines GROUP BY place, product HAVING count(*) > 4 AND sum(amount) > 9"


def lay_out(directory: Path, *, places: int, products: int, rows: int) -> Path:
    """The policy of a table whose keys have between none and a few rows, checked."""
    with duckdb.connect(str(directory / "keys.duckdb")) as owner:
        owner.execute(
            f"CREATE TABLE lines AS SELECT CAST(1 + hash(i) % {places} AS integer) AS place, "
            f"CAST(1 + hash(i + 1) % {products} AS integer) AS product, CAST(i % 7 AS integer) AS amount "
            f"FROM range({rows}) AS t(i)"
        )
    path = directory / "keyhole.toml"
    path.write_text(POLICY.format(places=places, products=products), encoding="utf-8")
    check(path, confirm=False)
    return path
