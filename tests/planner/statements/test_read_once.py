"""Every statement of the corpus is lexed twice at most, and parsed once and again for each rule that rewrites it."""

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlglot import exp
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking
from planner.parser import lexer, spans
from planner.scope import key_classes
from planner.scorecard.find import find_predicates
from planner.statements import classify as classifying
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.planner.asked import TODAY
from tests.planner.spec import SPEC, pairs
from tests.worlds.retail import retail
from tests.worlds.stays import people, stays

_CATALOGS: dict[str, Callable[[], Catalog]] = {"per_unit.sql": stays, "same_unit.sql": people}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often text is lexed and parsed, by whomever, and how often rules rewrite it."""
    found: Counter[str] = Counter()
    own = threading.get_ident()  # what a server of earlier tests still reads in its thread is not counted

    def counted(function: Callable[..., Any], what: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if threading.get_ident() == own:
                found[what] += 1
            return function(*arguments, **named)

        return call

    lex, lex_again = lexer.read_tokens, lexer.reread_tokens
    for module in [module for name, module in sys.modules.items() if name.startswith("planner.")]:
        for name, value in list(vars(module).items()):
            if value is lex:
                monkeypatch.setattr(module, name, counted(lex, "lexed"))
            if value is lex_again:
                monkeypatch.setattr(module, name, counted(lex_again, "rewritten"))
    monkeypatch.setattr(spans, "_read", counted(spans._read, "located"))
    monkeypatch.setattr(Tokenizer, "tokenize", counted(Tokenizer.tokenize, "lexed by the parser"))
    monkeypatch.setattr(Parser, "_parse", counted(Parser._parse, "parsed"))
    key_classes._list_pairs.cache_clear()
    return found


def _read(sql: str, catalog: Catalog) -> None:
    try:
        statement = classifying.classify(sql, catalog)
        for question in statement.questions if isinstance(statement, Asking) else ():
            wanted = read_accuracy({}, catalog.defaults)
            bind_question(question, catalog, accuracy=wanted, parameters={1: 5}, today=TODAY, is_utc=True)
    except KeyholeError:
        pass


@pytest.mark.parametrize("name", sorted(path.name for path in SPEC.glob("*.sql")))
def test_text_is_read_once(name: str, counts: Counter[str]) -> None:
    """Each statement of a file; at quick every sixth."""
    catalog = _CATALOGS.get(name, retail)()
    stored = {question.name for question in catalog.stored_questions}
    for sql, _ in pairs(name)[:: rounds(1, quick=6)]:
        counts.clear()
        try:
            (part, *more) = lexer.split_statements(sql)
        except KeyholeError:
            continue
        if more:
            continue
        _read(part.text, catalog)
        texts = 1 + sum(sql.count(one) for one in stored)  # a stored question is a text of its own
        assert counts["lexed"] <= 1 + texts + counts["located"], sql
        assert counts["parsed"] <= texts + counts["rewritten"] + counts["located"], sql
        assert counts["lexed by the parser"] == counts["parsed"], sql


def test_a_statement_is_read_again_for_each_rule_that_rewrites_it(counts: Counter[str]) -> None:
    sql = (
        "SELECT w FROM (SELECT ward AS w, count(*) AS n FROM (SELECT * FROM visits WHERE age > 40) v GROUP BY ward) t "
        "WHERE n > 3000"
    )
    statement = classifying.classify(sql, retail())
    assert isinstance(statement, Asking)
    assert statement.questions[0].rules == ("pull_up_subqueries", "push_down_thresholds")
    assert counts == {"lexed": 1, "lexed by the parser": 3, "parsed": 3, "rewritten": 2}


def test_a_predicate_is_read_again_alone_once_or_a_few_times(counts: Counter[str]) -> None:
    """To prove where it stands."""
    for sql, outcome in pairs("scorecards.sql"):
        if outcome.startswith("["):
            counts.clear()
            statement = classifying.classify(sql, retail())
            assert isinstance(statement, Asking)
            written = len(shown_in(statement.questions[0].tree))
            assert counts["located"] <= 4 * max(written, 1), sql


def shown_in(select: exp.Select) -> list[exp.Expr]:
    """The predicates of a SELECT, those that are written twice as well."""
    parts = [*select.expressions, select.args.get("order"), select.args.get("distinct")]
    return [node for part in parts if part is not None for node in find_predicates(part)]
