"""GROUP BY: the keys of a question, by name, position, output alias or a derived column's expression."""

import json
from collections.abc import Collection
from itertools import combinations

from sqlglot import exp

from planner.catalog.catalog import Column, Derivation, Lookup
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import (
    find_position,
    find_start,
    is_star,
    read_name,
    strip_parentheses,
    write_node,
    write_short,
)
from planner.scope.functional_dependencies import find_determining_keys, find_incomplete_keys, list_undetermined_columns
from planner.scope.key_classes import combine_lookups, find_plain_column, group_by_key_expressions, read_key_expression
from planner.scope.name_resolution import Scope, are_same_derivation, find_column, read_derivation

_LARGEST_INTEGER = 2**31 - 1  # PostgreSQL reads a longer number as a numeric, which is no position


def read_group_by(
    select: exp.Select, scope: Scope, *, merges_lookups: bool = True, kept_names: Collection[str] = ()
) -> tuple[Column, ...]:
    """Return the key columns in order, each once, without looked-up ones that others determine.

    Return none if the whole table is one group.

    Parameters:
        merges_lookups: replace several columns that one key looks up by that key if they identify its values, else by
            a key of the combinations that occur.
        kept_names: the names of looked-up columns that stay keys although others determine them.

    Raises KH100, KH105, KH106, KH201, KH202, KH215.
    """
    group = select.args.get("group")
    if group is not None and any(value for key, value in group.args.items() if key != "expressions"):
        raise _refuse_grouping_sets(group)
    if has_no_keys(select):
        _check_shows_no_column(select, scope)
        return ()
    assert group is not None, "keys are listed"
    items = [resolve_item(strip_parentheses(item), select, scope) for item in group.expressions]
    for item in items:
        if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            raise _refuse_grouping_sets(item)
    listed = [find_plain_column(item, scope) for item in items]
    computed = group_by_key_expressions(items, scope)
    several = [column for columns in computed.values() for column in columns]
    plain = [column for column in listed if column is not None]
    told = find_determining_keys(plain, scope) if merges_lookups else ()
    names = {column.name for column in list_undetermined_columns([*plain, *several, *told], scope)}
    names |= {column.name for column in plain if column.name in kept_names}
    keys: dict[str, Column] = {column.name: column for column in told if column.name in names}
    if merges_lookups and scope.subquery_columns is None:
        made = dict.fromkeys([*plain, *(columns[0] for columns in computed.values() if len(columns) == 1)])
        for base, columns in find_incomplete_keys([one for one in made if one.name in names], scope):
            names -= {column.name for column in columns}
            one = combine_lookups(columns, base, scope)
            keys[one.name] = one
    for index, (item, known) in enumerate(zip(group.expressions, listed, strict=True)):
        if index in computed:
            keys |= {column.name: column for column in computed[index] if column.name in names}
        elif known is None or known.name in names:
            column = _read_key(item, select, scope)
            keys[column.name] = column
    return tuple(keys.values())


def has_no_keys(select: exp.Select) -> bool:
    """Return True if a SELECT has no keys: no GROUP BY, or GROUP BY ()."""
    group = select.args.get("group")
    items = [] if group is None else group.expressions
    return all(isinstance(item, exp.Tuple) and not item.expressions for item in items)


def _check_shows_no_column(select: exp.Select, scope: Scope) -> None:
    """Raise KH105 for a column in the select list if the whole table is one group, as PostgreSQL does."""
    shown = next((found for item in select.expressions for found in item.find_all(exp.Column, exp.Star)), None)
    if shown is not None:
        raise KeyholeError(
            "KH105",
            "the question has no GROUP BY keys",
            detail="Without GROUP BY the whole table is one group, of which no column can be shown.",
            hint=f"Group by one or more of: {_list_key_columns(scope)}. "
            "Or ask about the whole table: SELECT true FROM ... HAVING ...",
            position=find_position(select.args.get("having") or select),
        )


def list_grouped_expressions(select: exp.Select, scope: Scope) -> tuple[tuple[Column, ...], frozenset[str]]:
    """Return the expressions that the select list may show: grouped columns, and the texts of key expressions."""
    if has_no_keys(select):
        return (), frozenset()
    items = [resolve_item(strip_parentheses(item), select, scope) for item in select.args["group"].expressions]
    columns = [find_column(item, scope) for item in items]
    found = [read_key_expression(item, scope) for item, column in zip(items, columns, strict=True) if column is None]
    return (
        tuple(dict.fromkeys(column for column in columns if column is not None)),
        frozenset(expression.text for expression in found if expression is not None),
    )


