"""EXPLAIN of questions or a monitor, which costs nothing, or of a statement that the shadow explains."""

from dataclasses import dataclass, replace

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation
from planner.statements.kinds import ExecuteStatement, ExplainStatement, PassThrough, Statement
from planner.statements.prepare_execute import read_execute
from planner.statements.query import read_query
from planner.statements.statement_refusals import (
    refuse_empty_explain,
    refuse_explain_analyze,
    refuse_explain_format,
    refuse_mixed_explain,
)


def read_explain(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read EXPLAIN of a query or of EXECUTE, without ANALYZE.

    Keyhole explains questions and monitors as text, with VERBOSE as longer text, or as JSON.

    Raises KH100, KH102, KH106 and as `classify` does.
    """
    options = _read_options(found)
    start = options.start
    if start >= len(found):
        raise refuse_empty_explain(found[-1])
    rest = found[start:]
    if rest[0].is_word("execute"):
        result = read_execute(text, rest, catalog)
    elif rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table"):
        result = read_query(text, rest, catalog)
    else:
        raise refuse_unsupported(f"EXPLAIN of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    if options.analyze is not None:
        raise refuse_explain_analyze(position=options.analyze + 1, explained=text[rest[0].start : rest[-1].end])
    if isinstance(result, ExecuteStatement):
        return replace(result, explain=text[found[0].start : rest[0].start])
    if not isinstance(result, Asking):
        return PassThrough("explain")
    explained: tuple[EmbeddedQuestion | EmbeddedRelation, ...] = result.questions + result.monitors
    if not explained:
        return result  # PostgreSQL explains how it reads what Keyhole gives it
    if len(explained) != len(result.embedded) or (result.monitors and len(explained) != 1):
        raise refuse_mixed_explain(found[start])
    form = options.form
    if form is not None and form.value.lower() not in ("text", "json"):
        raise refuse_explain_format(form, explained=text[rest[0].start : rest[-1].end])
    if form is not None and form.value.lower() == "json":
        return ExplainStatement(questions=explained, format="json", shadow_text=result.shadow_text)
    return ExplainStatement(
        questions=explained, format="verbose" if options.verbose else "text", shadow_text=result.shadow_text
    )


@dataclass(frozen=True, slots=True)
class _Options:
    """EXPLAIN's options: the start of its statement, the place of ANALYZE, the name of the format, and VERBOSE."""

    start: int
    analyze: int | None
    form: Token | None
    verbose: bool


def _read_options(found: tuple[Token, ...]) -> _Options:
    """Read the options before the explained statement, with or without parentheses. The last one of a name counts."""
    index, analyze, form, verbose = 1, None, None, False
    if len(found) > 2 and found[1].is_symbol("(") and not found[2].is_word("select", "with", "values", "table"):
        while index < len(found) and not found[index].is_symbol(")"):
            word, value = found[index], found[index + 1] if index + 1 < len(found) else found[index]
            is_on = value.value not in ("off", "false", "0")
            if word.is_word("analyze", "analyse") and is_on:
                analyze = word.start
            if word.is_word("verbose"):
                verbose = is_on
            if word.is_word("format"):
                form = value
            index += 1
        return _Options(start=index + 1, analyze=analyze, form=form, verbose=verbose)
    while index < len(found) and found[index].is_word("analyze", "analyse", "verbose"):
        if found[index].is_word("verbose"):
            verbose = True
        else:
            analyze = found[index].start
        index += 1
    return _Options(start=index, analyze=analyze, form=None, verbose=verbose)
