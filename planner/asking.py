"""From a question's text to a `Question`: keys restricted in public, the rest resolved, every threshold an integer."""

from collections.abc import Iterator, Mapping
from datetime import date

from sqlglot import exp

from mechanisms.formula import cuts
from planner.aggregate import GroupScope, contains_aggregate
from planner.atoms import Atoms, atoms
from planner.catalog import Catalog, Column, Value
from planner.condition import And, Condition, all_of, columns, evaluate, fixed_columns
from planner.constant import Given, uses_clock
from planner.embedded import Embedded
from planner.errors import KeyholeError
from planner.having import Every, Having, having
from planner.keys import KeySpace
from planner.question import Accuracy, Question
from planner.reference import Scope
from planner.row_condition import row_condition
from planner.syntax import bare, parse, position


def ask(
    embedded: Embedded,
    catalog: Catalog,
    *,
    accuracy: Accuracy,
    parameters: Mapping[int, Value | None],
    today: date,
) -> Question:
    """The question, resolved against the policy.

    `parameters` are the values of `$1`, `$2`, ... that the question uses; `today` is what current_date means. Raises
    KH1xx, KH2xx, KH304, with positions in the statement that holds the question.
    """
    try:
        return _ask(embedded, catalog, accuracy, Given(parameters=parameters, today=today))
    except RecursionError:
        raise KeyholeError("KH100", "the question is nested too deeply") from None
    except KeyholeError as error:
        if embedded.stored is not None:
            raise KeyholeError(
                error.code,
                error.message,
                detail=error.detail or f'The stored question "{embedded.stored}" is refused.',
                hint=error.hint,
            ) from None
        raise error.moved(offset=embedded.offset) from None


def _ask(embedded: Embedded, catalog: Catalog, accuracy: Accuracy, given: Given) -> Question:
    select = parse(embedded.text)
    assert isinstance(select, exp.Select)
    scope = Scope(table=embedded.table, alias=embedded.alias)
    keys = embedded.keys
    conditions = [row_condition(part, scope, given) for part in _conjuncts(select.args.get("where"))]
    within = GroupScope(scope=scope, keys=keys, given=given, fixed=fixed_columns(all_of(conditions)))
    formulas: list[Having] = []
    for part in _conjuncts(select.args["having"]):
        if part.find(exp.Column) is None or contains_aggregate(part):
            formulas.append(having(part, within))
        else:
            conditions.append(_on_keys(part, scope, keys, given))
    made = atoms(_joined(formulas), table=embedded.table, accuracy=accuracy)
    space, where = _restricted(keys, conditions)
    if space.size > catalog.max_keys:
        raise KeyholeError(
            "KH210",
            f"the question has {space.size:,} groups; the most is {catalog.max_keys:,}",
            hint=f"Restrict the keys in WHERE, for example {keys[0].name} = ..., or group by fewer columns.",
            position=position(select.args["group"]),
        )
    warnings = made.warnings + tuple(_warnings(made, space, clock=uses_clock(select), given=given))
    return Question(
        table=embedded.table,
        keys=space,
        where=where,
        functionals=made.functionals,
        atoms=made.atoms,
        formula=made.formula,
        accuracy=accuracy,
        warnings=warnings,
    )


def _conjuncts(clause: exp.Expr | None) -> Iterator[exp.Expr]:
    if clause is None:
        return
    waiting = [clause.this]
    while waiting:
        node = waiting.pop()
        inner = bare(node)
        if isinstance(inner, exp.And) and not inner.args.get("negate"):
            waiting.extend((inner.expression, inner.this))
        else:
            yield inner


def _joined(formulas: list[Having]) -> Having:
    if len(formulas) == 1:
        return formulas[0]
    parts: list[Having] = []
    for formula in formulas:
        parts.extend(formula.children if isinstance(formula, Every) else (formula,))
    return Every(tuple(parts))


def _on_keys(node: exp.Expr, scope: Scope, keys: tuple[Column, ...], given: Given) -> Condition:
    """A conjunct of HAVING that reads one key and no aggregate, as if it stood in WHERE."""
    condition = row_condition(node, scope, given)
    names = columns(condition)
    if len(names) > 1 or not names <= {key.name for key in keys}:
        raise KeyholeError(
            "KH207",
            "a condition in HAVING reads an aggregate, or one key alone",
            hint="Move conditions on rows to WHERE.",
            position=position(node),
        )
    return condition


def _restricted(keys: tuple[Column, ...], conditions: list[Condition]) -> tuple[KeySpace, Condition]:
    """The key space that the conditions on single keys leave, and the conjunction of the other conditions."""
    values = {key.name: key.domain or () for key in keys}
    kept: list[Condition] = []
    everything = all_of(conditions)
    for condition in everything.conditions if isinstance(everything, And) else (everything,):
        names = columns(condition)
        if len(names) == 1 and names <= values.keys():
            (name,) = names
            values[name] = tuple(value for value in values[name] if evaluate(condition, {name: value}) is True)
        else:
            kept.append(condition)
    return KeySpace(columns=keys, values=tuple(values.values())), all_of(kept)


def _warnings(made: Atoms, space: KeySpace, *, clock: bool, given: Given) -> Iterator[str]:
    if clock:
        yield f"current_date and now() stand for {given.today.isoformat()} 00:00"
    if space.size == 0:
        yield "WHERE leaves no groups"
    if not any(True for _ in cuts(made.formula)):
        yield "the formula is constant: the answer does not depend on the data"
