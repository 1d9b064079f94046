"""An answer as a picture: keys against keys, each cell the band that its group is in.

It has no numbers but those of the bands, since the answer has none.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mechanisms.formula import Cut
from planner.catalog.listed_values import list_texts
from planner.explain.guarantee import predicate_texts
from planner.question.model import aggregate_text
from planner.question.plan import Plan
from planner.scope.embedded import predicate_column

Levels = npt.NDArray[np.int16]

ABSENT = -1  # in the place of a level: the group is no row of the answer
# From light to dark (ColorBrewer's Blues): one hue, so that colour blindness and printers mix no two of them up.
_SHADES = ((247, 251, 255), (198, 219, 239), (107, 174, 214), (33, 113, 181), (8, 48, 107))
_DARKEST = 0.85  # of the way through them, for the highest level: beyond it neighbouring bands look alike


def ink(shade: str) -> str:
    """Black or white, whichever is easier to read on a colour (WCAG 2's contrast, at least 4.5 then)."""
    return "#ffffff" if (luminance(shade) + 0.05) ** 2 < 1.05 * 0.05 else "#000000"


def luminance(shade: str) -> float:
    """How bright a colour is, from 0 to 1 (WCAG 2's relative luminance)."""
    parts = (int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@dataclass(frozen=True, slots=True)
class Scale:
    """What the levels of the measure `title` are: `marks` stand in cells, `meanings` say what they mean.

    Both go from the lowest level on.
    """

    title: str
    marks: tuple[str, ...]
    meanings: tuple[str, ...]

    def mark(self, level: int) -> str:
        """What stands in a cell."""
        return "" if level == ABSENT else self.marks[level]

    def shade(self, level: int) -> str:
        """The colour of a level, as #rrggbb; white for a group that is no row."""
        if level == ABSENT:
            return "#ffffff"
        along = _DARKEST * level / max(len(self.marks) - 1, 1) * (len(_SHADES) - 1)
        below = min(int(along), len(_SHADES) - 2)
        pairs = zip(_SHADES[below], _SHADES[below + 1], strict=True)
        return "#" + "".join(f"{round(low + (high - low) * (along - below)):02x}" for low, high in pairs)


@dataclass(frozen=True, slots=True)
class BandMap:
    """Groups in rows and columns; `levels` has shape (rows, columns). `scales` has one a column, or one for all."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    scales: tuple[Scale, ...]
    levels: Levels

    def scale(self, column: int) -> Scale:
        """What the levels of a column are."""
        return self.scales[0] if len(self.scales) == 1 else self.scales[column]


@dataclass(frozen=True, slots=True)
class Scorecard:
    """All grids of one answer, over the same groups. `left_out` is how many rows and columns are not in them."""

    grids: tuple[BandMap, ...]
    left_out: tuple[int, int]

    @property
    def legends(self) -> tuple[Scale, ...]:
        """The scales in the order of their first grids, each once."""
        return tuple(dict.fromkeys(scale for grid in self.grids for scale in grid.scales))

    @property
    def remark(self) -> str:
        """What was left out, or nothing."""
        parts = [f"{count:,} {what}" for count, what in zip(self.left_out, ("rows", "columns"), strict=True) if count]
        return f"Left out: {' and '.join(parts)}, those in the lowest bands." if parts else ""


@dataclass(frozen=True, slots=True)
class _Measure:
    """A scale, and the predicates of which it counts how many hold."""

    scale: Scale
    predicates: tuple[int, ...]


def draw_scorecard(plan: Plan, keys: Sequence[Sequence[str]], *, most_rows: int, most_columns: int) -> Scorecard:
    """The picture of an answer: a grid for each measure, or one with a column for each where there is one key.

    Thresholds on one aggregate are one measure, whose level is how many of them hold; every other predicate is one by
    itself, and so are the rows of an answer without any. The key with most values goes down, the next one across, and
    others down as well. Of more rows than `most_rows`, and columns than `most_columns`, those with the highest levels
    are kept.

    Parameters:
        keys: the answer's rows, keys first and then truths, as PostgreSQL's texts.
    """
    measures = tuple(_measures(plan))
    levels = _levels(plan, keys, measures)
    space = plan.question.keys
    axes = sorted(range(len(space.columns)), key=lambda axis: -space.shape[axis])
    across = axes[1:2]
    down = sorted(set(axes) - set(across))
    shape = [int(np.prod([space.shape[axis] for axis in part], dtype=np.int64)) for part in (down, across)]
    order = (0, *(1 + axis for axis in (*down, *across)))
    cells = levels.reshape(len(measures), *space.shape).transpose(order).reshape(len(measures), *shape)
    rows = _highest(cells.sum(axis=(0, 2), dtype=np.int64), most_rows)
    columns = _highest(cells.sum(axis=(0, 1), dtype=np.int64), most_columns)
    cells = cells[np.ix_(range(len(measures)), rows, columns)]
    left_out = (shape[0] - len(rows), shape[1] - len(columns))
    texts = tuple(tuple(list_texts(values)) for values in space.values)
    names = tuple(" / ".join(name) for name in _names(rows, [texts[axis] for axis in down])) or ("the whole table",)
    if not across:
        scales = tuple(one.scale for one in measures)
        title = " and ".join(space.names) or "the whole table"
        headings = tuple(scale.title for scale in scales)
        return Scorecard((BandMap(title, names, headings, scales, cells[:, :, 0].T),), left_out)
    headings = tuple(texts[across[0]][column] for column in columns)
    where = f"{' / '.join(space.names[axis] for axis in down)} (down) and {space.names[across[0]]} (across)"
    grids = (
        BandMap(f"{one.scale.title} by {where}", names, headings, (one.scale,), cells[number])
        for number, one in enumerate(measures)
    )
    return Scorecard(tuple(grids), left_out)


def _measures(plan: Plan) -> Iterator[_Measure]:
    """The measures of a question, in the order of their first predicates."""
    asked = plan.asked
    if not asked.predicates:
        yield _Measure(Scale("the answer", ("no", "yes"), ("not among its rows", "one of its rows")), ())
        return
    said = predicate_texts(plan)
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
            title = aggregate_text(asked.functionals[functional])
            meanings = ("none of these", *(said[place].removeprefix(f"{title} ") for place in numbers))
            yield _Measure(Scale(title, marks, meanings), numbers)
        elif number not in banded:
            named = asked.predicate_names[number]
            title = said[number] if named == predicate_column(number) else named
            yield _Measure(Scale(title, ("no", "yes"), ("false", said[number])), (number,))


def _levels(plan: Plan, keys: Sequence[Sequence[str]], measures: tuple[_Measure, ...]) -> Levels:
    """By measure and key of the key space, the level; `ABSENT` where the key is no row."""
    space = plan.question.keys
    unlisted = ABSENT if plan.asked.predicates else 0
    levels: Levels = np.full((len(measures), space.size), unlisted, dtype=np.int16)
    if not keys:
        return levels
    columns = list(zip(*keys, strict=True))
    width = len(space.columns)
    places = [{text: place for place, text in enumerate(list_texts(values))} for values in space.values]
    found = [np.array([places[axis][text] for text in columns[axis]]) for axis in range(width)]
    where = np.ravel_multi_index(found, space.shape) if width else np.zeros(len(keys), dtype=np.int64)
    truths = [np.array([text == "true" for text in column]) for column in columns[max(width, 1) :]]
    for number, one in enumerate(measures):
        held = [truths[place].astype(np.int16) for place in one.predicates]
        levels[number, where] = np.sum(held, axis=0, dtype=np.int16) if held else 1
    return levels


def _highest(levels: npt.NDArray[np.int64], most: int) -> list[int]:
    chosen: list[int] = np.argsort(-levels, kind="stable")[:most].tolist()
    return sorted(chosen)


def _names(rows: Sequence[int], texts: Sequence[Sequence[str]]) -> Iterator[tuple[str, ...]]:
    """The values of several keys at places of their product."""
    if not texts:
        return
    for coordinates in zip(*np.unravel_index(rows, [len(one) for one in texts]), strict=True):
        yield tuple(values[int(place)] for values, place in zip(texts, coordinates, strict=True))
