"""Keyhole's apportionment over the tree of a formula, exact if the formula is read-once.

Any formula in negation normal form will do. Every node has a bound. For false negatives, an AND splits its bound over
its children, and an OR gives all of it to each. For false positives, an OR splits it and an AND does not.

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
    """Return each functional's share, split from the root of the formula downward.

    A node that splits gives its children shares in proportion to the weights below them.

    Guarantee: sound for any formula; for a read-once one it minimises `sum_f w_f ln(1 / share_f)`. A functional that
    occurs several times gets the least of its leaves' bounds. A node without literals is a constant: it needs no share.

    Parameters:
        bound: the rate to split.
        weights: per functional, > 0.
        is_fnr: True for false negatives, where AND splits; False for false positives, where OR splits.

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
    """A node with the sum of the weights below it, and its weighed children."""

    node: Formula
    weight: float
    children: "list[_WeighedNode]"


def bound_tree(formula: Formula, rate: Callable[[Cut], float], *, is_fnr: bool) -> tuple[float, Mapping[int, int]]:
    """Bound the formula's error rate by the error rates of its literals.

    Return the bound, and for each functional the number of its leaves that attain it.

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
        """Return the bound of one node, and the functional of each leaf that attains it."""
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
    """A formula in the form that `bound_shares` reads. A node takes the sum or the maximum of its children's bounds.

    `is_sum` if it takes the sum. If all children are literals, `leaves` are their functionals. Otherwise `nodes` has
    every child, and a literal is a node of one leaf. `depends_on_shares` if the shares may decide which leaves attain
    the bound.
    """

    is_sum: bool
    leaves: tuple[int, ...]
    nodes: "tuple[SharesTree, ...]"
    depends_on_shares: bool


def build_shares_tree(formula: Formula, *, is_fnr: bool) -> SharesTree:
    """Return the tree that `bound_shares` reads, for false negatives or for false positives."""
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
    """Bound the formula's error rate as `bound_tree` does. The error rate of each literal is its functional's share.

    Return the bound and the functionals of the leaves that attain it, in order. This is faster than `bound_tree`, since
    apportionment asks for one formula hundreds of times.
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
