"""What analysts are shown has their own names and plain words, and none that a rule has made up."""

import re
from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError
from planner.explain.document import explain_json
from planner.explain.render import explain_text
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan.build import plan_question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from tests.effort import rounds
from tests.planner.asked import TODAY
from tests.planner.spec import pairs
from tests.proxy.sources.unit_lists.listed import ASKED as OF_LISTS
from tests.proxy.sources.unit_values.valued import ASKED, CATALOG, ODD, OF_EXPRESSIONS, OF_ROWS, OF_SCALARS, OF_SUMS
from tests.worlds.analysts import NAMES, analysts
from tests.worlds.retail import retail

# of columns and subqueries, not of settings: keyhole.tolerance, keyhole.toml
_MADE_UP = re.compile(r"keyhole_\w+|joined by keyhole")
# What a value or a list in SELECT, FILTER, CASE or OR can be refused for.
_REFUSED = (
    "SELECT price * (SELECT count(*) FROM calls c WHERE c.caller = b.person) AS k FROM buys b GROUP BY 1"
    " HAVING count(*) > 9",
    "SELECT shop FROM buys GROUP BY 1 HAVING sum(CASE WHEN person IN (SELECT caller FROM calls) THEN price END) > 'x'",
    "SELECT days FROM (SELECT person, max(bought)::date - min(bought)::date AS days FROM buys GROUP BY 1) q"
    " GROUP BY 1 HAVING count(*) > 9",
    "SELECT shop FROM buys b WHERE shop > (SELECT max(shop) FROM buys x WHERE x.person = b.person) GROUP BY 1"
    " HAVING count(*) > 9",
    "SELECT person IN (SELECT caller FROM calls WHERE nowhere) AS k FROM buys GROUP BY 1 HAVING count(*) > 9",
)


def _list_shown(sql: str, catalog: Catalog) -> Iterator[str]:
    """What is said of a statement. A plan is made where a rule may have written into it, at quick of every eighth."""
    wanted = read_accuracy({}, catalog.defaults)
    try:
        statement = classify(sql, catalog)
        for part in statement.questions if isinstance(statement, Asking) else ():
            question = bind_question(part, catalog, accuracy=wanted, parameters={}, today=TODAY, is_utc=True)
            yield from question.warnings
            yield from question.keys.names
            yield from (functional.name for functional in question.functionals)
            if question.table.own and crc32(sql.encode()) % rounds(1, quick=8) == 0:
                made = plan_question(question, dialect=DUCKDB)
                made = replace(made, rewritten=replace(made.rewritten, sql=""))
                document = {**explain_json(made, left=None), "rollup": None}
                yield from (*explain_text(made, left=None), repr(document))
    except KeyholeError as error:
        yield from (error.message, error.detail or "", error.hint or "")


def test_a_refusal_shows_no_filter_that_nobody_typed() -> None:
    """A condition in WHERE that a total lacks is moved behind aggregates, and a refusal leaves it out."""
    compared = "avg(amount) > 0.1 * (SELECT count(*) FROM sales)"
    shown = list(_list_shown(f"SELECT country FROM sales WHERE gift GROUP BY country HAVING {compared}", retail()))
    assert shown[0].startswith(compared)
    assert not any("FILTER" in text for text in shown)


def test_nothing_that_is_shown_has_a_name_of_a_rule() -> None:
    asked = [(sql, analysts(name)) for name in NAMES for sql, _ in pairs(f"analysts/{name}.sql")]
    asked += [(sql, retail()) for name in ("refused.sql", "followed.sql") for sql, *_ in pairs(name)]
    values = (*ASKED, *OF_ROWS, *OF_SUMS, *OF_EXPRESSIONS, *OF_SCALARS, *ODD, *_REFUSED)
    asked += [(sql, CATALOG) for sql in values]
    asked += [(sql, catalog) for catalog, _, statements in OF_LISTS for sql in statements]
    read = [(sql, catalog) for sql, catalog in asked if "(select " in sql.lower() or " over " in sql.lower()]
    assert len(read) > 200
    for sql, catalog in read[:: rounds(1, quick=2)]:
        for text in _list_shown(sql, catalog):
            assert not _MADE_UP.search(text), (sql, text)
