"""Published tables of counts as subjects of an audit.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from mechanisms.audit.auditor import AuditReport, Neighbours, audit_subject, claim_always
from mechanisms.formula import Integers
from mechanisms.protocol import Noise
from mechanisms.publishing.contingency_table import make_rows, release_table

Draw = Callable[[Integers], Callable[[int], Integers]]
"""From the counts of a table to what so many releases of it show."""

_ROWS = 2  # of one unit in a cell
_COUNTS = (3, 0, 5)  # an empty cell, and others near enough to it that rows are made in few of them


def audit_tables(
    *,
    samples: int,
    noise: Noise,
    subject: str = "table",
    draw: Draw | None = None,
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit a table of three cells and the rows made from it. A unit is in one cell, or in two at twice the loss.

    Parameters:
        samples: as for `audit`.
        draw: replaces the product's release; its loss is 1 in a cell.
    """
    made = draw or draw_tables(noise)
    counts = np.array(_COUNTS, dtype=np.int64)
    pairs = []
    for cells in (1, 2):
        more = counts + _ROWS * (np.arange(len(counts)) < cells)
        pairs.append(
            Neighbours(
                description=f"a unit in {cells} cell{'s' * (cells > 1)}, or none",
                first=claim_always(made(more), epsilon=float(cells)),
                second=claim_always(made(counts), epsilon=float(cells)),
            )
        )
    return audit_subject(subject, pairs, samples=samples, progress=progress)


def draw_tables(noise: Noise, *, epsilon: Fraction = Fraction(1)) -> Draw:
    """Return a draw of the product's release at a loss in each cell.

    A transcript has coarse noisy counts, and True if rows are made in the first cell.
    """

    def draw(counts: Integers) -> Callable[[int], Integers]:
        def drawn(samples: int) -> Integers:
            tables = np.tile(counts, (samples, 1))
            noisy = release_table(tables, epsilon=epsilon, most_rows=_ROWS, noise=noise)
            rows = np.array([make_rows(one)[0] > 0 for one in noisy])
            return np.column_stack((np.clip(noisy[:, :2] // 2, -1, 4), rows))

        return drawn

    return draw
