"""Three-valued logic of a formula whose literals are decided one by one.

Literals are true (1), false (-1) or undecided (0). Then AND is the minimum and OR the maximum. A formula is settled as
soon as it is not 0.

Proof: docs/proofs/short_cuts.md.
"""

from collections.abc import Mapping
from itertools import permutations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from mechanisms.formula import AllOf, AnyOf, Booleans, Cut, Formula

Verdicts: TypeAlias = npt.NDArray[np.int8]

_MOST_TERMS = 8  # pairs of terms are compared for every key: beyond, the coarser answer is cheaper


def settle_formula(formula: Formula, verdicts: Mapping[Cut, Verdicts], *, keys: int) -> Verdicts:
    """Return the formula's value for each key.

    It is 1 or -1 if no values of the undecided literals can change it, otherwise 0.

    One literal that holds settles an OR. An AND still depends on its undecided literal:

    >>> one, other = (Cut(functional, 100, above=True, tolerance=10) for functional in (0, 1))
    >>> verdicts = {one: np.array([1, -1], dtype=np.int8), other: np.array([0, 0], dtype=np.int8)}
    >>> settle_formula(AnyOf((one, other)), verdicts, keys=2).tolist()
    [1, 0]
    >>> settle_formula(AllOf((one, other)), verdicts, keys=2).tolist()
    [0, -1]
    """
    match formula:
        case Cut():
            return verdicts[formula]
        case AllOf(children):
            result = np.ones(keys, dtype=np.int8)
            for child in children:
                np.minimum(result, settle_formula(child, verdicts, keys=keys), out=result)
            return result
        case AnyOf(children):
            result = np.full(keys, -1, dtype=np.int8)
            for child in children:
                np.maximum(result, settle_formula(child, verdicts, keys=keys), out=result)
            return result


def find_undecided_keys(formula: Formula, verdicts: Mapping[Cut, Verdicts], *, keys: int) -> dict[int, Booleans]:
    """Return for each functional the keys for which one of its undecided literals can still change the formula's value.

    Guarantee: no literal that can change the value is left out, if literals are taken as independent. The result is
    exact for trees without repetition and, up to `_MOST_TERMS` terms, for a disjunction of conjunctions of literals and
    its dual.

    If `A` holds in the first key, `B` in `A OR B` does not matter there:

    >>> one, other = (Cut(functional, 100, above=True, tolerance=10) for functional in (0, 1))
    >>> verdicts = {one: np.array([1, -1], dtype=np.int8), other: np.array([0, 0], dtype=np.int8)}
    >>> {functional: keys.tolist() for functional, keys in
    ...  find_undecided_keys(AnyOf((one, other)), verdicts, keys=2).items()}
    {0: [False, False], 1: [False, True]}
    """
    found: dict[int, Booleans] = {}
    settled: dict[int, Verdicts] = {}
    _settle_nodes(formula, verdicts, settled, keys=keys)
    _mark_undecided(formula, verdicts, settled, np.ones(keys, dtype=np.bool_), found)
    return found


def _settle_nodes(
    node: Formula, verdicts: Mapping[Cut, Verdicts], settled: dict[int, Verdicts], *, keys: int
) -> Verdicts:
    """Return the value of `settle_formula`, and add that of each node to `settled`, by the node's identity."""
    if isinstance(node, Cut):
        result = verdicts[node]
    else:
        is_and = isinstance(node, AllOf)
        result = np.full(keys, 1 if is_and else -1, dtype=np.int8)
        narrow = np.minimum if is_and else np.maximum
        for child in node.children:
            narrow(result, _settle_nodes(child, verdicts, settled, keys=keys), out=result)
    settled[id(node)] = result
    return result


def _mark_undecided(
    node: Formula,
    verdicts: Mapping[Cut, Verdicts],
    settled: Mapping[int, Verdicts],
    asked: Booleans,
    found: dict[int, Booleans],
) -> None:
    open_here = asked & (settled[id(node)] == 0)
    if isinstance(node, Cut):
        before = found.get(node.functional)
        found[node.functional] = open_here if before is None else before | open_here
        return
    absorbed = _find_absorbed(node, verdicts, settled, keys=asked.size)
    for place, child in enumerate(node.children):
        among = open_here & ~absorbed[place] if place in absorbed else open_here
        _mark_undecided(child, verdicts, settled, among, found)


def _find_absorbed(
    node: AllOf | AnyOf, verdicts: Mapping[Cut, Verdicts], settled: Mapping[int, Verdicts], *, keys: int
) -> dict[int, Booleans]:
    """Return the children of a two-level formula that another open child absorbs, with the keys for which it does.

    A child is absorbed if its undecided literals include all undecided literals of the other child.
    """
    dual = AllOf if isinstance(node, AnyOf) else AnyOf
    wide = [child.children for child in node.children if isinstance(child, dual)]
    flat = all(isinstance(literal, Cut) for children in wide for literal in children)
    if len(wide) != len(node.children) or not flat or len(wide) > _MOST_TERMS:
        return {}
    terms = list(map(frozenset, wide))
    neutral = 1 if isinstance(node, AnyOf) else -1
    result: dict[int, Booleans] = {}
    for (small, less), (large, more) in permutations(enumerate(terms), 2):
        if not less & more:
            continue
        inside = _are_all_equal(less - more, verdicts, neutral, keys=keys)
        if small > large:
            inside &= ~_are_all_equal(more - less, verdicts, neutral, keys=keys)
        inside &= settled[id(node.children[small])] == 0
        result[large] = result[large] | inside if large in result else inside
    return result


def _are_all_equal(
    literals: frozenset[Formula], verdicts: Mapping[Cut, Verdicts], value: int, *, keys: int
) -> Booleans:
    result = np.ones(keys, dtype=np.bool_)
    for literal in literals:
        assert isinstance(literal, Cut)
        result &= verdicts[literal] == value
    return result
