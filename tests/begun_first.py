"""Which files the processes of one run begin with: those that hold what lasts longest.

A test that takes two minutes and is begun last is waited for by cores that have nothing to do. Whole files are moved,
since the tests of a file share what it starts and run in one process.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

# What takes ten seconds and more at quick, then what holds a test of half a minute at thorough or on the oldest Python,
# alone on two cores; the longest first.
LONGEST: tuple[str, ...] = (
    "proxy/sources/unit_values/test_unit_values.py",
    "planner/statements/test_analysts.py",
    "planner/lower/test_joins.py",
    "proxy/sources/unit_lists/test_unit_lists.py",
    "planner/statements/test_corpus.py",
    "proxy/sources/rows/test_row_expressions.py",
    "end_to_end/answers/test_oracle.py",
    "benchmarks/test_monitor_kills_benchmark.py",
    "mechanisms/audit/test_auditor.py",
    "benchmarks/test_random_kills_benchmark.py",
    "proxy/release/test_killed.py",
    "benchmarks/test_risk_benchmark.py",
    "proxy/sources/looks/test_arrivals.py",
    "proxy/sources/looks/test_shared_looks.py",
    "benchmarks/test_experiments.py",
    "proxy/rest/test_answers.py",
    "benchmarks/test_endpoint_benchmark.py",
    "accountant/verbs/test_verify_everything.py",
    "mechanisms/audit/test_alarms.py",
    "benchmarks/test_soak_benchmark.py",
    "proxy/process/test_shadow_watch.py",
    "proxy/sources/test_same_integers.py",
)

Item = TypeVar("Item")


def begin_with_longest(items: Sequence[Item], *, file_of: Callable[[Item], str]) -> list[Item]:
    """Return the same items, those of `LONGEST` first, in its order; the others stay in theirs."""
    places = {file: place for place, file in enumerate(LONGEST)}
    return sorted(items, key=lambda item: places.get(file_of(item), len(places)))
