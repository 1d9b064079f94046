"""Refusals of a question's tables, joins and subqueries, and what to ask instead."""

from collections.abc import Iterable, Iterator, Sequence

from sqlglot import exp

from planner.catalog.catalog import Catalog, Column, PublicTable, Table
from planner.errors import KeyholeError
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, read_name, strip_parentheses, write_short

APART = (
    "Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) "
    "q JOIN public_table ..."
)
_VIEW = (
    "Ask the owner to expose a view of the source that joins them, or ask two questions and join their keys: "
    "SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) a "
    "JOIN (SELECT key FROM ... GROUP BY key HAVING ...) b ON ..."
)
_UNITS_IN_BOTH = "Write JOIN, which counts the units with rows in both. Units without rows in one of them are left out."
_OWN_ROWS = "A question's rows are those of its private table."
_ONE_EQUALITY = "A public table is joined by equality with one of its columns, unique and not NULL."


def _refuse_in_from(message: str, node: exp.Expr, *, hint: str = APART, detail: str | None = None) -> KeyholeError:
    """Return KH107 at a place in FROM."""
    return KeyholeError("KH107", message, detail=detail, hint=hint, position=find_position(node))


def refuse_ungrouping_expression(text: str) -> KeyholeError:
    """Return KH202 for an expression in a policy's groupings that does not group the values of one column."""
    return KeyholeError(
        "KH202",
        f"{text[:80]} is no expression of one column that can be grouped by",
        hint="Write expressions of GROUP BY with commas between, such as quantity > 10.",
    )


