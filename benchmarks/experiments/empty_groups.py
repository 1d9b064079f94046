"""Groups without rows in a large key domain: how many an answer returns in the mean.

The numbers follow from the exact distribution of the tests' looks, without runs.
"""

from benchmarks.experiments.tables import markdown
from mechanisms.keyhole.progressive import STRAY_GROUPS
from mechanisms.threshold.one_shot import calibrate_test, compute_acceptance
from mechanisms.threshold.three_zone import EmptyGroups, calibrate_three_zone, compute_exact_acceptance

THRESHOLD, FNR, FPR = 1000, 0.05, 0.10
DOMAINS = (500, 1_000_000)
TOLERANCES = (100, 300)


def empty_groups() -> str:
    """The section of the page."""
    headings = ("keys, tolerance", "one look", "usual early looks", "Keyhole's")
    table = markdown(headings, [_row(keys, tolerance) for keys in DOMAINS for tolerance in TOLERANCES])
    return f"""## Empty groups of a large domain

If all groups are empty, how many does `count(*) > {THRESHOLD:,}` return in the mean, at `beta = {FNR:g}` and
`alpha = {FPR:g}`? Early looks have much noise, so boundaries that just keep `alpha` at the tolerance let some of many
empty groups in. Keyhole's are as sure of an empty group as the last look, or let {STRAY_GROUPS:g} in per answer. That
hardly changes the mean loss of an empty group. The numbers follow from the exact distribution.

{table}"""


def _row(keys: int, tolerance: int) -> list[str]:
    alone = calibrate_test(sensitivity=1, tolerance=tolerance, fnr=FNR, fpr=FPR, allow_block=False)
    usual, sure = (
        calibrate_three_zone(
            sensitivity=1, tolerance=tolerance, fnr=FNR, fpr=FPR, allow_block=False, is_two_sided=False, empty=empty
        )
        for empty in (None, EmptyGroups(THRESHOLD, STRAY_GROUPS / keys))
    )
    strays = [
        keys * chance
        for chance in (
            compute_acceptance(alone, -THRESHOLD),
            compute_exact_acceptance(usual, -THRESHOLD),
            compute_exact_acceptance(sure, -THRESHOLD),
        )
    ]
    return [
        f"{keys:,}, {tolerance / THRESHOLD:.0%}",
        *(f"{stray:.2g}" if stray < 1 else f"{stray:,.1f}" for stray in strays),
    ]
