"""What ProBE's indicator questions cost with regional filters: the joint loss beside the plain sum.

`python -m benchmarks.joint_loss` prints a table for 1 to 6 sub-queries, joined by AND and by OR. Nothing is random and
no data are needed: worst cases follow from thresholds, tolerances and filters alone.
"""

from collections.abc import Iterator
from datetime import date

from benchmarks.planning import adapt_to_unit, compile_catalogs
from mechanisms.protocol import DecisionTask
from mechanisms.registry import MECHANISMS
from mechanisms.threshold.joint_loss import expose_all_functionals
from planner.bind.bind_question import bind_question
from planner.extract.outer_query import Asking
from planner.lower.dialects.duckdb import DUCKDB
from planner.plan import build as planning
from planner.statements import settings
from planner.statements.classify import classify

MOST = 6
MECHANISM = "progressive"
KINDS = ("one indicator per region", "two indicators per region", "one indicator for all")
_REGIONS = ("Germany", "France", "EIRE", "Spain", "Netherlands", "Belgium")
_TODAY = date(2011, 12, 9)


def list_sub_queries(kind: str) -> list[str]:
    """Six conditions, as an analyst writes them."""
    if kind == KINDS[0]:
        return [f"count(*) FILTER (WHERE country = '{region}') > {400 + 50 * n}" for n, region in enumerate(_REGIONS)]
    if kind == KINDS[1]:
        return [
            f"{indicator} FILTER (WHERE country = '{region}') > {threshold}"
            for region in _REGIONS[: MOST // 2]
            for indicator, threshold in (("count(*)", 400), ("sum(amount)", 20_000))
        ]
    return [f"count(*) FILTER (WHERE quantity > {10 * n}) > {1000 - 100 * n}" for n in range(MOST)]


def price_both_ways(conditions: list[str], *, both: str) -> tuple[float, float]:
    """The question's worst case, and what it would be if one row could change all aggregates in full."""
    catalog = compile_catalogs()["row"]
    sql = f"SELECT month FROM sales GROUP BY month HAVING {f' {both} '.join(conditions)}"
    statement = classify(adapt_to_unit(sql, "row"), catalog)
    assert isinstance(statement, Asking)
    accuracy = settings.read_accuracy({"keyhole.mechanism": MECHANISM}, catalog.defaults)
    question = bind_question(statement.questions[0], catalog, accuracy=accuracy, parameters={}, today=_TODAY)
    made = planning.plan_question(question, dialect=DUCKDB)
    task = made.calibration.task
    plain = DecisionTask(
        formula=task.formula,
        sensitivities=task.sensitivities,
        exposures=expose_all_functionals(len(task.sensitivities)),
        fnr=task.fnr,
        fpr=task.fpr,
    )
    return made.worst_case_epsilon, MECHANISMS[MECHANISM].calibrate(plain).worst_case_epsilon


def measure() -> Iterator[tuple[str, str, int, float, float]]:
    """Kind, connective, number of sub-queries, joint loss, plain sum."""
    for kind in KINDS:
        for both in ("AND", "OR"):
            for number in range(1, MOST + 1):
                yield kind, both, number, *price_both_ways(list_sub_queries(kind)[:number], both=both)


def main() -> None:
    """Print the table."""
    print(f"{'sub-queries':28}{'joined by':11}{'number':8}{'joint loss':>11}{'plain sum':>11}{'factor':>8}")
    for kind, both, number, joint, plain in measure():
        print(f"{kind:28}{both:11}{number:<8}{joint:11.3f}{plain:11.3f}{plain / joint:8.2f}")


if __name__ == "__main__":
    main()
