"""The sections of a policy, `keyhole.toml`, as typed values.

The value of one key is checked here. `planner.policy.rules` checks rules between keys.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator

from mechanisms.registry import BOUNDED, DEFAULT, MECHANISMS
from mechanisms.streams.stream_names import HIERARCHIES
from planner.catalog.catalog import MOST_BANDS
from planner.catalog.fault import Fault, suggest_nearest_name
from planner.catalog.joined_rows import MOST_OF_ONE_TABLE
from planner.catalog.monitor import MECHANISMS as OF_MONITORS
from planner.catalog.pace import LONGEST_TIMEOUT_MS
from planner.policy.durations import parse_duration, parse_moment

_LARGEST_THRESHOLD = Decimal(10) ** 15  # of bands: beyond any total, and short enough to be shown
_FINEST_THRESHOLD = Decimal("0.000001")  # of bands, for the same reason: finer than any grid that people choose
_PERCENT = re.compile(r"(100|[1-9]?[0-9](?:\.[0-9])?) ?%")


def _parse_number(raw: object) -> Decimal:
    if isinstance(raw, bool) or not isinstance(raw, int | Decimal):
        raise Fault("KH002", "a number is expected", hint="Write a number without quotes, such as 0.01.")
    number = Decimal(raw)
    if not number.is_finite():
        raise Fault("KH002", "a finite number is expected", hint="Write a number such as 5000.")
    return number


def _parse_real(raw: object) -> float:
    return float(_parse_number(raw))


def _parse_pair(raw: object) -> tuple[Decimal, Decimal]:
    if not isinstance(raw, list | tuple) or len(raw) != 2:
        raise Fault("KH004", "two numbers are expected", hint="Write the lower and the upper end, such as [0, 110].")
    return _parse_number(raw[0]), _parse_number(raw[1])


def _parse_thresholds(raw: object) -> tuple[Decimal, ...]:
    if not isinstance(raw, list | tuple) or not 0 < len(raw) <= MOST_BANDS:
        hint = f"Write 1 to {MOST_BANDS} numbers, the lowest first, such as [5000, 10000, 20000]."
        raise Fault("KH004", "a list of thresholds is expected", hint=hint)
    numbers = tuple(map(_parse_number, raw))
    if any(abs(number) >= _LARGEST_THRESHOLD or number % _FINEST_THRESHOLD for number in numbers):
        hint = "Write numbers below 10^15 with at most 6 digits after the point."
        raise Fault("KH004", "a threshold has too many digits", hint=hint)
    if any(low >= high for low, high in pairwise(numbers)):
        rising = ", ".join(f"{number:f}" for number in sorted(set(numbers)))
        raise Fault("KH004", "the thresholds do not rise", hint=f"Write [{rising}].")
    return numbers


def _parse_percent(raw: object) -> str:
    found = _PERCENT.fullmatch(raw) if isinstance(raw, str) else None
    if found is None:
        hint = 'Write a share from 0 % to 100 % in quotes, such as "12 %".'
        raise Fault("KH002", "a share with at most one digit after the point is expected", hint=hint)
    return f"{found[1]} %"


def _parse_bands(raw: object) -> object:
    """Return a plain list as the bands of sums."""
    return {"sum": _parse_thresholds(raw)} if isinstance(raw, list | tuple) else raw


@dataclass(frozen=True, slots=True)
class WrittenPath:
    """A path to the unit of another table's row: `privacy_unit = { through = "orders.o_orderkey", by = "l_orderkey" }`.

    `by` are columns of the table that declares the path. `through` are the columns of `table` with the same values, in
    the same order.
    """

    table: str
    by: tuple[str, ...]
    through: tuple[str, ...]


_PATH_HINT = 'Write { through = "orders.o_orderkey", by = "l_orderkey" }, or lists of as many columns in both.'


def _parse_path(raw: Mapping[str, object]) -> WrittenPath:
    unknown = sorted(set(raw) - {"through", "by"})
    if unknown:
        raise Fault("KH005", f"has no key {unknown[0]}", hint=_PATH_HINT)
    reached, by = _parse_names(raw.get("through")), _parse_names(raw.get("by"))
    if not reached or not by or len(reached) != len(by):
        raise Fault("KH005", "does not name as many columns in by as in through", hint=_PATH_HINT)
    places = [name.rpartition(".") for name in reached]
    tables = {table for table, _, _ in places}
    if len(tables) != 1 or "" in tables:
        hint = f"Name each column with its table, one table for all. {_PATH_HINT}"
        raise Fault("KH005", "does not name the columns of one table in through", hint=hint)
    if len(set(by)) != len(by) or len(set(reached)) != len(reached):
        raise Fault("KH005", "a column is named twice", hint="Name every column of the key once.")
    return WrittenPath(tables.pop(), by, tuple(column for _, _, column in places))


def _parse_names(raw: object) -> tuple[str, ...]:
    """Return a name or a list of names as a tuple; empty for anything else."""
    names = [raw] if isinstance(raw, str) else raw
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(map(str, names))


def _parse_unit(raw: object) -> tuple[str, ...] | WrittenPath:
    if raw == "row":
        return ()
    if isinstance(raw, WrittenPath):
        return raw
    if isinstance(raw, Mapping):
        return _parse_path(raw)
    names = [raw] if isinstance(raw, str) else raw
    if not isinstance(names, list | tuple) or not names or not all(isinstance(name, str) and name for name in names):
        hint = (
            'Name who is protected: privacy_unit = "patient_id", ["patient_id", "day"] or "row" (each row by itself).'
        )
        raise Fault("KH005", "no privacy unit is chosen", hint=hint)
    if len(set(names)) != len(names):
        raise Fault("KH005", "a column is named twice", hint="Name every column of the privacy unit once.")
    return tuple(str(name) for name in names)


def _parse_mechanism(raw: object) -> str:
    if isinstance(raw, str) and raw in MECHANISMS:
        return raw
    raise Fault("KH002", "is not a mechanism", hint=suggest_nearest_name(str(raw), MECHANISMS))


def _parse_mechanisms(raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list | tuple) or not raw:
        hint = f'Write the names that analysts may choose, such as ["{DEFAULT}"].'
        raise Fault("KH002", "a list of mechanisms is expected", hint=hint)
    names = tuple(_parse_mechanism(name) for name in raw)
    if len(set(names)) != len(names):
        raise Fault("KH002", "a mechanism is named twice", hint="Name every mechanism once.")
    return names


def _parse_monitor_mechanism(raw: object) -> str:
    if isinstance(raw, str) and raw in OF_MONITORS:
        return raw
    known = f"Write one of {', '.join(OF_MONITORS)}."
    if isinstance(raw, str) and raw in HIERARCHIES:
        raise Fault("KH002", "releases the counts of a hierarchy, and a monitor has none", hint=known)
    raise Fault("KH002", "is not a mechanism of monitors", hint=known)


def _parse_window(raw: object) -> object:
    """Return a plain name as a window section: each value of that column is a window."""
    return {"column": raw} if isinstance(raw, str) else raw


def _convert_list(raw: object) -> object:
    return tuple(raw) if isinstance(raw, list) else raw


Number: TypeAlias = Annotated[Decimal, BeforeValidator(_parse_number)]
Percent: TypeAlias = Annotated[str, PlainValidator(_parse_percent)]
Pair: TypeAlias = Annotated[tuple[Decimal, Decimal], BeforeValidator(_parse_pair)]
Rate: TypeAlias = Annotated[float, BeforeValidator(_parse_real), Field(gt=0, lt=0.5)]
Epsilon: TypeAlias = Annotated[float, BeforeValidator(_parse_real), Field(gt=0, le=1000)]
Delta: TypeAlias = Annotated[float, BeforeValidator(_parse_real), Field(ge=1e-30, le=1e-5)]
Count: TypeAlias = Annotated[int, Field(ge=1, le=2**31)]
Port: TypeAlias = Annotated[int, Field(ge=0, le=65535)]
Names: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_convert_list)]
Values: TypeAlias = Annotated[tuple[object, ...], BeforeValidator(_convert_list)]
Thresholds: TypeAlias = Annotated[tuple[Decimal, ...], BeforeValidator(_parse_thresholds)]
Unit: TypeAlias = Annotated[tuple[str, ...] | WrittenPath, PlainValidator(_parse_unit)]
MechanismName: TypeAlias = Annotated[str, BeforeValidator(_parse_mechanism)]
MechanismNames: TypeAlias = Annotated[tuple[str, ...], BeforeValidator(_parse_mechanisms)]
MonitorMechanismName: TypeAlias = Annotated[str, BeforeValidator(_parse_monitor_mechanism)]
Duration: TypeAlias = Annotated[timedelta, BeforeValidator(parse_duration)]
Moment: TypeAlias = Annotated[date, PlainValidator(parse_moment)]
Secret: TypeAlias = Annotated[str, Field(repr=False)]


KeptText: TypeAlias = Literal["full", "redacted", "none"]
MemorySize = Annotated[str, Field(pattern=r"^[1-9][0-9]*(MB|GB|TB)$", examples=["4GB"])]
SourceKind: TypeAlias = Literal["duckdb", "postgresql", "spark"]


class Section(BaseModel):
    """The base of the policy file's sections: frozen, without unknown keys or silent conversions."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class SourceSection(Section):
    """`[source]`: where the private data lives."""

    url: Secret
    engine: Literal["spark", "sail"] | None = None
    token: str | None = Field(default=None, repr=False, min_length=1)
    ca: Annotated[str, Field(min_length=1)] | None = None
    catalog: Annotated[str, Field(min_length=1)] | None = None
    database: Annotated[str, Field(min_length=1)] | None = None
    rollups: Annotated[int, Field(ge=0, le=1000)] = 4
    rollup_rows: Annotated[int, Field(ge=1, le=10**12)] = 20_000_000
    skip_blocks: bool = False
    hold: bool = True
    scratch: Annotated[str, Field(min_length=1, max_length=63)] | None = None
    memory_limit: MemorySize | None = None
    threads: Annotated[int, Field(ge=1, le=1024)] | None = None
    temp_directory: Annotated[str, Field(min_length=1)] | None = None
    work_mem: MemorySize | None = None
    max_parallel_workers_per_gather: Annotated[int, Field(ge=0, le=1024)] | None = None

    @property
    def kind(self) -> SourceKind:
        """The engine that `url` names. A URL of neither DuckDB nor Spark is PostgreSQL's."""
        scheme = self.url.partition(":")[0]
        return "duckdb" if scheme == "duckdb" else "spark" if scheme == "sc" else "postgresql"

    @property
    def has_rollups(self) -> bool:
        """True if the source may keep rollups. Nothing is ever written to Spark."""
        return self.rollups > 0 and self.kind != "spark"


