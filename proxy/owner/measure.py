"""The figures of `keyhole check --measure`: how many rows the policy's bounds and domains leave out. For the owner.

The figures are exact and not protected. Nothing is charged, since nothing is released.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from math import ceil, prod
from pathlib import Path
from typing import Any

from planner.bind.computed_groupings import read_grouping
from planner.bind.grouping_bounds import apply_grouping_bounds
from planner.bind.unit_join import have_same_units
from planner.catalog.catalog import Catalog, Column, Table, ValueGroups
from planner.catalog.joined_rows import share_joined_rows
from planner.catalog.key_space import format_value, quote_in_row
from planner.lower.left_out import WORST, LeftOutRows
from planner.policy.compile_column import list_exposed_names
from planner.policy.file import Policy
from proxy.open_policy.pins import find_pins_path, read_pins
from proxy.sources.protocol import Source
from proxy.sources.shared import open_policy_source

WARNING = (
    "OWNER ONLY: exact figures from private data. Do not show them to analysts. Bounds are public, and EXPLAIN "
    "prints them: bounds that you choose by these figures would reveal what you saw."
)
NEGLIGIBLE = 0.001  # of rows, units or a total: less is not worth a line
_ROUNDING = 1e-9  # of sums of shares: far below what a row changes, far above what floats lose
_IN_DOCUMENT = {"most_cut_groups": "worst", "declared_share": "told"}  # names that readers of the document know
_BAD = 0.05  # from here on answers differ from the truth by more than most tolerances forgive


@dataclass(frozen=True, slots=True)
class Share:
    """A total (`all`), and the part of it that questions count (`counted`)."""

    all: float
    counted: float

    @property
    def left_out(self) -> float:
        """The share of the total that questions do not count, by absolute size."""
        return abs(self.all - self.counted) / abs(self.all) if self.all else 0.0


@dataclass(frozen=True, slots=True)
class GroupLeftOut:
    """One group, with its units and rows, and how many of them bounding keeps."""

    key: tuple[str, ...]
    units: Share
    rows: Share


@dataclass(frozen=True, slots=True)
class GroupingLeftOut:
    """The rows and units that bounding leaves out, for groups by `keys`. Without keys, all rows are one group.

    `possible` is the number of groups in the key domains, `groups` the number of those with rows. Of these,
    `groups_past_tenth` and `groups_past_half` lose more than a tenth, or half, of their rows. `declared_share` is the
    share of rows that the policy publishes, as text. Computed groups (`is_computed`) cannot publish one.
    """

    keys: tuple[str, ...]
    groups_per_unit: int
    possible: int
    groups: int
    groups_past_tenth: int
    groups_past_half: int
    units: int
    units_cut: int
    units_above_a_bound: int
    mean_groups: float
    most_groups: int
    memberships: Share
    rows: Share
    totals: tuple[tuple[str, Share], ...]
    most_cut_groups: tuple[GroupLeftOut, ...]
    declared_share: str | None
    is_computed: bool = False

    @property
    def share_to_tell(self) -> str:
        """The share of rows that is left out, as text for the policy.

        It is rounded up to whole percent, to reveal little.
        """
        return f"{ceil(100 * self.rows.left_out - _ROUNDING)} %"


@dataclass(frozen=True, slots=True)
class ClippedValues:
    """How many values of a measure lie outside its bounds, and how much clipping changes their total."""

    name: str
    values: int
    below: int
    above: int
    total: Share


@dataclass(frozen=True, slots=True)
class OutsideDomain:
    """The rows whose key value is not in the public domain, with the most frequent such values."""

    name: str
    rows: int
    values: tuple[tuple[str | None, int], ...]


@dataclass(frozen=True, slots=True)
class UnconvertedValues:
    """How many values of a column are not valid for its type, and so become NULL in questions.

    `kind` is the type in which the values are stored.
    """

    name: str
    declared: str
    values: int
    kind: str = "values"


@dataclass(frozen=True, slots=True)
class JoinLeftOut:
    """The units and rows that a join leaves out, because it reads at most a public number of each unit's rows.

    `tables` are the joined tables. At most `rows_of_unit` rows of each unit are read, and `units_cut` units have more.
    """

    tables: tuple[str, ...]
    rows_of_unit: int
    units: int
    units_cut: int
    rows: Share


@dataclass(frozen=True, slots=True)
class TableLeftOut:
    """All figures of one table: rows, values and units that the policy leaves out."""

    table: str
    unit: tuple[str, ...]
    rows: int
    rows_without_unit: int
    outside: tuple[OutsideDomain, ...]
    clipped: tuple[ClippedValues, ...]
    groupings: tuple[GroupingLeftOut, ...]
    joins: tuple[JoinLeftOut, ...] = ()
    unconverted: tuple[UnconvertedValues, ...] = ()

    def write_lines(self) -> Iterator[str]:
        """Yield the report's lines for a terminal."""
        missing = self.rows_without_unit
        unit = (
            ""
            if not missing
            else f", {_write_share(missing, self.rows)} of them without {' or '.join(self.unit)}, which never count"
        )
        yield f"{self.table}: {self.rows:,} rows{unit}"
        for lost in self.unconverted:
            yield f"  {lost.name}: {lost.values:,} {lost.kind} are no {lost.declared}, and are read as NULL"
        for outside in self.outside:
            yield (
                f"  {outside.name}: {_write_share(outside.rows, self.rows)} of the rows have a value outside the domain"
            )
            for value, count in outside.values:
                yield f"    {'NULL' if value is None else value}: {count:,} rows"
        for one in self.clipped:
            beyond = _write_share(one.below + one.above, one.values)
            yield f"  {one.name}: {beyond} of the values are clipped ({one.below:,} below, {one.above:,} above),"
            yield f"    which changes their total by {_write_percent(one.total.left_out)}"
        for grouping in self.groupings:
            yield from _describe_grouping(grouping, ", ".join(self.unit))
        for join in self.joins:
            if join.units_cut:
                yield f"  a join with {', '.join(join.tables)} reads {join.rows_of_unit:,} rows of a unit:"
                yield (
                    f"    {_write_share(join.units_cut, join.units)} of the units have more, {join.units_cut:,} in all;"
                )
                yield f"    {_write_percent(join.rows.left_out)} of the rows are left out (joined_rows_per_unit)"


