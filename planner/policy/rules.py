"""What must hold between the keys of a policy, whatever the source contains."""

import re
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from ipaddress import ip_network
from math import isfinite
from pathlib import PurePath
from typing import TypeAlias

from planner.catalog.derived_columns import parse_derivation
from planner.catalog.fault import Fault, nearest
from planner.catalog.refresh import parse_refresh
from planner.catalog.tolerance import tolerances
from planner.errors import KeyholeError
from planner.policy.cap_rules import caps_of_another, caps_that_never_matter
from planner.policy.certificate_rules import certificates_not_asked_for
from planner.policy.sections import AnalystSection, ColumnSection, KeySection, PolicyDocument, TableSection
from planner.policy.stored_questions import numbered

Broken: TypeAlias = Iterator[tuple[tuple[str, ...], Fault]]

FILES = {".parquet": "read_parquet", ".csv": "read_csv"}  # relations that are files, and how DuckDB reads them
NAME_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')
LARGEST = 2**53  # bounds in grid units stay exact in double precision
_LARGEST_TOTAL = 2**62  # and a unit's total in a bigint
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_RESERVED = frozenset({"keyhole", "public", "none", "postgres", "information_schema"})
_VERIFIER = re.compile(r"SCRAM-SHA-256\$\d{1,9}:[A-Za-z0-9+/]+=*\$[A-Za-z0-9+/]{43}=:[A-Za-z0-9+/]{43}=")
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")
_TOKEN = re.compile(r"[0-9a-f]{64}")
_TABLE_BOUNDING = ("max_groups_per_unit", "rows_per_unit", "max_rows_per_group")
_TABLE_CAPS = ("epsilon_per_table", "approval_above_epsilon")


def broken(policy: PolicyDocument) -> Broken:
    """Every broken rule with the dotted key where it shows, the most basic first."""
    yield from _names(policy)
    yield from _source(policy)
    yield from _rest(policy)
    yield from _accuracy(policy)
    for name, table in policy.tables.items():
        place = ("tables", name)
        yield from _public_table(place, table) if table.public else _private_table(place, table, policy)
    yield from _budget(policy)
    yield from _tokens(policy)
    yield from certificates_not_asked_for(policy)
    for name, analyst in policy.analysts.items():
        yield from _analyst(("analysts", name), analyst)


def warnings(policy: PolicyDocument) -> tuple[str, ...]:
    """What is allowed but surely not meant, one sentence each."""
    said = list(caps_that_never_matter(policy))
    for name, table in policy.private_tables.items():
        if not any(column.key for column in table.columns.values()):
            said.append(f"tables.{name} has no column with a key domain: no question can be asked of it.")
        if table.refresh == "live":
            said.append(f"tables.{name} is live: every question is new, no answer is reused, and each is paid again.")
    return tuple(said)


def _source(policy: PolicyDocument) -> Broken:
    if policy.source.scratch is not None and policy.source.url.startswith("duckdb:"):
        hint = "Leave it out: DuckDB keeps rollups in memory."
        yield ("source", "scratch"), Fault("KH002", "is for a PostgreSQL source", hint=hint)


def _rest(policy: PolicyDocument) -> Broken:
    for origin in policy.server.rest.origins:
        if not _ORIGIN.fullmatch(origin):
            hint = (
                'Write scheme, host and port as a browser sends them: "https://lab.example.org". A wildcard is no name.'
            )
            yield ("server", "rest", "origins"), Fault("KH002", "is not an origin", hint=hint)
    for proxy in policy.server.rest.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError:
            hint = 'Write the address that the proxy connects from, or its network: "127.0.0.1", "10.0.0.0/24".'
            yield ("server", "rest", "trusted_proxies"), Fault("KH002", "is not an address", hint=hint)


def _names(policy: PolicyDocument) -> Broken:
    groups: tuple[tuple[str, Iterable[str]], ...] = (
        ("tables", policy.tables),
        ("views", policy.views),
        ("analysts", policy.analysts),
    )
    for group, names in groups:
        for name in names:
            if not _NAME.fullmatch(name) or name.startswith("pg_") or name in _RESERVED:
                hint = "Use lower-case letters, digits and _, at most 63, not pg_..., keyhole or another reserved name."
                yield (group, name), Fault("KH002", "is not a name that PostgreSQL clients can use plainly", hint=hint)
    for name in policy.views:
        if name in policy.tables:
            hint = "Give the stored question a name of its own."
            yield ("views", name), Fault("KH002", "has the name of a table", hint=hint)
    yield from _stored_parameters(policy)
    if not _NAME.fullmatch(policy.server.database):
        hint = "Use lower-case letters, digits and _."
        yield ("server", "database"), Fault("KH002", "is not a database name", hint=hint)
    if not policy.private_tables:
        hint = "Add [tables.NAME] with a privacy_unit."
        yield ("tables",), Fault("KH002", "no private table is exposed", hint=hint)
    yield from _relations(policy)


