"""The form of a question: its clauses, its keys and its HAVING, and nothing shown but keys."""

from collections.abc import Iterator
from math import prod

from sqlglot import exp

from planner.aggregates.aggregate import contains_aggregate
from planner.aggregates.cell_windows import counts_units
from planner.bind.from_clause import ON_TABLE, split_conjuncts
from planner.bind.shown_expressions import (
    check_beside_aggregates,
    check_item,
    check_shown_expressions,
    find_shown_aggregate,
)
from planner.bind.unit_lists.find_lists import find_lists
from planner.catalog.catalog import Column, Lookup
from planner.errors import KeyholeError, UnknownColumn
from planner.extract.extract_refusals import (
    refuse_clause,
    refuse_hidden_alias,
    refuse_inner_subquery,
    refuse_list_in_having,
    refuse_operator,
    refuse_outside_question,
    refuse_partition,
    refuse_question_in_where,
    refuse_shown_size,
    refuse_threshold_from_rows,
    refuse_threshold_in_subquery,
    refuse_ties_in_ranking,
    refuse_value_of_all_rows,
    refuse_window_over_answer,
    refuse_without_threshold,
    suggest_known_keys,
    suggest_shown_keys,
    suggest_single_groupings,
)
from planner.extract.hints.answerable_questions import (
    excludes_emptiness,
    join_suggestions,
    spell_out_aliases,
    suggest_domain,
    suggest_public_total,
    suggest_question,
    suggest_set_operation,
)
from planner.extract.hints.number_in_place import replace_by_number
from planner.extract.hints.people import refuse_people
from planner.extract.hints.statistics_of_groups import write_percentile_beside_mean, write_statistic_of_groups
from planner.extract.hints.suggest_scorecard import suggest_ranking, suggest_scorecard
from planner.extract.key_domains import lists_domain
from planner.extract.private_read import ParsedQuestion
from planner.groups.computed_keys import add_computed_keys
from planner.parser.tree import contains_type, read_limit, read_name, strip_parentheses
from planner.scope.group_by import list_grouped_expressions, list_groupings, read_group_by, resolve_item
from planner.scope.key_classes import list_read_keys, write_identity
from planner.scope.name_resolution import find_column
from planner.scorecard.key_order import resolve_order_item
from planner.scorecard.shown import replace_with_constants
from planner.scorecard.shown_numbers import RANKS, find_limit, find_named_number

_ALLOWED_CLAUSES = frozenset(
    (
        "with_",
        "expressions",
        "from_",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "kind",
        "hint",
    )
)
_OVER_ROWS = (
    *RANKS,
    exp.Lag,
    exp.Lead,
    exp.FirstValue,
    exp.LastValue,
    exp.NthValue,
    exp.Count,
    exp.Sum,
    exp.Avg,
    exp.Min,
    exp.Max,
    exp.LogicalAnd,
    exp.LogicalOr,
    exp.ArrayAgg,
)


def check_form(place: ParsedQuestion) -> tuple[Column, ...]:
    """Return the keys of a question in the right form. Raise KH100, KH101, KH103-KH107, KH202, KH207, KH208, KH215."""
    _check_clauses(place)
    _check_operators(place)
    if place.ranked is not None:
        _check_cut(place)
    _check_numbers(place)
    over_groups = place.keys_only
    windows = tuple(_find_windows(over_groups, place))
    select = replace_with_constants(over_groups, windows)
    shown = find_shown_aggregate(select)
    _check_aliases(place)
    if shown is not None:
        raise refuse_shown_size(shown, hint=suggest_domain(place) or _suggest_form_of_sizes(place))
    group = select.args.get("group")
    if group is None and not place.has_thresholds:
        raise refuse_outside_question(place.scope.table, place.node, hint=suggest_question(place))
    keys = _read_keys(place, select)
    _check_hidden_aliases(place, keys)
    if not place.has_thresholds and not _lists_domain(place, keys):
        raise refuse_without_threshold(place)
    _check_rows(place, keys)
    try:
        grouped = list_grouped_expressions(select, place.scope)
        check_shown_expressions(select, place.scope, *grouped)
        for number in place.numbers.nodes:
            check_beside_aggregates(number, place.scope, *grouped)
        for window in (*windows, *(select.args.get("windows") or ())):
            _check_window(window, place, *grouped)
    except KeyholeError as error:
        raise suggest_shown_keys(error, place) from None
    return keys


