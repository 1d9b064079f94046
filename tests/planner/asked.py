"""Short ways for tests to ask: from SQL text to a `Question` over the catalog made by hand."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any

from sqlglot import exp

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Value
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.lower.dialects.dialect import Dialect
from planner.lower.scan import rewrite
from planner.parser.lexer import read_tokens
from planner.parser.tree import parse
from planner.question.plan import Rewritten
from planner.question.question import Question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.worlds.retail import retail

TODAY = date(2011, 6, 15)


def asking(sql: str, catalog: Catalog | None = None) -> Asking:
    """The statement, which must hold a question."""
    statement = classify(sql, catalog or retail())
    assert isinstance(statement, Asking), statement
    return statement


def select(sql: str) -> exp.Select:
    """The tree of a SELECT."""
    tree = parse(sql, read_tokens(sql)).tree
    assert isinstance(tree, exp.Select)
    return tree


def refusal(sql: str, **settings: str) -> KeyholeError | None:
    """The refusal of a statement or of a question inside it, if it is refused."""
    catalog = retail()
    try:
        statement = classify(sql, catalog)
        for question in statement.questions if isinstance(statement, Asking) else ():
            wanted = read_accuracy({f"keyhole.{name}": value for name, value in settings.items()}, catalog.defaults)
            bind_question(question, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
    except KeyholeError as error:
        return error
    return None


def asked(
    sql: str,
    *,
    parameters: Mapping[int, Value | None] | None = None,
    catalog: Catalog | None = None,
    **settings: str,
) -> Question:
    """The one question of a statement, under settings given without their `keyhole.`"""
    catalog = catalog or retail()
    (question,) = asking(sql, catalog).questions
    wanted = read_accuracy({f"keyhole.{name}": value for name, value in settings.items()}, catalog.defaults)
    return bind_question(question, catalog, accuracy=wanted, parameters=parameters or {}, today=TODAY, is_utc=True)


_ASKED: dict[tuple[object, ...], tuple[Catalog, Question]] = {}
_WRITTEN: dict[tuple[int, str], tuple[Question, Rewritten]] = {}


def asked_once(sql: str, catalog: Catalog, **settings: str) -> Question:
    """The question of a statement, read once for all rows that hypothesis draws: no row decides about it."""
    key = sql, id(catalog), *sorted(settings.items())
    if key not in _ASKED:
        _ASKED[key] = catalog, asked(sql, parameters={}, catalog=catalog, **settings)
    return _ASKED[key][1]


def written_once(question: Question, dialect: Dialect) -> str:
    """The SQL of a question's integers, written once for all rows that hypothesis draws."""
    return rewritten_once(question, dialect).sql


def rewritten_once(question: Question, dialect: Dialect) -> Rewritten:
    """The question in a dialect, written once for all rows that hypothesis draws."""
    key = id(question), dialect.name
    if key not in _WRITTEN:
        _WRITTEN[key] = question, rewrite(question, dialect=dialect)
    return _WRITTEN[key][1]


def all_hold(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """Check every case, then fail with all that failed: what is too much to be planned before tests are chosen."""
    failures: list[Exception] = []
    for case in cases:
        try:
            check(*case)
        except Exception as error:
            error.add_note(repr(case))
            failures.append(error)
    if failures:
        raise ExceptionGroup(f"{check.__name__} does not hold", failures)
