"""The number of rows of one privacy unit that a join of private tables reads from each table. It is public.

Guarantee: if the owner declares nothing, one unit has at most `MOST_JOINED_ROWS` joined rows, or `FEWEST_OF_ONE_TABLE`
rows of each table where that is more. The numbers depend on the policy and on which tables are joined, never on rows.

References: docs/decisions/0034-rows-before-a-join.md.
"""

import math
from collections.abc import Sequence

# the work that one person's rows can make, against what of many rows a join sees: DuckDB reads a million joined rows in
# some 20 ms, and two tables then have 1,000 rows of a person each, three have 100
MOST_JOINED_ROWS = 1_000_000
FEWEST_OF_ONE_TABLE = 10  # beside tables whose owner wants more of them than all may make together
MOST_OF_ONE_TABLE = 1_000_000  # of what the owner may declare


def share_joined_rows(declared: Sequence[int | None]) -> tuple[int, ...]:
    """Return the number of rows of one unit read from each table: the declared number, or an equal share of the rest.

    >>> share_joined_rows([None, None])
    (1000, 1000)
    >>> share_joined_rows([None, 1, None])
    (1000, 1, 1000)
    >>> share_joined_rows([None, None, None])
    (100, 100, 100)
    """
    open_tables = sum(rows is None for rows in declared)
    left = MOST_JOINED_ROWS // math.prod(rows for rows in declared if rows is not None)
    share = max(FEWEST_OF_ONE_TABLE, _floor_root(left, open_tables)) if open_tables else 0
    return tuple(share if rows is None else rows for rows in declared)


def _floor_root(number: int, degree: int) -> int:
    """Return the largest whole number whose power of that degree is at most the number."""
    root = round(math.pow(number, 1 / degree))
    return root if root**degree <= number else root - 1