def refuse_non_table(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a subquery or function among the tables of FROM."""
    return _refuse_in_from("a question joins tables, without subqueries or functions", node)


def refuse_renamed_columns(node: exp.Expr) -> KeyholeError:
    """Return KH107 for `t (a, b)` in FROM."""
    return _refuse_in_from("column aliases of a joined table are not supported", node, hint="Leave them out.")


def refuse_same_alias(alias: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for two tables of one name."""
    return _refuse_in_from(f'the table name "{alias}" is used twice', node, hint="Give each table an alias.")


def refuse_several_equalities(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a LEFT JOIN whose ON has further conditions besides one equality."""
    return _refuse_in_from(
        "LEFT JOIN is supported with one equality in ON",
        node,
        hint="Move other conditions on public columns into WHERE or FILTER.",
    )


def refuse_natural_join(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a join whose columns follow from the tables."""
    return _refuse_in_from("NATURAL JOIN is not supported in a question", node, hint="Write JOIN ... USING (column).")


def refuse_join_kind(kind: str, node: exp.Expr, *, are_private: bool) -> KeyholeError:
    """Return KH107 for a kind of join that Keyhole does not answer, such as RIGHT JOIN and FULL JOIN.

    If both tables `are_private`, the message refuses LEFT JOIN as well. `kind` is empty if PostgreSQL has no such
    join.
    """
    return _refuse_in_from(
        f"{kind or 'this'} JOIN is not supported in a question",
        node,
        detail=_OWN_ROWS,
        hint=_UNITS_IN_BOTH if are_private else "Write JOIN or LEFT JOIN, the private table first.",
    )


def refuse_private_left_join(node: exp.Expr, *, instead: str | None) -> KeyholeError:
    """Return KH107 for a LEFT JOIN between private tables that does not follow a key.

    `instead` is a condition that would follow one.
    """
    return _refuse_in_from(
        "LEFT JOIN of private tables is supported along the key by which rows find their privacy unit",
        node,
        detail="It starts at the table that has the key. In a join on the unit, only units in both tables count.",
        hint=_UNITS_IN_BOTH
        if instead is None
        else f"Write JOIN ... ON {instead}. Units without rows there are left out.",
    )


def refuse_left_join_conditions(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a LEFT JOIN whose ON has further conditions besides the equality of keys."""
    return _refuse_in_from(
        "LEFT JOIN of private tables is supported with nothing but the key in ON",
        node,
        hint="Move the other conditions into the FILTER of an aggregate, or into WHERE.",
    )


def refuse_private_on_right(node: exp.Expr, *, column: str) -> KeyholeError:
    """Return KH107 for a LEFT JOIN from a public to a private table in which an aggregate counts padded rows.

    The join pads each public row that has no private row with NULLs.
    """
    return _refuse_in_from(
        "LEFT JOIN of a private table counts a public row without private rows as one row here",
        node,
        detail="That row counts in count(*), and in coalesce or CASE with ELSE inside an aggregate. Aggregates of "
        "the private table's columns are answered: each public row is a group, with private rows or without.",
        hint=f"Write count({column}), with conditions on its rows in ON or FILTER; or JOIN.",
    )


def refuse_joined_with_query(called: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for the name of a WITH query in FROM."""
    return _refuse_in_from(
        f'"{called}" is a WITH query here, not a table', node, hint=f"Rename it, or write public.{called}."
    )


def refuse_unpinned_table(called: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a table that is neither private nor pinned."""
    return _refuse_in_from(f'"{called}" is not a public table', node)


def refuse_long_column(public: PublicTable, column: str, node: exp.Expr) -> KeyholeError:
    """Return KH213 for a public column whose texts would make a question too large."""
    return KeyholeError(
        "KH213",
        f"the texts of {public.name}.{column} are too long together to be looked up",
        hint=APART,
        position=find_position(node),
    )


def refuse_ambiguous_using(called: str, node: exp.Expr) -> KeyholeError:
    """Return KH201 for a name in USING that two tables before it have."""
    return KeyholeError(
        "KH201",
        f'column "{called}" in USING is in several tables',
        hint="Write JOIN ... ON an equality.",
        position=find_position(node),
    )


def refuse_unknown_using(called: str, tables: Sequence[str], node: exp.Expr) -> KeyholeError:
    """Return KH201 for a name in USING that no table on one side has."""
    named = " or ".join(f'"{table}"' for table in tables)
    return KeyholeError(
        "KH201",
        f'column "{called}" in USING is not exposed by table {named}',
        hint="Write JOIN ... ON an equality.",
        position=find_position(node),
    )


def refuse_unjoined_table(alias: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a public table that no equality ties to the others."""
    return _refuse_in_from(f'no equality joins "{alias}" to the table of the question', node, detail=_ONE_EQUALITY)


def refuse_unknown_join_column(public: PublicTable, column: str, *, at: int | None) -> KeyholeError:
    """Return KH201 for a join column that the public table does not have."""
    return KeyholeError(
        "KH201",
        f'the public table "{public.name}" has no column "{column}"',
        detail=f"Its columns: {', '.join(column.name for column in public.columns)}.",
        position=at,
    )


def refuse_join_of_types(public: PublicTable, key: Column, base: Column, *, at: int | None) -> KeyholeError:
    """Return KH107 for join columns of two types that do not compare as one type."""
    return KeyholeError(
        "KH107",
        f"{spell_name(public.name)}.{spell_name(key.name)} is of type {key.declared}, "
        f'"{base.name}" of type {base.declared}: they do not join',
        detail="Joined columns are of one type: text, integer, date, timestamp, boolean or uuid.",
        hint="Ask the owner to expose one of them with the other's type.",
        position=at,
    )


def refuse_repeating_key(public: PublicTable, column: str, *, problem: str, at: int | None) -> KeyholeError:
    """Return KH107 for a join by a public column whose values repeat: the join could count a row twice."""
    return KeyholeError(
        "KH107",
        f"{spell_name(public.name)}.{spell_name(column)} {problem} in the pinned copy",
        detail="A row of the question could be counted more than once.",
        hint=f"Join {spell_name(public.name)} by a column that is unique and not NULL. " + APART,
        position=at,
    )


def refuse_different_units(node: exp.Expr) -> KeyholeError:
    """Return KH107 for private tables whose units are not known to be the same people."""
    return _refuse_in_from(
        "a question cannot join these private tables",
        node,
        detail="The owner does not say that their privacy units are the same: one unit could count for "
        "many rows of the other table.",
        hint=_VIEW,
    )


_IN_WORDS = "Group the subquery by"
_CONDITION_AS_COLUMN = "or for a view of the source that has the condition as a column."


def refuse_foreign_list(table: Table, listed: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a list of units over a table whose units are not known to be the same people."""
    return _refuse_in_from(
        f'a list of the units of "{listed.name}" cannot select rows of "{table.name}"',
        node,
        detail="The owner does not say that their privacy units are the same: one unit could decide about many others.",
        hint=f"Ask the owner for same_unit_as in one of these tables, {_CONDITION_AS_COLUMN}",
    )


def refuse_list_of_rows(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a list of units beside a table whose privacy unit is a row."""
    return _refuse_in_from(
        f'each row of "{table.name}" is its own privacy unit, so a list of other rows cannot select it',
        node,
        detail="One row would decide about others.",
        hint=f"Ask the owner for a privacy_unit that says whose rows they are, {_CONDITION_AS_COLUMN}",
    )


def refuse_list_without_unit(table: Table, listed: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a subquery in WHERE that does not equate every column of the privacy unit with its own."""
    left, right = (", ".join(map(spell_name, one.unit)) for one in (table, listed))
    left = f"({left})" if len(table.unit) > 1 else left
    return _refuse_in_from(
        f"this subquery in WHERE does not list privacy units by exactly their columns ({table.unit_text})",
        node,
        detail="The rows of one privacy unit would decide about the rows of others.",
        hint=f"Write {left} IN (SELECT {right} FROM {spell_name(listed.name)} WHERE ...). Or ask the owner for another "
        f"privacy_unit, {_CONDITION_AS_COLUMN}",
    )


def refuse_clause_in_list(clause: str, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a clause that a list of units may not contain."""
    return _refuse_in_from(
        f"{clause.upper()} in a list of privacy units is not supported",
        node,
        hint="Write SELECT the unit's columns FROM one private table WHERE ...; conditions on rows stand in its WHERE.",
    )


def refuse_row_condition_in_list(column: exp.Column, table: Table) -> KeyholeError:
    """Return KH107 for a condition between the rows of a list and a row of the question."""
    return _refuse_in_from(
        f"{write_short(column)} is no column of the list's table",
        column,
        detail="A list decides about a whole privacy unit, so its condition is the same for all of the unit's rows.",
        hint="Equate the columns of the privacy unit alone, and compare "
        f"the columns of {spell_name(table.name)} with constants.",
    )


def refuse_list_grouping(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a list that groups rows of several privacy units together."""
    unit = ", ".join(map(spell_name, table.unit))
    return _refuse_in_from(
        f"this list of privacy units does not group by all their columns ({table.unit_text})",
        node,
        detail="A total of several units would decide about each of them.",
        hint=f"Write IN (SELECT {unit} FROM {spell_name(table.name)} WHERE ... GROUP BY {unit} HAVING ...).",
    )


def refuse_total_in_list(error: KeyholeError) -> KeyholeError:
    """Return KH107 for a total that a list cannot compute of one privacy unit's rows in a group."""
    return KeyholeError(
        "KH107",
        f"a list of privacy units: {error.message}",
        detail=error.detail,
        hint="Compare count(*), count(x), count(DISTINCT x), sum(x), avg(x), min(x) or max(x) with a constant, each "
        "with FILTER. Or ask for a row: EXISTS (SELECT 1 FROM ... WHERE ...).",
        position=error.position,
    )


def refuse_nested_list(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a list of units inside another one."""
    return _refuse_in_from(
        "a list of privacy units cannot contain another subquery",
        node,
        hint="Write both lists side by side in the question's own WHERE, with AND.",
    )


def refuse_self_join(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a private table that stands in FROM twice."""
    return _refuse_in_from(f'the private table "{table.name}" is not joined with itself', node, hint=_VIEW)


def refuse_capped_join(table: Table, node: exp.Expr) -> KeyholeError:
    """Return KH107 for a join with a private table under a row cap, where only some rows count."""
    return _refuse_in_from(
        f'the private table "{table.name}" is not joined with other private tables',
        node,
        detail="Its bound chooses rows (max_rows_per_group), which the join would multiply.",
        hint=_VIEW,
    )


def refuse_join_without_unit(alias: str, other: str, node: exp.Expr, *, wanted: str, along: str | None) -> KeyholeError:
    """Return KH107 for private tables that are joined on less than the privacy unit.

    Parameters:
        wanted: the condition that joins them on the unit.
        along: the condition that joins them along a key, if the policy has such a key.
    """
    return _refuse_in_from(
        f'"{alias}" is not joined with "{other}" on the whole privacy unit'
        + ("" if along is None else ", nor along a key"),
        node,
        detail="Rows of one privacy unit would meet rows of others.",
        hint=f"Write JOIN ... ON {wanted if along is None else along}.",
    )


def refuse_using_beside_unit(node: exp.Expr) -> KeyholeError:
    """Return KH107 for a column in USING that both private tables have and that is not a column of their unit."""
    return _refuse_in_from(
        "USING names a column that is not one of the privacy unit in both private tables",
        node,
        hint="Join private tables on the columns of their privacy unit alone.",
    )


def refuse_deep_nesting() -> KeyholeError:
    """Return KH100 for a question that is too deep to be read."""
    return KeyholeError(
        "KH100",
        "the question is nested too deeply",
        hint="Write it with fewer levels of parentheses, CASE and subqueries.",
    )


def refuse_too_many_groups(groups: int, keys: Sequence[Column], catalog: Catalog, *, at: int | None) -> KeyholeError:
    """Return KH210 for a question about more groups than the policy lets one question have."""
    return KeyholeError(
        "KH210",
        f"the question has {groups:,} groups; the most is {catalog.max_keys:,}",
        hint="Group by wider steps or by fewer columns, or restrict the columns of the groups in WHERE."
        if keys[0].computed
        else f"Restrict the keys in WHERE, for example {spell_name(keys[0].name)} = ..., or group by fewer columns.",
        position=at,
    )


def refuse_shown_expression(node: exp.Expr, message: str) -> KeyholeError:
    """Return KH101 for an expression that a select list or ORDER BY may not read."""
    return KeyholeError(
        "KH101",
        message,
        detail="A question shows its keys and constants.",
        hint="Select the GROUP BY keys alone.",
        position=find_position(node),
    )


def refuse_rows_in_having(node: exp.Expr) -> KeyholeError:
    """Return KH207 for a condition in HAVING that belongs to WHERE."""
    return KeyholeError(
        "KH207",
        "this condition in HAVING reads no aggregate, and not just one key",
        hint="Move conditions on rows to WHERE.",
        position=find_position(node),
    )


def refuse_unit_query(
    message: str, node: exp.Expr, table: Table, *, detail: str | None = None, instead: str | None = None
) -> KeyholeError:
    """Return KH110 with a question of the right form: `instead`, or an example."""
    hint = _write_example(table, node) if instead is None else f"Instead you can ask: {instead};"
    return KeyholeError("KH110", message, detail=detail, hint=hint, position=find_position(node))


def suggest_group_by_key(error: KeyholeError, table: Table, node: exp.Expr) -> KeyholeError:
    """Return the refusal of a question that groups by a unit or a total, with a hint that groups by a key."""
    return KeyholeError(
        error.code,
        error.message,
        detail="A question over a subquery per privacy unit groups by keys of the table with a public list of values.",
        hint=_write_example(table, node),
        position=error.position,
    )


def suggest_with_own_numbers(error: KeyholeError, table: Table, *trees: exp.Expr) -> KeyholeError:
    """Return a refusal of a subquery per privacy unit, with the analyst's own numbers in its hint.

    Its hint has the numbers of the question around the subquery.

    Parameters:
        trees: the trees of the analyst's question, from which the numbers are read.
    """
    return error.replace_hint(_write_example(table, *trees)) if (error.hint or "").startswith(_IN_WORDS) else error


def _write_example(table: Table, *trees: exp.Expr) -> str:
    """Return a question over a subquery per privacy unit, as the table allows one, with a statement's own numbers."""
    keys = [column for column in table.columns if column.domain is not None and column.name not in table.unit]
    keys = keys or [column for column in table.columns if column.domain is not None]
    groups = [group for tree in trees for group in tree.root().find_all(exp.Group)]
    grouped = {read_name(one.this) for group in groups for one in group.find_all(exp.Column)}
    keys.sort(key=lambda column: column.name not in grouped)  # the statement's own first
    if not keys:
        return "Ask the owner for a key with a public list of values."
    key, called = spell_name(keys[0].name), spell_name(table.name)
    units, most = _find_numbers(*trees)
    if table.is_row_unit:
        question = f"SELECT {key} FROM {called} GROUP BY {key} HAVING count(*) {units}"
        return (
            f"Instead you can ask: groups by a key, GROUP BY {key}."
            if units is None
            else f"Instead you can ask: {question};"
        )
    listed = ", ".join(dict.fromkeys((key, *map(spell_name, table.unit))))
    total, is_own = _choose_total(table, trees)
    if units is None:
        return f"{_IN_WORDS} {listed}, and the question by {key}, with a threshold in HAVING."
    where = f" WHERE total {most}" if most is not None and is_own else ""
    return (
        f"Instead you can ask: SELECT {key} FROM (SELECT {listed}, {total} AS total FROM {called} GROUP BY {listed}) v"
        f"{where} GROUP BY {key} HAVING count(*) {units};"
    )


def _choose_total(table: Table, trees: Sequence[exp.Expr]) -> tuple[str, bool]:
    """Return a total of one unit that the table bounds, and whether the statement adds up the same, or counts."""
    sums = [one for tree in trees for one in tree.root().find_all(exp.Sum)]
    summed = {read_name(column.this) for one in sums for column in one.find_all(exp.Column)}
    measures = [column for column in table.columns if column.per_unit is not None]
    own = next((column for column in measures if column.name in summed), None)
    counted = table.row_cap is not None or table.rows_per_unit is not None
    if own is None and (counted or not measures):
        return "count(*)", not sums
    return f"sum({spell_name((own or measures[0]).name)})", own is not None


def _find_numbers(*trees: exp.Expr) -> tuple[str | None, str | None]:
    """Return the thresholds of a statement: how it compares a number of units, and a total of one unit, as in `> 100`.

    Parameters:
        trees: the statement's trees, the outer ones first.
    """
    selects = [select for tree in trees for select in tree.root().find_all(exp.Select)]
    items = [item for select in selects for item in select.expressions if isinstance(item, exp.Alias)]
    named = {read_name(item.args["alias"]) for item in items if contains_type(item.this, exp.AggFunc)}
    counts = [
        said for select in selects for _, said in _list_compared_expressions(select.args.get("having"), exp.Count)
    ]
    compared = [one for select in selects for one in _list_compared_expressions(select.args.get("where"), exp.Column)]
    totals = [said for column, said in compared if read_name(column.this) in named]
    return next(iter(counts), None), next(iter([*totals, *counts[1:]]), None)


def _list_compared_expressions(clause: exp.Expr | None, kind: type[exp.Expr]) -> Iterator[tuple[exp.Expr, str]]:
    """Yield the expressions of a kind that a clause compares with numbers from below, each with its comparison."""
    for one in clause.find_all(exp.GT, exp.GTE) if clause is not None else ():
        compared, number = strip_parentheses(one.this), strip_parentheses(one.expression)
        if isinstance(compared, kind) and isinstance(number, exp.Literal) and not number.is_string:
            yield compared, f"{'>' if isinstance(one, exp.GT) else '>='} {number.this}"


def refuse_rows_as_units(node: exp.Expr, table: Table) -> KeyholeError:
    """Return KH110 for a subquery per unit over a table whose privacy unit is a row."""
    return refuse_unit_query(
        "each row is its own privacy unit here: there is nothing to add up per unit",
        node,
        table,
        detail="A subquery may group by the privacy unit, so that each unit has one row per key.",
    )


def refuse_aggregate_of_groups(select: exp.Select, table: Table) -> KeyholeError:
    """Return KH110 for a HAVING without GROUP BY over the groups of a subquery."""
    key = next((spell_name(one.name) for one in table.columns if one.domain is not None), "")
    sizes = f"(SELECT {key}, count(*) AS n FROM {spell_name(table.name)} GROUP BY {key}) AS sizes"
    compared = f"SELECT {key} FROM {sizes} WHERE n > (SELECT avg(n) FROM {sizes})"
    return KeyholeError(
        "KH110",
        "HAVING without GROUP BY compares an aggregate of all groups of a subquery",
        detail="A question returns groups. Each of them can be compared with such an aggregate.",
        hint=f"Instead you can ask: {compared};" if key else "Add GROUP BY.",
        position=find_position(select),
    )


def refuse_groups_without_unit(group: exp.Expr, table: Table) -> KeyholeError:
    """Return KH110 for a subquery that groups by no column of the unit."""
    return refuse_unit_query(
        f"the subquery does not group by the privacy unit ({', '.join(table.unit)})",
        group,
        table,
        detail="So that each unit has one row per key, it groups by the keys and all columns of the unit.",
    )


def refuse_groups_by_partial_unit(group: exp.Expr, table: Table, *, missing: Iterable[str]) -> KeyholeError:
    """Return KH110 for a subquery that groups by some columns of the unit."""
    return refuse_unit_query(
        f"the subquery does not group by all columns of the privacy unit: {', '.join(missing)} is missing",
        group,
        table,
        detail=f"The privacy unit is {table.unit_text}.",
    )


def refuse_further_groups(group: exp.Expr, table: Table, *, more: Iterable[str]) -> KeyholeError:
    """Return KH110 for a subquery that groups by more than the question and the unit."""
    return refuse_unit_query(
        f"the subquery groups by {', '.join(more)}, the question does not",
        group,
        table,
        detail="One privacy unit would have several rows in a group.",
    )


def refuse_shown_units(table: Table, node: exp.Expr, *, at: int | None) -> KeyholeError:
    """Return KH103 for a subquery per unit that is read by something other than a question."""
    return KeyholeError(
        "KH103",
        f'the private table "{table.name}" is used outside a question',
        detail="Totals of a privacy unit are never shown. A question returns the groups that cross a threshold.",
        hint=_write_example(table, node),
        position=find_position(node) or at,
    )


def refuse_join_of_totals(node: exp.Expr, *, instead: str | None) -> KeyholeError:
    """Return KH110 for a join beside a subquery per unit.

    Parameters:
        instead: the question that groups by the subquery's own groups, if there is one.
    """
    return KeyholeError(
        "KH110",
        "a question over a subquery per privacy unit cannot have joins",
        detail="One unit may have several rows of the subquery in a group by the joined table's columns.",
        hint=f"Instead you can ask: {instead};"
        if instead
        else "Put the question into a subquery and join its keys: SELECT ... FROM (<question>) q JOIN ...",
        position=find_position(node),
    )


def refuse_unknown_total(node: exp.Expr, table: Table) -> KeyholeError:
    """Return KH110 for an aggregate in a subquery per unit whose value for one unit is unknown."""
    return refuse_unit_query(
        f"{write_short(strip_parentheses(node))} is not a total of one privacy unit",
        node,
        table,
        detail="A total is count(*), count(x), sum(x), min(x), max(x), avg(x) or count(DISTINCT x) of a declared "
        "column, each with FILTER, or an expression of these. To count days, have the owner declare a column with "
        "their expression.",
    )


def refuse_partly_null(node: exp.Expr) -> KeyholeError:
    """Return KH207 for a predicate that a comparison with NULL makes NULL in some groups, and private rows false."""
    return KeyholeError(
        "KH207",
        f"{write_short(node)} is false in some groups and NULL in others, because of a comparison with NULL",
        detail="Keyhole shows NULL only where public values, or groups that do not exist, make a predicate NULL.",
        hint="Leave out the comparison with NULL, which is neither true nor false.",
        position=find_position(node),
    )