class LedgerSection(Section):
    """`[ledger]`: where the spent budget is recorded."""

    url: Secret = "sqlite:///keyhole.db"
    timeout_ms: Annotated[int, Field(ge=100, le=600_000)] = 10_000
    keep_text: KeptText = "redacted"


class ShadowSection(Section):
    """`[shadow]`: the data-free PostgreSQL behind every session."""

    bindir: Annotated[str, Field(min_length=1)] | None = None


class AccuracySection(Section):
    """`[accuracy]`: the contract of questions whose session sets none."""

    fnr: Rate = 0.05
    fpr: Rate = 0.10
    tolerance: str = "10%"
    min_rows: Count = 50
    mechanism: MechanismName = DEFAULT
    numbers: Literal["null", "threshold", "bands", "refuse"] = "null"
    mechanisms: MechanismNames = BOUNDED
    guard: Literal["add", "refuse"] = "add"


class BudgetSection(Section):
    """`[budget]`: caps over all analysts, and the loss above which a question needs the owner's approval."""

    epsilon_per_predicate: Epsilon
    epsilon_per_query: Epsilon
    epsilon_per_unit: Epsilon | None = None
    epsilon_per_table: Epsilon | None = None
    approval_above_epsilon: Epsilon | None = None
    delta: Delta | None = None
    delta_per_cell: Delta | None = None
    cells: Literal["uncut units", "every unit"] = "uncut units"


