"""The places at which an expression of one number can change its value: cuts of the number line.

    floor(x / 10) * 10 for x in 0 .. 100        cuts at 0, 10, ..., 110
    CASE WHEN x > 10 THEN 'many' ELSE 'few' END a cut just after 10

Guarantee: between two neighbouring cuts, and within `window` if that is not None, the expression has one value for all
numbers x. Cuts are a function of the expression and of the given bounds.

Between cuts, every part of the expression is one of finitely many lines `a x + b` (`lines`), or constant (`has_steps`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from itertools import chain
from math import ceil, floor
from typing import Protocol

from sqlglot import exp

from planner.errors import KeyholeError
from planner.groups.doubles import (
    ARITHMETIC,
    Cut,
    combine,
    compute_absolute,
    find_bucket_share,
    find_crossing,
    find_crossing_unit,
    keep_number,
    return_constant,
)
from planner.groups.even_cuts import (
    EvenCuts,
    Side,
    cut_toward_zero,
    find_cuts_around,
    list_ceil_cuts,
    list_floor_cuts,
    list_round_away_cuts,
    list_round_even_cuts,
)
from planner.groups.pieces import MOST_CUTS, MOST_STEPS, Line, NotFinite, Pieces, TooManyCuts, limit_lines, pair_lines
from planner.parser.tree import contains_type, strip_parentheses, write_node, write_short
from planner.scope.name_resolution import find_numeric_scale
from planner.values.constant import read_number

_MOST_BITS = 1_000  # of a number in an expression of constants: columns have no more than a few hundred
_COMPARED: dict[type[exp.Expr], bool | None] = {  # True if an equal number is below the cut; None: both
    exp.GT: True,
    exp.LTE: True,
    exp.GTE: False,
    exp.LT: False,
    exp.EQ: None,
    exp.NEQ: None,
}


_STEPS = Pieces(has_steps=True)
_ZERO = Pieces(frozenset(((Fraction(0), Fraction(0)),)), is_whole=True)
_X = (Fraction(1), Fraction(0))  # the column itself, as a line
_STILL = (Fraction(0), Fraction(0))  # 0, whatever the column is


@dataclass(slots=True)
class CutFinder:
    """Finder of cuts: the numbers at which expressions of one numeric column change their value.

    The column is written `name` in the expressions, and its values lie from `low` to `high`.
    """

    name: str
    is_whole: bool
    is_double: bool
    low: Fraction | None
    high: Fraction | None
    unit: Fraction | None = None  # its numbers are multiples of this, if its type says so
    stride: tuple[Fraction, Fraction] | None = None  # the distance of its numbers, and one of them
    cuts: set[Cut] = field(default_factory=set)
    even_cuts: dict[EvenCuts, None] = field(default_factory=dict)  # further cuts at equal distances
    window: tuple[Cut, Cut] | None = None
    shapes: dict[int, Pieces] = field(default_factory=dict)  # by the id of a node, so that each node is read once

    def add_cuts(self, node: exp.Expr) -> None:
        """Add the cuts of an expression. Raise `NotFinite`, `TooManyCuts`."""
        if self._get_shape(node).varies:
            self._cut_everywhere(node)

    def list_cuts(self) -> list[Cut]:
        """Return all cuts in ascending order. Raise `TooManyCuts` if they are too many to process one by one."""
        size = len(self.cuts) + sum(one.count for one in self.even_cuts)
        if size <= 2 * MOST_STEPS:
            found = self.cuts.union(*self.even_cuts)
            size = len(found)
            if size <= MOST_STEPS + 1:  # so many ends have so many steps
                return sorted(found)
        raise TooManyCuts(size - 1)

    def is_chain(self, node: exp.Expr) -> bool:
        """Return True if an expression has different values on both sides of each of its added cuts.

        It is a step function such as floor, with only rising or falling functions around it.
        """
        node = strip_parentheses(node)
        alone = self.is_whole or self.stride is not None  # each value is a group
        if alone and self._is_line(node) and not contains_type(node, exp.Cast, exp.Div):
            return True
        if self._find_subtracted_modulo(node) is not None:
            return self._is_line(node.this)
        match node:
            case exp.Floor() | exp.Ceil() | exp.Round() | exp.Trunc() if self._keeps_whole(node):
                return self.is_chain(node.this)
            case exp.Floor() | exp.Ceil() | exp.Round() | exp.Trunc() | exp.WidthBucket():
                return self._is_line(node.this)
            case exp.Div() if self._get_shape(node).has_steps and self._get_shape(node.this).varies:
                return self._is_line(node.this)
            case exp.Neg() | exp.Cast() | exp.Add() | exp.Sub() | exp.Mul() | exp.Div():
                if isinstance(node, exp.Cast):
                    numbers = (exp.DataType.Type.DECIMAL, exp.DataType.Type.DOUBLE)  # an integer may be one for several
                    if node.to.expressions or node.to.this not in numbers:
                        return False
                    return self.is_chain(node.this) and not self._get_shape(node.this).varies
                if isinstance(node, exp.Neg):
                    return self.is_chain(node.this)
                by = self._get_shape(node.expression).constant
                whole = isinstance(node, exp.Div) and self._get_shape(node.this).is_whole
                return by is not None and by != 0 and not whole and self.is_chain(node.this)
            case _:
                return False

    def _keeps_whole(self, node: exp.Expr) -> bool:
        """Return True if a rounding is of a number that is whole already."""
        return node.args.get("decimals") is None and self._get_shape(node.this).is_whole

    def _is_line(self, node: exp.Expr) -> bool:
        found = self._get_shape(node)
        choice = node.find(exp.Nullif, exp.Case, exp.Coalesce, exp.Greatest, exp.Least)  # NULL may come of a number
        return found.varies and not found.has_steps and len(found.lines) == 1 and choice is None

    def _get_shape(self, node: exp.Expr) -> Pieces:
        node = strip_parentheses(node)
        if id(node) not in self.shapes:
            self.shapes[id(node)] = self._find_shape(node)
        return self.shapes[id(node)]

    def _find_shape(self, node: exp.Expr) -> Pieces:
        match node:
            case exp.Column():
                own = write_node(node) == self.name
                return Pieces(frozenset((_X,)), is_whole=self.is_whole) if own else _STEPS
            case exp.Literal():
                return _read_literal(node)
            case exp.Neg():
                return self._combine_lines(_ZERO, node.this, exp.Sub, node)
            case exp.Sub() if (taken := self._find_subtracted_modulo(node)) is not None:
                by = self._get_shape(taken.expression).constant
                assert by
                inner = Pieces(frozenset((a / abs(by), b / abs(by)) for a, b in self._get_shape(node.this).lines))
                return Pieces(has_steps=self._cut_whole(inner, cut_toward_zero, node).has_steps, is_whole=True)
            case exp.Add() | exp.Sub() | exp.Mul():
                return self._combine_lines(self._get_shape(node.this), node.expression, type(node), node)
            case exp.Div():
                return self._divide(node)
            case exp.Floor() | exp.Ceil() | exp.Round() | exp.Trunc():
                return self._cut_at_roundings(node)
            case exp.Cast():
                return self._cut_cast(node)
            case exp.WidthBucket():
                return self._cut_buckets(node)
            case exp.Predicate():
                return self._cut_truth(node)
            case exp.Case() | exp.Coalesce() | exp.Greatest() | exp.Least() | exp.Nullif() | exp.Abs() | exp.Sign():
                return self._cut_choice(node)
            case _:
                return self._cut_arguments(node)

    def _cut_truth(self, node: exp.Expr) -> Pieces:
        match node:
            case exp.GT() | exp.LTE() | exp.GTE() | exp.LT() | exp.EQ() | exp.NEQ():
                self._compare_nodes(node.this, node.expression, _COMPARED[type(node)], node)
            case exp.Between():
                self._compare_nodes(node.this, node.args["low"], _COMPARED[exp.GTE], node)
                self._compare_nodes(node.this, node.args["high"], _COMPARED[exp.LTE], node)
            case exp.In():
                self._compare_all(node.this, node.expressions, node)
            case exp.Is(expression=exp.Null()):
                self._get_shape(node.this)
            case _:
                return self._cut_arguments(node)
        return _STEPS

    def _find_subtracted_modulo(self, node: exp.Expr) -> exp.Mod | None:
        """Return `x % n` of `x - x % n` if both are integers, else None.

        That expression rounds x down to steps of n.
        """
        taken = strip_parentheses(node.expression) if isinstance(node, exp.Sub) else None
        if (
            not isinstance(taken, exp.Mod)
            or strip_parentheses(taken.this) != strip_parentheses(node.this)
            or not self._get_shape(node.this).is_whole
        ):
            return None
        by = self._get_shape(taken.expression)
        return taken if by.is_whole and by.constant else None

    def _combine_lines(self, left: Pieces, right_node: exp.Expr, operation: type[exp.Expr], node: exp.Expr) -> Pieces:
        right = self._get_shape(right_node)
        whole = left.is_whole and right.is_whole
        if left.has_steps or right.has_steps:
            if left.varies or right.varies:
                self._cut_everywhere(node)
            return Pieces(has_steps=True, is_whole=whole)
        found = set[Line]()
        for (a, b), (c, d) in pair_lines(left, right):
            if operation is exp.Mul:
                if a and c:
                    self._cut_everywhere(node)
                    return Pieces(has_steps=True, is_whole=whole)
                found.add((a * d + b * c, b * d))
            else:
                sign = 1 if operation is exp.Add else -1
                found.add((a + sign * c, b + sign * d))
        if any(part.numerator.bit_length() + part.denominator.bit_length() > _MOST_BITS for part in chain(*found)):
            raise NotFinite(write_short(node))
        return Pieces(frozenset(found), is_whole=whole)

    def _divide(self, node: exp.Div) -> Pieces:
        left, divisor = self._get_shape(node.this), self._get_shape(node.expression)
        if not left.varies and not divisor.varies:
            return Pieces(has_steps=True, is_whole=left.is_whole and divisor.is_whole)
        by = divisor.constant
        if not by or left.has_steps:
            raise NotFinite(write_short(node))
        found = Pieces(frozenset((a / by, b / by) for a, b in left.lines), is_whole=False)
        if left.is_whole and divisor.is_whole:
            return Pieces(has_steps=self._cut_whole(found, cut_toward_zero, node).has_steps, is_whole=True)
        return found

    def _cut_at_roundings(self, node: exp.Expr) -> Pieces:
        inner = self._get_shape(node.this)
        places = node.args.get("decimals")
        scale = Fraction(1)
        if places is not None:
            digits = self._get_shape(places).constant
            if digits is None or digits.denominator != 1 or abs(digits) > 12:
                raise NotFinite(write_short(node))
            scale = Fraction(10) ** digits.numerator
        if not inner.varies:
            return Pieces(has_steps=True, is_whole=False)
        scaled = Pieces(frozenset((a * scale, b * scale) for a, b in inner.lines))
        sides: dict[type[exp.Expr], Side] = {
            exp.Floor: list_floor_cuts,
            exp.Ceil: list_ceil_cuts,
            exp.Trunc: cut_toward_zero,
        }
        if places is not None and self._is_floating(node.this):
            raise NotFinite(write_short(node))  # PostgreSQL has no such function
        return self._cut_whole(scaled, sides.get(type(node), self._round_half(node)), node)

    def _cut_cast(self, node: exp.Cast) -> Pieces:
        inner = self._get_shape(node.this)
        kind = node.to.this
        value = str(kind.value) if isinstance(kind, exp.DataType.Type) else ""
        if value in ("INT", "BIGINT", "SMALLINT"):
            if not inner.varies or inner.is_whole:
                return Pieces(inner.lines, inner.has_steps, is_whole=True)
            found = self._cut_whole(inner, self._round_half(node), node)
            return Pieces(found.lines, found.has_steps, is_whole=True)
        if value in ("DECIMAL", "DOUBLE") and not node.to.expressions:
            return Pieces(inner.lines, inner.has_steps)
        if (sizes := find_numeric_scale(node)) is not None and inner.varies:
            return self._cut_decimals(inner, *sizes, node)
        return self._cut_arguments(node)

    def _cut_decimals(self, inner: Pieces, precision: int, scale: int, node: exp.Cast) -> Pieces:
        """Return the pieces of a cast to `numeric(p, s)`, which rounds halves away from 0.

        Raise `NotFinite` if PostgreSQL would fail on a number that is too long.
        """
        low, high = self._get_bounds(node)
        ends = [a * x + b for a, b in inner.lines for x in (low, high)]
        if any(abs(end) + 1 >= Fraction(10) ** (precision - scale) for end in ends):
            raise NotFinite(write_short(node))
        step = Fraction(10) ** scale
        rounded = self._cut_whole(
            Pieces(frozenset((a * step, b * step) for a, b in inner.lines)), list_round_away_cuts, node
        )
        return Pieces(rounded.lines, rounded.has_steps)

    def _round_half(self, node: exp.Expr) -> Side:
        """Return the cuts of rounding to whole numbers.

        PostgreSQL rounds halves of doubles to even, others away from 0.
        """
        return list_round_even_cuts if self._is_floating(node.this) else list_round_away_cuts

    def _is_floating(self, node: exp.Expr) -> bool:
        """Return True if PostgreSQL computes the expression with double precision."""
        return not _is_cast_to(node, exp.DType.DECIMAL) if self.is_double else _is_cast_to(node, exp.DType.DOUBLE)

    def _cut_buckets(self, node: exp.WidthBucket) -> Pieces:
        inner = self._get_shape(node.this)
        floating = self._is_floating(node)
        if floating and not self.is_double and (self.unit is None or "num_buckets" not in node.args):
            raise NotFinite(write_short(node))
        if (array := _find_edges(node)) is not None:
            edges = [self._get_shape(one).constant for one in array.expressions]
        elif "num_buckets" not in node.args:
            raise NotFinite(write_short(node))  # of three numbers, which PostgreSQL has no function of
        else:
            low, high, count = (
                self._get_shape(node.args[name]).constant for name in ("min_value", "max_value", "num_buckets")
            )
            if low is None or high is None or count is None or count.denominator != 1 or count <= 0 or low >= high:
                raise NotFinite(write_short(node))
            (line, *others) = inner.lines or (_STILL,)
            if not floating and not others and not inner.has_steps and line[0]:
                a, b = line
                first = ((low if a > 0 else high) - b) / a
                step = (high - low) / count / abs(a)
                self._cut_evenly((EvenCuts(first, step, count.numerator + 1, equal_is_below=a < 0),))
                return Pieces(has_steps=True, is_whole=True)
            if count > MOST_STEPS:
                raise TooManyCuts(count.numerator)
            edges = [low + (high - low) * i / count.numerator for i in range(count.numerator + 1)]
        known = [edge for edge in edges if edge is not None]
        if len(known) < len(edges) or known != sorted(known):
            raise NotFinite(write_short(node))
        arithmetic = self._find_arithmetic(node.this) if floating and "num_buckets" in node.args else None
        if arithmetic is not None and len(inner.lines - {_X}) == 0:
            share = partial(find_bucket_share, arithmetic, float(known[0]), float(known[-1]), len(known) - 1)
            inside = ((edge, False) for edge in known[1:-1])
            steps = ((Fraction(place), False) for place in range(1, len(known) - 1))
            cross = self._crossing
            self._cut(cross(cut, step, share, rises=True) for cut, step in zip(inside, steps, strict=True))
            known = [known[0], known[-1]]
            if not self.is_double:
                ends = [((edge, False), (Fraction(float(edge)), False)) for edge in known]
                self._cut(cross(cut, end, arithmetic, rises=True) for cut, end in ends)
                return Pieces(has_steps=True, is_whole=True)
        elif floating and not self.is_double:
            raise NotFinite(write_short(node))
        for edge in known:
            self._compare(inner, Pieces(frozenset(((Fraction(0), edge),))), _COMPARED[exp.GTE], node)
        return Pieces(has_steps=True, is_whole=True)

    def _cut_around_zero(self, node: exp.Expr) -> Pieces:
        inner = self._get_shape(node.this)
        self._compare(inner, _ZERO, None, node)
        if isinstance(node, exp.Sign):
            return _STEPS
        mirrored = {(-a, -b) for a, b in inner.lines}
        return Pieces(limit_lines(inner.lines | mirrored), inner.has_steps, is_whole=inner.is_whole)

    def _cut_choice(self, node: exp.Expr) -> Pieces:
        if isinstance(node, exp.Abs | exp.Sign):
            return self._cut_around_zero(node)
        if isinstance(node, exp.Nullif):
            first = self._get_shape(node.this)
            other = self._get_shape(node.expression)
            self._compare(first, other, None, node)
            return Pieces(
                first.lines, first.has_steps, is_whole=first.is_whole and other.is_whole
            )  # their common type is compared
        if isinstance(node, exp.Case):
            for branch in node.args["ifs"]:
                if node.this is None:
                    self._get_shape(branch.this)
                else:
                    self._compare(self._get_shape(node.this), self._get_shape(branch.this), None, node)
            results = [branch.args["true"] for branch in node.args["ifs"]]
            results += [] if node.args.get("default") is None else [node.args["default"]]
        else:
            results = [node.this, *node.expressions]
        found = [self._get_shape(one) for one in results]
        if isinstance(node, exp.Greatest | exp.Least):
            for index, one in enumerate(found):
                for other in found[:index]:
                    self._compare(one, other, None, node)
        return Pieces(
            limit_lines(frozenset(line for one in found for line in one.lines)),
            has_steps=any(one.has_steps for one in found),
            is_whole=all(one.is_whole or one.has_steps for one in found),
        )

    def _cut_arguments(self, node: exp.Expr) -> Pieces:
        """Return the pieces of any other function, which is constant where its arguments are. Cut where they change."""
        for child in node.iter_expressions():
            if not isinstance(child, exp.DataType | exp.Var | exp.Identifier) and self._get_shape(child).varies:
                self._cut_everywhere(node)
        return _STEPS

    def _compare_all(self, tested: exp.Expr, others: Iterable[exp.Expr], node: exp.Expr) -> None:
        inner = self._get_shape(tested)
        for other in others:
            self._compare(inner, self._get_shape(other), None, node)

    def _compare_nodes(self, left: exp.Expr, right: exp.Expr, equal_below: bool | None, node: exp.Expr) -> None:  # noqa: FBT001
        shapes = self._get_shape(left), self._get_shape(right)
        mirrored = None if equal_below is None else not equal_below
        if self._cut_at_crossing(left, shapes[1], equal_below) or self._cut_at_crossing(right, shapes[0], mirrored):
            return
        self._compare(*shapes, equal_below, node)

    def _cut_at_crossing(self, tested: exp.Expr, other: Pieces, equal_below: bool | None) -> bool:  # noqa: FBT001
        """Cut where arithmetic that is rounded at each step crosses a constant.

        Return False for any other comparison.
        """
        inner, at = self._get_shape(tested), other.constant
        if not self.is_double or at is None or inner.has_steps or not inner.varies or not self._is_floating(tested):
            return False
        computed = self._find_arithmetic(tested)
        if computed in (None, keep_number):
            return False
        assert computed is not None
        sides = (True, False) if equal_below is None else (equal_below,)
        rounded = Fraction(float(at))
        self._cut(
            find_crossing(((at - b) / a, side), (rounded, side), computed, rises=a > 0)
            for a, b in inner.lines
            if a
            for side in sides
        )
        return True

    def _compare(self, left: Pieces, right: Pieces, equal_below: bool | None, node: exp.Expr) -> None:  # noqa: FBT001
        if (left.has_steps and right.varies) or (right.has_steps and left.varies):
            raise NotFinite(write_short(node))
        for (a, b), (c, d) in pair_lines(left, right):
            if a == c:
                continue
            at = (d - b) / (a - c)
            if self.is_double:
                at = Fraction(float(at))  # the constant is rounded before it is compared
            sides = (True, False) if equal_below is None else (equal_below is (a > c),)
            self._cut({(at, side) for side in sides})

    def _cut(self, found: Iterable[Cut]) -> None:
        self.cuts.update(found)
        if len(self.cuts) > MOST_STEPS + 1:  # so many ends have so many steps
            raise TooManyCuts(len(self.cuts))

    def _cut_whole(self, inner: Pieces, side: Side, node: exp.Expr) -> Pieces:
        """Cut at each whole number, where a rounding changes, and return its pieces."""
        if inner.has_steps:
            raise NotFinite(write_short(node))
        for a, b in inner.lines:
            if a:
                self._cut_at_steps(a, b, side, node)
        return _STEPS

    def _cut_at_steps(self, a: Fraction, b: Fraction, side: Side, node: exp.Expr) -> None:
        low, high = self._get_bounds(node)
        ends = sorted((a * low + b, a * high + b))
        first, last = floor(ends[0]) - 1, ceil(ends[1]) + 1
        most = MOST_STEPS if self._is_floating(node.this) else MOST_CUTS + 2
        if last - first > most:
            raise TooManyCuts(last - first - 2)
        runs = [run.map_through_line(a, b) for run in side(first, last)]
        runs = runs if a > 0 else runs[::-1]
        if not self._is_floating(node.this):
            within = find_cuts_around(runs, (low, False), (high, False))
            self._cut_evenly(one for run in runs if (one := run.keep_between(*within)) is not None)
            self._narrow_window(within)
            return
        computed = self._find_arithmetic(node.this)
        if computed is None or not (self.is_double or self.unit is not None):
            raise NotFinite(write_short(node))  # where double precision rounds across a step is not known
        steps = sorted(step for run in side(first, last) for step in run)
        steps = steps if a > 0 else steps[::-1]
        exact = sorted(cut for run in runs for cut in run)
        found = [self._crossing(cut, step, computed, rises=a > 0) for cut, step in zip(exact, steps, strict=True)]
        first_cut = max(cut for cut in found if cut <= (low, False))
        self._cut(found)
        self._narrow_window((first_cut, min(cut for cut in found if cut > (high, False))))

    @property
    def _crossing(self) -> "_Crossing":
        return find_crossing if self.unit is None else partial(find_crossing_unit, self.unit)

    def _cut_evenly(self, found: Iterable[EvenCuts]) -> None:
        self.even_cuts |= dict.fromkeys(found)
        size = sum(one.count for one in self.even_cuts)
        if size > MOST_CUTS + 1:
            raise TooManyCuts(size - 1)

    def _find_arithmetic(self, node: exp.Expr) -> Callable[[float], float] | None:
        """Return the double-precision arithmetic of an expression, or None for anything else."""
        node = strip_parentheses(node)
        if isinstance(node, exp.Column):
            return keep_number
        if isinstance(node, exp.Cast) and isinstance(strip_parentheses(node.this), exp.Column):
            return keep_number if node.to.this == exp.DType.DOUBLE else None
        if node.find(exp.Column) is None:
            constant = self._get_shape(node).constant
            return None if constant is None else partial(return_constant, float(constant))
        if isinstance(node, exp.Neg):
            inner = self._find_arithmetic(node.this)
            return None if inner is None else partial(combine, float.__mul__, inner, partial(return_constant, -1.0))
        if isinstance(node, exp.Coalesce | exp.Nullif):
            return self._find_arithmetic(node.this)
        if isinstance(node, exp.Abs):
            inner = self._find_arithmetic(node.this)
            return None if inner is None else partial(compute_absolute, inner)
        operation = ARITHMETIC.get(type(node))
        if operation is None:
            return None
        if not all(self._is_read_as_double(one) for one in (node.this, node.expression)):
            return None
        left, right = self._find_arithmetic(node.this), self._find_arithmetic(node.expression)
        return None if left is None or right is None else partial(combine, operation, left, right)

    def _is_read_as_double(self, node: exp.Expr) -> bool:
        """Return True unless PostgreSQL computes a part of the expression exactly before it becomes a double."""
        node = strip_parentheses(node)
        return isinstance(node, exp.Column) or node.find(exp.Column) is None or self._is_floating(node)

    def _cut_everywhere(self, node: exp.Expr) -> None:
        """Cut at every whole number, or at every number of the stride."""
        if not self.is_whole and self.stride is None:
            raise NotFinite(write_short(node))
        low, high = self._get_bounds(node)
        step, one = self.stride or (Fraction(1), Fraction(0))
        first, last = ceil((low - one) / step), floor((high - one) / step) + 1
        if last - first > MOST_CUTS:
            raise TooManyCuts(last - first)
        begin, end = one + step * first, one + step * last
        self._cut_evenly((EvenCuts(begin, step, last - first + 1, equal_is_below=False),))
        self._narrow_window(((begin, False), (end, False)))

    def _narrow_window(self, within: tuple[Cut, Cut]) -> None:
        if self.window is not None:
            within = max(self.window[0], within[0]), min(self.window[1], within[1])
        self.window = within

    def _get_bounds(self, node: exp.Expr) -> tuple[Fraction, Fraction]:
        if self.low is None or self.high is None:
            raise NotFinite(write_short(node))
        return self.low, self.high


def _is_cast_to(node: exp.Expr, kind: exp.DType) -> bool:
    return any(cast.to.this == kind for cast in node.find_all(exp.Cast))


def _find_edges(node: exp.WidthBucket) -> exp.Array | None:
    """Return the array of edges, or None if all buckets have equal widths.

    Raise `NotFinite` for an argument that is not a plain array.
    """
    array = node.args.get("threshold")
    if isinstance(array, exp.Cast) and isinstance(array.this, exp.Array) and _is_list_of_numbers(array.to):
        array = array.this
    if array is not None and not isinstance(array, exp.Array):
        raise NotFinite(write_short(node))
    return array


def _is_list_of_numbers(kind: exp.DataType) -> bool:
    """Return True for an array type of whole or exact numbers without a precision. A cast to it changes no constant."""
    (of,) = kind.expressions or (None,)
    exact = (exp.DType.INT, exp.DType.BIGINT, exp.DType.SMALLINT, exp.DType.DECIMAL)
    return kind.this == exp.DType.ARRAY and isinstance(of, exp.DataType) and of.this in exact and not of.expressions


class _Crossing(Protocol):
    def __call__(self, cut: Cut, step: Cut, computed: Callable[[float], float], *, rises: bool) -> Cut: ...


def _read_literal(node: exp.Literal) -> Pieces:
    text = str(node.this)
    try:
        value = read_number(text, node).value
    except KeyholeError:
        if node.is_string:
            return _STEPS
        raise
    return Pieces(frozenset(((Fraction(0), value),)), is_whole=text.isdigit() and not node.is_string)
