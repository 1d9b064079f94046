"""LISTEN to the channels of monitors."""

from planner.parser.lexer import read_tokens

_NAME_BYTES = 63  # PostgreSQL's NAMEDATALEN - 1, and names of monitors are ASCII
PREFIX = "keyhole_"


def name_channel(monitor: str) -> str:
    """Return the name of a monitor's notification channel, as PostgreSQL stores it.

    >>> name_channel("crowded")
    'keyhole_crowded'
    """
    return (PREFIX + monitor)[:_NAME_BYTES]


def read_channel(text: str) -> str | None:
    """Return the channel to which a statement listens. Return None for every other statement.

    >>> read_channel("LISTEN Keyhole_crowded")
    'keyhole_crowded'
    """
    found = read_tokens(text)
    if len(found) < 2 or not found[0].is_word("listen"):
        return None
    return found[1].value.encode()[:_NAME_BYTES].decode(errors="ignore")
