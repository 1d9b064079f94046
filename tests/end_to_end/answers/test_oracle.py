"""HAVING means what PostgreSQL says over the key domain and the bounded rows: random questions, both sources."""

import random
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import pytest

from benchmarks.oracle.calendars import draw_calendar, judge_calendar
from benchmarks.oracle.group_spreads import draw_group_spread
from benchmarks.oracle.joined_comparisons import draw_joined_comparison, judge_joined_comparison
from benchmarks.oracle.judging import Tally, judge
from benchmarks.oracle.outer_totals import draw_outer_total, judge_outer_total
from benchmarks.oracle.ranked_comparisons import draw_ranked_comparison, judge_ranked_comparison
from benchmarks.oracle.rankings import draw_ranking, judge_ranking
from benchmarks.oracle.row_quantiles import draw_row_quantile, judge_row_quantile
from benchmarks.oracle.row_spreads import draw_row_spread, judge_row_spread
from benchmarks.oracle.scorecards import draw_scorecard, judge_scorecard
from benchmarks.oracle.self_joins import draw_self_join, judge_self_join
from benchmarks.oracle.statements import draw_statement
from benchmarks.oracle.totals_of_other_rows import draw_other_rows, judge_other_rows
from benchmarks.oracle.window_scorecards import draw_window_scorecard, judge_window_scorecard
from benchmarks.oracle.windows import judge_window, window_statement
from benchmarks.oracle.worlds import TABLES, Engines, draw_rows, open_engines
from tests.effort import rounds

WORLDS = rounds(8, quick=1)
STATEMENTS = rounds(120, quick=30)
RANKINGS = rounds(120, quick=15)


class Spelled(Protocol):
    """A random statement as an oracle draws it."""

    @property
    def sql(self) -> str:
        """Return the statement's text."""


Drawn = TypeVar("Drawn", bound=Spelled)


@pytest.fixture(scope="module")
def judges(postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engines]:
    with open_engines(postgres_url, tmp_path_factory.mktemp("oracle")) as opened:
        yield opened


def test_integers_say_what_postgresql_says(judges: Engines) -> None:
    """960 random statements on eight tables, a sixteenth at quick, for row units, clipped totals and capped rows.

    Without noise or tolerance, so a false alarm is impossible. `python -m benchmarks.oracle` runs tens of thousands.
    """
    tally = Tally()
    drawn = random.Random(20260103)
    used = set()
    for _ in range(WORLDS):
        judges.load(draw_rows(drawn))
        for _ in range(STATEMENTS):
            asked = draw_statement(drawn)
            before = tally.judged
            assert judge(asked, judges, tally) is None, asked.sql
            if tally.judged > before:
                used.add(asked.table.name)
    assert tally.judged >= 37 * STATEMENTS // 120 * WORLDS, tally
    assert tally.joined >= 2 * STATEMENTS // 120 * WORLDS, tally
    assert tally.meaningless <= 20, tally
    assert used == {table.name for table in TABLES}


def test_every_predicate_of_a_scorecard_is_true_where_postgresql_says_so(judges: Engines) -> None:
    """640 random scorecards, eight at quick, with the text around predicates: by group, with rows and without, NULL
    being false. Without noise or tolerance, so a false alarm is impossible. `python -m benchmarks.oracle
    --scorecards` runs thousands."""
    tally = Tally()
    drawn = random.Random(20261123)
    cards = rounds(80, quick=8)
    for _ in range(WORLDS):
        judges.load(draw_rows(drawn))
        for _ in range(cards):
            card = draw_scorecard(drawn)
            assert judge_scorecard(card, judges, tally) is None, card.sql
    assert 2 * tally.judged >= cards * WORLDS, tally
    assert tally.meaningless <= 20, tally


def test_any_two_groups_of_a_ranking_stand_as_postgresql_has_them(judges: Engines) -> None:
    """960 random rankings, fifteen at quick: by what is ranked by, with rows and without, NULL being 0. Without
    noise, so a false alarm is impossible."""
    tally = Tally()
    drawn = random.Random(20261124)
    for _ in range(WORLDS):
        judges.load(draw_rows(drawn))
        for _ in range(RANKINGS):
            asked = draw_ranking(drawn)
            assert judge_ranking(asked, judges, tally) is None, asked.sql
    assert tally.judged >= 20 * RANKINGS // 120 * WORLDS, tally
    assert tally.meaningless <= 20, tally


def test_readings_of_cells_say_what_postgresql_says(judges: Engines) -> None:
    """904 random comparisons with other groups, 45 at quick: totals, means, neighbours, frames and shares.

    They are spelled in one query and in two, with a WINDOW clause and with keys in HAVING. Without noise or tolerance,
    so a false alarm is impossible.
    """
    statements = rounds(113, quick=45)
    tally = judge_drawn(judges, window_statement, judge_window, statements=statements, seed=20261130)
    assert tally.judged >= 0.8 * WORLDS * statements, tally


def test_predicates_about_other_groups_are_null_where_postgresql_says_so(judges: Engines) -> None:
    """400 random select lists over windows of groups, ten at quick, with the text around their predicates.

    NULL is not false, and nothing is NULL but where a neighbour is missing. Without noise or tolerance, so a false
    alarm is impossible.
    """
    cards, tally, drawn = rounds(50, quick=10), Tally(), random.Random(20261203)
    for _ in range(WORLDS):
        judges.load(draw_rows(drawn))
        for _ in range(cards):
            card = draw_window_scorecard(drawn)
            assert judge_window_scorecard(card, judges, tally) is None, card.sql
    assert tally.judged >= 0.7 * WORLDS * cards, tally
    assert not tally.meaningless, tally


