"""Predicates are found as the largest formulas, and cut out of the text exactly."""

import random
from collections.abc import Iterator

import pytest
from sqlglot import exp

from planner.extract.outer_query import write_outer_sql
from planner.lower.dialects.duckdb import DUCKDB
from planner.parser.lexer import read_tokens
from planner.parser.spans import SearchedNode, find_spans
from planner.parser.tree import parse, write_node
from planner.plan.build import plan_question
from planner.plan.question_identity import find_fingerprint
from planner.scorecard.find import find_predicates, shows_size
from planner.scorecard.shown import replace_with_constants
from tests.effort import rounds
from tests.in_turn import in_turn
from tests.planner.asked import asked, asking, refusal, select
from tests.planner.spec import pairs

_ANSWERED = [sql for sql, outcome in pairs("scorecards.sql") if outcome.startswith("[")]


def found_in(item: str) -> list[str]:
    (node,) = select(f"SELECT {item} FROM sales").expressions
    return [write_node(one) for one in find_predicates(node)]


@in_turn(
    ("item", "predicates"),
    [
        ("count(*) > 5", ["count(*) > 5"]),
        ("NOT (count(*) > 5 OR sum(a) > 3)", ["NOT (count(*) > 5 OR sum(a) > 3)"]),
        ("count(*) > 5 AND b", ["count(*) > 5"]),
        ("(count(*) > 5) = (sum(a) > 3)", ["count(*) > 5", "sum(a) > 3"]),
        ("CASE WHEN count(*) > 5 THEN sum(a) END > 3", ["count(*) > 5"]),
        ("CASE WHEN count(*) > 5 THEN 1 ELSE 0 END > 0", ["count(*) > 5"]),
        ("sum(CASE WHEN a > 5 THEN 1 ELSE 0 END) > 3", ["sum(CASE WHEN a > 5 THEN 1 ELSE 0 END) > 3"]),
        ("bool_and(count(*) > 5) OVER (ORDER BY sum(a) > 3)", ["count(*) > 5", "sum(a) > 3"]),
        ("sum(count(*)) OVER () > 3", ["sum(count(*)) OVER () > 3"]),
        ("sum(a)", []),
        ("bool_or(b) FILTER (WHERE a > 3) AND count(*) > 5", ["bool_or(b) FILTER(WHERE a > 3) AND count(*) > 5"]),
        ("bool_or(b) OVER ()", []),
        ("(count(*) > 5) IS NOT TRUE", ["NOT (count(*) > 5) IS TRUE"]),
        ("(count(*) > 5) = false", ["(count(*) > 5) = FALSE"]),
    ],
)
def test_the_largest_formulas_are_predicates(item: str, predicates: list[str]) -> None:
    assert sorted(found_in(item)) == sorted(predicates)


@in_turn(
    ("item", "size"),
    [
        ("country", False),
        ("count(*) > 5", False),
        ("CASE WHEN count(*) > 5 THEN 1 END", False),
        ("bool_and(count(*) > 5) OVER ()", False),
        ("CASE WHEN count(*) > 5 THEN sum(a) END > 3", True),
        ("sum(count(*)) OVER () > 3", False),
        ("rank() OVER (ORDER BY count(*) > 5)", False),
        ("rank() OVER (ORDER BY count(*))", True),
        ("(count(*) > 5)::int + count(*)", True),
        ("bool_or(b)", False),
        ("bool_or(b) OVER ()", False),
        ("max(b)", True),
    ],
)
def test_what_shows_a_size_is_told_from_what_shows_truths(item: str, size: bool) -> None:
    (node,) = select(f"SELECT {item} FROM sales").expressions
    assert shows_size(node) is size


def _formulas(draw: random.Random, depth: int) -> str:
    """A formula in some spelling, with more blanks, parentheses and letter cases than anybody would write."""
    if depth and draw.random() < 0.6:
        left, right = _formulas(draw, depth - 1), _formulas(draw, depth - 1)
        joined = f"({left}) {draw.choice(('AND', 'or'))} ({right})"
        return draw.choice((joined, f"NOT ({joined})", f"(({joined}))"))
    aggregate = draw.choice(
        (
            "count(*)",
            "SUM(amount )",
            "count(*) FILTER (WHERE quantity > 3 AND gift)",
            "avg( sales.amount )",
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY amount)",
            "coalesce(sum(amount), 0)",
            "(sum(amount)::numeric)",
        )
    )
    number = draw.choice(("5", "-5", "1e3", "0.5", "'7'", "(2 + 3)", "$1"))
    return draw.choice(
        (
            f"{aggregate} {draw.choice(('>', '<=', '=', '<>', '!='))} {number}",
            f"{number} < {aggregate}",
            f"{aggregate} BETWEEN 1 AND {number}",
            f"{aggregate} NOT BETWEEN 1 AND {number}",
            f"{aggregate} IN (1, {number})",
            f"{aggregate} not in (1, 2)",
        )
    )


def _around(draw: random.Random, predicates: list[str]) -> Iterator[str]:
    for one in predicates:
        yield draw.choice(
            (
                f"CASE WHEN {one} THEN 'a)' ELSE '(b' END",
                f"({one})::int",
                f"coalesce({one}, false)",
                f"({one}) IS NOT TRUE",
                one,
                f"CASE {one} WHEN true THEN 1 END",
                f"concat('x', {one})",
            )
        )


