"""Conditions mean what SQL means: against PostgreSQL on every value, and disjointness against every row."""

import random
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from decimal import Decimal

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.catalog import Value
from planner.question.condition import (
    ALWAYS,
    NEVER,
    And,
    Compare,
    Condition,
    IsNull,
    Leaf,
    Like,
    Not,
    Or,
    Within,
    evaluate,
    find_columns,
    find_true_values,
    join_all,
    join_any,
    make_test,
)
from planner.question.condition_text import MOST_SPELLED, spell_condition, write_canonical
from planner.question.disjoint import are_disjoint
from planner.values.like import find_prefix, is_unfinished, matches_pattern
from tests.in_turn import in_turn

_NUMBERS = st.integers(0, 3)
_TEXTS = st.sampled_from(["", "a", "ab", "b", "a%", "_"])
_PATTERNS = st.text(alphabet="ab%_", max_size=3)
_LEAVES: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compare, st.sampled_from(["m", "n"]), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _NUMBERS),
    st.builds(Compare, st.just("t"), st.sampled_from(["=", "<>"]), _TEXTS),
    st.builds(
        Within,
        st.sampled_from(["m", "n"]),
        st.lists(_NUMBERS, min_size=1, max_size=3, unique=True).map(lambda values: tuple(sorted(values))),
    ),
    st.builds(Like, st.just("t"), _PATTERNS),
    st.builds(IsNull, st.sampled_from(["m", "n", "t"])),
)
_CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


def _rows() -> Iterator[dict[str, Value | None]]:
    for m in (None, *range(-1, 5)):
        for n in (None, 0, 2, 5):
            for t in (None, "", "a", "ab", "ba", "b", "a%", "_", "aaa"):
                yield {"m": m, "n": n, "t": t}


ROWS = tuple(_rows())


@given(_CONDITIONS)
def test_one_way_of_walking_is_like_the_other(condition: Condition) -> None:
    """Changing nothing changes nothing, every test is met once and in order, and folding with SQL's words is SQL."""
    met: list[Condition] = []

    def note(leaf: Leaf) -> Condition:
        met.append(leaf)
        return leaf

    assert condition.map_leaves(note) == condition
    assert met == list(condition.walk_leaves())
    assert condition.map_leaves(lambda _: ALWAYS).map_leaves(note) == condition.map_leaves(lambda _: ALWAYS)
    folded = condition.fold(
        note, negation=Not, every=lambda parts: And(tuple(parts)), some=lambda parts: Or(tuple(parts))
    )
    assert folded == condition
    assert And(condition.list_conjuncts()) == (condition if isinstance(condition, And) else And((condition,)))
    for wanted in (True, False):
        normal = condition.fold_literals(lambda literal: literal, every=join_all, some=join_any, wanted=wanted)
        for row in ROWS[:50]:
            assert evaluate(normal, row) is evaluate(condition if wanted else Not(condition), row)


@given(_CONDITIONS, _CONDITIONS)
def test_disjoint_conditions_share_no_row(first: Condition, second: Condition) -> None:
    if are_disjoint(first, second):
        assert are_disjoint(second, first)
        assert not any(evaluate(first, row) is True and evaluate(second, row) is True for row in ROWS)


@in_turn(
    ("first", "second"),
    [
        (Compare("t", "=", "USA"), Compare("t", "=", "Canada")),
        (Compare("m", ">", 5), Compare("m", "<", 6)),
        (Compare("m", ">", 5), Compare("m", "<=", 5)),
        (Compare("d", ">", date(2026, 1, 1)), Compare("d", "<", date(2026, 1, 2))),
        (Compare("s", ">=", datetime(2026, 1, 2)), Compare("s", "<", datetime(2026, 1, 2))),
        (Compare("x", "<", Decimal("0.1")), Compare("x", ">=", Decimal("0.1"))),
        (Within("m", (1, 2)), Not(Within("m", (1, 2, 3)))),
        (Like("t", "a%"), Like("t", "b%")),
        (Like("t", "a%"), Compare("t", "=", "ba")),
        (IsNull("t"), Compare("t", "<>", "a")),
        (IsNull("t"), Not(IsNull("t"))),
        (Compare("g", "=", True), Compare("g", "=", False)),
        (Or((Compare("m", "=", 1), Compare("m", "=", 2))), And((Compare("m", ">", 2), Compare("t", "=", "a")))),
        (Not(Or((Compare("m", "=", 1), IsNull("t")))), Compare("m", "=", 1)),
        (NEVER, ALWAYS),
    ],
)
def test_provably_disjoint(first: Condition, second: Condition) -> None:
    assert are_disjoint(first, second)
    assert are_disjoint(second, first)


