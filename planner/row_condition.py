"""WHERE and FILTER: sqlglot's tree to a `Condition`, by an allow-list of comparisons of columns with constants.

A condition is kept as four ordinary conditions, for the rows where it is true, false, not true and not false. So NOT
and IS TRUE are exact under SQL's three values, and the result needs no value "unknown".
"""

from datetime import date, datetime
from fractions import Fraction
from typing import cast as typed

from sqlglot import exp

from planner import constant
from planner.array_text import json_members, members
from planner.catalog import SqlType
from planner.column_comparison import is_real, rounded_to_real, unlisted
from planner.condition import (
    ALWAYS,
    COMPARISONS,
    NEVER,
    Compare,
    Condition,
    IsNull,
    Not,
    Within,
    all_of,
    any_of,
    columns,
)
from planner.constant_calls import text_of
from planner.constant_value import Constant, Given, NotConstant, Number, Untyped, number, wrong
from planner.errors import KeyholeError
from planner.letter_case import escaped, spellings
from planner.like import like, parts, unfinished, with_escape
from planner.moments import instant, midnight, moment
from planner.reference import Scope, referenced
from planner.row_scope import RowScope, combined
from planner.row_term import FLIPPED, Term, any_like, term, without_nulls
from planner.syntax import bare, position, written
from planner.truth import UNKNOWN, Truth, always, known_unless_null

OPERATORS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}


def row_condition(node: exp.Expr, scope: Scope, given: Given) -> Condition:
    """The condition that holds exactly on the rows where the expression is true.

    Guarantee: evaluating it can neither raise nor take more than linear time on any row. Raises KH205 for what is not
    on the allow-list, KH201 for unknown columns, KH212 for constants of a wrong type.
    """
    return row_truth(node, scope, given).true


def row_truth(node: exp.Expr, scope: Scope, given: Given) -> Truth:
    """The expression's four conditions. Raises as `row_condition` does."""
    return _truth(node, RowScope(scope, given))


def _truth(node: exp.Expr, within: RowScope) -> Truth:
    node = bare(node)
    result = _positive(node, within)
    return result.negated() if node.args.get("negate") else result


def _positive(node: exp.Expr, within: RowScope) -> Truth:
    match node:
        case exp.And() | exp.Or():
            return combined((_truth(part, within) for part in node.flatten()), conjunction=isinstance(node, exp.And))
        case exp.Not():
            return _truth(node.this, within).negated()
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
            return _comparison(node, OPERATORS[type(node)], within)
        case exp.NullSafeEQ() | exp.NullSafeNEQ():
            return _distinct(node, within)
        case exp.Between():
            return _between(node, within)
        case exp.In():
            return _membership(node, within)
        case exp.Escape() if isinstance(inner := bare(node.this), exp.Like | exp.ILike):
            found = _like(inner, within, escape=node.expression)
            return found.negated() if inner.args.get("negate") else found
        case exp.Like() | exp.ILike() | exp.StartsWith():
            return _like(node, within, escape=None)
        case exp.Is():
            return _is(node, within)
        case exp.Case():
            return _case(node, within)
        case _:
            return _bare_truth(node, within)


def _case(node: exp.Case, within: RowScope) -> Truth:
    """CASE of conditions: the first whose WHEN is true decides; without ELSE it is unknown."""
    arms: list[tuple[Condition, Truth]] = []
    passed: list[Condition] = []
    for arm in node.args["ifs"]:
        when = exp.EQ(this=node.this, expression=arm.this) if node.this is not None else arm.this
        chosen = _truth(when, within)
        arms.append((all_of((*passed, chosen.true)), _truth(arm.args["true"], within)))
        passed.append(chosen.not_true)
    default = node.args.get("default")
    arms.append((all_of(passed), UNKNOWN if default is None else _truth(default, within)))
    return Truth(
        any_of(all_of((chosen, then.true)) for chosen, then in arms),
        any_of(all_of((chosen, then.false)) for chosen, then in arms),
        any_of(all_of((chosen, then.not_true)) for chosen, then in arms),
        any_of(all_of((chosen, then.not_false)) for chosen, then in arms),
    )


def _term(node: exp.Expr, within: RowScope) -> Term:
    """The column, or function of one, on one side of a comparison. Raises KH205 for anything else."""
    found = term(node, within)
    if found is not None:
        return found
    if node.find(exp.Query):
        raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
    column = referenced(node, within.scope)
    if column is not None:
        raise unlisted(node, f'column "{column.name}" has type {column.declared}, which row conditions cannot use')
    raise not_listed(node, f"{written(node)[:80]} is not allowed in a row condition")


