"""A PostgreSQL role and database whose defaults are all other than Keyhole needs."""

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

OTHER = {
    "default_transaction_isolation": "repeatable read",
    "default_transaction_deferrable": "on",
    "DateStyle": "German",
    "IntervalStyle": "sql_standard",
    "TimeZone": "Asia/Kathmandu",
    "bytea_output": "escape",
    "client_encoding": "LATIN1",
    "extra_float_digits": "-10",
    "standard_conforming_strings": "off",
    "quote_all_identifiers": "on",
    "jit": "on",
    "lock_timeout": "100",
    "idle_in_transaction_session_timeout": "200",
    "statement_timeout": "150",
    "array_nulls": "off",
    "gin_fuzzy_search_limit": "1",
    "timezone_abbreviations": "India",
    "transform_null_equals": "on",
    "xmlbinary": "hex",
    "search_path": "elsewhere",
}
"""By name, a value in a role's or a server's defaults."""


@contextmanager
def contrary_role(url: str, name: str, *, read_only: bool, row_security: bool) -> Iterator[str]:
    """The URL of a superuser's database of that name, half of whose defaults are the database's and half the role's."""
    other = {
        **OTHER,
        "default_transaction_read_only": "on" if read_only else "off",
        "row_security": "on" if row_security else "off",
    }
    place = sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as server:
        clear = ("DROP DATABASE IF EXISTS {} WITH (FORCE)", "DROP ROLE IF EXISTS {}")
        for statement in (*clear, "CREATE DATABASE {}", "CREATE ROLE {} SUPERUSER LOGIN PASSWORD 'x'"):
            server.execute(sql.SQL(statement).format(place))
        for number, (setting, value) in enumerate(other.items()):
            kind = sql.SQL("ROLE" if number % 2 else "DATABASE")
            to = (sql.SQL(",").join(map(sql.Literal, value.split(","))),)
            server.execute(sql.SQL("ALTER {} {} SET {} = {}").format(kind, place, sql.Identifier(setting), *to))
        try:
            parts = urlsplit(url)
            login = f"{name}:x@{parts.netloc.rpartition('@')[2]}"
            yield parts._replace(path=f"/{name}", netloc=login).geturl()
        finally:
            for statement in clear:
                server.execute(sql.SQL(statement).format(place))
