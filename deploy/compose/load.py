"""Fills the sample source once: python -m deploy.compose.load, with SOURCE_URL and KEYHOLE_SOURCE_PASSWORD set.

SOURCE_URL is the owner's; KEYHOLE_SOURCE_PASSWORD will be that of `keyhole_reader`, who can read and nothing else.
"""

import os
import tempfile
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql

from deploy.demo import build
from proxy.sources.open import ROLE_CONNECTIONS

HERE = Path(__file__).resolve().parent
READER = "keyhole_reader"
_ROLE = "CREATE ROLE {} LOGIN PASSWORD {} NOSUPERUSER NOCREATEDB NOCREATEROLE NOINHERIT CONNECTION LIMIT {}"
_GRANTS = (
    "GRANT USAGE ON SCHEMA public TO {}",
    "GRANT SELECT ON sales, countries TO {}",
    "GRANT USAGE, CREATE ON SCHEMA keyhole_scratch TO {}",
    "ALTER ROLE {} SET default_transaction_read_only = on",
)


def load_tables(url: str, *, reader_password: str) -> bool:
    """Create and fill the tables in one transaction. Return False if they exist already."""
    with psycopg.connect(url) as owner:
        if owner.execute("SELECT to_regclass('public.sales') IS NOT NULL").fetchone() == (True,):
            return False
        owner.execute((HERE / "source.sql").read_bytes())
        _fill_tables(owner)
        owner.execute(
            sql.SQL(_ROLE).format(sql.Identifier(READER), sql.Literal(reader_password), sql.Literal(ROLE_CONNECTIONS))
        )
        for grant in _GRANTS:
            owner.execute(sql.SQL(grant).format(sql.Identifier(READER)))
    return True


def _fill_tables(owner: psycopg.Connection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = build.build(Path(folder))
        with duckdb.connect(str(database), read_only=True) as demo:
            for table in ("sales", "countries"):
                rows = Path(folder) / f"{table}.csv"
                demo.execute(f"COPY {table} TO '{rows}' (HEADER false)")
                with owner.cursor().copy(f"COPY {table} FROM STDIN (FORMAT csv)") as copy, rows.open("rb") as lines:
                    while part := lines.read(1 << 16):
                        copy.write(part)


if __name__ == "__main__":
    done = load_tables(os.environ["SOURCE_URL"], reader_password=os.environ["KEYHOLE_SOURCE_PASSWORD"])
    print("the sample source is filled" if done else "the sample source was filled before", flush=True)
