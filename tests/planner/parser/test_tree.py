"""SQL's tree written again: in one form, and the tree is as it was."""

from collections.abc import Iterator
from contextlib import suppress

import pytest
from sqlglot import exp

from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.parser.tree import contains_type, list_nodes, parse, write_node
from tests.planner.spec import pairs


def trees(name: str) -> Iterator[exp.Expr]:
    """The statements of a file of the corpus that the parser reads."""
    for sql, _ in pairs(name):
        with suppress(KeyholeError):
            yield parse(sql, read_tokens(sql)).tree


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
            assert all(
                contains_type(n, *kinds) is any(isinstance(one, kinds) for one in list_nodes(n))
                for n in list_nodes(tree)
            )


@pytest.mark.parametrize("number", ["1_000", "1_0.5", "1e1_0"])
def test_a_number_with_underscores_is_no_number_with_a_name(number: str) -> None:
    for sql in (f"SELECT {number}", f"SELECT count(*) > {number}"):
        with pytest.raises(KeyholeError) as refused:
            parse(sql, read_tokens(sql))
        assert (refused.value.code, refused.value.hint) == ("KH100", "Write numbers without underscores: 8000.")
    parse("SELECT 1 _000, a_1_0", read_tokens("SELECT 1 _000, a_1_0"))


def test_functions_of_other_databases_are_not_taken_for_coalesce() -> None:
    sql = "SELECT ifnull(a, 1), coalesce(nvl(a, b), ifnull (c, 2)), coalesce(a)"
    read = parse(sql, read_tokens(sql)).tree
    assert [call.name for call in read.find_all(exp.Anonymous)] == ["ifnull", "nvl", "ifnull"]
    assert len(list(read.find_all(exp.Coalesce))) == 2
