"""The session settings and functions that a client may use: an allow-list of settings, a deny-list of functions."""

from planner.parser.lexer import Token
from planner.statements.kinds import OWN_NAMES
from planner.statements.statement_refusals import (
    refuse_acting_function,
    refuse_computed_setting,
    refuse_own_name,
    refuse_reading_setting,
    refuse_setting,
)

HARMLESS_SETTINGS = frozenset(
    {
        "application_name",
        "backslash_quote",
        "bytea_output",
        "client_encoding",
        "client_min_messages",
        "constraint_exclusion",
        "cursor_tuple_fraction",
        "datestyle",
        "default_transaction_deferrable",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "escape_string_warning",
        "extra_float_digits",
        "geqo",
        "idle_in_transaction_session_timeout",
        "idle_session_timeout",
        "intervalstyle",
        "jit",
        "lc_messages",
        "lc_monetary",
        "lc_numeric",
        "lc_time",
        "lock_timeout",
        "plan_cache_mode",
        "quote_all_identifiers",
        "row_security",
        "search_path",
        "standard_conforming_strings",
        "statement_timeout",
        "synchronize_seqscans",
        "time zone",
        "timezone",
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
        "transaction_timeout",
        "xmlbinary",
        "xmloption",
    }
)
_ACTING = frozenset(
    {
        "currval",
        "lastval",
        "loread",
        "lowrite",
        "nextval",
        "pg_cancel_backend",
        "pg_export_snapshot",
        "pg_import_system_collations",
        "pg_notify",
        "pg_prewarm",
        "pg_promote",
        "pg_reload_conf",
        "pg_rotate_logfile",
        "pg_signal_backend",
        "pg_stat_file",
        "pg_stop_backup",
        "pg_switch_wal",
        "pg_terminate_backend",
        "setseed",
        "setval",
        "ts_rewrite",
        "ts_stat",
    }
)
_ACTING_PREFIXES = (
    "binary_upgrade_",
    "brin_",
    "cursor_to_xml",
    "database_to_xml",
    "dblink",
    "gin_clean_",
    "lo_",
    "pg_advisory_",
    "pg_backup_",
    "pg_copy_",
    "pg_create_",
    "pg_drop_",
    "pg_extension_",
    "pg_file_",
    "pg_log_",
    "pg_logical_",
    "pg_ls_",
    "pg_read_",
    "pg_replication_",
    "pg_restore_",
    "pg_start_",
    "pg_stat_reset",
    "pg_stop_",
    "pg_sync_",
    "pg_try_advisory_",
    "pg_wal_",
    "query_to_xml",
    "schema_to_xml",
    "table_to_xml",
)


def check_setting(name: str, value: tuple[Token, ...], *, position: int) -> None:
    """Raise KH102 for a setting of PostgreSQL that is not harmless. `keyhole.` settings are checked elsewhere."""
    if name not in HARMLESS_SETTINGS:
        raise refuse_setting(name, position=position)
    if not is_harmless(name, "".join(token.value for token in value)):
        raise refuse_reading_setting(name, position=position)


def is_harmless(name: str, value: str) -> bool:
    """Return True if a client may set this value of a PostgreSQL setting, given by its lower-case name.

    SET, set_config() and connection start are treated alike.
    """
    if name == "standard_conforming_strings":
        return value.lower() in ("on", "true", "1")
    return name in HARMLESS_SETTINGS


def check_functions(tokens: tuple[Token, ...]) -> None:
    """Raise KH102 for a call of a function that acts on the server or runs text as SQL. Functions are known by name."""
    for index in range(len(tokens) - 1):
        if tokens[index + 1].value == "(" and tokens[index + 1].kind == "symbol" and tokens[index].is_name:
            _check_call(tokens, index)


def _check_call(tokens: tuple[Token, ...], index: int) -> None:
    called = tokens[index]
    if called.value == "set_config":
        _check_set_config(tokens, index)
    elif called.value.startswith("pg_advisory_unlock"):
        return
    elif called.value in _ACTING or called.value.startswith(_ACTING_PREFIXES):
        raise refuse_acting_function(called)


def _check_set_config(tokens: tuple[Token, ...], index: int) -> None:
    at = tokens[index].start + 1
    literal = index + 3 < len(tokens) and tokens[index + 2].kind == "string" and tokens[index + 3].is_symbol(",")
    if not literal:
        raise refuse_computed_setting(position=at)
    name = tokens[index + 2].value.lower()
    if not name.startswith("keyhole."):
        check_setting(name, _read_plain_text(tokens[index + 4 :]), position=at)


def _read_plain_text(value: tuple[Token, ...]) -> tuple[Token, ...]:
    """Return the argument that begins here if it is a plain text. Return nothing if it has to be computed."""
    plain = len(value) > 1 and value[0].kind == "string" and value[1].is_symbol(",")
    return value[:1] if plain else ()


def check_own_names(tokens: tuple[Token, ...]) -> None:
    """Raise KH404 for a statement or cursor name that Keyhole uses itself.

    No client may run the statements that Keyhole keeps under these names.
    """
    for token in tokens:
        if token.kind == "quoted" and token.value.startswith(OWN_NAMES):
            raise refuse_own_name(position=token.start + 1)