def _stored_parameters(policy: PolicyDocument) -> Broken:
    for name, view in policy.views.items():
        for parameter, default in view.parameters.items():
            if not _NAME.fullmatch(parameter):
                hint = "Use lower-case letters, digits and _."
                yield ("views", name, "parameters", parameter), Fault("KH002", "is not a parameter's name", hint=hint)
            if isinstance(default, float) and not isfinite(default):
                fault = Fault("KH002", "is not a number", hint="Write a finite default.")
                yield ("views", name, "parameters", parameter), fault
        try:
            numbered(view.sql, view.parameters)
        except Fault as fault:
            yield ("views", name, "sql"), fault
        except KeyholeError as error:
            yield ("views", name, "sql"), Fault("KH002", error.message, hint="Correct the SQL.")


def _relations(policy: PolicyDocument) -> Broken:
    relations: dict[str, str] = {}
    for name, table in policy.tables.items():
        other = relations.setdefault(table.relation or name, name)
        if other != name:
            hint = "A relation is exposed once, as private or as public; a second name would be a second budget."
            fault = Fault("KH002", f"is the relation of tables.{other} too", hint=hint)
            yield ("tables", name, "relation"), fault
        file = table.relation is not None and PurePath(table.relation).suffix.lower() in FILES
        if not file and ".".join(NAME_PART.findall(table.relation or name)) != (table.relation or name):
            hint = 'Write a table, schema.table, or "schema"."table" with odd names in double quotes.'
            yield ("tables", name, "relation"), Fault("KH002", "is not a name of a table", hint=hint)
        if file and not _reads_files(policy):
            hint = 'Use source.url = "duckdb://", or name a table of the source.'
            yield ("tables", name, "relation"), Fault("KH002", "is a file, and this source reads no files", hint=hint)


def _reads_files(policy: PolicyDocument) -> bool:
    return policy.source.url.startswith("duckdb:")


def _accuracy(policy: PolicyDocument) -> Broken:
    try:
        tolerances(policy.accuracy.tolerance)
    except KeyholeError:
        hint = 'Write "10%" of each threshold, "25", or per functional "count=25, age=2".'
        yield ("accuracy", "tolerance"), Fault("KH002", "is not a tolerance", hint=hint)


def _budget(policy: PolicyDocument) -> Broken:
    protected = [", ".join(table.privacy_unit) for table in policy.private_tables.values() if table.privacy_unit]
    if protected and policy.budget.epsilon_per_unit is None:
        hint = f"Add epsilon_per_unit: the most that all answers together may cost one unit of {protected[0]}."
        yield ("budget", "epsilon_per_unit"), Fault("KH005", "is missing", hint=hint)


def _analyst(place: tuple[str, ...], analyst: AnalystSection) -> Broken:
    if not _VERIFIER.fullmatch(analyst.password):
        hint = "Run keyhole passwd and paste what it prints; the password itself is never stored."
        yield (*place, "password"), Fault("KH002", "is not a SCRAM-SHA-256 verifier", hint=hint)
    if analyst.token_sha256 is not None and not _TOKEN.fullmatch(analyst.token_sha256):
        hint = "Write the sha256 of the bearer token as 64 hexadecimal digits."
        yield (*place, "token_sha256"), Fault("KH002", "is not a sha256 in hex", hint=hint)


def _tokens(policy: PolicyDocument) -> Broken:
    holders: dict[str, str] = {}
    for name, analyst in policy.analysts.items():
        if analyst.token_sha256 is not None and holders.setdefault(analyst.token_sha256, name) != name:
            fault = f"is the token of analysts.{holders[analyst.token_sha256]} too"
            hint = "Make one for each analyst with keyhole passwd --token; it says who asks."
            yield ("analysts", name, "token_sha256"), Fault("KH002", fault, hint=hint)


