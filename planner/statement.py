"""What a statement is, by an allow-list: passed to the shadow, a setting, one with questions inside, or refused.

Whatever is let through by mistake still fails: the shadow holds no private data and its role may not read the tables.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from planner import stored_parameters
from planner.catalog import Catalog
from planner.embedded import Embedded, EmbeddedVirtual
from planner.embedding import embed
from planner.errors import KeyholeError
from planner.lexer import Token, tokens
from planner.outer import Asking
from planner.session_statement import check_functions, check_setting, refused
from planner.settings import check


@dataclass(frozen=True, slots=True)
class StatementText:
    """One statement of a longer text; `offset` is where it starts there, 0-based."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class PassThrough:
    """The shadow answers it as it stands. `kind` is for logs and metrics."""

    kind: str


@dataclass(frozen=True, slots=True)
class SetKeyhole:
    """SET [LOCAL] keyhole.name = value, already validated; the shadow keeps it. None is DEFAULT."""

    name: str
    value_text: str | None
    local: bool


@dataclass(frozen=True, slots=True)
class Explaining:
    """EXPLAIN of a question: costs nothing, answered by Keyhole alone."""

    question: Embedded
    format: Literal["text", "json"]


@dataclass(frozen=True, slots=True)
class Preparing:
    """PREPARE of a statement with something for Keyhole to answer, which the shadow keeps.

    `text` is that statement, with its parameters as `$n`. The shadow may prepare it, since it reads nothing; running it
    would fail there, for the analyst's role may not.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Executing:
    """EXECUTE of what was prepared under `name`, which only the shadow knows, with `count` arguments.

    `given` is the text after the name, which starts at `given_at`: the arguments in their parentheses, or nothing.
    `explain` is the EXPLAIN with its options before it, or empty.
    """

    name: str
    given: str
    given_at: int
    count: int
    explain: str = ""


Statement: TypeAlias = PassThrough | SetKeyhole | Asking | Explaining | Preparing | Executing


def split(sql: str) -> tuple[StatementText, ...]:
    """The statements between the semicolons; none for a text of spaces and comments. Raises KH100."""
    found: list[StatementText] = []
    first: Token | None = None
    last: Token | None = None
    for token in tokens(sql):
        if token.is_symbol(";"):
            if first is not None and last is not None:
                found.append(StatementText(text=sql[first.start : last.end], offset=first.start))
            first = last = None
        else:
            first, last = first or token, token
    if first is not None and last is not None:
        found.append(StatementText(text=sql[first.start : last.end], offset=first.start))
    return tuple(found)


def classify(text: str, catalog: Catalog) -> Statement:
    """What one statement is.

    Raises KH100, KH101-KH108, KH2xx where keys cannot be resolved, KH402, KH403, with positions in `text`.
    """
    found = tokens(text)
    if found and found[-1].is_symbol(";"):
        found = found[:-1]
    for token in found:
        if token.is_symbol(";"):
            raise KeyholeError(
                "KH108",
                "several statements where one is expected",
                hint="Send one statement at a time.",
                position=token.start + 1,
            )
    if not found:
        return PassThrough("empty")
    try:
        return _classified(text, found, catalog)
    except RecursionError:
        raise KeyholeError("KH100", "the statement is nested too deeply") from None


def _classified(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    first = found[0]
    if first.is_symbol("(") or first.is_word("select", "with", "values", "table"):
        return _query(text, found, catalog)
    handler = _HANDLERS.get(first.value) if first.kind == "word" else None
    if handler is None:
        raise refused(f"{first.value.upper()[:40]} is not allowed", position=first.start + 1)
    check_functions(found)
    return handler(text, found, catalog)


def _query(text: str, found: tuple[Token, ...], catalog: Catalog) -> PassThrough | Asking:
    check_functions(found)
    return embed(text, found, catalog) or PassThrough("select")


def _passed(kind: str) -> Callable[[str, tuple[Token, ...], Catalog], Statement]:
    def handler(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
        return PassThrough(kind)

    return handler


def _transaction(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    for token in found[1:]:
        if token.is_word("prepared"):
            raise refused("two-phase transactions are not allowed", position=found[0].start + 1, hint="Use COMMIT.")
    return PassThrough("transaction")


def _set(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    rest = found[1:]
    local = bool(rest) and rest[0].is_word("local")
    if rest and rest[0].is_word("local", "session") and not (len(rest) > 1 and rest[1].is_word("authorization")):
        rest = rest[1:]
    if not rest:
        raise KeyholeError("KH100", "SET names no setting", position=found[0].start + 1)
    at = rest[0].start + 1
    if rest[0].is_word("transaction", "characteristics", "constraints"):
        return PassThrough("set")
    if rest[0].is_word("role") or (len(rest) > 1 and rest[1].is_word("authorization")):
        raise refused("the role of a session cannot be changed", position=at, hint="Connect as another analyst.")
    if rest[0].is_word("time") and len(rest) > 1 and rest[1].is_word("zone"):
        return PassThrough("set")
    if rest[0].is_word("names", "schema"):
        return PassThrough("set")
    name, value = _assignment(text, rest)
    if not name.startswith("keyhole."):
        check_setting(name, value, position=at)
        return PassThrough("set")
    value_text = _value(value)
    try:
        _check(name, value_text, catalog)
    except KeyholeError as error:
        raise KeyholeError(error.code, error.message, detail=error.detail, hint=error.hint, position=at) from None
    return SetKeyhole(name=name, value_text=value_text, local=local)


def _name(rest: tuple[Token, ...]) -> tuple[str, int]:
    """A possibly dotted setting's name in lower case, and how many tokens it takes."""
    name, taken = rest[0].value.lower(), 1
    while len(rest) > taken + 1 and rest[taken].is_symbol(".") and rest[taken + 1].names:
        name += "." + rest[taken + 1].value.lower()
        taken += 2
    return name, taken


