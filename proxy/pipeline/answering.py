"""The pipeline as sessions use it. It takes whole statements, and returns SQL and arrays of keys for the shadow."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from threading import Event
from typing import TypeVar

from planner.catalog.catalog import NUMBERS
from planner.errors import KeyholeError
from planner.explain.balances import QuestionBalance
from planner.explain.brief_text import explain_briefly
from planner.explain.document import explain_json
from planner.explain.guarantee import write_domain_sentence, write_guarantee
from planner.explain.numbers_told import write_number_notices, write_numbers_json
from planner.explain.render import explain_text
from planner.explain.wrong_groups import count_wrong_groups
from planner.extract.outer_query import write_outer_sql
from planner.parser.lexer import split_statements
from planner.plan.expected_time import expect_time
from planner.question.plan import Plan
from planner.question.question import BANDED
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation, list_leaves
from planner.statements import stored_parameters
from planner.statements.classify import (
    Asking,
    CopyStatement,
    ExecuteStatement,
    ExplainStatement,
    KeyholeSetting,
    PassThrough,
    PrepareStatement,
    Statement,
    classify,
    find_prepared_question,
)
from planner.statements.key_parameters import UnboundKeys, classify_bound, find_key_parameters
from planner.statements.kinds import ExplainFormat
from planner.statements.listening import read_channel
from planner.statements.settings import ALL_SETTINGS
from planner.statements.settings import read_numbers as choose_numbers
from planner.values.constant import ParameterCast
from planner.values.parameter_casts import find_parameter_casts
from proxy.concurrency.fair_queue import read_very_long_alone
from proxy.open_policy.service import Service
from proxy.pipeline import approval
from proxy.pipeline import stages as pipeline
from proxy.pipeline.advice import affordable
from proxy.pipeline.claim import make_current_claim
from proxy.pipeline.messages import Asked, PreparedRequest, ReleasedArrays, Request, StatementPart
from proxy.pipeline.text_cache import SHORT_CHARACTERS, cache_by_text
from proxy.pipeline.together import check_joint_cost, compute_joint_cost
from proxy.pipeline.virtual_rows import MonitorReader, RelationRows, list_virtual_rows

T = TypeVar("T")
CACHED_STATEMENTS = 128
"""Of short statements, which one text asks for twice and clients repeat; of long ones the last few."""
CACHED_TEXTS = 512  # short ones: what drivers and tools send again and again, in at most a few megabytes
_EXPLAINED = 'SELECT u.line::{type} AS "QUERY PLAN" FROM unnest(${number}::text[]) AS u(line)'


@dataclass(frozen=True, slots=True)
class PlannedStatement:
    """A statement whose questions are planned, with the analyst and the settings.

    `columns` has an entry for each array of the answer: the index of its question or relation in `embedded`, and the
    index of its column.
    """

    embedded: tuple[tuple[Asked, Plan] | EmbeddedRelation, ...]
    columns: tuple[tuple[int, int], ...]
    analyst: str
    settings: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ExplainedStatement:
    """An EXPLAIN statement with its answer. The answer was made during planning."""

    lines: tuple[str, ...]


class StatementAnswerer:
    """The implementation of `Asker` over an open service. `monitors` reads monitors. All methods are thread-safe.

    After a reload, this service refuses every question with KH411.
    """

    def __init__(self, service: Service, monitors: MonitorReader) -> None:
        self._service = service
        self._monitors = monitors
        # pure, and asked for twice: when a text is read, and when its statement is prepared
        self._classified = {
            numbers: cache_by_text(CACHED_STATEMENTS)(
                partial(classify, catalog=service.catalog.replace_numbers(numbers))
            )
            for numbers in NUMBERS
        }
        self._held = {
            in_sql: cache_by_text(CACHED_STATEMENTS)(partial(self._find_held, in_sql=in_sql))
            for in_sql in (False, True)
        }
        self._read = lru_cache(CACHED_TEXTS)(self._read_parts)

    @property
    def settings(self) -> Mapping[str, str]:
        """The `keyhole.*` settings, each with its value at the start of a session."""
        catalog = self._service.catalog
        own = {setting.name: setting.find_initial(catalog.defaults) for setting in ALL_SETTINGS}
        return {**own, **stored_parameters.list_settings(catalog)}

    def read_statements(self, sql: str) -> tuple[StatementPart, ...]:
        """Split a text into statements, and mark those that Keyhole answers. Results for short texts are cached."""
        return self._read(sql) if len(sql) <= SHORT_CHARACTERS else self._read_parts(sql)

    def _read_parts(self, sql: str) -> tuple[StatementPart, ...]:
        return tuple(
            make_statement_part(part.text, part.offset, self._classify_at(part.text, part.offset))
            for part in split_statements(sql)
        )

    def find_question(self, sql: str, *, in_sql: bool) -> str | None:
        """Return the question in a prepared statement's text. Return None if the shadow answers the statement."""
        return self._held[in_sql](sql)

    def _find_held(self, sql: str, *, in_sql: bool) -> str | None:
        return self._try_numbers(
            lambda numbers: find_prepared_question(sql, self._service.catalog.replace_numbers(numbers), in_sql=in_sql)
        )

    def _classify(self, text: str) -> Statement:
        """Return the kind of a statement, parsed with the first value of `keyhole.numbers` that accepts it.

        The session's own value of that setting is known only when the statement runs.
        """
        return self._try_numbers(lambda numbers: self._classified[numbers](text))

    def _try_numbers(self, read: Callable[[str], T]) -> T:
        usual = self._service.catalog.defaults.numbers
        try:
            return read(usual)
        except KeyholeError as error:
            others = [numbers for numbers in NUMBERS if numbers not in (usual, "refuse")]
            if error.code == "KH101":
                for numbers in others:
                    with suppress(KeyholeError):
                        return read(numbers)
            raise

    def _classify_at(self, text: str, offset: int) -> Statement | UnboundKeys:
        try:
            return self._classify(text)
        except KeyholeError as error:
            if error.code == "KH202" and find_key_parameters(text):
                return UnboundKeys()
            raise error.shift_position(offset=offset) from None

    def find_parameter_casts(self, statement: str) -> tuple[ParameterCast, ...]:
        """Return the casts of parameters in a statement's questions, such as `$1::date`.

        Return none if the statement will be refused.
        """
        try:
            found = self._classify(statement)
        except KeyholeError:
            return ()
        inside = found.embedded if isinstance(found, Asking) else ()
        inside = found.questions if isinstance(found, ExplainStatement) else inside
        return find_parameter_casts(
            tree
            for part in inside
            if isinstance(part, EmbeddedQuestion) and part.stored_question is None
            for question in list_leaves(part)
            for tree in question.all_trees
        )

    def prepare(self, request: Request) -> PreparedRequest:
        """Plan one statement, and charge nothing."""
        with self._service.hold_open(), read_very_long_alone(request.statement, analyst=request.analyst):
            try:
                return self._prepare_outer(request)
            except KeyholeError as error:
                # with values in the place of parameters positions are those of another text
                raise error.drop_position() if self._is_unbound(request.statement) else error from None

    def _prepare_outer(self, request: Request) -> PreparedRequest:
        first = len(request.parameters) + 1

        def make_asked(question: EmbeddedQuestion) -> Asked:
            stored = question.stored_question is not None
            return Asked(
                question=question,
                settings=request.settings,
                parameters=stored_parameters.read_parameters(question, request.settings)
                if stored
                else request.parameters,
                analyst=self._service.find_analyst(request.analyst),
                today=datetime.now(UTC).date(),
                is_utc=request.is_utc,
                skipped_midnights=request.skipped_midnights,
                casts={} if stored else request.casts,
            )

        def check_readable(embedded: tuple[EmbeddedQuestion | EmbeddedRelation, ...]) -> None:
            for part in embedded:
                if isinstance(part, EmbeddedRelation) and part.monitor_position is not None:
                    self._monitors.check_readable(part.name, analyst=request.analyst, position=part.monitor_position)

        match self._classify_bound(request):
            case ExplainStatement(questions=questions, format=form):
                check_readable(questions)
                if isinstance(questions[0], EmbeddedRelation):
                    lines = self._monitors.explain(questions[0].name, analyst=request.analyst, form=form)
                else:
                    asked = [make_asked(one) for one in questions if isinstance(one, EmbeddedQuestion)]
                    lines = explain_questions(self._service, asked, form=form)
                sql = _EXPLAINED.format(type="json" if form == "json" else "text", number=first)
                return PreparedRequest(sql=sql, arrays=1, tag="EXPLAIN", plan=ExplainedStatement(lines))
            case Asking() as asking:
                check_readable(asking.embedded)
                outer = write_outer_sql(asking, first_parameter=first)
                planned = tuple(
                    part if isinstance(part, EmbeddedRelation) else self._plan(make_asked(part))
                    for part in (() if asking.is_constantly_empty else asking.embedded)
                )
                columns = tuple((array.embedded, array.column) for array in outer.arrays)
                plan = PlannedStatement(planned, columns, request.analyst, request.settings)
                return PreparedRequest(
                    sql=outer.sql, arrays=len(columns), tag=None, plan=plan, rehearsal=asking.rehearsal
                )
            case PassThrough() | KeyholeSetting() | CopyStatement() | PrepareStatement() | ExecuteStatement():
                raise TypeError("the shadow answers this statement")

    def _is_unbound(self, statement: str) -> bool:
        try:
            return isinstance(self._classify_at(statement, 0), UnboundKeys)
        except KeyholeError:
            return False

    def _classify_bound(self, request: Request) -> Statement:
        """Return the kind of a statement, read with its settings and with its parameters' values in its keys."""
        numbers = choose_numbers(request.settings, self._service.catalog.defaults)
        try:
            return self._classified[numbers](request.statement)
        except KeyholeError as error:
            catalog = self._service.catalog.replace_numbers(numbers)
            _, bound = classify_bound(request.statement, catalog, request.parameters, refusal=error)
            return bound

    def _plan(self, asked: Asked) -> tuple[Asked, Plan]:
        return asked, pipeline.plan_asked_question(self._service, asked)

    def release(self, prepared: PreparedRequest, *, withdrawn: Event) -> ReleasedArrays:
        """Answer every question in a planned statement: reserve, run, decide, commit. Return the keys as arrays."""
        match prepared.plan:
            case ExplainedStatement(lines=lines):
                return ReleasedArrays(arrays=(lines,), notices=())
            case PlannedStatement() as answerable:
                with self._service.hold_open():
                    return self._release(answerable, withdrawn)
            case _:
                raise TypeError("prepared by somebody else")

    def _release(self, answerable: PlannedStatement, withdrawn: Event) -> ReleasedArrays:
        if not answerable.embedded:
            return ReleasedArrays(arrays=((),) * len(answerable.columns), notices=())
        check_joint_cost(
            self._service, [part for part in answerable.embedded if not isinstance(part, EmbeddedRelation)]
        )
        relations: list[tuple[tuple[str | None, ...], ...]] = []
        notices: list[str] = []
        wide: list[str] = []  # what may return nearly all groups is told before everything else
        for part in answerable.embedded:
            if isinstance(part, EmbeddedRelation):
                found = self._find_rows(part, answerable)
                relations.append(tuple(tuple(row[i] for row in found.rows) for i in range(len(part.columns))))
                notices.extend(found.notices)
                continue
            asked, plan = part
            answer = pipeline.answer(self._service, plan, replace(asked, withdrawn=withdrawn))
            relations.append(answer.keys.arrays)
            if plan.question.lists_domain:
                notices.append(f"listed are {write_domain_sentence(plan)}")
                continue
            notices.extend(write_number_notices(asked.question.numbers))
            notices.append(f"guarantee: {write_guarantee(answer.plan)}")
            if answer.payment is not None:
                notices.append(f"cost: {answer.payment.write_charged()}")
            if answer.is_reused:
                of = "" if answer.payment is None else " of the shared budget"
                notices.append(
                    f"released before (data version: {answer.version}): the same answer, nothing is spent{of}."
                )
            if answer.noise_notice is not None:
                notices.append(answer.noise_notice[:1].lower() + answer.noise_notice[1:])
            if (wrong := count_wrong_groups(answer.plan)) is not None:
                notices.append(f"wrong groups: {wrong.sentence}")
            wide += [one for one in plan.warnings if BANDED in one]
            notices.extend(one for one in plan.warnings if BANDED not in one)
        return ReleasedArrays(
            arrays=tuple(relations[embedded][column] for embedded, column in answerable.columns),
            notices=tuple(
                dict.fromkeys(one.removesuffix(".") for one in (*wide, *notices))
            ),  # as PostgreSQL writes them
        )

    def _find_rows(self, part: EmbeddedRelation, answerable: PlannedStatement) -> RelationRows:
        analyst = answerable.analyst
        if part.monitor_position is not None:
            return self._monitors.read_alerts(part.name, analyst=analyst)
        match part.name:
            case "monitors":
                return self._monitors.list_monitors(analyst=analyst)
            case "alerts":
                return self._monitors.list_alerts(analyst=analyst)
            case _:
                return RelationRows(
                    list_virtual_rows(self._service, part.name, analyst=analyst, settings=answerable.settings)
                )


