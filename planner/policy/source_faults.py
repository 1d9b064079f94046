"""Refusals if policy, source and pins differ: a column that cannot be used, a table not pinned."""

from planner.catalog.fault import Fault, suggest_nearest_name
from planner.catalog.sql_types import SourceColumn

REPIN = "Run keyhole check to see the difference, and keyhole check --confirm to let it take effect."


def refuse_absent_column(name: str, source: tuple[SourceColumn, ...]) -> Fault:
    """Return KH006 for a column that the source does not have. The hint is its nearest name."""
    hint = suggest_nearest_name(name, [column.name for column in source])
    return Fault("KH006", f'the source has no column "{name}" there', hint=hint)


def refuse_zoned_column(name: str) -> Fault:
    """Return KH006 for a column whose days and months depend on a session setting."""
    hint = f"Expose a view of the source that gives {name} AT TIME ZONE 'UTC': a timestamp without time zone."
    problem = f'column "{name}" is a timestamp with time zone: its days and months depend on a session setting'
    return Fault("KH006", problem, hint=hint)


def refuse_collation(name: str) -> Fault:
    """Return KH006 for a column whose collation would merge groups."""
    hint = f'Expose a view of the source that gives {name} COLLATE "C".'
    problem = f'column "{name}" has a nondeterministic collation: the source would merge groups whose keys differ'
    return Fault("KH006", problem, hint=hint)


def refuse_unpinned_table(problem: str = "is not pinned yet") -> Fault:
    """Return KH007 for a public table without a pinned copy."""
    return Fault("KH007", problem, hint="Run keyhole check: it copies the table.")