def test_joins_of_groups_with_other_groups_say_what_postgresql_says(judges: Engines) -> None:
    """800 random joins of a grouped query with itself, forty at quick: PostgreSQL reads the text as it stands.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(100, quick=40)
    tally = judge_drawn(judges, draw_self_join, judge_self_join, statements=statements, seed=20261201)
    assert tally.judged >= 0.75 * WORLDS * statements, tally


def test_calendars_say_what_postgresql_says(judges: Engines) -> None:
    """480 random questions with a calendar joined from the left, thirty at quick: PostgreSQL reads the text as it
    stands.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(60, quick=30)
    tally = judge_drawn(judges, draw_calendar, judge_calendar, statements=statements, seed=20261204)
    assert tally.judged >= 0.85 * WORLDS * statements, tally


def test_totals_that_stand_around_groups_say_what_postgresql_says(judges: Engines) -> None:
    """800 random comparisons with totals and means in scalar subqueries, WITH queries and joins of one row, forty at
    quick: PostgreSQL reads the text as it stands.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(100, quick=40)
    tally = judge_drawn(judges, draw_outer_total, judge_outer_total, statements=statements, seed=20261202)
    assert tally.judged >= 0.75 * WORLDS * statements, tally


def test_spreads_of_groups_say_what_postgresql_says(judges: Engines) -> None:
    """800 random standard scores, and means plus standard deviations, of groups, forty at quick.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(100, quick=40)
    tally = judge_drawn(judges, draw_group_spread, judge_window, statements=statements, seed=20261203)
    assert tally.judged >= 0.6 * WORLDS * statements, tally


def test_deviations_of_rows_say_what_postgresql_says(judges: Engines) -> None:
    """480 random comparisons of means with the mean and the standard deviation of all rows, forty at quick.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(60, quick=40)
    tally = judge_drawn(judges, draw_row_spread, judge_row_spread, statements=statements, seed=20261204)
    assert tally.judged >= 0.75 * WORLDS * statements, tally


def test_quantiles_of_rows_lie_where_postgresql_has_them(judges: Engines) -> None:
    """480 random comparisons of means with a quantile of all rows, forty at quick.

    Groups between both ends of the quantile's bin may be decided either way. Without noise or tolerance, so a false
    alarm is impossible.
    """
    statements = rounds(60, quick=40)
    tally = judge_drawn(judges, draw_row_quantile, judge_row_quantile, statements=statements, seed=20261206)
    assert tally.judged >= 0.75 * WORLDS * statements, tally


def test_totals_of_other_rows_than_the_question_say_what_postgresql_says(judges: Engines) -> None:
    """480 random comparisons with totals and means whose WHERE is another than the question's, thirty at quick.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(60, quick=30)
    tally = judge_drawn(judges, draw_other_rows, judge_other_rows, statements=statements, seed=20261203)
    assert tally.judged >= 0.75 * WORLDS * statements, tally


def test_rankings_beside_comparisons_stand_as_in_postgresql(judges: Engines) -> None:
    """480 random rankings of the groups that a comparison with others leaves, and by shares, thirty at quick.

    Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(60, quick=30)
    tally = judge_drawn(judges, draw_ranked_comparison, judge_ranked_comparison, statements=statements, seed=20261204)
    assert tally.judged >= 0.8 * WORLDS * statements, tally


def test_set_operations_of_comparisons_say_what_postgresql_says(judges: Engines) -> None:
    """480 random set operations of questions that compare groups with others, thirty at quick.

    Some are one question, others two. Without noise or tolerance, so a false alarm is impossible.
    """
    statements = rounds(60, quick=30)
    tally = judge_drawn(judges, draw_joined_comparison, judge_joined_comparison, statements=statements, seed=20261205)
    assert tally.judged >= 0.8 * WORLDS * statements, tally
    assert 0.2 * tally.judged <= tally.joined <= 0.8 * tally.judged, tally


def judge_drawn(
    judges: Engines,
    draw: Callable[[random.Random], Drawn],
    judge_one: Callable[[Drawn, Engines, Tally], object | None],
    *,
    statements: int,
    seed: int,
) -> Tally:
    """Judge random statements in every world, none of which may disagree or mean nothing to PostgreSQL."""
    tally, drawn = Tally(), random.Random(seed)
    for _ in range(WORLDS):
        judges.load(draw_rows(drawn))
        for _ in range(statements):
            asked = draw(drawn)
            assert judge_one(asked, judges, tally) is None, asked.sql
    assert not tally.meaningless, tally
    return tally


def test_the_oracle_can_fail(judges: Engines) -> None:
    """Where the judge sees other rows than the sources, it says so."""
    drawn = random.Random(5)
    judges.load(draw_rows(random.Random(3)))
    kept = dict(judges.relations)
    found = draw_rows(random.Random(4))
    judges.load(found)
    judges.relations["duckdb"] = kept["duckdb"]
    disagreed = (judge(draw_statement(drawn), judges, Tally()) for _ in range(150))
    assert any(one is not None and one.source.startswith("duckdb") for one in disagreed)
