"""Questions in the place of a refused statement: for hints."""

from collections.abc import Container, Set
from decimal import Decimal

from sqlglot import exp

from planner.aggregates.aggregate import AGGREGATES, contains_aggregate
from planner.aggregates.order_statistics import is_pick
from planner.bind.shown_expressions import check_beside_aggregates, check_shown_expressions
from planner.catalog.catalog import Column, Derivation, Lookup, MergedKeys, ValueGroups
from planner.errors import KeyholeError
from planner.extract.private_read import ParsedQuestion
from planner.groups.computed_keys import add_computed_keys
from planner.parser.clauses import Clauses, find_closing, find_token
from planner.parser.lexer import Token, spell_name
from planner.parser.subquery_readers import find_conjuncts
from planner.parser.tree import contains_type, find_offset, read_name, strip_parentheses, write_node
from planner.scope.group_by import list_grouped_expressions, read_group_by, resolve_item
from planner.scope.name_resolution import Scope, find_column
from planner.scope.owner_bands import choose_middle_threshold, find_bands

INSTEAD = "Instead you can ask: "
"""The first words of a hint that answers another question than the refused one."""
_UNITS_IN_THRESHOLD = 50  # what is cheap at any scale: at 10 % tolerance some 0.8 epsilon
_COMPARISONS = (exp.Is, exp.Between, exp.In, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ)
_CONDITIONS = (exp.And, exp.Or, exp.Not, exp.Between, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.EQ, exp.NEQ)


def suggest_each_grouping(place: ParsedQuestion, sets: tuple[tuple[Column, ...], ...]) -> str:
    """Return one question per grouping, joined by UNION ALL. Keys that a grouping lacks are NULL."""
    everything = tuple({column.name: column for columns in sets for column in columns}.values())
    source = place.text[place.tokens[place.clauses.source].start : _find_source_end(place)]
    where = place.clauses.get_text("where", place.text, place.tokens)
    having = place.clauses.get_text("having", place.text, place.tokens)
    questions: list[str] = []
    for columns in sets:
        shown = ", ".join(
            place.scope.spell_column(column)
            if column in columns
            else f"NULL::{column.declared} AS {spell_name(column.name)}"
            for column in everything
        )
        names = ", ".join(place.scope.spell_column(column) for column in columns)
        parts = (f"SELECT {shown}", source, where, f"GROUP BY {names}", having)
        questions.append(" ".join(part for part in parts if part))
    return f"{place.with_text} {' UNION ALL '.join(questions)};".strip()


def suggest_question(place: ParsedQuestion, *, aliases: Set[str] = frozenset()) -> str | None:
    """Return an answerable question close to the statement: its keys, its WHERE, and a HAVING.

    It begins with `INSTEAD` if the threshold is not the statement's own.

    Parameters:
        aliases: names of columns that mean items of the select list in HAVING.
    """
    keys = () if place.select.args.get("group") is None else _list_grouping_keys(place)
    columns = place.scope.table.columns
    if place.scope.subquery_columns is not None:
        columns = tuple(place.scope.table.get_column(column) for _, column in place.scope.subquery_columns)
    own = _find_own_threshold(place.select)
    whole = own is not None and place.select.args.get("group") is None and not _list_shown_keys(place)
    shown = keys or _list_shown_keys(place) or tuple(column for column in columns if column.domain is not None)[:1]
    if not shown and not whole:
        return None
    names = (_write_items(place) if keys else None) or ", ".join(place.scope.spell_column(column) for column in shown)
    source = place.text[place.tokens[place.clauses.source].start : _find_source_end(place)]
    where = copy_where(place)
    having = place.clauses.get_text("having", place.text, place.tokens)
    asked, named = place.select.args.get("having"), _suggest_without_aliases(place, aliases)
    if contains_type(asked or exp.Null(), exp.Window) and place.select.args.get("group") is None:
        return None  # without groups there is none that a window could run over
    instead = ""
    if named is not None:
        having = named
    elif asked is None or not contains_aggregate(asked) or excludes_emptiness(asked):
        having = f"HAVING {own or _suggest_threshold(place) or 'count(*) > 1000'}"
        instead = "" if own else INSTEAD
    grouped: tuple[str, ...] = (f"SELECT {names}", source, where, f"GROUP BY {_copy_group_by(place) or names}", having)
    if contains_type(asked or exp.Null(), exp.Window) and named is None and not instead:
        grouped = _write_around_windows(place, shown, grouped)
    parts = (place.with_text, *(("SELECT true", source, where, having) if whole else grouped))
    return instead + " ".join(part for part in parts if part) + ";"