class LimitsSection(Section):
    """`[limits]`: bounds on one question's size and time."""

    max_keys: Annotated[int, Field(ge=1, le=10_000_000)] = 1_000_000
    statement_timeout_ms: Annotated[int, Field(ge=1, le=LONGEST_TIMEOUT_MS)] = 30_000


class TlsSection(Section):
    """`[server.tls]`: the certificate of both endpoints, and the certificates that PostgreSQL's endpoint accepts."""

    certificate: str
    key: str
    client_ca: str | None = None
    require: bool = True
    minimum: Literal["1.2", "1.3"] = "1.2"


class ServerLimitsSection(Section):
    """`[server.limits]`: the limits of the PostgreSQL endpoint, and the timeouts of idle sessions."""

    connections: Annotated[int, Field(ge=1, le=2000)] = 200
    connections_per_analyst: Annotated[int, Field(ge=1, le=2000)] = 50
    unauthenticated: Annotated[int, Field(ge=1, le=2000)] = 200  # all who could have a session may come at once
    statements: Annotated[int, Field(ge=1, le=100_000)] = 1000
    portals: Annotated[int, Field(ge=1, le=100_000)] = 1000
    idle_timeout_s: Annotated[int, Field(ge=0, le=86_400)] = 0
    idle_in_transaction_timeout_s: Annotated[int, Field(ge=0, le=86_400)] = 0
    unread_timeout_s: Annotated[int, Field(ge=0, le=86_400)] = 600
    session_memory_mb: Annotated[int, Field(ge=64, le=1_000_000)] = 512
    shadow_memory_mb: Annotated[int, Field(ge=64, le=10_000_000)] = 2048