def test_what_is_cut_out_is_the_predicate_and_nothing_else() -> None:
    """Together or one by one, and also where the statement is read again with a constant in the place of each."""
    draw = random.Random(20261123)
    for _ in range(rounds(1_500, quick=30)):
        written = [_formulas(draw, draw.randrange(3)) for _ in range(draw.randrange(1, 4))]
        sql = f"SELECT {', '.join(_around(draw, written))} FROM sales"
        lexed = read_tokens(sql)
        tree = parse(sql, lexed).tree
        assert isinstance(tree, exp.Select)
        nodes = [node for item in tree.expressions for node in find_predicates(item)]
        assert len(nodes) == len(written), sql
        text = sql
        searched = [SearchedNode(node, 1, len(lexed) - 2) for node in nodes]
        places = find_spans(searched, sql, lexed)
        assert places == tuple(place for one in searched for place in find_spans([one], sql, lexed)), sql
        for first, past in reversed(places):
            text = f"{text[: lexed[first].start]}(true){text[lexed[past - 1].end :]}"
        masked = tree.copy()
        for node in [one for item in masked.expressions for one in find_predicates(item)]:
            node.replace(exp.Paren(this=exp.true()))
        assert parse(text, read_tokens(text)).tree == masked, sql


@in_turn("sql", _ANSWERED)
def test_no_aggregate_of_the_private_table_is_left_around(sql: str) -> None:
    """What the shadow runs reads keys and truths alone."""
    outer = write_outer_sql(asking(sql), first_parameter=9).sql
    tree = parse(outer, read_tokens(outer)).tree
    relations = [one for one in tree.find_all(exp.Table) if one.name in ("sales", "visits")]
    assert not relations
    for question in asking(sql).questions:
        places = question.ranked is not None
        assert len(question.columns) == max(len(question.keys), 1) + places + len(question.predicates)


def test_predicates_of_one_text_are_one_column() -> None:
    sql = "SELECT country, count(*) > 100, CASE WHEN count(*)  >  100 THEN 1 END FROM sales GROUP BY country ORDER BY 2"
    (question,) = asking(sql).questions
    assert [one.text for one in question.predicates] == ["count(*) > 100"]


def test_masking_leaves_the_statement_as_it_was() -> None:
    tree = select("SELECT country, count(*) > 100 FROM sales GROUP BY country")
    assert replace_with_constants(tree, ()) is tree


def test_each_predicate_needs_its_own_guard() -> None:
    """The count of one predicate does not keep groups without rows out of another."""
    guarded = "SELECT country, count(amount) > 100 AND sum(amount) < 5000 FROM sales GROUP BY country"
    assert len(asked(guarded).predicates) == 1
    apart = "SELECT country, count(amount) > 100, sum(amount) < 5000 FROM sales GROUP BY country"
    refused = refusal(apart, guard="refuse")
    assert refused is not None
    assert refused.code == "KH206"


def test_the_order_of_predicates_is_part_of_the_question() -> None:
    """A stored answer has their truths in that order."""
    orders = ("count(*) > 100, count(*) > 900", "count(*) > 900, count(*) > 100")
    first, second = (asked(f"SELECT country, {shown} FROM sales GROUP BY country") for shown in orders)
    assert first.predicates == second.predicates[::-1]
    assert find_fingerprint(first) != find_fingerprint(second)


@pytest.mark.parametrize(
    ("item", "named"),
    [
        ("bool_or(quantity > 3)", ' AS "bool_or"'),
        ("(BOOL_OR(quantity > 3) FILTER (WHERE gift))::int", ' AS "bool_or"'),
        ("CASE WHEN count(*) > 5 THEN true ELSE bool_or(quantity > 3) END", ' AS "bool_or"'),
        ("bool_or(quantity > 3) AS any", " AS any"),
        ("bool_or(quantity > 3) AND count(*) > 5", " = true)"),
    ],
)
def test_an_item_that_is_an_aggregate_of_truths_keeps_its_name(item: str, named: str) -> None:
    outer = write_outer_sql(asking(f"SELECT {item} FROM sales GROUP BY country"), first_parameter=1).sql
    assert outer.partition(" FROM ")[0].endswith(named), outer


@pytest.mark.parametrize("mechanism", ["progressive", "keyhole"])
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("count(*) > 100", "NOT count(*) > 100"),
        ("count(*) >= 100", "count(*) < 100"),
        ("sum(amount) > 20000", "(sum(amount) > 20000) IS NOT TRUE"),
        ("coalesce(sum(amount), 0) > 20000", "coalesce(sum(amount), 0) <= 20000"),
    ],
)
def test_a_predicate_beside_its_negation_costs_little_more_than_one(one: str, other: str, mechanism: str) -> None:
    """Looks at both directions of a threshold cost some per cent; noise on blocks serves both."""
    both, alone = (
        plan_question(
            asked(f"SELECT country, {shown} FROM sales GROUP BY country", mechanism=mechanism), dialect=DUCKDB
        )
        for shown in (f"{one}, {other}", one)
    )
    assert alone.worst_case_epsilon <= both.worst_case_epsilon <= 1.05 * alone.worst_case_epsilon
