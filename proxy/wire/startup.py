"""The login request of a client. Its settings, from parameters and from `options`, must be on an allow-list."""

from dataclasses import dataclass

from planner.errors import KeyholeError
from planner.statements.allow_list import HARMLESS_SETTINGS, is_harmless
from planner.statements.kinds import OWN_NAMES
from proxy.wire.frontend import NEWEST_MINOR, Startup


@dataclass(frozen=True, slots=True)
class Login:
    """A login: the user, the database and the settings of the session.

    `extensions` are the requested `_pq_.` options, of which Keyhole knows none. `minor_version` is the minor version of
    the protocol that both sides use.
    """

    user: str
    database: str
    settings: tuple[tuple[str, str], ...]
    extensions: tuple[bytes, ...]
    minor_version: int


def read_login(startup: Startup) -> Login:
    """Return the login that a startup message requests.

    Raise KH405 if it names no user, and KH404 for a setting that is not on the allow-list.
    """
    user = database = ""
    settings: list[tuple[str, str]] = []
    extensions: list[bytes] = []
    for raw_name, raw_value in startup.parameters:
        name, value = _decode_text(raw_name), _decode_text(raw_value)
        match name:
            case "user":
                user = value
            case "database":
                database = value
            case "options":
                settings.extend(_parse_options(value))
            case "replication":
                if value.lower() not in ("false", "off", "no", "0"):
                    raise KeyholeError("KH404", "replication is not served")
            case _ if name.startswith("_pq_."):
                extensions.append(raw_name)
            case _:
                settings.append((name, value))
    if not user:
        raise KeyholeError("KH405", "no user name in the startup packet")
    for name, value in settings:
        _check_setting_allowed(name, value)
    return Login(
        user=user,
        database=database or user,
        settings=tuple(settings),
        extensions=tuple(extensions),
        minor_version=min(startup.version[1], NEWEST_MINOR),
    )


def _check_setting_allowed(name: str, value: str) -> None:
    lowered = name.lower()
    if not is_harmless(lowered, value) and not lowered.startswith(OWN_NAMES):
        raise KeyholeError(
            "KH404",
            f'the setting "{name}" cannot be given at connection start',
            detail=f"A connection may set what SET may set: {', '.join(sorted(HARMLESS_SETTINGS))}, keyhole.*.",
        )


def _decode_text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise KeyholeError("KH405", "the startup packet is not UTF-8") from None


def _parse_options(text: str) -> list[tuple[str, str]]:
    """Return the settings in a command line such as `-c keyhole.fnr=0.01 --search_path=public`."""
    settings: list[tuple[str, str]] = []
    words = iter(_split_words(text))
    for word in words:
        if word == "-c":
            assignment = next(words, "")
        elif word.startswith(("-c", "--")):
            assignment = word[2:]
        else:
            raise KeyholeError("KH404", "options may hold only -c name=value and --name=value")
        name, separator, value = assignment.partition("=")
        if not separator or not name:
            raise KeyholeError("KH404", "options may hold only -c name=value and --name=value")
        settings.append((name.replace("-", "_"), value))
    return settings


def _split_words(text: str) -> list[str]:
    """Split a text at white space. A backslash makes the next character literal."""
    words: list[str] = []
    current: list[str] | None = None
    characters = iter(text)
    for character in characters:
        if character.isspace():
            if current is not None:
                words.append("".join(current))
            current = None
        else:
            current = [] if current is None else current
            current.append(next(characters, "") if character == "\\" else character)
    if current is not None:
        words.append("".join(current))
    return words
