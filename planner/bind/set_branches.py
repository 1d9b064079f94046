"""The content of a question, or of each side of a set operation between questions: groups, rows, and formula.

Sides with different WHEREs become one question by moving what they do not share into the FILTER of their aggregates:
`count(*)` over the rows that satisfy w is `count(*) FILTER (WHERE w)`, in every group of the public key domain, with
rows or without. INTERSECT is then AND, UNION is OR, and `A EXCEPT B` is A and not B, where B counts as not true
wherever it is false or NULL.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import compress

from sqlglot import exp

from planner.aggregates.aggregate import GroupScope, contains_aggregate
from planner.aggregates.comparison import (
    FAILS,
    HOLDS,
    Comparison,
    Complement,
    Conjunction,
    Disjunction,
    Having,
    replace_unknown,
)
from planner.aggregates.computed_measure import Clips
from planner.aggregates.having import read_having
from planner.aggregates.having_refusals import refuse_aggregate, refuse_group_comparison
from planner.aggregates.key_thresholds import KeyPlaces, drop_missing_thresholds, restrict_thresholds
from planner.aggregates.ranked_value import read_ranked_value
from planner.aggregates.value_clips import describe_clips, find_clips, refuse_clips
from planner.bind.bind_refusals import refuse_partly_null, refuse_rows_in_having
from planner.bind.joined_tables import read_row_conditions
from planner.catalog.catalog import Column, SqlType, Value
from planner.catalog.key_space import KeySpace
from planner.groups.inhabited.key_values import list_inhabited_values
from planner.parser.tree import contains_type, find_position, strip_parentheses
from planner.predicates.condition import read_row_condition
from planner.predicates.infinite_times import restrict_to_groups
from planner.question.condition import (
    Compare,
    Condition,
    Within,
    find_columns,
    find_fixed_columns,
    find_true_values,
    join_all,
)
from planner.question.condition_text import write_canonical
from planner.question.disjoint import ConditionRows
from planner.question.question import UnitRows
from planner.scope.embedded import EmbeddedQuestion, list_leaves
from planner.scope.functional_dependencies import map_key_values
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from planner.values.expressions import uses_clock


@dataclass(frozen=True, slots=True)
class QuestionParts:
    """The parts of a question: its groups, its rows, its formula and its predicates.

    The formula decides which groups are rows of the answer. A predicate whose threshold is NULL is false or NULL
    whatever the data. `publicly_false_keys` and `publicly_null_keys` list the key values with such thresholds, as
    indices, for each predicate and key column. `null_predicates` has True for each predicate that is NULL unless it is
    true. `ranked` is the measure of a ranking, as a comparison with 0. If the question `reads_clock`, it depends on
    the day. `clipped` has a sentence for each expression without a declared range: which of its values count
    unchanged.
    """

    keys: KeySpace
    where: Condition
    formula: Having
    predicates: tuple[Having, ...]
    publicly_false_keys: tuple[tuple[KeyPlaces, ...], ...]
    publicly_null_keys: tuple[tuple[KeyPlaces, ...], ...]
    null_predicates: tuple[bool, ...]
    ranked: Comparison | None
    reads_clock: bool
    group: int | None
    clipped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One SELECT ... HAVING, read except for its aggregates. `rows` are the conjuncts on rows, by their meaning.

    `by_key`: its HAVING has conditions on keys, which restrict `values` as if they stood in WHERE.
    """

    scope: Scope
    having: tuple[exp.Expr, ...]
    rows: Mapping[str, tuple[exp.Expr, Condition]]
    values: Mapping[str, tuple[Value, ...]]
    fixed: frozenset[str]
    by_key: bool = False


