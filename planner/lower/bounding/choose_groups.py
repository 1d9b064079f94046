"""The choice of the groups of a privacy unit that count, if the unit may be in more of them.

The first G groups count, in an order that no data can influence. There are two ways to find them. One ranks all groups
of all units. It is used at a look, where the groups that came first count. The other makes a list of the units in more
than G groups, each with the md5 of the first group that does not count. Every group of any other unit counts, and of a
listed unit the groups before that one. The list is made from units and keys alone. So a question tests WHERE on rows as
it reads them, and computes md5 of few pairs.

Guarantee: both ways keep the same groups, at most G of each unit, whatever the data. They are chosen among the groups
that the unit has in all eligible rows, whether or not WHERE keeps these.

Proof: docs/proofs/joint_loss.md.
"""

from collections.abc import Sequence

from planner.catalog.catalog import Column, NamedStep, SqlType
from planner.lower.contribution_bounds import Bounding, write_not_null
from planner.lower.kept.named_steps import make_step
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import write_any_value, write_whole_read

FIRST_OUT = "first_out"
"""The list's column with the md5 of a unit's first group that does not count."""

_AFTER_ALL = "g"  # behind every md5, whose digits end with f
_LISTED = frozenset(SqlType) - {SqlType.DOUBLE, SqlType.OTHER}
_COUNT_ROWS_FROM = 8  # groups; few units have more rows than that, and most have more than 4 (TPC-H, by hand)


def can_list(bounding: Bounding) -> bool:
    """Return True if a list of crowded units (in too many groups) can replace the ranking of every unit's groups.

    A look of a monitor needs the ranking, since the groups that came first count. So do units and keys that are
    doubles: zero has two texts, whose md5 differ.
    """
    return bounding.chooses_groups and bounding.as_of is None and all(c.sql_type in _LISTED for _, c in bounding.groups)


def counts_rows(groups: int) -> bool:
    """Return True if so few units have more rows than `groups` that counting rows saves grouping all units."""
    return groups >= _COUNT_ROWS_FROM


def list_crowded_units(
    bounding: Bounding, eligible: Sequence[str], *, public: Sequence[str], busy: NamedStep | None, asked: bool
) -> NamedStep:
    """Return the list of crowded units: the unit's columns, and `FIRST_OUT`. Each unit is on it once at most.

    One constant unit, which may or may not exist, is always on the list. So an engine does the same work if no unit is
    crowded. All groups of that unit count unless it is crowded.

    Parameters:
        bounding: over all rows that any question by these keys reads. `can_list` holds for it.
        eligible: the tests on rows before the groups are chosen.
        public: the tests on keys, which are made once for each key of a unit.
        busy: the list of all units with more rows than groups that count. None: the rows of every unit are grouped.
        asked: True if a question's own conditions decide which rows these are.
    """
    row, groups = bounding.row, bounding.row.table.groups_per_unit
    pair, unit = _join_aliases(bounding.groups), _join_aliases(bounding.units)
    tests = list(dict.fromkeys([*eligible, *(write_not_null(row, column) for _, column in bounding.groups)]))
    source = [f"FROM {row.table.relation}"]
    anybody = ", ".join(write_any_value(bounding.row.dialect, column) for _, column in bounding.units)
    if busy is not None:
        source.append(_join_busy_units(bounding, busy))
    pairs = [
        *write_select(_write_columns(bounding, bounding.groups)),
        *source,
        *write_where(tests),
        *write_group_by(len(bounding.groups)),
    ]
    pairs += fence_groups(row, public)
    place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {bounding.write_key_order()}) AS place"
    lines = [
        f"-- privacy units in more than {groups} keys, each with the md5 of the first that does not count",
        f"SELECT {unit}, min({FIRST_OUT}) AS {FIRST_OUT}",
        "FROM (",
        f"  SELECT {unit}, {FIRST_OUT}",
        f"  FROM (SELECT {unit}, {bounding.write_key_md5()} AS {FIRST_OUT}, {place}",
        f"    FROM (SELECT {pair}, count(*) OVER (PARTITION BY {unit}) AS of_unit FROM (",
        *indent_blocks(indent_blocks(indent_blocks(pairs))),
        " ".join(["    ) AS pairs", *write_where(list(public))]) + ") AS counted",
        f"    WHERE of_unit > {groups}) AS ranked",
        f"  WHERE place = {groups + 1}",
        f"  UNION ALL SELECT {anybody}, {row.dialect.spelling.quote_text(_AFTER_ALL)}",
        ") AS listed",
        *write_group_by(len(bounding.units)),
    ]
    return make_step("\n  ".join(lines), asked=asked)


def fence_groups(row: RowSql, tests: Sequence[str]) -> list[str]:
    """Return the lines that end a step of groups and keep the engine from testing keys before the rows are grouped.

    Engines would otherwise test each row. For TPC-H's first question, testing two short text keys on each row took a
    third of the time.
    """
    fence = row.dialect.row_fence
    return ["-- keys are tested once a group, not once a row", fence] if tests and fence is not None else []


def _join_busy_units(bounding: Bounding, busy: NamedStep) -> str:
    """Return the join with the units that have more rows than groups that count. No other unit is in too many groups.

    The statistics of their columns are hidden, because an engine could read less of a table by least and greatest
    values.
    """
    met = (
        f"{bounding.row.dialect.hide_statistics(bounding.row.write_column(column.name))} = keyhole_m{j}"
        for j, (_, column) in enumerate(bounding.units)
    )
    return f"JOIN {busy.name} AS busy ON {' AND '.join(met)}"


def keep_listed_groups(bounding: Bounding, crowded: NamedStep) -> list[str]:
    """Return the SQL of the step `chosen`: rows of `totals` whose groups count by the list of crowded units."""
    counts = f"CASE WHEN {FIRST_OUT} IS NULL THEN TRUE ELSE {bounding.write_key_md5()} < {FIRST_OUT} END"
    return [
        "-- of units in more keys than count, those before the first that does not, in the order of md5",
        "chosen AS (",
        f"  SELECT * FROM totals LEFT JOIN {crowded.name} AS crowded USING ({_join_aliases(bounding.units)})",
        f"  WHERE {counts} AND {write_whole_read(crowded.name)}",
        ")",
    ]


def rank_groups(bounding: Bounding) -> list[str]:
    """Return the SQL of the step `chosen`: rows of `totals` that are among the first groups of their unit."""
    groups = bounding.row.table.groups_per_unit
    units, order = _join_aliases(bounding.units), bounding.write_key_order()
    place = f"row_number() OVER (PARTITION BY {units} ORDER BY {order}) AS place"
    return [
        f"-- the keys of each privacy unit, {bounding.order_in_words}; the first {groups} count",
        "chosen AS (",
        f"  SELECT * FROM (SELECT *, {place} FROM totals) AS ranked",
        f"  WHERE place <= {groups}",
        ")",
    ]


def _join_aliases(parts: Sequence[tuple[str, Column]]) -> str:
    return ", ".join(alias for alias, _ in parts)


def _write_columns(bounding: Bounding, parts: Sequence[tuple[str, Column]]) -> list[str]:
    return [f"{bounding.row.write_column(column.name)} AS {alias}" for alias, column in parts]
