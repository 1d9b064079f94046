"""EXPLAIN of questions or a monitor, which costs nothing, or of a statement that the shadow explains."""

from dataclasses import dataclass, replace

from planner.catalog.catalog import Catalog
from planner.errors import refuse_unsupported
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.scope.embedded import Embedded, EmbeddedVirtual
from planner.statements.kinds import Executing, Explaining, PassThrough, Statement
from planner.statements.prepare_execute import execute_statement
from planner.statements.query import query_statement
from planner.statements.statement_refusals import (
    explains_several,
    nothing_explained,
    runs_what_it_explains,
    unknown_format,
)


def explain_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read EXPLAIN of a query or of EXECUTE, without ANALYZE.

    Keyhole explains questions and monitors as text, with VERBOSE as longer text, or as JSON.

    Raises KH100, KH102, KH106 and as `classify` does.
    """
    options = _read_options(found)
    start = options.start
    if start >= len(found):
        raise nothing_explained(found[-1])
    rest = found[start:]
    if rest[0].is_word("execute"):
        result = execute_statement(text, rest, catalog)
    elif rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table"):
        result = query_statement(text, rest, catalog)
    else:
        raise refuse_unsupported(f"EXPLAIN of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    if options.analyze is not None:
        raise runs_what_it_explains(position=options.analyze + 1, explained=text[rest[0].start : rest[-1].end])
    if isinstance(result, Executing):
        return replace(result, explain=text[found[0].start : rest[0].start])
    if not isinstance(result, Asking):
        return PassThrough("explain")
    explained: tuple[Embedded | EmbeddedVirtual, ...] = result.questions + result.monitors
    if not explained:
        return result  # PostgreSQL explains how it reads what Keyhole gives it
    if len(explained) != len(result.embedded) or (result.monitors and len(explained) != 1):
        raise explains_several(found[start])
    form = options.form
    if form is not None and form.value.lower() not in ("text", "json"):
        raise unknown_format(form, explained=text[rest[0].start : rest[-1].end])
    if form is not None and form.value.lower() == "json":
        return Explaining(questions=explained, format="json", spelled=result.spelled)
    return Explaining(questions=explained, format="verbose" if options.verbose else "text", spelled=result.spelled)


@dataclass(frozen=True, slots=True)
class _Options:
    """EXPLAIN's options: where its statement starts, where ANALYZE stands, the format's name, and VERBOSE."""

    start: int
    analyze: int | None
    form: Token | None
    verbose: bool


def _read_options(found: tuple[Token, ...]) -> _Options:
    """Read the options before the explained statement, with parentheses or without. The last of a name counts."""
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
