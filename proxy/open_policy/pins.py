"""The pin file beside the policy: public tables and key domains as the owner confirmed them.

`keyhole check` calls `pin`, which reads the public tables from the source and compares them with the confirmed ones. It
writes the file if nothing differs, or if the owner confirms the differences. Only public data is read here.
"""

import json
import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

from planner.bind.computed_groupings import find_expression_faults
from planner.catalog.catalog import Catalog
from planner.catalog.csv_file import CsvFile
from planner.catalog.fault import Fault
from planner.catalog.known_keys import add_source_keys
from planner.catalog.pace import EngineWork, Pace
from planner.catalog.pins import PinnedDomain, PinnedTable, Pins, pin_table, read_pinned_table, write_values
from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn, read_sql_type
from planner.errors import KeyholeError
from planner.policy.compile import compile_catalog, list_key_domains
from planner.policy.file import Policy
from proxy.concurrency.interpreter import pause_garbage_collection
from proxy.open_policy.csv_files import check_pinned_files, pin_files
from proxy.open_policy.parquet_files import check_parquet_files
from proxy.open_policy.policy_relations import (
    Identities,
    check_pinned_relations,
    check_pinned_types,
    find_exposed_types,
    identify_tables,
)
from proxy.open_policy.service_refusals import refuse_changed_pins, refuse_edited_pins
from proxy.shadow.validity import find_faults

MAX_PUBLIC_ROWS = 1_000_000  # of a public table: its rows are held in memory, pinned, and copied into the shadow
_FORMAT = 1  # of the pin file
_BEFORE_TABLES = f'{{\n "format": {_FORMAT},\n "tables": '
_BEHIND_TABLES = ',\n "domains": {'


class PinSource(Protocol):
    """The methods of a source that pinning needs."""

    def hold_open(self) -> AbstractContextManager[None]:
        """Keep the database file open during the block, if the source opens it only while reading.

        Raise KH008 if the source does not answer.
        """

    def read_schema(self, relation: str) -> tuple[SourceColumn, ...]:
        """Return the columns of a relation. Raise KH006 if there is none."""

    def read_table_rows(self, relation: str, columns: tuple[str, ...], *, most: int) -> Sequence[Sequence[object]]:
        """Return all rows of a public table, or `most` + 1 rows if it has more.

        Raise KH006 if the relation cannot be read.
        """

    def identify(self, relation: str) -> RelationIdentity:
        """Return the stored tables and files that a relation reads. Raise KH006 if the relation cannot be read."""

    def read_for_owner(self, relation: str, sql: str) -> Sequence[Sequence[object]]:
        """Return the result of a statement over a relation, for the owner alone.

        Raise KH006 if the relation cannot be read.
        """

    def read_state(self, relation: str) -> str:
        """Return a text that changes whenever the relation's data changes.

        Raise KH006 if the relation cannot be read.
        """


@dataclass(frozen=True, slots=True)
class PinChange:
    """One difference between the pin file and the current policy and source. `kind` is new, changed or gone."""

    kind: str
    name: str
    detail: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.name} ({self.detail})"


@dataclass(frozen=True, slots=True)
class Pinning:
    """The result of a check: the catalog that is now valid, its pins, and all differences that were written."""

    catalog: Catalog
    pins: Pins
    changes: tuple[PinChange, ...]


def find_pins_path(policy: Policy) -> Path:
    """Return the path of a policy's pin file: keyhole.pins.json beside keyhole.toml."""
    return policy.path.with_suffix(".pins.json")


def read_source_schema(policy: Policy, source: PinSource, pins: Pins) -> Mapping[str, tuple[SourceColumn, ...]]:
    """Return the source's columns for each table, by the policy's table names.

    Raise KH006 if the relation cannot be read.
    """
    return {
        name: source.read_schema(policy.write_relation(name, csv=pins.get_csv_file(name))) for name in policy.tables
    }


