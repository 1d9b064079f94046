"""EXPLAIN of a question, which costs nothing, or of a statement that the shadow explains."""

from dataclasses import replace

from planner.catalog.model import Catalog
from planner.errors import KeyholeError, not_allowed
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.kinds import Executing, Explaining, PassThrough, Statement
from planner.statements.prepare_execute import execute_statement
from planner.statements.query import query_statement


def explain_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """EXPLAIN of a query or of EXECUTE, without ANALYZE; of a question as text or JSON, and by Keyhole.

    Raises KH100, KH102, KH106 and as `classify` does.
    """
    start, analyze, form = _explain_options(found)
    if start >= len(found):
        raise KeyholeError("KH100", "EXPLAIN needs a statement", position=found[-1].end)
    rest = found[start:]
    if rest[0].is_word("execute"):
        result = execute_statement(text, rest, catalog)
    elif rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table"):
        result = query_statement(text, rest, catalog)
    else:
        raise not_allowed(f"EXPLAIN of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    if analyze is not None:
        raise not_allowed(
            "EXPLAIN ANALYZE is not allowed",
            position=analyze + 1,
            detail="It would run what it explains.",
            hint="Use EXPLAIN without ANALYZE; for a question it costs nothing and shows the plan.",
        )
    if isinstance(result, Executing):
        return replace(result, explain=text[found[0].start : rest[0].start])
    if not isinstance(result, Asking):
        return PassThrough("explain")
    questions = result.questions
    if not questions:
        return result  # PostgreSQL explains how it reads what Keyhole gives it
    if len(questions) != 1 or len(result.embedded) != 1:
        raise KeyholeError(
            "KH106",
            "EXPLAIN explains one question",
            hint="Explain each question on its own.",
            position=found[start].start + 1,
        )
    if form is not None and form.value.lower() not in ("text", "json"):
        raise KeyholeError(
            "KH106", "EXPLAIN gives text or JSON", hint="EXPLAIN (FORMAT JSON) ...", position=form.start + 1
        )
    return Explaining(
        question=questions[0], format="json" if form is not None and form.value.lower() == "json" else "text"
    )


def _explain_options(found: tuple[Token, ...]) -> tuple[int, int | None, Token | None]:
    """Where the explained statement starts, where ANALYZE stands, and the name of the format."""
    index, analyze, form = 1, None, None
    if len(found) > 2 and found[1].is_symbol("(") and not found[2].is_word("select", "with", "values", "table"):
        while index < len(found) and not found[index].is_symbol(")"):
            word, value = found[index], found[index + 1] if index + 1 < len(found) else found[index]
            if word.is_word("analyze", "analyse") and value.value not in ("off", "false", "0"):
                analyze = word.start
            if word.is_word("format"):
                form = value
            index += 1
        return index + 1, analyze, form
    while index < len(found) and found[index].is_word("analyze", "analyse", "verbose"):
        if not found[index].is_word("verbose"):
            analyze = found[index].start
        index += 1
    return index, analyze, form
