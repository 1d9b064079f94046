"""SET and RESET: settings of Keyhole are checked, those of PostgreSQL are passed on where they are harmless."""

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.parser.lexer import Token
from planner.statements import stored_parameters
from planner.statements.allow_list import check_setting
from planner.statements.kinds import PassThrough, SetKeyhole, Statement
from planner.statements.settings import check
from planner.statements.statement_refusals import names_no_setting, role_refused, without_value


def set_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read SET, except of roles. Raise KH100, KH102, KH402, KH403 with positions in the text."""
    rest = found[1:]
    local = bool(rest) and rest[0].is_word("local")
    if rest and rest[0].is_word("local", "session") and not (len(rest) > 1 and rest[1].is_word("authorization")):
        rest = rest[1:]
    if not rest:
        raise names_no_setting(found[0])
    at = rest[0].start + 1
    if rest[0].is_word("transaction", "characteristics", "constraints"):
        return PassThrough("set")
    if _own_role(rest):
        return PassThrough("set")
    if rest[0].is_word("role") or (len(rest) > 1 and rest[1].is_word("authorization")):
        raise role_refused(position=at)
    if rest[0].is_word("time") and len(rest) > 1 and rest[1].is_word("zone"):
        return PassThrough("set")
    if rest[0].is_word("names", "schema") or (rest[0].is_word("xml") and len(rest) > 1 and rest[1].is_word("option")):
        return PassThrough("set")
    name, value = _assignment(text, rest)
    if not name.startswith("keyhole."):
        check_setting(name, value, position=at)
        return PassThrough("set")
    value_text = _value(value)
    try:
        check_own_setting(name, value_text, catalog)
    except KeyholeError as error:
        raise KeyholeError(error.code, error.message, detail=error.detail, hint=error.hint, position=at) from None
    return SetKeyhole(name=name, value_text=value_text, local=local)


def _own_role(rest: tuple[Token, ...]) -> bool:
    """Return True if pools send this to return to the role that they logged in as."""
    words = tuple(token.value for token in rest if token.kind == "word")
    return len(words) == len(rest) and words in (("role", "none"), ("session", "authorization", "default"))


def _name(rest: tuple[Token, ...]) -> tuple[str, int]:
    """Return a possibly dotted setting's name in lower case, and its number of tokens."""
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
            raise without_value(name, position=min(rest[-1].end + 1, len(text)))
        # "=-5": the lexer keeps operators together as PostgreSQL does
        return name, (rest[taken]._replace(value=rest[taken].value[1:]), *rest[taken + 1 :])
    return name, rest[taken + 1 :]


def _value(value: tuple[Token, ...]) -> str | None:
    if len(value) == 1 and value[0].is_word("default"):
        return None
    return "".join(", " if token.is_symbol(",") else token.value for token in value)


def check_own_setting(name: str, value_text: str | None, catalog: Catalog) -> None:
    """Refuse a value of a `keyhole.` setting (KH402) or a name of none (KH403): by SET and at connection start alike.

    `name` is in lower case. None means the default.
    """
    if name.startswith(stored_parameters.PREFIX):
        stored_parameters.check(name, value_text, catalog)
    else:
        check(name, value_text, catalog.defaults)


def reset_statement(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    """Read RESET, which restores the session's initial values, its own role included. Raise KH100, KH403."""
    if len(found) < 2:
        raise names_no_setting(found[0])
    name, _ = _name(found[1:])
    if name.startswith("keyhole."):
        check_own_setting(name, None, catalog)
    return PassThrough("reset")