def read_question(
    embedded: EmbeddedQuestion, given: ConstantContext, *, per_unit: UnitRows | None = None, adds_clips: bool = False
) -> QuestionParts:
    """Read the conditions of the question.

    Parameters:
        per_unit: the rows of its subquery per unit.
        adds_clips: clip values without a range by the thresholds that they are compared with.

    Raises KH2xx, KH109, with positions in its statement.
    """
    alone = embedded.set_operation is None
    read = {leaf.offset: _read_leaf(leaf, given, per_unit, is_alone=alone) for leaf in list_leaves(embedded)}
    said = _read_formulas(embedded, given, read, clips={})
    _check_group_comparisons(said, read, per_unit=per_unit is not None)
    clips = find_clips(_list_formulas(said))
    if not clips:
        return said
    if not adds_clips:
        as_written = alone and not embedded.predicates and not embedded.ranked and embedded.origin is None
        raise refuse_clips(_list_formulas(said), clips, embedded.tree if as_written else None)
    said = _read_formulas(embedded, given, read, clips=clips)
    return replace(said, clipped=describe_clips((said.formula, *said.predicates)))


def _check_group_comparisons(said: QuestionParts, read: Mapping[int, _Leaf], *, per_unit: bool) -> None:
    """Raise KH204 for a comparison with other groups of which some may be missing, or which is not supported.

    It is not supported beside a set operation of other rows, HAVING beside predicates, or totals of units.
    """
    compared = [leaf for one in _list_formulas(said) for leaf in _list_comparisons(one)]
    beside = next((leaf for leaf in compared if leaf.reads_other_groups), None)
    if beside is None:
        return
    shown = (*said.predicates, *(() if said.ranked is None else (said.ranked,)))
    in_predicates = any(leaf.reads_other_groups for one in shown for leaf in _list_comparisons(one))
    places = {
        "beside UNION, INTERSECT or EXCEPT of other rows": not _have_same_rows(read.values()),
        "beside HAVING, which leaves some of them out": in_predicates and said.formula != HOLDS,
        "and asks where there are none": any(map(_hides_missing_groups, _list_formulas(said))),
        "of rows that are units' totals": per_unit,
        "beside a threshold of each group's own": any(leaf.key_thresholds is not None for leaf in compared),
        "beside a condition on keys in HAVING": any(leaf.by_key for leaf in read.values()),
    }
    for place, is_there in places.items():
        if is_there:
            raise refuse_group_comparison(beside.text, beside.position, place)


def _have_same_rows(leaves: Iterable[_Leaf]) -> bool:
    """Return True if all SELECTs of a set operation read the same rows of the same groups."""
    first, *others = leaves
    return all(set(one.rows) == set(first.rows) and one.values == first.values for one in others)


def _hides_missing_groups(formula: Having) -> bool:
    """Return True if a formula holds where a comparison is NULL that may lack a neighbour."""
    lacks, hides = formula.fold(
        lambda leaf: (isinstance(leaf, Comparison) and leaf.may_lack_groups, False),
        outside=lambda inner: (inner[0], inner[0] or inner[1]),
        every=lambda found: (any(one for one, _ in found), any(other for _, other in found)),
        some=lambda found: (any(one for one, _ in found), any(other for _, other in found)),
    )
    return bool(lacks and hides)


def _list_comparisons(formula: Having) -> Iterator[Comparison]:
    yield from (leaf for leaf in formula.list_comparisons() if isinstance(leaf, Comparison))


def _list_formulas(said: QuestionParts) -> Iterator[Having]:
    yield said.formula
    yield from said.predicates
    if said.ranked is not None:
        yield said.ranked


