"""Writes docs/results/alarms.md."""

from collections.abc import Sequence

from benchmarks.alarms.measured import REPEATED, AboutAlarms, Taxis, Watched
from benchmarks.alarms.prices import (
    AFRESH,
    ALARM,
    LOOKS,
    WINDOWS,
    list_ways,
    price_rivals,
)
from benchmarks.alarms.replay import FNR, FPR
from benchmarks.experiments.tables import format_percent, format_short, write_table

MOST_LOSS, MOST_NEVER, MOST_WRONG = 0.65, 1e-3, 1e-3
"""The bars that were set for taxis, cut 50 and tolerance 10, before anything ran; late at most `FNR`."""


def write_page(taxis: Taxis, shops: Sequence[Watched], about: AboutAlarms) -> str:
    """Return the whole page."""
    parts = (
        _write_opening(about),
        _write_prices(),
        "![What watching a value costs](alarms-prices.png)",
        _write_windows(),
        _write_real_data(taxis, shops),
        _write_bars(taxis),
        f"## Beside others\n\n{_BESIDE}\n\n![Who is in the answer around the first true look](alarms-delays.png)",
        _write_comparison(taxis.beside),
    )
    return "\n\n".join(parts) + "\n"


def _write_opening(about: AboutAlarms) -> str:
    return f"""# Alarms: what watching a value all day costs

`make experiments` wrote this page and its images (seed {about.seed}). A value, such as a day's visits, grows
through a window, and one unit changes it by one. At each look a key above the threshold is missed with probability at
most {FNR:g}. A key below the threshold by more than the tolerance is in the answer at any look with probability at
most {FPR:g}. One look at 10,000 keys takes {about.seconds_a_look:.2f} s of a
processor beyond the scan. See [how the alarm works](../mechanisms.md#the-accumulating-alarm)."""


def _write_prices() -> str:
    found = {looks: price_rivals(looks) for looks in LOOKS}
    rows = [
        [_mark_ours(name), *(_mark_ours(format_short(found[looks][name]), name) for looks in LOOKS)]
        for name in found[LOOKS[0]]
    ]
    rows.append(["an alarm saves", *(f"{found[looks][AFRESH] / found[looks][ALARM]:,.1f} x" for looks in LOOKS)])
    return f"""## What it costs

The table has `epsilon (tolerance + 1)`; lower is better. Trees and the matrix mechanism
promise the rate of false alarms for each look, the others for all looks together: a stronger promise. One look alone,
an ordinary question, costs 3.91.

{write_table(["looks", *(f"{looks:,}" for looks in LOOKS)], rows)}

The alarm's price depends on [how one unit changes the value](../mechanisms.md#the-accumulating-alarm)."""


def _write_windows() -> str:
    cheaper = {}
    for window in WINDOWS:
        first, second = list_ways(window)[:2]
        cheaper[window] = f"{first.way.value} costs {first.price:.1f}, {second.way.value} {second.price:.1f}"
    sliding = [f"- Sliding, {window.length:,} looks: {text}." for window, text in cheaper.items() if window.hop == 1]
    return f"""## Sliding windows

With noise on ticks and blocks an alert clears at once, with an alarm at the end of its epoch.

{chr(10).join(sliding)}"""


def _write_real_data(taxis: Taxis, shops: Sequence[Watched]) -> str:
    listed = "\n".join(
        f"- **{watched.what}**: {watched.windows:,} windows of {watched.looks} looks ({watched.origin})."
        f" {watched.true:,} exceed {watched.cut}, and {watched.beyond:,} stay below it by {watched.tolerance} or more."
        for watched in (taxis.beside, *shops)
    )
    return f"""## On real data

{listed}

A customer counts once in a month. The shop's windows pool {REPEATED} runs."""


def _write_bars(taxis: Taxis) -> str:
    cut, tolerance, found, expected = taxis.replayed[0]
    true, beyond = max(1, found.true), max(1, found.beyond)
    never = found.never / true
    bars = (
        (f"loss of a window at most {MOST_LOSS:g}", f"{found.alarm:.3f}", found.alarm <= MOST_LOSS),
        (
            f"late at the first true look at most {FNR:.0%}",
            _write_both(found.late / true, expected.late),
            max(found.late / true, expected.late) <= FNR,
        ),
        (
            f"never in the answer under {MOST_NEVER:.1%}",
            f"{_write_both(never, expected.never)}, {found.never} of {found.true:,}",
            max(never, expected.never) < MOST_NEVER,
        ),
        (
            f"false under {MOST_WRONG:g}",
            f"{found.wrong / beyond:.1e}, expected {expected.wrong:.1e}",
            max(found.wrong / beyond, expected.wrong) < MOST_WRONG,
        ),
    )
    rows = [[bar, value, "met" if met else "NOT MET"] for bar, value, met in bars]
    return f"""### The bars

The bars were set before the run, for taxis with threshold {cut} and tolerance {tolerance}. A question at every hour
costs {found.afresh:.2f}. The table has one run of all windows, and the expectation from exact
probabilities.

{write_table(["bar", "the alarm", ""], rows, texts=3)}"""


def _write_both(realised: float, expected: float) -> str:
    return f"{100.0 * realised:.2f} %, expected {100.0 * expected:.3f} %"


_BESIDE = f"""- *To contract* means that each look keeps the alarm's rates ({FNR:g}, {FPR:g}) at any cost.
- *At the alarm's loss* means the same epsilon for a window as the alarm, and the threshold lowered by half of the
  tolerance. Then no rate is promised.
- The tree has its best degree. PeGaSus sums its groups since the window began.
  The table leaves out `zeros`, which is always late.
- *Loss* is the mean epsilon of a window. *Late*: not in the answer at the first look that is true. *Never*: at no look.
  *False*: windows beyond the tolerance that are in the answer at any look."""


def _write_comparison(watched: Watched) -> str:
    rows = [
        [
            _mark_ours(f"`{way.name}`", ALARM if way.name == "alarm" else ""),
            *(
                format_short(way.mean_epsilon),
                _join_percent(way.late),
                _join_percent(way.never),
                _join_percent(way.wrong),
            ),
        ]
        for way in watched.ways
        if way.name != "zeros"
    ]
    return write_table([f"{watched.what.split(' of ')[0]}: way", "loss", "late", "never", "false"], rows)


def _join_percent(share: float) -> str:
    return format_percent(share).replace(" ", "")


def _mark_ours(text: str, name: str | None = None) -> str:
    return f"**{text}**" if (text if name is None else name) == ALARM else text
