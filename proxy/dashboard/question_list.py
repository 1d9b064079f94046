"""The questions in a file of SQL, each with the settings that earlier statements of the file have made."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from planner.catalog.catalog import Analyst, Catalog
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens, split_statements
from planner.scope.embedded import EmbeddedQuestion
from planner.statements import stored_parameters
from planner.statements.classify import (
    Asking,
    CopyStatement,
    ExplainStatement,
    KeyholeSetting,
    PassThrough,
    PrepareStatement,
    Statement,
    classify,
)
from planner.statements.settings import read_catalog
from proxy.pipeline.messages import Asked


@dataclass(frozen=True, slots=True, eq=False)
class ListedQuestion:
    """One question of a list that is rehearsed or planned as a whole.

    The question's statement begins at character `offset` of the text, counted from 0, in line `line`, counted from 1.
    If the statement cannot be parsed, `refusal` is set and `asked_question` is None. `statement` is the number of the
    statement. Questions inside one statement share their settings.
    """

    statement: int
    line: int
    offset: int
    text: str
    asked_question: Asked | None
    refusal: KeyholeError | None = None


def read_list(
    sql: str, catalog: Catalog, *, analyst: Analyst, given: Mapping[str, str | None]
) -> tuple[ListedQuestion, ...]:
    """Parse a text of SQL, and return its questions in order, each as a session would ask it.

    `given` are the settings at the start. SET, RESET and DISCARD ALL change the settings. All other statements that a
    session passes to PostgreSQL have no effect here. Raise KH100 for a text that is not SQL.
    """
    session = _SettingsTracker(dict(given))
    found: list[ListedQuestion] = []
    for number, part in enumerate(split_statements(sql)):
        line = sql.count("\n", 0, part.offset) + 1
        try:
            read = read_catalog(catalog, session.settings)
            statement = classify(part.text, read)
            session.apply_statement(part.text, statement)
            asked = [_ask(question, session.settings, analyst) for question in _list_questions(statement, read)]
        except KeyholeError as refusal:
            shifted = refusal.shift_position(offset=part.offset)
            found.append(ListedQuestion(number, line, part.offset, part.text, None, shifted))
            continue
        found += [ListedQuestion(number, line, part.offset, part.text, one) for one in asked]
    return tuple(found)


@dataclass(slots=True)
class _SettingsTracker:
    """The `keyhole.*` settings of a session that runs the text's statements one by one."""

    lasting: dict[str, str | None]
    local: dict[str, str | None] | None = None

    @property
    def settings(self) -> Mapping[str, str | None]:
        return {**self.lasting, **(self.local or {})}

    def apply_statement(self, text: str, statement: Statement) -> None:
        match statement:
            case KeyholeSetting(name=name, value_text=value, is_local=local):
                (self._local() if local else self.lasting)[name] = value
            case PassThrough(kind="transaction"):
                self.local = None
            case PassThrough(kind="reset" | "discard"):
                self._reset("".join(token.value for token in read_tokens(text)[1:]).lower())
            case _:
                pass

    def _reset(self, name: str) -> None:
        for values in (self.lasting, self.local or {}):
            for known in list(values) if name == "all" else [name]:
                values.pop(known, None)

    def _local(self) -> dict[str, str | None]:
        if self.local is None:
            self.local = {}
        return self.local


def _list_questions(statement: Statement, catalog: Catalog) -> Iterator[EmbeddedQuestion]:
    match statement:
        case Asking(embedded=embedded):
            if not statement.is_constantly_empty:
                yield from (part for part in embedded if isinstance(part, EmbeddedQuestion))
        case ExplainStatement(questions=questions):
            yield from (one for one in questions if isinstance(one, EmbeddedQuestion))
        case CopyStatement(copied_query=copied):
            yield from _list_questions(classify(copied.query, catalog), catalog)
        case PrepareStatement(text=text):
            yield from _list_questions(classify(text, catalog), catalog)
        case _:
            pass


def _ask(question: EmbeddedQuestion, settings: Mapping[str, str | None], analyst: Analyst) -> Asked:
    stored = question.stored_question is not None
    return Asked(
        question=question,
        settings=settings,
        parameters=stored_parameters.read_parameters(question, settings) if stored else {},
        analyst=analyst,
        today=datetime.now(UTC).date(),
        is_utc=True,
    )
