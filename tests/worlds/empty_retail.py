"""The tables of the catalog `retail` in PostgreSQL without their rows, as a shadow has them."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.worlds.retail import retail


@contextmanager
def empty_retail(url: str, *, schema: str) -> Iterator[psycopg.Connection]:
    """A connection to a schema of its own: private tables are empty, the public table has its rows."""
    with psycopg.connect(url, autocommit=True) as connection:
        catalog = retail()
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path TO {schema}".encode())
        relations = [(table.name, table.columns) for table in catalog.tables]
        relations += [(public.name, public.columns) for public in catalog.public_tables]
        for name, columns in relations:
            body = ", ".join(f'"{column.name}" {column.declared}' for column in columns)
            connection.execute(f'CREATE TABLE "{name}" ({body})'.encode())
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO regions VALUES (%s, %s)", catalog.public_tables[0].rows)
        yield connection
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())