def _find_windows(select: exp.Select, place: ParsedQuestion) -> Iterator[exp.Window]:
    """Yield the windows over the answer's rows in the shown expressions.

    Windows that read a size are left out: they are refused with it.

    Raises KH101 beside a ranking, of whose groups the answer may hold the first alone.
    """
    written_windows = list(place.select.find_all(exp.Window))
    if not written_windows:
        return
    parts = (*select.expressions, select.args.get("order"), select.args.get("distinct"))
    replaced = {id(node) for one in place.parts_without_keys for node in one.walk()}
    windows = [one for one in written_windows if id(one) not in replaced]
    alike = zip(select.find_all(exp.Window), windows, strict=True)
    as_written = {id(window): written for window, written in alike}
    for window in (found for part in parts if part is not None for found in part.find_all(exp.Window)):
        if _reads_groups(window):
            continue
        for column in window.find_all(exp.Column):
            place.scope.resolve_column(column)
        written = as_written[id(window)]
        filtered = isinstance(written.this, exp.Filter) and written.this.expression.find(exp.AggFunc) is not None
        if filtered or place.ranked is not None or not isinstance(_find_window_function(window), _OVER_ROWS):
            raise refuse_window_over_answer(written, place)  # in PostgreSQL, too, no aggregate stands in FILTER
        yield window


def _check_window(window: exp.Window, place: ParsedQuestion, keys: tuple[Column, ...], texts: frozenset[str]) -> None:
    """Refuse a window that reads anything but predicates, which are constants here, keys and expressions of these."""
    aliases = {read_name(item.args["alias"]) for item in place.select.expressions if isinstance(item, exp.Alias)}
    order, frame = window.args.get("order"), window.args.get("spec")
    called = _find_window_function(window)  # the name of a window in its own clause
    arguments = [one for one in called.iter_expressions() if not isinstance(one, exp.Star)]
    read = [*arguments, *(window.args.get("partition_by") or ())]
    read += [one.this for one in order.expressions] if order is not None else []
    read += list(frame.iter_expressions()) if frame is not None else []
    read += [window.this.expression.this] if isinstance(window.this, exp.Filter) else []
    for one in read:
        check_item(one, place.scope, keys, texts)
    for column in window.find_all(exp.Column):
        if not column.table and read_name(column.this) in aliases and find_column(column, place.scope) not in keys:
            raise refuse_window_over_answer(window, place)


def _check_numbers(place: ParsedQuestion) -> None:
    """Refuse expressions computed from shown numbers, and numbers of every group without a threshold."""
    numbers = place.numbers
    if not numbers.shown:
        return
    having = place.select.args.get("having")
    asks = place.predicates or numbers.band_predicates or place.ranked is not None
    asks = asks or (having is not None and not excludes_emptiness(having))  # tools say that there are rows
    several = place.select.args.get("distinct") is not None and not _is_first_of_each(place)  # numbers tell rows apart
    if several or not numbers.outer_use.passes_only or not asks:
        node = numbers.shown[0].node
        raise refuse_shown_size(
            node.find(exp.AggFunc) or node, hint=suggest_domain(place) or _suggest_form_of_sizes(place)
        )


def _is_first_of_each(place: ParsedQuestion) -> bool:
    """Return True for DISTINCT ON keys, with ORDER BY a number, which returns the first group of each by its rank."""
    on = place.select.args["distinct"].args.get("on")
    if on is None or place.ranked is None:
        return False
    shown = place.numbers.shown
    return not any(contains_aggregate(one) or find_named_number(one, place.select, shown) for one in on.expressions)


