"""Scorecards: an answer as a grid of keys against keys. Each cell shows the band in which its group lies.

The only numbers are the bands' thresholds, since the answer has no others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Cut
from planner.catalog.listed_values import format_values
from planner.explain.guarantee import list_predicate_texts
from planner.question.plan import Plan
from planner.question.question import write_aggregate
from planner.scope.embedded import name_predicate_column

Levels = npt.NDArray[np.int32]

ABSENT = -1  # in the place of a level: the group is no row of the answer
# From light to dark (ColorBrewer's Blues): one hue, so that colour blindness and printers mix no two of them up.
_SHADES = ((247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107))
_DARKEST = 0.85  # of the way through them, for the highest level: beyond it neighbouring bands look alike


def choose_ink(shade: str) -> str:
    """Return black or white, whichever is easier to read on a colour (WCAG 2 contrast of at least 4.5)."""
    return "#ffffff" if (find_luminance(shade) + 0.05) ** 2 < 1.05 * 0.05 else "#000000"


def find_luminance(shade: str) -> float:
    """Return the brightness of a colour, from 0 to 1 (relative luminance of WCAG 2)."""
    parts = (int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@dataclass(frozen=True, slots=True)
class Scale:
    """The levels of one measure: a `mark` for each level in cells, and a `meaning` that explains it.

    `title` names the measure. Both lists start with the lowest level. A meaning is empty if the mark needs no
    explanation.
    """

    title: str
    marks: tuple[str, ...]
    meanings: tuple[str, ...]

    def find_mark(self, level: int) -> str:
        """Return the text of a cell with this level."""
        return "" if level == ABSENT else self.marks[level]

    def find_shade(self, level: int) -> str:
        """Return the colour of a level, as #rrggbb. A group that is not in the answer is white."""
        if level == ABSENT:
            return "#ffffff"
        highest = len(self.marks) - 1
        along = _DARKEST * (level / highest if highest else 1.0) * (len(_SHADES) - 1)
        below = min(int(along), len(_SHADES) - 2)
        pairs = zip(_SHADES[below], _SHADES[below + 1], strict=True)
        return "#" + "".join(f"{round(low + (high - low) * (along - below)):02x}" for low, high in pairs)


@dataclass(frozen=True, slots=True)
class BandMap:
    """One grid of groups.

    `levels` has shape (rows, columns). `scales` has one scale for each column, or one for all columns.
    """

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    scales: tuple[Scale, ...]
    levels: Levels

    def find_scale(self, column: int) -> Scale:
        """Return the scale of a column of the grid."""
        return self.scales[0] if len(self.scales) == 1 else self.scales[column]


@dataclass(frozen=True, slots=True)
class Scorecard:
    """All grids of one answer, over the same groups. `left_out` has the numbers of omitted rows and columns."""

    grids: tuple[BandMap, ...]
    left_out: tuple[int, int]

    @property
    def legends(self) -> tuple[Scale, ...]:
        """The distinct scales, in the order in which grids use them."""
        return tuple(dict.fromkeys(scale for grid in self.grids for scale in grid.scales))

    @property
    def remark(self) -> str:
        """Return a remark on omitted rows and columns, or ""."""
        parts = [f"{count:,} {what}" for count, what in zip(self.left_out, ("rows", "columns"), strict=True) if count]
        return f"Left out: {' and '.join(parts)}, those in the lowest bands." if parts else ""


@dataclass(frozen=True, slots=True)
class _Measure:
    """A scale with its predicates. A group's level is the number of predicates that are true."""

    scale: Scale
    predicates: tuple[int, ...]


def draw_scorecard(plan: Plan, keys: Sequence[Sequence[str | None]], *, most_rows: int, most_columns: int) -> Scorecard:
    """Return the scorecard of an answer: a grid for each measure, or a column for each if there is one key.

    Thresholds on one aggregate form one measure, whose level is the number of true ones. Every other predicate is a
    measure of its own. The ranks of a ranking are one measure. If there are no predicates, one measure marks the keys
    that passed. The key with the most values is shown in rows, and the next one in columns. Further keys extend the
    rows. Values that the answer does not contain are left out. If there are more than `most_rows` rows or
    `most_columns` columns, keep those with the highest levels.

    Parameters:
        keys: the answer's rows, as PostgreSQL's texts: keys, the rank if there is a ranking, and truth values.
    """
    measures = tuple(_list_measures(plan, len(keys)))
    levels = _find_levels(plan, keys, measures)
    space = plan.question.keys
    axes = sorted(range(len(space.columns)), key=lambda axis: -space.shape[axis])
    across = axes[1:2]
    down = sorted(set(axes) - set(across))
    shape = [int(np.prod([space.shape[axis] for axis in part], dtype=np.int64)) for part in (down, across)]
    order = (0, *(1 + axis for axis in (*down, *across)))
    cells = levels.reshape(len(measures), *space.shape).transpose(order).reshape(len(measures), *shape)
    present = (cells != ABSENT).any(axis=0)
    rows, more_rows = _choose_highest_indices(cells.sum(axis=(0, 2), dtype=np.int64), present.any(axis=1), most_rows)
    columns, more_columns = _choose_highest_indices(
        cells.sum(axis=(0, 1), dtype=np.int64), present.any(axis=0), most_columns
    )
    if not rows:
        return Scorecard((), (0, 0))
    if plan.asked_question.ranked is not None and not across:
        rows.sort(key=lambda row: -int(cells[-1, row, 0]))
    cells = cells[np.ix_(range(len(measures)), rows, columns)]
    texts = tuple(tuple(format_values(values)) for values in space.values)
    names = tuple(" / ".join(name) for name in _list_names(rows, [texts[axis] for axis in down])) or (
        "the whole table",
    )
    if not across:
        scales = tuple(one.scale for one in measures)
        title = " and ".join(space.names) or "the whole table"
        headings = tuple(scale.title for scale in scales)
        return Scorecard((BandMap(title, names, headings, scales, cells[:, :, 0].T),), (more_rows, more_columns))
    headings = tuple(texts[across[0]][column] for column in columns)
    where = f"{' / '.join(space.names[axis] for axis in down)} (down) and {space.names[across[0]]} (across)"
    grids = (
        BandMap(f"{one.scale.title} by {where}", names, headings, (one.scale,), cells[number])
        for number, one in enumerate(measures)
    )
    return Scorecard(tuple(grids), (more_rows, more_columns))


