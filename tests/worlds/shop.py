"""A made-up shop in any engine: counts so far from the tests' thresholds that answers are practically certain.

Sales per store: north 4000, south 3000, west 200, east 50, closed none. Visits per ward: A 900, B 600, C 30, D none.
"""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import psycopg

STATEMENTS = (
    """CREATE TABLE sales (id integer, store text, day date, amount numeric(10, 2), quantity integer, note text,
        score double precision)""",
    "INSERT INTO sales SELECT g, 'north', DATE '2026-01-01' + (g % 28)::integer, 30, g % 7, 'n', 1.5"
    " FROM generate_series(1, 4000) AS s(g)",
    "INSERT INTO sales SELECT g, 'south', DATE '2026-02-01' + (g % 28)::integer, 30, g % 7, 's', 1.5"
    " FROM generate_series(4001, 7000) AS s(g)",
    "INSERT INTO sales SELECT g, 'west', DATE '2026-02-01' + (g % 28)::integer, 20, g % 7, 'w', 1.5"
    " FROM generate_series(7001, 7200) AS s(g)",
    "INSERT INTO sales SELECT g, 'east', DATE '2026-03-01' + (g % 28)::integer, 20, g % 7, NULL, 1.5"
    " FROM generate_series(7201, 7250) AS s(g)",
    "CREATE TABLE visits (patient_id integer, ward text, cost numeric(10, 2))",
    "INSERT INTO visits SELECT g, 'A', 100 FROM generate_series(1, 900) AS s(g)",
    "INSERT INTO visits SELECT g, 'B', 100 FROM generate_series(1, 600) AS s(g)",
    "INSERT INTO visits SELECT g, 'C', 100 FROM generate_series(1, 30) AS s(g)",
    "CREATE TABLE stores (name text, region text)",
    "INSERT INTO stores VALUES ('north', 'upper'), ('south', 'lower'), ('west', 'lower'), ('east', NULL),"
    " ('closed', 'upper')",
)

POLICY = """\
[source]
url = "{source}"

[ledger]
url = "{ledger}"
timeout_ms = {ledger_timeout_ms}

[accuracy]
fnr = 0.05
fpr = 0.10
tolerance = "5%"
mechanism = "keyhole"  # one loss for every group, and far groups are certain
mechanisms = ["keyhole", "progressive", "ppwlm", "mim_progressive", "probe", "svt", "svt_generalised"]

[budget]
epsilon_per_predicate = {per_predicate}
epsilon_per_unit = {per_unit}
epsilon_per_query = {per_query}

[limits]
statement_timeout_ms = {timeout_ms}

[server]
database = "shop"

[tables.sales]
privacy_unit = "row"
refresh = "explicit"
immutable = ["store"]

[tables.sales.columns.store]
key = {{ values_from = "stores.name" }}

[tables.sales.columns.month]
expression = "date_trunc('month', day)"
key = {{ range = ["2026-01-01", "2026-04-01"], step = "1 month" }}

[tables.sales.columns.amount]
bounds = [0, 100]
grid = 0.01
bands = [2037, 60037]

[tables.sales.columns.quantity]

[tables.sales.columns.note]

[tables.sales.columns.score]

[tables.visits]
privacy_unit = "patient_id"
max_groups_per_unit = 2
rows_per_unit = 3
refresh = "explicit"
bands = {{ units = [107, 307] }}

[tables.visits.columns.ward]
key = {{ values = ["A", "B", "C", "D"] }}

[tables.visits.columns.cost]
bounds = [0, 200]
grid = 1
per_unit = [0, 400]

[tables.stores]
public = true

[views.busy]
sql = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1000"

[views.status]
sql = '''SELECT store, sum(amount) > 30037 AS big, width_bucket(sum(amount), ARRAY[2037, 60037]) AS band,
  CASE WHEN count(*) > 737 THEN 'busy' ELSE 'calm' END AS traffic FROM sales GROUP BY store'''
comment = "every store, with what it sells"

[views.reached]
sql = "SELECT ward, count(DISTINCT patient_id) > :goal AS reached, max(units_band) AS band FROM visits GROUP BY ward"
parameters = {{ goal = 137 }}

[views.selling]
sql = "SELECT store FROM sales WHERE quantity >= :least GROUP BY store HAVING count(*) > :threshold"
parameters = {{ threshold = 1000, least = 0 }}
comment = "stores with more sales than keyhole.param.selling.threshold"

[analysts.ada]
password = "{verifier}"

[analysts.bob]
password = "{verifier}"
epsilon_per_predicate = {bobs}
"""

BUSY = "SELECT store FROM sales GROUP BY store HAVING count(*) > 1000"
BUSY_STORES = [("north",), ("south",)]
WARDS = "SELECT ward FROM visits GROUP BY ward HAVING count(DISTINCT patient_id) > 300 AND sum(cost) > 20000"
BUSY_WARDS = [("A",), ("B",)]


def fill_duckdb(path: Path, *further: str) -> None:
    """Make the shop as a DuckDB file, then run `further` statements on it: once in each process, copied after that."""
    path.write_bytes(_fill_duckdb(further))


@cache
def _fill_duckdb(further: tuple[str, ...]) -> bytes:
    with TemporaryDirectory(prefix="keyhole-") as folder:
        path = Path(folder) / "shop.duckdb"
        with duckdb.connect(str(path)) as connection:
            for statement in (*STATEMENTS, *further):
                connection.execute(statement)
        return path.read_bytes()


def fill_postgres(url: str, *further: str) -> None:
    """Make the shop in an empty PostgreSQL database, then run `further` statements on it."""
    with psycopg.connect(url) as connection:
        for statement in (*STATEMENTS, *further):
            connection.execute(statement.encode())
