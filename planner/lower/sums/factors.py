"""Polynomials with integer coefficients as products, so that a value that occurs in many terms is computed once.

Guarantee: multiplied out, `content * product of the linear factors * rest` has the monomials of the polynomial.

References: docs/decisions/0002-rewriting.md (row values).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

Monomial = tuple[str, ...]  # the names that are multiplied, sorted, each as often as it occurs
Polynomial = Mapping[Monomial, int]  # coefficients, none of them zero


@dataclass(frozen=True, slots=True)
class LinearFactor:
    """The factor `slope * name + constant`."""

    name: str
    slope: int
    constant: int


@dataclass(frozen=True, slots=True)
class FactoredPolynomial:
    """A polynomial in factors: a number, linear factors, and a rest without linear factors."""

    content: int
    linear: tuple[LinearFactor, ...]
    rest: Polynomial


def factor_polynomial(polynomial: Polynomial) -> FactoredPolynomial:
    """Return a polynomial with at least one monomial as a product of all linear factors that are found and a rest.

    >>> factor_polynomial({("p",): 200, ("d", "p"): -2}).linear
    (LinearFactor(name='d', slope=-1, constant=100), LinearFactor(name='p', slope=1, constant=0))
    """
    content = gcd(*polynomial.values())
    rest: Polynomial = {names: number // content for names, number in polynomial.items()}
    linear: list[LinearFactor] = []
    while (found := _divide_linear(rest)) is not None:
        linear.append(found[0])
        rest = found[1]
    if set(rest) == {()}:
        return FactoredPolynomial(content * rest[()], tuple(linear), {(): 1})
    return FactoredPolynomial(content, tuple(linear), rest)


def _divide_linear(polynomial: Polynomial) -> tuple[LinearFactor, Polynomial] | None:
    """Return a linear factor and the quotient, or None if no factor is found."""
    for name in sorted({name for names in polynomial for name in names}):
        bound = {names: number for names, number in polynomial.items() if name in names}
        free = {names: number for names, number in polynomial.items() if name not in names}
        quotient = {_remove_name(names, name): number for names, number in bound.items()}
        if not free:
            return LinearFactor(name, 1, 0), quotient
        if quotient.keys() != free.keys():
            continue
        some = next(iter(free))
        common = gcd(quotient[some], free[some]) * (1 if free[some] > 0 else -1)
        slope, constant = quotient[some] // common, free[some] // common
        if all(quotient[names] * constant == free[names] * slope for names in free):
            return LinearFactor(name, slope, constant), {names: number // constant for names, number in free.items()}
    return None


def _remove_name(names: Monomial, name: str) -> Monomial:
    place = names.index(name)
    return (*names[:place], *names[place + 1 :])