def read_pinned_catalog(policy: Policy, source: PinSource) -> Catalog:
    """Return the catalog for serving, made from the existing pins and the source. Raise KH002 to KH007 and KH010."""
    pins = read_pins(find_pins_path(policy))
    with source.hold_open():
        identities = identify_tables(policy, source)
        check_pinned_relations(policy, identities, pins)
        check_pinned_files(policy, pins)
        check_parquet_files(policy, source)
        schema = read_source_schema(policy, source, pins)
    check_pinned_types(policy, schema, pins)
    return add_source_keys(_make_valid_catalog(policy, schema, pins), identities)


def make_catalog_from_pins(policy: Policy) -> Catalog:
    """Return the catalog made from the pins alone, without the source, for reading the ledger.

    Do not answer questions with it, as the source may differ from the pins by now. Raise KH003 to KH007 and KH010 if
    the pins do not suffice.
    """
    pins = read_pins(find_pins_path(policy))
    for name in policy.private_tables:
        if pins.get_relation(name) is None:
            fault = Fault("KH007", "is not pinned yet", hint="Run keyhole check.")
            raise policy.refuse(("tables", name), fault)
    stored = {
        name: tuple(
            SourceColumn(column, declared, nullable=True) for column, declared in (pins.get_types(name) or {}).items()
        )
        for name in policy.private_tables
    }
    copied = {table.name: table.columns for table in pins.tables}
    return compile_catalog(policy, schema={**copied, **stored}, pins=pins, directory=policy.directory)


def _make_valid_catalog(policy: Policy, schema: Mapping[str, tuple[SourceColumn, ...]], pins: Pins) -> Catalog:
    """Return the catalog, after checking that the shadow can show its tables. Raise KH002 to KH007 and KH010."""
    catalog = compile_catalog(policy, schema=schema, pins=pins, directory=policy.directory)
    for place, fault in (*find_faults(catalog), *find_expression_faults(catalog)):
        raise policy.refuse(place, fault)
    return catalog


def pin(
    policy: Policy,
    source: PinSource,
    *,
    confirm: bool,
    now: datetime,
    accept: Callable[[Catalog], None] = lambda _: None,
    broken: Container[str] = (),
) -> Pinning:
    """Check a policy against the source, and write the pin file unless `accept` raises a refusal.

    Everything that was never pinned is pinned. If a public table, key domain, relation or type differs from its pin,
    raise KH007 and write nothing, unless the owner says `confirm`. Raise KH002 to KH007 and KH010.

    Parameters:
        broken: tables that cannot be read now. For them the pinned data is used.
    """
    path = find_pins_path(policy)
    before = read_pins(path)
    with source.hold_open():
        identities = identify_tables(policy, source)
        files = pin_files(policy, source, before)
        check_parquet_files(policy, source, broken=broken)
        schema = read_source_schema(policy, source, files)
        after = _take_pins(policy, source, schema, identities, files, now)
    changes = list_differences(before, after)
    changed = [change for change in changes if change.kind == "changed"]
    if changed and not confirm:
        names, detail = [change.name for change in changed], "; ".join(str(change) for change in changed)
        raise refuse_changed_pins(policy.path.name, names, detail=detail)
    catalog = _make_valid_catalog(policy, schema, after)
    accept(catalog)
    if after != before:
        write_pins(path, after)
    return Pinning(catalog=catalog, pins=after, changes=changes)


