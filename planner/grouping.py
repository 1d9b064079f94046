"""GROUP BY: which columns are the question's keys, by name, position, output alias or a derived column's expression."""

from sqlglot import exp

from planner.catalog import Column
from planner.errors import KeyholeError
from planner.reference import Scope, derivation, referenced
from planner.syntax import bare, name, position, written


def grouping(select: exp.Select, scope: Scope) -> tuple[Column, ...]:
    """The key columns in order, each once. Raises KH105, KH106, KH201, KH202."""
    group = select.args.get("group")
    if group is None or not group.expressions:
        if group is not None and any(value for key, value in group.args.items() if key != "expressions"):
            raise _unsupported(group)
        raise KeyholeError(
            "KH105",
            "the question has no GROUP BY keys",
            detail="Keyhole tells which groups cross a threshold, so it needs groups.",
            hint=f"Group by one or more of: {_known(scope)}.",
            position=position(select.args.get("having") or select),
        )
    if any(value for key, value in group.args.items() if key != "expressions"):
        raise _unsupported(group)
    keys: dict[str, Column] = {}
    for item in group.expressions:
        column = _key(item, select, scope)
        keys[column.name] = column
    return tuple(keys.values())


def _unsupported(node: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH106",
        "ROLLUP, CUBE, GROUPING SETS and GROUP BY ALL or DISTINCT are not supported",
        hint="Ask one question per grouping; UNION ALL may join them.",
        position=position(node),
    )


def _known(scope: Scope) -> str:
    return ", ".join(column.name for column in scope.table.columns if column.domain is not None) or "(none declared)"


def _key(item: exp.Expr, select: exp.Select, scope: Scope) -> Column:
    item = _chosen(bare(item), select, scope)
    if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple):
        raise _unsupported(item)
    column = referenced(item, scope)
    if column is None:
        raise KeyholeError(
            "KH202",
            f"{written(item)[:80]} is not a column with a public domain",
            detail=f"Keys with a public domain: {_known(scope)}.",
            hint=_declare(item, scope),
            position=position(item),
        )
    if column.domain is None:
        raise KeyholeError(
            "KH202",
            f'column "{column.name}" has no public domain',
            detail=f"The list of groups must be public. Keys of {scope.table.name}: {_known(scope)}.",
            hint=f"Declare [tables.{scope.table.name}.columns.{column.name}] key = {{ values = [...] }}, "
            "values_from or range in keyhole.toml.",
            position=position(item),
        )
    return column


def _declare(item: exp.Expr, scope: Scope) -> str:
    if derivation(item, scope) is not None:
        expression = written(item)
        return (
            f'Declare a column of {scope.table.name} with expression = "{expression}" and a key range in keyhole.toml.'
        )
    return "Group by declared columns."


def _chosen(item: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What a position or an output alias stands for; as in PostgreSQL, a column of the table comes before an alias."""
    if isinstance(item, exp.Literal) and not item.is_string:
        index = int(str(item.this)) if str(item.this).isdigit() else 0
        if not 1 <= index <= len(select.expressions):
            raise KeyholeError(
                "KH202", f"GROUP BY position {item.this} is not in the select list", position=position(item)
            )
        return _unaliased(select.expressions[index - 1])
    if isinstance(item, exp.Column) and item.args.get("table") is None:
        wanted = name(item.this)
        if all(column.name != wanted for column in scope.table.columns):
            for projection in select.expressions:
                if isinstance(projection, exp.Alias) and name(projection.args["alias"]) == wanted:
                    return _unaliased(projection)
    return item


def _unaliased(projection: exp.Expr) -> exp.Expr:
    return bare(projection.this if isinstance(projection, exp.Alias) else projection)
