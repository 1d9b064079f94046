"""Values whose range nobody declared: clipped by the thresholds that they are compared with, and told so."""

import re
from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from itertools import product
from random import Random

import pytest

from planner.aggregates.known_ranges import list_unread_ranges
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Column, ExpressionRange, SqlType, Table
from planner.catalog.row_terms import RowTerm, TermKind
from planner.errors import KeyholeError
from planner.explain.guarantee import write_guarantee
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.predicates.computed import number_arithmetic
from planner.predicates.computed.ranges import find_ends
from planner.question.question import Question
from planner.scope.embedded import EmbeddedQuestion
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.in_turn import in_turn
from tests.planner.asked import TODAY
from tests.planner.hints import INSTEAD, REFUSING
from tests.worlds.analysts import analysts

STAYS = "SELECT ward FROM stays GROUP BY ward HAVING "
TRIPS = "SELECT zone FROM trips GROUP BY zone HAVING "
DAYS = "discharged::date - admitted::date"
_TOLD = re.compile(r": values (of .* )?count as ")


def _ask(sql: str, catalog: Catalog, settings: Mapping[str, str]) -> Question:
    statement = classify(sql, catalog)
    assert isinstance(statement, Asking)
    (part,) = statement.questions
    assert isinstance(part, EmbeddedQuestion)
    wanted = read_accuracy(settings, catalog.defaults)
    return bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)


CLIPPED = [
    ("stays", STAYS + f"avg({DAYS}) > 5", "-15 at the least and 25 at the most", "discharged"),
    ("stays", STAYS + f"avg({DAYS}) BETWEEN 3 AND 6", "-18 at the least and 30 at the most", "discharged"),
    ("stays", STAYS + f"avg(30 - ({DAYS})) > 25", "-75 at the least and 125 at the most", "discharged"),
    ("stays", STAYS + f"sum({DAYS}) > 2000", "-200 at the least and 200 at the most", "discharged"),
    ("stays", STAYS + "avg(extract(epoch FROM discharged - admitted) / 3600) > 140", "-420 at the least and", "disch"),
    ("stays", STAYS + "avg(discharged - admitted) > interval '5 days'", "-1296000 at the least and 2160", "disch"),
    ("stays", STAYS + "avg((current_date - born) / 365.25) > 60", "-180 at the least and 300 at the most", "born"),
    ("stays", STAYS + f"avg(greatest({DAYS}, 1)) > 5", "25 at the most", "discharged"),
    ("stays", STAYS + f"sum(cost) / sum({DAYS}) > 500", "0 at the least and 100 at the most", "discharged"),
    ("trips", TRIPS + "avg(fare * rate_code) > 20", "-60 at the least and 100 at the most", "rate_code"),
    ("trips", TRIPS + "avg(rate_code) > 2", "-6 at the least and 10 at the most", "rate_code"),
    ("trips", TRIPS + "avg(tip / nullif(fare, 0)) > 0.15", "0.75 at the most", ""),
]  # fmt: skip


@in_turn(("name", "sql", "ends", "lacking"), CLIPPED)
def test_a_value_without_a_range_is_clipped_by_its_threshold_as_one_may_type_it(
    name: str, sql: str, ends: str, lacking: str
) -> None:
    """What is shown where nothing may be added moves a unit by as much, and says nothing of a clip."""
    catalog = analysts(name)
    asked = _ask(sql, catalog, {})
    (told,) = [one for one in asked.warnings if _TOLD.search(one)]
    assert f"count as {ends}" in told
    assert (f"nothing bounds {lacking}" if lacking else "its divisor may be near 0") in told
    with pytest.raises(KeyholeError) as refused:
        _ask(sql, catalog, REFUSING)
    assert refused.value.code == "KH203"
    hint = refused.value.hint or ""
    assert hint.startswith(INSTEAD)
    typed = _ask(hint.removeprefix(INSTEAD).rstrip(";"), catalog, {})
    assert not any(_TOLD.search(one) for one in typed.warnings)
    assert [one.sensitivity for one in typed.functionals] == [one.sensitivity for one in asked.functionals]


