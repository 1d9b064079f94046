"""The contract whose tables are known beforehand to three digits, and tables for it."""

from mechanisms.arc.look_table import BlockGrid, choose_slope, make_looks
from mechanisms.protocol import LookTable

EARLY = (0.1, 0.3)
EARLY_SHARE = 0.08


def make_reference_looks(
    *, tolerance: int, fnr: float = 0.05, fpr: float = 0.1, multiple: float = 1.5
) -> tuple[LookTable, ...]:
    """Return the looks of a count of units, with both early looks."""
    grid = BlockGrid.from_contract(sensitivity=1, tolerance=tolerance, in_full=False)
    slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=multiple)
    return make_looks(grid=grid, fnr=fnr, fpr=fpr, slope=slope, early=EARLY, early_share=EARLY_SHARE)