def _describe_grouping(found: GroupingLeftOut, unit: str) -> Iterator[str]:
    groups = f"{found.groups_per_unit:,} group{'' if found.groups_per_unit == 1 else 's'}"
    if found.groups_per_unit < found.possible:
        groups = f"{found.groups_per_unit:,} of {found.possible:,} groups"
    if found.keys:
        yield f"  by {', '.join(found.keys)}, where one ({unit}) counts in at most {groups}:"
        yield f"    {found.units:,} units, in {found.mean_groups:.1f} groups in the mean, {found.most_groups:,} at most"
    else:
        yield f"  of questions without keys, for which all rows of one ({unit}) are in one group:"
        yield f"    {found.units:,} units"
    parts = [("units", found.memberships), ("rows", found.rows), *((f"the total of {n}", k) for n, k in found.totals)]
    told = [f"{_write_percent(kept.left_out)} of {name}" for name, kept in parts if kept.left_out >= NEGLIGIBLE]
    if found.units_above_a_bound:
        above = f"{found.units_above_a_bound:,} units are above a bound"
        yield f"    {above}: a question may reveal twice its charge about their cells"
    if not told:
        yield "    nothing is left out"
        yield from _suggest_policy_line(found)
        return
    if not found.keys:
        yield f"    left out are {', '.join(told)}"
        return
    yield (
        f"    {_write_share(found.units_cut, found.units)} of the units are cut; left out of groups are "
        f"{', '.join(told)}"
    )
    past = f"in {found.groups_past_tenth:,} of {found.groups:,} groups with rows, more than half in"
    yield f"    more than a tenth of the rows is left out {past} {found.groups_past_half:,}"
    worst = [
        f"{' '.join(map(quote_in_row, one.key))} "
        f"({_write_percent(one.rows.left_out)} of its rows, {_write_percent(one.units.left_out)} of its units)"
        for one in found.most_cut_groups
    ]
    if worst:
        yield f"    worst: {', '.join(worst)}"
    yield from _suggest_policy_line(found)
    if found.memberships.left_out >= _BAD:
        most = found.most_groups
        yield f'    consider groupings."{", ".join(found.keys)}" = {{ max_groups = ... }}, if {most:,} is no secret'


def _suggest_policy_line(found: GroupingLeftOut) -> Iterator[str]:
    """Yield the policy line that would publish the share of rows to analysts.

    Yield nothing if there is no share to publish, or if the policy publishes it already.
    """
    if not found.keys or found.is_computed or found.declared_share == found.share_to_tell:
        return
    if found.declared_share is not None or found.rows.left_out >= NEGLIGIBLE:
        now = "" if found.declared_share is None else f", where it says {found.declared_share}"
        line = f'cut_rows."{", ".join(found.keys)}" = "{found.share_to_tell}"'
        yield f"    if everybody may know, tell analysts in the policy{now}: {line}"


