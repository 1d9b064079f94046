"""A catalog without a source: column types and key domains that only the source knows are invented.

It is for an owner who is still choosing bounds. Each invented part is listed, and no such catalog answers a question.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import partial
from itertools import count, islice

from sqlglot import exp

from planner.catalog.catalog import Catalog, Derivation, SqlType, Value
from planner.catalog.derived_columns import infer_derived_type, is_possible, parse_derivation
from planner.catalog.pins import PinnedTable, Pins, pin_table
from planner.catalog.sql_types import SourceColumn, read_sql_type
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.policy.compile import compile_catalog, list_key_domains
from planner.policy.file import Policy
from planner.policy.rules.table_rules import find_unit_root
from planner.policy.rules.unit_paths import find_reached_columns
from planner.policy.sections import ColumnSection, KeySection, TableSection

_START = datetime(2000, 1, 1)
_MOST_TRIED = 100_000  # candidate values for a derivation; as days, 273 years
_TRUNCATED_TO_HOURS = ("hour", "minute", "second")


class SizeMissing(Exception):
    """The error for a key column without a domain in the policy, if no number of values was given for it."""

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self.column = column


@dataclass(frozen=True, slots=True)
class SimulatedCatalog:
    """A catalog for planning alone, and a sentence for each part that was invented."""

    catalog: Catalog
    assumptions: tuple[str, ...]


def simulate_catalog(policy: Policy, sql: str, *, pins: Pins, keys: int | None) -> SimulatedCatalog:
    """Return a catalog for a policy before its source exists.

    Guarantee: reads the policy, the text of the question and the pins, nothing else. A column's type is the one that
    the policy states (`type`) or that is pinned; else the one of its key values, bounds or expression; else numeric if
    the text compares it with numbers, and text otherwise. A domain that the policy lists is kept.

    Parameters:
        sql: the question, whose grouping columns get a domain if the policy has none.
        pins: public tables, and types of private columns, that were pinned already.
        keys: the number of values of an invented domain; the text's own constants are among them.

    Raises:
        SizeMissing: a domain has to be invented and `keys` is None.
        KeyholeError: KH003 to KH005 and KH010, as compiling raises them.
    """
    question = _ColumnUse.parse(sql)
    assumed: list[str] = []
    tables: dict[str, TableSection] = dict(policy.tables)
    schema: dict[str, tuple[SourceColumn, ...]] = {}
    for name, table in policy.private_tables.items():
        joined = question.tables.intersection(policy.private_tables) - {name}
        others = [policy.tables[other].columns for other in joined]
        elsewhere = {column for columns in others for column in columns} - set(table.columns)
        asked = replace(question, grouped=tuple(column for column in question.grouped if column not in elsewhere))
        times = frozenset(monitor.window.column for monitor in policy.monitors.values() if monitor.window.length)
        known = pins.get_types(name) or {}
        reached = find_reached_columns(policy, name)
        stand_in = partial(_SimulatedTable, pins=pins, known=known, keys=keys, times=times, reached=reached)
        tables[name] = complete = stand_in(table, asked).add_domains(name, assumed)
        schema[name] = stand_in(complete, question).list_columns()
    schema = _equate_unit_types(policy, schema)
    public = tuple(_get_public_copy(name, policy, pins) for name in policy.public_tables)
    schema |= {table.name: table.columns for table in public}
    filled = policy.model_copy(update={"tables": tables})
    taken = Pins(tables=public)
    domains = tuple(pinned for pinned, _ in list_key_domains(filled, schema=schema, pins=taken))
    catalog = compile_catalog(
        filled, schema=schema, pins=Pins(tables=public, domains=domains), directory=policy.directory
    )
    return SimulatedCatalog(catalog=catalog, assumptions=tuple(assumed))


def _equate_unit_types(
    policy: Policy, schema: dict[str, tuple[SourceColumn, ...]]
) -> dict[str, tuple[SourceColumn, ...]]:
    """Return the columns. Units that the policy equates get one type, which one of the tables declares."""
    told: dict[tuple[str, int | str], str] = {}
    places: dict[tuple[str, str], tuple[str, int | str]] = {
        (name, unit): (find_unit_root(policy, name) or name, index)
        for name, table in policy.private_tables.items()
        for index, unit in enumerate(() if table.path is not None else table.unit_columns)
    }
    for table in policy.private_tables:
        for own, other in _list_steps(policy, table):
            places[own] = places.setdefault(other, other)
    for name, columns in schema.items():
        for column in columns:
            place = places.get((name, column.name))
            if place is not None and told.get(place, "text") == "text":
                told[place] = column.declared
    return {
        name: tuple(
            replace(column, declared=told[places[name, column.name]]) if (name, column.name) in places else column
            for column in columns
        )
        for name, columns in schema.items()
    }


def _list_steps(policy: Policy, name: str) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield each of a path's columns with the column to which it leads, the last step first."""
    path = policy.private_tables[name].path
    if path is not None:
        yield from _list_steps(policy, path.table)
        yield from (((name, own), (path.table, other)) for own, other in zip(path.by, path.through, strict=True))


