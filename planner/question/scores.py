"""Numbers of single rows, from which a release of scores is made: in whole steps, and in cells."""

from dataclasses import dataclass
from fractions import Fraction

from planner.question.condition import ALWAYS, Condition
from planner.question.question import Question, Term


@dataclass(frozen=True, slots=True)
class RowNumber:
    """A number of a row: the sum of its terms, in steps from `least` to `most`, each worth `step`.

    Only rows that satisfy `present` have such a number. Rows with NaN in a column of the terms have none. `text` is how
    it was written.
    """

    text: str
    terms: tuple[Term, ...]
    present: Condition
    step: Fraction
    least: int
    most: int

    @property
    def is_constant(self) -> bool:
        """True if public facts show that the number is the same on every row on which it is not NULL."""
        varies = any(term.column is not None or term.condition != ALWAYS for term in self.terms)
        return self.most <= self.least or not varies

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the number reads, each once."""
        return tuple(dict.fromkeys(term.column for term in self.terms if term.column is not None))


@dataclass(frozen=True, slots=True)
class ScoreAxis:
    """Cells of equal width along a number. The first begins at `start`, and each is `width` steps wide.

    Numbers outside are in the first or in the last cell.
    """

    number: RowNumber
    start: int
    width: int
    cells: int

    def find_place(self, cell: float) -> float:
        """Return the number at the beginning of a cell. A fraction means a point inside the cell."""
        return float(self.number.step) * (self.start + self.width * cell - 0.5)

    def find_edge(self, cell: float) -> float:
        """Return the number at the beginning of a cell, limited to the range of the number.

        A fraction means a point inside the cell.
        """
        ends = (float(self.number.step) * end for end in (self.number.least, self.number.most))
        return min(max(self.find_place(cell), next(ends)), next(ends))


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """Rows with scores, by group. `question` says which rows and groups, and has no formula.

    Parameters:
        axes: the numbers by which rows are divided into cells. A row without a number on one of them counts nowhere.
            Without axes a group is one cell.
        most_rows: how many rows of one privacy unit count in one group. None: every row counts, and no unit is
            protected.
    """

    question: Question
    axes: tuple[ScoreAxis, ...]
    most_rows: int | None

    @property
    def cells(self) -> int:
        """The number of cells of a group, all axes together, in row-major order."""
        product = 1
        for axis in self.axes:
            product *= axis.cells
        return product


def make_score_axis(number: RowNumber, *, most: int, symmetric: bool = False, even: bool = False) -> ScoreAxis:
    """Return an axis with a cell for each step of a number, or with `most` cells if there are more steps.

    It extends equally far on both sides of zero if `symmetric`. The number of cells is even if `symmetric` or `even`.
    """
    low, high = number.least, number.most
    if symmetric:
        half = max(-low, high + 1, 1)
        width = -(-half // (most // 2))
        cells = 2 * -(-half // width)
        return ScoreAxis(number, -width * (cells // 2), width, cells)
    steps = high - low + 1
    width = -(-steps // most)
    cells = -(-steps // width)
    return ScoreAxis(number, low, width, cells + cells % 2 if even else cells)
