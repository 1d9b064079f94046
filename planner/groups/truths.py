"""Conditions that GROUP BY computes from several columns, or by a function of one: true, false or NULL.

    GROUP BY price * quantity > 500         a key of three groups, whatever the row
    CASE WHEN departure > arrival THEN ...  its value if the condition is true, false and NULL

Guarantee: a row's group is a condition of the row alone, as WHERE reads it, and computing it fails on no row.
"""

from dataclasses import replace
from datetime import date

from sqlglot import exp

from planner.catalog.catalog import Column, Computed, ComputedName, SqlType, ValueGroups
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.groups.conditions import MOST_PATTERNS
from planner.parser.tree import strip_parentheses
from planner.predicates.condition import read_row_truth
from planner.question.condition import Condition, IsNull, Like, find_columns
from planner.question.condition_text import write_canonical
from planner.question.row_work import are_expensive
from planner.question.three_valued import make_known_unless_null
from planner.scope.key_classes import is_too_wide, read_key_expression
from planner.scope.key_partitions import identify_parts, label_parts
from planner.scope.name_resolution import Scope, find_column
from planner.scope.truth_keys import find_truth, is_test, spell_canonically
from planner.values.constant import ConstantContext

_NOTHING_GIVEN = ConstantContext(parameters={}, today=date.min)
_NUMBERS = frozenset({SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE})


def add_truths(scope: Scope, item: exp.Expr, *, only_several: bool) -> Scope:
    """Return the scope with a boolean key column for each condition in `item` that is about several columns.

    A condition on a function of one column gets a column as well, if no cuts of that column's values express it.

    Parameters:
        only_several: add only those of several columns. The others are added later, when it is known which times are
            keys.
    """
    if scope.table.members:
        return scope
    return _read_tests(scope, strip_parentheses(item), only_several=only_several)


def _read_tests(scope: Scope, node: exp.Expr, *, only_several: bool) -> Scope:
    """Return the scope with a column for each comparison in an expression, or else for the comparisons inside it."""
    if find_truth(node, scope) is not None:
        return scope
    made = _add_test(scope, node, only_several=only_several) if is_test(node) else scope
    if made is scope:
        for child in node.iter_expressions():
            made = _read_tests(made, child, only_several=only_several)
    return made


def _add_test(scope: Scope, node: exp.Expr, *, only_several: bool) -> Scope:
    read = {column.name: column for one in node.find_all(exp.Column) if (column := find_column(one, scope))}
    open_ = [column for column in read.values() if column.domain is None]
    if not all(column.groupable for column in read.values()):
        return scope
    if only_several and len(read) > 1 and (open_ or is_too_wide(read.values())):
        return _add_truth(scope, node)
    if (
        not only_several
        and len(open_) == 1
        and open_[0].sql_type not in _NUMBERS
        and read_key_expression(node, scope) is None
    ):
        return _add_truth(scope, node)
    return scope


def _needs_text_search(condition: Condition, scope: Scope) -> bool:
    """Return True if the condition searches texts, or has more patterns than groups can be made of."""
    patterns = sum(isinstance(leaf, Like) for leaf in condition.walk_leaves())
    try:
        return patterns > MOST_PATTERNS or (patterns > 0 and are_expensive([condition], scope.table))
    except KeyholeError:
        return False  # more than any question may ask of a row


def _name_text_value(condition: Condition, column: Column) -> ComputedName:
    """Return the name of a column for a condition's value, which is computed from a text."""
    text = RowTerm("column", TermKind.TEXT, value=column.name, limit=column.longest_text)
    return ComputedName.from_column(
        Column(f"whether {write_canonical(condition)}", SqlType.TEXT, "text", derivation=Computed(text))
    )


def replace_truths(item: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the expression with TRUE in the place of each condition that has its own key column."""
    copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
    return copied.transform(lambda node: node if find_truth(node, scope) is None else exp.true(), copy=False)


def _add_truth(scope: Scope, node: exp.Expr) -> Scope:
    """Return the scope with a column for a condition.

    It is unchanged if the condition is not true, false or NULL with one value.
    """
    try:
        truth = read_row_truth(node, scope, _NOTHING_GIVEN)
    except KeyholeError:
        return scope
    read = find_columns(truth.true) | find_columns(truth.false)
    (name, *others) = read or ("",)
    known = make_known_unless_null(name, true=truth.true, false=truth.false)
    leaves = [*truth.true.walk_leaves(), *truth.false.walk_leaves()]
    if others or truth != known or not leaves or any(isinstance(leaf, IsNull) for leaf in leaves):
        return scope
    if not isinstance(name, ComputedName):
        if not _needs_text_search(truth.true, scope):
            return scope  # the groups of the column itself tell it
        name = _name_text_value(truth.true, scope.table.get_column(name))
    # a condition and its negation are one key
    tested: list[tuple[Condition, bool]] = sorted(
        ((truth.false, False), (truth.true, True)), key=lambda one: write_canonical(one[0])
    )
    parts = ValueGroups(
        column=name,
        kind=SqlType.BOOLEAN,
        cut_points=(),
        groups=(0, 1),
        null_group=2,
        shown_values=(*(holds for _, holds in tested), None),
        tests=tuple(test for test, _ in tested),
    )
    made = Column(
        name=spell_canonically(node, scope),
        sql_type=SqlType.INTEGER,
        declared="integer",
        domain=(0, 1, 2),
        derivation=parts,
        prunable=False,
        ledger=label_parts(parts, name.column),
        computed=True,
        canonical=identify_parts(parts),
    )
    if any(column.name == made.name for column in scope.table.columns):
        return scope
    return replace(scope, table=replace(scope.table, columns=(*scope.table.columns, made)))
