"""Writes docs/results/streams.md and its tables."""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import fill

from benchmarks.streams import events_page
from benchmarks.streams.data import Stream
from benchmarks.streams.experiments import PRINTED
from benchmarks.streams.rows import BLOCK_TREE, EPSILONS, LAPLACE, PEGASUS, SLIDING, Row
from benchmarks.streams.sliding import choose_block

COUNTS, SMOOTHERS, WINDOWS, EVENTS, HIERARCHY = "counts", "smoothers", "windows", "events", "hierarchy"
CURVES = "curve, "


@dataclass(frozen=True, slots=True)
class AboutStreams:
    """The number of runs, the seed and the streams."""

    runs: int
    seed: int
    streams: tuple[Stream, ...]


def write_rows(rows: Sequence[Row], path: Path, *, x: str = "window") -> None:
    """One line per mechanism, stream, epsilon and window, or whatever `x` is."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("experiment", "data", "epsilon", "mechanism", x, "mean", "q1", "q3"))
        for row in rows:
            values = (f"{value:.5g}" for value in (row.mean, row.low, row.high))
            writer.writerow(
                (
                    row.experiment,
                    row.data,
                    float(row.epsilon),
                    row.label,
                    row.x or ("" if x == "window" else 0),
                    *values,
                )
            )


def write_page(rows: Sequence[Row], about: AboutStreams) -> str:
    """Return the whole page."""
    parts = (
        _write_opening(about),
        _write_section(
            "Figure 5.2: a stream and what is made of it",
            "One run on the busy stand-in. Estimates below zero are cut.",
            "picture",
        ),
        _write_section("Figure 5.3: counts", _write_counts(rows), "counts"),
        _write_section("Figure 5.4: Smoothers", _write_smoothers(rows), "smoothers"),
        _write_section("Figure 5.5: sums of windows", _write_windows(rows), "windows"),
        _write_section("Figures 5.6 and 5.7: events", events_page.describe(rows), "events"),
        _write_section("Figure 5.8: a hierarchy", _HIERARCHY_TEXT, "hierarchy"),
    )
    return "\n\n".join(parts) + "\n"


def _write_opening(about: AboutStreams) -> str:
    lines = "\n".join(
        f"- **{stream.name}**: {stream.counts.size:,} ticks, {int(stream.counts.sum()):,} events ({stream.origin})."
        for stream in about.streams
    )
    return f"""# Streams: PeGaSus and its rivals

`make experiments` wrote this page, its images, [its table](streams.csv) and [its curves](streams-curves.csv):
{about.runs} runs of everything, one of the hierarchy, seed {about.seed}. The experiments are those on PeGaSus in
Chen's thesis (section 5.6). Its traces are not public, so the streams here have the shapes that it prints. `epsilon` is
the loss of one event. See [the mechanisms](../mechanisms.md#streams-pegasus-and-its-rivals).

**Zeros stand in every comparison.** They lose nothing; their scaled error is 1, its logarithm 0.

{lines}

`benchmarks/streams/data.py` draws the synthetic ones."""


def _write_section(title: str, text: str, slug: str) -> str:
    return f"## {title}\n\n{text}\n\n![{title}](streams-{slug}.png)"


def _write_counts(rows: Sequence[Row]) -> str:
    own = [row for row in rows if row.experiment == COUNTS]
    cases = list(dict.fromkeys((row.data, row.epsilon) for row in own))
    errors = {(row.data, row.epsilon, row.label): row.mean for row in own}
    better = sum(errors[(*case, PEGASUS)] < errors[(*case, LAPLACE)] for case in cases)
    smoothed = sum(errors[(*case, "backward_smoothing, 50")] < errors[(*case, PEGASUS)] for case in cases)
    useless = sum(errors[(*case, PEGASUS)] > 1.0 for case in cases)
    return f"""The logarithm to ten of `sum |estimate - count| / sum count`. PeGaSus with its published constants errs
less than plain noise in {better} of {len(cases)} cases. It errs more than the mean of the last 51 noisy counts in
{smoothed}, and more than zeros in {useless}. The thesis reports that it errs least everywhere."""


def _write_smoothers(rows: Sequence[Row]) -> str:
    own = {(row.data, row.epsilon, row.label): row.mean for row in rows if row.experiment == SMOOTHERS}
    cases = list(dict.fromkeys((data, epsilon) for data, epsilon, _ in own))
    worse = sum(own[(*case, PRINTED)] > own[(*case, LAPLACE)] for case in cases)
    median = sum(own[(*case, PEGASUS)] < own[(*case, "pegasus_average")] for case in cases)
    return f"""`pegasus` takes the median, `pegasus_james_stein` the corrected estimator. The estimator as printed
(equation 5.7) is worse than plain noise in {worse} of {len(cases)} cases.
The median is slightly better than the average in {median}."""


def _write_windows(rows: Sequence[Row]) -> str:
    own = {(row.epsilon, row.x, row.label): row.mean for row in rows if row.experiment == WINDOWS}
    lengths = sorted({x for _, x, _ in own})

    def list_below(label: str, other: str, epsilon: Fraction) -> str:
        below = [x for x in lengths if own[epsilon, x, label] < own[epsilon, x, other]]
        return _name_lengths(below, lengths)

    plain = [list_below(LAPLACE, BLOCK_TREE, epsilon) for epsilon in EPSILONS]
    smoothed = [list_below("pegasus, WSS", BLOCK_TREE, epsilon) for epsilon in EPSILONS]
    better = [list_below("pegasus, WSS", "pegasus, MS", epsilon) for epsilon in EPSILONS]
    of_blocks = [f"{choose_block(x)} ticks (windows of {x:,})" for x in lengths if choose_block(x) > 1]
    blocks = " to ".join(dict.fromkeys((*of_blocks[:1], *of_blocks[-1:])))
    longest = max(lengths)
    saved = [own[epsilon, longest, SLIDING] / own[epsilon, longest, LAPLACE] for epsilon in EPSILONS]
    errors = f"""The figure shows the mean absolute error of sums over the last ticks of the busy stand-in. MS adds up
the estimates as they were released; WSS recomputes them with the medians of the current groups. `block_tree` is the
thesis's SW_w, with a tree for each length. Three comparisons, for epsilon .1 and .01: WSS errs less than MS at
{_write_both(better)}. WSS errs less than `block_tree` at {_write_both(smoothed)}. Plain noise errs less than
`block_tree` at {_write_both(plain)}."""
    sliding = f"""`sliding noise` is Keyhole's own noise for monitors of sliding windows. Short windows have noise on
each tick, longer ones on single ticks and on blocks, from {blocks}. At {longest:,} ticks its error is {saved[0]:.2f}
(epsilon .1) or {saved[1]:.2f} (.01) times that of plain noise."""
    return f"{_wrap(errors)}\n\n{_wrap(sliding)}"


def _wrap(text: str) -> str:
    return fill(text, width=120, break_long_words=False, break_on_hyphens=False)


def _write_both(lengths: Sequence[str]) -> str:
    first, second = lengths
    return f"{first} for both" if first == second else f"{first} (epsilon .1) and {second} (.01)"


def _name_lengths(some: Sequence[int], of: Sequence[int]) -> str:
    if not some or len(some) == len(of):
        return "every length" if some else "none"
    if list(some) == list(of[: len(some)]):
        return f"lengths up to {some[-1]:,}"
    return "lengths of " + ", ".join(f"{one:,}" for one in some)


_HIERARCHY_TEXT = """The mean absolute error over 255 aggregations of 128 streams. PRUNE is corrected; as printed it
is not private, and so not drawn. The more zeros pruning prints, the less it errs here."""
