"""A set of names that answers "maybe" or "no", in bounded memory."""

_NAME_BYTES = 60  # of the 63 that PostgreSQL keeps of a name: whoever asks by fewer finds too much, never too little


class PossibleNames:
    """Names of prepared statements, in any encoding and at any length.

    Guarantee: whatever was added, and not dropped since, is found. Of names that may be the same to PostgreSQL all are
    found if one is; once there are more than `most`, every name is found.
    """

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._keys: set[bytes] = set()
        self._all = False

    def __bool__(self) -> bool:
        return self._all or bool(self._keys)

    def __contains__(self, name: str | bytes) -> bool:
        return self._all or _key(name) in self._keys

    def add(self, name: str | bytes) -> None:
        """One name more."""
        if not self._all:
            self._keys.add(_key(name))
            self._all = len(self._keys) > self._most
            if self._all:
                self._keys.clear()

    def discard(self, name: bytes) -> None:
        """One name less, if it cannot be another one."""
        if name.isascii() and len(name) < _NAME_BYTES:
            self._keys.discard(name)

    def keep(self, names: set[bytes]) -> None:
        """Drop all that are none of these."""
        keys = {_key(name) for name in names}
        self._keys = keys if self._all else self._keys & keys
        self._all = len(self._keys) > self._most


def same(one: str | bytes, other: str | bytes) -> bool:
    """Whether two names may be the same to PostgreSQL."""
    return _key(one) == _key(other)


def _key(name: str | bytes) -> bytes:
    """What names that may be the same have in common: their first bytes, if these are the same in every encoding."""
    raw = (name.encode("utf-8", "replace") if isinstance(name, str) else name)[:_NAME_BYTES]
    return raw if raw.isascii() else b"\xff"