def list_grouped_columns(select: exp.Select, scope: Scope) -> tuple[Column, ...]:
    """Return the columns that a subquery groups by, with or without a public domain.

    Raise KH100, KH106, KH201, KH202, KH215.
    """
    group = select.args["group"]
    if any(value for key, value in group.args.items() if key != "expressions"):
        raise _refuse_grouping_sets(group)
    columns: dict[str, Column] = {}
    for item in group.expressions:
        chosen = resolve_item(strip_parentheses(item), select, scope)
        if isinstance(chosen, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
            raise _refuse_grouping_sets(chosen)
        column = find_column(chosen, scope)
        if column is None:
            raise KeyholeError("KH202", f"{write_short(chosen)} is not a column", position=find_position(chosen))
        columns[column.name] = column
    return tuple(columns.values())


def _refuse_grouping_sets(node: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH106",
        "these groupings cannot be split into one question each",
        detail="ROLLUP, CUBE and GROUPING SETS can be split into up to eight groupings, if ORDER BY sorts by shown "
        "columns and the select list has no window and no *. GROUP BY ALL and DISTINCT are not supported.",
        hint="Ask one question per grouping; UNION ALL may join them.",
        position=find_position(node),
    )


MOST_SETS = 8  # groupings that a hint writes out, as of CUBE over three keys


def list_groupings(select: exp.Select, scope: Scope) -> tuple[tuple[Column, ...], ...]:
    """Return the groupings of ROLLUP, CUBE and GROUPING SETS, without the grouping of the whole table.

    Return none if there are too many.
    """
    try:
        return tuple(dict.fromkeys(one for one in list_grouping_sets(select, scope) if one))
    except KeyholeError:
        return ()


def list_grouping_sets(select: exp.Select, scope: Scope) -> tuple[tuple[Column, ...], ...]:
    """Return the keys of each grouping of a GROUP BY, in order and with PostgreSQL's repetitions.

    Return none if there are too many. Raise what `read_group_by` raises for one item.
    """
    sets = list_grouped_items(select, scope)
    return tuple(tuple(dict.fromkeys(_read_key(item, select, scope) for item in items)) for items in sets)


def list_grouped_items(select: exp.Select, scope: Scope) -> tuple[tuple[exp.Expr, ...], ...]:
    """Return the items of each grouping of a GROUP BY, with positions and aliases resolved.

    Return none if there are too many groupings. Raise KH100, KH106, KH215.
    """
    group = select.args.get("group")
    if group is None or any(value for key, value in group.args.items() if key != "expressions"):
        return ()
    sets: list[tuple[exp.Expr, ...]] = [()]
    for item in group.expressions:
        sets = [left + right for left in sets for right in _expand_item(item)]
        if len(sets) > MOST_SETS:
            return ()
    return tuple(tuple(_resolve_item(item, select, scope) for item in items) for items in sets)


def _expand_item(item: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    match item:
        case exp.Cube(expressions=items) if 2 ** min(len(items), 60) > MOST_SETS:
            return [()] * (MOST_SETS + 1)
        case exp.Rollup(expressions=items) | exp.Cube(expressions=items):
            parts = [_list_item_columns(part) for part in items]
            if isinstance(item, exp.Rollup):
                chosen = [range(length) for length in range(len(parts), -1, -1)]
                return [tuple(column for index in indices for column in parts[index]) for indices in chosen]
            places = range(len(parts))
            return [
                tuple(column for index in indices for column in parts[index])
                for length in range(len(parts), -1, -1)
                for indices in combinations(places, length)
            ]
        case exp.GroupingSets(expressions=items):
            return [one for part in items for one in _expand_item(part)]
        case _:
            return [_list_item_columns(item)]


def _list_item_columns(item: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(item.expressions) if isinstance(item, exp.Tuple) else (strip_parentheses(item),)


def _list_key_columns(scope: Scope) -> str:
    return ", ".join(column.name for column in scope.table.columns if column.domain is not None) or "(none declared)"


def _resolve_item(item: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    item = resolve_item(strip_parentheses(item), select, scope)
    if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        raise _refuse_grouping_sets(item)
    return item


def _read_key(item: exp.Expr, select: exp.Select, scope: Scope) -> Column:
    item = _resolve_item(item, select, scope)
    column = find_column(item, scope)
    if column is None and item.find(exp.Parameter) is not None:
        raise KeyholeError(
            "KH202",
            f"{write_short(item)} depends on a parameter",
            detail="Which groups there are is known once it has a value.",
            hint="Bind the statement through the protocol or over REST, or write the value into it.",
            position=find_position(item),
        )
    if column is None:
        raise KeyholeError(
            "KH202",
            f"{write_short(item)} is not a column with a public domain",
            detail=f"Keys with a public domain: {_list_key_columns(scope)}.",
            hint=_suggest_declaration(item, scope),
            position=find_position(item),
        )
    if column.domain is None:
        raise KeyholeError(
            "KH202",
            f'column "{column.name}" has no public domain',
            detail=f"The list of groups must be public. Keys of {scope.table.name}: {_list_key_columns(scope)}.",
            hint="Group by a public column of type text, integer, boolean, date or timestamp that holds values."
            if isinstance(column.derivation, Lookup) or column.name in scope.table.unit
            else f"Declare [{scope.table.get_policy_key(column.name)}] key = {{ values = [...] }}, "
            "values_from or range in keyhole.toml.",
            position=find_position(item),
        )
    return column


def _suggest_declaration(item: exp.Expr, scope: Scope) -> str:
    found = read_derivation(item, scope)
    if found is not None:
        base = spell_name(found.column)
        forms = {"date_trunc": f"date_trunc('{found.part}', {base})", "extract": f"extract({found.part} from {base})"}
        expression = forms.get(found.function, f"{base}::date")
        return (
            f"Declare a column of {scope.table.name} with expression = {_quote_in_policy(expression)} "
            "and a key range in keyhole.toml."
        )
    key = _read_to_char(item, scope)
    if key is not None:
        shown = scope.spell_column(key)
        formatted = write_node(item).replace(write_node(item.this), shown, 1)
        return f"SELECT {formatted} FROM {_describe_source(scope)} GROUP BY {shown} HAVING count(*) > 1000;"
    return "Group by declared columns."


def _quote_in_policy(text: str) -> str:
    """Return a text as a quoted value of the policy file."""
    return json.dumps(text, ensure_ascii=False)


def _describe_source(scope: Scope) -> str:
    table = spell_name(scope.table.name)
    return table if scope.alias == scope.table.name else f"{table} AS {spell_name(scope.alias)}"


def _read_to_char(item: exp.Expr, scope: Scope) -> Column | None:
    """Return the key to group by in place of to_char(x, 'YYYY-MM'): the part of a date that its format shows."""
    if not isinstance(item, exp.TimeToStr) or scope.public_tables or scope.subquery_columns is not None:
        return None
    read = find_column(item.this, scope)
    form = write_node(item.args["format"]).lower()
    part = next((part for letter, part in (("d", "day"), ("m", "month"), ("q", "quarter")) if letter in form), "year")
    for key in scope.table.columns:
        if (
            read is not None
            and key.domain is not None
            and are_same_derivation(key.derivation, Derivation("date_trunc", part, read.name))
        ):
            return key
    return None


def resolve_item(item: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """Return the expression that a position or an output alias stands for.

    As in PostgreSQL, a column of the table comes before an alias.
    """
    index = resolve_position(item, select, clause="GROUP BY")
    if index is not None:
        return _strip_alias(select.expressions[index])
    if isinstance(item, exp.Column) and item.args.get("table") is None:
        wanted = read_name(item.this)
        if not scope.has_column(wanted):
            for projection in select.expressions:
                if isinstance(projection, exp.Alias) and read_name(projection.args["alias"]) == wanted:
                    return _strip_alias(projection)
    return item


def resolve_position(item: exp.Expr, select: exp.Select, *, clause: str) -> int | None:
    """Return the 0-based index of the select item that a number in GROUP BY or ORDER BY means.

    Return None if the item is not constant. Raise KH100 and KH215 in PostgreSQL's words for other constants.
    """
    number = item.this if isinstance(item, exp.Neg) else item
    if not isinstance(number, exp.Literal | exp.Null | exp.Boolean) or (number is not item and number.is_string):
        return None
    text = "" if isinstance(number, exp.Null | exp.Boolean) or number.is_string else str(number.this)
    at = find_start(number)
    place = None if at is None else at + 1
    if not text.isdigit() or int(text) > _LARGEST_INTEGER:
        raise KeyholeError("KH100", f"non-integer constant in {clause}", position=place)
    index = int(text) if number is item else -int(text)
    if index > 0 and any(is_star(shown) for shown in select.expressions[:index]):
        return None  # only the table says how many columns these are
    if 1 <= index <= len(select.expressions):
        return index - 1
    raise KeyholeError("KH215", f"{clause} position {index} is not in select list", position=place)


def _strip_alias(projection: exp.Expr) -> exp.Expr:
    return strip_parentheses(projection.this if isinstance(projection, exp.Alias) else projection)
