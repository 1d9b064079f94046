"""HAVING: SQL's boolean formula to comparisons of aggregates with thresholds, in negation normal form.

SQL's NULL makes a comparison and its negation both false. NOT is therefore pushed down to the comparisons and never
applied to an answer.
"""

from dataclasses import replace

from sqlglot import exp

from mechanisms.protocol import LARGEST
from planner.aggregates.aggregate import GroupScope, contains_aggregate, read_aggregate
from planner.aggregates.arithmetic import Linear, is_never_negative, read_linear
from planner.aggregates.ask_apart import ask_separately
from planner.aggregates.cell_windows import reads_other_groups
from planner.aggregates.comparison import (
    FAILS,
    HOLDS,
    UNKNOWN,
    Comparison,
    Complement,
    Having,
    SpreadComparison,
    contains_unknown,
    join_children,
    replace_unknown,
)
from planner.aggregates.having_refusals import refuse_aggregate, refuse_group_divisor, refuse_group_quotient
from planner.aggregates.intervals import convert_sides_to_seconds
from planner.aggregates.key_thresholds import is_public
from planner.aggregates.linear_comparison import (
    clear_denominator,
    compare_linear,
    compare_quotient_of_means,
    compare_with_missing,
)
from planner.aggregates.order_statistics import compare_pick, compare_truth, is_pick, is_truth, split_extremes
from planner.aggregates.rounded_comparison import (
    compare_integer_quotient,
    compare_rounded_aggregate,
    compare_rounded_share,
    compare_rounded_value,
    compare_with_integer_quotient,
    find_divisor,
    unwrap_share,
)
from planner.aggregates.row_expression import Arithmetic
from planner.aggregates.standard_scores import compare_standard_score
from planner.aggregates.variance import compare_variance, is_variance
from planner.errors import KeyholeError
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.predicates.condition import read_row_truth
from planner.predicates.where_refusals import refuse_subquery
from planner.question.condition import ALWAYS
from planner.question.condition_text import write_canonical
from planner.scope.name_resolution import find_column, find_numeric_scale
from planner.values.constant import NotConstant
from planner.values.expressions import fold_constant
from planner.values.operators import FLIPPED_OPERATORS, OPERATORS, OPPOSITE_OPERATORS

_HINT = "Combine comparisons like count(*) > 100, sum(x) >= 5, avg(x) < 2 with AND, OR and NOT."
MOST_READINGS = 4_000  # bounds planning to half a second; 64 literals without NULLs are read a hundred times
_INTEGERS = (exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT)
_TRUTHS = (*OPERATORS, exp.And, exp.Or, exp.Not, exp.Between, exp.In, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)


def read_having(node: exp.Expr, within: GroupScope) -> Having:
    """Read the formula that the expression writes.

    Raise KH2xx unless the expression is a formula of comparisons with thresholds.
    """
    if _count_readings(node) > MOST_READINGS:
        raise KeyholeError(
            "KH211",
            "HAVING compares truth values of comparisons with each other too deeply, as in (a = b) = c",
            hint="Compare fewer predicates in one question.",
            position=find_position(node),
        )
    return _read_formula(node, within, negated=False)


def _count_readings(node: exp.Expr) -> int:
    """Return an upper bound on how often comparisons are read.

    Predicates that are compared are each read as true and false.
    """
    node = strip_parentheses(node)
    match node:
        case exp.And() | exp.Or():
            return sum(map(_count_readings, node.flatten()))
        case exp.Not():
            return _count_readings(node.this)
        case exp.Is() if isinstance(strip_parentheses(node.expression), exp.Null):
            return 4 * _count_readings(node.this)
        case exp.Is():
            return _count_readings(node.this)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return 10 * (_count_readings(node.this) + _count_readings(node.expression))
        case exp.EQ() | exp.NEQ():
            return 2 * (_count_readings(node.this) + _count_readings(node.expression))
        case _:
            return 1