class RestSection(Section):
    """`[server.rest]`: REST's limits and timeouts, and the proxies whose headers are trusted."""

    tls: bool = True
    requests_per_minute: Count = 600
    requests_per_minute_per_address: Count = 1200
    failed_logins_per_minute: Count = 10
    concurrent_requests: Annotated[int, Field(ge=1, le=1000)] = 32
    concurrent_requests_per_analyst: Annotated[int, Field(ge=1, le=1000)] = 8
    connections: Annotated[int, Field(ge=1, le=100_000)] = 200
    receive_timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 15_000
    send_timeout_ms: Annotated[int, Field(ge=1, le=86_400_000)] = 60_000
    keep_alive_s: Annotated[int, Field(ge=1, le=3600)] = 5
    idempotency_days: Annotated[int, Field(ge=1, le=366)] = 7
    origins: Names = ()
    trusted_proxies: Names = ()


class ConsoleSection(Section):
    """`[server.console]`: the pages at /console, for analysts and, with the owner's token, for owners."""

    enabled: bool = True
    session_minutes: Annotated[int, Field(ge=1, le=10_080)] = 480
    owner_token_sha256: str | None = Field(default=None, repr=False)
    owner_from: Literal["loopback", "anywhere"] = "loopback"


class PlaySection(Section):
    """`[server.play]`: the playground in the console, which has invented people only."""

    enabled: bool = False
    scores: Annotated[str, Field(min_length=1)] = "keyhole-play.sqlite"


class ServerSection(Section):
    """`[server]`: where Keyhole listens and the database name that clients give."""

    host: str = "127.0.0.1"
    port: Port = 6432
    rest_port: Port = 8432
    database: str = "keyhole"
    metrics_host: str = "127.0.0.1"
    metrics_port: Port | None = None
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    release_every_ms: Annotated[int, Field(ge=0, le=10_000)] = 0
    tls: TlsSection | None = None
    limits: ServerLimitsSection = ServerLimitsSection()
    rest: RestSection = RestSection()
    console: ConsoleSection = ConsoleSection()
    play: PlaySection = PlaySection()


class AnalystSection(Section):
    """`[analysts.NAME]`: an analyst who may log in, and their own caps below the shared ones."""

    password: Secret
    token_sha256: str | None = Field(default=None, repr=False)
    certificate_name: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    epsilon_per_predicate: Epsilon | None = None
    epsilon_per_unit: Epsilon | None = None


class ViewSection(Section):
    """`[views.NAME]`: a stored question that clients see as a relation."""

    sql: str
    comment: str | None = None
    parameters: dict[str, bool | int | float | date | str] = Field(default_factory=dict)


class WindowSection(Section):
    """`window = {...}`: the windows that a monitor watches."""

    column: Annotated[str, Field(min_length=1)]
    length: Duration | None = None
    hop: Duration | None = None
    sliding: bool = False


class MonitorSection(Section):
    """`[monitors.NAME]`: a standing question over arriving data."""

    sql: str
    window: Annotated[WindowSection, BeforeValidator(_parse_window)]
    every: Duration
    lateness: Duration = timedelta(0)
    from_: Moment = Field(alias="from")  # a word of Python
    until: Moment
    fnr: Rate | None = None
    fpr: Rate | None = None
    tolerance: str | None = None
    alert: Literal["early", "close"] | None = None
    clears: Literal["at the close", "at once"] = "at the close"
    early_any: bool = False
    mechanism: MonitorMechanismName = OF_MONITORS[0]
    epsilon: Epsilon | None = None
    progressive: bool = False
    analysts: Names = ()
    comment: str | None = None


class KeySection(Section):
    """`key = {...}`: the public domain of a grouping column; exactly one of `values`, `values_from`, `range`."""

    values: Values | None = None
    values_from: str | None = None
    range: Values | None = None
    step: object = None


class BandsSection(Section):
    """`bands = {...}`: proposed thresholds for a measure's aggregates or a table's counts."""

    sum: Thresholds | None = None
    avg: Thresholds | None = None
    rows: Thresholds | None = None
    units: Thresholds | None = None


