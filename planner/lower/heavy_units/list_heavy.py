"""The list of heavy units: units with rows that could add up to more than one unit may add to a key.

Every other unit's rows are summed as they are. WHERE and FILTER only leave out rows, so they cannot take a total beyond
its clipping range: the list sums the absolute values of all rows.

Guarantee: take a unit that is not on the list. Every choice of its rows in a key has a total within the range of each
of these functionals, and all its keys count. The list depends on a question's keys and on the sums of its functionals
without their conditions, and on nothing else in it.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Iterator, Sequence

from planner.catalog.catalog import NamedStep
from planner.lower.contribution_bounds import Bounding, write_not_null
from planner.lower.kept.named_steps import make_step
from planner.lower.layout import indent_blocks, write_group_by, write_select, write_where
from planner.lower.row import RowSql
from planner.lower.sums.row_sum import list_parts
from planner.lower.whole_joins.fences import write_any_value
from planner.question.question import Functional, Measure
from planner.values.sql_literals import write_integer

_SUMMED = frozenset({Measure.ROWS, Measure.TOTAL})


def can_be_summed(functional: Functional) -> bool:
    """Return True if the total of a unit that is not heavy is the plain sum over its rows, so it needs no clipping."""
    return (
        functional.measure in _SUMMED
        and not functional.off_each_unit
        and functional.unit_range is not None
        and all(term.power <= 1 for term in functional.terms)
    )


def list_heavy_units(bounding: Bounding, functionals: Sequence[Functional], *, crowded: NamedStep | None) -> NamedStep:
    """Return the step that lists heavy units, with the unit's columns as `keyhole_h0` and so on.

    One constant unit, which may or may not exist, is always on the list. So an engine does the same work if no unit is
    heavy.

    Parameters:
        bounding: over all rows that any question by these keys reads.
        functionals: those for which `can_be_summed`.
        crowded: the list of units in more keys than count, which this list includes. None if no unit can be in so many.
    """
    row, units = bounding.row, bounding.units
    tests = dict.fromkeys(test for one in functionals for test in _list_excess_tests(row, one))
    names = [alias for alias, _ in bounding.groups]
    shown = ", ".join(f"{alias} AS keyhole_h{i}" for i, (alias, _) in enumerate(units))
    grouped = [
        *write_select([f"{row.write_column(column.name)} AS {alias}" for alias, column in bounding.groups]),
        f"FROM {row.table.relation}",
        *write_where([write_not_null(row, column) for _, column in units]),
        *write_group_by(len(names)),
        f"HAVING {' OR '.join(tests) or 'FALSE'}",
    ]
    found = [f"SELECT {shown} FROM (", *indent_blocks(grouped), ") AS exceeding"]
    if crowded is not None:
        found.append(f"UNION ALL SELECT {shown} FROM {crowded.name} AS crowded")
    anybody = ", ".join(write_any_value(row.dialect, column) for _, column in units)
    found.append(f"UNION ALL SELECT {anybody}")
    named = ", ".join(f"keyhole_h{i}" for i in range(len(units)))
    lines = [
        "-- privacy units whose total in a key may have to be clipped, or whose keys do not all count",
        f"SELECT {named} FROM (",
        *indent_blocks(found),
        f") AS heavy GROUP BY {named}",
    ]
    return make_step("\n  ".join(lines))


def _list_excess_tests(row: RowSql, functional: Functional) -> Iterator[str]:
    """Yield tests of a unit's rows in a key. One of them holds if some choice of the rows exceeds the range.

    A row may satisfy any of several conditions, so gains under each are counted, and so are losses.
    """
    assert functional.unit_range is not None
    low, high = functional.unit_range
    parts, largest = list_parts(row, functional.terms)
    for signed, bound in ((parts, high), ([f"-({part})" for part in parts], -low)):
        added = " + ".join(f"GREATEST({part}, 0)" for part in signed)
        if added:
            yield f"{row.dialect.sum_whole(added, largest)} > {write_integer(max(bound, 0))}"