EFFECTS = [
    (STAYS + f"avg({DAYS}) > 5", "missed where values above 25 decide it, and returned where values below -15"),
    (STAYS + f"avg({DAYS}) < 5", "returned where values above 25 decide it, and missed where values below -15"),
    (STAYS + f"NOT avg({DAYS}) > 5", "returned where values above 25 decide it, and missed where values below -15"),
    (STAYS + f"avg({DAYS}) BETWEEN 3 AND 6", "missed or returned where values above 30 or below -18 decide it"),
    (STAYS + f"avg(-({DAYS})) < -5", "returned where values above 15 decide it, and missed where values below -25"),
    (STAYS + f"sum(cost) / sum({DAYS}) > 500", "returned where values above 100 decide it, and missed where values b"),
    (STAYS + f"avg(greatest({DAYS}, 1)) > 5", "missed where values above 25 decide it. WHERE"),
]  # fmt: skip


@in_turn(("sql", "effect"), EFFECTS)
def test_what_a_clip_does_to_the_answer_is_told(sql: str, effect: str) -> None:
    asked = _ask(sql, analysts("stays"), {})
    assert any(f"a group may be {effect}" in one for one in asked.warnings), asked.warnings


def test_the_guarantee_says_that_it_holds_after_clipping() -> None:
    told = {
        write_guarantee(plan_question(_ask(sql, analysts(name), {}), dialect=DUCKDB)).partition(" This holds ")[2]
        for name, sql in (
            ("trips", TRIPS + "avg(dropoff - pickup) > interval '20 minutes' AND count(*) > 500"),
            ("trips", TRIPS + "avg(fare) > 20 AND count(*) > 500"),
            ("stays", STAYS + f"avg({DAYS}) > 5 AND count(*) > 500"),
        )
    }
    assert {one.partition(" bounding")[0] for one in told} == {
        "after values without a declared range are clipped.",
        "",
        "for aggregates after clipping values without a declared range and",
    }


KNOWN = [  # where the text or the policy says the range, nothing is clipped: sensitivity for six rows of one patient
    (f"SELECT ward FROM stays WHERE {DAYS} BETWEEN 0 AND 30 GROUP BY ward HAVING avg({DAYS}) > 5", 6 * 25),
    ("SELECT ward FROM stays WHERE admitted >= '2024-01-01' AND discharged < '2024-07-01' AND discharged >= admitted "
     f"GROUP BY ward HAVING avg({DAYS}) > 5", 6 * (182 - 5)),
    (STAYS + "avg(cost / nullif(beds_moved, 0)) > 500", 6 * (50_000 - 500)),
    (STAYS + "avg(admitted::date - date '2023-01-01') > 31", 6 * (731 - 31)),
]  # fmt: skip


@in_turn(("sql", "sensitivity"), KNOWN)
def test_a_range_that_follows_from_the_text_or_the_policy_is_taken(sql: str, sensitivity: int) -> None:
    asked = _ask(sql, analysts("stays"), {})
    assert asked.functionals[0].sensitivity == sensitivity
    assert not any(_TOLD.search(one) for one in asked.warnings)


def test_a_declared_range_of_an_expression_is_taken_within_larger_ones() -> None:
    catalog = analysts("stays")
    ranges = tuple(
        ExpressionRange(text, (Decimal(0), Decimal(most)))
        for text, most in ((DAYS, 30), ("discharged - admitted", 30 * 86_400), ("upper(ward)", 5))
    )
    (table,) = catalog.tables
    declared = replace(catalog, tables=(replace(table, ranges=ranges),))
    for having, sensitivity in (
        (f"avg({DAYS}) > 5", 6 * 25),
        (f"avg(2 * ({DAYS})) > 10", 6 * 25),  # in steps of 2
        (f"avg(abs({DAYS} - 3)) > 5", 6 * 22),
        ("avg(discharged - admitted) > interval '5 days'", 6 * 25 * 8640),
    ):
        asked = _ask(STAYS + having, declared, REFUSING)
        assert asked.functionals[0].sensitivity == sensitivity, having
    assert list_unread_ranges(declared.tables[0]) == ("upper(ward)",)


UNKNOWN = [
    ("", f"ORDER BY avg({DAYS}) DESC LIMIT 3", "least and greatest", "BETWEEN -1000 AND 1000"),
    ("", f"HAVING avg({DAYS}) > avg({DAYS}) FILTER (WHERE emergency)", "least and greatest", "BETWEEN -1000 AND 1000"),
    ("WHERE discharged > admitted", f"ORDER BY avg({DAYS}) LIMIT 3", "greatest", "<= 1000"),
]  # fmt: skip


