"""Questions in the place of a list of people: in which groups many of them qualify.

    SELECT customer_id FROM sales GROUP BY customer_id HAVING count(*) > 5
    SELECT country FROM (SELECT country, customer_id, month, count(*) AS total FROM sales
    GROUP BY country, customer_id, month) v WHERE total > 5 GROUP BY country HAVING count(*) > 50;

An answer protects whether one person qualifies. So no threshold on a person's own rows has a private answer.
"""

from sqlglot import exp

from planner.catalog.catalog import Column, Table
from planner.errors import KeyholeError
from planner.extract.hints.answerable_questions import copy_where
from planner.extract.private_read import ParsedQuestion
from planner.parser.lexer import spell_name
from planner.parser.tree import is_number, strip_parentheses, write_node
from planner.scope.name_resolution import find_column
from planner.scorecard.number_columns import list_group_expressions

_FEWEST = 50  # people in a group: what is cheap at the usual tolerance
_TOTAL = "total"
_PRODUCT = (exp.Column, exp.Identifier, exp.Mul, exp.Paren)  # what a total multiplies
_MOST_FACTORS = 4  # of a total in a hint: as many columns as a product may have


def refuse_people(error: KeyholeError, place: ParsedQuestion) -> KeyholeError | None:
    """Return the refusal of a question whose groups are people or single rows. Return None for any other question.

    The refusal of a search for duplicates says why it has no answer. Any other refusal has a hint about groups of
    people.
    """
    grouped = _find_grouped_columns(place)
    people = [column for column in grouped if column.name in place.scope.table.unit and column.domain is None]
    listed = [column for column in grouped if column.domain is None]
    if people and not place.scope.table.is_row_unit:
        detail = f"An answer never shows whether one {people[0].name} qualifies. It can say where many do."
        asked = suggest_groups_of_people(place, grouped)
        return _add_detail(error, detail, hint=error.hint if asked is None else f"Instead you can ask: {asked}")
    if not listed or not _looks_for_duplicates(place):
        return None
    detail = f"One row decides whether a {listed[0].name} is there twice, so no private answer reveals it."
    return _add_detail(error, detail, hint="Look for duplicates where the data are kept.")


def _add_detail(error: KeyholeError, detail: str, *, hint: str | None) -> KeyholeError:
    return KeyholeError(error.code, error.message, detail=detail, hint=hint, position=error.position)


def _find_grouped_columns(place: ParsedQuestion) -> list[Column]:
    found = []
    for node in list_group_expressions(place.select):
        try:
            column = find_column(node, place.scope)
        except KeyholeError:
            continue
        if column is not None:
            found.append(column)
    return found


def _looks_for_duplicates(place: ParsedQuestion) -> bool:
    """Return True for HAVING count(*) > 1, and its other spellings."""
    having = place.select.args.get("having")
    match None if having is None else strip_parentheses(having.this):
        case exp.GT(this=exp.Count(this=exp.Star() | exp.Column() | exp.Literal()), expression=number):
            return is_number(number, 1)
        case exp.GTE(this=exp.Count(this=exp.Star() | exp.Column() | exp.Literal()), expression=number):
            return is_number(number, 2)
    return False


def suggest_groups_of_people(place: ParsedQuestion, grouped: list[Column]) -> str | None:
    """Return a question that asks in which groups many people qualify.

    Its keys are those that the statement names, or else the first one. Return None for a table without a key, or if
    something other than the table is read.
    """
    table, select = place.scope.table, place.select
    if table.is_row_unit or place.per_unit is not None or place.with_text or select.args.get("joins"):
        return None
    open_keys = [column for column in table.columns if column.domain is not None and column.name not in table.unit]
    keys = [column for column in grouped if column.domain is not None] or open_keys[:1]
    if not keys:
        return None
    totals, condition = _list_totals(place)
    tokens, first = place.tokens, place.clauses.source
    past = min((index for _, index in place.clauses.marks), default=place.clauses.end)
    source = place.text[tokens[first].start : tokens[past - 1].end]
    own = dict.fromkeys((*(key.name for key in keys), *table.unit))
    groups = ", ".join(place.scope.spell_column(table.get_column(name)) for name in own)
    shown = ", ".join(spell_name(key.name) for key in keys)
    inner = (f"SELECT {groups}, {', '.join(totals)}", source, copy_where(place), f"GROUP BY {groups}")
    return (
        f"SELECT {shown} FROM ({' '.join(part for part in inner if part)}) v WHERE {condition} GROUP BY {shown} "
        f"HAVING count(*) > {_FEWEST};"
    )


