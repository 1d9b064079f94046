"""PostgreSQL's text of a one-dimensional array: `{flu,"common cold",NULL}`."""

import re

# Nothing backtracks, so that reading a client's text takes time in proportion to its length.
_BARE = r'[^{},"\\\s](?:[^{},"\\]*[^{},"\\\s])?'
_ITEM = re.compile(rf'\s*+(?:"((?:[^"\\]++|\\.)*+)"|({_BARE}))\s*+([,}}])', re.DOTALL)


def read_members(text: str) -> list[str | None] | None:
    """Return the elements of a one-dimensional array literal, None for NULL. Return None for any other text."""
    text = text.strip()
    if not text.startswith("{"):
        return None
    if not text[1:-1].strip() and text.endswith("}"):
        return []
    found: list[str | None] = []
    at = 1
    while True:
        item = _ITEM.match(text, at)
        if item is None:
            return None
        if item[1] is not None:
            found.append(re.sub(r"\\(.)", r"\1", item[1], flags=re.DOTALL))
        else:
            found.append(None if item[2].strip().lower() == "null" else item[2].strip())
        at = item.end()
        if item[3] == "}":
            return found if at == len(text) else None
