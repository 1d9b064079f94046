"""SQL's three truth values as ordinary conditions: where something is true, false, not true, and not false."""

from dataclasses import dataclass

from planner.question.condition import ALWAYS, NEVER, Compare, Condition, IsNull, Or, any_of


@dataclass(frozen=True, slots=True)
class Truth:
    """Where a condition is true, false, not true (false or unknown) and not false (true or unknown)."""

    true: Condition
    false: Condition
    not_true: Condition
    not_false: Condition

    def negate(self) -> "Truth":
        """Return the condition's NOT."""
        return Truth(self.false, self.true, self.not_false, self.not_true)


def always(*, value: bool) -> Truth:
    """Return a condition of that value on every row."""
    held, not_held = (ALWAYS, NEVER) if value else (NEVER, ALWAYS)
    return Truth(held, not_held, not_held, held)


UNKNOWN = Truth(NEVER, NEVER, ALWAYS, ALWAYS)


def known_unless_null(column: str, *, true: Condition, false: Condition) -> Truth:
    """Return a condition that is true or false as said, and unknown where the column is NULL."""
    null = IsNull(column)
    return Truth(true, false, _or_null(false, null), _or_null(true, null))


def _or_null(condition: Condition, null: IsNull) -> Condition:
    """Return `any_of` both. For a comparison it skips the slow check if one of them implies the other."""
    return Or((condition, null)) if isinstance(condition, Compare) else any_of((condition, null))
