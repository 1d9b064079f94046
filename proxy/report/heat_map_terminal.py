"""Heat maps of a budget for a terminal, with rich: `keyhole budget --map`."""

from collections.abc import Iterator, Sequence

from rich.style import Style
from rich.table import Table as Printed
from rich.text import Text

from proxy.report.heat_map import DARK_FROM, SUMMARY, HeatMap, choose_colour, list_legend, summarise, write_percent
from proxy.report.terminal import make_visible

_CELL_WIDTH = 5  # characters: a percentage with its sign, and a space
_LABEL_WIDTH = 24  # characters of a row's name; longer ones are folded


def print_maps(maps: Sequence[HeatMap], *, width: int, most_rows: int) -> Iterator[Printed | Text]:
    """Yield the maps for a terminal of `width` characters. Each cell shows its number, and a colour if possible."""
    columns = max(1, (width - _LABEL_WIDTH - 4) // (_CELL_WIDTH + 2))
    cut = [whole.keep_most_spent(rows=most_rows, columns=columns) for whole in maps]
    if any(shown.remark for shown in cut):
        yield Text(SUMMARY)
        yield from (Text(make_visible(line)) for line in summarise(maps))
        yield Text("")
    for shown in cut:
        yield Text(make_visible(shown.title))
        grid = Printed()
        grid.add_column("", max_width=_LABEL_WIDTH, overflow="fold")
        for name in shown.columns:
            grid.add_column(make_visible(name), width=_CELL_WIDTH, justify="right", overflow="fold")
        for name, row in zip(shown.rows, shown.percent.tolist(), strict=True):
            grid.add_row(Text(make_visible(name)), *(_make_cell(percent) for percent in row))
        yield grid
        yield Text(f"{shown.remark}\n" if shown.remark else "")
    if maps:
        yield Text("Percent of a group's budget spent: ").append_text(
            Text("  ").join(Text(words, style=_choose_style(percent)) for percent, words in list_legend())
        )


def _make_cell(percent: int) -> Text:
    return Text(write_percent(percent), style=_choose_style(percent))


def _choose_style(percent: int) -> Style:
    if percent < 0:
        return Style()
    return Style(color="#ffffff" if percent >= DARK_FROM else "#000000", bgcolor=choose_colour(percent))
