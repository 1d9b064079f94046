"""The work of a question for its source, and about how long it takes.

Guarantee: a function of the question, the policy and the pins. Row numbers are those that the owner declares. A table
without a declared size has no expected time.
"""

from collections.abc import Mapping
from math import expm1, log1p, prod

from planner.catalog.catalog import Catalog, Lookup, Table
from planner.catalog.pace import EngineWork, ExpectedTime, TableSize
from planner.lower.contribution_bounds import exceeds_groups
from planner.question.plan import Plan
from planner.question.question import Question


def expect_time(plan: Plan, catalog: Catalog) -> ExpectedTime | None:
    """Return the expected time that the source works on a question.

    Return None if no pace or size is known, or nothing is read.
    """
    if catalog.pace is None or not plan.reads_data:
        return None
    work = estimate_work(plan, dict(catalog.sizes))
    return None if work is None else catalog.pace.estimate_time(work, timeout_ms=catalog.statement_timeout_ms)


def estimate_work(plan: Plan, sizes: Mapping[str, TableSize]) -> EngineWork | None:
    """Return the work of an engine for a question, or None if the size of a table is not declared.

    Rows and units are assumed to be spread evenly over groups. A WHERE is assumed to keep all rows.
    """
    question = plan.question
    table = question.table if question.per_unit is None else question.per_unit.table
    size = find_size(table, sizes)
    if size is None:
        return None
    rows, units = size
    aggregates = len(question.computed_functionals) if question.per_unit is None else len(question.per_unit.totals)
    looked_up = sum(isinstance(column.derivation, Lookup) for column in question.keys.columns)
    statements = max(1, len(plan.rewritten.blocks))
    scanned = EngineWork(
        statements=statements,
        rows=rows * statements,
        row_aggregates=rows * (aggregates + looked_up),
        groups=question.keys.size,
    )
    if table.is_row_unit:
        return scanned
    chooses = exceeds_groups(table, question.keys)
    pairs = _count_pairs(question, table, rows=rows, units=units, chooses=chooses)
    return EngineWork(
        statements=scanned.statements,
        rows=scanned.rows,
        row_aggregates=scanned.row_aggregates,
        pairs=pairs,
        pair_aggregates=pairs * aggregates,
        choices=pairs if chooses else 0.0,
        groups=scanned.groups,
    )


def find_size(table: Table, sizes: Mapping[str, TableSize]) -> tuple[float, float] | None:
    """Return the number of rows that are read, joined rows included, and the number of units.

    Return None if a size is unknown.
    """
    names = [one.name for one in table.stored_tables]
    if not all(name in sizes for name in names):
        return None
    read = [sizes[name] for name in names]
    units = max(size.units for size in read)
    members = [sizes[member.table.name] for member in table.members]
    joined = units * prod(size.rows / units for size in members) if members else 0.0
    # a row that finds its unit by a path is joined once, and read again with it
    reached = sum(sizes[one.name].rows for one in table.stored_tables if one.path is not None)
    # a list or values of units read their table once more, and each row of the question's is joined with them
    beside = [*(one.table for one in table.unit_lists), *(one.table for one in table.own)]
    listed = sum(sizes[stored.name].rows for one in beside for stored in one.stored_tables)
    listed += len(beside) * sizes[names[0]].rows
    return sum(size.rows for size in read) + joined + reached + listed, units


def _count_pairs(question: Question, table: Table, *, rows: float, units: float, chooses: bool) -> float:
    """Return the expected number of pairs of a unit and a group.

    Each unit is assumed to have the same number of rows, drawn from the groups within its reach.
    """
    keys = question.keys
    whole = prod(len(keys.get_whole_domain(place)) for place in range(len(keys.columns)))
    asked = 1.0 if chooses or not whole else keys.size / whole
    within = max(1.0, keys.count_reachable_groups(table) * asked)
    each = rows * asked / units
    if within <= 1:
        return min(units, rows * asked)
    return units * within * -expm1(each * log1p(-1 / within))