def _list_totals(place: ParsedQuestion) -> tuple[list[str], str]:
    """Return the totals of one person that HAVING compares, named, and its condition by these names.

    A part of HAVING that compares something else is left out.
    """
    table, having = place.scope.table, place.select.args.get("having")
    counted = table.row_cap is not None or table.rows_per_unit is not None
    called: dict[str, str] = {}
    kept = []
    for part in [] if having is None else having.this.flatten() if isinstance(having.this, exp.And) else [having.this]:
        named = _name_totals(_spell_extreme_as_count(strip_parentheses(part).copy()), called, place, is_counted=counted)
        kept += [] if named is None else [write_node(named)]
    if kept:
        return [f"{text} AS {name}" for text, name in called.items()], " AND ".join(kept)
    return [f"{_choose_total(table, is_counted=counted)} AS {_TOTAL}"], f"{_TOTAL} > 3"


def _spell_extreme_as_count(condition: exp.Expr) -> exp.Expr:
    """Return `max(x) > 5` as a count of the rows with `x > 5`, which means the same of a person."""
    match condition:
        case exp.LT(this=exp.Min() as call) | exp.LTE(this=exp.Min() as call):
            pass
        case exp.GT(this=exp.Max() as call) | exp.GTE(this=exp.Max() as call):
            pass
        case _:
            return condition
    if not isinstance(call.this, exp.Column) or not isinstance(condition.expression, exp.Literal):
        return condition
    rows = exp.Where(this=type(condition)(this=call.this.copy(), expression=condition.expression.copy()))
    return exp.GT(this=exp.Filter(this=exp.Count(this=exp.Star()), expression=rows), expression=exp.Literal.number(0))


def _name_totals(
    condition: exp.Expr, called: dict[str, str], place: ParsedQuestion, *, is_counted: bool
) -> exp.Expr | None:
    """Return a condition with names in the place of its totals. Return None if it reads no total, or more."""
    calls = [one for one in condition.find_all(exp.AggFunc) if one.find_ancestor(exp.AggFunc) is None]
    if not calls or not all(_is_total(call, place, is_counted=is_counted) for call in calls):
        return None
    for call in calls:
        node = call.parent if isinstance(call.parent, exp.Filter) else call
        if node is condition:
            return None
        name = called.setdefault(write_node(node), _TOTAL if not called else f"{_TOTAL}{len(called) + 1}")
        node.replace(exp.column(name))
    return exp.Paren(this=condition) if isinstance(condition, exp.Or) else condition


def _is_total(call: exp.Expr, place: ParsedQuestion, *, is_counted: bool) -> bool:
    if isinstance(call, exp.Count):
        return is_counted
    parts = list(call.this.walk()) if isinstance(call, exp.Sum) and isinstance(call.this, exp.Expr) else []
    columns = [one for one in parts if isinstance(one, exp.Column)]
    if not columns or len(columns) > _MOST_FACTORS or not all(isinstance(one, _PRODUCT) for one in parts):
        return False
    try:
        found = [find_column(column, place.scope) for column in columns]
    except KeyholeError:
        return False
    return all(column is not None and column.per_unit is not None for column in found)


def _choose_total(table: Table, *, is_counted: bool) -> str:
    measure = next((column for column in table.columns if column.per_unit is not None), None)
    return "count(*)" if is_counted or measure is None else f"sum({spell_name(measure.name)})"