def measure(policy_path: Path, catalog: Catalog) -> tuple[TableLeftOut, ...]:
    """Measure the rows that questions leave out in each private table.

    Rows are counted for each declared grouping, for each key alone, and without keys.

    Parameters:
        catalog: the policy's catalog, with everything pinned.

    Raises:
        KeyholeError: KH006, KH008.
    """
    policy = Policy.load(policy_path)
    with closing(open_policy_source(policy)) as source:
        found = measure_tables(catalog, source)
        return tuple(
            replace(one, unconverted=(*_count_texts(policy, one.table, source), *one.unconverted)) for one in found
        )


def _count_texts(policy: Policy, table: str, source: Source) -> tuple[UnconvertedValues, ...]:
    """Count, for each column of a CSV file, the texts that are not valid for its type.

    Raise KH006 if the file cannot be read.

    Return none for a table that is no CSV file.
    """
    file = read_pins(find_pins_path(policy)).get_csv_file(table)
    if file is None:
        return ()
    exposed = list_exposed_names(policy, table)
    typed = {name: kind for name, kind in file.columns if name in exposed and kind != "text"}
    if not typed:
        return ()
    path = str(policy.directory / (policy.tables[table].relation or table))
    (counts,) = source.read_for_owner(
        policy.write_relation(table, csv=file), file.count_unconverted(path, tuple(typed))
    )
    found = zip(typed.items(), counts, strict=True)
    return tuple(UnconvertedValues(name, kind, int(str(count)), "texts") for (name, kind), count in found if count)


def measure_tables(catalog: Catalog, source: Source) -> tuple[TableLeftOut, ...]:
    """Measure the private tables of an open source, as `measure` does.

    Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
    """
    return tuple(_measure_table(table, source, catalog.tables) for table in catalog.tables)


def _measure_table(table: Table, source: Source, tables: Sequence[Table]) -> TableLeftOut:
    reading = LeftOutRows(table, source.dialect)
    keys = [column for column in table.columns if column.domain is not None]
    measures = [column for column in table.columns if column.bounds is not None]
    ((rows, with_unit),) = _read(source, table, reading.count_rows())
    return TableLeftOut(
        table=table.name,
        unit=table.unit,
        rows=int(rows),
        rows_without_unit=int(rows) - int(with_unit),
        outside=tuple(one for one in (_find_outside_values(key, reading, source) for key in keys) if one.rows),
        clipped=tuple(
            two for two in (_measure_clipping(one, reading, source) for one in measures) if two.below + two.above
        ),
        groupings=()
        if table.is_row_unit
        else (
            *measure_groupings(table, _list_key_sets(table, keys), source),
            *_measure_computed_groupings(table, source),
        ),
        joins=tuple(_measure_join(table, others, reading, source) for others in _list_joins(table, tables)),
        unconverted=tuple(_count_unread_values(table, reading, source)),
    )


def _count_unread_values(table: Table, reading: LeftOutRows, source: Source) -> Iterator[UnconvertedValues]:
    columns, statement = reading.count_unread()
    for column, count in zip(columns, _read(source, table, statement)[0], strict=True):
        if int(count):
            yield UnconvertedValues(column.name, column.declared, int(count))


def _list_joins(table: Table, tables: Sequence[Table]) -> Iterator[tuple[Table, ...]]:
    """Yield the joins of a table to measure: with each other table alone, and with all of them.

    If several joins read the same number of a unit's rows, yield only the first one.
    """
    if not table.unit or table.row_cap is not None:
        return
    others = tuple(
        one for one in tables if one.name != table.name and one.row_cap is None and have_same_units((table, one))
    )
    told: set[int] = set()
    for joined in (*((one,) for one in others), others):
        if joined and (rows := _count_rows_read(table, joined)) not in told:
            told.add(rows)
            yield joined


def _count_rows_read(table: Table, others: Sequence[Table]) -> int:
    """Return how many rows of one unit a join reads from a table."""
    return share_joined_rows([one.joined_rows for one in (table, *others)])[0]


def _measure_join(table: Table, others: Sequence[Table], reading: LeftOutRows, source: Source) -> JoinLeftOut:
    rows = _count_rows_read(table, others)
    ((units, cut, all_rows, read),) = _read(source, table, reading.count_joined_rows(rows))
    share = Share(float(all_rows), float(read))
    return JoinLeftOut(tuple(one.name for one in others), rows, int(units), int(cut), share)


def measure_groupings(
    table: Table, key_sets: Sequence[tuple[Column, ...]], source: Source
) -> tuple[GroupingLeftOut, ...]:
    """Return, for each set of keys, how many rows bounding leaves out of the groups.

    Raise KH006 if the relation cannot be read, and KH008 if the source does not answer.
    """
    return tuple(_measure_bounding(keys, source, table) for keys in key_sets)


