"""Which files the processes of one run begin with: those that hold what lasts longest.

A test that takes two minutes and is begun last is waited for by cores that have nothing to do. Each process is given an
equal part of the list, and whoever is done takes half of what another has left, from its end (xdist's `worksteal`); so
what lasts longest stands where parts begin. Whole files are moved, since the tests of a file share what it starts.
"""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TypeVar

# What holds a test of half a minute and more, alone on two cores, at quick, at thorough or on the oldest Python; the
# longest first.
LONGEST: tuple[str, ...] = (
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


def begin_with_longest(items: Sequence[Item], *, file_of: Callable[[Item], str], processes: int) -> list[Item]:
    """Return the same items, ordered so that each of the equal parts which `processes` are given begins with some of
    `LONGEST`, dealt out in turn."""
    places = {file: place for place, file in enumerate(LONGEST)}
    named: list[list[Item]] = [[] for _ in LONGEST]
    others: list[Item] = []
    for item in items:
        (others if (place := places.get(file_of(item))) is None else named[place]).append(item)
    dealt = [group for group in named if group]
    left, remaining = len(items), iter(others)
    ordered: list[Item] = []
    for process in range(processes):
        size = left // (processes - process)
        part = [item for group in dealt[process::processes] for item in group]
        part += islice(remaining, max(0, size - len(part)))
        ordered += part
        left = len(items) - len(ordered)
    return [*ordered, *remaining]