def make_statement_part(text: str, offset: int, statement: Statement | UnboundKeys) -> StatementPart:
    """Return one classified statement of a text as the part that a session handles."""
    return StatementPart(
        text=text,
        offset=offset,
        is_intercepted=isinstance(statement, Asking | ExplainStatement | CopyStatement | UnboundKeys),
        prepared_name=statement.name if isinstance(statement, PrepareStatement) else None,
        execute_statement=statement if isinstance(statement, ExecuteStatement) else None,
        statements_before=statement.first_statements if isinstance(statement, Asking) else (),
        copied_query=statement.copied_query if isinstance(statement, CopyStatement) else None,
        listened_channel=read_channel(text) if statement == PassThrough("listen") else None,
        rewritten_text=statement.shadow_text if isinstance(statement, Asking | ExplainStatement) else "",
    )


def explain_questions(service: Service, questions: Sequence[Asked], *, form: ExplainFormat) -> tuple[str, ...]:
    """Return EXPLAIN's lines for each question of a statement, and for their total cost.

    Each question is explained as if it were asked first. `form` is "text" for about ten lines a question, "verbose" for
    all details, or "json".
    """
    planned = [(one, pipeline.plan_asked_question(service, one)) for one in questions]
    together = compute_joint_cost(service, planned) if len(planned) > 1 else None
    if form == "json":
        documents = [{"Keyhole": _describe_with_numbers(service, asked, plan)} for asked, plan in planned]
        if together is not None:
            for number, document in enumerate(documents, start=1):
                document["Keyhole"]["together"] = together.make_document(number)
        return (json.dumps(documents, indent=2, ensure_ascii=False),)
    if together is None:
        return _explain_plan(service, *planned[0], form=form)
    lines: list[str] = []
    for number, (asked, plan) in enumerate(planned, start=1):
        said = {line for line in lines if line.startswith("  Warning: ")}
        explained = _explain_plan(service, asked, plan, form=form)
        lines += [f"Question {number} of {len(planned)}", *(line for line in explained if line not in said)]
    return (*lines, together.sentence)


