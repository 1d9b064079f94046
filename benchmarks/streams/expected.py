"""What a prototype found before these experiments were written, on stand-ins of the same totals that it drew itself."""

import math
from collections.abc import Sequence
from textwrap import fill

from benchmarks.experiments.tables import markdown
from benchmarks.streams.data import TOTALS
from benchmarks.streams.rows import BLOCK_TREE, EPSILONS, LAPLACE, PEGASUS, PEGASUS_LARGE, Row

_COUNTS = {
    LAPLACE: (2.30, 0.75, -0.57, 3.30, 1.75, 0.43),
    PEGASUS: (2.19, 0.65, -0.49, 3.19, 1.64, 0.34),
}
_JUMPS = {LAPLACE: (0.974, 0.549), PEGASUS: (0.907, 0.561), PEGASUS_LARGE: (math.nan, 0.603)}
_LOW = {LAPLACE: (0.991, 0.815), PEGASUS: (0.992, 0.861), BLOCK_TREE: (0.969, 0.754)}
_HIERARCHY = {
    "hs_laplace": (80.0, 800.0),
    "hs_pegasus": (61.5, 613.0),
    "hs_pegasus, theta 40": (8.9, 82.0),
    "zeros": (1.01, 1.01),
}
_TEXT = """The stand-ins are drawn. A prototype drew others of the same totals before these experiments were written,
and with few runs; its numbers stand here first. Counts and hierarchies agree. Events do so less, as they hang on how
often and how fast a stream changes: the prototype's jumps were easier to find, and its PeGaSus was above plain noise at
low signals, where ours is below. Its second low signal was below 2,000; here that hardly ever happens, so it is below
4,000. WSS erred less than the trees up to 256 ticks at .1 and at every length at .01; here up to 512 at both. The
median was better than the average on all three stand-ins at both epsilons; here"""


def compare(rows: Sequence[Row]) -> str:
    """Tables of both."""
    found = {(row.experiment, row.data, row.epsilon, row.label): row.mean for row in rows}
    table = []
    for label, expected in _COUNTS.items():
        own = [
            math.log10(found.get(("counts", data, epsilon, label), math.nan)) for epsilon in EPSILONS for data in TOTALS
        ]
        table.append([f"counts, `{label}`: Low, Med, High_5 at .1, at .01", _list(expected, 2), _list(own, 2)])
    for name, by_label in (("jumps of 50 in 12", _JUMPS), ("sums below 300 in 64", _LOW)):
        for label, areas in by_label.items():
            own = [found.get((f"events, {name}", "High_5", epsilon, label), math.nan) for epsilon in EPSILONS]
            table.append([f"area, {name} ticks, `{label}`: at .1, at .01", _list(areas, 3), _list(own, 3)])
    for label, errors in _HIERARCHY.items():
        own = [found.get(("hierarchy", "Multi_5", epsilon, label), math.nan) for epsilon in EPSILONS]
        table.append([f"hierarchy, `{label}`: at .1, at .01", _list(errors, 2), _list(own, 2)])
    gains = [
        found[case] - found[(*case[:3], PEGASUS)]
        for case in found
        if case[0] == "smoothers" and case[3] == "pegasus_average" and case[1] in TOTALS
    ]
    better = f"{_TEXT} in {sum(gain > 0 for gain in gains)} of {len(gains)} cases."
    better = fill(better, width=120, break_long_words=False, break_on_hyphens=False)
    return f"## Beside a prototype\n\n{better}\n\n{markdown(['what', 'prototype', 'here'], table, texts=3)}"


def _list(values: Sequence[float], digits: int) -> str:
    return ", ".join("–" if math.isnan(value) else f"{value:.{digits}f}" for value in values)
