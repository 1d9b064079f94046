"""Keyhole's apportionment in tree form: any formula in negation normal form, exact where it is read-once.

Every node has a bound. For false negatives AND splits its bound over its children and OR passes it on whole;
for false positives OR splits and AND passes on.

Proof: docs/proofs/apportionment.md.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

from mechanisms.formula import AllOf, AnyOf, Cut, Formula, list_literals

_RATE = itemgetter(0)


def is_read_once(formula: Formula) -> bool:
    """Return True if every functional occurs in one place only.

    >>> a, b = (Cut(functional, 100, above=True, tolerance=10) for functional in (0, 1))
    >>> is_read_once(AllOf((a, b))), is_read_once(AnyOf((a, AllOf((a, b)))))
    (True, False)
    """
    seen = [cut.functional for cut in list_literals(formula)]
    return len(seen) == len(set(seen))


def share_in_closed_form(formula: Formula, *, bound: float, weights: Sequence[float], is_fnr: bool) -> dict[int, float]:
    """Return each functional's share.

    A splitting node gives its children shares in proportion to the weights below them.

    Guarantee: sound for any formula; for a read-once one it minimises `sum_f w_f ln(1 / share_f)`. A functional that
    occurs several times gets the least of its leaves' bounds. A node without literals is a constant: it needs no share.

    Parameters:
        bound: the rate to split.
        weights: per functional, > 0.
        is_fnr: whether AND splits (false negatives) or OR does (false positives).

    In `a AND (b OR c)` a false negative needs `a` or the OR to be missed, and an OR is missed only with the child that
    holds, so that both its children may use all of its share:

    >>> a, b, c = (Cut(functional, 100, above=True, tolerance=10) for functional in range(3))
    >>> share_in_closed_form(AllOf((a, AnyOf((b, c)))), bound=0.06, weights=[1.0, 1.0, 1.0], is_fnr=True)
    {0: 0.02, 1: 0.04, 2: 0.04}
    """
    shares: dict[int, float] = {}

    def weigh(node: Formula) -> _WeighedNode:
        if isinstance(node, Cut):
            return _WeighedNode(node, weights[node.functional], [])
        below = [weigh(child) for child in node.children]
        return _WeighedNode(node, sum([child.weight for child in below]), below)

    def hand_down(weighed: _WeighedNode, share: float) -> None:
        node, total, below = weighed
        if isinstance(node, Cut):
            shares[node.functional] = min(share, shares.get(node.functional, share))
            return
        splits = isinstance(node, AllOf) == is_fnr
        for child in below:
            if child.weight > 0.0:
                hand_down(child, share * child.weight / total if splits else share)

    hand_down(weigh(formula), bound)
    return shares


class _WeighedNode(NamedTuple):
    """A node with the sum of the weights below it, and its children likewise."""

    node: Formula
    weight: float
    below: "list[_WeighedNode]"


def bound_tree(formula: Formula, rate: Callable[[Cut], float], *, is_fnr: bool) -> tuple[float, Mapping[int, int]]:
    """Return the error rate that literal error rates add up to.

    Beside it stand the leaves (by functional, counted) that attain it.

    Guarantee: an upper bound under any dependence between the literals' errors.

    Parameters:
        rate: the literal's own error rate.
        is_fnr: false negatives (sum over AND, largest over OR), else false positives (the dual).

    >>> a, b, c = (Cut(functional, 100, above=True, tolerance=10) for functional in range(3))
    >>> bound_tree(AllOf((a, AnyOf((b, c)))), lambda literal: (0.01, 0.02, 0.03)[literal.functional], is_fnr=True)
    (0.04, Counter({0: 1, 2: 1}))
    """
    adding = AllOf if is_fnr else AnyOf

    def bound(node: Formula) -> tuple[float, tuple[int, ...]]:
        """Return the node's rate, and the functional of each leaf that attains it."""
        if isinstance(node, Cut):
            return rate(node), (node.functional,)
        children = [bound(child) for child in node.children]
        if not children:
            return 0.0, ()
        if not isinstance(node, adding):
            return max(children, key=_RATE)
        return sum([value for value, _ in children]), tuple(chain.from_iterable([leaves for _, leaves in children]))

    value, leaves = bound(formula)
    return value, Counter(leaves)


class SharesTree(NamedTuple):
    """A formula laid out for `bound_shares`: a node that adds what its children are bounded by or takes the largest.

    `leaves` are the functionals of its children where all of these are literals; else `nodes` has every child, a
    literal as a node of one leaf. `depends_on_shares` where which leaves attain the bound may depend on the shares.
    """

    is_sum: bool
    leaves: tuple[int, ...]
    nodes: "tuple[SharesTree, ...]"
    depends_on_shares: bool


def build_shares_tree(formula: Formula, *, is_fnr: bool) -> SharesTree:
    """Return the formula as `bound_shares` reads it, for false negatives or for false positives."""
    if isinstance(formula, Cut):
        return SharesTree(is_sum=True, leaves=(formula.functional,), nodes=(), depends_on_shares=False)
    children = formula.children
    adds = isinstance(formula, AllOf if is_fnr else AnyOf)
    leaves = tuple([child.functional for child in children if isinstance(child, Cut)])
    nodes = (
        () if len(leaves) == len(children) else tuple([build_shares_tree(child, is_fnr=is_fnr) for child in children])
    )
    chooses = any(node.depends_on_shares for node in nodes) or not (adds or len(children) < 2)
    return SharesTree(is_sum=adds, leaves=() if nodes else leaves, nodes=nodes, depends_on_shares=chooses)


def bound_shares(tree: SharesTree, shares: Sequence[float]) -> tuple[float, tuple[int, ...]]:
    """Return `bound_tree` where every literal's error rate is its functional's share.

    Beside it stand the functionals of the leaves that attain it, in order. This takes a fraction of the time, as
    apportionment asks hundreds of times of one formula.
    """
    adds, leaves, nodes, _ = tree
    if nodes:
        bounds = [bound_shares(node, shares) for node in nodes]
        if adds:
            return sum([value for value, _ in bounds]), tuple(chain.from_iterable([below for _, below in bounds]))
        return max(bounds, key=_RATE)
    if adds or not leaves:
        return sum([shares[functional] for functional in leaves], 0.0), leaves
    largest = max(leaves, key=shares.__getitem__)
    return shares[largest], (largest,)