def refresh(policy: Policy, *tables: str, now: datetime, source: PinSource | None = None) -> str:
    """Declare new data for tables with `refresh = "explicit"`. Return their new version, which is the time `now`.

    Parameters:
        source: the source, if its rows are in files. The current files become the version's. They must have the
            pinned types.

    Raise KH002 to KH007 and KH014, and declare nothing then.
    """
    for table in tables:
        section = policy.private_tables.get(table)
        if section is None or section.refresh != "explicit":
            hint = f'Write refresh = "explicit" into [tables.{table}].'
            raise policy.refuse(("tables", table), Fault("KH002", "is not refreshed explicitly", hint=hint))
    path = find_pins_path(policy)
    pins, at = read_private_pins(path) if source is None else read_pins(path), now.astimezone(UTC)
    version = at.isoformat(sep=" ", timespec="microseconds")
    catalog = None if source is None else read_pinned_catalog(policy, source)
    for table in tables:
        pins = pins.mark_refreshed(table, at=at)
        if source is not None and catalog is not None:
            (found,) = (one for one in catalog.tables if one.name == table)
            state = source.read_state(found.relation)
            others = tuple(one for one in pins.states if one[0] != table)
            pins = replace(pins, states=(*others, (table, version, state)))
    _write_private_pins(path, pins)
    return version


def _take_pins(
    policy: Policy,
    source: PinSource,
    schema: Mapping[str, tuple[SourceColumn, ...]],
    identities: Identities,
    before: Pins,
    now: datetime,
) -> Pins:
    for name in policy.public_tables:
        if identities[name].is_view:
            hint = "Name a table: a view may be computed from private rows. Copy it into a table of its own."
            fault = Fault("KH002", "is a view, which cannot be public", hint=hint)
            raise policy.refuse(("tables", name, "public"), fault)
    tables = tuple(
        replace(
            _copy_table(policy, name, source, schema[name], before.get_csv_file(name)),
            unique=tuple(sorted(identities[name].unique)),
        )
        for name in policy.public_tables
    )
    relations = tuple((name, identities[name].names) for name in policy.private_tables)
    columns = tuple(
        (name, tuple(find_exposed_types(policy, name, schema[name]).items())) for name in policy.private_tables
    )
    pins = replace(before, tables=tables, relations=relations, columns=columns)
    pins = replace(pins, domains=tuple(pinned for pinned, _ in list_key_domains(policy, schema=schema, pins=pins)))
    for name, section in policy.private_tables.items():
        if section.refresh == "explicit" and name not in dict(pins.refreshes):
            pins = pins.mark_refreshed(name, at=now.astimezone(UTC))
    return pins


def _copy_table(
    policy: Policy, name: str, source: PinSource, columns: tuple[SourceColumn, ...], csv: CsvFile | None
) -> PinnedTable:
    place = ("tables", name, "public")
    text = policy.write_relation(name, csv=csv)
    policy.run_at(("tables", name), lambda: pin_table(name, columns, ()))  # checks the types before any row is read
    rows = source.read_table_rows(text, tuple(column.name for column in columns), most=MAX_PUBLIC_ROWS)
    if len(rows) > MAX_PUBLIC_ROWS:
        hint = "Copy only what analysts join or browse."
        fault = Fault("KH002", f"has more than {MAX_PUBLIC_ROWS:,} rows, and no more are copied", hint=hint)
        raise policy.refuse(place, fault)
    return policy.run_at(("tables", name), lambda: pin_table(name, columns, rows))


def list_differences(before: Pins, after: Pins) -> tuple[PinChange, ...]:
    """Return all public tables and key domains that are new, changed or missing.

    Private tables with another relation, or with a column of another type, are included.
    """
    found: list[PinChange] = []
    old_tables = {table.name: table for table in before.tables}
    for table in after.tables:
        old = old_tables.pop(table.name, None)
        if old is None:
            found.append(PinChange("new", table.name, f"{len(table.rows):,} rows"))
        elif old.digest != table.digest:
            found.append(PinChange("changed", table.name, _describe_difference(old, table)))
    old_domains = {(domain.table, domain.column): domain for domain in before.domains}
    for domain in after.domains:
        name = f"{domain.table}.{domain.column}"
        known = old_domains.pop((domain.table, domain.column), None)
        if known is None:
            found.append(PinChange("new", name, f"{domain.count:,} key values"))
        elif known.digest != domain.digest:
            found.append(PinChange("changed", name, f"{known.count:,} key values -> {domain.count:,}"))
    for name, names in after.relations:
        former = before.get_relation(name)
        if former is not None and former[0] != names[0]:
            meaning = f"it was {former[0]} and is {names[0]}; what was spent under this name stays charged to it"
            found.append(PinChange("changed", f"tables.{name}", meaning))
    for name, columns in after.columns:
        former_types = before.get_types(name) or {}
        found += [
            PinChange("changed", f"tables.{name}.columns.{column}", f"{former_types[column]} -> {kind}")
            for column, kind in columns
            if former_types.get(column, kind) != kind
        ]
    found += [PinChange("gone", name, "no longer public") for name in old_tables]
    found += [PinChange("gone", ".".join(place), "no longer a key") for place in old_domains]
    return tuple(found)