@in_turn(("where", "asked", "missing", "words"), UNKNOWN)
def test_without_a_threshold_the_refusal_names_the_missing_ends_and_columns(
    where: str, asked: str, missing: str, words: str
) -> None:
    with pytest.raises(KeyholeError) as refused:
        _ask(f"SELECT ward FROM stays {where} GROUP BY ward {asked}", analysts("stays"), {})
    assert refused.value.code == "KH203"
    assert refused.value.message.startswith(f"the {missing} value of CAST(discharged")
    assert "discharged has no bounds" in (refused.value.detail or "")
    assert words in (refused.value.hint or "")


_LETTERS = {"a": (-3, 4), "b": (1, 5), "c": (-2, 0)}


def _draw_term(drawn: Random, depth: int) -> RowTerm:
    if depth == 0 or drawn.random() < 0.2:
        if drawn.random() < 0.3:
            return number_arithmetic.make_constant(Fraction(drawn.randrange(-4, 5)), is_integral=True)
        return RowTerm("column", TermKind.WHOLE, value=drawn.choice("abc"), limit=10)
    one, other = _draw_term(drawn, depth - 1), _draw_term(drawn, depth - 1)
    match drawn.randrange(8):
        case 0:
            return number_arithmetic.add(one, other)
        case 1:
            return number_arithmetic.add(one, number_arithmetic.negate(other))
        case 2:
            return number_arithmetic.multiply(one, other)
        case 3:
            return number_arithmetic.drop_sign(one)
        case 4 if one.kind is other.kind is TermKind.WHOLE:
            return number_arithmetic.divide_whole(one, other)
        case 4 | 5:
            return number_arithmetic.divide_doubles(one, other)
        case function:
            both = tuple(number_arithmetic.unify([one, other]))
            return RowTerm(("least", "greatest")[function - 6], both[0].kind, both, limit=max(x.limit for x in both))


def _compute(term: RowTerm, row: Mapping[str, int]) -> Fraction | None:
    if term.function == "column":
        return Fraction(row[str(term.value)])
    if term.function == "constant":
        assert isinstance(term.value, int | float)
        return Fraction(term.value)
    found = [_compute(one, row) for one in term.arguments]
    known = [one for one in found if one is not None]
    if term.function in ("least", "greatest"):
        return (min if term.function == "least" else max)(known, default=None)
    if len(known) < len(found):
        return None
    match term.function:
        case "double":
            return known[0]
        case "+":
            return known[0] + known[1]
        case "*":
            return known[0] * known[1]
        case "negate":
            return -known[0]
        case "abs":
            return abs(known[0])
        case _ if not known[1]:
            return None
        case "quotient":
            return Fraction(int(known[0] / known[1]))
        case _:
            return known[0] / known[1]


def test_every_value_of_a_term_lies_between_its_ends() -> None:
    """Of 2,000 random terms on 25 of 120 rows within the bounds of three columns; sums of two columns are tight."""
    drawn = Random(7)
    columns = tuple(
        Column(name, SqlType.INTEGER, "integer", bounds=(Decimal(numbers_of[0]), Decimal(numbers_of[1])))
        for name, numbers_of in _LETTERS.items()
    )
    table = Table("t", "t", columns, (), 1, None, None, "static", "t")
    rows = [
        dict(zip("abc", row, strict=True))
        for row in product(*(range(low, high + 1) for low, high in _LETTERS.values()))
    ]
    open_ended = 0
    for _ in range(2_000):
        try:
            term = _draw_term(drawn, 3)
        except (number_arithmetic.NoTermError, number_arithmetic.TooWideError):
            continue
        low, high = find_ends(term, table)
        open_ended += None in (low, high)
        values = [value for value in (_compute(term, row) for row in drawn.sample(rows, 25)) if value is not None]
        assert all((low is None or low <= value) and (high is None or value <= high) for value in values), term
    assert 0 < open_ended < 1_000
    a, b = (RowTerm("column", TermKind.WHOLE, value=name, limit=10) for name in "ab")
    assert find_ends(number_arithmetic.add(a, number_arithmetic.negate(b)), table) == (Fraction(-8), Fraction(3))
    assert find_ends(number_arithmetic.multiply(a, b), table) == (Fraction(-15), Fraction(20))
    assert find_ends(number_arithmetic.divide_whole(a, b), table) == (Fraction(-3), Fraction(4))