def _read_formulas(
    embedded: EmbeddedQuestion, given: ConstantContext, read: Mapping[int, "_Leaf"], *, clips: Clips
) -> QuestionParts:
    common = set.intersection(*(set(leaf.rows) for leaf in read.values()))
    values = _find_key_values(embedded, read)
    formulas = {
        offset: _read_formula(leaf, keys=embedded.keys, given=given, common=common, values=values, clips=clips)
        for offset, leaf in read.items()
    }
    whole, (predicates, ranked) = (
        values,
        _read_predicates_and_ranking(embedded, read, given, values=values, clips=clips),
    )
    formula, values = drop_missing_thresholds(_combine_formulas(embedded, formulas), whole)
    restricted = [restrict_thresholds(predicate, whole, values) for predicate in predicates]
    shown = [replace_unknown(predicate, FAILS) for predicate, _, _ in restricted]
    possible = [replace_unknown(predicate, HOLDS) for predicate, _, _ in restricted]
    for true, not_false, written in zip(shown, possible, embedded.predicates, strict=True):
        if not_false not in (true, HOLDS):
            raise refuse_partly_null(written.tree)
    first = next(iter(read.values()))
    selects = [leaf.tree for leaf in list_leaves(embedded)]
    shared = [condition for meaning, (_, condition) in first.rows.items() if meaning in common]
    return QuestionParts(
        keys=KeySpace(columns=embedded.keys, values=tuple(values[key.name] for key in embedded.keys)),
        where=join_all([*shared, *_find_common_lists(read.values(), common)]),
        formula=formula,
        predicates=tuple(shown),
        publicly_false_keys=tuple(false_at for _, false_at, _ in restricted),
        publicly_null_keys=tuple(null_at for _, _, null_at in restricted),
        null_predicates=tuple(
            true != HOLDS and not_false == HOLDS for true, not_false in zip(shown, possible, strict=True)
        ),
        ranked=ranked,
        reads_clock=any(uses_clock(tree) for leaf in list_leaves(embedded) for tree in leaf.trees),
        group=_find_key_position(selects[0]),
    )


def _find_key_position(select: exp.Select) -> int | None:
    group = select.args.get("group")
    return None if group is None else find_position(group)


def _read_leaf(leaf: EmbeddedQuestion, given: ConstantContext, per_unit: UnitRows | None, *, is_alone: bool) -> _Leaf:
    """Read one SELECT of a set operation into its scope, HAVING and rows.

    If it `is_alone`, there is no set operation. Otherwise all SELECTs must have the same groups.
    """
    select, scope = leaf.tree, leaf.scope
    columns_ = leaf.table.columns
    asked = (*leaf.conditions, *read_row_conditions(select, scope, given))
    read = [(node, restrict_to_groups(one, leaf.keys, columns_)) for node, one in asked]
    if leaf.unit_query is not None:
        read += [(select, condition) for condition in leaf.unit_query.conditions]
    formula: list[exp.Expr] = []
    by_key = False
    for part in _split_conjuncts(select.args.get("having")):
        if not contains_type(part, exp.Column) or contains_aggregate(part):
            formula.append(part)
        else:
            by_key = True
            read.append((part, _read_key_condition(part, scope, leaf.keys, given)))
    values = {key.name: key.domain or () for key in leaf.keys}
    rows: dict[str, tuple[exp.Expr, Condition]] = {}
    settled: dict[Condition, str] = {}
    for node, condition in read:
        left = []
        for one in condition.list_conjuncts():
            restricted = _restrict_key(one, leaf.keys, values, scope)
            if restricted is None:
                left.append(one)
            else:
                values |= restricted
                settled |= dict.fromkeys([one], next(iter(restricted)))
        if left:
            kept = join_all(left)
            rows.setdefault(write_canonical(kept), (node, kept))
    told = [one for _, condition in read for one in condition.list_conjuncts()]
    for key in leaf.keys:
        others = [one for one in told if settled.get(one) != key.name]
        values[key.name] = list_inhabited_values(key, values[key.name], others, leaf.table)
    if per_unit is not None:
        values |= dict(_list_inhabited_keys(leaf.keys, values, per_unit))
    if is_alone and told and ConditionRows.from_condition(join_all(told)).are_none:  # as in fare > 10 AND fare < 5
        values = dict.fromkeys(values, ())
    return _Leaf(
        scope=scope,
        having=tuple(formula),
        rows=rows,
        values=values,
        fixed=find_fixed_columns(join_all(condition for _, condition in read)),
        by_key=by_key,
    )