def _read_formula(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    node = strip_parentheses(node)
    if node.args.get("negate"):
        negated = not negated
    match node:
        case exp.And() | exp.Or():
            children = [_read_formula(child, within, negated=negated) for child in node.flatten()]
            return join_children(children, is_conjunction=isinstance(node, exp.And) is not negated)
        case exp.Not():
            return _read_formula(node.this, within, negated=not negated)
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _read_comparison(node, node.this, OPERATORS[type(node)], node.expression, within, negated=negated)
        case exp.Between() if not node.args.get("symmetric"):
            low, high = node.args["low"], node.args["high"]
            sides = (
                _read_comparison(node, node.this, ">=", low, within, negated=negated),
                _read_comparison(node, node.this, "<=", high, within, negated=negated),
            )
            return join_children(sides, is_conjunction=not negated)
        case exp.In() if node.expressions:
            cases = [_read_comparison(node, node.this, "=", item, within, negated=negated) for item in node.expressions]
            return join_children(cases, is_conjunction=negated)
        case exp.Is() if isinstance(strip_parentheses(node.expression), exp.Boolean):
            wanted = bool(strip_parentheses(node.expression).this)
            held = replace_unknown(_read_formula(node.this, within, negated=not wanted), FAILS)
            return Complement(held) if negated else held  # IS NOT TRUE holds where SQL says NULL, too
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _read_distinct(node, within, negated=negated is not isinstance(node, exp.NullSafeEQ))
        case exp.Is() if isinstance(strip_parentheses(node.expression), exp.Null):
            return _read_is_null(node, within, negated=negated)
        case _ if is_truth(node):
            return compare_truth(node, within, negated=negated)
        case _:
            return _fold_formula(node, within, negated=negated)


def _read_is_null(node: exp.Is, within: GroupScope, *, negated: bool) -> Having:
    """Read IS NULL, or with `negated` IS NOT NULL, of a predicate, a count, or sizes of other groups."""
    inner = node.this
    if is_predicate(inner):
        return _write_not_null(inner, within) if negated else _write_is_null(inner, within)
    if _is_count(inner):
        read_aggregate(inner, within)
        return HOLDS if negated else FAILS
    if reads_other_groups(inner):
        return compare_with_missing(node, inner, within, negated=negated)
    return _fold_formula(node, within, negated=negated)


def is_predicate(node: exp.Expr) -> bool:
    """Return True for an expression that is a formula of comparisons of aggregates.

    It is true, false or NULL for a group.
    """
    node = strip_parentheses(node)
    return (isinstance(node, _TRUTHS) or is_truth(node)) and contains_aggregate(node)


def _compare_truths(left: exp.Expr, right: exp.Expr, within: GroupScope, *, is_equal: bool) -> Having:
    """Return a formula that is true if two predicates have different truth values, or equal ones with `equal`.

    It is NULL if one of them is.
    """
    cases = [
        join_children(
            (_read_formula(left, within, negated=negated), _read_formula(right, within, negated=negated is is_equal)),
            is_conjunction=True,
        )
        for negated in (False, True)
    ]
    return join_children(cases, is_conjunction=False)


def _is_never_null(node: exp.Expr, within: GroupScope) -> bool:
    """Return True for comparisons of counts, and other expressions that have a value in a group without rows."""
    read = [_read_formula(node, within, negated=negated) for negated in (False, True)]
    if any(map(contains_unknown, read)):
        return False
    leaves = [leaf for formula in read for leaf in formula.list_comparisons()]
    return all(
        isinstance(leaf, Comparison) and not leaf.required_values and not leaf.may_lack_groups for leaf in leaves
    )


def _write_not_null(node: exp.Expr, within: GroupScope) -> Having:
    """Return a formula that is true if a predicate is true or false, and not NULL."""
    if _is_never_null(node, within):
        return HOLDS
    read = (_read_formula(node, within, negated=negated) for negated in (False, True))
    return join_children((replace_unknown(one, FAILS) for one in read), is_conjunction=False)


def _write_is_null(node: exp.Expr, within: GroupScope) -> Having:
    """Return a formula that is true if a predicate is NULL."""
    if _is_never_null(node, within):
        return FAILS
    return join_children(
        (Complement(_read_formula(node, within, negated=negated)) for negated in (False, True)), is_conjunction=True
    )


def _read_distinct(node: exp.Binary, within: GroupScope, *, negated: bool) -> Having:
    """Read `left IS DISTINCT FROM right`, or with `negated` IS NOT. It is never NULL, and NULL equals NULL."""
    left, right = strip_parentheses(node.this), strip_parentheses(node.expression)
    if not contains_aggregate(left):
        left, right = right, left
    if is_predicate(left) and is_predicate(right):
        pairs = ((left, right), (right, left))
        if not negated:
            null = [
                join_children((_write_is_null(one, within), _write_not_null(other, within)), is_conjunction=True)
                for one, other in pairs
            ]
            differ = replace_unknown(_compare_truths(left, right, within, is_equal=False), FAILS)
            return join_children((differ, *null), is_conjunction=False)
        both = join_children([_write_is_null(one, within) for one, _ in pairs], is_conjunction=True)
        equal = replace_unknown(_compare_truths(left, right, within, is_equal=True), FAILS)
        return join_children((equal, both), is_conjunction=False)
    held = replace_unknown(_read_comparison(node, left, "=", right, within, negated=False), FAILS)
    return held if negated else Complement(held)


def _is_count(node: exp.Expr) -> bool:
    """Return True for a count, which is never NULL."""
    node = strip_parentheses(node)
    return isinstance(node.this if isinstance(node, exp.Filter) else node, exp.Count)


def _fold_formula(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    try:
        value = fold_constant(node, within.constants)
    except NotConstant:
        if node.find(exp.Query):
            raise refuse_subquery(node) from None
        raise KeyholeError(
            "KH207",
            f"{write_short(node)} does not compare an aggregate with a threshold",
            hint=_HINT,
            position=find_position(node),
        ) from None
    if value is None:
        return UNKNOWN
    if not isinstance(value, bool):
        raise KeyholeError(
            "KH207",
            f"{write_short(node)} in HAVING is neither true nor false",
            hint=_HINT,
            position=find_position(node),
        )
    return HOLDS if value is not negated else FAILS


def _read_comparison(
    node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope, *, negated: bool
) -> Having:
    aggregated = contains_aggregate(left), contains_aggregate(right)
    if not any(aggregated):
        return _read_constant_comparison(node, within, negated=negated)
    operator = OPPOSITE_OPERATORS[operator] if negated else operator
    if not aggregated[0]:
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    if all(aggregated) and is_public(left, within) and not is_public(right, within):
        left, operator, right = right, FLIPPED_OPERATORS[operator], left
    extremes = split_extremes(left, operator, right, within)
    if extremes is not None:
        pairs, is_conjunction = extremes
        kind = next(kind for kind, called in OPERATORS.items() if called == operator)
        each = [
            _read_comparison(kind(this=one, expression=other), one, operator, other, within, negated=False)
            for one, other in pairs
        ]
        return join_children(each, is_conjunction=is_conjunction)
    distance = strip_parentheses(left)
    share = None if all(aggregated) else unwrap_share(distance, operator, right, within)
    if share is not None:
        return _compare_share(node, *share, within)

    def compare(one: exp.Expr, of: str, other: exp.Expr) -> Having:
        return _read_comparison(node, one, of, other, within, negated=False)

    rounded = compare_rounded_share(distance, operator, right, within, compare)
    if rounded is not None:
        return rounded
    if isinstance(distance, exp.Abs) and operator not in ("=", "<>"):
        return _read_distance(node, distance, operator, right, within)
    try:
        seconds = convert_sides_to_seconds(left, right, within)
        if seconds is not None:
            return _compare(node, strip_parentheses(seconds[0]), operator, seconds[1], within)
        left = strip_parentheses(left)
        if isinstance(left, exp.Div) and is_public(left.expression, within) and not is_public(left.this, within):
            left, right = clear_denominator(left, right, within)
        return _compare(node, left, operator, right, within)
    except KeyholeError as error:
        is_general = error.code in ("KH204", "KH208") and (error.hint or "").startswith("Compare")
        instead = ask_separately(node, within) if is_general else None
        raise error if instead is None else error.replace_hint(instead) from None


def _compare_share(node: exp.Expr, left: exp.Div, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    """Read `x / total > c` as `x > c * total` where the total is positive, and `x < c * total` where it is negative.

    Where rows that add to x add to the total and none is negative, x is 0 where the total is. It is then neither more
    nor less than a multiple of the total, but it equals one. If the total is that of all groups, it is positive unless
    all values are 0: a warning says what `>=` means then.
    """
    scored = compare_standard_score(node, left, operator, right, within)
    if scored is not None:
        return scored
    below = find_divisor(left)
    whole = read_linear(below, within)
    part = read_linear(left.this, within)
    if whole is None or part is None:
        raise refuse_group_divisor(node)
    if max(part.arithmetic, whole.arithmetic) is Arithmetic.INTEGER:
        raise refuse_group_divisor(node)  # the quotient of integers is cut off, so that it is less than a share
    times = exp.Mul(this=exp.Paren(this=right.copy()), expression=exp.Paren(this=below.copy()))
    rises = all(factor > 0 and is_never_negative(found.summands) for found, factor in whole.summands)
    rises = rises and not whole.constant and all((found.cells.empty_value or 0) >= 0 for found, _ in whole.summands)
    keys = {column.name for column in within.keys}
    is_of_all = all(found.cells.key is None and set(found.cells.summed_keys) == keys for found, _ in whole.summands)
    is_mean = any(found.divisor for found, _ in whole.summands)
    # other statistics may be 0 where a group is not
    read = {one for found, _ in whole.summands for one in (found.cells.statistic, found.row_statistic)}
    is_total = read <= {None, LARGEST}
    if is_total and rises and (operator in (">", "<") or (is_of_all and not is_mean)) and _is_part_of(part, whole):
        made = _read_comparison(node, left.this, operator, times, within, negated=False)
        return made if operator in (">", "<", "<>") else _warn_of_zero(made, node, below, whole)
    if is_mean:
        raise refuse_group_quotient(node)
    zero = exp.Literal.number(0)
    signs = ((operator, ">"),) if rises else ((operator, ">"), (FLIPPED_OPERATORS[operator], "<"))
    sides = [
        join_children(
            (
                _read_comparison(node, left.this, compared, times.copy(), within, negated=False),
                _read_comparison(node, below.copy(), sign, zero.copy(), within, negated=False),
            ),
            is_conjunction=True,
        )
        for compared, sign in signs
    ]
    return join_children(sides, is_conjunction=False)


def _warn_of_zero(made: Having, node: exp.Expr, total: exp.Expr, whole: Linear) -> Having:
    """Return a share's comparison with a warning that it is true if the total is 0.

    A count of all rows needs none, since it is 0 only if no group has rows.
    """
    parts = [part for found, _ in whole.summands for part in found.summands]
    if all(part.column is None and not part.condition.list_conjuncts() for part in parts):
        return made
    strict = "; with > or < it is false there" if isinstance(node, exp.GTE | exp.LTE) else ""
    warning = f"{write_short(node)} is true if {write_short(total)} is 0, where PostgreSQL has NULL{strict}"

    def warn(leaf: Comparison | SpreadComparison) -> Having:
        return replace(leaf, warnings=(*leaf.warnings, warning)) if isinstance(leaf, Comparison) else leaf

    return made.map_comparisons(warn)


def _is_part_of(one: Linear, whole: Linear) -> bool:
    """Return True if whatever adds to one sum adds to the other."""

    def read(sums: Linear) -> list[tuple[str, int, set[str]]]:
        parts = [part for found, _ in sums.summands for part in found.summands]
        return [
            (
                part.column.name if part.column else "",
                part.power,
                set(map(write_canonical, part.condition.list_conjuncts())),
            )
            for part in parts
        ]

    every = read(whole)
    own = all(place in taken for found, _ in whole.summands for place, taken in enumerate(found.cells.used_places))
    return (
        not one.constant
        and own
        and all(any(part[:2] == of[:2] and of[2] <= part[2] for of in every) for part in read(one))
    )


def _read_distance(node: exp.Expr, left: exp.Abs, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    """Read `abs(x) > c` as `x > c OR x < -c`, and `abs(x) < c` as `x < c AND x > -c`, which hold for every c."""
    inner, below = strip_parentheses(left.this), exp.Neg(this=exp.Paren(this=right.copy()))
    while isinstance(inner, exp.Abs):  # each would be read twice
        inner = strip_parentheses(inner.this)
    sides = (
        _read_comparison(node, inner, operator, right, within, negated=False),
        _read_comparison(node, inner, FLIPPED_OPERATORS[operator], below, within, negated=False),
    )
    return join_children(sides, is_conjunction=operator in ("<", "<="))


def _compare(node: exp.Expr, left: exp.Expr, operator: str, right: exp.Expr, within: GroupScope) -> Having:
    left, said = _spell_rounding(left), strip_parentheses(right)
    if operator in ("=", "<>") and isinstance(said, exp.Boolean) and (isinstance(left, _TRUTHS) or is_truth(left)):
        return _read_formula(left, within, negated=bool(said.this) is (operator == "<>"))
    if operator in ("=", "<>") and is_predicate(left) and is_predicate(right):
        return _compare_truths(left, right, within, is_equal=operator == "=")
    if is_pick(left):
        return compare_pick(left, operator, right, within)
    rounded = compare_rounded_value(left, operator, right, within)
    if rounded is not None:
        return rounded
    if is_variance(left, within):
        return compare_variance(left, operator, right, within)
    if is_variance(right, within):
        return compare_variance(right, FLIPPED_OPERATORS[operator], left, within)
    quotient = compare_quotient_of_means(left, operator, right, node, within)
    if quotient is not None:
        return quotient
    truncated = compare_integer_quotient(left, operator, right, within)
    if truncated is not None:
        return truncated
    if isinstance(left, exp.Round | exp.Floor | exp.Ceil | exp.Trunc):
        return compare_rounded_aggregate(left, operator, right, within)
    whole = compare_with_integer_quotient(left, operator, right, node, within)
    if whole is not None:
        return whole
    return compare_linear(node, left, operator, right, within)


def _spell_rounding(node: exp.Expr) -> exp.Expr:
    """Return a cast of an aggregate to `numeric(p, s)`, or of a mean to an integer, as the equivalent round."""
    if not isinstance(node, exp.Cast):
        return node
    sizes = find_numeric_scale(node)
    if sizes is None and node.to.this in _INTEGERS and contains_type(node, exp.Avg):
        return exp.Round(this=node.this.copy())
    if sizes is None:
        return node
    exact = exp.Cast(this=node.this.copy(), to=exp.DataType(this=exp.DType.DECIMAL))
    return exp.Round(this=exact, decimals=exp.Literal.number(sizes[1]))


def _read_constant_comparison(node: exp.Expr, within: GroupScope, *, negated: bool) -> Having:
    """Read a comparison of constants. One that reads keys belongs into WHERE, or is a conjunct of its own."""
    if node.find(exp.Query):
        raise refuse_subquery(node)
    if (unknown := node.find(exp.Anonymous)) is not None:
        raise refuse_aggregate(unknown)
    if contains_type(node, exp.Column):
        raise KeyholeError(
            "KH207",
            f"{write_short(node)} is a condition on rows or keys, which HAVING cannot have in OR or NOT",
            hint=_split_into_questions(node, within)
            or "Ask one question for each part, with the condition in its WHERE, and join the questions by UNION.",
            position=find_position(node),
        )
    truth = read_row_truth(node, within.scope, within.constants)
    if (truth.false if negated else truth.true) == ALWAYS:
        return HOLDS
    return FAILS if (truth.true if negated else truth.false) == ALWAYS else UNKNOWN


def _split_into_questions(node: exp.Expr, within: GroupScope) -> str | None:
    """Return the SQL union of one question for each alternative, with conditions on keys in WHERE.

    An alternative of keys alone is read from their public values. Return None for other formulas.
    """
    select = node.find_ancestor(exp.Select)
    formula = None if select is None else strip_parentheses(select.args["having"].this)
    if select is None or not isinstance(formula, exp.Or) or any(select.args.get(part) for part in ("order", "limit")):
        return None
    if any(contains_type(item, exp.Window) for item in select.expressions):
        return None  # it ranks the groups of all alternatives together
    questions: list[str] = []
    for alternative in map(strip_parentheses, formula.flatten()):
        parts = list(alternative.flatten()) if isinstance(alternative, exp.And) else [alternative]
        kept = [part.copy() for part in parts if contains_aggregate(part)]
        moved = [part.copy() for part in parts if not contains_aggregate(part)]
        question = select.copy()
        question.set("with_", None)
        if not kept:
            read = [find_column(column, within.scope) for part in moved for column in part.find_all(exp.Column)]
            if any(column is None or column not in within.keys for column in read):
                return None
            question.set("having", None)
            question.set("group", None)
            questions.append(write_node(question.distinct().where(*moved, copy=False)))
            continue
        question.set("having", exp.Having(this=exp.and_(*kept, copy=False)))
        questions.append(write_node(question.where(*moved, copy=False) if moved else question))
    return f"{' UNION '.join(questions)};"