class ColumnSection(Section):
    """`[tables.TABLE.columns.COLUMN]`: one exposed column. An empty section makes it neither a key nor a measure."""

    key: KeySection | None = None
    bounds: Pair | None = None
    grid: Number | None = None
    per_unit: Pair | None = None
    bands: Annotated[BandsSection | None, BeforeValidator(_parse_bands)] = None
    expression: str | None = None
    type: str | None = None
    max_length: Annotated[int, Field(ge=1, le=100_000)] | None = None
    filter: bool | None = None
    groupable: bool | None = None
    comment: str | None = None


class RowCapSection(Section):
    """`max_rows_per_group = {...}`: bounding by a choice of rows, at most `rows` per unit and group."""

    rows: Count
    unique: str


class GroupingSection(Section):
    """`groupings."KEY, KEY" = {...}`: the contribution bounds of a unit in the groups of these keys."""

    max_groups: Count | None = None
    rows: Count | None = None
    per_unit: dict[str, Pair] = Field(default_factory=dict)


class SizeSection(Section):
    """`size = {...}`: the approximate number of rows and units of a table, which is public."""

    rows: Annotated[int, Field(ge=1, le=10**12)]
    units: Annotated[int, Field(ge=1, le=10**12)] | None = None


def split_keys(named: str) -> tuple[str, ...]:
    """Return the key columns and expressions that the name of a grouping lists."""
    parts, depth, is_text = [""], 0, False
    for character in named:
        is_text ^= character == "'"
        depth += 0 if is_text else (character == "(") - (character == ")")
        if character == "," and depth == 0 and not is_text:
            parts.append("")
        else:
            parts[-1] += character
    return tuple(part.strip() for part in parts)


class TableSection(Section):
    """`[tables.NAME]`: one private table. With `public = true`: a public table, which is pinned and copied whole."""

    relation: str | None = None
    known_as: str | None = None
    comment: str | None = None
    public: bool = False
    privacy_unit: Unit | None = None
    max_groups_per_unit: Count | None = None
    rows_per_unit: Count | None = None
    max_rows_per_group: RowCapSection | None = None
    groupings: dict[str, GroupingSection] = Field(default_factory=dict)
    totals: dict[str, Pair] = Field(default_factory=dict)
    ranges: dict[str, Pair] = Field(default_factory=dict)
    size: SizeSection | None = None
    cut_rows: dict[str, Percent] = Field(default_factory=dict)
    bands: BandsSection | None = None
    same_unit_as: str | None = None
    unique: Names = ()
    joined_rows_per_unit: Annotated[int, Field(ge=1, le=MOST_OF_ONE_TABLE)] | None = None
    groupable: bool | None = None
    immutable: Names = ()
    append_only: bool = False
    arrived: Annotated[str, Field(min_length=1)] | None = None
    epsilon_per_table: Epsilon | None = None
    approval_above_epsilon: Epsilon | None = None
    refresh: str | None = None
    seed: str | None = None
    columns: dict[str, ColumnSection] = Field(default_factory=dict)

    @property
    def path(self) -> WrittenPath | None:
        """The step by which rows find their unit in another table, if there is one."""
        return self.privacy_unit if isinstance(self.privacy_unit, WrittenPath) else None

    @property
    def unit_columns(self) -> tuple[str, ...]:
        """The table's own columns that identify a row's unit: the unit itself, or the columns of the path to it."""
        if isinstance(self.privacy_unit, WrittenPath):
            return self.privacy_unit.by
        return self.privacy_unit or ()

    @property
    def leads_to(self) -> str | None:
        """The table with the same units as this one, according to `same_unit_as` or a path."""
        return self.same_unit_as if self.path is None else self.path.table


class PolicyDocument(Section):
    """A whole policy file before the rules between its keys are checked."""

    source: SourceSection
    ledger: LedgerSection = LedgerSection()
    shadow: ShadowSection = ShadowSection()
    accuracy: AccuracySection = AccuracySection()
    budget: BudgetSection
    limits: LimitsSection = LimitsSection()
    server: ServerSection = ServerSection()
    tables: dict[str, TableSection] = Field(default_factory=dict)
    views: dict[str, ViewSection] = Field(default_factory=dict)
    monitors: dict[str, MonitorSection] = Field(default_factory=dict)
    analysts: dict[str, AnalystSection] = Field(default_factory=dict)

    @property
    def private_tables(self) -> Mapping[str, TableSection]:
        """The tables whose rows are protected."""
        return {name: table for name, table in self.tables.items() if not table.public}

    @property
    def public_tables(self) -> Mapping[str, TableSection]:
        """The tables that are pinned and copied whole."""
        return {name: table for name, table in self.tables.items() if table.public}
