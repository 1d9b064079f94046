"""A question's formula over threshold literals, in the form that the mechanisms read.

The formula is in negation normal form: a `Cut` is a literal, `AllOf` a conjunction, `AnyOf` a disjunction. Up to twelve
literals the planner gives the minimal DNF, an `AnyOf` of `AllOf` of `Cut`. This formula is evaluated on the noisy
values, relaxed by the tolerances and printed. With more literals it is the tree as typed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

Booleans: TypeAlias = npt.NDArray[np.bool_]
Integers: TypeAlias = npt.NDArray[np.int64]


_Folded = TypeVar("_Folded")


class _FormulaTree:
    """The operations on every formula."""

    __slots__ = ()

    def map_literals(self, change: Callable[["Cut"], "Formula"]) -> "Formula":
        """Return the formula with `change` applied to every literal, from the first to the last."""
        match self:
            case AllOf(children):
                return AllOf(tuple(child.map_literals(change) for child in children))
            case AnyOf(children):
                return AnyOf(tuple(child.map_literals(change) for child in children))
            case _:
                assert isinstance(self, Cut)
                return change(self)

    def fold(
        self,
        literal: Callable[["Cut"], _Folded],
        *,
        every: Callable[[Sequence[_Folded]], _Folded],
        some: Callable[[Sequence[_Folded]], _Folded],
    ) -> _Folded:
        """Fold the formula from the literals upward, and return the value of the whole."""
        match self:
            case AllOf(children):
                return every([child.fold(literal, every=every, some=some) for child in children])
            case AnyOf(children):
                return some([child.fold(literal, every=every, some=some) for child in children])
            case _:
                assert isinstance(self, Cut)
                return literal(self)


@dataclass(frozen=True, slots=True)
class Cut(_FormulaTree):
    """The literal `S > cut` (above) or `S <= cut` (not above) on one functional, all in the functional's integer units.

    Relaxed by its tolerance it reads `S > cut - tolerance` or `S <= cut + tolerance`.
    """

    functional: int
    cut: int
    above: bool
    tolerance: int

    def evaluate(self, values: Integers) -> Booleans:
        """Return True for each exact value on which the literal holds.

        Only tests, the demo and warnings of empty groups use it.
        """
        return values > self.cut if self.above else values <= self.cut

    def relax(self) -> "Cut":
        """Return the literal with its threshold moved outward by its tolerance; its own tolerance becomes zero."""
        moved = self.cut - self.tolerance if self.above else self.cut + self.tolerance
        return Cut(functional=self.functional, cut=moved, above=self.above, tolerance=0)


@dataclass(frozen=True, slots=True)
class AllOf(_FormulaTree):
    """A conjunction. Without children it is true."""

    children: tuple["Formula", ...]


@dataclass(frozen=True, slots=True)
class AnyOf(_FormulaTree):
    """A disjunction. Without children it is false."""

    children: tuple["Formula", ...]


Formula: TypeAlias = Cut | AllOf | AnyOf

TRUE = AllOf(())
FALSE = AnyOf(())


def list_literals(formula: Formula) -> Iterator[Cut]:
    """Yield every literal, in order of appearance, with repetitions.

    >>> many = Cut(functional=0, cut=100, above=True, tolerance=10)
    >>> few = Cut(functional=0, cut=500, above=False, tolerance=10)
    >>> [(one.cut, one.above) for one in list_literals(AnyOf((many, AllOf((few, many)))))]
    [(100, True), (500, False), (100, True)]
    """
    left = [formula]
    while left:
        node = left.pop()
        if isinstance(node, Cut):
            yield node
        else:
            left.extend(reversed(node.children))


def relax_formula(formula: Formula) -> Formula:
    """Return the formula with every literal relaxed by its tolerance. Where it is false, returning the key is an error.

    >>> relax_formula(Cut(functional=0, cut=100, above=True, tolerance=10))
    Cut(functional=0, cut=90, above=True, tolerance=0)
    """
    return formula.map_literals(Cut.relax)


def negate_formula(formula: Formula) -> Formula:
    """Return the formula that is true exactly where this one is false.

    Each literal keeps its tolerance, on the other side.

    >>> many, low = Cut(0, 100, above=True, tolerance=10), Cut(1, 9, above=False, tolerance=1)
    >>> few, high = Cut(0, 100, above=False, tolerance=10), Cut(1, 9, above=True, tolerance=1)
    >>> negate_formula(AllOf((many, low))) == AnyOf((few, high))
    True
    """

    def opposite(literal: Cut) -> Formula:
        return replace(literal, above=not literal.above)

    return formula.fold(
        opposite, every=lambda children: AnyOf(tuple(children)), some=lambda children: AllOf(tuple(children))
    )


def evaluate_formula(formula: Formula, literal: Callable[[Cut], Booleans], *, keys: int) -> Booleans:
    """Return the formula's value for each key, from the values of its literals. All arrays have shape (keys,).

    >>> counts, sums = np.array([90, 120, 300]), np.array([7, 7, 2])
    >>> formula = AllOf((Cut(0, 100, above=True, tolerance=10), Cut(1, 5, above=True, tolerance=1)))
    >>> evaluate_formula(formula, lambda cut: cut.evaluate((counts, sums)[cut.functional]), keys=3).tolist()
    [False, True, False]
    """
    match formula:
        case Cut():
            return literal(formula)
        case AllOf(children):
            result = np.ones(keys, dtype=np.bool_)
            for child in children:
                result &= evaluate_formula(child, literal, keys=keys)
            return result
        case AnyOf(children):
            result = np.zeros(keys, dtype=np.bool_)
            for child in children:
                result |= evaluate_formula(child, literal, keys=keys)
            return result
