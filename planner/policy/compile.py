"""Compilation of a policy, the source's schema and the pinned public data to the frozen `Catalog`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from planner.catalog.catalog import (
    Analyst,
    Budget,
    Catalog,
    Column,
    CutRows,
    Defaults,
    ExpressionRange,
    Grouping,
    PublicTable,
    RowCap,
    SqlType,
    StoredParameter,
    StoredQuestion,
    Table,
    TableCaps,
    UnitRoot,
    Value,
)
from planner.catalog.domains import digest_domain
from planner.catalog.fault import Fault, suggest_nearest_name
from planner.catalog.pace import TableSize
from planner.catalog.pins import PinnedDomain, PinnedTable, Pins
from planner.catalog.sql_types import SourceColumn as SourceColumn
from planner.catalog.sql_types import read_sql_type
from planner.policy.compile_column import compile_bands, compile_columns, compile_key_domain, find_column_type
from planner.policy.compile_monitors import compile_monitors
from planner.policy.expression_totals import read_total
from planner.policy.file import Policy
from planner.policy.relation_names import list_known_names, write_relation
from planner.policy.rules.table_rules import find_unit_root
from planner.policy.sections import SourceSection, TableSection, split_keys
from planner.policy.source_faults import REPIN, refuse_absent_column, refuse_unpinned_table
from planner.policy.stored_questions import number_parameters
from planner.policy.unit_paths import KEY_TYPES, add_paths

_ROWS_OF_A_UNIT = 10  # where the owner declares rows alone: only groups that are few beside it make it count
_LONGEST_NAME = 63  # bytes of a PostgreSQL identifier
TIME_TYPES = (SqlType.DATE, SqlType.TIMESTAMP)


def compile_catalog(
    policy: Policy, *, schema: Mapping[str, tuple[SourceColumn, ...]], pins: Pins, directory: Path
) -> Catalog:
    """Compile the catalog that answers questions.

    `schema` gives the columns of every table in the source, by the policy's name for the table. Relative files start
    from `directory`. Raise KH003 (domains), KH004 and KH005 (roles on columns of other types), KH006 (the source lacks
    a column, or has another type), KH007 (differs from the pins), KH010 (derived columns).
    """
    public = tuple(_compile_public_table(policy, name, pins, schema) for name in policy.public_tables)
    for name in policy.private_tables:
        if name not in schema:
            fault = Fault("KH006", "the source has no such table", hint=suggest_nearest_name(name, schema))
            raise policy.refuse(("tables", name), fault)
    stored = [_compile_table(policy, name, schema[name], pins, directory) for name in policy.private_tables]
    tables = _add_unit_roots(policy, add_paths(policy, stored))
    return Catalog(
        tables=tables,
        public_tables=public,
        stored_questions=_compile_stored_questions(policy),
        analysts=_compile_analysts(policy),
        defaults=_compile_defaults(policy),
        budget=_compile_budget(policy),
        database=policy.server.database,
        max_keys=policy.limits.max_keys,
        statement_timeout_ms=policy.limits.statement_timeout_ms,
        digest=_compute_digest(policy, tables, public),
        release_every_ms=policy.server.release_every_ms,
        monitors=compile_monitors(policy),
        pace=pins.pace if pins.pace is not None and pins.pace.engine == identify_engine(policy.source) else None,
        sizes=tuple(_list_sizes(policy)),
        source_names=list_known_names(policy),
    )


def list_key_domains(
    policy: Policy, *, schema: Mapping[str, tuple[SourceColumn, ...]], pins: Pins
) -> tuple[tuple[PinnedDomain, tuple[Value, ...]], ...]:
    """Return every key domain that the policy declares, with the digest under which it is pinned.

    Raise KH003 for a domain that cannot be read, KH006 for a column that the source lacks.
    """
    found = []
    for name, table in policy.private_tables.items():
        for column_name, column in table.columns.items():
            if column.key is None:
                continue
            place = ("tables", name, "columns", column_name)
            derivation, kind, _ = find_column_type(policy, place, column, column_name, schema[name])
            domain = compile_key_domain(policy, place, column.key, kind, derivation, pins)
            digest = digest_domain(domain, kind)
            found.append((PinnedDomain(table=name, column=column_name, count=len(domain), digest=digest), domain))
    return tuple(found)


def identify_engine(source: SourceSection) -> str:
    """Return a digest of the settings that decide a source's speed: its address and its configuration."""
    settings = [source.threads, source.memory_limit, source.work_mem, source.max_parallel_workers_per_gather]
    return sha256(json.dumps([_identify_source(source), source.engine, settings]).encode()).hexdigest()


