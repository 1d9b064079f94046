"""The shadow's schema, built from the catalog: empty private tables, public tables with rows, a role for each analyst.

Guarantee: the analysts' roles can name every exposed relation, and read only public ones. A SELECT from any other
relation fails. Roles can create nothing, not even temporary objects, so no name can change its meaning.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256

import psycopg
import structlog
from psycopg import sql

from accountant.store.deadline import limit_waits
from accountant.store.punctual import PunctualConnection
from planner.catalog.catalog import BandColumn, Catalog, Column, PublicTable, SqlType, StoredQuestion, Table, Value
from planner.catalog.key_space import format_value, quote_in_row
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError
from planner.extract.extract import declare_monitor
from planner.extract.virtual_relations import VIRTUAL_RELATIONS, VIRTUAL_SCHEMA
from planner.parser.lexer import spell_name
from planner.scope.owner_bands import describe_bands, write_aggregate, write_band
from planner.statements.stored_parameters import fill_in_defaults
from proxy.shadow.address import OWNER, ShadowAddress
from proxy.shadow.reviewed import check_functions_reviewed
from proxy.shadow.validity import GROUP as GROUP
from proxy.shadow.validity import check_showable

log = structlog.get_logger("keyhole.shadow")
UNANSWERED = f"{VIRTUAL_SCHEMA}.unanswered"
"""A function that raises: what a portal runs whose question Keyhole has not answered."""
_UNQUALIFIED = f"{VIRTUAL_SCHEMA}.unqualified"
"""Another: what the views under `keyhole.` read, which Keyhole fills where they are named in full."""
_SCHEMA_COMMENT = (
    "what Keyhole tells of your session: budget, queries, answers, settings, domains, errors, monitors, alerts"
)
_LONGEST_S = 600.0  # for the schema and all rows of public tables, from memory: what takes longer hangs
_TOLD_S = 2.0  # between lines of the log on how far a copy is: less would be noise, more would seem to hang
_LOOKED_AT = 10_000  # rows between looks at the clock
COUNTERS = ("pg_stat_database", "pg_stat_database_conflicts")  # views with one row for each database
_INDEXED_ROWS = 10_000  # of a public table: fewer are read within milliseconds, once for each row that looks them up
_LAYOUT = "14"
MOST_LISTED = 8  # values of a key in its comment, which clients print beside every column
MOST_LISTED_CHARACTERS = 80  # of them together: a line of a terminal
_TYPE = re.compile(r'[a-z_"][a-z0-9_ ".]*(\(\s*\d+\s*(,\s*\d+\s*)?\))?[a-z ]*(\[\])*', re.IGNORECASE)

FORBIDDEN_FUNCTIONS = (
    r"^(lo_.*|lo(read|write)|pg_notify|pg_logical_emit_message|pg_export_snapshot"
    r"|(query|table|schema|database|cursor)_to_xml(schema|_and_xmlschema)?|ts_stat|ts_rewrite"
    r"|pg_(terminate|cancel)_backend|pg_read_.*|pg_ls_.*|pg_stat_file|pg_import_system_collations"
    r"|pg_stat_reset.*|pg_create_.*|pg_drop_.*|pg_(try_)?advisory_(xact_)?lock.*|pg_lock_status"
    # what PostgreSQL itself refuses to most, each by a check of its own
    r"|binary_upgrade_.*|brin_(de)?summarize_.*|gin_clean_pending_list|currtid2|pg_(clear|restore)_.*_stats"
    r"|pg_copy_.*|pg_logical_slot_.*|pg_replication_.*|pg_sync_replication_slots|pg_extension_config_dump"
    r"|pg_nextoid|pg_stop_making_pinned_objects|pg_get_sequence_data|pg_get_multixact_members"
    # the machine, and how busy another session is
    r"|pg_control_.*|pg_get_loaded_modules|pg_.*wal_summar.*|pg_isolation_test_session_is_blocked"
    r"|pg_stat_get_backend_(activity.*|io|subxact|wait_event.*|wal|xact_start)"
    # how busy all are together: how many pages of the shadow's tables are read tells which table it was
    r"|pg_stat_get_(db_.*|io|slru|wal|archiver|bgwriter_.*|checkpointer_.*|buf_alloc|recovery_prefetch))$"
)
"""Functions that write, reach or look beyond the session, or run SQL given as text: nobody but the owner may call them.
The locks of another session would reveal which tables it asks about. The others are reviewed one by one
(tests/attacks/reviewed_functions.txt).
"""


def build_schema(address: ShadowAddress, catalog: Catalog) -> bool:
    """Make the shadow show the tables of `catalog`. Return True if anything had to be rebuilt.

    Raise KH002 for an analyst's name or a stored question that PostgreSQL does not accept. Raise KH013 for a server
    whose functions were not reviewed.

    If the catalog's digest, bands or questions have changed, all objects are dropped and made again in one transaction.
    """
    check_showable(catalog)
    _create_database(address, catalog.database)
    bands = [(table.name, table.band_columns) for table in catalog.tables]  # shown, and no part of the digest
    asked = (catalog.stored_questions, catalog.monitors, catalog.source_names)
    stamp = sha256(f"{_LAYOUT}:{catalog.digest}:{bands}:{asked}".encode()).hexdigest()
    with _connect_as_owner(address, catalog.database) as connection:
        built = connection.execute(
            "SELECT obj_description(to_regprocedure(%s), 'pg_proc')", [f"{UNANSWERED}()"]
        ).fetchone()
        if built == (stamp,):
            return False
        check_functions_reviewed(connection)
        with _refuse_as_policy_fault():
            for statement in _write_statements(catalog, connection):
                connection.execute(statement)
        for stored in catalog.stored_questions:
            _declare_relation(connection, f"views.{stored.name}", "stored questions", _write_stored_question(stored))
        for monitor in catalog.monitors:
            _declare_relation(connection, f"monitors.{monitor.name}", "monitors", _write_monitor_view(monitor, catalog))
        for public in catalog.public_tables:
            with _refuse_as_policy_fault():
                _fill_table(connection, public)
        connection.execute(
            sql.SQL("COMMENT ON FUNCTION {} () IS {}").format(_quote_dotted_name(UNANSWERED), sql.Literal(stamp))
        )
    return True


def update_roles(address: ShadowAddress, catalog: Catalog) -> None:
    """Replace the analysts' roles in a shadow that already shows `catalog`. Raise KH002."""
    check_showable(catalog)
    with _connect_as_owner(address, catalog.database) as connection:
        for statement in _write_roles(catalog, connection):
            connection.execute(statement)


