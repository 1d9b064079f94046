"""LISTEN, by the channel that it names: those of monitors have names of their own."""

from planner.parser.lexer import tokens

_NAME_BYTES = 63  # PostgreSQL's NAMEDATALEN - 1, and names of monitors are ASCII
PREFIX = "keyhole_"


def channel_of(monitor: str) -> str:
    """Return the channel on which a monitor notifies, as PostgreSQL keeps its name.

    >>> channel_of("crowded")
    'keyhole_crowded'
    """
    return (PREFIX + monitor)[:_NAME_BYTES]


def listened_channel(text: str) -> str | None:
    """Return the channel to which a statement listens; None for every other statement.

    >>> listened_channel("LISTEN Keyhole_crowded")
    'keyhole_crowded'
    """
    found = tokens(text)
    if len(found) < 2 or not found[0].is_word("listen"):
        return None
    return found[1].value.encode()[:_NAME_BYTES].decode(errors="ignore")
