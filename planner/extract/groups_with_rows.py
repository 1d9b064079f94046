"""A HAVING that only says that a group has rows, as Tableau writes it for every sheet, left out of a scorecard.

    SELECT country, MAX(amount_sum_band) FROM sales GROUP BY 1 HAVING (COUNT(1) > 0)
    SELECT country, MAX(amount_sum_band) FROM sales GROUP BY 1

Every group that PostgreSQL has has rows, so both are the same to it. Here, where all public values of the keys are
rows, the first would ask which of them have any.
"""

from sqlglot import exp

from planner.extract.private_read import PrivateRead
from planner.parser.clauses import clauses
from planner.parser.edits import Edit
from planner.parser.tree import bare
from planner.scorecard.find import find_predicates, shows_size


def drop_having_of_rows(read: PrivateRead) -> tuple[Edit, ...]:
    """Without HAVING where it is COUNT(1) > 0 and nothing else; what people write, count(*) > 0, is a question."""
    group, having = read.select.args.get("group"), read.select.args.get("having")
    if group is None or not group.expressions or having is None or not _says_that_there_are_rows(having.this):
        return ()
    has_bands = read.catalog.defaults.numbers == "bands"
    if not any(find_predicates(item) or (has_bands and shows_size(item)) for item in read.select.expressions):
        return ()
    place = clauses(read.node, read.tokens)
    at = place.mark("having")
    if at is None:
        return ()
    return (Edit.of(read.tokens[at - 1].end, read.tokens[place.end - 1].end, ""),)


def _says_that_there_are_rows(condition: exp.Expr) -> bool:
    match bare(condition):
        case exp.GT(this=exp.Count(this=exp.Literal(this="1")), expression=exp.Literal(this="0", is_string=False)):
            return True
    return False