def test_decimals_that_are_one_double_are_not_disjoint() -> None:
    near = Decimal("0.1000000000000000000001")
    assert not are_disjoint(Compare("x", "=", Decimal("0.1")), Compare("x", "=", near))
    assert not are_disjoint(Compare("x", "<=", Decimal("0.1")), Compare("x", ">=", near))


def test_disjointness_gives_up_on_long_conditions() -> None:
    wide = And(tuple(Or((Compare("m", "=", i), Compare("n", "=", i))) for i in range(30)))
    assert not are_disjoint(wide, wide)


@given(_CONDITIONS, st.randoms(use_true_random=False))
def test_canonical_text_ignores_order_nesting_and_repetition(condition: Condition, random_: random.Random) -> None:
    def shuffled(part: Condition) -> Condition:
        match part:
            case Not(inner):
                return Not(shuffled(inner))
            case And(parts) | Or(parts):
                mixed = [shuffled(inner) for inner in parts]
                random_.shuffle(mixed)
                kind = type(part)
                if mixed and random_.random() < 0.5:
                    return kind((kind(tuple(mixed[:1])), *mixed))
                return kind(tuple(mixed))
            case _:
                return part

    assert write_canonical(shuffled(condition)) == write_canonical(condition)


@given(_CONDITIONS, _CONDITIONS)
def test_equal_canonical_text_means_equal_conditions(first: Condition, second: Condition) -> None:
    if write_canonical(first) == write_canonical(second):
        assert all(evaluate(first, row) is evaluate(second, row) for row in ROWS)


@given(st.lists(_CONDITIONS, max_size=4))
def test_joining_keeps_the_meaning(parts: list[Condition]) -> None:
    for row in ROWS[::5]:
        assert evaluate(join_all(parts), row) is evaluate(And(tuple(parts)), row)
        assert evaluate(join_any(parts), row) is evaluate(Or(tuple(parts)), row)
    assert find_columns(And(tuple(parts))) >= find_columns(join_all(parts))


@given(st.text(alphabet="ab%_\\", max_size=6).filter(lambda pattern: not is_unfinished(pattern)))
def test_a_match_begins_with_its_pattern_s_prefix(pattern: str) -> None:
    for text in ("", "a", "ab", "%", "_a", "\\", "abab"):
        if matches_pattern(text, pattern):
            assert text.startswith(find_prefix(pattern))


def test_conditions_mean_what_postgresql_means(postgres_url: str) -> None:
    """400 random conditions in canonical text on 40 random rows: true, false and unknown are PostgreSQL's."""
    random_ = random.Random(7)
    start = datetime(2026, 1, 1)
    kinds: dict[str, list[Value]] = {
        "i": list(range(-2, 4)),
        "x": [Decimal(i) / 4 for i in range(6)],
        "d": [date(2026, 1, 1) + timedelta(days=i) for i in range(4)],
        "s": [start + timedelta(hours=7 * i) for i in range(5)],
        "g": [True, False],
        "t": ["", "a", "ab", "a%b", "O'Neil", "b\\", "%"],
    }

    def leaf() -> Condition:
        name = random_.choice(list(kinds))
        value = random_.choice(kinds[name])
        pick = random_.random()
        if pick < 0.15:
            return IsNull(name)
        if name == "t" and pick < 0.5:
            pattern = "".join(
                random_.choice(["a", "b", "%", "_", "\\%", "\\\\", "'"]) for _ in range(random_.randint(0, 4))
            )
            return Like("t", pattern)
        if pick < 0.6:
            return Within(name, tuple(sorted(set(random_.choices(kinds[name], k=2)))))
        plain = name in ("t", "g")
        return Compare(name, random_.choice(["=", "<>"] if plain else ["=", "<>", "<", "<=", ">", ">="]), value)

    def tree(depth: int) -> Condition:
        if depth == 0:
            return leaf()
        parts = tuple(tree(depth - 1) for _ in range(random_.randint(0, 3)))
        joined = And(parts) if random_.random() < 0.5 else Or(parts)
        return Not(joined) if random_.random() < 0.4 else joined

    rows: list[dict[str, Value | None]] = [
        {name: random_.choice([None, *values, *values]) for name, values in kinds.items()} for _ in range(40)
    ]
    conditions = [tree(random_.randint(0, 2)) for _ in range(400)]
    with psycopg.connect(postgres_url) as connection:
        connection.execute(
            "CREATE TEMP TABLE r (k integer, i integer, x numeric, d date, s timestamp, g boolean, t text)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO r VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [(index, *row.values()) for index, row in enumerate(rows)],
            )
        for condition in conditions:
            found = connection.execute(f"SELECT {write_canonical(condition)} FROM r ORDER BY k".encode()).fetchall()
            assert [evaluate(condition, row) for row in rows] == [truth for (truth,) in found], write_canonical(
                condition
            )


