"""Questions about units that did, or did not, over the shop: each with what counts its units in PostgreSQL."""

from planner.catalog.model import Catalog
from tests.proxy.sources.unit_paths.shop import POLICY, TYPES, compiled
from tests.worlds.policies import changed

NAMES = tuple(TYPES)
_END = " GROUP BY {0} HAVING count(DISTINCT household) > 4"
_OF_LINES = f"SELECT l_mode FROM lines{{0}}{_END.format('l_mode')}"
_OF_CUSTOMERS = f"SELECT region FROM customers c{{0}}{_END.format('region')}"
_ALL = "HAVING count(DISTINCT (household, region)) > 4"
OF_ONE = (
    _OF_LINES.format(" WHERE household IN (SELECT household FROM lines WHERE amount > 0)"),
    _OF_LINES.format(
        " WHERE l_month > 1 AND household NOT IN (SELECT DISTINCT household FROM lines WHERE l_mode = 'air')"
    ),
    _OF_LINES.format(" WHERE NOT (household IN (SELECT o.household FROM orders AS o WHERE o_month BETWEEN 2 AND 3))"),
    _OF_LINES.format(
        " l WHERE EXISTS (SELECT 1 FROM customers WHERE household = l.household AND region = 'north')"
        " AND NOT EXISTS (SELECT * FROM orders o WHERE l.household = o.household AND o.o_shop = 'a')"
    ),
    _OF_CUSTOMERS.format(" WHERE household = ANY (SELECT household FROM lines WHERE amount IS NULL OR amount = -3)"),
    _OF_CUSTOMERS.format(" WHERE c.household IN (SELECT household FROM customers) AND household <> 'ann'"),
)
OF_PAIRS = (
    f"SELECT l_mode FROM lines WHERE (household, region) IN (SELECT household, region FROM orders) GROUP BY 1 {_ALL}",
    "SELECT l_mode FROM lines l WHERE NOT EXISTS (SELECT FROM customers c WHERE c.region = l.region"
    f" AND c.household = l.household AND c.c_key = 2) GROUP BY l_mode {_ALL}",
    "SELECT l_mode FROM lines l WHERE household IN (SELECT household FROM orders o WHERE o.region = l.region"
    f" AND o_month = 1) GROUP BY l_mode {_ALL}",
)
# Conditions that plain SQL fails on, or that take long, where a row holds the least or greatest value of its type.
OF_ODD_ROWS = tuple(
    _OF_LINES.format(f" WHERE household {word} (SELECT household FROM {inner})")
    for word, inner in (
        ("IN", "lines WHERE amount * 2000000000 > 5"),
        ("NOT IN", "lines WHERE amount + 2147483647 > 0 AND l_month - amount < 3"),
        ("IN", "orders WHERE 10 / o_price > 1 OR o_key * 4 < 0"),
        ("NOT IN", "customers WHERE region LIKE '%o%r%' OR c_key / 0 IS NULL"),
        ("IN", "lines WHERE CASE WHEN amount > 0 THEN 1 / (amount - 3) ELSE 0 END > -1"),
    )
)
ASKED: list[tuple[Catalog, str, tuple[str, ...]]] = [
    (compiled(), "count(DISTINCT household)", OF_ONE),
    (
        compiled(changed(('privacy_unit = "household"', 'privacy_unit = ["household", "region"]'), text=POLICY)),
        "count(DISTINCT (household, region))",
        OF_PAIRS,
    ),
]
