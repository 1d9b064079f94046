"""Sensitive values and their frequency among all people, from `--sensitive COLUMN=VALUE:f`."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from planner.functionals.said_shares import ShareThreshold
from planner.policy.file import Policy
from planner.policy.sections import ColumnSection
from proxy.owner.typed_figures import read_share

_FORM = 'say COLUMN=VALUE:SHARE, such as "education=Doctorate:0.012"'


@dataclass(frozen=True, slots=True)
class SensitiveValue:
    """One value of a column, with the share of all people who have it, as publicly known."""

    column: str
    value: str
    base_rate: float

    @property
    def typed_text(self) -> str:
        """Return the value as the owner typed it, without the share."""
        return f"{self.column} = {self.value}"

    def is_counted_by(self, share: ShareThreshold) -> bool:
        """Return True if a question's share counts the members with this value."""
        if share.columns != (self.column,) or share.value is None:
            return False
        return _normalise(share.value) == _normalise(self.value)


def parse_sensitive(text: str) -> SensitiveValue:
    """Parse `COLUMN=VALUE:f`. Raise ValueError with a message for the person who typed it."""
    head, _, rate = text.rpartition(":")
    column, _, value = head.partition("=")
    if not column.strip() or not value.strip():
        raise ValueError(f"{_FORM}, with a share between 0 and 1")
    try:
        base_rate = float(read_share(rate))
    except ValueError as error:
        raise ValueError(f"{_FORM}; {error}") from None
    return SensitiveValue(column.strip(), value.strip(), base_rate)


def check_columns(policy: Policy, values: Sequence[SensitiveValue]) -> None:
    """Raise ValueError for a sensitive value that cannot be checked, with a message for the person who typed it.

    A value cannot be checked if no private table has the column, if the policy's declarations exclude the value, or if
    two shares are given for it.
    """
    exposed = {name for table in policy.private_tables.values() for name in table.columns}
    strange = next((one.column for one in values if one.column not in exposed), None)
    if strange is not None:
        raise ValueError(f"no private table of the policy has a column {strange}")
    for number, one in enumerate(values):
        columns = [table.columns.get(one.column) for table in policy.private_tables.values()]
        if not any(section is not None and _can_occur(one, section) for section in columns):
            raise ValueError(f"{one.value} is no value that the policy declares for {one.column}")
        if any(one.typed_text == other.typed_text for other in values[:number]):
            raise ValueError(f"{one.typed_text} has one share of everybody")


def _can_occur(wanted: SensitiveValue, section: ColumnSection) -> bool:
    """Return True if the value is within the column's bounds, and among its listed key values if there are any."""
    if section.key is not None and section.key.values is not None:
        return _normalise(wanted.value) in {_normalise(str(value)) for value in section.key.values}
    try:
        number = Decimal(wanted.value)
    except InvalidOperation:
        return True
    return section.bounds is None or (number.is_finite() and section.bounds[0] <= number <= section.bounds[1])


def _normalise(value: str) -> str:
    """Return a value in one spelling, so that, for example, 1 in a sum equals true in a condition."""
    return {"true": "1", "false": "0"}.get(value.lower(), value)