def _sides(node: exp.Expr, operator: str, within: RowScope) -> tuple[exp.Expr, str, exp.Expr]:
    """The side with a column, operator and constant side, turned round if needed."""
    left, right = bare(node.this), bare(node.expression)
    if within.is_constant(left):
        return right, FLIPPED[operator], left
    return left, operator, right


def _comparison(node: exp.Expr, operator: str, within: RowScope) -> Truth:
    left, right = bare(node.this), bare(node.expression)
    found = within.scope.membership(node) if operator == "=" else None
    if found is not None:  # of a row that finds nothing, the public side is NULL
        return Truth(found, NEVER, any_of((Not(found), *(IsNull(name) for name in columns(found)))), ALWAYS)
    if isinstance(right, exp.Any) or (isinstance(right, exp.Anonymous) and len(right.expressions) == 1):
        quantified = _quantifier(right)
        if quantified is not None:
            return _quantified(left, operator, *quantified, within)
    if isinstance(left, exp.Tuple) and isinstance(right, exp.Tuple) and operator in ("=", "<>"):
        equal = _rows(left, right, within)
        return equal if operator == "=" else equal.negated()
    return _compared(left, operator, right, within)


def _compared(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    """`left operator right` of one value each."""
    if within.is_constant(left) and within.is_constant(right):
        return _constants(left, operator, right, within)
    itself = _itself(left, right, operator, within)
    if itself is not None:
        return itself
    if within.is_constant(left):
        left, operator, right = right, FLIPPED[operator], left
    found = _term(left, within)
    return found.compare(operator, within.constant(right), right)


def _itself(left: exp.Expr, right: exp.Expr, operator: str, within: RowScope) -> Truth | None:
    """A column compared with itself, as `x = coalesce($1, x)` is without a value: known wherever it is not NULL."""
    sides = [_first_of(side, within) for side in (left, right)]
    found = [referenced(side, within.scope) for side in sides]
    if found[0] is None or found[1] is None or found[0].name != found[1].name:
        return None
    if found[0].sql_type is SqlType.OTHER:
        return None
    exists = Not(IsNull(found[0].name))
    held = known_unless_null(found[0].name, true=exists, false=NEVER)
    return held if operator in ("=", "<=", ">=") else held.negated()


def _first_of(node: exp.Expr, within: RowScope) -> exp.Expr:
    """What COALESCE is where the constants before it are NULL and nothing stands behind it."""
    if not isinstance(node, exp.Coalesce):
        return node
    arguments = without_nulls(node, within)
    return arguments[0] if len(arguments) == 1 else node


def _constants(left: exp.Expr, operator: str, right: exp.Expr, within: RowScope) -> Truth:
    value = _between_constants(within.constant(left), operator, within.constant(right), left)
    return UNKNOWN if value is None else always(value=value)


def _between_constants(left: Constant, operator: str, right: Constant, node: exp.Expr) -> bool | None:
    if left is None or right is None:
        return None
    first, second = _alike(left, right, node), _alike(right, left, node)
    ordered = isinstance(first, Fraction | date)
    if type(first) is not type(second) or not (ordered or operator in ("=", "<>")):
        raise wrong(node, "these two constants cannot be compared", hint="Compare two constants of one type: 1 = 1.")
    return COMPARISONS[operator](first, second)


def _alike(value: Constant, other: Constant, node: exp.Expr) -> object:
    """A constant as Python compares it, a quoted one with the type of the other; times as timestamps."""
    match value, other:
        case Untyped(text), Number():
            return number(text, node).value
        case Untyped(text), bool():
            return constant.truth(text, node)
        case Untyped(text), date():
            found = moment(text, node)
            return found if isinstance(other, datetime) else midnight(found.date())
        case Untyped(text), _:
            return text
        case Number(exact, _), _:
            return exact
        case date(), _:
            return midnight(value)
        case _:
            return value


def _quantifier(node: exp.Any | exp.Anonymous) -> tuple[bool, exp.Expr] | None:
    """Whether every element must compare so (ALL) or one (ANY, SOME), and the array."""
    if isinstance(node, exp.Any):
        return False, bare(node.this)
    called = str(node.this).upper()
    return (called == "ALL", bare(node.expressions[0])) if called in ("ALL", "SOME") else None


def _quantified(left: exp.Expr, operator: str, every: bool, array: exp.Expr, within: RowScope) -> Truth:  # noqa: FBT001
    found = _elements(array, within)
    if found is None:
        return UNKNOWN
    if within.is_constant(left):
        value = within.constant(left)
        truths = [_between_constants(value, operator, item, left) for item in found]
        return combined((UNKNOWN if one is None else always(value=one) for one in truths), conjunction=every)
    compared = _term(left, within)
    if is_real(compared.column) and array.find(exp.Parameter) is not None:
        raise unlisted(
            array,
            f'an array for column "{compared.column.name}" of type real is written out',
            detail="Of an array in a parameter it is not known whether its numbers are of type real.",
            hint=f"Write {compared.column.name} = ANY ('{{0.5,0.25}}').",
        )
    if every and operator == "<>":
        return _listed(compared, [(item, array) for item in found]).negated()
    if not every and operator == "=":
        return _listed(compared, [(item, array) for item in found])
    return combined((compared.compare(operator, item, array) for item in found), conjunction=every)


def _elements(array: exp.Expr, within: RowScope) -> list[Constant] | None:
    """The constants of an array; None if it is NULL. Raises KH205, KH212."""
    if array.find(exp.Query):
        raise KeyholeError("KH107", "a subquery inside a question", position=position(array))
    element = None
    if isinstance(array, exp.Cast) and array.to.this == exp.DType.ARRAY and len(array.to.expressions) == 1:
        element, array = array.to.expressions[0], bare(array.this)
    if isinstance(array, exp.Array):
        found = [within.constant(item) for item in array.expressions]
    else:
        value = within.constant(array)
        if value is None:
            return None
        read = _array(value, array)
        if read is None:
            shown = written(array)[:80]
            raise wrong(array, f"{shown} is no array of one dimension", hint="Write '{1,2}' or ARRAY[1, 2].")
        found = read
    if element is None:
        return found
    return [None if item is None else constant.cast(item, element, array) for item in found]


def _array(value: Constant, node: exp.Expr) -> list[Constant] | None:
    """The elements of an array's text, which of a parameter may be JSON; None if it is none."""
    if not isinstance(value, Untyped):
        return None
    if isinstance(node, exp.Parameter) and value.text.startswith("["):
        return json_members(value.text)
    texts = members(value.text)
    return None if texts is None else [None if text is None else Untyped(text) for text in texts]


def _distinct(node: exp.Expr, within: RowScope) -> Truth:
    """IS [NOT] DISTINCT FROM a constant, never unknown."""
    same = _same(node, within)
    return same if isinstance(node, exp.NullSafeEQ) else same.negated()


def _same(node: exp.Expr, within: RowScope) -> Truth:
    left, _, right = _sides(node, "=", within)
    value = within.constant(right)
    if within.is_constant(left):
        first = within.constant(left)
        return always(value=(first is None and value is None) or _between_constants(first, "=", value, node) is True)
    found = _term(left, within)
    if value is None and not found.plain:
        raise not_listed(node, f"{written(node)[:80]} is not allowed in a row condition")
    if value is None:
        null: Condition = IsNull(found.column.name)
        return Truth(null, Not(null), Not(null), null)
    equal = found.compare("=", value, right)
    return Truth(equal.true, equal.not_true, equal.not_true, equal.true)


def _between(node: exp.Expr, within: RowScope) -> Truth:
    value, low, high = bare(node.this), node.args["low"], node.args["high"]

    def inside(least: exp.Expr, most: exp.Expr) -> Truth:
        sides = (_compared(value, ">=", bare(least), within), _compared(value, "<=", bare(most), within))
        return combined(sides, conjunction=True)

    if node.args.get("symmetric"):
        return combined((inside(low, high), inside(high, low)), conjunction=False)
    return inside(low, high)


def _rows(left: exp.Tuple, right: exp.Tuple, within: RowScope) -> Truth:
    """Whether two rows are equal, member by member."""
    if len(left.expressions) != len(right.expressions):
        raise KeyholeError(
            "KH212",
            "these rows have different numbers of members",
            detail="Rows are compared member by member.",
            hint="Give both the same number of members: (a, b) IN ((1, 'x'), (2, 'y')).",
            position=position(left),
        )
    pairs = zip(left.expressions, right.expressions, strict=True)
    return combined((_compared(bare(one), "=", bare(other), within) for one, other in pairs), conjunction=True)


def _membership(node: exp.Expr, within: RowScope) -> Truth:
    if not node.expressions or node.args.get("query") is not None:
        raise KeyholeError("KH107", "a subquery inside a question", position=position(node))
    value = bare(node.this)
    items = [bare(item) for item in node.expressions]
    if isinstance(value, exp.Tuple):
        if not all(isinstance(item, exp.Tuple) for item in items):
            raise unlisted(node, f"{written(node)[:80]} compares a row with a value")
        return combined((_rows(value, typed(exp.Tuple, item), within) for item in items), conjunction=False)
    if within.is_constant(value):
        return combined((_compared(value, "=", item, within) for item in items), conjunction=False)
    found = _term(value, within)
    if found.column.sql_type in (SqlType.DATE, SqlType.TIMESTAMP):
        _check_alike(found, items, within)
    return _listed(found, [(_member(found, item, len(items), within), item) for item in items])


_ZONED = (exp.StrToTime, exp.UnixToTime, exp.CurrentTimestamp)


def _check_alike(found: Term, items: list[exp.Expr], within: RowScope) -> None:
    """Refuse lists in which quoted members would take the type of another member instead of the column's."""
    values = [within.constant(item) for item in items]
    texts = [value.text for value in values if isinstance(value, Untyped)]
    kept = found.plain and found.column.sql_type is SqlType.TIMESTAMP
    hours = not kept and any(moment(text, items[0]) != midnight(moment(text, items[0]).date()) for text in texts)
    offsets = any(moment(text, items[0]) != instant(text, items[0]) for text in texts)
    for value, item in zip(values, items, strict=True):
        zoned = item.find(*_ZONED) or any(cast.to.this == exp.DType.TIMESTAMPTZ for cast in item.find_all(exp.Cast))
        if (zoned and (hours or offsets)) or (isinstance(value, datetime) and hours):
            raise wrong(
                item,
                "this member of the list gives the quoted ones another type",
                detail="PostgreSQL reads all quoted members of a list with the type of the others.",
                hint="Write all members alike: date '2026-12-31' or timestamp '2026-12-31 23:59:59'.",
            )


def _member(found: Term, item: exp.Expr, members_: int, within: RowScope) -> Constant:
    """A member of a list: on a `real` column two or more of them make the list one of `real`."""
    value = within.constant(item)
    if members_ < 2 or value is None or not is_real(found.column):
        return value
    if item.find(exp.Cast, exp.Parameter) is not None:
        raise unlisted(
            item,
            f'a list on column "{found.column.name}" of type real holds plain numbers alone',
            hint=f"Write the number itself, or {found.column.name} = 0.5 OR {found.column.name} = 0.25.",
        )
    return rounded_to_real(value, item)


def _listed(found: Term, items: list[tuple[Constant, exp.Expr]]) -> Truth:
    """Whether a term is one of some constants."""
    truths = [found.compare("=", value, at) for value, at in items]
    result = combined(truths, conjunction=False)
    name = found.column.name
    values = {part.true.value for part in truths if isinstance(part.true, Compare)}
    if len(values) < 2 or not all(isinstance(part.true, Compare) or part.true == NEVER for part in truths):
        return result
    if any(part.not_false not in (ALWAYS, any_of((part.true, IsNull(name)))) for part in truths):
        return result
    within = Within(name, tuple(sorted(values)))
    if any(part is UNKNOWN for part in truths):
        return Truth(within, NEVER, any_of((Not(within), IsNull(name))), ALWAYS)
    return known_unless_null(name, true=within, false=Not(within))


def _like(node: exp.Expr, within: RowScope, *, escape: exp.Expr | None) -> Truth:
    """LIKE, ILIKE and starts_with."""
    pattern = within.constant(node.expression)
    mark = "\\" if escape is None else within.constant(escape)
    if pattern is None or mark is None:
        return UNKNOWN
    if within.is_constant(bare(node.this)):
        value = within.constant(bare(node.this))
        if value is None:
            return UNKNOWN
        if isinstance(node, exp.ILike):
            raise wrong(node, "ILIKE of constants depends on a collation", hint="Write the condition without it: true.")
        text = _text(value, node.this)
        return always(value=like(text, _pattern(node, pattern, mark)))
    found = _term(bare(node.this), within)
    if found.column.sql_type is not SqlType.TEXT:
        raise wrong(
            node,
            f'LIKE needs a text column; "{found.column.name}" is not',
            hint=f"Compare {found.column.name} with = or a range: {found.column.name} BETWEEN ... AND ...",
        )
    made = _pattern(node, pattern, mark)
    if isinstance(node, exp.ILike):
        if not found.plain:
            raise not_listed(node, f"{written(node)[:80]} is not allowed in a row condition")
        return any_like(found.column, spellings(parts(made), node))
    if found.like is None:
        raise not_listed(node, f"{written(node)[:80]} is not allowed in a row condition")
    return found.like(made, node)


def _text(value: Constant, node: exp.Expr) -> str:
    text = text_of(value)
    if text is None:
        raise wrong(node, "a LIKE pattern is text", hint="Write it in quotes: x LIKE 'a%'.")
    return text


def _pattern(node: exp.Expr, pattern: Constant, mark: Constant) -> str:
    """The pattern with the backslash as its escape."""
    text, escape = _text(pattern, node.expression), _text(mark, node)
    if "\x00" in text:
        raise wrong(node.expression, "a text constant contains a character that SQL text cannot hold")
    if isinstance(node, exp.StartsWith):
        return f"{escaped(text)}%"
    if len(escape) > 1:
        raise wrong(node, "an escape is one character", hint="Write x LIKE '50/%' ESCAPE '/'.")
    made = text if escape == "\\" else with_escape(text, escape)
    if made is None or unfinished(made):
        raise wrong(
            node.expression,
            "a LIKE pattern ends in an unfinished escape",
            hint="Double the escape where it stands for itself.",
        )
    return made


def _is(node: exp.Expr, within: RowScope) -> Truth:
    wanted = bare(node.expression)
    if isinstance(wanted, exp.Null):
        if within.is_constant(node.this):
            return always(value=within.constant(node.this) is None)
        found = None if isinstance(bare(node.this), exp.Coalesce) else term(node.this, within)
        column = referenced(node.this, within.scope) or (found.column if found is not None else None)
        if column is not None:
            null: Condition = IsNull(column.name)
            return Truth(null, Not(null), Not(null), null)
        truth_ = _truth(node.this, within)
        unknown = all_of((truth_.not_true, truth_.not_false))
        known = any_of((truth_.true, truth_.false))
        return Truth(unknown, known, known, unknown)
    if isinstance(wanted, exp.Boolean):
        inner = _truth(node.this, within)
        if wanted.this:
            return Truth(inner.true, inner.not_true, inner.not_true, inner.true)
        return Truth(inner.false, inner.not_false, inner.not_false, inner.false)
    raise unlisted(node, f"{written(node)[:80]} is not allowed in a row condition")


def _bare_truth(node: exp.Expr, within: RowScope) -> Truth:
    """A boolean column or term, or a boolean constant."""
    if referenced(node, within.scope) is None and within.is_constant(node):
        value = within.constant(node)
        if isinstance(value, Untyped):
            value = constant.truth(value.text, node)
        if value is not None and not isinstance(value, bool):
            raise wrong(node, "a condition is a boolean", hint="Compare it with a constant, or write true.")
        return UNKNOWN if value is None else always(value=value)
    found = _term(node, within)
    if found.column.sql_type is not SqlType.BOOLEAN:
        raise wrong(
            node,
            f'column "{found.column.name}" is not a boolean',
            hint=f"Compare it with a constant, or ask {found.column.name} IS NOT NULL.",
        )
    held: Constant = True
    return found.compare("=", held, node)


def not_listed(node: exp.Expr, message: str) -> KeyholeError:
    """KH205 for a function of a row, with what to write in its place where there is something."""
    return unlisted(node, message, hint=_instead(node))


def _instead(node: exp.Expr) -> str | None:
    match bare(node):
        case exp.TimeToStr(this=inner):
            x = written(inner)
            return f"Write the range: {x} >= '2011-06-01' AND {x} < '2011-07-01'."
        case exp.Upper(this=inner) | exp.Trim(this=inner):
            x = written(inner)
            return f"Name the spellings: {x} IN ('kidney', 'Kidney')."
        case exp.RegexpLike(this=inner):
            x = written(inner)
            return f"Write {x} IN ('flu', 'cold') or {x} LIKE 'fl%'."
        case exp.Div(this=exp.Column() as inner):
            return f"Multiply the constant instead: {written(inner)} > 1000."
        case exp.Cast(this=inner):
            return f"Compare {written(inner)} itself."
        case _:
            return None


def constant_truth(node: exp.Expr, given: Given) -> bool | None:
    """The value of a condition without columns; None if it is unknown or no constant. Raises KH212, KH109."""
    match bare(node):
        case exp.Not() as inner:
            value = constant_truth(inner.this, given)
            return None if value is None else not value
        case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() as inner:
            try:
                left, right = constant.fold(inner.this, given), constant.fold(inner.expression, given)
            except NotConstant:
                return None
            return _between_constants(left, OPERATORS[type(inner)], right, inner)
        case inner:
            try:
                value_ = constant.fold(inner, given)
            except NotConstant:
                return None
            return value_ if isinstance(value_, bool) else None