@contextmanager
def _refuse_as_policy_fault() -> Iterator[None]:
    """Turn PostgreSQL's errors in the block into KH002, with PostgreSQL's own message.

    The message repeats only names and public values.
    """
    try:
        yield
    except (psycopg.ProgrammingError, psycopg.DataError) as error:
        raise KeyholeError(
            "KH002",
            f"the shadow's PostgreSQL does not take the policy ({error.diag.message_primary or error})",
            hint="Correct the names, types, comments or public values that the message names.",
        ) from None


@contextmanager
def _connect_as_owner(
    address: ShadowAddress, database: str, *, autocommit: bool = False
) -> Iterator[PunctualConnection]:
    """Open a connection as the shadow's owner, with a time limit in case the shadow hangs."""
    with (
        limit_waits(_LONGEST_S),
        PunctualConnection.connect(
            address.make_conninfo(user=OWNER, database=database), autocommit=autocommit
        ) as connection,
    ):
        yield connection


def _create_database(address: ShadowAddress, database: str) -> None:
    with _connect_as_owner(address, "postgres", autocommit=True) as connection:
        if connection.execute("SELECT FROM pg_database WHERE datname = %s", [database]).fetchone() is None:
            # code point order, the same on every machine; where nothing is synced, copying files is the faster strategy
            connection.execute(
                sql.SQL(
                    "CREATE DATABASE {} TEMPLATE template0 ENCODING UTF8 LOCALE_PROVIDER builtin "
                    "BUILTIN_LOCALE 'C.UTF-8' LOCALE 'C' STRATEGY file_copy"
                ).format(sql.Identifier(database))
            )
        for other in ("postgres", "template1"):
            if other != database:
                connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(sql.Identifier(other)))


