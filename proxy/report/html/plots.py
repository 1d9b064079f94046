"""Plots as SVG text for a page: lines, steps, bars and cells, with readable axes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from proxy.report.html.page import Drawing, escape_text

# Told apart also by who sees few colours (Okabe and Ito), and by their dashes in black and white.
_INKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_DASHES = ("", "7 4", "2 3", "9 3 2 3", "4 2", "1 2")
_WIDTH = 640.0  # of a plot with axes, in pixels, as all sizes here; a column of text is as wide
_HEIGHT = 360.0  # of the same: so that a slope of one looks like one
_LEFT = 70.0  # of the axis from the edge: a number of seven characters fits
_RIGHT = 24.0  # half a number of the last tick
_TOP = 36.0  # the title
_BOTTOM = 52.0  # numbers and the name of the axis
_LINE = 18.0  # from one line of text to the next
_MOST_TICKS = 8  # of an axis: numbers do not touch
_LABEL = 40  # characters of a name; longer ones are cut, the whole stands in the tooltip
_CHARACTER = 7.0  # the most that a letter is wide on average
_CELL = 46.0  # of one cell's width and, by half, its height


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of a plot: its name and range. If `low` or `high` is None, the data's own end is used."""

    name: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    """The points of a curve from left to right. `errors` has half the length of each point's error bar, if any."""

    name: str
    xs: tuple[float, ...]
    ys: tuple[float, ...]
    errors: tuple[float, ...] = ()
    is_dotted: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar from zero to `value`, with a label after it, and optionally a mark for comparison."""

    name: str
    value: float
    label: str
    mark: float | None = None


def draw_line_plot(title: str, curves: Sequence[Curve], *, x: Axis, y: Axis) -> Drawing:
    """Return a plot of curves, each with straight lines from point to point. A dotted curve has only its points.

    Raise ValueError if no curve has a point, if lengths differ, or a number is not finite.
    """
    return _draw_plot(title, curves, x=x, y=y, has_steps=False)


def draw_step_plot(title: str, curves: Sequence[Curve], *, x: Axis, y: Axis) -> Drawing:
    """Draw curves as `draw_line_plot` does, but hold each height until the next point, as in an ROC curve."""
    return _draw_plot(title, curves, x=x, y=y, has_steps=True)


def draw_bar_plot(title: str, bars: Sequence[Bar], *, high: float | None = None) -> Drawing:
    """Return a plot of horizontal bars. `high` is the end of the scale, or None for the largest value.

    Raise ValueError for a negative or infinite number, or if there are no bars.
    """
    values = [number for bar in bars for number in (bar.value, bar.mark or 0.0)]
    if not bars or not all(0 <= value < math.inf for value in values):
        raise ValueError("bars are as long as finite numbers that are not negative")
    most = max(values) if high is None else high
    names = max(min(_LABEL, len(bar.name)) for bar in bars) * _CHARACTER + 12
    told = max(len(bar.label) for bar in bars) * _CHARACTER + 12
    room = max(120.0, _WIDTH - names - told)
    return _make_svg(
        title,
        names + room + told,
        _TOP + (len(bars) + 0.5) * _LINE * 1.4,
        [line for place, bar in enumerate(bars) for line in _draw_bar(bar, place, names, room / (most or 1.0))],
    )


def draw_cell_plot(
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    shares: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
) -> Drawing:
    """Return a plot of a grid of cells. Each cell has its text, and is darker the larger its share (0 to 1).

    Raise ValueError if a row does not have one share and one text for each column.
    """
    if len(shares) != len(rows) or len(texts) != len(rows):
        raise ValueError("cells come in as many rows as there are names")
    names = max((min(_LABEL, len(name)) for name in rows), default=0) * _CHARACTER + 12
    wide = max(_CELL, *(min(_LABEL, len(name)) * _CHARACTER + 10 for name in columns))
    high = _CELL / 2
    parts = [
        _draw_text(names + (place + 0.5) * wide, _TOP + 12, name, anchor="middle") for place, name in enumerate(columns)
    ]
    for number, (name, some, told) in enumerate(zip(rows, shares, texts, strict=True)):
        at = _TOP + _LINE + number * high
        parts.append(_draw_text(names - 8, at + high * 0.68, name, anchor="end"))
        if len(some) != len(columns) or len(told) != len(columns):
            raise ValueError("a row of cells has one share and one text for each column")
        for place, (share, text) in enumerate(zip(some, told, strict=True)):
            parts.extend(_draw_cell(names + place * wide, at, wide, high, min(1.0, max(0.0, share)), text))
    return _make_svg(title, names + wide * len(columns) + 8, _TOP + _LINE + high * len(rows) + 8, parts)


@dataclass(frozen=True, slots=True)
class _Scale:
    """The mapping of one axis's numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def place(self, value: float) -> float:
        """Return the position of a number in pixels. A number outside the range is placed at the nearest end."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def list_ticks(self) -> Iterator[float]:
        """Yield round numbers within the range, in steps of 1, 2 or 5 times a power of ten."""
        rough = (self.high - self.low) / _MOST_TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(times * power for times in (1, 2, 5, 10) if times * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        for number in range(first, math.floor(self.high / step + 1e-9) + 1):
            yield number * step


def _draw_plot(title: str, curves: Sequence[Curve], *, x: Axis, y: Axis, has_steps: bool) -> Drawing:
    for curve in curves:
        if len(curve.xs) != len(curve.ys) or (curve.errors and len(curve.errors) != len(curve.xs)):
            raise ValueError("a curve has as many heights as places")
    xs = [value for curve in curves for value in curve.xs]
    ys = [value for curve in curves for value in curve.ys]
    ys += [height + error for curve in curves for height, error in zip(curve.ys, curve.errors, strict=False)]
    ys += [height - error for curve in curves for height, error in zip(curve.ys, curve.errors, strict=False)]
    if not xs or not all(map(math.isfinite, [*xs, *ys])):
        raise ValueError("a plot takes one finite point or more")
    across = _make_scale(x, xs, start=_LEFT, end=_WIDTH - _RIGHT)
    up = _make_scale(y, ys, start=_HEIGHT - _BOTTOM, end=_TOP)
    named = [curve for curve in curves if curve.name]
    height = _HEIGHT + _LINE * len(named)
    parts = [*_draw_axes(x, y, across, up)]
    for number, curve in enumerate(curves):
        parts.extend(_draw_curve(curve, number, across, up, has_steps=has_steps))
    for place, curve in enumerate(named):
        number = curves.index(curve)
        at = _HEIGHT + _LINE * (place + 0.4)
        parts.append(f'<line x1="{_LEFT:g}" x2="{_LEFT + 32:g}" y1="{at:g}" y2="{at:g}" {_choose_stroke(number)}/>')
        parts.append(_draw_text(_LEFT + 40, at + 4, curve.name, most=100))
    return _make_svg(title, _WIDTH, height + _LINE * 0.5, parts)


def _make_scale(axis: Axis, values: Sequence[float], *, start: float, end: float) -> _Scale:
    low = min(values) if axis.low is None else axis.low
    high = max(values) if axis.high is None else axis.high
    if high <= low:
        low, high = low - 0.5, low + 0.5
    return _Scale(low, high, start, end)


def _draw_axes(x: Axis, y: Axis, across: _Scale, up: _Scale) -> Iterator[str]:
    for value in across.list_ticks():
        at = across.place(value)
        yield f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{up.start:g}" y2="{up.end:g}" stroke="#e4e4e4"/>'
        yield _draw_text(at, up.start + 18, _write_number(value), anchor="middle")
    for value in up.list_ticks():
        at = up.place(value)
        yield f'<line x1="{across.start:g}" x2="{across.end:g}" y1="{at:.1f}" y2="{at:.1f}" stroke="#e4e4e4"/>'
        yield _draw_text(across.start - 8, at + 4, _write_number(value), anchor="end")
    yield (f'<path d="M{across.start:g} {up.end:g}V{up.start:g}H{across.end:g}" fill="none" stroke="#111111"/>')
    yield _draw_text((across.start + across.end) / 2, up.start + 40, x.name, anchor="middle", most=80)
    middle = (up.start + up.end) / 2
    yield _draw_text(16, middle, y.name, anchor="middle", is_vertical=True, most=50)


def _draw_curve(curve: Curve, number: int, across: _Scale, up: _Scale, *, has_steps: bool) -> Iterator[str]:
    points = [(across.place(a), up.place(b)) for a, b in zip(curve.xs, curve.ys, strict=True)]
    if not points:
        return
    if not curve.is_dotted:
        first, *rest = points
        joins = (f"H{a:.1f}V{b:.1f}" if has_steps else f"L{a:.1f} {b:.1f}" for a, b in rest)
        yield f'<path d="M{first[0]:.1f} {first[1]:.1f}{"".join(joins)}" fill="none" {_choose_stroke(number)}/>'
    ink = _INKS[number % len(_INKS)]
    for (a, b), height, error in zip(points, curve.ys, curve.errors, strict=False):
        low, high = up.place(height - error), up.place(height + error)
        ends = f"M{a - 3:.1f} {low:.1f}h6M{a - 3:.1f} {high:.1f}h6"
        yield f'<path d="M{a:.1f} {low:.1f}V{high:.1f}{ends}" stroke="{ink}"/>'
        yield f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{ink}"/>'
    if curve.is_dotted and not curve.errors:
        yield from (f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2.5" fill="{ink}"/>' for a, b in points)


def _draw_bar(bar: Bar, place: int, left: float, scale: float) -> Iterator[str]:
    at = _TOP + place * _LINE * 1.4
    yield _draw_text(left - 8, at + 14, bar.name, anchor="end")
    yield f'<rect x="{left:.1f}" y="{at:.1f}" width="{bar.value * scale:.1f}" height="{_LINE:g}" fill="{_INKS[0]}"/>'
    end = max(bar.value, bar.mark or 0.0)
    if bar.mark is not None:
        mark = left + bar.mark * scale
        yield f'<path d="M{mark:.1f} {at - 2:.1f}V{at + _LINE + 2:.1f}" stroke="{_INKS[1]}" stroke-width="3"/>'
    yield _draw_text(left + end * scale + 8, at + 14, bar.label, most=80)


def _draw_cell(x: float, y: float, wide: float, high: float, share: float, text: str) -> Iterator[str]:
    red, green, blue = (round(255 - share * (255 - full)) for full in (0, 90, 140))
    ink = "#ffffff" if share > 0.55 else "#111111"
    yield (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{high:.1f}" '
        f'fill="#{red:02x}{green:02x}{blue:02x}" stroke="#ffffff"/>'
    )
    yield _draw_text(x + wide / 2, y + high * 0.68, text, anchor="middle", ink=ink)


def _choose_stroke(number: int) -> str:
    dashes = _DASHES[number % len(_DASHES)]
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'stroke="{_INKS[number % len(_INKS)]}" stroke-width="2"{dashed}'


def _draw_text(
    x: float,
    y: float,
    text: str,
    *,
    anchor: str = "start",
    ink: str = "#111111",
    is_vertical: bool = False,
    most: int = _LABEL,
) -> str:
    turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if is_vertical else ""
    short = text if len(text) <= most else text[: most - 1] + "…"
    whole = "" if short == text else f"<title>{escape_text(text)}</title>"
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{ink}"{turn}>{whole}{escape_text(short)}</text>'


def _write_number(value: float) -> str:
    return f"{value:,.10g}" if abs(value) >= 1e-12 else "0"


def _make_svg(title: str, width: float, height: float, parts: Sequence[str]) -> Drawing:
    name = escape_text(title)
    return Drawing(
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'aria-label="{name}" font-family="sans-serif" font-size="12">'
        f"<title>{name}</title>"
        + _draw_text(8, 18, title, most=90).replace("<text ", '<text font-weight="bold" ', 1)
        + "".join(parts)
        + "</svg>"
    )
