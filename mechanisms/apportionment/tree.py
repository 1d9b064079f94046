"""Keyhole's apportionment in tree form: any formula in negation normal form, exact where it is read-once.

Every node has a bound. For false negatives AND splits its bound over its children and OR passes it on whole;
for false positives OR splits and AND passes on.

Proof: docs/proofs/apportionment.md.
"""

from collections.abc import Callable, Mapping, Sequence

from mechanisms.formula import AllOf, Cut, Formula, cuts


def read_once(formula: Formula) -> bool:
    """Whether every functional occurs in one place only."""
    seen = [cut.functional for cut in cuts(formula)]
    return len(seen) == len(set(seen))


def closed_form(formula: Formula, *, bound: float, weights: Sequence[float], fnr: bool) -> dict[int, float]:
    """Each functional's share: a splitting node gives its children shares in proportion to the weights below them.

    Guarantee: sound for any formula; for a read-once one it minimises `sum_f w_f ln(1 / share_f)`. A functional that
    occurs several times gets the least of its leaves' bounds. A node without literals is a constant: it needs no share.

    Parameters:
        bound: the rate to split.
        weights: per functional, > 0.
        fnr: whether AND splits (false negatives) or OR does (false positives).
    """
    shares: dict[int, float] = {}

    def weight(node: Formula) -> float:
        if isinstance(node, Cut):
            return weights[node.functional]
        return sum(weight(child) for child in node.children)

    def hand_down(node: Formula, share: float) -> None:
        if isinstance(node, Cut):
            shares[node.functional] = min(share, shares.get(node.functional, share))
            return
        splits = isinstance(node, AllOf) == fnr
        total = weight(node)
        for child in node.children:
            own = weight(child)
            if own > 0.0:
                hand_down(child, share * own / total if splits else share)

    hand_down(formula, bound)
    return shares


def tree_bound(formula: Formula, rate: Callable[[Cut], float], *, fnr: bool) -> tuple[float, Mapping[int, int]]:
    """The error rate that literal error rates add up to, with the leaves (by functional, counted) that attain it.

    Guarantee: an upper bound under any dependence between the literals' errors.

    Parameters:
        rate: the literal's own error rate.
        fnr: false negatives (sum over AND, largest over OR), else false positives (the dual).
    """
    if isinstance(formula, Cut):
        return rate(formula), {formula.functional: 1}
    children = [tree_bound(child, rate, fnr=fnr) for child in formula.children]
    if not children:
        return 0.0, {}
    if isinstance(formula, AllOf) != fnr:
        return max(children, key=lambda child: child[0])
    counts: dict[int, int] = {}
    for _, leaves in children:
        for functional, count in leaves.items():
            counts[functional] = counts.get(functional, 0) + count
    return sum(value for value, _ in children), counts