def _write_around_windows(place: ParsedQuestion, keys: tuple[Column, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the parts of a question with its HAVING in the select list: PostgreSQL has no windows in HAVING."""
    select, source, where, group, having = parts
    if _write_items(place):
        return parts
    names = [spell_name(key.name) for key in keys]
    called = "passes" if "passes" not in names else "all_pass"
    shown = f"({select}, {having.removeprefix('HAVING').strip()} AS {called}"
    return f"SELECT {', '.join(names)} FROM", shown, source, where, f"{group}) AS q WHERE {called}"


def _suggest_without_aliases(place: ParsedQuestion, aliases: Set[str]) -> str | None:
    return spell_out_aliases(place.select, {column.name for column in place.scope.table.columns} - aliases)


def spell_out_aliases(select: exp.Select, columns: Container[str]) -> str | None:
    """Return HAVING with names of the select list replaced by their expressions.

    PostgreSQL does not allow the names there. Return None if HAVING reads no such name, or one whose expression has no
    thresholds.
    """
    having = select.args.get("having")
    called = {read_name(item.args["alias"]): item.this for item in select.expressions if isinstance(item, exp.Alias)}
    read = [] if having is None else [one for one in having.find_all(exp.Column) if not one.table]
    aliases = [one for one in read if read_name(one.this) in called and read_name(one.this) not in columns]
    if having is None or not aliases or having.find(exp.Query) is not None:
        return None
    spelled: exp.Having = having.copy()
    for column in list(spelled.find_all(exp.Column)):
        meant = called.get(read_name(column.this))
        if column.find_ancestor(exp.AggFunc) is not None:
            continue  # of rows
        if meant is not None and not column.table and read_name(column.this) not in columns:
            column.replace(exp.Paren(this=meant.copy()) if isinstance(meant, exp.Binary) else meant.copy())
    return f"HAVING {write_node(spelled.this)}" if contains_aggregate(spelled) else None


def _copy_group_by(place: ParsedQuestion) -> str | None:
    """Return GROUP BY as it is typed, if it has columns besides the keys that HAVING may read.

    Otherwise return None.
    """
    group, having = place.select.args.get("group"), place.select.args.get("having")
    grouped = [] if group is None else group.expressions
    if having is None or not grouped or not all(isinstance(one, exp.Column) for one in grouped):
        return None
    read = {read_name(column.this) for column in having.find_all(exp.Column)}
    keys = {key.name for key in _list_grouping_keys(place)}
    if not any(read_name(one.this) in read and read_name(one.this) not in keys for one in grouped):
        return None
    return ", ".join(write_node(one) for one in grouped)


def _write_items(place: ParsedQuestion) -> str | None:
    """Return the items of GROUP BY as the hint may show them, if one is cut from values.

    Its key has no name that SQL has.
    """
    made = [key for key in _list_grouping_keys(place) if isinstance(key.derivation, MergedKeys | ValueGroups)]
    group = place.select.args["group"].expressions
    items = [resolve_item(strip_parentheses(item), place.select, place.scope) for item in group]
    return ", ".join(write_node(item) for item in items) if made else None


def _list_grouping_keys(place: ParsedQuestion) -> tuple[Column, ...]:
    try:
        return read_group_by(place.select, place.scope)
    except KeyholeError:
        return ()


def suggest_whole_table(place: ParsedQuestion) -> str | None:
    """Return a question about the whole table as one group, for a statement that shows columns without keys."""
    asked = place.select.args.get("having")
    if place.scope.subquery_columns is not None or asked is None or not contains_aggregate(asked):
        return None
    if contains_type(asked, exp.Window):
        return None
    source = place.text[place.tokens[place.clauses.source].start : _find_source_end(place)]
    where = copy_where(place)
    having = place.clauses.get_text("having", place.text, place.tokens)
    return INSTEAD + " ".join(part for part in (place.with_text, "SELECT true", source, where, having) if part) + ";"


def suggest_by_keys(place: ParsedQuestion) -> str | None:
    """Return a question by the keys that a grouped expression reads.

    The query around the question computes the expression.
    """
    keys = _list_shown_keys(place)
    items = place.select.expressions
    computed = [column for item in items for column in item.find_all(exp.Column)]
    if not keys or place.select.args.get("having") is None or any(column.table for column in computed):
        return None
    if not {read_name(column.this) for column in computed} <= {key.name for key in keys}:
        return None  # what else is shown is no column of the keys
    names = ", ".join(place.scope.spell_column(key) for key in keys)
    source = place.tokens[place.clauses.source].start
    parts = (
        place.with_text,
        f"SELECT {names}",
        place.text[source : _find_source_end(place)],
        copy_where(place),
        f"GROUP BY {names}",
        place.clauses.get_text("having", place.text, place.tokens),
    )
    shown = place.text[place.tokens[place.clauses.select].start : source].rstrip()
    return f"{INSTEAD}{shown} FROM ({' '.join(part for part in parts if part)}) AS q;"


def suggest_by_positions(place: ParsedQuestion) -> tuple[str, str] | None:
    """Return SQL that lists a key's public values, for a statement that asks for their extremes or their number.

    The name is a column's, and the select list gives it to another expression. Return None if no name is ambiguous, or
    if no position would be a key.
    """
    select, scope, tokens = place.select, place.scope, place.tokens
    group = select.args.get("group")
    aliases = [read_name(item.args["alias"]) if isinstance(item, exp.Alias) else "" for item in select.expressions]
    positions: dict[str, tuple[int, exp.Column]] = {}
    for item in group.expressions if group is not None else ():
        node = strip_parentheses(item)
        called = read_name(node.this) if isinstance(node, exp.Column) and node.args.get("table") is None else ""
        if node is item and called and scope.has_column(called) and aliases.count(called) == 1:
            index = aliases.index(called)
            shown = select.expressions[index].this
            if not contains_aggregate(shown) and find_column(shown, scope) != find_column(node, scope):
                positions[called] = index + 1, node
    if not positions:
        return None
    numbered = place.keys_only.copy()
    for item in numbered.args["group"].expressions:
        if isinstance(item, exp.Column) and item.args.get("table") is None and read_name(item.this) in positions:
            item.replace(exp.Literal.number(positions[read_name(item.this)][0]))
    try:
        scope = add_computed_keys(scope, numbered)
        read_group_by(numbered, scope)
        grouped = list_grouped_expressions(numbered, scope)
        check_shown_expressions(numbered, scope, *grouped)
        for one in place.numbers.nodes:
            check_beside_aggregates(one, scope, *grouped)
    except KeyholeError:
        return None
    parts, at = [], tokens[place.clauses.select].start
    for number, node in sorted(positions.values(), key=lambda one: find_offset(one[1].this)):
        token = tokens[find_token(tokens, find_offset(node.this))]
        parts += [place.text[at : token.start], str(number)]
        at = token.end
    parts.append(place.text[at : tokens[place.clauses.end - 1].end])
    names = ", ".join(spell_name(called) for called in positions)
    detail = (
        f"As in PostgreSQL, GROUP BY {names} means the table's own, not what the select list calls by the same name."
    )
    return detail, " ".join(part for part in (place.with_text, "".join(parts)) if part) + ";"


def suggest_window_around(place: ParsedQuestion, window: exp.Window) -> str | None:
    """Return the question without a window of its select list, and the window in a query around the question.

    Return None if the window reads names of the inner tables, or something that the question cannot show by name.
    """
    if any(column.table for column in window.find_all(exp.Column)):
        return None
    if not place.predicates and place.ranked is None:
        asked = suggest_question(place)
        keys = {key.name for key in _list_grouping_keys(place) or _list_shown_keys(place)}
        if asked is None or any(column.name not in keys for column in window.find_all(exp.Column)):
            return None
        instead = INSTEAD if asked.startswith(INSTEAD) else ""
        written = asked.removeprefix(INSTEAD).rstrip(";")
        return f"{instead}SELECT q.*, {write_node(window)} FROM ({written}) AS q;"
    items = [item for item in place.select.expressions if not contains_type(item, exp.Window)]
    names = [item.alias_or_name for item in items]
    if any(column.name not in names for column in _list_columns_beside_predicates(window, place)):
        return None
    text, tokens = place.text, place.tokens
    inner = [text[tokens[first].start : tokens[past - 1].end] for first, past in place.clauses.items]
    shown = [written for written, item in zip(inner, place.select.expressions, strict=True) if item in items]
    called: dict[int, str] = {}
    around = window.copy()
    numbers = {id(one.node): one for one in place.predicates}
    for node, twin in list(zip(list(window.walk()), list(around.walk()), strict=True)):
        one = numbers.get(id(node))
        if one is None:
            continue
        if one.number not in called:
            called[one.number] = f"p{one.number + 1}"
            written = text[tokens[one.first].start : tokens[one.stop - 1].end]
            shown.append(f"{written} AS {called[one.number]}")
        twin.replace(exp.column(called[one.number], table="q"))
    end = place.clauses.end if place.ranked is None else place.ranked.end
    source = text[tokens[place.clauses.source].start : tokens[end - 1].end]
    asked = " ".join(part for part in (place.with_text, f"SELECT {', '.join(shown)} {source}") if part)
    return f"SELECT q.*, {write_node(around)} FROM ({asked}) AS q;"


def _list_columns_beside_predicates(window: exp.Window, place: ParsedQuestion) -> list[exp.Column]:
    """Return the columns that a window reads beside its predicates."""
    inside = {id(column) for one in place.predicates for column in one.node.find_all(exp.Column)}
    return [column for column in window.find_all(exp.Column) if id(column) not in inside]


def suggest_domain(place: ParsedQuestion) -> str | None:
    """Return the list of a key's public values, for a statement that asks only for extremes or the number of them."""
    keys = [_find_asked_key(item.unalias(), place.scope) for item in place.select.expressions]
    found = tuple(dict.fromkeys(key for key in keys if key is not None))
    if place.select.args.get("group") is not None or place.with_text or None in keys or len(found) != 1:
        return None
    if place.select.args.get("having") is not None or not reads_keys_alone(place.select, place.scope, found):
        return None
    source = place.text[place.tokens[place.clauses.source].start : _find_source_end(place)]
    where = place.clauses.get_text("where", place.text, place.tokens)
    return f"SELECT DISTINCT {place.scope.spell_column(found[0])} {source} {where}".rstrip() + ";"


def reads_keys_alone(select: exp.Select, scope: Scope, keys: tuple[Column, ...]) -> bool:
    """Return True if WHERE reads only keys and their base columns, or is missing."""
    where = select.args.get("where")
    if where is None:
        return True
    names = {key.name for key in keys}
    names |= {key.derivation.column for key in keys if isinstance(key.derivation, Derivation | Lookup)}
    try:
        read = [find_column(column, scope) for column in where.find_all(exp.Column)]
    except KeyholeError:
        return False
    return where.find(exp.Query) is None and all(column is not None and column.name in names for column in read)


def _find_asked_key(item: exp.Expr, scope: Scope) -> Column | None:
    """Return the key of min(key), max(key) or count(DISTINCT key)."""
    match strip_parentheses(item):
        case exp.Min(this=inner) | exp.Max(this=inner):
            return _find_key(inner, scope)
        case exp.Count(this=exp.Distinct(expressions=[inner])):
            return _find_key(inner, scope)
    return None


def _find_key(node: exp.Expr, scope: Scope) -> Column | None:
    try:
        column = find_column(node, scope)
    except KeyholeError:
        return None
    return None if column is None or column.domain is None else column


def _list_shown_keys(place: ParsedQuestion) -> tuple[Column, ...]:
    """Return the keys in the select list of a statement that groups by nothing."""
    if place.scope.subquery_columns is not None:
        return ()
    read = [_find_key(node, place.scope) for item in place.select.expressions for node in item.find_all(exp.Column)]
    return tuple(dict.fromkeys(column for column in read if column is not None))


def _suggest_threshold(place: ParsedQuestion) -> str | None:
    """Return a threshold for the aggregate that the select list shows, if a question may ask for one."""
    for item in place.select.expressions:
        for node in item.walk():
            if isinstance(node, exp.Count | exp.Sum | exp.Avg) and node.find_ancestor(exp.Filter, exp.Window) is None:
                bands = find_bands(node, place.scope, ())
                threshold = (
                    suggest_likely_threshold(node, place.scope)
                    if bands is None
                    else f"{choose_middle_threshold(bands):f}"
                )
                if threshold is not None:
                    return f"{write_node(node)} > {threshold}"
    return None


def suggest_likely_threshold(node: exp.Expr, scope: Scope) -> str | None:
    """Return a likely threshold for a count, or for a sum or average of one column, as text.

    Return None for other aggregates, and if the column has no bounds. Public bounds give the threshold, never the
    rows.
    """
    if not isinstance(node, exp.Count | exp.Sum | exp.Avg):
        return None
    inner, rows = node.this, scope.table.rows_per_unit or 1
    if isinstance(inner, exp.Distinct) and isinstance(node, exp.Count) and len(inner.expressions) == 1:
        inner, rows = inner.expressions[0], 1
    if isinstance(node, exp.Count) and isinstance(inner, exp.Star):
        return _choose_total_threshold(rows)
    if scope.subquery_columns is not None or not isinstance(inner, exp.Column):
        return None
    try:
        column = find_column(inner, scope)
    except KeyholeError:
        return None
    if isinstance(node, exp.Count):
        return None if column is None else _choose_total_threshold(rows)
    if column is None or column.bounds is None:
        return None
    if isinstance(node, exp.Sum):
        return (
            _choose_total_threshold(max(map(abs, column.per_unit or column.bounds))) if column.bounds[1] > 0 else None
        )
    low, high = column.bounds  # no row's value lies beyond them, and no average
    middle = int((max(low, Decimal(0)) + high) / 2)
    return str(middle) if low < middle < high else None


def _choose_total_threshold(most: Decimal | int) -> str:
    """Return a round threshold of a total. Ten percent of it is several times one unit's part, and so above noise."""
    wanted = max(1000, _UNITS_IN_THRESHOLD * most)
    power = 10 ** (len(str(int(wanted))) - 1)
    return str(next(step * power for step in (1, 2, 5, 10) if step * power >= wanted))


def excludes_emptiness(having: exp.Having) -> bool:
    """Return True if HAVING compares only with 0 or NULL, as tools do to exclude empty groups.

    Such a comparison is no threshold of a question. A FILTER or CASE inside an aggregate compares rows, and is
    ignored.
    """
    outside = having.walk(prune=lambda node: isinstance(node, AGGREGATES))
    compared = [node for node in outside if isinstance(node, _COMPARISONS)]
    return bool(compared) and all(map(_compares_with_nothing, compared))


def _compares_with_nothing(comparison: exp.Expr) -> bool:
    side = comparison.args.get("expression")
    return isinstance(comparison, exp.Is) or (isinstance(side, exp.Literal) and str(side.this) == "0")


def copy_where(place: ParsedQuestion) -> str:
    """Return the WHERE of a question as text.

    Return an empty text if it reads columns of an outer query, as EXISTS does.
    """
    where = place.select.args.get("where")
    try:
        for column in () if where is None else where.find_all(exp.Column):
            find_column(column, place.scope)
    except KeyholeError:
        return ""
    return place.clauses.get_text("where", place.text, place.tokens)


def _find_source_end(place: ParsedQuestion) -> int:
    past = min((index for _, index in place.clauses.marks), default=place.clauses.end)
    return place.tokens[past - 1].end


def _find_own_threshold(select: exp.Select) -> str | None:
    """Return the select list's own threshold of an aggregate, as in CASE WHEN count(*) > 5000 THEN ..."""
    for item in select.expressions:
        for node in item.walk():
            if (
                isinstance(node, _CONDITIONS)
                and contains_aggregate(node)
                and not contains_type(node, exp.Query, exp.Window)
            ):
                return write_node(node)
    return None


PUBLIC_TOTAL = "1000000"  # in the place of a total that a hint cannot know: the analyst writes the one that is public


def _choose_public_number(place: ParsedQuestion) -> str:
    """Return a number that a subquery in HAVING may stand for.

    It is within the bounds of a mean, median or extreme that is compared with it, and no total if it is none.
    """
    having = place.select.args["having"]
    for comparison in having.find_all(exp.GT, exp.GTE, exp.LT, exp.LTE):
        sides = strip_parentheses(comparison.this), strip_parentheses(comparison.expression)
        if comparison.find_ancestor(exp.Filter, exp.AggFunc) is not None:  # a row's own value
            value = next((side for side in sides if not contains_type(side, exp.Query)), None)
            likely = suggest_likely_threshold(exp.Avg(this=value.copy()), place.scope) if value is not None else None
            if likely is not None:
                return likely
            continue
        own = [side for side in sides if not contains_type(side, exp.Query) and contains_aggregate(side)]
        asked = [side for side in sides if contains_type(side, exp.Query)]
        if len(own) != 1 or len(asked) != 1:
            continue
        picked = _find_picked_column(own[0])
        if picked is not None:
            return suggest_likely_threshold(exp.Avg(this=picked.copy()), place.scope) or PUBLIC_TOTAL
        if not contains_type(asked[0], exp.Sum, exp.Count):
            return suggest_likely_threshold(own[0], place.scope) or PUBLIC_TOTAL
        shown = [item for query in asked[0].find_all(exp.Select) for item in query.expressions][:1]
        if shown and _find_picked_column(shown[0].unalias()) is not None:
            return suggest_likely_threshold(own[0], place.scope) or PUBLIC_TOTAL
    return PUBLIC_TOTAL


def _find_picked_column(node: exp.Expr) -> exp.Expr | None:
    """Return the column of which a mean, median, percentile or extreme is asked. Return None for other expressions."""
    call = strip_parentheses(node)
    if is_pick(call) and isinstance(call, exp.WithinGroup):
        ordered = call.expression.expressions
        return strip_parentheses(ordered[0].this) if len(ordered) == 1 else None
    return strip_parentheses(call.this) if isinstance(call, exp.Avg | exp.Max | exp.Min | exp.Median) else None


def suggest_public_total(place: ParsedQuestion, *, in_place: str | None = None) -> str:
    """Return the question with a number (or the text `in_place`) instead of every subquery in its HAVING."""
    tokens, end, number = place.tokens, place.clauses.end, in_place or _choose_public_number(place)
    first = place.clauses.find_mark("having")
    at = place.clauses.select
    written, start = [], tokens[at].start
    while at < end - 1:
        inside = first is not None and at > first
        if inside and tokens[at].is_symbol("(") and tokens[at + 1].is_word("select", "with"):
            quantified = tokens[at - 1].is_word("all", "any", "some")
            written += [place.text[start : tokens[at - quantified].start], number]
            at = find_closing(tokens, at)
            start = tokens[at].end
        at += 1
    return INSTEAD + f"{place.with_text} {''.join(written)}{place.text[start : tokens[end - 1].end]};".strip()


def join_suggestions(*ways: str | None) -> str | None:
    """Return several suggestions as one hint.

    It begins with `INSTEAD` if one of them answers another question.
    """
    known = [way for way in ways if way is not None]
    instead = INSTEAD if any(way.startswith(INSTEAD) for way in known) else ""
    return instead + "  or  ".join(way.removeprefix(INSTEAD) for way in known) if known else None


def suggest_set_operation(
    select: exp.Select, scope: Scope, place: Clauses, text: str, tokens: tuple[Token, ...]
) -> str | None:
    """Return the question with INTERSECT instead of `key IN (question)`, and EXCEPT instead of NOT IN.

    Return None without IN or NOT IN.
    """
    if select.args.get("group") is None or select.args.get("having") is None:
        return None
    try:
        keys = read_group_by(select, scope)
    except KeyholeError:
        return None
    kept: list[str] = []
    others: list[str] = []
    conjuncts = find_conjuncts(select, place, tokens)
    if conjuncts is None:
        return None
    for (first, past), condition in conjuncts:
        at = next((index for index in range(first, past) if tokens[index].is_word("in")), past)
        negated = tokens[at - 1].is_word("not")
        column = _read_column(tokens[first : at - negated])
        if at == past or not tokens[min(at + 2, past - 1)].is_word("select"):
            kept.append(text[tokens[first].start : tokens[past - 1].end])
        elif find_closing(tokens, at + 1) == past - 1 and [column] == [key.name for key in keys]:
            if not _asks_question(condition):
                return None
            inner = text[tokens[at + 2].start : tokens[past - 2].end]
            others.append(f"{'EXCEPT' if negated else 'INTERSECT'} {inner}")
        else:
            return None
    if not others:
        return None
    past = min((index for _, index in place.marks), default=place.end)
    source = text[tokens[place.source].start : tokens[past - 1].end]
    names = scope.spell_column(keys[0])
    where = f"WHERE {' AND '.join(kept)}" if kept else ""
    having = place.get_text("having", text, tokens)
    parts = (f"SELECT {names}", source, where, f"GROUP BY {names}", having, *others)
    return " ".join(part for part in parts if part) + ";"


def _asks_question(condition: exp.Expr) -> bool:
    """Return True if `key IN (...)` or its negation is about a question."""
    node = strip_parentheses(condition)
    inside = node.this if isinstance(node, exp.Not) else node
    query = inside.args.get("query")
    query = query.this if isinstance(query, exp.Subquery) else query
    if not isinstance(query, exp.Select) or len(query.expressions) != 1:
        return False
    return query.args.get("having") is not None and query.args.get("group") is not None


def _read_column(written: tuple[Token, ...]) -> str | None:
    """Return the column that tokens name, with or without its table. Return None for anything else."""
    names, dots = written[::2], written[1::2]
    plain = all(token.is_name for token in names) and all(token.is_symbol(".") for token in dots)
    return names[-1].value if plain and len(written) % 2 == 1 else None
