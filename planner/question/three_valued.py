"""SQL's three truth values as two-valued conditions: where something is true, false, not true, and not false."""

from dataclasses import dataclass

from planner.question.condition import ALWAYS, NEVER, Compare, Condition, IsNull, Or, join_any


@dataclass(frozen=True, slots=True)
class Truth:
    """The four cases of a condition's truth, each as a condition on the rows.

    It may be true, false, not true (false or unknown), or not false (true or unknown).
    """

    true: Condition
    false: Condition
    not_true: Condition
    not_false: Condition

    def negate(self) -> "Truth":
        """Return the truth of the condition's NOT."""
        return Truth(self.false, self.true, self.not_false, self.not_true)


def make_constant(*, value: bool) -> Truth:
    """Return the truth of a constant condition: `value` on every row."""
    held, not_held = (ALWAYS, NEVER) if value else (NEVER, ALWAYS)
    return Truth(held, not_held, not_held, held)


UNKNOWN = Truth(NEVER, NEVER, ALWAYS, ALWAYS)


def make_known_unless_null(column: str, *, true: Condition, false: Condition) -> Truth:
    """Return the truth of a condition that is true or false as given, and unknown if the column is NULL."""
    null = IsNull(column)
    return Truth(true, false, _join_null(false, null), _join_null(true, null))


def _join_null(condition: Condition, null: IsNull) -> Condition:
    """Return the disjunction with a NULL test.

    For a comparison it skips the slow check if one part implies the other.
    """
    return Or((condition, null)) if isinstance(condition, Compare) else join_any((condition, null))