def _list_sizes(policy: Policy) -> Iterator[tuple[str, TableSize]]:
    for name, table in policy.private_tables.items():
        if table.size is not None:
            rows, units = table.size.rows, table.size.units
            yield name, TableSize(rows=rows, units=min(rows, units or max(1, rows // _ROWS_OF_A_UNIT)))


def _compile_stored_questions(policy: Policy) -> tuple[StoredQuestion, ...]:
    return tuple(
        StoredQuestion(
            name=name,
            sql=number_parameters(view.sql, view.parameters),
            comment=view.comment,
            parameters=tuple(
                StoredParameter(parameter, Decimal(str(value)) if isinstance(value, float) else value)
                for parameter, value in view.parameters.items()
            ),
        )
        for name, view in policy.views.items()
    )


def _compile_analysts(policy: Policy) -> tuple[Analyst, ...]:
    return tuple(
        Analyst(
            name=name,
            verifier=analyst.password,
            token_hash=analyst.token_sha256,
            per_predicate=analyst.epsilon_per_predicate,
            per_unit=analyst.epsilon_per_unit,
            certificate_name=analyst.certificate_name,
        )
        for name, analyst in policy.analysts.items()
    )


def _compile_defaults(policy: Policy) -> Defaults:
    accuracy = policy.accuracy
    return Defaults(
        fnr=accuracy.fnr,
        fpr=accuracy.fpr,
        tolerance=accuracy.tolerance,
        min_rows=accuracy.min_rows,
        mechanism=accuracy.mechanism,
        numbers=accuracy.numbers,
        mechanisms=accuracy.mechanisms,
        guard=accuracy.guard,
    )


def _compile_budget(policy: Policy) -> Budget:
    budget = policy.budget
    return Budget(
        per_predicate=budget.epsilon_per_predicate,
        per_unit=budget.epsilon_per_unit,
        per_query=budget.epsilon_per_query,
        per_table=budget.epsilon_per_table,
        approval_above=budget.approval_above_epsilon,
        delta=budget.delta,
        delta_per_cell=budget.delta_per_cell,
        tables=tuple(
            TableCaps(name, per_table=table.epsilon_per_table, approval_above=table.approval_above_epsilon)
            for name, table in policy.private_tables.items()
            if (table.epsilon_per_table, table.approval_above_epsilon) != (None, None)
        ),
    )


def _compile_public_table(
    policy: Policy, name: str, pins: Pins, schema: Mapping[str, tuple[SourceColumn, ...]]
) -> PublicTable:
    section, place = policy.tables[name], ("tables", name)
    pinned = pins.get_table(name)
    if pinned is None:
        raise policy.refuse(place, refuse_unpinned_table())
    if name in schema and schema[name] != pinned.columns:
        raise policy.refuse(place, Fault("KH007", "has other columns than were pinned", hint=REPIN))
    for column in section.columns:
        if column not in {known.name for known in pinned.columns}:
            raise policy.refuse((*place, "columns", column), refuse_absent_column(column, pinned.columns))
    columns = tuple(
        Column(
            name=column.name,
            sql_type=read_sql_type(column.declared),
            declared=column.declared,
            comment=section.columns[column.name].comment if column.name in section.columns else None,
        )
        for column in pinned.columns
    )
    return PublicTable(
        name=name,
        columns=columns,
        rows=pinned.rows,
        digest=pinned.digest,
        comment=section.comment,
        not_null_columns=tuple(
            one.name for one in pinned.columns if not one.nullable and None not in pinned.get_values(one.name)
        ),
        unique=tuple(
            one.name for one in pinned.columns if one.name in pinned.unique and _has_distinct_values(pinned, one.name)
        ),
    )


def _has_distinct_values(pinned: PinnedTable, column: str) -> bool:
    """Return True if no value occurs twice in a column of the pinned rows. NULL may."""
    found = [value for value in pinned.get_values(column) if value is not None]
    return len(set(found)) == len(found)


def _compile_table(policy: Policy, name: str, source: tuple[SourceColumn, ...], pins: Pins, directory: Path) -> Table:
    section, place = policy.tables[name], ("tables", name)
    _check_named_columns(policy, place, section, source)
    columns = compile_columns(policy, name, source, pins)
    by_name = {column.name: column for column in columns}
    assert section.privacy_unit is not None
    assert section.refresh is not None
    for unit in () if section.path is not None else section.unit_columns:
        if by_name[unit].sql_type not in KEY_TYPES:
            problem = f'column "{unit}" of type {by_name[unit].declared} cannot name a privacy unit'
            hint = "Use a column of type integer, text, date, timestamp, uuid or boolean."
            raise policy.refuse((*place, "privacy_unit"), Fault("KH005", problem, hint=hint))
    cap = section.max_rows_per_group
    if cap is not None and by_name[cap.unique].sql_type not in KEY_TYPES:
        problem = f'column "{cap.unique}" of type {by_name[cap.unique].declared} cannot choose rows'
        hint = "Use a unique column of type integer, text, date, timestamp or uuid."
        raise policy.refuse((*place, "max_rows_per_group"), Fault("KH005", problem, hint=hint))
    if section.arrived is not None and by_name[section.arrived].sql_type not in TIME_TYPES:
        problem = f'column "{section.arrived}" of type {by_name[section.arrived].declared} tells no time'
        hint = "Name the date or timestamp at which a row was added, without a time zone."
        raise policy.refuse((*place, "arrived"), Fault("KH004", problem, hint=hint))
    table = Table(
        name=name,
        relation=write_relation(
            name, section, directory=directory, kind=policy.source.kind, csv=pins.get_csv_file(name)
        ),
        columns=columns,
        unit=() if section.path is not None else section.unit_columns,
        groups_per_unit=section.max_groups_per_unit or 1,
        rows_per_unit=section.rows_per_unit,
        row_cap=RowCap(rows=cap.rows, unique=cap.unique) if cap else None,
        refresh=section.refresh,
        seed=section.seed or f"keyhole/{name}",
        comment=section.comment,
        groupings=tuple(
            Grouping(
                keys=tuple(key for key in split_keys(named) if key in section.columns),
                groups=one.max_groups,
                rows=one.rows,
                per_unit=tuple(sorted(one.per_unit.items())),
                computed=tuple(key for key in split_keys(named) if key not in section.columns),
            )
            for named, one in section.groupings.items()
        ),
        bands=compile_bands(section.bands),
        append_only=section.append_only,
        arrival_column=section.arrived,
        covers_cut_units=policy.budget.cells == "every unit",
        joined_rows=section.joined_rows_per_unit,
        totals=tuple(read_total(text, ends) for text, ends in section.totals.items()),
        ranges=tuple(ExpressionRange(text, ends) for text, ends in section.ranges.items()),
        cut_rows=tuple(CutRows(split_keys(named), share) for named, share in section.cut_rows.items()),
    )
    _check_band_columns(policy, place, table)
    return table


def _check_band_columns(policy: Policy, place: tuple[str, ...], table: Table) -> None:
    """Raise KH004 if a band column that clients see has the name of another column, or too long a name."""
    for shown in table.band_columns:
        where = (*place, "bands") if shown.measure is None else (*place, "columns", shown.measure, "bands")
        if any(column.name == shown.name for column in table.columns):
            hint = "Expose a view of the source that gives that column another name, or leave out the bands."
            raise policy.refuse(where, Fault("KH004", f"clients would see two columns {shown.name}", hint=hint))
        if len(shown.name.encode()) > _LONGEST_NAME:
            hint = "Expose a view of the source that gives the measure a shorter name, or leave out the bands."
            raise policy.refuse(where, Fault("KH004", f"{shown.name} is too long for a column's name", hint=hint))


def _add_unit_roots(policy: Policy, tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return the tables, each with the root under which the ledger keeps its units if another table is that root."""
    by_name = {table.name: table for table in tables}

    def root_table(table: Table) -> Table:
        section = policy.tables[table.name]
        root = by_name[find_unit_root(policy, table.name) or table.name]
        if section.leads_to is None:
            return table
        place = ("tables", table.name, "same_unit_as" if section.path is None else "privacy_unit")
        for column in (*table.columns, *root.columns):
            if "." in column.name:
                hint = "Expose a view of the source that gives the column a name without dots."
                problem = f'the column "{column.name}" could be taken for another table\'s'
                raise policy.refuse(place, Fault("KH005", problem, hint=hint))
        if len(table.unit) != len(root.unit):
            problem = f"{root.name} has a privacy unit of {len(root.unit)} columns, this table of {len(table.unit)}"
            hint = "Name the same people by columns in the same order in both, or remove it."
            raise policy.refuse(place, Fault("KH005", problem, hint=hint))
        for own, same in zip(table.unit, root.unit, strict=True):
            if table.get_column(own).derivation is None and root.get_column(same).derivation is not None:
                problem = f"{own} is stored in {table.name}, {root.name}.{same} is derived"
                hint = "Let the table that stores the column be the one that the others name in same_unit_as."
                raise policy.refuse(place, Fault("KH005", problem, hint=hint))
            kinds = table.get_column(own).sql_type, root.get_column(same).sql_type
            if kinds[0] is not kinds[1]:
                problem = f"{own} is of type {kinds[0].value}, {root.name}.{same} of type {kinds[1].value}"
                hint = "Expose a view of the source that gives both the same type, or remove same_unit_as."
                raise policy.refuse(place, Fault("KH005", problem, hint=hint))
        units = dict(zip(table.unit, (root.get_column(name).label for name in root.unit), strict=True))
        columns = tuple(
            replace(column, ledger=units.get(column.name, f"{table.name}.{column.label}")) for column in table.columns
        )
        return replace(table, columns=columns, root=UnitRoot(root.name, root.unit))

    return tuple(map(root_table, tables))


def _check_named_columns(
    policy: Policy, place: tuple[str, ...], section: TableSection, source: tuple[SourceColumn, ...]
) -> None:
    """Raise an error if a column that the table's settings name is neither in the source nor derived."""
    derived = {name for name, column in section.columns.items() if column.expression is not None}
    known = derived | {column.name for column in source}
    named = [("privacy_unit", column) for column in section.unit_columns]
    named += [("unique", column) for column in section.unique]
    named += [("immutable", column) for column in section.immutable]
    if section.max_rows_per_group is not None:
        named.append(("max_rows_per_group", section.max_rows_per_group.unique))
    if section.arrived is not None:
        named.append(("arrived", section.arrived))
    for key, column in named:
        if column not in known:
            raise policy.refuse((*place, key), refuse_absent_column(column, source))
    for name in derived & {column.name for column in source}:
        hint = "Give the derived column a name of its own."
        fault = Fault("KH010", "the source has a column of that name already", hint=hint)
        raise policy.refuse((*place, "columns", name, "expression"), fault)


def _compute_digest(policy: Policy, tables: tuple[Table, ...], public: tuple[PublicTable, ...]) -> str:
    """Return the digest of everything that an answer depends on, except for the question.

    This is the source, its reader (row-level security may show other rows to another reader), tables, and pinned data.
    A password or token is never part of it.
    """
    identity = {
        "source": _identify_source(policy.source),
        "tables": [_identify_table(table) for table in tables],
        "public": [[table.digest, table.not_null_columns, table.unique] for table in public],
    }
    return sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()


def _identify_source(source: SourceSection) -> list[object]:
    url = urlsplit(source.url)
    if source.kind == "spark":
        parameters = sorted(filter(None, url.path.partition(";")[2].split(";")))
        return [url.scheme, url.netloc, parameters, source.catalog, source.database]
    options = [option for option in parse_qsl(url.query, keep_blank_values=True) if "password" not in option[0].lower()]
    return [url.scheme, url.username, url.hostname, url.port, url.path, options]


def _identify_table(table: Table) -> dict[str, Any]:
    """Return the part of the digest that describes a table.

    Its columns' types in the source are left out, because an answer depends on declared types. Bounds of other
    groupings are left out, because a question has its own in its fingerprint. Bands and `cut_rows` change no answer.
    Only monitors depend on how rows arrive, and their own identity contains it.
    """
    without_domains = (replace(column, domain=None) for column in table.columns)
    # each value would be copied by itself, and the tables that a path leads through are identified beside this one
    written = asdict(replace(table, columns=tuple(without_domains), path=None))
    del written["path"]  # what was answered before there were any is there
    if table.path is not None:
        written["path"] = [table.path.table.name, table.path.from_columns, table.path.to_columns]
    for key in ("groupings", "bands", "append_only", "arrival_column", "joined_rows", "cut_rows", "groups_by", "steps"):
        del written[key]
    # stored digests have these names
    written["cells_of_cut_units"] = written.pop("covers_cut_units")
    for key in ("totals", "ranges"):
        if not written[key]:
            del written[key]  # what was answered before there were any is there
    for column, known in zip(written["columns"], table.columns, strict=True):
        del column["stored"], column["bands"], column["enumerated"]
        del column["computed"], column["groupable"]  # of questions' own keys, whose cells are in their fingerprints
        del column["canonical"]  # which questions' own keys alone have
        del column["filter_only"]  # which decides what may be asked, and changes no answer
        column["determined"], column["own"] = column.pop("is_determined"), column.pop("is_unit_value")
        if "has_classes" in (column["derivation"] or ()):
            column["derivation"]["classes"] = column["derivation"].pop("has_classes")
        column["domain"] = known.domain
    return written
