"""One arc look for each literal: its price, its calibration, and the joint loss of all of them.

Each literal has random words of its own. So literals on one functional are apportioned, and their losses added, as if
each had a functional of its own.

Proof: docs/proofs/arc.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from math import floor

from mechanisms.apportionment.keyhole import LossCurve
from mechanisms.arc.acceptance_law import compute_laplace_slope, find_speed
from mechanisms.arc.divergences import Divergences, compute_divergences, compute_pure_loss, list_convex_divergences
from mechanisms.arc.look_table import BlockGrid, choose_slope, make_looks
from mechanisms.formula import Cut, Formula
from mechanisms.protocol import DecisionTask, FunctionalTest, LookTable
from mechanisms.threshold.one_shot import round_up_to_float
from mechanisms.threshold.renyi import ORDERS

_DIGITS = 40  # of decimals, whose last one is rounded up: far more than a charge has


@dataclass(frozen=True, slots=True)
class LookChoice:
    """The looks at each literal: how steep their feet are, and which come before the last.

    `multiple` is that of the slope of Laplace noise. `early` has the parts of the last speed, growing. All early looks
    together have `early_share` of both rates.
    """

    multiple: float
    early: tuple[float, ...] = ()
    early_share: float = 0.08


@dataclass(frozen=True, slots=True)
class JointLoss:
    """The pure loss of one key and its Rényi divergences at the public orders."""

    pure: Fraction
    divergences: Divergences


@dataclass(frozen=True, slots=True)
class Literals:
    """The different literals of a task, and the task in which each has a functional of its own.

    Literals that differ only in their tolerances are one, with the narrowest. `grids[i]` is the grid of literal `i`.
    """

    literals: tuple[Cut, ...]
    task: DecisionTask
    grids: tuple[BlockGrid, ...]

    @staticmethod
    def from_task(task: DecisionTask) -> "Literals":
        """Return the literals of a task, in order of appearance."""
        narrowest: dict[tuple[int, int, bool], Cut] = {}
        for cut in task.list_literals():
            known = narrowest.get(_identify(cut))
            if known is None or cut.tolerance < known.tolerance:
                narrowest[_identify(cut)] = cut
        places = {key: place for place, key in enumerate(narrowest)}

        def move(cut: Cut) -> Formula:
            return replace(cut, functional=places[_identify(cut)])

        own = [cut.functional for cut in narrowest.values()]
        formula, *predicates = (formula.map_literals(move) for formula in task.formulas)
        spread = replace(
            task,
            formula=formula,
            predicates=tuple(predicates),
            sensitivities=tuple(task.sensitivities[functional] for functional in own),
            exposures=tuple(tuple(exposure[functional] for functional in own) for exposure in task.exposures),
            blocks=None,
            short_blocks=frozenset(),
            knowledge=(),
        )
        grids = tuple(
            BlockGrid.from_contract(
                sensitivity=task.sensitivities[cut.functional],
                tolerance=cut.tolerance,
                in_full=_moves_in_full(task, cut.functional),
            )
            for cut in narrowest.values()
        )
        return Literals(literals=tuple(narrowest.values()), task=spread, grids=grids)

    def find_place(self, cut: Cut) -> int:
        """Return the index of a literal of the original task."""
        return [_identify(literal) for literal in self.literals].index(_identify(cut))

    def make_loss_curve(self, *, multiple: float) -> LossCurve:
        """Return a literal's price, half of the square of the angle of one unit, as a function of its two shares."""

        def find_loss(place: int, fnr: float, fpr: float) -> tuple[float, float, float]:
            return find_price(grid=self.grids[place], fnr=fnr, fpr=fpr, multiple=multiple)

        return find_loss

    def calibrate(self, place: int, fnr: float, fpr: float, *, looks: LookChoice) -> FunctionalTest:
        """Calibrate the test of one literal. Raise `Unachievable`."""
        cut, grid = self.literals[place], self.grids[place]
        slope = choose_slope(grid=grid, fnr=fnr, fpr=fpr, multiple=looks.multiple)
        *early, table = make_looks(
            grid=grid, fnr=fnr, fpr=fpr, slope=slope, early=looks.early, early_share=looks.early_share
        )
        pure = sum((Fraction(compute_pure_loss(one, grid.moves)) for one in (*early, table)), start=Fraction(0))
        return FunctionalTest(
            epsilon=round_up_to_float(pure),
            rate=pure / self.task.sensitivities[place],
            shift=0,
            tie=Fraction(0),
            fnr=fnr,
            fpr=fpr,
            tolerance=cut.tolerance,
            table=table,
            early_tables=tuple(early),
        )


