"""SET and RESET: settings of Keyhole are checked, harmless ones of PostgreSQL are passed on."""

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.parser.lexer import Token
from planner.statements import stored_parameters
from planner.statements.allow_list import check_setting
from planner.statements.kinds import KeyholeSetting, PassThrough, Statement
from planner.statements.settings import check_setting_value
from planner.statements.statement_refusals import refuse_nameless_set, refuse_role, refuse_set_without_value


def read_set(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:
    """Read SET, except of roles. Raise KH100, KH102, KH402 and KH403, with positions in the text."""
    rest = found[1:]
    local = bool(rest) and rest[0].is_word("local")
    if rest and rest[0].is_word("local", "session") and not (len(rest) > 1 and rest[1].is_word("authorization")):
        rest = rest[1:]
    if not rest:
        raise refuse_nameless_set(found[0])
    at = rest[0].start + 1
    if rest[0].is_word("transaction", "characteristics", "constraints"):
        return PassThrough("set")
    if _is_own_role(rest):
        return PassThrough("set")
    if rest[0].is_word("role") or (len(rest) > 1 and rest[1].is_word("authorization")):
        raise refuse_role(position=at)
    if rest[0].is_word("time") and len(rest) > 1 and rest[1].is_word("zone"):
        return PassThrough("set")
    if rest[0].is_word("names", "schema") or (rest[0].is_word("xml") and len(rest) > 1 and rest[1].is_word("option")):
        return PassThrough("set")
    name, value = _read_assignment(text, rest)
    if not name.startswith("keyhole."):
        check_setting(name, value, position=at)
        return PassThrough("set")
    value_text = _read_value(value)
    try:
        check_own_setting(name, value_text, catalog)
    except KeyholeError as error:
        raise KeyholeError(error.code, error.message, detail=error.detail, hint=error.hint, position=at) from None
    return KeyholeSetting(name=name, value_text=value_text, is_local=local)


def _is_own_role(rest: tuple[Token, ...]) -> bool:
    """Return True if the statement returns to the role of the login, as connection pools do."""
    words = tuple(token.value for token in rest if token.kind == "word")
    return len(words) == len(rest) and words in (("role", "none"), ("session", "authorization", "default"))


def _read_name(rest: tuple[Token, ...]) -> tuple[str, int]:
    """Return a possibly dotted setting's name in lower case, and its number of tokens."""
    name, taken = rest[0].value.lower(), 1
    while len(rest) > taken + 1 and rest[taken].is_symbol(".") and rest[taken + 1].is_name:
        name += "." + rest[taken + 1].value.lower()
        taken += 2
    return name, taken


def _read_assignment(text: str, rest: tuple[Token, ...]) -> tuple[str, tuple[Token, ...]]:
    name, taken = _read_name(rest)
    if len(rest) < taken + 2 or not (rest[taken].is_symbol("=") or rest[taken].is_word("to")):
        joined = len(rest) > taken and rest[taken].kind == "symbol" and rest[taken].value.startswith("=")
        if not (joined and len(rest) > taken + 1):
            raise refuse_set_without_value(name, position=min(rest[-1].end + 1, len(text)))
        # "=-5": the lexer keeps operators together as PostgreSQL does
        return name, (rest[taken]._replace(value=rest[taken].value[1:]), *rest[taken + 1 :])
    return name, rest[taken + 1 :]


def _read_value(value: tuple[Token, ...]) -> str | None:
    if len(value) == 1 and value[0].is_word("default"):
        return None
    return "".join(", " if token.is_symbol(",") else token.value for token in value)


def check_own_setting(name: str, value_text: str | None, catalog: Catalog) -> None:
    """Raise KH402 for a bad value of a `keyhole.` setting, and KH403 for an unknown name.

    SET and connection start use it alike. `name` is in lower case. None means the default.
    """
    if name.startswith(stored_parameters.PREFIX):
        stored_parameters.check_parameter(name, value_text, catalog)
    else:
        check_setting_value(name, value_text, catalog.defaults)


def read_reset(text: str, found: tuple[Token, ...], catalog: Catalog) -> Statement:  # noqa: ARG001
    """Read RESET, which restores the session's initial values, its own role included.

    Raise KH100 without a name, KH403 for an unknown name under `keyhole.`.
    """
    if len(found) < 2:
        raise refuse_nameless_set(found[0])
    name, _ = _read_name(found[1:])
    if name.startswith("keyhole."):
        check_own_setting(name, None, catalog)
    return PassThrough("reset")
