"""The demo's database: Online Retail's sale lines as one DuckDB table, and a public list of countries."""

import shutil
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent

# Public geography, under the names that the retailer uses.
COUNTRIES: dict[str, tuple[str, ...]] = {
    "British Isles": ("United Kingdom", "EIRE", "Channel Islands"),
    "Europe": (
        "Austria",
        "Belgium",
        "Cyprus",
        "Czech Republic",
        "Denmark",
        "European Community",
        "Finland",
        "France",
        "Germany",
        "Greece",
        "Iceland",
        "Italy",
        "Lithuania",
        "Malta",
        "Netherlands",
        "Norway",
        "Poland",
        "Portugal",
        "Spain",
        "Sweden",
        "Switzerland",
    ),
    "Americas": ("Brazil", "Canada", "USA"),
    "Asia and Oceania": ("Australia", "Hong Kong", "Japan", "Singapore"),
    "Middle East and Africa": ("Bahrain", "Israel", "Lebanon", "RSA", "Saudi Arabia", "United Arab Emirates"),
    "Unspecified": ("Unspecified",),
}

_SALES = """
CREATE TABLE sales AS
SELECT
    CAST(CustomerID AS INTEGER) AS customer_id,
    Country AS country,
    InvoiceDate AS invoice_date,
    StockCode AS stock_code,
    CAST(Quantity AS INTEGER) AS quantity,
    CAST(round(Quantity * UnitPrice, 2) AS DECIMAL(12, 2)) AS amount
FROM read_parquet(?)
"""


def build(directory: Path) -> Path:
    """Make `retail.duckdb` in `directory`, replacing any, with the tables sales and countries. Return its path."""
    path = directory / "retail.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as connection:
        connection.execute(_SALES, [str(HERE / "online_retail.parquet")])
        connection.execute("CREATE TABLE countries (name TEXT NOT NULL, region TEXT NOT NULL)")
        rows = [(name, region) for region, names in COUNTRIES.items() for name in names]
        connection.execute(
            "INSERT INTO countries SELECT unnest(?), unnest(?)", list(map(list, zip(*rows, strict=True)))
        )
    return path


def write_countries(path: Path) -> None:
    """Write the public list of countries to a parquet file."""
    rows = [(name, region) for region, names in COUNTRIES.items() for name in names]
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE countries (name TEXT NOT NULL, region TEXT NOT NULL)")
        connection.executemany("INSERT INTO countries VALUES (?, ?)", rows)
        connection.table("countries").write_parquet(str(path))


def install_demo(directory: Path) -> Path:
    """Make the database and the demo's policy in `directory`. Return the policy's path."""
    build(directory)
    return Path(shutil.copyfile(HERE / "keyhole.toml", directory / "keyhole.toml"))
