"""Folding of a formula as a tree: a literal is left out if other literals settle it, at any size of formula."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TypeAlias

from mechanisms.formula import FALSE, TRUE, AllOf, AnyOf, Cut, Formula, list_literals

Interval: TypeAlias = tuple[float, float]  # the values of a functional that are still possible: low < S <= high

_ANY: Interval = (float("-inf"), float("inf"))
_ROUNDS = 4  # it ends by itself where nothing changes; stopping earlier leaves a longer formula of the same meaning


def simplify(formula: Formula) -> Formula:
    """Return the formula without redundant parts.

    These are repetitions, ordered thresholds, tautologies, contradictions.

    Guarantee: equal to `formula` for all integer values of the functionals. It uses only literals that `formula` uses,
    each with the smallest tolerance it has there, none more often than before; nodes alternate between AND and OR and
    have two children at least. Time grows with the square of the number of literals at most, not exponentially.

    **Why.** Under a conjunction every other conjunct that is a literal may be taken to hold, since where one fails the
    whole is false anyway; so below it a functional lies in an interval, and a literal that holds everywhere or nowhere
    in that interval is a constant. Under a disjunction the other literals may be taken to fail, likewise. Of two
    literals that a node holds on one functional in one direction, the stronger (AND) or the weaker (OR) is enough; an
    empty interval makes a conjunction false and a disjunction true. Whole children that contain another child's parts
    are absorbed (`A or (A and B)` is `A`).
    """
    least: dict[tuple[int, int, bool], int] = {}
    for cut in list_literals(formula):
        literal = (cut.functional, cut.cut, cut.above)
        least[literal] = min(cut.tolerance, least.get(literal, cut.tolerance))

    def narrow(cut: Cut) -> Cut:
        tolerance = least[cut.functional, cut.cut, cut.above]
        return cut if cut.tolerance == tolerance else replace(cut, tolerance=tolerance)

    current = formula.map_literals(narrow)
    for _ in range(_ROUNDS):
        smaller = _simplify(current, MappingProxyType({}))
        if smaller == current:
            break
        current = smaller
    return current


def _simplify(formula: Formula, known: Mapping[int, Interval]) -> Formula:
    """Return the formula where every functional lies in its known interval."""
    if isinstance(formula, Cut):
        return _settle_literal(formula, known)
    conjunction = isinstance(formula, AllOf)
    kind, settled = (AllOf, FALSE) if conjunction else (AnyOf, TRUE)
    children: list[Formula] = []
    for child in _flatten(formula.children, kind):
        part = _settle_literal(child, known) if isinstance(child, Cut) else child
        if part == settled:
            return settled
        if part not in (TRUE, FALSE):
            children.append(part)
    inside = _narrow_intervals([part for part in children if isinstance(part, Cut)], known, conjunction=conjunction)
    if any(low >= high for low, high in inside.values()):
        return settled
    parts: list[Formula] = []
    for child in dict.fromkeys(children):
        if isinstance(child, Cut):
            low, high = inside[child.functional]
            # the weaker of two literals is left out: it does not bound the interval
            parts += (child,) if child.cut == (low if child.above == conjunction else high) else ()
            continue
        part = _simplify(child, inside)
        if part == settled:
            return settled
        parts += part.children if isinstance(part, kind) else (part,)
    return _join_parts(_absorb_parts(parts, kind), kind)


def _flatten(children: Iterable[Formula], kind: type[AllOf] | type[AnyOf]) -> list[Formula]:
    flat: list[Formula] = []
    for child in children:
        if isinstance(child, kind) or (isinstance(child, AllOf | AnyOf) and len(child.children) == 1):
            flat += _flatten(child.children, kind)
        else:
            flat.append(child)
    return flat


def _settle_literal(cut: Cut, known: Mapping[int, Interval]) -> Formula:
    low, high = known.get(cut.functional, _ANY)
    if cut.cut <= low:
        return TRUE if cut.above else FALSE
    if cut.cut >= high:
        return FALSE if cut.above else TRUE
    return cut


def _narrow_intervals(
    literals: Sequence[Cut], known: Mapping[int, Interval], *, conjunction: bool
) -> dict[int, Interval]:
    """Return the intervals in which the node's other parts matter.

    Every literal holds (conjunction) or fails (disjunction).
    """
    inside = dict(known)
    for cut in literals:
        low, high = inside.get(cut.functional, _ANY)
        inside[cut.functional] = (max(low, cut.cut), high) if cut.above == conjunction else (low, min(high, cut.cut))
    return inside


def _absorb_parts(parts: Sequence[Formula], kind: type[AllOf] | type[AnyOf]) -> list[Formula]:
    """Return the parts without those that another part makes redundant.

    A redundant part is of the dual kind, and has all of the other part's children.
    """
    distinct = list(dict.fromkeys(parts))
    dual = AnyOf if kind is AllOf else AllOf
    sets = [frozenset(part.children) if isinstance(part, dual) else frozenset({part}) for part in distinct]
    return [part for part, own in zip(distinct, sets, strict=True) if not any(other < own for other in sets)]


def _join_parts(parts: Sequence[Formula], kind: type[AllOf] | type[AnyOf]) -> Formula:
    return parts[0] if len(parts) == 1 else kind(tuple(parts))
