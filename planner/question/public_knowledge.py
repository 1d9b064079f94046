"""An analyst's knowledge of the groups that fail anyway: its text, and its meaning for a functional.

    count: 240 far by 90, 28 near by 75; avg(age): 10 far by 5, 2 near by 1.5

It means: of the groups that fail a condition on a count, 240 are below its threshold by at least 90, and 28 others by
at least 75. A part without a name holds for every aggregate that no other part names.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import floor

from mechanisms.protocol import Knowledge
from planner.catalog.tolerance import split_outside_parentheses, squeeze_name
from planner.errors import KeyholeError
from planner.question.question import Functional, Question, write_aggregate

_NUMBER = r"\d{1,15}(?:\.\d{1,15})?"
_PART = re.compile(
    rf"(?:(?P<name>.+):)?\s*(?P<far>\d{{1,9}})\s+far\s+by\s+(?P<far_by>{_NUMBER})\s*,"
    rf"\s*(?P<near>\d{{1,9}})\s+near\s+by\s+(?P<near_by>{_NUMBER})",
    flags=re.ASCII | re.DOTALL | re.IGNORECASE,
)
_HINT = "SET keyhole.public_knowledge = '240 far by 90, 28 near by 75';"


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Public knowledge for MiM: at least how many groups fail, and by how much, in the analyst's unit."""

    far_groups: int
    far_by: Decimal
    near_groups: int
    near_by: Decimal


@dataclass(frozen=True, slots=True)
class PublicKnowledge:
    """The shortfalls by aggregate.

    The keys of `named_shortfalls` are texts, functions or columns of aggregates. `default_shortfall` is for all
    others.
    """

    default_shortfall: Shortfall | None
    named_shortfalls: tuple[tuple[str, Shortfall], ...]

    def find_shortfall(self, names: tuple[str, ...]) -> Shortfall | None:
        """Return the public shortfall of an aggregate that has these names, the most specific name first."""
        named = dict(self.named_shortfalls)
        return next((named[name] for name in map(squeeze_name, names) if name in named), self.default_shortfall)


def parse_public_knowledge(text: str) -> PublicKnowledge:
    """Parse the public knowledge in `text`. A blank text has none. Raise KH402 for a text in any other form."""
    default: Shortfall | None = None
    named: dict[str, Shortfall] = {}
    for part in split_outside_parentheses(text, by=";") if text.strip() else ():
        match = _PART.fullmatch(part)
        if match is None:
            raise _refuse(f"{part[:60]!r} is not NUMBER far by AMOUNT, NUMBER near by AMOUNT")
        name, shortfall = squeeze_name(match["name"] or ""), _read_shortfall(match)
        if name in named or (not name and default is not None):
            raise _refuse(f"{match['name'] or 'every aggregate'} is given twice")
        if name:
            named[name] = shortfall
        else:
            default = shortfall
    return PublicKnowledge(default_shortfall=default, named_shortfalls=tuple(named.items()))


def find_knowledge(question: Question) -> tuple[Knowledge | None, ...]:
    """Return the knowledge about each functional from the question's settings, in integer steps.

    A name that no aggregate of the question has is ignored. Raises KH402 for a setting in any other form.
    """
    known = parse_public_knowledge(question.accuracy.public_knowledge)
    told = tuple(
        _convert_to_steps(functional, known.find_shortfall(_list_names(functional)))
        for functional in question.functionals
    )
    return told if any(one is not None for one in told) else ()


def _read_shortfall(match: re.Match[str]) -> Shortfall:
    far_by, near_by = Decimal(match["far_by"]), Decimal(match["near_by"])
    if not 0 < near_by <= far_by:
        raise _refuse("the near groups are short by more than 0, and by no more than the far ones")
    return Shortfall(int(match["far"]), far_by, int(match["near"]), near_by)


def _list_names(functional: Functional) -> tuple[str, ...]:
    """Return the names that the text may use for an aggregate, as for tolerances."""
    text = write_aggregate(functional)
    argument = text.split(" FILTER ")[0]
    return (text, argument, argument.split("(")[0], *functional.columns)


def _convert_to_steps(functional: Functional, shortfall: Shortfall | None) -> Knowledge | None:
    if shortfall is None:
        return None

    def steps(amount: Decimal) -> int:
        return floor(Fraction(amount) * functional.rows / Fraction(functional.unit_size))

    if not steps(shortfall.near_by):
        raise _refuse(f"{shortfall.near_by} is less than a step of {functional.name}")
    return Knowledge(
        far_keys=shortfall.far_groups,
        far_distance=steps(shortfall.far_by),
        near_keys=shortfall.near_groups,
        near_distance=steps(shortfall.near_by),
    )


def _refuse(message: str) -> KeyholeError:
    return KeyholeError("KH402", f"keyhole.public_knowledge: {message}", hint=_HINT)