def _describe_difference(old: PinnedTable, new: PinnedTable) -> str:
    if old.columns != new.columns:
        return "other columns"
    added, removed = set(new.rows) - set(old.rows), set(old.rows) - set(new.rows)
    return f"{len(old.rows):,} rows -> {len(new.rows):,}; {len(added):,} added, {len(removed):,} removed"


def read_pins(path: Path) -> Pins:
    """Parse the pin file at `path`. Return empty pins if there is none. Raise KH007 if the file was edited."""
    return _read(path, lambda: path.read_text(encoding="utf-8"))


def read_private_pins(path: Path) -> Pins:
    """Return the pins of private tables, without parsing the many rows of public tables. Raise KH007."""
    return _read(path, lambda: _skip_tables(path))


def _read(path: Path, text: Callable[[], str]) -> Pins:
    if not path.exists():
        return Pins()
    try:
        with pause_garbage_collection():
            pins = _decode_pins(json.loads(text()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ArithmeticError, KeyholeError, Fault):
        pins = None
    if pins is None:
        raise refuse_edited_pins(path.name)
    return pins


def _skip_tables(path: Path) -> str:
    """Return a pin file's text after its public tables, or all of it if `write_pins` did not write it.

    The mark of their end is in no value: JSON has no line ends inside a text, and everything in the tables is indented
    further.
    """
    content = path.read_bytes()
    at = _find_end_of_tables(content)
    if at is None:
        written = json.loads(content)
        return json.dumps({**written, "tables": {}})
    return _BEFORE_TABLES + "{}" + content[at:].decode("utf-8")


def _find_end_of_tables(content: bytes) -> int | None:
    """Return the position after the public tables, or None if `write_pins` did not write the file."""
    at = content.rfind(_BEHIND_TABLES.encode())
    return at if at >= 0 and content.startswith(_BEFORE_TABLES.encode()) else None


def write_pins(path: Path, pins: Pins) -> None:
    """Write the pin file, whole or not at all."""
    _replace_file(path, (part.encode() for part in _write(pins)))


def _write_private_pins(path: Path, pins: Pins) -> None:
    """Write the pins of private tables. The public tables in the file stay the same, byte for byte."""
    content = path.read_bytes() if path.exists() else b""
    at = _find_end_of_tables(content)
    if at is None:
        write_pins(path, replace(pins, tables=read_pins(path).tables))
    else:
        _replace_file(path, (content[:at], *(part.encode() for part in _write_other_pins(pins))))


def _replace_file(path: Path, parts: Iterable[bytes]) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with temporary.open("wb") as file:
        file.writelines(parts)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _write(pins: Pins) -> Iterator[str]:
    """Yield the file's text in parts: public tables first, with a line for each row, and then everything else."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    yield _BEFORE_TABLES + "{"
    for number, table in enumerate(pins.tables):
        columns = [[column.name, column.declared, column.nullable] for column in table.columns]
        yield f"{',' if number else ''}\n  {encode(table.name)}: {{"
        yield f'\n   "digest": {encode(table.digest)},\n   "columns": {encode(columns)},'
        yield f'\n   "unique": {encode(list(table.unique))},\n   "rows": ['
        ahead = ""
        written = [
            write_values(found, read_sql_type(c.declared))
            for found, c in zip(zip(*table.rows, strict=True), table.columns, strict=bool(table.rows))
        ]
        for row in zip(*written, strict=True):
            yield f"{ahead}\n    {encode(row)}"
            ahead = ","
        yield "\n   ]\n  }" if table.rows else "]\n  }"
    yield "\n }" if pins.tables else "}"
    yield from _write_other_pins(pins)


def _write_other_pins(pins: Pins) -> Iterator[str]:
    others = json.dumps(_encode_other_pins(pins), indent=1, ensure_ascii=False)
    yield f",{others.removeprefix('{')}\n"


def _encode_other_pins(pins: Pins) -> dict[str, object]:
    domains: dict[str, dict[str, object]] = {}
    for domain in pins.domains:
        domains.setdefault(domain.table, {})[domain.column] = {"count": domain.count, "digest": domain.digest}
    return {
        "domains": domains,
        "refreshes": {name: at.isoformat() for name, at in pins.refreshes},
        "relations": {name: list(names) for name, names in pins.relations},
        "columns": {name: dict(columns) for name, columns in pins.columns},
        "states": {name: [version, state] for name, version, state in pins.states},
        "files": {name: asdict(file) for name, file in pins.files},
        **({} if pins.pace is None else {"pace": asdict(pins.pace)}),
        **({} if pins.has_analyst_caps is None else {"apart": pins.has_analyst_caps}),
    }


def _decode_pins(written: Mapping[str, Any]) -> Pins | None:
    found = [_decode_table(name, table) for name, table in written["tables"].items()]
    tables = tuple(table for table in found if table is not None)
    if len(tables) < len(found) or written["format"] != _FORMAT:
        return None
    return Pins(
        tables=tables,
        domains=tuple(
            PinnedDomain(table=table, column=column, count=pinned["count"], digest=pinned["digest"])
            for table, columns in written["domains"].items()
            for column, pinned in columns.items()
        ),
        refreshes=tuple((name, datetime.fromisoformat(str(at))) for name, at in written["refreshes"].items()),
        # older files do not have these; the next check pins them
        relations=tuple((name, tuple(map(str, names))) for name, names in written.get("relations", {}).items()),
        columns=tuple(
            (name, tuple((column, str(kind)) for column, kind in columns.items()))
            for name, columns in written.get("columns", {}).items()
        ),
        states=tuple((name, str(seen[0]), str(seen[1])) for name, seen in written.get("states", {}).items()),
        files=tuple((name, _decode_file(file)) for name, file in written.get("files", {}).items()),
        pace=_decode_pace(written["pace"]) if "pace" in written else None,
        has_analyst_caps=bool(written["apart"]) if "apart" in written else None,
    )


def _decode_pace(written: Mapping[str, Any]) -> Pace:
    seconds = EngineWork(**{str(part): float(each) for part, each in written["seconds"].items()})
    if not all(isfinite(each) and each >= 0 for each in seconds.amounts):
        raise ValueError("no pace")
    return Pace(engine=str(written["engine"]), seconds=seconds)


def _decode_file(written: Mapping[str, Any]) -> CsvFile:
    columns = tuple((str(name), str(kind)) for name, kind in written["columns"])
    return CsvFile(**{**written, "columns": columns})


def _decode_table(name: str, written: Mapping[str, Any]) -> PinnedTable | None:
    """Return a table from the file, or None if it was edited."""
    columns = tuple(SourceColumn(name=each[0], declared=each[1], nullable=each[2]) for each in written["columns"])
    table = read_pinned_table(name, columns, written["rows"], digest=written["digest"])
    # absent in files of before
    return None if table is None else replace(table, unique=tuple(map(str, written.get("unique", []))))