def _check_rows(place: ParsedQuestion, keys: tuple[Column, ...]) -> None:
    """Refuse a question that is sorted by numbers and cut where the order decides which groups are returned."""
    numbers, select = place.numbers, place.select
    if not numbers.shown or place.ranked is not None:
        return
    most, around = find_limit(select), numbers.outer_use.least_limit
    groups = prod(len(key.domain or ()) for key in keys)
    cut = any(select.args.get(clause) is not None for clause in ("limit", "offset"))
    few = most is not None and groups <= most and select.args.get("offset") is None
    if (numbers.sorts and cut and not few) or (around is not None and groups > around):
        node = numbers.shown[0].node
        raise refuse_shown_size(node.find(exp.AggFunc) or node, hint=_suggest_form_of_sizes(place))


def _suggest_form_of_sizes(place: ParsedQuestion) -> str | None:
    """Return a permitted form of the sizes that it shows.

    It is a ranking if it is cut to the greatest, and else a scorecard or question.
    """
    return join_suggestions(suggest_ranking(place), suggest_scorecard(place) or suggest_question(place))


def _check_aliases(place: ParsedQuestion) -> None:
    """Refuse names of the select list in HAVING, as PostgreSQL does. The hint spells them out. Raise KH201."""
    having = place.select.args.get("having")
    if having is None or spell_out_aliases(place.select, {one.name for one in place.scope.table.columns}) is None:
        return
    for column in having.find_all(exp.Column):
        try:
            place.scope.resolve_column(column)
        except UnknownColumn as error:
            error.hint = suggest_question(place) or error.hint
            raise


def _check_hidden_aliases(place: ParsedQuestion, keys: tuple[Column, ...]) -> None:
    """Refuse to compare a column in HAVING whose name the select list gives to an aggregate, and show that (KH207)."""
    having = place.select.args.get("having")
    items = [item for item in place.select.expressions if isinstance(item, exp.Alias) and contains_aggregate(item.this)]
    called = {read_name(item.args["alias"]): item.this for item in items}
    for column in having.find_all(exp.Column) if having is not None and called else ():
        compared = column.find_ancestor(exp.Predicate, exp.Having)
        if column.table or read_name(column.this) not in called or compared is None or contains_aggregate(compared):
            continue
        if place.scope.has_column(read_name(column.this)) and find_column(column, place.scope) not in keys:
            meant = suggest_question(place, aliases=frozenset((read_name(column.this),)))
            raise refuse_hidden_alias(column, called[read_name(column.this)], hint=meant)


def _check_cut(place: ParsedQuestion) -> None:
    """Refuse a ranking whose answer would show which keys tie."""
    select = place.select
    limit = select.args.get("limit")
    options = None if limit is None else limit.args.get("limit_options")
    if limit is not None and options is not None and (options.args.get("with_ties") or options.args.get("percent")):
        raise refuse_ties_in_ranking(limit, read_limit(select))