def find_price(*, grid: BlockGrid, fnr: float, fpr: float, multiple: float) -> tuple[float, float, float]:
    """Return the price of a look before its table is made, and its slopes in the logarithms of the two shares.

    The price is half of the square of the angle by which one unit turns the look. At small orders a divergence is about
    the order times the price.

    Parameters as for `make_last_look`, with `multiple` as for `choose_slope`.

    >>> grid = BlockGrid.from_contract(sensitivity=1, tolerance=99, in_full=True)
    >>> round(find_price(grid=grid, fnr=0.05, fpr=0.1, multiple=1.5)[0], 6)
    0.000222
    """
    if fnr + fpr >= 1.0:
        return 0.0, 0.0, 0.0
    part = grid.moves / grid.steps
    found = find_speed(fnr=fnr, fpr=fpr, slope=multiple * compute_laplace_slope(fnr=fnr, fpr=fpr))
    angle = found.speed * part
    # the slope falls by `multiple` with the logarithm of either rate
    by_fnr, by_fpr = (part * (by_rate - multiple * found.by_slope) for by_rate in (found.by_fnr, found.by_fpr))
    return 0.5 * angle * angle, angle * by_fnr, angle * by_fpr


def compute_joint_loss(literals: Literals, tables: Sequence[LookTable]) -> JointLoss:
    """Return the loss of one key by one look at each literal, the largest over all exposures.

    Parameters:
        tables: by literal, the table of that look.
    """
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        pure, rows = Fraction(0), []
        for exposure in literals.task.exposures:
            parts = list(zip(tables, literals.grids, literals.task.sensitivities, exposure, strict=True))
            own = [_bound_divergences(table, grid, part * most) for table, grid, most, part in parts]
            rows.append([sum((one[place] for one in own), start=Decimal(0)) for place in range(len(ORDERS))])
            losses = (_bound_pure_loss(table, grid, part * most) for table, grid, most, part in parts)
            pure = max(pure, sum(losses, start=Fraction(0)))
        most = _divide_rounded_up(pure)
        divergences = (max((row[place] for row in rows), default=Decimal(0)) for place in range(len(ORDERS)))
        return JointLoss(pure=pure, divergences=tuple(min(most, one) for one in divergences))


def _identify(cut: Cut) -> tuple[int, int, bool]:
    return cut.functional, cut.cut, cut.above


def _moves_in_full(task: DecisionTask, functional: int) -> bool:
    """Return True if a step of the functional's table may be the whole sensitivity.

    Then its part is 1 in every exposure, or the task allows noise on its blocks and no part is between 0 and 1.
    """
    parts = {exposure[functional] for exposure in task.exposures}
    return parts == {1} or ((task.blocks is None or functional in task.blocks) and parts <= {0, 1})


def _bound_divergences(table: LookTable, grid: BlockGrid, changed: Fraction) -> Divergences:
    """Return by order the divergence of one look at a literal that a unit changes by `changed` at most on average."""
    if grid.is_whole:
        return compute_divergences(table, 1 if changed else 0)
    rows, moves = list_convex_divergences(table), grid.bound_moves(changed)
    low = min(floor(moves), grid.moves - 1)
    beyond = _divide_rounded_up(moves - low)
    return tuple(first + beyond * (second - first) for first, second in zip(rows[low], rows[low + 1], strict=True))


def _bound_pure_loss(table: LookTable, grid: BlockGrid, changed: Fraction) -> Fraction:
    """Return the pure loss of one look at a literal that a unit changes by `changed`: at most that of all its moves."""
    if grid.is_whole:
        return Fraction(compute_pure_loss(table, 1 if changed else 0))
    return grid.bound_moves(changed) * Fraction(compute_pure_loss(table, 1))


def _divide_rounded_up(value: Fraction) -> Decimal:
    with localcontext(prec=_DIGITS, rounding=ROUND_CEILING):
        return Decimal(value.numerator) / Decimal(value.denominator)
