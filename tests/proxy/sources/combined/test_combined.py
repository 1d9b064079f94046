"""Values of units, lists, keys, joins and windows together: PostgreSQL's groups, and one unit moves its own alone."""

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, note
from hypothesis import strategies as st

from planner.catalog.catalog import Catalog, Column, ValueGroups
from planner.errors import KeyholeError
from planner.lower.dialects.duckdb import DUCKDB
from planner.lower.dialects.postgres import POSTGRES
from planner.lower.scan import rewrite
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from tests.effort import examples, shares
from tests.planner.asked import asked
from tests.proxy.sources.combined.pieces import MARKET, SHOP, World, draw_statements
from tests.proxy.sources.worlds import Engines

_AT_ONCE = 6  # statements over the same rows, which take longer to load than one to answer
_Answer = Mapping[tuple[Any, ...], tuple[int, ...]]


def _ask(sql: str, catalog: Catalog) -> Question | None:
    """The question of a statement; None where it is refused."""
    try:
        return asked(sql, catalog=catalog, tolerance="0")
    except KeyholeError as error:
        if error.code == "KH900":
            raise
        return None


@pytest.mark.parametrize("world", [MARKET, SHOP], ids=["market", "units of two columns"])
@pytest.mark.parametrize("share", shares(10))
@examples(20, quick=2, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_groups_are_those_of_postgresql_and_one_unit_moves_its_own(
    engines: Engines, world: World, share: int, data: st.DataObject
) -> None:
    """Both engines give what PostgreSQL counts over rows with a unit, where no bound cuts. Without one unit as many
    groups move as it may be in, each by the sensitivity at most, also where bounds cut."""
    rows = data.draw(world.rows)
    drawn = data.draw(st.lists(draw_statements(world), min_size=_AT_ONCE, max_size=_AT_ONCE))
    catalogs = (world.catalog, world.tight)
    questions = [
        (one, catalog is world.catalog, question)
        for one in drawn
        for catalog in catalogs
        if (question := _ask(one.asked, catalog)) is not None
    ]
    worlds: list[list[_Answer]] = []
    with duckdb.connect() as duck:
        for loaded in (rows, world.take_one_away(rows, data)):
            statements = world.load(loaded)
            for sql in statements:
                duck.execute(sql)
            engines.writer.execute("; ".join(statements).encode())
            answers: list[_Answer] = []
            for statement, is_loose, question in questions:
                note(statement.asked)
                width = len(question.keys.columns)
                on_duck, on_postgres = (rewrite(question, dialect=one) for one in (DUCKDB, POSTGRES))
                found: list[Any] = [
                    duck.execute(on_duck.sql).fetchall(),
                    engines.writer.execute(on_postgres.sql.encode()).fetchall(),
                ]
                if on_duck.from_kept_steps is not None and on_postgres.from_kept_steps is not None:
                    found.append(duck.execute(on_duck.from_kept_steps.sql).fetchall())
                    found.append(engines.writer.execute(on_postgres.from_kept_steps.sql.encode()).fetchall())
                first, *others = ({row[:width]: row[width:] for row in one if any(row[width:])} for one in found)
                assert others == [first] * len(others)
                if is_loose:
                    counted: Any = engines.writer.execute(statement.truth.encode()).fetchall()
                    _check_counts(question, first, counted)
                answers.append(first)
            worlds.append(answers)
    for (_, _, question), before, after in zip(questions, *worlds, strict=True):
        _check_moves(question, before, after)


def _check_counts(question: Question, found: _Answer, counted: Sequence[tuple[Any, ...]]) -> None:
    """Insist that the first functional is what PostgreSQL counts, in the question's groups."""
    columns = question.keys.columns
    values = zip(columns, question.keys.values, strict=True)
    groups = [{_show(one, column) for one in given or column.domain or ()} for column, given in values]

    def keep(rows: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], int]:
        kept = (row for row in rows if all(one in known for one, known in zip(row, groups, strict=False)))
        return {row[: len(columns)]: row[len(columns)] for row in kept if row[len(columns)]}

    shown = [(*map(_show, key, columns), *numbers) for key, numbers in found.items()]
    assert keep(shown) == keep(counted)


def _show(value: Any, column: Column) -> Any:
    """The value that a group is shown as: groups of numbers are numbered."""
    return column.derivation.shown_values[value] if isinstance(column.derivation, ValueGroups) else value


def _check_moves(question: Question, before: _Answer, after: _Answer) -> None:
    nothing = (0,) * len(question.functionals)
    moved = [key for key in before.keys() | after.keys() if before.get(key) != after.get(key)]
    assert len(moved) <= count_unit_groups(question)
    for key in moved:
        values = zip(question.functionals, before.get(key, nothing), after.get(key, nothing), strict=True)
        assert all(abs(one - other) <= functional.sensitivity for functional, one, other in values)
