"""A query, alone or inside a DECLARE, PREPARE or EXPLAIN: passed to the shadow, or with questions inside."""

from planner.catalog.catalog import Catalog
from planner.extract.extract import extract_questions
from planner.extract.outer_query import Asking
from planner.parser.lexer import Token
from planner.statements.allow_list import check_functions
from planner.statements.kinds import PassThrough


def read_query(text: str, found: tuple[Token, ...], catalog: Catalog) -> PassThrough | Asking:
    """Read a query with these tokens. A query without a question is passed to the shadow. Raise as `classify` does.

    It passes to the shadow if it contains no question.
    """
    check_functions(found)
    return extract_questions(text, found, catalog) or PassThrough("select")