def _list_inhabited_keys(
    keys: tuple[Column, ...], values: Mapping[str, tuple[Value, ...]], per_unit: UnitRows
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield the values of keys at which a subquery per unit has rows to add up."""
    known = {column.name: column for column in per_unit.table.columns}
    for key in keys:
        if key.name in known:
            yield (
                key.name,
                list_inhabited_values(
                    known[key.name], values[key.name], per_unit.where.list_conjuncts(), per_unit.table
                ),
            )


def _restrict_key(
    condition: Condition, keys: tuple[Column, ...], values: Mapping[str, tuple[Value, ...]], scope: Scope
) -> Mapping[str, tuple[Value, ...]] | None:
    """Return the key's values that a condition on one column leaves, if a key determines the column.

    Return None for any other.
    """
    names = find_columns(condition)
    if len(names) != 1:
        return None
    (name,) = names
    column = scope.table.get_column(name)
    if name not in values and column.sql_type is SqlType.DOUBLE:
        return None
    for key in sorted(keys, key=lambda key: key.name != name):
        seen: Sequence[Value | None] | None = values[key.name]
        if column.name != key.name:
            found = map_key_values(column, key, values[key.name])
            seen = None if found is None else [found[value] for value in values[key.name]]
        if seen is not None:
            return {key.name: tuple(compress(values[key.name], find_true_values(condition, name, seen)))}
    return None


def _split_conjuncts(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    if clause is None:
        return
    waiting = [clause.this]
    while waiting:
        node = waiting.pop()
        inner = strip_parentheses(node)
        if isinstance(inner, exp.And) and not inner.args.get("negate"):
            waiting.extend((inner.expression, inner.this))
        else:
            yield inner


def _read_key_condition(node: exp.Expr, scope: Scope, keys: tuple[Column, ...], given: ConstantContext) -> Condition:
    """Read a conjunct of HAVING that reads one key and no aggregate, as if it stood in WHERE."""
    if (unknown := node.find(exp.Anonymous)) is not None:
        raise refuse_aggregate(unknown)
    condition = read_row_condition(node, scope, given)
    names = find_columns(condition)
    read = [scope.table.get_column(name) for name in names]
    determined = all(any(map_key_values(column, key, key.domain or ()) is not None for key in keys) for column in read)
    if len(names) > 1 or not determined:
        raise refuse_rows_in_having(node)
    return condition


def _read_formula(
    leaf: _Leaf,
    *,
    keys: tuple[Column, ...],
    given: ConstantContext,
    common: set[str],
    values: Mapping[str, tuple[Value, ...]],
    clips: Clips,
) -> Having:
    where = join_all(condition for _, condition in leaf.rows.values())
    within = GroupScope(
        scope=leaf.scope,
        keys=keys,
        constants=given,
        fixed_columns=leaf.fixed,
        where=where,
        key_values=tuple(values.items()),
        clips=clips,
    )
    own = [node for meaning, (node, _) in leaf.rows.items() if meaning not in common]
    formulas = [
        replace_unknown(read_having(_filter_aggregates(part, own) if own else part, within), FAILS)
        for part in leaf.having
    ]
    if len(formulas) == 1:
        return formulas[0]
    parts: list[Having] = []
    for formula in formulas:
        parts.extend(formula.children if isinstance(formula, Conjunction) else (formula,))
    return Conjunction(tuple(parts))


def _read_predicates_and_ranking(
    embedded: EmbeddedQuestion,
    read: Mapping[int, _Leaf],
    given: ConstantContext,
    *,
    values: Mapping[str, tuple[Value, ...]],
    clips: Clips,
) -> tuple[tuple[Having, ...], Comparison | None]:
    """Return the formulas of a question's predicates, and its ranking. A question that joins several has neither."""
    if not embedded.predicates and embedded.ranked is None:
        return (), None
    leaf = read[embedded.offset]
    where = join_all(condition for _, condition in leaf.rows.values())
    within = GroupScope(
        scope=leaf.scope,
        keys=embedded.keys,
        constants=given,
        fixed_columns=leaf.fixed,
        where=where,
        key_values=tuple(values.items()),
        clips=clips,
    )
    ranked = None if embedded.ranked is None else read_ranked_value(embedded.ranked.tree, within)
    return tuple(read_having(predicate.tree, within) for predicate in embedded.predicates), ranked


def _filter_aggregates(part: exp.Expr, rows: list[exp.Expr]) -> exp.Expr:
    """Return the conjunct with every aggregate over the rows that also satisfy `rows`."""
    return part.copy().transform(_add_filter, rows, copy=False)


def _add_filter(node: exp.Expr, rows: list[exp.Expr]) -> exp.Expr:
    if not isinstance(node, exp.AggFunc | exp.WithinGroup | exp.Filter) or _is_inside_aggregate(node):
        return node
    conditions = [row.copy() for row in rows]
    if isinstance(node, exp.Filter):
        conditions.append(node.expression.this)
        node = node.this
    enclosed = [exp.Paren(this=one) if len(conditions) > 1 and isinstance(one, exp.Or) else one for one in conditions]
    return exp.Filter(this=node, expression=exp.Where(this=reduce(_join_by_and, enclosed)))


def _join_by_and(left: exp.Expr, right: exp.Expr) -> exp.Expr:
    return exp.And(this=left, expression=right)


def _is_inside_aggregate(node: exp.Expr) -> bool:
    return node.parent is not None and node.find_ancestor(exp.AggFunc, exp.WithinGroup, exp.Filter) is not None


def _combine_formulas(embedded: EmbeddedQuestion, formulas: Mapping[int, Having]) -> Having:
    if embedded.set_operation is None:
        return formulas[embedded.offset]
    left, right = (
        _combine_formulas(embedded.set_operation.left, formulas),
        _combine_formulas(embedded.set_operation.right, formulas),
    )
    match embedded.set_operation.operation:
        case "intersect":
            return Conjunction((left, right))
        case "union":
            return Disjunction((left, right))
        case "except":
            return Conjunction((left, Complement(right)))


def _find_key_values(embedded: EmbeddedQuestion, leaves: Mapping[int, _Leaf]) -> Mapping[str, tuple[Value, ...]]:
    """Return the values of each key that the question is about.

    UNION was joined only where both sides restrict keys alike, EXCEPT where the right does so no further than the left.
    """
    if embedded.set_operation is None:
        return leaves[embedded.offset].values
    left, right = (
        _find_key_values(embedded.set_operation.left, leaves),
        _find_key_values(embedded.set_operation.right, leaves),
    )
    if embedded.set_operation.operation == "intersect":
        found = {name: frozenset(values) for name, values in right.items()}
        return {name: tuple(value for value in values if value in found[name]) for name, values in left.items()}
    assert all(set(values) <= set(right[name]) for name, values in left.items())
    assert embedded.set_operation.operation == "except" or dict(left) == {name: right[name] for name in left}
    return left


def _find_common_lists(leaves: Iterable[_Leaf], common: set[str]) -> Iterator[Condition]:
    """Yield the conditions that every side implies on a common column: the values that any side takes.

    They do not change the answer, since every aggregate is filtered by its own side's conjuncts. Rows that no side
    reads need not be scanned, and cells that no side asks about are not charged.
    """
    own = [
        _collect_lists(condition for meaning, (_, condition) in leaf.rows.items() if meaning not in common)
        for leaf in leaves
    ]
    if len(own) < 2:
        return
    for name in sorted(set.intersection(*(set(listed) for listed in own))):
        values: tuple[Value, ...] = tuple(sorted(set().union(*(listed[name] for listed in own))))
        yield Within(name, values)


def _collect_lists(conditions: Iterable[Condition]) -> dict[str, frozenset[Value]]:
    found: dict[str, frozenset[Value]] = {}
    for part in join_all(conditions).list_conjuncts():
        match part:
            case Compare(name, "=", value):
                values = frozenset((value,))
            case Within(name, listed):
                values = frozenset(listed)
            case _:
                continue
        found[name] = found[name] & values if name in found else values
    return found
