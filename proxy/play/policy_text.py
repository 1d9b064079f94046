"""The slider's findings as sections of a policy, which an owner may copy and change."""

import math

from proxy.play.afford import FNR, FPR
from proxy.play.tradeoff import compute_alarm_tolerance

_THRESHOLD = 60  # rows at least: a threshold of fewer tolerances than ten is no clear one


def write_policy(*, epsilon: float, looks: int) -> str:
    """Return policy text: a table of presences with a daily monitor, at the tolerance that the epsilon affords.

    The owner must have the table that it names. `keyhole check` says what is missing.
    """
    every = max(1, 1440 // looks)
    tolerance = math.ceil(compute_alarm_tolerance(epsilon, looks=looks))
    return f"""\
# One row is one presence of one person in one region; a day has {looks} looks.
# At {epsilon:g} a region and day, a monitor affords a tolerance of {tolerance} rows.
[tables.presence]
privacy_unit = "row"
refresh = "live"
append_only = true

[monitors.crowded]
sql = "SELECT region, day FROM presence GROUP BY region, day HAVING count(*) > {max(_THRESHOLD, 10 * tolerance)}"
window = "day"
every = "{every} minutes"
from = "2026-01-01"
until = "2026-12-31"
fnr = {FNR}
fpr = {FPR}
tolerance = "{tolerance}"
"""
