"""Questions about units that did, or did not, over the shop: each with what counts its units in PostgreSQL."""

from planner.catalog.catalog import Catalog
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
        (
            "IN",
            "lines GROUP BY 1 HAVING sum(amount) * 4000000000000000000 > 7 OR sum(amount) / count(amount) = 2",
        ),
        ("NOT IN", "lines GROUP BY 1 HAVING 10 / (sum(amount) - 1) > 0 AND sum(amount * amount) > -2147483648"),
        ("IN", "orders GROUP BY household, o_key HAVING avg(o_price) / (count(*) - 1) >= 0 OR 1 / min(o_price) < 1"),
        (
            "IN",
            "orders GROUP BY 1 HAVING max(o_key) > 4000000000000 OR sum(o_price) FILTER (WHERE o_key * 4 > 0) > 2",
        ),
    )
)
_BY_UNIT = "household FROM {0} WHERE {1} GROUP BY household HAVING {2}"
# Of one unit's totals, over tables in which a unit has none, one or several rows, with values and without.
OF_TOTALS = (
    *(
        _OF_LINES.format(f" WHERE household {word} (SELECT {_BY_UNIT.format(*inner)})")
        for word, *inner in (
            ("IN", "lines", "true", "count(*) >= 2"),
            ("NOT IN", "orders", "o_month <> 2", "sum(o_price) > 3 OR count(DISTINCT o_shop) > 1"),
            ("IN", "orders", "true", "avg(o_price) >= 3 AND max(o_price) < 7"),
            ("NOT IN", "lines", "true", "min(l_month) = 1 AND NOT max(l_month) <= 2"),
            ("IN", "lines", "l_mode <> 'x'", "sum(amount) > 3 * count(*) FILTER (WHERE l_month = 1)"),
            ("IN", "customers", "true", "bool_or(region = 'north') AND NOT bool_and(c_key > 1)"),
        )
    ),
    _OF_LINES.format(
        " WHERE household IN (SELECT household FROM orders GROUP BY household, o_shop HAVING count(*) > 1)"
    ),
    _OF_CUSTOMERS.format(" WHERE (SELECT count(*) FROM lines l WHERE l.household = c.household AND l_month = 2) < 2"),
    _OF_CUSTOMERS.format(" WHERE NOT 3 <= (SELECT sum(amount) FROM lines l WHERE l.household = c.household)"),
    _OF_CUSTOMERS.format(
        " WHERE (SELECT coalesce(max(o_price), 5) FROM orders o WHERE o.household = c.household) BETWEEN 4 AND 5"
    ),
    _OF_CUSTOMERS.format(" WHERE (SELECT min(o_price) FROM orders o WHERE o.household = c.household) IS NULL"),
    _OF_CUSTOMERS.format(
        " WHERE EXISTS (SELECT 1 FROM lines l WHERE l.household = c.household HAVING count(DISTINCT l_month) <> 2)"
    ),
)
_SHIPPED = "(SELECT household FROM lines WHERE l_mode = 'ship'"
OF_SETS = (
    _OF_LINES.format(f" WHERE household IN {_SHIPPED} EXCEPT SELECT household FROM orders WHERE o_month = 1)"),
    _OF_LINES.format(
        f" WHERE household NOT IN ({_SHIPPED} UNION ALL SELECT household FROM orders) INTERSECT SELECT"
        " household FROM customers WHERE region = 'north' GROUP BY 1 HAVING count(*) = 1)"
    ),
    _OF_LINES.format(
        f" WHERE (household IN {_SHIPPED}) OR NOT household IN (SELECT household FROM orders)) AND NOT (household"
        " IN (SELECT household FROM customers WHERE c_key = 2) AND household <> ALL (SELECT household FROM customers"
        " WHERE c_key = 1))"
    ),
    _OF_LINES.format(
        " WHERE household IN (SELECT household FROM lines) AND household IN (SELECT household FROM orders)"
    ),
)
_OF_JOINED = "{1}SELECT l.l_mode FROM lines l {0} GROUP BY l.l_mode HAVING count(DISTINCT l.household) > 4"
_FREQUENT = "SELECT o.household, count(*) AS n FROM orders o WHERE o_month < 3 GROUP BY {0} HAVING count(*) > 1"
# Joins that only say whose rows count, WITH queries and derived tables, each as a list would say it.
OF_JOINED = (
    *(
        _OF_JOINED.format(*inner)
        for inner in (
            ("JOIN (SELECT DISTINCT household FROM orders WHERE o_month = 1) b ON l.household = b.household", ""),
            (f"JOIN ({_FREQUENT.format('1')}) b USING (household) WHERE l_month > 1 OR amount IS NULL", ""),
            (
                "JOIN big AS b ON b.household = l.household AND b.n > 2",
                f"WITH big AS ({_FREQUENT.format('household')}) ",
            ),
            ("WHERE l.household IN (SELECT household FROM big)", f"WITH big AS ({_FREQUENT.format('1')}) "),
            ("LEFT JOIN orders o ON l.household = o.household AND o.o_price > 2 WHERE o.household IS NULL", ""),
            (f"LEFT JOIN ({_FREQUENT.format('1')}) f ON f.household = l.household WHERE f.n IS NULL", ""),
            (
                "LEFT OUTER JOIN (SELECT household, max(o_price) AS most FROM orders GROUP BY 1) r USING (household)"
                " WHERE r.most IS NULL AND l_month IS NOT NULL",
                "",
            ),
            (
                "JOIN (SELECT household FROM orders EXCEPT SELECT household FROM customers WHERE region = 'north') r"
                " ON r.household = l.household INNER JOIN (SELECT household FROM customers GROUP BY 1) c"
                " ON c.household = l.household",
                "",
            ),
            (
                "WHERE l.household IN (SELECT q.household FROM (SELECT household, sum(amount) AS s, count(*) AS n"
                " FROM lines WHERE l_mode = 'air' GROUP BY household) q WHERE s > 3 AND n < 3)",
                "",
            ),
            (", (SELECT DISTINCT household FROM orders WHERE o_month = 1) b WHERE b.household = l.household", ""),
            (f", ({_FREQUENT.format('1')}) b WHERE l_month > 1 AND l.household = b.household", ""),
            (
                "WHERE l.household IN (SELECT c.household FROM customers c JOIN orders o ON o.household = c.household"
                " AND o_month = 1 WHERE c.region = 'north')",
                "",
            ),
            (
                "WHERE l.household NOT IN (SELECT DISTINCT b.household FROM lines a JOIN lines b USING (household)"
                " WHERE a.l_mode = 'air' AND b.amount > 2)",
                "",
            ),
        )
    ),
)
# Beside conditions on rows, and in FILTER: whether the unit is on the list is a value of each of its rows.
OF_MIXED = tuple(
    _OF_LINES.format(f" l WHERE {where}")
    for where in (
        "l_month = 2 OR household IN (SELECT household FROM orders WHERE o_month = 1)",
        "NOT (amount > 0 AND EXISTS (SELECT 1 FROM customers c WHERE c.household = l.household AND c_key = 1))",
        "l_mode = 'air' OR household NOT IN (SELECT household FROM lines GROUP BY 1 HAVING count(*) > 2"
        " AND max(l_month) = 3)",
        "household IN (SELECT household FROM orders) AND (l_month IS NULL OR household IN (SELECT household FROM orders"
        " WHERE o_month = 1) AND NOT l.household IN (SELECT household FROM lines WHERE l_mode = 'ship'))",
    )
)
ASKED: list[tuple[Catalog, str, tuple[str, ...]]] = [
    (compiled(), "count(DISTINCT household)", OF_ONE),
    (compiled(), "count(DISTINCT household)", OF_TOTALS),
    (compiled(), "count(DISTINCT household)", OF_SETS),
    (compiled(), "count(DISTINCT l.household)", OF_JOINED),
    (compiled(), "count(DISTINCT household)", OF_MIXED),
    (
        compiled(changed(('privacy_unit = "household"', 'privacy_unit = ["household", "region"]'), text=POLICY)),
        "count(DISTINCT (household, region))",
        OF_PAIRS,
    ),
]
