"""`lower(x) LIKE pattern` and ILIKE as LIKE of every spelling, if these are few and all collations agree on them.

Every collation of PostgreSQL lowers the ASCII letters except I to their small ones (Turkish ones lower I to a dotless
one). It lowers no other character to one of these but U+212A to k and U+0130 to i. For a pattern of ASCII without i and
k, the lowered text therefore matches exactly if the text itself matches in some mixture of capitals. The length is the
same as long as the pattern has no `_`. Other patterns of ASCII are compared with the text lowered by the C collation.
"""

from itertools import product

from sqlglot import exp

from planner.errors import KeyholeError
from planner.predicates.where_refusals import name_spellings, refuse_unlisted_expression
from planner.values.like import escape_pattern

MOST_LETTERS = 6  # each doubles the spellings: at most 64 patterns of one LIKE


def list_spellings(characters: list[str | None], node: exp.Expr) -> list[str] | None:
    """Return LIKE patterns that match any mixture of capitals. Return None if they are too many or collations differ.

    Parameters:
        characters: the characters of the pattern. None stands for `%`, and an empty text for `_`.

    Raises KH205 for letters beyond ASCII, for which the C collation has no capitals.
    """
    letters = [character for character in characters if character is not None and character.isalpha()]
    if not all(map(str.isascii, letters)):
        raise refuse_letter_case(node)
    certain = all(
        character is None or (character != "" and character.isascii() and character not in "iIkK")
        for character in characters
    )
    if not certain or len(letters) > MOST_LETTERS:
        return None
    choices = [
        ("%",)
        if character is None
        else tuple(dict.fromkeys((escape_pattern(character.lower()), escape_pattern(character.upper()))))
        for character in characters
    ]
    return ["".join(chosen) for chosen in product(*choices)]


def list_lowered_spellings(characters: list[str | None], node: exp.Expr) -> list[str] | None:
    """Return the LIKE patterns for `lower(x) LIKE pattern`.

    They are those of `list_spellings`, or an empty list if the pattern has a capital letter: lowered text never
    matches it.
    """
    if any(character and character.isascii() and character.isupper() for character in characters):
        return []
    return list_spellings(characters, node)


def lower_pattern(characters: list[str | None]) -> str:
    """Return the LIKE pattern with ASCII letters in lower case, as in the C collation."""
    return "".join(map(_lower_character, characters))


def _lower_character(character: str | None) -> str:
    if character is None:
        return "%"
    return "_" if character == "" else escape_pattern(character.lower() if character.isascii() else character)


def refuse_letter_case(node: exp.Expr) -> KeyholeError:
    """Return KH205 for letters beyond ASCII, and for changed or computed texts."""
    column = node.find(exp.Column)
    return refuse_unlisted_expression(
        node,
        "whether letters are alike but for capitals depends on a collation",
        detail="Keyhole compares letters of ASCII without capitals, in columns of the private table itself.",
        hint=name_spellings(node, node if column is None else column),
    )
