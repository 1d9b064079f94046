"""Refusals of calendars that are joined with a private table."""

from collections.abc import Sequence
from datetime import datetime
from itertools import permutations

from sqlglot import exp

from planner.catalog.catalog import Table
from planner.errors import KeyholeError
from planner.extract.outer_joins.calendar_columns import write_value
from planner.extract.outer_joins.listed_keys import ListedKey
from planner.extract.outer_joins.public_lists import PublicList
from planner.extract.private_read import PrivateRead
from planner.extract.subqueries.share_rows import may_empty_groups
from planner.parser.lexer import spell_name
from planner.parser.tree import find_position, read_name, write_node, write_short


def check_keys_independent(keys: Sequence[exp.Expr], table: Table, *, at: exp.Expr) -> None:
    """Raise KH107 if the values of one key restrict those of another, such as a month and its year.

    A cross join of their values has a group for each pair, also for those that no row can have.
    """
    for first, second in permutations(keys, 2):
        if may_empty_groups(first, [second], table):
            raise _refuse(
                f"{write_short(first)} and {write_short(second)} are listed apart, and one depends on the other",
                "A cross join of both lists has groups for pairs of values that the policy does not list.",
                "List the times in one generate_series, and compare it with one key.",
                at,
            )


def _refuse(message: str, detail: str, hint: str, node: exp.Expr) -> KeyholeError:
    return KeyholeError("KH107", message, detail=detail, hint=hint, position=find_position(node))


def refuse_calendar(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a calendar whose values are no constants, or whose steps do not go forward."""
    return _refuse(
        "this calendar's values are not known before the question is asked",
        "Its rows are groups, and the list of groups is fixed by the text and the policy.",
        "Write generate_series(DATE '2025-01-01', DATE '2025-12-01', interval '1 month'): constants, forward, in days "
        "or months. Or leave the calendar out: each listed group counts, with rows or without.",
        node,
    )


def refuse_unlisted_key(listed: PublicList, read: PrivateRead) -> KeyholeError:
    """Return KH107 for a calendar that the ON condition compares with no key."""
    return _refuse(
        f"no condition of ON compares {spell_name(listed.alias)}.{spell_name(listed.column)} with a listed key",
        f"A calendar is read as the groups of a key of {spell_name(read.table.name)} with the same values.",
        f"Write LEFT JOIN ... ON key = {spell_name(listed.alias)}.{spell_name(listed.column)}, of a key that the "
        "policy lists.",
        read.node,
    )


def refuse_missing_values(key: ListedKey) -> KeyholeError:
    """Return KH107 for a calendar with values that are no groups."""
    shown, every = key.missing_values, key.domain
    called = write_short(key.expression)
    hint = "Leave out the values that are no groups; or ask the owner to list them."
    if all(isinstance(one, datetime) for one in every):
        hint = f"Write generate_series from {write_value(min(every))} to {write_value(max(every))}, in the step of the "
        hint += "key; or ask the owner to list more of them."
    return _refuse(
        f"{write_value(shown[0])} is no group of {called}",
        f"{len(shown):,} values of the calendar are none. Each of them would be a group, and the list of groups is the "
        "policy's.",
        hint,
        key.links[0],
    )


def refuse_own_key(column: exp.Column) -> KeyholeError:
    """Return KH107 for grouping by a key of the private table beside keys of a calendar."""
    return _refuse(
        f"{write_node(column)} is grouped by beside a calendar that does not list it",
        "LEFT JOIN gives an empty period one group in which this key is NULL.",
        f"CROSS JOIN a list of the values of {write_node(column)} with the calendar, and compare both in ON.",
        column,
    )


def refuse_null_test(node: exp.Expr, counted: str) -> KeyholeError:
    """Return KH107 for a condition that may keep the row that LEFT JOIN makes up."""
    return _refuse(
        f"{write_short(node)} may be true of the row that LEFT JOIN makes up for an empty group",
        "Keyhole counts rows of the table alone.",
        f"Write it as a FILTER: count({counted}) FILTER (WHERE {write_short(node)}).",
        node,
    )


def refuse_aggregate(node: exp.Expr) -> KeyholeError:
    """Return KH107 for an aggregate that reads the row that LEFT JOIN makes up."""
    return _refuse(
        f"{write_short(node)} reads the row that LEFT JOIN makes up for an empty group",
        "Keyhole counts rows of the table alone.",
        "Write coalesce around the aggregate, as coalesce(sum(x), 0), with columns of the table alone in it.",
        node,
    )


def refuse_count(node: exp.Expr, counted: str) -> KeyholeError:
    """Return KH107 for a count of all rows beside a calendar. The hint has a column to count instead."""
    return _refuse(
        f"{write_short(node)} is 1 for a group without rows",
        "LEFT JOIN makes up a row of NULLs for it, which count(*) counts.",
        f"Write count({counted}), which is 0 there.",
        node,
    )


def refuse_missing_size(column: exp.Column) -> KeyholeError:
    """Return KH107 for a size that is NULL in the row of an empty group, beside a window."""
    called = write_node(column)
    return _refuse(
        f"{called} is NULL for a value of the calendar without rows",
        "A window over the calendar's rows leaves it out there. Keyhole counts it as 0.",
        f"Write coalesce({called}, 0), also within the window.",
        column,
    )


def refuse_condition(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a condition on a calendar whose truth is not computed from its values."""
    return _refuse(
        f"Keyhole does not compute which rows of the calendar meet {write_short(node)}",
        "Each of them is a group, and the list of groups is fixed by the text and the policy.",
        "Compare the calendar's column with constants, or write other ends of generate_series.",
        node,
    )


def refuse_public_condition(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a condition of ON that reads a public table beside a calendar."""
    return _refuse(
        f"{write_short(node)} stands in the ON of a calendar, and reads a public table",
        "LEFT JOIN keeps the rows of the public table for which it is false.",
        "Write it in WHERE, which leaves these rows out, or in a FILTER of each aggregate.",
        node,
    )


def refuse_hidden_column(column: exp.Column, table: Table, counted: str) -> KeyholeError:
    """Return KH201 for a count of a column that the policy does not expose. The hint has a column to count instead."""
    return KeyholeError(
        "KH201",
        f'column "{read_name(column.this)}" is not exposed by table "{table.name}"',
        detail="A calendar's rows without data are recognised by a column that is NULL there.",
        hint=f"Write count({counted}), which counts the rows that the calendar finds.",
        position=find_position(column),
    )


def refuse_subquery(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a subquery in the ON of a calendar."""
    return _refuse(
        f"{write_short(node)} stands in the ON of a calendar",
        "Conditions of ON become FILTERs of the aggregates, which have no subqueries.",
        "Write the values of the subquery as a list.",
        node,
    )
