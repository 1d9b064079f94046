"""The names of the limits on a question. NOTICEs, EXPLAIN and refusals use the same names.

Guarantee: names and figures follow from the policy, the ledger and the question alone.
"""

from decimal import ROUND_DOWN, ROUND_UP, Decimal

from accountant.errors import BalanceScope

_NAMES = {
    BalanceScope.PER_QUERY: "epsilon_per_query",
    BalanceScope.PER_PREDICATE: "the balance of a group that all analysts share",
    BalanceScope.PER_UNIT: "the balance of a privacy unit that all analysts share",
    BalanceScope.PER_TABLE: "the balance of the table that all analysts share",
    BalanceScope.ANALYST_PER_PREDICATE: "your own balance of a group",
    BalanceScope.ANALYST_PER_UNIT: "your own balance of a privacy unit",
}
_NANO = Decimal("1e-9")  # the ledger counts in it
_MOST_PLACES = 9  # those of the ledger: fewer are shown wherever they are enough


def name_limit(scope: BalanceScope, *, is_session_cap: bool = False) -> str:
    """Return the name of a limit, by the scope of its balance.

    Parameters:
        is_session_cap: True if the cap on one question is the session's own, not the owner's.
    """
    return "keyhole.max_epsilon" if is_session_cap and scope is BalanceScope.PER_QUERY else _NAMES[scope]


def write_distinct_amounts(needed_nano: int, left_nano: int) -> tuple[str, str]:
    """Return the needed and the remaining epsilon as texts, with enough digits to tell them apart.

    >>> write_distinct_amounts(1_440_000_000, 120_000_000)
    ('1.44', '0.12')
    >>> write_distinct_amounts(1_000_400_000, 1_000_000_000)
    ('1.0004', '1.0000')
    """
    needed, left = needed_nano * _NANO, left_nano * _NANO
    for places in range(2, _MOST_PLACES):
        shown = f"{needed:.{places}f}", f"{left:.{places}f}"
        if Decimal(shown[0]) > Decimal(shown[1]):
            return shown
    step = Decimal(1).scaleb(-_MOST_PLACES)
    return f"{needed.quantize(step, rounding=ROUND_UP):f}", f"{left.quantize(step, rounding=ROUND_DOWN):f}"
