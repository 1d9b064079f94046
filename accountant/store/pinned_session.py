"""The settings of a PostgreSQL session on which Keyhole depends, whatever the server, database and role default to.

The first is isolation. A question that waits for a load's lock must read the rows that the load committed. Under
REPEATABLE READ it would read the rows from the start of its transaction. The other settings decide how values are
read, compared and written, which rows a scan gives, and what ends a statement before Keyhole does.
"""

from collections.abc import Mapping

from accountant.errors import LedgerUnavailable
from accountant.store.punctual import PunctualConnection

PINNED: Mapping[str, str] = {
    "default_transaction_isolation": "read committed",
    "default_transaction_deferrable": "off",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",  # types and relations are known by their names as the catalog spells them
    "jit": "off",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""The values in every session to a source and to a ledger, by name. PostgreSQL 9.6 has all of them except jit."""
_WHERE_KNOWN: Mapping[str, str] = {
    "array_nulls": "on",
    "gin_fuzzy_search_limit": "0",  # any other leaves out rows at random
    "idle_session_timeout": "0",
    "timezone_abbreviations": "Default",
    "transaction_timeout": "0",
    "transform_null_equals": "off",
    "xmlbinary": "base64",
}
"""Settings that a server may not have: older ones, and others that speak PostgreSQL's protocol."""

# the names in pg_settings are spelled as the server likes
_SET = """
SELECT set_config(name, value, false) FROM unnest(%s::text[], %s::text[]) AS wanted(name, value)
WHERE name = ANY (%s::text[]) OR lower(name) IN (SELECT lower(s.name) FROM pg_settings AS s)
"""
_PLACE = """
SELECT (SELECT source FROM pg_settings WHERE name = 'search_path'), pg_catalog.to_regclass(%s)::oid::text
"""
LEDGER_PATH = '"$user", public'
"""PostgreSQL's own default, where a ledger's tables are looked for unless its URL names another path."""
OTHER_SCHEMA = (
    "the role's own search_path leads to another ledger than public does; say in ledger.url where it is: "
    "?options=-csearch_path%3DSCHEMA"
)


def pin_settings(connection: PunctualConnection, settings: Mapping[str, str]) -> None:
    """Set `PINNED`, then `settings`, for the whole session. The connection must be in autocommit.

    Raises:
        psycopg.Error: if the server rejects a setting.
    """
    connection.execute("SET statement_timeout = 0")  # first: a role's own would end what comes next
    wanted = {**_WHERE_KNOWN, **PINNED, **settings}
    required = [name for name in (*PINNED, *settings) if name != "jit"]
    connection.execute(_SET, (list(wanted), list(wanted.values()), required))


def pin_ledger_session(connection: PunctualConnection, *, table: str) -> None:
    """Pin the session's settings and its search_path to the schema that has the ledger's table `table`.

    So the same URL leads to the same tables even if the role's defaults change. A search_path in the URL is kept.

    Raises:
        LedgerUnavailable: if the role's own search_path leads to another ledger. A new empty one would be made here.
    """
    source, before = _find_search_path(connection, table)
    own_path = {} if source == "client" else {"search_path": LEDGER_PATH}
    # what a policy of rows would hide from the ledger is an error then, not a smaller balance
    pin_settings(connection, {**own_path, "default_transaction_read_only": "off", "row_security": "off"})
    _, after = _find_search_path(connection, table)
    if before not in (None, after):
        raise LedgerUnavailable(OTHER_SCHEMA)


def _find_search_path(connection: PunctualConnection, table: str) -> tuple[str, str | None]:
    """Return the source of the session's search_path, and the table that it leads to, if any."""
    (found,) = connection.execute(_PLACE, (table,)).fetchall()
    return found[0], found[1]