def _assignment(text: str, rest: tuple[Token, ...]) -> tuple[str, tuple[Token, ...]]:
    name, taken = _name(rest)
    if len(rest) < taken + 2 or not (rest[taken].is_symbol("=") or rest[taken].is_word("to")):
        joined = len(rest) > taken and rest[taken].kind == "symbol" and rest[taken].value.startswith("=")
        if not (joined and len(rest) > taken + 1):
            raise KeyholeError("KH100", f"SET {name[:60]} needs a value", position=min(rest[-1].end + 1, len(text)))
        # "=-5": the lexer keeps operators together as PostgreSQL does
        return name, (rest[taken]._replace(value=rest[taken].value[1:]), *rest[taken + 1 :])
    return name, rest[taken + 1 :]


def _value(value: tuple[Token, ...]) -> str | None:
    if len(value) == 1 and value[0].is_word("default"):
        return None
    return "".join(", " if token.is_symbol(",") else token.value for token in value)


def _check(name: str, value_text: str | None, catalog: Catalog) -> None:
    if name.startswith(stored_parameters.PREFIX):
        stored_parameters.check(name, value_text, catalog)
    else:
        check(name, value_text)


def _reset(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    if len(found) < 2:
        raise KeyholeError("KH100", "RESET names no setting", position=found[0].start + 1)
    at = found[1].start + 1
    if found[1].is_word("role") or found[1].is_word("session"):
        raise refused("the role of a session cannot be changed", position=at, hint="Connect as another analyst.")
    name, _ = _name(found[1:])
    if name.startswith("keyhole."):
        _check(name, None, catalog)
    elif name not in ("all", "time"):
        check_setting(name, (Token("word", "on", 0, 0),), position=at)
    return PassThrough("reset")


def _inner(text: str, found: tuple[Token, ...], start: int) -> tuple[str, tuple[Token, ...]]:
    """The statement from a token on, in a text where every character keeps its position."""
    at = found[start].start
    return " " * at + text[at:], found[start:]


def _after(found: tuple[Token, ...], word: str) -> int | None:
    """The index of the token after the first `word` outside parentheses."""
    depth = 0
    for index, token in enumerate(found):
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and token.is_word(word) and index + 1 < len(found):
            return index + 1
    return None


def _held(word: str, what: str, text: str, found: tuple[Token, ...], catalog: Catalog) -> PassThrough | Asking:
    """The query after `word` in DECLARE and PREPARE."""
    start = _after(found, word)
    if start is None:
        raise refused(f"{found[0].value.upper()} of this form is not allowed", position=found[0].start + 1)
    inner, rest = _inner(text, found, start)
    if not (rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table")):
        raise refused(f"{what} of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    result = _query(inner, rest, catalog)
    if isinstance(result, PassThrough):
        return PassThrough(found[0].value)
    at, first = rest[0].start, result.outer[0]
    assert isinstance(first, str)
    return replace(result, outer=(text[:at] + first[at:], *result.outer[1:]))


def _declare(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """A cursor over a question: the question is answered when the cursor is declared, and FETCH reads the answer.

    Declared over no keys first, and closed, it shows whether its name is free.
    """
    result = _held("for", "a cursor", text, found, catalog)
    if not isinstance(result, Asking):
        return result
    name = text[found[1].start : found[1].end]
    return replace(result, rehearsal=(f"CLOSE {name}",))


def _prepare(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    result = _held("as", "PREPARE", text, found, catalog)
    if isinstance(result, PassThrough):
        return result
    start = _after(found, "as")
    assert start is not None
    return Preparing(text=text[found[start].start : found[-1].end])


def held(text: str, catalog: Catalog) -> str | None:
    """What Keyhole answers of a statement that was prepared, in SQL or through the protocol; None if it does nothing.

    Raises KH1xx, KH2xx as `classify` does.
    """
    parts = split(text)
    if len(parts) != 1:
        return None  # a text that prepares a question among other statements is never sent as a whole
    match classify(parts[0].text, catalog):
        case Preparing(text=inner):
            return inner
        case Asking(rehearsal=()):
            return parts[0].text
        case _:
            return None


def _execute(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    """EXECUTE; what is no such statement is left to the shadow to refuse."""
    if len(found) < 2 or not found[1].names:
        return PassThrough("execute")
    given, count, depth = found[2:], 0, 0
    if given:
        if not given[0].is_symbol("(") or not given[-1].is_symbol(")") or len(given) < 3:
            return PassThrough("execute")
        count = 1
        for index, token in enumerate(given):
            depth += token.is_symbol("(") + token.is_symbol("[") - token.is_symbol(")") - token.is_symbol("]")
            count += depth == 1 and token.is_symbol(",")
            if depth == 0 and index + 1 < len(given):
                return PassThrough("execute")
    at = found[1].end
    return Executing(name=found[1].value, given=text[at : found[-1].end], given_at=at, count=count)


def _explain(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    start, analyze, json = _explain_options(found)
    if start >= len(found):
        raise KeyholeError("KH100", "EXPLAIN needs a statement", position=found[-1].end)
    inner, rest = _inner(text, found, start)
    if rest[0].is_word("execute"):
        result = _execute(inner, rest, catalog)
    elif rest[0].is_symbol("(") or rest[0].is_word("select", "with", "values", "table"):
        result = _query(inner, rest, catalog)
    else:
        raise refused(f"EXPLAIN of {rest[0].value.upper()[:40]} is not allowed", position=rest[0].start + 1)
    if analyze is not None:
        raise refused(
            "EXPLAIN ANALYZE is not allowed",
            position=analyze + 1,
            detail="It would run what it explains.",
            hint="Use EXPLAIN without ANALYZE; for a question it costs nothing and shows the plan.",
        )
    if isinstance(result, Executing):
        return replace(result, explain=text[found[0].start : rest[0].start])
    if not isinstance(result, Asking):
        return PassThrough("explain")
    questions = [part for part in result.embedded if isinstance(part, Embedded)]
    if len(questions) != 1 or len(result.embedded) != 1:
        raise KeyholeError(
            "KH106",
            "EXPLAIN explains one question",
            hint="Explain each question on its own.",
            position=found[start].start + 1,
        )
    return Explaining(question=questions[0], format="json" if json else "text")


def _explain_options(found: tuple[Token, ...]) -> tuple[int, int | None, bool]:
    """Where the explained statement starts, where ANALYZE stands, and whether the format is JSON."""
    index, analyze, json = 1, None, False
    if len(found) > 2 and found[1].is_symbol("(") and not found[2].is_word("select", "with", "values", "table"):
        while index < len(found) and not found[index].is_symbol(")"):
            word, value = found[index], found[index + 1] if index + 1 < len(found) else found[index]
            if word.is_word("analyze", "analyse") and value.value not in ("off", "false", "0"):
                analyze = word.start
            if word.is_word("format"):
                if value.value.lower() not in ("text", "json"):
                    raise KeyholeError(
                        "KH106",
                        "EXPLAIN gives text or JSON",
                        hint="EXPLAIN (FORMAT JSON) ...",
                        position=value.start + 1,
                    )
                json = value.value.lower() == "json"
            index += 1
        return index + 1, analyze, json
    while index < len(found) and found[index].is_word("analyze", "analyse", "verbose"):
        if not found[index].is_word("verbose"):
            analyze = found[index].start
        index += 1
    return index, analyze, json


_HANDLERS: dict[str, Callable[[str, tuple[Token, ...], Catalog], Statement]] = {
    "show": _passed("show"),
    "set": _set,
    "reset": _reset,
    "begin": _transaction,
    "start": _transaction,
    "commit": _transaction,
    "end": _transaction,
    "rollback": _transaction,
    "abort": _transaction,
    "savepoint": _transaction,
    "release": _transaction,
    "declare": _declare,
    "fetch": _passed("fetch"),
    "move": _passed("move"),
    "close": _passed("close"),
    "prepare": _prepare,
    "execute": _execute,
    "deallocate": _passed("deallocate"),
    "discard": _passed("discard"),
    "unlisten": _passed("unlisten"),
    "explain": _explain,
}

__all__ = [
    "Asking",
    "Embedded",
    "EmbeddedVirtual",
    "Executing",
    "Explaining",
    "PassThrough",
    "Preparing",
    "SetKeyhole",
    "Statement",
    "StatementText",
    "classify",
    "held",
    "split",
]
