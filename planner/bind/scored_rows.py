"""Rows with scores, bound: which rows, by which groups, and the numbers that each row has, all as the policy allows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction

from sqlglot import exp

from mechanisms.formula import TRUE
from planner.aggregates.row_expression import SumPart, read_row_expression
from planner.bind.bind_refusals import refuse_too_many_groups
from planner.bind.lookup_columns import move_conditions_to_bases
from planner.bind.set_branches import read_question
from planner.catalog.catalog import Catalog, SqlType, Table
from planner.errors import KeyholeError
from planner.functionals.functional import find_grid, make_row_terms
from planner.functionals.row_range import find_row_range
from planner.parser.tree import strip_parentheses
from planner.predicates.condition import read_row_truth
from planner.question.condition import ALWAYS, Condition, join_any
from planner.question.products import add_products
from planner.question.question import Accuracy, Functional, Measure, Question, Term
from planner.question.range_inference import narrow_range
from planner.question.scores import RowNumber
from planner.scope.embedded import EmbeddedQuestion
from planner.scope.key_classes import count_charged_groups
from planner.scope.name_resolution import Scope, find_column
from planner.values.constant import ConstantContext

_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Like, exp.Is,
    exp.NullSafeEQ, exp.NullSafeNEQ, exp.Boolean,
)  # fmt: skip


def bind_scores(
    embedded: EmbeddedQuestion, catalog: Catalog, texts: Sequence[str], *, accuracy: Accuracy, today: date
) -> tuple[Question, tuple[RowNumber, ...]]:
    """Return a question that sums numbers of rows, and these numbers.

    The text is `SELECT .. WHERE .. GROUP BY .. HAVING sum(x) > 0 AND sum(y) > 0 ..`, and the numbers are x, y, and so
    on. The question has no formula, and its functionals are the summands of the numbers. If a number is a condition,
    it is 1 if true, 0 if false, and has no value if NULL.

    Parameters:
        texts: the texts of x, y and so on, as written.
        accuracy: the policy's accuracy. The result does not depend on it.

    Raises:
        KeyholeError: KH1xx, KH2xx, as for a question, with positions in the statement.
    """
    given = ConstantContext(parameters={}, today=today, is_utc=True)
    try:
        read = [
            _read_number(node, embedded.scope, given) for node in _list_summed_expressions(embedded.tree, len(texts))
        ]
        said = read_question(replace(embedded, tree=_drop_having(embedded.tree)), given)
        size = count_charged_groups(said.keys.columns, said.keys.values)
        if size > catalog.max_keys:
            raise refuse_too_many_groups(size, embedded.keys, catalog, at=said.group)
        columns = (part.column for parts, _ in read for part in parts)
        table = add_products(embedded.table, columns)
        made = [_read_measure(text, *one, table=table) for text, one in zip(texts, read, strict=True)]
    except KeyholeError as error:
        raise embedded.place_error(error) from None
    question = move_conditions_to_bases(
        Question(
            table=table,
            keys=said.keys,
            where=said.where,
            functionals=tuple(functional for pair, _, _ in made for functional in pair),
            atoms=(),
            formula=TRUE,
            accuracy=accuracy,
            warnings=(),
        )
    )
    stored = zip(question.functionals[::2], question.functionals[1::2], made, strict=True)
    return question, tuple(
        _make_row_number(value, found, step, ranges, question) for value, found, (_, step, ranges) in stored
    )


_Ranges = Mapping[str, tuple[int, int]]


def _read_measure(
    text: str, parts: Sequence[SumPart], present: Condition, *, table: Table
) -> tuple[tuple[Functional, Functional], Fraction, _Ranges]:
    """Return a number as the functionals of its rows' sum and count, the worth of a step, and its columns' ranges."""
    grids = {
        part.column.name: find_grid(part.column, table, position=None)
        for part in parts
        if part.column is not None and part.power
    }
    terms, step = make_row_terms(parts, grids)

    def make_functional(measure: Measure, terms: tuple[Term, ...]) -> Functional:
        size = Decimal(1)  # nothing compares these
        return Functional(
            name=text, measure=measure, terms=terms, sensitivity=1, unit_range=None, unit_size=size, rows=1
        )

    pair = make_functional(Measure.TOTAL, terms), make_functional(Measure.ROWS, (Term(1, None, present, 0),))
    return pair, step, {name: (low, high) for name, (_, low, high) in grids.items()}


def _make_row_number(
    value: Functional, found: Functional, step: Fraction, ranges: _Ranges, question: Question
) -> RowNumber:
    least, most = _find_range(value.terms, ranges, question)
    return RowNumber(value.name, value.terms, found.terms[0].condition, step, least, most)


def _find_range(terms: tuple[Term, ...], ranges: _Ranges, question: Question) -> tuple[int, int]:
    """Return the least and the greatest number of a row, in steps.

    With zero, unless it is one column times a constant.
    """
    first = terms[0] if len(terms) == 1 else None
    if first is None or first.column is None or first.power != 1 or first.condition != ALWAYS:
        return find_row_range(terms, ranges=ranges, table=question.table, among=question.where)
    ends = narrow_range(first.column, ranges[first.column], among=(question.where,), table=question.table)
    low, high = sorted(first.coefficient * end for end in ends)
    return low, high


def _list_summed_expressions(tree: exp.Select, numbers: int) -> Iterable[exp.Expr]:
    """Return the argument of each `sum(..) > 0` of a HAVING. Raise KH204 if there is anything else."""
    having = tree.args.get("having")
    parts = [] if having is None else _flatten(having.this)
    if len(parts) != numbers or not all(isinstance(part, exp.GT) and isinstance(part.this, exp.Sum) for part in parts):
        raise KeyholeError(
            "KH204",
            "the score or the outcome is not one expression of a row",
            hint="Give a column, or an expression of columns such as 0.5 * (a + b), or a condition such as y = 'late'.",
        )
    return (part.this.this for part in parts)


def _flatten(node: exp.Expr) -> list[exp.Expr]:
    return list(node.flatten(unnest=False)) if isinstance(node, exp.And) else [node]


def _drop_having(tree: exp.Select) -> exp.Select:
    plain = tree.copy()
    plain.set("having", None)
    return plain


def _read_number(node: exp.Expr, scope: Scope, given: ConstantContext) -> tuple[tuple[SumPart, ...], Condition]:
    """Return an expression's parts, and the rows where it has a value."""
    inner = strip_parentheses(node)
    column = find_column(inner, scope)
    boolean = column is not None and column.sql_type is SqlType.BOOLEAN
    if boolean or isinstance(inner, _CONDITIONS):
        truth = read_row_truth(inner, scope, given)
        return (SumPart(Fraction(1), None, truth.true, 0),), join_any((truth.true, truth.false))
    made = read_row_expression(inner, scope, given)
    return made.summands, made.required_values.rows
