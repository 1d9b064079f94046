"""The corpus of refusals for tests of their hints: over which catalogs it is asked, and what a hint shows to type."""

import re

# The files of tests/spec with refusals, and the catalog that each is about. What BI tools and clients send around
# questions is asked over a server, by tests/end_to_end/answers/test_corpus_hints.py.
CORPUS = {
    "aggregates.sql": "retail",
    "wrappings.sql": "retail",
    "joined.sql": "retail",
    "questions.sql": "retail",
    "refused.sql": "retail",
    "written_by_tools.sql": "retail",
    "flattened.sql": "retail",
    "guards.sql": "retail",
    "computed_keys.sql": "retail",
    "key_expressions.sql": "retail",
    "row_conditions.sql": "retail",
    "scorecards.sql": "retail",
    "per_key.sql": "rooms",
    "per_unit.sql": "stays",
    "same_unit.sql": "people",
}
REFUSING = {"keyhole.guard": "refuse"}
"""The settings under which the corpus is refused: with guards that Keyhole adds some of it would be answered."""
SETTING = re.compile(r"(?:SET|RESET) keyhole\.[^;]*;")
_ATOM = re.compile(
    r"(?:Ask|ask:?|middle:|for example|constant:) "
    r"(count\(.+?\)(?: >=? \d+)?|max\(\w+\) > \d+ AND min\(\w+\) < \d+|percentile_disc.*? > (?:t|\d+)"
    r"|(?:sum|avg|stddev\w*)\(\w+\) > \d+)"
    r"(?:\.$|[;,] | or |$)"
)
_LETTERS = {"x > t": "age > 65", "ORDER BY x) > t": "ORDER BY age) > 65", ">= m": ">= 40"}
_CONDITION = re.compile(r"(?:Write|Name the spellings:|Write the range:) (\w+ (?:LIKE|IN|[<>=]+) .*|\(.* OR .*\))\.$")


INSTEAD = "Instead you can ask: "


def shown_statements(hint: str) -> list[str]:
    """The whole statements in a hint: what begins with SELECT and has no placeholders, and settings by themselves."""
    if "Add: " in hint:
        return []
    settings = SETTING.findall(hint)
    _, select, rest = hint.partition("SELECT ")
    if select and "..." not in rest:
        return [*settings, f"SELECT {rest}"]
    return settings


def shown_atoms(hint: str) -> list[str]:
    """The atoms in a hint: `1.0 * a / b`, `count(...) > 40`."""
    ratio = hint.partition("Make one side a decimal: ")[2]
    if ratio:
        return [f"{ratio} > 0.5"]
    if "..." in hint:
        return []
    atoms = [atom if ">" in atom else f"{atom} > 40" for atom in _ATOM.findall(hint)]
    for letters, written in _LETTERS.items():
        atoms = [atom.replace(letters, written) for atom in atoms]
    return atoms


def shown_condition(hint: str) -> str | None:
    """A condition on rows in a hint that can be written as it stands."""
    found = _CONDITION.match(hint)
    return None if found is None else found[1]


def is_in_words(hint: str) -> bool:
    """Whether a hint shows nothing that can be typed as it stands, so that somebody has to follow it."""
    return not (
        hint.removeprefix("Instead you can ask: ").lower().startswith("select ")
        or shown_statements(hint)
        or shown_atoms(hint)
        or shown_condition(hint)
        or "Add: " in hint
        or "EXPLAIN " in hint
    )
