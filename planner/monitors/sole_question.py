"""The one question of a monitor's text, which may stand in a subquery or WITH query whose keys alone are shown."""

from collections.abc import Sequence

from sqlglot import exp

from planner.catalog.catalog import Catalog
from planner.catalog.monitor import Monitor
from planner.extract.extract import extract_questions
from planner.monitors.monitor_question_refusals import refuse_condition, refuse_surroundings
from planner.parser.lexer import Token, read_tokens
from planner.parser.tree import parse, read_name, write_node
from planner.scope.embedded import EmbeddedQuestion, list_leaves
from planner.values.expressions import uses_clock

_SHOWN = frozenset(("expressions", "from_", "with_"))


def find_sole_question(catalog: Catalog, monitor: Monitor) -> EmbeddedQuestion:
    """Return the question that a monitor's text is.

    Raise KH602 for any other text, and the refusals of the question itself.
    """
    sql = monitor.sql.strip().rstrip(";").rstrip()
    lexed: tuple[Token, ...] = read_tokens(sql)
    for token in lexed:
        if token.kind == "parameter":
            hint = "Write the constant itself; a threshold for each group may come from a public table."
            raise refuse_condition(monitor, f"sql has the parameter {token.value}", hint=hint)
    found = extract_questions(sql, lexed, catalog)
    if found is None or len(found.embedded) != 1 or not isinstance(found.embedded[0], EmbeddedQuestion):
        raise refuse_surroundings(monitor)
    embedded = found.embedded[0]
    if embedded.predicates:
        hint = "Leave the condition in HAVING, and make a monitor of each colour that is to alert."
        raise refuse_condition(monitor, "it is a scorecard, which shows more than keys", hint=hint)
    if embedded.ranked is not None:
        hint = "Instead you can ask: GROUP BY keys HAVING count(*) > 400, without an order."
        raise refuse_condition(monitor, "it ranks groups, and places change from look to look", hint=hint)
    if embedded.unit_query is not None:
        hint = "Instead you can ask: HAVING count(DISTINCT patient_id) > 40, about the rows themselves."
        raise refuse_condition(monitor, "it asks per privacy unit, in a subquery", hint=hint)
    if embedded.stored_question is not None or not _is_only_question(embedded, sql):
        raise refuse_surroundings(monitor)
    if any(uses_clock(leaf.tree) for leaf in list_leaves(embedded)):
        hint = "Leave it out: from and until are the horizon, and each window is counted by itself."
        raise refuse_condition(monitor, "current_date and now() change from look to look", hint=hint)
    return embedded


def _is_only_question(embedded: EmbeddedQuestion, sql: str) -> bool:
    """Return True if the text is its question, or selects all columns of a subquery or WITH query that is."""
    if embedded.is_whole_statement(sql):
        return True
    text = sql if embedded.origin is None else embedded.origin.text
    outer = parse(text, read_tokens(text)).tree
    if not isinstance(outer, exp.Select) or not {name for name, value in outer.args.items() if value} <= _SHOWN:
        return False
    inner = _find_only_source(outer)
    if inner is None or write_node(inner) != write_node(embedded.tree):
        return False
    shown, found = _list_names(outer.expressions), _list_names(inner.expressions)
    plain = all(isinstance(one, exp.Column) for one in outer.expressions)
    return plain and "" not in found and len(set(found)) == len(found) and sorted(shown) == sorted(found)


def _find_only_source(outer: exp.Select) -> exp.Expr | None:
    """Return the subquery that a SELECT reads, or the WITH query that it names. Return None for anything else."""
    read, queries = outer.args["from_"].this if outer.args.get("from_") else None, outer.args.get("with_")
    inner: exp.Expr | None = None
    if read is None or not {name for name, value in read.args.items() if value} <= {"this", "alias"}:
        return None
    if isinstance(read, exp.Subquery) and queries is None and _has_plain_name(read):
        inner = read.this
    elif isinstance(read, exp.Table) and queries is not None and len(queries.expressions) == 1:
        (query,) = queries.expressions
        named = read_name(query.args["alias"].this)
        if not queries.args.get("recursive") and _has_plain_name(query) and named == read_name(read.this):
            inner = query.this
    return inner


def _has_plain_name(node: exp.Expr) -> bool:
    """Return True unless a subquery renames its columns."""
    alias = node.args.get("alias")
    return alias is None or not alias.args.get("columns")


def _list_names(items: Sequence[exp.Expr]) -> list[str]:
    """Return the name of each item of a select list, empty if it has none."""
    return [read_name(one.args.get("alias") if isinstance(one, exp.Alias) else one.this) for one in items]
