"""An asker with fixed keys: statements are read and rewritten by the real planner, nothing is decided or charged."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.parser.lexer import split_statements
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import classify, find_prepared_question
from planner.statements.settings import ALL_SETTINGS, read_accuracy
from planner.values.constant import ParameterCast, ParameterValue
from planner.values.parameter_casts import find_parameter_casts
from proxy.pipeline.answering import make_statement_part
from proxy.pipeline.messages import PreparedRequest, ReleasedArrays, Request, StatementPart
from tests.effort import PATIENCE_S
from tests.worlds.countries import endpoint_catalog

COUNTRIES = ("Côte d'Ivoire", "France", 'G"\\{},', "Spain")
LINES = ("Question over 4 groups", " A or B")


@dataclass
class FixedAsker:
    """Every question's every key column is `keys`, every virtual relation is empty.

    `asked` are the planned statements' settings and parameters, `released` counts statements with a released question.
    A statement with the comment `/* crash */` hits a bug. With a `gate`, a release waits for it; `begun` counts
    the releases that have come so far.
    """

    catalog: Catalog = field(default_factory=endpoint_catalog)
    keys: tuple[str, ...] = COUNTRIES
    asked: list[tuple[Mapping[str, str | None], Mapping[int, ParameterValue | None]]] = field(default_factory=list)
    casts: list[Mapping[ParameterCast, ParameterValue | None]] = field(default_factory=list)
    released: int = 0
    gate: threading.Event | None = None
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    @property
    def settings(self) -> Mapping[str, str]:
        return {setting.name: setting.default(self.catalog.defaults) for setting in ALL_SETTINGS}

    def read_statements(self, sql: str) -> tuple[StatementPart, ...]:
        parts = []
        for part in split_statements(sql):
            try:
                statement = classify(part.text, self.catalog)
            except KeyholeError as error:
                raise error.shift_position(offset=part.offset) from None
            parts.append(make_statement_part(part.text, part.offset, statement))
        return tuple(parts)

    def find_question(self, sql: str, *, in_sql: bool) -> str | None:
        return find_prepared_question(sql, self.catalog, in_sql=in_sql)

    def find_parameter_casts(self, statement: str) -> tuple[ParameterCast, ...]:
        match classify(statement, self.catalog):
            case Asking() as asking:
                questions = [one for one in asking.embedded if isinstance(one, EmbeddedQuestion)]
                return find_parameter_casts(tree for one in questions for tree in one.all_trees)
            case _:
                return ()

    def prepare(self, request: Request) -> PreparedRequest:
        assert isinstance(request.is_utc, bool)
        read_accuracy(request.settings, self.catalog.defaults)
        if "/* crash */" in request.statement:
            raise ZeroDivisionError("a bug")
        self.asked.append((request.settings, request.parameters))
        self.casts.append(request.casts)
        first = len(request.parameters) + 1
        match classify(request.statement, self.catalog):
            case Asking() as asking:
                outer = write_outer_sql(asking, first_parameter=first)
                released = tuple(
                    self.keys if isinstance(asking.embedded[array.embedded], EmbeddedQuestion) else ()
                    for array in outer.arrays
                )
                return PreparedRequest(outer.sql, arrays=len(released), tag=None, plan=released)
            case _:
                sql = f'SELECT u.line AS "QUERY PLAN" FROM unnest(${first}::text[]) AS u(line)'
                return PreparedRequest(sql, arrays=1, tag="EXPLAIN", plan=(LINES,))

    def release(self, prepared: PreparedRequest, *, withdrawn: threading.Event) -> ReleasedArrays:
        self.begun.release()
        if self.gate is not None:
            assert self.gate.wait(PATIENCE_S)
        assert isinstance(prepared.plan, tuple)
        if prepared.tag is not None or self.keys not in prepared.plan:
            return ReleasedArrays(arrays=prepared.plan, notices=())
        self.released += 1
        return ReleasedArrays(arrays=prepared.plan, notices=("at most 1.9 epsilon",))