def _write_statements(catalog: Catalog, connection: psycopg.Connection) -> Iterator[sql.Composed]:
    database, group = sql.Identifier(catalog.database), sql.Identifier(GROUP)
    yield from _write_roles(catalog, connection)
    yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database)
    yield sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(database, group)
    yield from _write_schemas(catalog, connection)
    for table in catalog.tables:
        declared = [(column.name, _find_shown_type(column, connection)) for column in table.columns]
        declared += [(shown.name, BandColumn.DECLARED) for shown in table.band_columns]
        for name in (("public", table.name), *_list_other_names(table, catalog)):
            yield from _write_relation(name, declared, comment=table.comment or _describe_table(table))
            yield from _write_column_comments(table, name)
            yield _grant("REFERENCES", *name)
    for public in catalog.public_tables:
        declared = [(column.name, column.declared) for column in public.columns]
        yield from _write_relation(("public", public.name), declared, comment=public.comment or "public table")
        yield from _write_constraints(public)
        yield _grant("SELECT", "public", public.name)
        for name in _list_other_names(public, catalog):
            yield from _write_second_name(public, name)
    yield sql.SQL(
        "CREATE FUNCTION {} () RETURNS SETOF integer LANGUAGE plpgsql VOLATILE AS $$ BEGIN "
        "RAISE EXCEPTION 'KH103: this portal''s question was not answered' USING ERRCODE = '42501'; END $$"
    ).format(_quote_dotted_name(UNANSWERED))
    yield from _write_virtual_relations()
    yield from _write_median()
    for language in ("sql", "plpgsql"):
        yield sql.SQL("REVOKE USAGE ON LANGUAGE {} FROM PUBLIC").format(sql.Identifier(language))
    forbidden = connection.execute(
        "SELECT oid::regprocedure::text FROM pg_proc "
        "WHERE pronamespace = 'pg_catalog'::regnamespace AND proname ~ %s ORDER BY oid",
        [FORBIDDEN_FUNCTIONS],
    ).fetchall()
    # some two hundred in one statement, which is the faster by a tenth of a second
    functions = sql.SQL(", ").join(sql.SQL(function) for (function,) in forbidden)
    yield sql.SQL("REVOKE EXECUTE ON FUNCTION {} FROM PUBLIC").format(functions)
    yield sql.SQL("REVOKE UPDATE ON {} FROM PUBLIC").format(sql.Identifier("pg_catalog", "pg_settings"))  # a SET too
    yield from _write_zero_counters(connection)


def _write_schemas(catalog: Catalog, connection: psycopg.Connection) -> Iterator[sql.Composed]:
    """Yield SQL that replaces all schemas by empty ones: `public`, Keyhole's, and the source's schemas.

    Names without a schema are looked up in this order, as in the planner.
    """
    known = tuple(dict.fromkeys(("public", *(one.schema for one in catalog.source_names))))
    there = "SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY 1"
    for (schema,) in connection.execute(there).fetchall():
        yield sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(schema))
    for schema in (*known, VIRTUAL_SCHEMA):
        yield sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(schema))
        yield sql.SQL("GRANT USAGE ON SCHEMA {} TO {}").format(sql.Identifier(schema), sql.Identifier(GROUP))
    path = sql.SQL(", ").join(map(sql.Identifier, known))
    database = sql.Identifier(catalog.database)
    yield sql.SQL("SET LOCAL search_path = {}").format(path)  # of stored questions, which are declared after this
    if catalog.source_names:
        yield sql.SQL("ALTER DATABASE {} SET search_path = {}").format(database, path)
    else:
        yield sql.SQL("ALTER DATABASE {} RESET search_path").format(database)


