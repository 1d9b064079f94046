"""The names and descriptions of all stream mechanisms. A question cannot name any of them.

Proof: docs/proofs/streams.md.
"""

from collections.abc import Mapping

from mechanisms.streams.smoothers import Smoother, shrink_to_average, take_average, take_median

SMOOTHERS: Mapping[str, Smoother] = {
    "pegasus": take_median,
    "pegasus_average": take_average,
    "pegasus_james_stein": shrink_to_average,
}
"""By the name of a PeGaSus, its Smoother."""

COUNTS: Mapping[str, str] = {
    "pegasus": "noisy counts, groups of ticks alike, the median of each group so far",
    "pegasus_average": "the same with the average",
    "pegasus_james_stein": "the same with James and Stein's estimator, corrected",
    "tick_laplace": "every count with fresh noise",
    "backward_smoothing": "the mean of the last noisy counts",
    "zeros": "zeros, for nothing",
}
"""Mechanisms that estimate each tick's count."""

SUMS: Mapping[str, str] = {
    "block_tree": "sums of sliding windows of one length, by binary trees over blocks",
    "binary_tree": "running sums, by a binary tree",
    "signed_tree": "running sums, by a tree whose nodes are added and taken away",
}
"""Mechanisms that estimate sums, of windows or from the beginning."""

HIERARCHIES: Mapping[str, str] = {
    "hs_laplace": "every aggregation of a hierarchy with fresh noise",
    "hs_pegasus": "PeGaSus on every aggregation",
    "phs_pegasus": "PeGaSus on those that noisy comparisons leave, corrected",
    "phs_pegasus_free": "PeGaSus on those that the last estimates leave",
}
"""Mechanisms that estimate all counts of a hierarchy."""

SUMMING = ("pegasus_window_sum", "block_tree", "binary_tree", "signed_tree")
"""Those that watch a standing question by the sum since its window's beginning, not by each look's own part of it."""

WATCHING = (*SMOOTHERS, "tick_laplace", "backward_smoothing", "zeros", *SUMMING)
"""The streams that may watch a standing question, by name."""

STREAMS: Mapping[str, str] = {**COUNTS, **SUMS, **HIERARCHIES}