def explain_question(service: Service, asked: Asked, *, form: ExplainFormat) -> tuple[str, ...]:
    """Return EXPLAIN's lines for a question and its remaining budget. Nothing is charged, and no data is read."""
    return explain_questions(service, (asked,), form=form)


def _explain_plan(service: Service, asked: Asked, plan: Plan, *, form: ExplainFormat) -> tuple[str, ...]:
    left, rules = _find_remaining_balance(service, plan, asked), asked.question.rules
    explain = explain_text if form == "verbose" else explain_briefly
    return (*explain(plan, left=left, rules=rules), *write_number_notices(asked.question.numbers))


def _describe_with_numbers(service: Service, asked: Asked, plan: Plan) -> dict[str, object]:
    document = describe_plan(service, asked, plan)
    if asked.question.numbers is not None:
        document["numbers"] = write_numbers_json(asked.question.numbers)
    return document


def explain_as_document(service: Service, asked: Asked) -> dict[str, object]:
    """Plan a question, and return the plan and the remaining budget as a JSON document."""
    return describe_plan(service, asked, pipeline.plan_asked_question(service, asked))


def describe_plan(service: Service, asked: Asked, plan: Plan) -> dict[str, object]:
    """Return a planned question and its remaining budget as a JSON document."""
    return explain_json(plan, left=_find_remaining_balance(service, plan, asked), rules=asked.question.rules)


def _find_remaining_balance(service: Service, plan: Plan, asked: Asked) -> QuestionBalance:
    claim = make_current_claim(service, plan, asked)
    left = affordable.find_question_balance(service, claim)
    return replace(
        left,
        question=claim.charge.question,
        waiting=approval.find_needed_approval(service, claim),
        time=expect_time(plan, service.catalog),
    )
