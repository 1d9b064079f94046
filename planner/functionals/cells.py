"""The groups that one cell's rows can change in a question, and by how much.

Guarantee: if a unit's rows in one cell of one table are removed, a group loses at most `count_losses` times its loss.
This holds for every unit that the declared bounds do not cut. For a unit that they cut, it is at most twice that. If
the table has `cells_of_cut_units`, the first bound holds for every unit. A reach with `reaches_other_groups` is charged
to all cells of all tables with the same units.

Proof: docs/proofs/cells.md.
"""

from dataclasses import dataclass, replace

from planner.catalog.catalog import Column, Derivation, Lookup, SqlType, Table
from planner.question.question import Functional, ListedRows, Measure, Question


@dataclass(frozen=True, slots=True)
class CellReach:
    """The groups that one cell's rows can change in a question.

    `reaches_other_groups`: they can change groups outside their cell, so every cell is charged. `changes_all_groups`:
    they can change all groups of the unit at once. `is_doubled`: a unit may contribute its full bound with these rows
    and without them, with opposite signs or to different functionals. So the cell loses twice the loss of a group.
    """

    reaches_other_groups: bool = False
    changes_all_groups: bool = False
    is_doubled: bool = False

    def count_losses(self, groups: int) -> int:
        """Return the multiple of one group's loss that a cell is charged, for a unit in up to `groups` groups."""
        return (groups if self.changes_all_groups else 1) * (2 if self.is_doubled else 1)


OWN_GROUP = CellReach()
"""The reach in a plain question: a cell's rows change only their own group, by at most a whole unit's contribution."""


def find_cell_reach(question: Question) -> CellReach:
    """Return the groups that one cell's rows can change in a question.

    Some values depend on several cells of one unit: joined rows, rows that lead to their unit by a path, lists of
    units, values of a unit's own rows, and conditions on a unit's total. Every new value of this kind must be handled
    here.
    """
    table = question.table if question.per_unit is None else question.per_unit.table
    if table.lists:  # a unit that a cell takes off a list, or puts on it, moves by all that it adds or would add
        plain = replace(table, lists=())
        per_unit = None if question.per_unit is None else replace(question.per_unit, table=plain)
        outer = question.table if question.per_unit is not None else plain
        reach = find_cell_reach(replace(question, table=outer, per_unit=per_unit))
        if any(listed.is_about_rows for listed in table.unit_lists):
            # what a cell takes away makes rows vanish, or rows come as well, so that groups before and after differ
            vanish = all(not one.is_negated and isinstance(one.rule, ListedRows) for one in table.unit_lists)
            doubled = not vanish or table.covers_cut_units or not _can_only_lose(question)
            return CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=doubled or reach.is_doubled)
        return replace(reach, reaches_other_groups=True, changes_all_groups=True)
    if table.is_row_unit:
        return OWN_GROUP
    if table.own:  # another value moves all rows of the unit to other groups, or makes other rows count
        return CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=True)
    if table.reads_several_tables:
        doubled = table.covers_cut_units or not _can_only_lose(question)
        return CellReach(reaches_other_groups=True, changes_all_groups=True, is_doubled=doubled)
    if table.covers_cut_units and question.keys.count_reachable_groups(table) > table.groups_per_unit:
        return CellReach(
            reaches_other_groups=True, is_doubled=True
        )  # groups are chosen: another one may take the place
    if question.per_unit is None and not table.covers_cut_units:
        return OWN_GROUP
    # totals that are clipped add up their losses in full, so that one sign is enough however many they are
    summed = question.per_unit is None and table.row_cap is None
    once = _have_one_sign(question) and (summed or len(question.computed_functionals) == 1)
    return CellReach(is_doubled=not once and not _are_groups_cells(question, table))


def _can_only_lose(question: Question) -> bool:
    """Return True if a unit that loses rows loses part of its contribution and adds nothing.

    It could add something if the smaller sum of its rows met the condition of another functional.
    """
    return _have_one_sign(question) and (question.per_unit is None or len(question.computed_functionals) == 1)


def _have_one_sign(question: Question) -> bool:
    if question.ranked is not None and question.ranked.mean is not None:
        return False  # another value may raise a mean, and lower it
    return all(map(_has_one_sign, question.computed_functionals))


def _has_one_sign(functional: Functional) -> bool:
    """Return True if a unit never adds below zero, or never above. Then it changes by its sensitivity at most."""
    if functional.measure not in (Measure.TOTAL, Measure.UNIT_SUM):
        return True
    return functional.unit_range is not None and (functional.unit_range[0] >= 0 or functional.unit_range[1] <= 0)


def _are_groups_cells(question: Question, table: Table) -> bool:
    """Return True if each group of the question is one cell: its keys determine every column that can be grouped by."""
    given = set(question.keys.names)

    def is_determined(name: str) -> bool:
        column = table.get_column(name)
        if name in given or table.determines(column):
            return True
        return isinstance(column.derivation, Lookup | Derivation) and column.derivation.column in given

    return all(is_determined(one.name) for one in table.columns if one.domain is not None or _can_be_grouped(one))


def _can_be_grouped(column: Column) -> bool:
    """Return True if questions may compute keys from the column, whose groups are then finer cells."""
    stored = column.derivation is None or isinstance(column.derivation, Derivation)
    return column.groupable and stored and column.sql_type is not SqlType.OTHER
