"""The groups of a privacy unit that count, of a unit that may be in more of them.

The first G count, in an order that no data can choose. There are two ways to find them. All groups of all units are
ranked: so at a look, where what came first counts. Or a list has the units that are in more than G groups, each with
the md5 of the first group that does not count: every group of any other unit counts, and of these the groups before it.
The list is made of units and keys alone. So a question asks WHERE of rows as it reads them, and md5 of few pairs.

Guarantee: both keep the same groups, at most G of each unit, whatever the data: those that the unit has among all
eligible rows, whichever of them WHERE keeps.

Proof: docs/proofs/joint_loss.md.
"""

from collections.abc import Sequence

from planner.catalog.catalog import Column, NamedStep, SqlType
from planner.lower.contribution_bounds import Bounding, not_null
from planner.lower.kept.named_steps import name_step
from planner.lower.layout import group_by, indent_blocks, select, where
from planner.lower.row import RowSql
from planner.lower.whole_joins.fences import any_value, read_whole

FIRST_OUT = "first_out"
"""The column of the list that has the md5 of the first group of a unit that does not count."""

_AFTER_ALL = "g"  # behind every md5, whose digits end with f
_LISTED = frozenset(SqlType) - {SqlType.DOUBLE, SqlType.OTHER}
_COUNT_ROWS_FROM = 8  # groups; few units have more rows than that, and most have more than 4 (TPC-H, by hand)


def can_list(bounding: Bounding) -> bool:
    """Return True if a list can say which groups count.

    At a look what came first counts, and a double's zero has two texts: md5 of one says nothing of the other.
    """
    return bounding.chooses and bounding.as_of is None and all(c.sql_type in _LISTED for _, c in bounding.groups)


def counts_rows(groups: int) -> bool:
    """Return True if few units have more rows than `groups`, so that only theirs have to be grouped."""
    return groups >= _COUNT_ROWS_FROM


def list_crowded_units(
    bounding: Bounding, eligible: Sequence[str], *, public: Sequence[str], busy: NamedStep | None, asked: bool
) -> NamedStep:
    """Return the list of crowded units: the unit's columns, and `FIRST_OUT`. Each unit is on it once at most.

    Some unit that may or may not be there stands on it in any case, so that an engine has the same to do whether or not
    one is crowded; of it all groups count, if they are no more.

    Parameters:
        bounding: over all rows that any question by these keys reads, one for which `can_list`.
        eligible: what is asked of rows before the groups are chosen.
        public: what is asked of keys, once for each key of a unit.
        busy: lists all units that have more rows than groups that count; None to group the rows of every unit.
        asked: a question's own conditions decide which rows these are.
    """
    row, groups = bounding.row, bounding.row.table.groups_per_unit
    pair, unit = _names(bounding.groups), _names(bounding.units)
    tests = list(dict.fromkeys([*eligible, *(not_null(row, column) for _, column in bounding.groups)]))
    source = [f"FROM {row.table.relation}"]
    anybody = ", ".join(any_value(bounding.row.dialect, column) for _, column in bounding.units)
    if busy is not None:
        source.append(_join_busy_units(bounding, busy))
    pairs = [*select(_read(bounding, bounding.groups)), *source, *where(tests), *group_by(len(bounding.groups))]
    pairs += fence_groups(row, public)
    place = f"row_number() OVER (PARTITION BY {unit} ORDER BY {bounding.order_of_keys()}) AS place"
    lines = [
        f"-- privacy units in more than {groups} keys, each with the md5 of the first that does not count",
        f"SELECT {unit}, min({FIRST_OUT}) AS {FIRST_OUT}",
        "FROM (",
        f"  SELECT {unit}, {FIRST_OUT}",
        f"  FROM (SELECT {unit}, {bounding.md5_of_keys()} AS {FIRST_OUT}, {place}",
        f"    FROM (SELECT {pair}, count(*) OVER (PARTITION BY {unit}) AS of_unit FROM (",
        *indent_blocks(indent_blocks(indent_blocks(pairs))),
        " ".join(["    ) AS pairs", *where(list(public))]) + ") AS counted",
        f"    WHERE of_unit > {groups}) AS ranked",
        f"  WHERE place = {groups + 1}",
        f"  UNION ALL SELECT {anybody}, {row.dialect.spelling.text(_AFTER_ALL)}",
        ") AS listed",
        *group_by(len(bounding.units)),
    ]
    return name_step("\n  ".join(lines), asked=asked)


def fence_groups(row: RowSql, tests: Sequence[str]) -> list[str]:
    """Return what ends a step of groups so that these tests of keys are asked once a group.

    Engines move them to the rows otherwise: of two short texts they were a third of what TPC-H's first question costs.
    """
    fence = row.dialect.row_fence
    return ["-- keys are tested once a group, not once a row", fence] if tests and fence is not None else []


def _join_busy_units(bounding: Bounding, busy: NamedStep) -> str:
    """Return the join with the units that have more rows than groups that count: no other unit is in more groups.

    Their least and greatest say nothing to the engine, which could read less of a table by them.
    """
    met = (
        f"{bounding.row.dialect.without_statistics(bounding.row.column(column.name))} = keyhole_m{j}"
        for j, (_, column) in enumerate(bounding.units)
    )
    return f"JOIN {busy.name} AS busy ON {' AND '.join(met)}"


def keep_listed_groups(bounding: Bounding, crowded: NamedStep) -> list[str]:
    """Return the step `chosen`: the rows of `totals`, one a unit and key, whose groups count by the list."""
    counts = f"CASE WHEN {FIRST_OUT} IS NULL THEN TRUE ELSE {bounding.md5_of_keys()} < {FIRST_OUT} END"
    return [
        "-- of units in more keys than count, those before the first that does not, in the order of md5",
        "chosen AS (",
        f"  SELECT * FROM totals LEFT JOIN {crowded.name} AS crowded USING ({_names(bounding.units)})",
        f"  WHERE {counts} AND {read_whole(crowded.name)}",
        ")",
    ]


def rank_groups(bounding: Bounding) -> list[str]:
    """Return the step `chosen`: the rows of `totals`, one a unit and key, whose groups are the first of their unit."""
    groups = bounding.row.table.groups_per_unit
    place = f"row_number() OVER (PARTITION BY {_names(bounding.units)} ORDER BY {bounding.order_of_keys()}) AS place"
    return [
        f"-- the keys of each privacy unit, {bounding.order_in_words}; the first {groups} count",
        "chosen AS (",
        f"  SELECT * FROM (SELECT *, {place} FROM totals) AS ranked",
        f"  WHERE place <= {groups}",
        ")",
    ]


def _names(parts: Sequence[tuple[str, Column]]) -> str:
    return ", ".join(alias for alias, _ in parts)


def _read(bounding: Bounding, parts: Sequence[tuple[str, Column]]) -> list[str]:
    return [f"{bounding.row.column(column.name)} AS {alias}" for alias, column in parts]
