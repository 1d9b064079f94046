"""The list of heavy units: those of which some rows could add up to more than one unit may add to a key.

Every other unit's rows are summed as they are. No WHERE and no FILTER can take their total beyond what it is clipped
to, as they only leave out rows: the list adds up the absolute values of all of them.

Guarantee: of a unit that is not on the list, every choice among its rows of a key adds up to a total within the range
of each of these functionals, and all its keys count. Nothing that a question asks decides about it but its keys and
what its functionals add up, conditions left out.

References: docs/decisions/0040-named-steps.md.
"""

from collections.abc import Iterator, Sequence

from planner.catalog.catalog import NamedStep
from planner.lower.contribution_bounds import Bounding, not_null
from planner.lower.kept.named_steps import name_step
from planner.lower.layout import group_by, indent_blocks, select, where
from planner.lower.row import RowSql
from planner.lower.sums.row_sum import list_parts
from planner.lower.whole_joins.fences import any_value
from planner.question.question import Functional, Measure
from planner.values.sql_literals import integer

_SUMMED = frozenset({Measure.ROWS, Measure.TOTAL})


def can_be_summed(functional: Functional) -> bool:
    """Return True if the total of a unit that is not heavy is the sum of what its rows add, whichever of them count."""
    return (
        functional.measure in _SUMMED
        and not functional.off_each_unit
        and functional.unit_range is not None
        and all(term.power <= 1 for term in functional.terms)
    )


def list_heavy_units(bounding: Bounding, functionals: Sequence[Functional], *, crowded: NamedStep | None) -> NamedStep:
    """Return the step with the columns of each heavy unit, `keyhole_h0` and so on.

    Some unit that may or may not be there stands on it in any case, so that an engine has the same to do whether or not
    one is heavy.

    Parameters:
        bounding: over all rows that any question by these keys reads.
        functionals: those for which `can_be_summed`.
        crowded: lists the units in more keys than count, which are on this list as well; None where no unit can be.
    """
    row, units = bounding.row, bounding.units
    tests = dict.fromkeys(test for one in functionals for test in _exceed(row, one))
    names = [alias for alias, _ in bounding.groups]
    shown = ", ".join(f"{alias} AS keyhole_h{i}" for i, (alias, _) in enumerate(units))
    grouped = [
        *select([f"{row.column(column.name)} AS {alias}" for alias, column in bounding.groups]),
        f"FROM {row.table.relation}",
        *where([not_null(row, column) for _, column in units]),
        *group_by(len(names)),
        f"HAVING {' OR '.join(tests) or 'FALSE'}",
    ]
    found = [f"SELECT {shown} FROM (", *indent_blocks(grouped), ") AS exceeding"]
    if crowded is not None:
        found.append(f"UNION ALL SELECT {shown} FROM {crowded.name} AS crowded")
    anybody = ", ".join(any_value(row.dialect, column) for _, column in units)
    found.append(f"UNION ALL SELECT {anybody}")
    named = ", ".join(f"keyhole_h{i}" for i in range(len(units)))
    lines = [
        "-- privacy units whose total in a key may have to be clipped, or whose keys do not all count",
        f"SELECT {named} FROM (",
        *indent_blocks(found),
        f") AS heavy GROUP BY {named}",
    ]
    return name_step("\n  ".join(lines))


def _exceed(row: RowSql, functional: Functional) -> Iterator[str]:
    """Yield tests of a unit's rows in a key, one of which holds if a choice among them adds up to more than the range.

    Any of several conditions may hold for a row, so that what is gained under each counts, and what is lost.
    """
    assert functional.unit_range is not None
    low, high = functional.unit_range
    parts, largest = list_parts(row, functional.terms)
    for signed, bound in ((parts, high), ([f"-({part})" for part in parts], -low)):
        added = " + ".join(f"GREATEST({part}, 0)" for part in signed)
        if added:
            yield f"{row.dialect.total(added, largest)} > {integer(max(bound, 0))}"