def _public_table(place: tuple[str, ...], table: TableSection) -> Broken:
    for key in ("privacy_unit", *_TABLE_BOUNDING, "same_unit_as", "immutable", *_TABLE_CAPS, "seed"):
        if getattr(table, key) not in (None, ()):
            yield (*place, key), Fault("KH002", "has no meaning in a public table", hint="Remove it.")
    if table.refresh != "static":
        hint = "Remove it: a public table changes when keyhole check --confirm says so."
        yield (*place, "refresh"), Fault("KH002", "has no meaning in a public table", hint=hint)
    for name, column in table.columns.items():
        for key in sorted(column.model_fields_set - {"comment"}):
            hint = "Remove it: a public table's columns may carry a comment and nothing else."
            yield (*place, "columns", name, key), Fault("KH002", "has no meaning in a public table", hint=hint)


def _private_table(place: tuple[str, ...], table: TableSection, policy: PolicyDocument) -> Broken:
    if table.privacy_unit is None:
        hint = 'Add privacy_unit = "patient_id", ["patient_id", "day"] or "row" (each row by itself).'
        yield (*place, "privacy_unit"), Fault("KH005", "is missing", hint=hint)
        return
    yield from _row_unit(place, table) if not table.privacy_unit else _bounding(place, table)
    if table.same_unit_as is not None:
        yield from _same_unit((*place, "same_unit_as"), table, policy)
    for key, fault in caps_of_another(table):
        yield (*place, key), fault
    try:
        parse_refresh(table.refresh)
    except Fault as fault:
        yield (*place, "refresh"), fault
    for name, column in table.columns.items():
        yield from _column((*place, "columns", name), column, table, policy.public_tables)


def unit_root(policy: PolicyDocument, name: str) -> str | None:
    """The table that `same_unit_as` leads to from a table; None where it leads back to where it has been."""
    seen: list[str] = []
    while (other := policy.private_tables[name].same_unit_as) in policy.private_tables and other is not None:
        seen.append(name)
        if other in seen:
            return None
        name = other
    return name


def _same_unit(place: tuple[str, ...], table: TableSection, policy: PolicyDocument) -> Broken:
    """What must hold so that the units of two tables may be the same people; the source knows their columns' types."""
    called, own = str(table.same_unit_as), table.privacy_unit or ()
    other = policy.private_tables.get(called)
    if other is None:
        hint = "Name another table with a privacy_unit of as many columns. " + nearest(called, policy.private_tables)
        yield place, Fault("KH005", "is not a private table", hint=hint)
    elif unit_root(policy, place[1]) is None:
        hint = "Let one of the tables have no same_unit_as, and the others name it."
        yield place, Fault("KH005", "leads back to the table itself", hint=hint)
    elif not own or not other.privacy_unit:
        hint = "Remove it: rows that are units by themselves have nothing in common with other tables'."
        yield place, Fault("KH005", 'has no meaning when privacy_unit = "row"', hint=hint)
    elif len(own) != len(other.privacy_unit):
        hint = "Name the same people by columns in the same order in both, or remove it."
        problem = f"has a privacy unit of {len(other.privacy_unit)} columns, this table of {len(own)}"
        yield place, Fault("KH005", problem, hint=hint)


def _row_unit(place: tuple[str, ...], table: TableSection) -> Broken:
    for key in _TABLE_BOUNDING:
        if getattr(table, key) is not None:
            hint = "Remove it: a row is in one group and counts once."
            yield (*place, key), Fault("KH005", 'has no meaning when privacy_unit = "row"', hint=hint)


def _bounding(place: tuple[str, ...], table: TableSection) -> Broken:
    if table.max_groups_per_unit is None:
        hint = "Add it: in how many groups of one question a unit may count; further ones are dropped."
        yield (*place, "max_groups_per_unit"), Fault("KH005", "is missing", hint=hint)
    if table.rows_per_unit is None and table.max_rows_per_group is None:
        hint = "Add rows_per_unit = 20 (a unit's COUNT per group is clipped to it), or max_rows_per_group."
        yield (*place, "rows_per_unit"), Fault("KH005", "is missing", hint=hint)
    if table.rows_per_unit is not None and table.max_rows_per_group is not None:
        hint = "Keep rows_per_unit (totals are clipped) or max_rows_per_group (rows are chosen)."
        yield (*place, "max_rows_per_group"), Fault("KH005", "bounds the same thing as rows_per_unit", hint=hint)