def test_every_digit_of_a_number_counts() -> None:
    """Numbers that differ beyond 28 digits are different numbers: no rounding in what tells conditions apart."""
    one, other = (Compare("x", ">", Decimal(f"1.{'0' * 31}{digit}")) for digit in (1, 9))
    assert write_canonical(one) != write_canonical(other)
    assert write_canonical(Compare("x", ">", Decimal("1.50"))) == write_canonical(Compare("x", ">", Decimal("1.5")))
    assert write_canonical(Compare("x", ">", Decimal("1E+2"))) == '"x" > 100'
    assert write_canonical(Compare("x", ">", Decimal("0.00"))) == '"x" > 0'


_ON_ONE: st.SearchStrategy[Condition] = st.recursive(
    st.one_of(
        st.builds(Compare, st.just("n"), st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _NUMBERS),
        st.builds(Within, st.just("n"), st.lists(_NUMBERS, max_size=3, unique=True).map(tuple)),
        st.just(IsNull("n")),
    ),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@given(condition=_ON_ONE)
def test_a_condition_on_one_column_is_the_same_for_many_values(condition: Condition) -> None:
    truth = make_test(condition, "n")
    for value in (None, 0, 1, 2, 3, 4):
        assert truth(value) is evaluate(condition, {"n": value})
    for values in ((None, 0, 1, 2, 3, 4), (0, 1, 2, 3, 4), ()):
        assert find_true_values(condition, "n", values) == [
            evaluate(condition, {"n": value}) is True for value in values
        ]


@given(patterns=st.lists(_PATTERNS, min_size=1, max_size=3))
def test_texts_are_matched_together_as_one_by_one(patterns: list[str]) -> None:
    joined = Or((And(tuple(Like("t", one) for one in patterns)), Not(Like("t", patterns[0])), IsNull("t")))
    texts = (None, "", "a", "ab", "b", "ba", "aab", "abab", "a%", "_", "aba")
    for one in (joined, *joined.conditions):
        wanted = [evaluate(one, {"t": text}) for text in texts]
        assert find_true_values(one, "t", texts) == [truth is True for truth in wanted]
        assert list(map(make_test(one, "t"), texts)) == wanted


@pytest.mark.parametrize("many", [MOST_SPELLED, MOST_SPELLED + 1, 10_000])
def test_long_lists_are_told_apart_by_their_digest(many: int) -> None:
    """Any other value, number of values or column is another text, which stays short; the order is none."""
    values = tuple(range(many))
    text = write_canonical(Within("n", values))
    assert write_canonical(Within("n", values[::-1])) == text
    others: list[Condition] = [
        Within("n", (*values[1:], many)),
        Within("n", values[1:]),
        Within("n", tuple(str(value) for value in values)),
        Within("m", values),
        Not(Within("n", values)),
        Within("n", tuple(Decimal(value) + Decimal("0.5") for value in values)),
    ]
    assert len({text, *map(write_canonical, others)}) == 1 + len(others)
    assert (text == spell_condition(Within("n", values))) == (many <= MOST_SPELLED)
    assert many <= MOST_SPELLED or len(text) < 200
    assert spell_condition(Within("n", values)).count(",") == many - 1


def test_each_column_is_taken_as_a_double_or_exactly() -> None:
    """A row may satisfy what only an exact column can and, beside it, what only a double precision column can."""
    exact = And((Compare("x", ">", Decimal("0.1")), Compare("x", "<=", Decimal("0.1000000000000000000001"))))
    double = And((Compare("y", ">=", Decimal("0.10000000000000000000001")), Compare("y", "<=", Decimal("0.1"))))
    assert not are_disjoint(exact, ALWAYS)
    assert not are_disjoint(double, ALWAYS)
    assert not are_disjoint(exact, double)
