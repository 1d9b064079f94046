"""SQL's tree written again: in one form, and the tree is as it was."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import tokens
from planner.parser.tree import contains, nodes, parse, write_node
from tests.planner.spec import pairs


def trees(name: str) -> Iterator[exp.Expr]:
    """The statements of a file of the corpus that the parser reads."""
    for sql, _ in pairs(name):
        with suppress(KeyholeError):
            yield parse(sql, tokens(sql)).tree


@pytest.mark.parametrize("name", ["questions.sql", "row_conditions.sql", "aggregates.sql"])
def test_what_is_written_without_a_copy_is_what_a_copy_would_be(name: str) -> None:
    written = 0
    for tree in trees(name):
        before = tree.copy()
        for node in tree.find_all(exp.Condition):
            copied = node.sql(dialect="postgres", normalize_functions="lower", comments=False)
            assert write_node(node) == copied
            written += 1
        assert tree == before
    assert written > 200


def test_contains_finds_what_the_nodes_have() -> None:
    for tree in trees("row_conditions.sql"):
        for kinds in ((exp.Column,), (exp.Query,), (exp.Cast, exp.Parameter), (exp.AggFunc, exp.Filter)):
            assert all(contains(n, *kinds) is any(isinstance(one, kinds) for one in nodes(n)) for n in nodes(tree))