def find_partition_keys(place: ParsedQuestion, keys: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the keys by which a ranking's windows are partitioned.

    Raise KH106 for an expression that is no key, and KH101 for other expressions that windows show.
    """
    ranked = place.ranked
    if ranked is None:
        return ()
    grouped = list_grouped_expressions(place.keys_only, place.scope)
    for window in ranked.windows:
        for item in window.args["order"].expressions[1:]:
            check_item(item.this, place.scope, *grouped)
        for argument in window.this.iter_expressions():
            check_item(argument, place.scope, *grouped)
    parts = [(item, resolve_order_item(strip_parentheses(item), place.select)) for item in ranked.partition]
    found: list[Column] = []
    for item, node in parts:
        key = find_column(node, place.scope)
        computed = () if key in keys else _list_further_keys(node, [part for _, part in parts], place, keys)
        computed = computed or (() if key in keys else _find_equal_key(node, place, keys))
        if key not in keys and not computed:
            raise refuse_partition(item, keys, is_looked_up=key is not None and isinstance(key.derivation, Lookup))
        found.extend(computed or [one for one in keys if one == key])
    return tuple(dict.fromkeys(found))


def _list_further_keys(
    node: exp.Expr, parts: list[exp.Expr], place: ParsedQuestion, keys: tuple[Column, ...]
) -> tuple[Column, ...]:
    """Return the keys that an item of GROUP BY is computed from, if no item but the `parts` reads them.

    Then the values of the parts correspond one to one to the values of these keys, as the items do to all keys.
    """
    select, scope = place.select, place.scope
    items = [resolve_item(strip_parentheses(item), select, scope) for item in select.args["group"].expressions]
    known, text = {write_identity(part, scope) for part in parts}, write_identity(node, scope)
    if all(write_identity(item, scope) != text for item in items):
        return ()
    found = list_read_keys(node, scope, keys)
    others = [item for item in items if write_identity(item, scope) not in known]
    shared = {key for item in others for key in list_read_keys(item, scope, keys)}
    return () if shared & set(found) else found


def _find_equal_key(node: exp.Expr, place: ParsedQuestion, keys: tuple[Column, ...]) -> tuple[Column, ...]:
    """Return the key that puts rows into the same groups as an expression that is spelled otherwise, if one does."""
    alone = place.select.copy()
    alone.set("group", exp.Group(expressions=[node.copy()]))
    try:
        found = read_group_by(alone, add_computed_keys(place.scope, alone))
    except KeyholeError:
        return ()
    wanted = {one.identity for one in found}
    return tuple(key for key in keys if len(found) == 1 and key.identity in wanted)


def _lists_domain(place: ParsedQuestion, keys: tuple[Column, ...]) -> bool:
    return place.per_unit is None and lists_domain(place.select, place.scope, keys)


def _check_clauses(place: ParsedQuestion) -> None:
    for key, value in place.select.args.items():
        if value and key == "laterals":
            raise refuse_inner_subquery(value[0] if isinstance(value, list) else value)
        if key == "windows" and value and not any(one.find(exp.AggFunc) for one in value):
            continue
        if value and key != "joins" and key not in _ALLOWED_CLAUSES:
            raise refuse_clause(place, key)
    for key, value in place.node.args.items():
        if value and key == "joins":
            raise refuse_inner_subquery(place.node)
        if value and key not in ON_TABLE:
            raise refuse_clause(place, key)
    alias = place.node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise refuse_clause(place, "column aliases")
    for key, value in place.select.args.items():
        for part in value if isinstance(value, list) else [value]:
            if (
                key not in ("from_", "with_")
                and isinstance(part, exp.Expr)
                and contains_type(part, exp.Query)
                and (inner := _find_query(part, key, place)) is not None
            ):
                raise _refuse_subquery(place, inner, key)


def _find_query(part: exp.Expr, key: str, place: ParsedQuestion) -> exp.Query | None:
    """Return a subquery in a clause. Lists of units in WHERE and subqueries of values in JOIN do not count."""
    own = {id(query.tree) for query in place.value_queries}
    if key == "joins" and any(id(node) in own for node in part.this.walk()):
        on = part.args.get("on")
        return None if on is None else on.find(exp.Query)
    if key != "where" or not place.lists:
        return part.find(exp.Query)
    known = {id(listed.tree) for clause in place.lists for listed in clause}
    for one in split_conjuncts(part.this):
        asked = [listed for clause in find_lists(one) or () for listed in clause]
        read = bool(asked) and all(id(listed.query) in known for listed in asked)
        if not read and (inner := one.find(exp.Query)) is not None:
            return inner
    return None


def _refuse_subquery(place: ParsedQuestion, inner: exp.Query, key: str) -> KeyholeError:
    """Return the refusal of a subquery in a clause of the question, with another form of its question if possible."""
    if key == "having" and not contains_type(inner, exp.Table):
        return refuse_threshold_in_subquery(inner)
    if key == "having" and _is_list(inner):
        return refuse_list_in_having(inner)
    if key == "having":
        compares_rows = inner.find_ancestor(exp.Filter, exp.AggFunc, exp.Having) is not place.select.args["having"]
        statistic = write_statistic_of_groups(place, inner)
        percentile = write_percentile_beside_mean(inner) if statistic is None and not compares_rows else None
        return refuse_threshold_from_rows(
            inner,
            hint=suggest_public_total(place, in_place=statistic or percentile),
            is_statistic=statistic is not None,
            is_extreme=percentile is not None,
            compares_rows=compares_rows,
        )
    refusal = refuse_inner_subquery(inner)
    if key == "where" and not place.with_text and (instead := replace_by_number(place, inner)) is not None:
        return refuse_value_of_all_rows(inner, instead=instead)
    if key != "where" or place.with_text or place.select.args.get("joins"):
        return refusal
    together = suggest_set_operation(place.select, place.scope, place.clauses, place.text, place.tokens)
    return refusal if together is None else refuse_question_in_where(inner, together=together)


def _is_list(inner: exp.Query) -> bool:
    """Return True if something is looked for in a subquery's rows."""
    around = inner.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    return isinstance(around, exp.In | exp.Exists)


def _check_operators(place: ParsedQuestion) -> None:
    """Refuse PostgreSQL's operators with @. The parser takes one of them for a parameter."""
    for token in place.tokens[place.clauses.select : place.clauses.end]:
        if token.kind == "symbol" and "@" in token.value:
            raise refuse_operator(token)


def _reads_groups(window: exp.Window) -> bool:
    """Return True if a window reads an aggregate of each group, beyond the rows of the answer."""
    called = _find_window_function(window)
    return counts_units(window) or any(found is not called for found in window.find_all(exp.AggFunc))


def _find_window_function(window: exp.Window) -> exp.Expr:
    called: exp.Expr = window.this.this if isinstance(window.this, exp.Filter) else window.this
    return called


def _list_looked_up_partitions(place: ParsedQuestion) -> Iterator[str]:
    """Yield the looked-up columns that a ranking partitions by, if its measure is never negative.

    Other keys determine them, so that some combinations have no row. These combinations are last.
    """
    ranked = place.ranked
    if ranked is None or not _is_never_negative(ranked.node, place):
        return
    for item in ranked.partition:
        column = find_column(resolve_order_item(strip_parentheses(item), place.select), place.scope)
        if column is not None and isinstance(column.derivation, Lookup) and column.domain is not None:
            yield column.name


def _is_never_negative(node: exp.Expr, place: ParsedQuestion) -> bool:
    """Return True if the ranking is by a count, or by a sum or mean of a column that is never negative."""
    node = strip_parentheses(node.this) if isinstance(node, exp.Filter) else node
    if isinstance(node, exp.Count):
        return True
    if not isinstance(node, exp.Sum | exp.Avg):
        return False
    column = find_column(strip_parentheses(node.this), place.scope)
    return column is not None and column.bounds is not None and column.bounds[0] >= 0


def _read_keys(place: ParsedQuestion, shown: exp.Select) -> tuple[Column, ...]:
    """Return the keys, of the SELECT as it shows them.

    Several groupings at once are refused with the questions for each.
    """
    ranked = place.ranked
    # the first groups in each value of a key: it stays one, and combinations that no row has are the last
    parted = ranked is not None and bool(ranked.partition) and ranked.descending
    try:
        return read_group_by(
            shown,
            place.scope,
            merges_lookups=not parted,
            kept_names=set(_list_looked_up_partitions(place)) if parted else (),
        )
    except KeyholeError as error:
        if error.code == "KH202" and (refusal := refuse_people(error, place)) is not None:
            raise refusal from None
        if error.code in ("KH100", "KH105", "KH202", "KH215"):
            raise suggest_known_keys(error, place) from None
        sets = list_groupings(place.select, place.scope) if error.code == "KH106" else ()
        if not sets or place.select.args.get("having") is None:
            raise
        raise suggest_single_groupings(error, place, sets) from None
