"""The form of a question: its clauses, its keys and its HAVING, and nothing shown but keys."""

from sqlglot import exp

from planner.bind.select_list import check_shown, shows_aggregates
from planner.catalog.model import Column
from planner.errors import KeyholeError
from planner.extract.private_read import QuestionReading
from planner.extract.suggest import each_grouping, set_operation, suggest_question
from planner.parser.tree import position, write_node
from planner.scope.group_by import grouped_expressions, grouping_sets, read_group_by

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
_ALLOWED_ON_TABLE = frozenset(("this", "db", "catalog", "alias"))


def checked_keys(place: QuestionReading) -> tuple[Column, ...]:
    """The keys, once the question's form is right. Raises KH101, KH103-KH107, KH202, KH208."""
    _check_clauses(place)
    _check_operators(place)
    select = place.select
    shown = shows_aggregates(select)
    if isinstance(shown, exp.Window) and not _of_groups(shown):
        raise _over_the_answer(shown, place)
    if shown is not None:
        raise KeyholeError(
            "KH101",
            "Keyhole answers which groups cross a threshold, not how large they are",
            hint=suggest_question(place),
            position=position(shown),
        )
    group, having = select.args.get("group"), select.args.get("having")
    if group is None and having is None:
        raise KeyholeError(
            "KH103",
            f'the private table "{place.scope.table.name}" is used outside a question',
            detail="A private table is read by questions alone: GROUP BY keys HAVING a threshold is crossed.",
            hint=suggest_question(place),
            position=position(place.node),
        )
    keys = _read_keys(place)
    if having is None:
        raise KeyholeError(
            "KH104",
            "the question has no HAVING",
            detail="Without a threshold it would ask which groups exist.",
            hint=suggest_question(place),
            position=position(select if group is None else group),
        )
    try:
        check_shown(select, place.scope, *grouped_expressions(select, place.scope))
    except KeyholeError as error:
        raise KeyholeError(
            error.code,
            error.message,
            detail=error.detail,
            hint=(suggest_question(place) if error.code == "KH101" else None) or error.hint,
            position=error.position,
        ) from None
    return keys


def _several(node: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH107",
        "a question reads one table, without joins or subqueries",
        hint="Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key "
        "HAVING ...) q JOIN public_table ...",
        position=position(node),
    )


def _check_clauses(place: QuestionReading) -> None:
    for key, value in place.select.args.items():
        if value and key == "laterals":
            raise _several(value[0] if isinstance(value, list) else value)
        if value and key != "joins" and key not in _ALLOWED_CLAUSES:
            raise _clause(place, key)
    for key, value in place.node.args.items():
        if value and key == "joins":
            raise _several(place.node)
        if value and key not in _ALLOWED_ON_TABLE:
            raise _clause(place, key)
    alias = place.node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise _clause(place, "column aliases")
    for key, value in place.select.args.items():
        for part in value if isinstance(value, list) else [value]:
            if (
                key not in ("from_", "with_")
                and isinstance(part, exp.Expr)
                and (inner := part.find(exp.Query)) is not None
            ):
                raise _refuse_subquery(place, inner, key)


def _refuse_subquery(place: QuestionReading, inner: exp.Query, key: str) -> KeyholeError:
    """A subquery in a clause of the question: what it asks for, in another form where there is one."""
    if key == "having" and inner.find(exp.Table) is None:
        return KeyholeError(
            "KH208",
            "a threshold is a constant, not a subquery",
            hint="Write the constant without SELECT, as in HAVING count(*) > 8000.",
            position=position(inner),
        )
    refusal = _several(inner)
    if key != "where" or place.before or place.select.args.get("joins"):
        return refusal
    together = set_operation(place.select, place.scope, place.clauses, place.text, place.tokens)
    return (
        refusal
        if together is None
        else KeyholeError(
            "KH107",
            "a question inside the WHERE of a question",
            detail="Both are asked as one: INTERSECT and EXCEPT between questions with the same keys.",
            hint=together,
            position=position(inner),
        )
    )


def _clause(place: QuestionReading, key: str) -> KeyholeError:
    words = {"windows": "WINDOW", "locks": "FOR UPDATE", "sample": "TABLESAMPLE", "only": "ONLY"}
    return KeyholeError(
        "KH106",
        f"{words.get(key, key.strip('_').replace('_', ' ').upper())} is not supported in a question",
        detail="A question is SELECT, FROM, WHERE, GROUP BY, HAVING, and ORDER BY, LIMIT, OFFSET, DISTINCT over it.",
        hint="Leave it out.",
        position=position(place.node),
    )


def _check_operators(place: QuestionReading) -> None:
    """Refuse PostgreSQL's operators with @, of which the parser takes one for a parameter."""
    for token in place.tokens[place.clauses.select : place.clauses.end]:
        if token.kind == "symbol" and "@" in token.value:
            raise KeyholeError(
                "KH106", f"the operator {token.value} is not supported in a question", position=token.start + 1
            )


def _of_groups(window: exp.Window) -> bool:
    """Whether a window reads an aggregate of each group, and not the rows of the answer alone."""
    called = window.this.this if isinstance(window.this, exp.Filter) else window.this
    return any(found is not called for found in window.find_all(exp.AggFunc))


def _over_the_answer(window: exp.Window, place: QuestionReading) -> KeyholeError:
    asked = suggest_question(place)
    spelled = write_node(window)
    whole = asked is not None and not any(column.table for column in window.find_all(exp.Column))
    return KeyholeError(
        "KH101",
        f"{spelled[:80]} is over the answer's rows, and stands in the question itself",
        detail="Around a question, windows and aggregates work on its answer as in PostgreSQL, for nothing.",
        hint=f"SELECT q.*, {spelled} FROM ({(asked or '').rstrip(';')}) AS q;"
        if whole
        else f"Write {spelled[:80]} around the question: SELECT q.*, ... FROM (...) AS q.",
        position=position(window),
    )


def _read_keys(place: QuestionReading) -> tuple[Column, ...]:
    """The keys; several groupings at once are refused with the questions that ask for each."""
    try:
        return read_group_by(place.select, place.scope)
    except KeyholeError as error:
        sets = grouping_sets(place.select, place.scope) if error.code == "KH106" else ()
        if not sets or place.select.args.get("having") is None:
            raise
        raise KeyholeError(
            error.code, error.message, hint=each_grouping(place, sets), position=error.position
        ) from None
