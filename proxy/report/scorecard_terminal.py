"""Scorecards for a terminal. Each cell shows the mark of its band, and a colour if possible."""

from collections.abc import Iterator, Sequence
from datetime import date

from rich.style import Style
from rich.table import Table as Printed
from rich.text import Text

from proxy.report.scorecard import ABSENT, BandMap, Scale, Scorecard, choose_ink
from proxy.report.terminal import make_visible

_LABEL_WIDTH = 24  # characters of a row's name; longer ones are folded
_LEAST, _MOST = 3, 12  # characters of a cell: a mark has three, and wider ones tear a grid apart
_HEADING_LINES = 4  # of a column's name; what does not fit is cut


def count_fitting_columns(width: int) -> int:
    """Return how many columns of a grid fit into a terminal of `width` characters."""
    return max(1, (width - _LABEL_WIDTH - 1) // (_LEAST + 1))


def print_scorecard(card: Scorecard, *, width: int) -> Iterator[Printed | Text]:
    """Yield the grids, one below the other with their legends, for a terminal of `width` characters."""
    for grid in card.grids:
        yield Text(make_visible(grid.title))
        yield _print_grid(grid, width)
        for scale in grid.scales:
            yield _make_legend(scale, is_named=len(grid.scales) > 1)
        yield Text("")
    if not card.grids:
        yield Text("No group is in the answer.")
    if card.remark:
        yield Text(card.remark)


def _print_grid(grid: BandMap, width: int) -> Printed:
    label = min(_LABEL_WIDTH, max(len(make_visible(name)) for name in grid.rows))
    fitting = (width - label - 1) // len(grid.columns) - 1
    headings = _fold_headings(grid.columns, max(_LEAST, min(_MOST, fitting)))
    cell = max(_LEAST, *(len(line) for lines in headings for line in lines))
    printed = Printed(box=None, padding=(0, 1, 0, 0), pad_edge=False)
    printed.add_column("", max_width=label, overflow="fold")
    for lines in headings:
        printed.add_column(Text("\n".join(lines)), width=cell, justify="center", no_wrap=True, vertical="bottom")
    for name, levels in zip(grid.rows, grid.levels.tolist(), strict=True):
        marks = (_make_mark(grid.find_scale(column), level, cell) for column, level in enumerate(levels))
        printed.add_row(Text(make_visible(name)), *marks)
    return printed


def _fold_headings(names: Sequence[str], width: int) -> list[list[str]]:
    """Return the columns' names, each broken into lines of at most `width` characters."""
    days = [_parse_day(name) for name in names]
    if None not in days:
        return [_spell_day(day, is_short=all(one.day == 1 for one in days if one)) for day in days if day]
    return [_fold(make_visible(name), width) for name in names]


def _parse_day(name: str) -> date | None:
    try:
        return date.fromisoformat(name)
    except ValueError:
        return None


def _spell_day(day: date, *, is_short: bool) -> list[str]:
    lines = [f"'{day:%y}", f"{day:%b}"]
    return lines if is_short else [*lines, f"{day.day}"]


def _fold(name: str, width: int) -> list[str]:
    lines = [name[start : start + width] for start in range(0, len(name), width)]
    if len(lines) <= _HEADING_LINES:
        return lines
    return [*lines[: _HEADING_LINES - 1], f"{lines[_HEADING_LINES - 1][:-1]}…"]


def _make_mark(scale: Scale, level: int, width: int) -> Text:
    return Text(scale.find_mark(level).center(width), style=_choose_style(scale, level))


def _make_legend(scale: Scale, *, is_named: bool) -> Text:
    told = Text(f"{make_visible(scale.title)}:  " if is_named else "")
    for level, (mark, meaning) in enumerate(zip(scale.marks, scale.meanings, strict=True)):
        if not meaning:
            continue
        told.append(f" {mark} ", style=_choose_style(scale, level)).append(f" {make_visible(meaning)}   ")
    return told


def _choose_style(scale: Scale, level: int) -> Style:
    if level == ABSENT:
        return Style()
    shade = scale.find_shade(level)
    return Style(color=choose_ink(shade), bgcolor=shade)