def _column(
    place: tuple[str, ...], column: ColumnSection, table: TableSection, public: Mapping[str, TableSection]
) -> Broken:
    if column.key is not None:
        yield from _key((*place, "key"), column.key, public)
    if column.expression is not None:
        try:
            parse_derivation(column.expression)
        except Fault as fault:
            yield (*place, "expression"), fault
    roles = [key for key in ("key", "bounds", "grid", "per_unit") if getattr(column, key) is not None]
    if column.filter is False:
        hint = "Leave the column out to hide it, or write filter = true."
        yield (*place, "filter"), Fault("KH002", "has no meaning: every listed column may be filtered", hint=hint)
    if column.filter and roles:
        hint = f"Remove it: a column with {roles[0]} may be used in filters anyway."
        yield (*place, "filter"), Fault("KH002", f"says filters only, but {roles[0]} is given", hint=hint)
    if column.expression is not None and column.bounds is not None:
        hint = "Give bounds to a column of the table itself."
        yield (*place, "bounds"), Fault("KH004", "a derived column cannot be a measure", hint=hint)
    yield from _measure(place, column, table)


def _key(place: tuple[str, ...], key: KeySection, public: Mapping[str, TableSection]) -> Broken:
    given = [name for name in ("values", "values_from", "range") if getattr(key, name) is not None]
    if len(given) != 1:
        hint = 'Write { values = [...] }, { values_from = "table.column" } or { range = [first, last], step = ... }.'
        yield place, Fault("KH003", "needs exactly one of values, values_from and range", hint=hint)
        return
    if key.step is not None and key.range is None:
        yield (*place, "step"), Fault("KH003", "has no meaning without a range", hint="Remove it.")
    if key.range is not None and len(key.range) != 2:
        hint = "Write the first and the last value, such as [1, 12]."
        yield (*place, "range"), Fault("KH003", "needs two ends", hint=hint)
    if key.values_from is not None:
        table, _, column = key.values_from.partition(".")
        if not column or table not in public:
            hint = "Name a column of a table with public = true. " + nearest(table, public)
            yield (*place, "values_from"), Fault("KH003", "is not a public table's column", hint=hint)


def _measure(place: tuple[str, ...], column: ColumnSection, table: TableSection) -> Broken:
    if column.bounds is None:
        for key in ("grid", "per_unit"):
            if getattr(column, key) is not None:
                hint = "Add bounds = [lowest, highest]: every value is clipped to them."
                yield (*place, key), Fault("KH004", "needs bounds", hint=hint)
        return
    grid = column.grid
    if grid is not None and grid <= 0:
        yield (*place, "grid"), Fault("KH004", "is not positive", hint="Write the step to round to, such as 0.01.")
        return
    rows = table.rows_per_unit or (table.max_rows_per_group.rows if table.max_rows_per_group else 1)
    yield from _range((*place, "bounds"), column.bounds, grid or Decimal(1), rows)
    yield from _per_unit(place, column, table, grid or Decimal(1))


def _range(place: tuple[str, ...], ends: tuple[Decimal, Decimal], grid: Decimal, rows: int) -> Broken:
    low, high = ends
    if low >= high:
        yield place, Fault("KH004", "the lower end is not below the upper end", hint=f"Write [{high}, {low}]?")
    elif max(abs(low), abs(high), high - low) / grid >= LARGEST:
        hint = "Choose a coarser grid or narrower bounds."
        yield place, Fault("KH004", f"spans more than 2^53 steps of grid = {grid}", hint=hint)
    elif low % grid or high % grid:
        hint = f"Choose ends that are multiples of grid = {grid}."
        yield place, Fault("KH004", "the ends are not on the grid", hint=hint)
    elif (high - low) / grid * rows >= _LARGEST_TOTAL:
        hint = "Choose a coarser grid, narrower bounds or fewer rows per unit."
        yield place, Fault("KH004", "a unit's total does not fit into 2^62 steps of the grid", hint=hint)


def _per_unit(place: tuple[str, ...], column: ColumnSection, table: TableSection, grid: Decimal) -> Broken:
    clipped = bool(table.privacy_unit) and table.max_rows_per_group is None
    if column.per_unit is None:
        if clipped:
            hint = "Add per_unit = [lowest, highest]: a unit's total per group is clipped to it."
            yield (*place, "per_unit"), Fault("KH004", "is missing", hint=hint)
        return
    if not clipped:
        hint = "Remove it: the table chooses rows or protects single rows, and clips no totals."
        yield (*place, "per_unit"), Fault("KH004", "has no meaning here", hint=hint)
        return
    low, high = column.per_unit
    if not low <= 0 <= high:
        hint = "Include 0, the total of a unit that is absent, such as [0, 8000]."
        yield (*place, "per_unit"), Fault("KH004", "does not contain 0", hint=hint)
        return
    yield from _range((*place, "per_unit"), column.per_unit, grid, 1)