def _list_other_names(table: Table | PublicTable, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the schema and name that a table has in the source, if they differ from its name in the shadow."""
    for one in catalog.source_names:
        if one.table == table.name:
            yield one.schema, one.name


def _write_second_name(public: PublicTable, name: tuple[str, str]) -> Iterator[sql.Composed]:
    """Yield SQL for a view of a public table under its name in the source."""
    relation = sql.Identifier(*name)
    yield sql.SQL("CREATE VIEW {} WITH (security_invoker = true) AS SELECT * FROM {}").format(
        relation, sql.Identifier("public", public.name)
    )
    yield sql.SQL("COMMENT ON VIEW {} IS {}").format(relation, sql.Literal(public.comment or "public table"))
    yield _grant("SELECT", *name)


def _write_zero_counters(connection: psycopg.Connection) -> Iterator[sql.Composed]:
    """Yield SQL for PostgreSQL's statistics views, with zeros in place of counts of all sessions.

    Dashboards read these views. The views are made again without their functions, which a reader would need the right
    to call.
    """
    yield sql.SQL("SET LOCAL allow_system_table_mods = on").format()
    for view in COUNTERS:
        columns = connection.execute(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute "
            "WHERE attrelid = %s::regclass AND attnum > 2 ORDER BY attnum",
            [f"pg_catalog.{view}"],
        ).fetchall()
        zeros = sql.SQL("").join(
            sql.SQL(", {}::{} AS {}").format(
                sql.SQL("NULL" if declared.startswith("timestamp") else "0"), sql.SQL(declared), sql.Identifier(name)
            )
            for name, declared in columns
        )
        yield sql.SQL(
            "CREATE OR REPLACE VIEW {} AS SELECT oid AS datid, datname{} "
            "FROM (SELECT 0::oid AS oid, NULL::name AS datname UNION ALL SELECT oid, datname FROM pg_database) d"
        ).format(sql.Identifier("pg_catalog", view), zeros)
    yield sql.SQL("SET LOCAL allow_system_table_mods = off").format()


def _write_virtual_relations() -> Iterator[sql.Composed]:
    """Yield SQL for views that clients may name, and that fail if they are read. Keyhole itself answers them.

    Tools offer the relations that a role may SELECT, so this right is granted.
    """
    yield sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(VIRTUAL_SCHEMA), sql.Literal(_SCHEMA_COMMENT))
    yield sql.SQL(
        "CREATE FUNCTION {} (relation text) RETURNS SETOF integer LANGUAGE plpgsql VOLATILE AS $$ BEGIN "
        "RAISE EXCEPTION 'KH103: \"%\" is answered by its full name alone', relation USING ERRCODE = '42501', "
        "HINT = 'Write " + VIRTUAL_SCHEMA + ".' || relation || '.'; END $$"
    ).format(_quote_dotted_name(_UNQUALIFIED))
    for relation in VIRTUAL_RELATIONS:
        columns = sql.SQL(", ").join(
            sql.SQL("NULL::{} AS {}").format(sql.SQL(declared), sql.Identifier(name))
            for name, declared in relation.columns
        )
        name = sql.Identifier(VIRTUAL_SCHEMA, relation.name)
        yield sql.SQL("CREATE VIEW {} WITH (security_invoker = true) AS SELECT {} FROM {}({})").format(
            name, columns, _quote_dotted_name(_UNQUALIFIED), sql.Literal(relation.name)
        )
        yield sql.SQL("COMMENT ON VIEW {} IS {}").format(name, sql.Literal(relation.comment))
        yield _grant("SELECT", VIRTUAL_SCHEMA, relation.name)


def _quote_dotted_name(name: str) -> sql.Identifier:
    return sql.Identifier(*name.split("."))


def _write_median() -> Iterator[sql.Composed]:
    """Yield SQL for an aggregate `median`, which PostgreSQL lacks, so that it can parse questions with it."""
    middle = sql.Identifier(VIRTUAL_SCHEMA, "middle")
    yield sql.SQL(
        "CREATE FUNCTION {} (double precision[]) RETURNS double precision LANGUAGE sql IMMUTABLE "
        "RETURN (SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY v) FROM unnest($1) AS u(v))"
    ).format(middle)
    yield sql.SQL(
        "CREATE AGGREGATE public.median (double precision) "
        "(SFUNC = array_append, STYPE = double precision[], FINALFUNC = {})"
    ).format(middle)


def _write_roles(catalog: Catalog, connection: psycopg.Connection) -> Iterator[sql.Composed]:
    """Yield SQL for one role for each analyst, and for a group of these roles. The group has the grants."""
    group = sql.Identifier(GROUP)
    existing = {name for (name,) in connection.execute("SELECT rolname FROM pg_roles").fetchall()}
    members = {
        name
        for (name,) in connection.execute(
            "SELECT m.rolname FROM pg_auth_members JOIN pg_roles m ON m.oid = member "
            "JOIN pg_roles g ON g.oid = roleid WHERE g.rolname = %s",
            [GROUP],
        ).fetchall()
    }
    if GROUP not in existing:
        yield sql.SQL("CREATE ROLE {} NOLOGIN").format(group)
    wanted = {analyst.name for analyst in catalog.analysts}
    for name in sorted(members - wanted):
        yield sql.SQL("DROP OWNED BY {}").format(sql.Identifier(name))  # the rights of a role: roles own nothing
        yield sql.SQL("DROP ROLE {}").format(sql.Identifier(name))
    for name in sorted(wanted):
        role = sql.Identifier(name)
        if name not in existing:
            yield sql.SQL("CREATE ROLE {}").format(role)
        yield sql.SQL(
            "ALTER ROLE {} LOGIN INHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS "
            "PASSWORD NULL CONNECTION LIMIT -1"
        ).format(role)
        yield sql.SQL("GRANT {} TO {} WITH INHERIT TRUE, SET FALSE, ADMIN FALSE").format(group, role)


def _write_relation(
    name: tuple[str, str], columns: Iterable[tuple[str, str]], *, comment: str
) -> Iterator[sql.Composed]:
    declared = sql.SQL(", ").join(_write_column(*column) for column in columns)
    yield sql.SQL("CREATE TABLE {} ({})").format(sql.Identifier(*name), declared)
    yield sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(*name), sql.Literal(comment))


def _write_constraints(public: PublicTable) -> Iterator[sql.Composed]:
    """Yield SQL for the public facts about a public table's columns: NOT NULL and UNIQUE.

    The first column with both is declared as the primary key.
    """
    table = sql.Identifier("public", public.name)
    for column in public.not_null_columns:
        yield sql.SQL("ALTER TABLE {} ALTER COLUMN {} SET NOT NULL").format(table, sql.Identifier(column))
    primary = next((column for column in public.unique if column in public.not_null_columns), None)
    for column in public.unique:
        kind = sql.SQL("PRIMARY KEY" if column == primary else "UNIQUE")
        yield sql.SQL("ALTER TABLE {} ADD {} ({})").format(table, kind, sql.Identifier(column))


def _write_column(name: str, declared: str) -> sql.Composed:
    if not _TYPE.fullmatch(declared):
        raise KeyholeError("KH006", f'the type "{declared}" of column "{name}" cannot be declared')
    return sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(declared))


def _find_shown_type(column: Column, connection: psycopg.Connection) -> str:
    """Return the type that a column has in the shadow.

    A type that only the source knows, and that no question can use, is shown as text.
    """
    if column.sql_type is not SqlType.OTHER:
        return column.declared
    if not _TYPE.fullmatch(column.declared):
        return "text"
    known = connection.execute("SELECT to_regtype(%s) IS NOT NULL", [column.declared]).fetchone()
    return column.declared if known == (True,) else "text"


def _write_column_comments(table: Table, name: tuple[str, str]) -> Iterator[sql.Composed]:
    for column in table.columns:
        comment = "; ".join(part for part in (column.comment, *_list_column_roles(table, column)) if part)
        yield sql.SQL("COMMENT ON COLUMN {} IS {}").format(
            sql.Identifier(*name, column.name), sql.Literal(comment or "filter only")
        )
    for shown in table.band_columns:
        aggregate = write_aggregate(shown, table)
        comment = f"band of {aggregate} in a group, by max({spell_name(shown.name)}): {describe_bands(shown.bands)}"
        yield sql.SQL("COMMENT ON COLUMN {} IS {}").format(sql.Identifier(*name, shown.name), sql.Literal(comment))


def _list_column_roles(table: Table, column: Column) -> Iterator[str]:
    """Yield what a column may be used for, in the words of the policy."""
    if column.domain is not None:
        yield f"key, public domain of {len(column.domain):,} values{list_few_values(column.domain)}"
    if column.bounds is not None:
        low, high = column.bounds
        yield f"measure, clipped to {format_value(low)}..{format_value(high)}"
    if column.per_unit is not None:
        low, high = column.per_unit
        yield f"total clipped to {format_value(low)}..{format_value(high)} per {table.unit_text}"
    for shown in table.band_columns:
        if shown.measure == column.name:
            yield f"bands of its {shown.bands.aggregate}: ask {write_band(write_aggregate(shown, table), shown.bands)}"
    if column.name in table.unit:
        yield "privacy unit" if len(table.unit) == 1 else "part of the privacy unit"


def list_few_values(domain: Sequence[Value]) -> str:
    """Return the values of a key as one text after a colon, if there are few. Otherwise return "".

    Each value is written as in the ledger.
    """
    listed = ", ".join(quote_in_row(format_value(value)) for value in domain) if len(domain) <= MOST_LISTED else ""
    shown = 0 < len(listed) <= MOST_LISTED_CHARACTERS and listed.isprintable()
    return f": {listed}" if shown else ""


def _describe_table(table: Table) -> str:
    return f"private table, privacy unit: {table.unit_text}; ask with GROUP BY ... HAVING"


def _declare_relation(
    connection: psycopg.Connection, place: str, kind: str, statements: Iterable[sql.Composed]
) -> None:
    """Create the view of a stored question or a monitor. Raise KH002 if PostgreSQL does not accept its SQL."""
    try:
        for statement in statements:
            connection.execute(statement)
    except (psycopg.ProgrammingError, psycopg.DataError) as error:
        raise KeyholeError(
            "KH002",
            f"{place}.sql: {error.diag.message_primary}",
            hint=f"Correct it. keyhole check lists everything else that is wrong with {kind}.",
        ) from None


def _write_stored_question(stored: StoredQuestion) -> Iterator[sql.Composed]:
    """Yield SQL for a view that clients may name but not read, since no role may read its tables.

    Tools offer the relations that a role may SELECT, so this right is granted. `security_invoker` keeps it without
    effect.
    """
    name = sql.Identifier("public", stored.name)
    question = sql.SQL(fill_in_defaults(stored).rstrip().rstrip(";"))
    yield sql.SQL("CREATE VIEW {} WITH (security_invoker = true) AS {}").format(name, question)
    yield sql.SQL("COMMENT ON VIEW {} IS {}").format(name, sql.Literal(stored.comment or "stored question"))
    yield _grant("SELECT", "public", stored.name)


def _write_monitor_view(monitor: Monitor, catalog: Catalog) -> Iterator[sql.Composed]:
    """Yield SQL for a view that only the monitor's own analysts may name. Keyhole itself answers it.

    Raise KH002 if the monitor's SQL is not a question. All roles can see the view and its columns in PostgreSQL's
    catalog, as for every table.
    """
    try:
        relation = declare_monitor(monitor, catalog)
    except KeyholeError as error:
        hint = "Mend it; keyhole check says what else is wrong with monitors."
        raise KeyholeError("KH002", f"monitors.{monitor.name}.sql: {error.message}", hint=hint) from None
    name = sql.Identifier("public", monitor.name)
    columns = sql.SQL(", ").join(
        sql.SQL("NULL::{} AS {}").format(sql.SQL(declared), sql.Identifier(column))
        for column, declared in relation.columns
    )
    body = sql.SQL("SELECT {} FROM {}()").format(columns, _quote_dotted_name(UNANSWERED))
    shown, behind = relation.wrapping_sql
    if shown:  # the types of computed keys are PostgreSQL's
        body = sql.SQL("SELECT * FROM {}({}){} AS shown").format(sql.SQL(shown), body, sql.SQL(behind))
    yield sql.SQL("CREATE VIEW {} WITH (security_invoker = true) AS {}").format(name, body)
    yield sql.SQL("COMMENT ON VIEW {} IS {}").format(name, sql.Literal(relation.comment))
    for analyst in catalog.analysts:
        if analyst.name in monitor.analysts:
            yield _grant("SELECT", "public", monitor.name, to=analyst.name)


def _grant(privilege: str, schema: str, relation: str, *, to: str = GROUP) -> sql.Composed:
    name = sql.Identifier(schema, relation)
    return sql.SQL("GRANT {} ON {} TO {}").format(sql.SQL(privilege), name, sql.Identifier(to))


def _fill_table(connection: psycopg.Connection, table: PublicTable) -> None:
    name = sql.Identifier("public", table.name)
    columns = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    with connection.cursor() as cursor:
        with cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(name, columns)) as copy:
            told = time.monotonic()
            for number, row in enumerate(table.rows):
                copy.write_row(row)
                if number % _LOOKED_AT == 0 and time.monotonic() - told > _TOLD_S:
                    told = time.monotonic()
                    log.info("copying a public table", table=table.name, rows=number, of=len(table.rows))
        for column in _list_indexed_columns(table):
            cursor.execute(sql.SQL("CREATE INDEX ON {} ({})").format(name, sql.Identifier(column)))
        cursor.execute(sql.SQL("ANALYZE {}").format(name))


def _list_indexed_columns(table: PublicTable) -> Iterator[str]:
    """Yield the columns of a large table by which rows are usually looked up, for indexes.

    Columns that already have a constraint's index are left out.
    """
    if len(table.rows) > _INDEXED_ROWS:
        for column in table.columns:
            if column.sql_type is SqlType.INTEGER and column.name not in table.unique:
                yield column.name