def _measure_computed_groupings(table: Table, source: Source) -> Iterator[GroupingLeftOut]:
    """Measure the declared groupings by computed keys, if the policy alone defines their groups."""
    for grouping in table.groupings:
        if grouping.computed:
            known, keys = read_grouping(table, grouping)
            if all(key.domain for key in keys):
                yield _measure_bounding(keys, source, known)


def _list_key_sets(table: Table, keys: Sequence[Column]) -> list[tuple[Column, ...]]:
    named = [grouping for grouping in table.groupings if not grouping.computed]
    declared = [tuple(table.get_column(name) for name in grouping.keys) for grouping in named]
    told = [tuple(table.get_column(name) for name in one.keys) for one in table.cut_rows]
    single = [(key,) for key in keys if not table.determines(key)]
    by_names: dict[frozenset[str], tuple[Column, ...]] = {}
    for keys_ in (*declared, *told, *single, ()):
        by_names.setdefault(frozenset(key.name for key in keys_), keys_)
    return list(by_names.values())


def _find_outside_values(key: Column, reading: LeftOutRows, source: Source) -> OutsideDomain:
    found = _read(source, reading.table, reading.list_values_outside(key))
    listed = set(map(format_value, key.domain or ()))
    outside = [(value, int(count)) for value, count in found if value is None or value not in listed]
    return OutsideDomain(key.name, sum(count for _, count in outside), tuple(outside[:WORST]))


def _measure_clipping(measure_: Column, reading: LeftOutRows, source: Source) -> ClippedValues:
    ((values, below, above, total, clipped),) = _read(source, reading.table, reading.measure_clipping(measure_))
    return ClippedValues(measure_.name, int(values), int(below), int(above), Share(float(total), float(clipped)))


def _measure_bounding(keys: tuple[Column, ...], source: Source, table: Table) -> GroupingLeftOut:
    bounded = apply_grouping_bounds(table, keys)
    reading = LeftOutRows(bounded, source.dialect)
    ((units, cut, mean, most, above),) = _read(source, table, reading.count_units(keys))
    groups = _read(source, table, reading.measure_groups(keys))
    own = len(keys)
    found = [
        GroupLeftOut(
            tuple(map(_name_group, keys, one[:own])), *(Share(float(one[i]), float(one[i + 1])) for i in (own, own + 2))
        )
        for one in groups
    ]
    found.sort(key=lambda one: (-one.rows.left_out, -one.units.left_out))
    measures = [column.name for column in table.columns if column.bounds is not None]

    def sum_up(place: int) -> Share:
        at = own + place
        return Share(sum(float(one[at]) for one in groups), sum(float(one[at + 1]) for one in groups))

    return GroupingLeftOut(
        keys=tuple(key.name for key in keys),
        groups_per_unit=bounded.groups_per_unit,
        possible=prod(len(key.domain or ()) for key in keys),
        groups=len(found),
        groups_past_tenth=sum(one.rows.left_out > 0.1 + _ROUNDING for one in found),
        groups_past_half=sum(one.rows.left_out > 0.5 + _ROUNDING for one in found),
        units=int(units),
        units_cut=int(cut),
        units_above_a_bound=int(above),
        mean_groups=float(mean or 0),
        most_groups=int(most or 0),
        memberships=sum_up(0),
        rows=sum_up(2),
        totals=tuple((name, sum_up(4 + 2 * i)) for i, name in enumerate(measures)),
        most_cut_groups=tuple(one for one in found[:WORST] if keys and one.rows.left_out >= NEGLIGIBLE),
        is_computed=any(key.computed for key in keys),
        declared_share=next((one.share for one in table.cut_rows if set(one.keys) == {key.name for key in keys}), None),
    )


def _name_group(key: Column, value: Any) -> str:
    """Return the name of a group for people. A group of a computed key is named by one of its values."""
    if not isinstance(key.derivation, ValueGroups):
        return str(value)
    lies = key.derivation.shown_values[int(value)]
    return f"{key.derivation.column} {'NULL' if lies is None else f'such as {format_value(lies)}'}"


def _read(source: Source, table: Table, sql: str) -> tuple[tuple[Any, ...], ...]:
    return source.read_for_owner(table.relation, sql)


def _write_share(part: float, whole: float) -> str:
    return _write_percent(part / whole if whole else 0.0)


def _write_percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share >= 0.0005 or share == 0 else "under .1 %"


def make_document(found: Sequence[TableLeftOut]) -> dict[str, Any]:
    """Return the report as a JSON document."""
    return {"owner_only": WARNING, "tables": [asdict(one, dict_factory=_name_fields) for one in found]}


def _name_fields(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a value's fields by their names in the document."""
    return {_IN_DOCUMENT.get(name, name): value for name, value in fields}
