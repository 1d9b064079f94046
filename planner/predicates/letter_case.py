"""`lower(x) LIKE pattern` and ILIKE as LIKE of every spelling, where all collations agree on these.

Every collation of PostgreSQL lowers the ASCII letters but I to their small ones (Turkish ones take I to a dotless one),
and no other character to one of these but U+212A to k and U+0130 to i. So without i and k a pattern of ASCII is matched
by the lowered text exactly where the text itself matches in some mixture of capitals, and length does not matter as
long as the pattern has no `_`.
"""

from itertools import product

from sqlglot import exp

from planner.errors import KeyholeError
from planner.predicates.refusals import name_spellings, unlisted_refusal

MOST_LETTERS = 6  # each doubles the spellings: at most 64 patterns of one LIKE


def escape_pattern(text: str) -> str:
    """A LIKE pattern that the text alone matches."""
    return "".join(f"\\{character}" if character in "\\%_" else character for character in text)


def spellings(characters: list[str | None], node: exp.Expr) -> list[str]:
    """The LIKE patterns, one for each mixture of capitals; None is `%`. Raises KH205 where collations differ."""
    letters = [character for character in characters if character is not None and character.isalpha()]
    certain = all(
        character is None or (character != "" and character.isascii() and character not in "iIkK")
        for character in characters
    )
    if not certain or len(letters) > MOST_LETTERS:
        raise _uncertain(node)
    choices = [
        ("%",)
        if character is None
        else tuple(dict.fromkeys((escape_pattern(character.lower()), escape_pattern(character.upper()))))
        for character in characters
    ]
    return ["".join(chosen) for chosen in product(*choices)]


def lowered_spellings(characters: list[str | None], node: exp.Expr) -> list[str]:
    """Likewise for a text that is lowered, and a pattern that is not: none if it has a capital."""
    if any(character and character.isascii() and character.isupper() for character in characters):
        spellings(characters, node)
        return []
    return spellings(characters, node)


def _uncertain(node: exp.Expr) -> KeyholeError:
    column = node.find(exp.Column)
    x = node if column is None else column
    return unlisted_refusal(
        node,
        "whether letters are alike but for capitals depends on a collation",
        detail="All collations agree on patterns of ASCII with up to six letters, without i, k and _: "
        "capital I is another letter in Turkish, and the Kelvin sign becomes a k.",
        hint=name_spellings(node, x),
    )