def _get_public_copy(name: str, policy: Policy, pins: Pins) -> PinnedTable:
    """Return the pinned copy of a public table, or an empty one with the columns that the policy names."""
    pinned = pins.get_table(name)
    if pinned is not None:
        return pinned
    named = dict.fromkeys(policy.tables[name].columns)
    for table in policy.private_tables.values():
        for column in table.columns.values():
            source, _, public = (column.key.values_from or "" if column.key else "").partition(".")
            if source == name:
                named[public] = None
    return pin_table(name, [SourceColumn(name=column, declared="text", nullable=True) for column in named], [])


@dataclass(frozen=True, slots=True)
class _ColumnUse:
    """The columns in the text of a question: the grouping columns, and the values that columns are compared with."""

    tables: frozenset[str]
    grouped: tuple[str, ...]
    numeric: frozenset[str]
    constants: tuple[str, ...]
    numbers: tuple[int, ...]

    @classmethod
    def parse(cls, sql: str) -> "_ColumnUse":
        try:
            parsed = [parse(sql, read_tokens(sql)).tree]
        except KeyholeError:
            parsed = []  # planning the question reports the syntax error
        tables = frozenset(table.name for tree in parsed for table in tree.find_all(exp.Table))
        grouped = dict.fromkeys(
            column.name
            for tree in parsed
            for select in tree.find_all(exp.Select)
            if select.args.get("having") is not None or not isinstance(select.parent, exp.Subquery | exp.CTE)
            for column in (*select.expressions, *(select.args["group"].expressions if select.args.get("group") else ()))
            if isinstance(column, exp.Column)
        )
        literals = [literal for tree in parsed for literal in tree.find_all(exp.Literal)]
        numeric = frozenset(
            column.name
            for literal in literals
            if not literal.is_string and literal.parent is not None
            for column in literal.parent.find_all(exp.Column)
        )
        return cls(
            tables=tables,
            grouped=tuple(grouped),
            numeric=numeric,
            constants=tuple(dict.fromkeys(literal.name for literal in literals if literal.is_string)),
            numbers=tuple(
                dict.fromkeys(int(one.name) for one in literals if not one.is_string and one.name.isdecimal())
            ),
        )