def _list_measures(plan: Plan, returned: int) -> Iterator[_Measure]:
    """Yield the measures of a question in the order of their first predicates.

    The measure of a ranking comes last.
    """
    yield from _list_predicate_measures(plan)
    if plan.asked_question.ranked is not None:
        by = f"place by {write_aggregate(plan.asked_question.ranked.functional)}"
        title = by if plan.asked_question.ranked.descending else f"{by}, the least first"
        marks = tuple(str(place) for place in range(returned, 0, -1))
        yield _Measure(Scale(title, marks, (*("",) * (returned - 1), "is the first")), ())
    elif not plan.asked_question.predicates:
        yield _Measure(Scale("the answer", ("yes",), ("one of its rows",)), ())


def _list_predicate_measures(plan: Plan) -> Iterator[_Measure]:
    asked = plan.asked_question
    said = list_predicate_texts(plan)
    bands: dict[int, list[tuple[int, int]]] = {}
    for number, formula in enumerate(asked.predicates):
        if isinstance(formula, Cut) and formula.above:
            bands.setdefault(formula.functional, []).append((formula.cut, number))
    first = {min(number for _, number in found): (functional, sorted(found)) for functional, found in bands.items()}
    banded = {number for found in bands.values() if len(found) > 1 for _, number in found}
    for number in range(len(asked.predicates)):
        if number in first and number in banded:
            functional, found = first[number]
            numbers = tuple(place for _, place in found)
            marks = tuple(str(level) for level in range(len(found) + 1))
            title = write_aggregate(asked.functionals[functional])
            meanings = ("none of these", *(said[place].removeprefix(f"{title} ") for place in numbers))
            yield _Measure(Scale(title, marks, meanings), numbers)
        elif number not in banded:
            named = asked.predicate_names[number]
            title = said[number] if named == name_predicate_column(number) else named
            yield _Measure(Scale(title, ("no", "yes"), ("false", said[number])), (number,))


def _find_levels(plan: Plan, keys: Sequence[Sequence[str | None]], measures: tuple[_Measure, ...]) -> Levels:
    """Return an array of levels, by measure and key of the key space: `ABSENT` for a key that is not in the answer."""
    space = plan.question.keys
    levels: Levels = np.full((len(measures), space.size), ABSENT, dtype=np.int32)
    if not keys:
        return levels
    columns = list(zip(*keys, strict=True))
    width = len(space.columns)
    places = [{text: place for place, text in enumerate(format_values(values))} for values in space.values]
    found = [np.array([places[axis][text] for text in columns[axis]]) for axis in range(width)]
    where = np.ravel_multi_index(found, space.shape) if width else np.zeros(len(keys), dtype=np.int64)
    placed = columns[max(width, 1) : len(columns) - len(plan.asked_question.predicates)]
    truths = [np.array([text == "true" for text in column]) for column in columns[max(width, 1) + len(placed) :]]
    for number, one in enumerate(measures):
        if one.predicates:
            levels[number, where] = np.sum([truths[place] for place in one.predicates], axis=0, dtype=np.int32)
        elif placed:
            levels[number, where] = len(keys) - np.array([int(place) for place in placed[0]])
        else:
            levels[number, where] = 0
    return levels


def _choose_highest_indices(
    levels: npt.NDArray[np.int64], present: npt.NDArray[np.bool_], most: int
) -> tuple[list[int], int]:
    """Return the indices with the highest levels among the present ones, in order, and the number of all others."""
    there = np.flatnonzero(present)
    chosen: list[int] = there[np.argsort(-levels[there], kind="stable")[:most]].tolist()
    return sorted(chosen), len(there) - len(chosen)


def _list_names(rows: Sequence[int], texts: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the combined names of several keys, for these row-major indices."""
    if not texts:
        return
    for coordinates in zip(*np.unravel_index(rows, [len(one) for one in texts]), strict=True):
        yield tuple(values[int(place)] for values, place in zip(texts, coordinates, strict=True))