class _SimulatedTable:
    """One private table with its columns' types, and invented domains if the policy has none."""

    def __init__(
        self,
        table: TableSection,
        question: _ColumnUse,
        *,
        pins: Pins,
        known: Mapping[str, str],
        keys: int | None,
        times: frozenset[str],
        reached: tuple[str, ...],
    ) -> None:
        self._table = table
        self._question = question
        self._pins = pins
        self._known = known
        self._keys = keys
        self._reached = reached
        self._times = times if table.arrived is None else times | {table.arrived}
        self._derived = {
            name: parse_derivation(column.expression)
            for name, column in table.columns.items()
            if column.expression is not None
        }

    def add_domains(self, name: str, assumed: list[str]) -> TableSection:
        """Return the table's section with a domain for every column that the question groups by."""
        columns = dict(self._table.columns)
        if name in self._question.tables:
            for grouped in self._question.grouped:
                columns.setdefault(grouped, ColumnSection())
        for column, section in columns.items():
            key = section.key
            unpinned = key is not None and key.values_from is not None and not self._is_pinned(key.values_from)
            asked = name in self._question.tables and column in self._question.grouped
            if unpinned or (key is None and asked):
                columns[column] = section.model_copy(
                    update={"key": self._choose_domain(column, assumed, is_needed=asked)}
                )
        return self._table.model_copy(update={"columns": columns})

    def _is_pinned(self, values_from: str) -> bool:
        return self._pins.get_table(values_from.partition(".")[0]) is not None

    def _choose_domain(self, column: str, assumed: list[str], *, is_needed: bool) -> KeySection:
        kind = self._find_type(column)
        if self._keys is None and is_needed and kind is not SqlType.BOOLEAN:
            raise SizeMissing(column)
        values = _invent_values(
            kind, self._derived.get(column), self._question, size=(self._keys or 1) if is_needed else 1
        )
        if is_needed:
            assumed.append(f"{column} has {len(values):,} public values")
        return KeySection(values=values)

    def list_columns(self) -> tuple[SourceColumn, ...]:
        """Return the columns that the source is assumed to have."""
        names = dict.fromkeys(name for name in self._table.columns if name not in self._derived)
        for more in (
            self._table.unit_columns,
            self._table.unique,
            self._reached,
            self._table.immutable,
            (self._table.max_rows_per_group.unique,) if self._table.max_rows_per_group else (),
            (self._table.arrived,) if self._table.arrived is not None else (),
            (derivation.column for derivation in self._derived.values()),
        ):
            names |= dict.fromkeys(name for name in more if name not in self._derived)
        stored = [name for name in names if name not in self._derived]
        return tuple(SourceColumn(name=name, declared=self._find_declared_type(name), nullable=True) for name in stored)

    def _find_type(self, column: str) -> SqlType:
        derivation = self._derived.get(column)
        return (
            read_sql_type(self._find_declared_type(column))
            if derivation is None
            else infer_derived_type(derivation, SqlType.TIMESTAMP)
        )

    def _find_declared_type(self, column: str) -> str:
        section = self._table.columns.get(column, ColumnSection())
        if section.type is not None:
            return section.type
        if column in self._known:
            return self._known[column]
        if section.bounds is not None:
            fractional = section.grid is not None and section.grid != section.grid.to_integral_value()
            return "numeric" if fractional else "integer"
        if section.key is not None and section.key.values_from is not None and self._is_pinned(section.key.values_from):
            table, _, public = section.key.values_from.partition(".")
            pinned = self._pins.get_table(table)
            found = [known.declared for known in pinned.columns if known.name == public] if pinned else []
            return found[0] if found else "text"
        if section.key is not None:
            return _find_value_type(section.key)
        if any(derivation.column == column for derivation in self._derived.values()):
            return "timestamp without time zone"
        if column in self._times:
            return "timestamp without time zone"
        if column not in self._question.numeric:
            return "text"
        names = (*self._table.unit_columns, *self._reached, *self._question.grouped)
        return "integer" if column in names else "numeric"


def _find_value_type(key: KeySection) -> str:
    """Return the type of the values that a key section lists."""
    first = (key.values or key.range or ("",))[0]
    match first:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case datetime():
            return "timestamp without time zone"
        case date():
            return "date"
        case str() if key.range is not None:
            hours = isinstance(key.step, str) and any(unit in key.step for unit in _TRUNCATED_TO_HOURS)
            return "timestamp without time zone" if hours or not _is_date(first) else "date"
        case _:
            return "text"


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _invent_values(
    kind: SqlType, derivation: Derivation | None, question: _ColumnUse, *, size: int
) -> tuple[Value, ...]:
    """Return values for an invented domain: first the question's own constants of the type."""
    candidates: dict[SqlType, Callable[[], Iterator[Value]]] = {
        SqlType.BOOLEAN: lambda: iter((True, False)),
        SqlType.INTEGER: lambda: _chain_values(question.numbers, count(0)),
        SqlType.DATE: lambda: _chain_values(_parse_dates(question.constants), _count_days()),
        SqlType.TIMESTAMP: lambda: (_START + timedelta(hours=hour) for hour in range(_MOST_TRIED)),
    }
    texts = candidates.get(kind, lambda: _chain_values(question.constants, (f"value {number}" for number in count(1))))
    limit = max(_MOST_TRIED, 2 * size)
    tried = dict.fromkeys(islice(texts(), limit))
    fitting = (value for value in tried if derivation is None or is_possible(derivation, value))
    return tuple(islice(fitting, size))


def _chain_values(first: Sequence[Value], then: Iterator[Value]) -> Iterator[Value]:
    yield from first
    yield from then


def _count_days() -> Iterator[Value]:
    return ((_START + timedelta(days=day)).date() for day in range(_MOST_TRIED))


def _parse_dates(texts: Sequence[str]) -> tuple[Value, ...]:
    return tuple(date.fromisoformat(text) for text in texts if _is_date(text))
