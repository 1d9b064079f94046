"""Writes docs/results/streams.md and its tables."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from textwrap import fill

from benchmarks.experiments.tables import markdown, short
from benchmarks.streams import events_page, expected
from benchmarks.streams.data import Stream
from benchmarks.streams.experiments import PRINTED
from benchmarks.streams.rows import BLOCK_TREE, EPSILONS, LAPLACE, PEGASUS, SLIDING, Row
from benchmarks.streams.sliding import block_of

COUNTS, SMOOTHERS, WINDOWS, EVENTS, HIERARCHY = "counts", "smoothers", "windows", "events", "hierarchy"
CURVES = "curve, "


@dataclass(frozen=True, slots=True)
class AboutStreams:
    """How the results came about."""

    runs: int
    seed: int
    streams: tuple[Stream, ...]
    seconds: float


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


def document(rows: Sequence[Row], about: AboutStreams) -> str:
    """The whole page."""
    parts = (
        _opening(about),
        _section(
            "Figure 5.2: a stream and what is made of it",
            "The busy stand-in, estimates below zero cut; one run.",
            "picture",
        ),
        _section("Figure 5.3: counts", _counts_text(rows), "counts"),
        _logarithms([row for row in rows if row.experiment == COUNTS]),
        _section("Figure 5.4: Smoothers", _smoothers_text(rows), "smoothers"),
        _logarithms([row for row in rows if row.experiment == SMOOTHERS]),
        _section("Figure 5.5: sums of windows", _windows_text(rows), "windows"),
        _windows([row for row in rows if row.experiment == WINDOWS]),
        _section("Figures 5.6 and 5.7: events", events_page.describe(rows), "events"),
        events_page.areas(rows),
        events_page.closes(rows),
        _section("Figure 5.8: a hierarchy", _HIERARCHY_TEXT, "hierarchy"),
        _hierarchy([row for row in rows if row.experiment == HIERARCHY]),
        expected.compare(rows),
    )
    return "\n\n".join(parts) + "\n"


def _opening(about: AboutStreams) -> str:
    lines = "\n".join(
        f"- **{stream.name}**: {stream.counts.size:,} ticks, {int(stream.counts.sum()):,} events ({stream.origin})."
        for stream in about.streams
    )
    return f"""# Streams: PeGaSus and its rivals

`make experiments` wrote this page, its images, [its table](streams.csv) and [its curves](streams-curves.csv)
({about.runs} runs of everything, one of the hierarchy, seed {about.seed}, {about.seconds / 60.0:.1f} minutes). The
experiments are those of the chapter on PeGaSus in Chen's thesis (section 5.6), on streams of the shapes printed there:
its traces are not public. Noise is exact and discrete; `epsilon` is what one event loses. The mechanisms are explained
[here](../mechanisms.md#streams-pegasus-and-its-rivals). They release values, which the product never does.

**Zeros stand in every comparison.** Who prints zeros loses nothing and errs by as much as there is to count: a scaled
error of 1, a logarithm of 0. What errs more has been of no use.

{lines}

How the stand-ins are drawn is written in `benchmarks/streams/data.py`."""


def _section(title: str, text: str, slug: str) -> str:
    return f"## {title}\n\n{text}\n\n![{title}](streams-{slug}.png)"


def _counts_text(rows: Sequence[Row]) -> str:
    own = [row for row in rows if row.experiment == COUNTS]
    cases = list(dict.fromkeys((row.data, row.epsilon) for row in own))
    errors = {(row.data, row.epsilon, row.label): row.mean for row in own}
    better = sum(errors[(*case, PEGASUS)] < errors[(*case, LAPLACE)] for case in cases)
    smoothed = sum(errors[(*case, "backward_smoothing, 50")] < errors[(*case, PEGASUS)] for case in cases)
    useless = sum(errors[(*case, PEGASUS)] > 1.0 for case in cases)
    return f"""The logarithm to ten of `sum |estimate - count| / sum count`. PeGaSus with its published constants errs
less than plain noise in {better} of {len(cases)} cases, and more than the mean of the last 51 noisy counts in
{smoothed}; in {useless} it is worse than zeros. The thesis reports that it errs least everywhere. With `theta 40`
groups are longer: better where nothing moves, worse where much does."""


def _smoothers_text(rows: Sequence[Row]) -> str:
    own = {(row.data, row.epsilon, row.label): row.mean for row in rows if row.experiment == SMOOTHERS}
    cases = list(dict.fromkeys((data, epsilon) for data, epsilon, _ in own))
    worse = sum(own[(*case, PRINTED)] > own[(*case, LAPLACE)] for case in cases)
    median = sum(own[(*case, PEGASUS)] < own[(*case, "pegasus_average")] for case in cases)
    return f"""`pegasus` takes the median, `pegasus_james_stein` the corrected estimator. As printed (equation 5.7) it
is worse than plain noise in {worse} of {len(cases)} cases; the thesis's finding that it is no good strategy may be its
misprint. The median is better than the average in {median}, by little."""


def _windows_text(rows: Sequence[Row]) -> str:
    own = {(row.epsilon, row.x, row.label): row.mean for row in rows if row.experiment == WINDOWS}
    lengths = sorted({x for _, x, _ in own})

    def list_below(label: str, other: str, epsilon: Fraction) -> str:
        below = [x for x in lengths if own[epsilon, x, label] < own[epsilon, x, other]]
        return _name_lengths(below, lengths)

    plain = [list_below(LAPLACE, BLOCK_TREE, epsilon) for epsilon in EPSILONS]
    smoothed = [list_below("pegasus, WSS", BLOCK_TREE, epsilon) for epsilon in EPSILONS]
    better = [list_below("pegasus, WSS", "pegasus, MS", epsilon) for epsilon in EPSILONS]
    blocks = ", ".join(f"{block_of(x)} of {x:,}" for x in lengths if block_of(x) > 1)
    longest = max(lengths)
    saved = [own[epsilon, longest, SLIDING] / own[epsilon, longest, LAPLACE] for epsilon in EPSILONS]
    errors = f"""The mean absolute error of sums over the last ticks of the busy stand-in. MS adds up the estimates as
they were released, WSS takes the medians of the groups as they are known now: it errs less than MS at {better[0]}
(epsilon .1) and {better[1]} (.01), and less than `block_tree` (SW_w in the thesis: trees, each made for one length) at
{smoothed[0]} and {smoothed[1]}. Plain noise errs less than those trees at {plain[0]} and {plain[1]}: that it introduces
excessive error does not hold."""
    sliding = f"""`sliding noise` is Keyhole's own, with which monitors of sliding windows decide
(`mechanisms/standing/sliding_noise.py`); drawn here are the values that it compares with thresholds, never shown.
Short windows have noise on each tick alone, as `tick_laplace` has. Longer ones have noise on ticks and on blocks of
them, where that is cheaper: blocks of {blocks} ticks. A window is then whole blocks, and the ticks that are added or
taken away at its ends; one event is in one tick and one block, between which its epsilon is split. At {longest:,} ticks
it errs by {saved[0]:.2f} (epsilon .1) and {saved[1]:.2f} (.01) of what plain noise does. Like the trees it is drawn for
one length."""
    return f"{_wrap(errors)}\n\n{_wrap(sliding)}"


def _wrap(text: str) -> str:
    return fill(text, width=120, break_long_words=False, break_on_hyphens=False)


def _name_lengths(some: Sequence[int], of: Sequence[int]) -> str:
    if not some or len(some) == len(of):
        return "every length" if some else "none"
    if list(some) == list(of[: len(some)]):
        return f"lengths up to {some[-1]:,}"
    return "lengths of " + ", ".join(f"{one:,}" for one in some)


_HIERARCHY_TEXT = """The mean absolute error over 255 aggregations of 128 streams. PRUNE is corrected; as printed it is
not private, and so not drawn. The better pruning works the more it prints zeros, which is what wins here: the thesis's
"over 78 times" less than `hs_laplace` is what zeros give by its own totals, `h / epsilon = 80` to a mean true count
of 1.01."""


def _logarithms(rows: Sequence[Row]) -> str:
    cases = list(dict.fromkeys((row.data, row.epsilon) for row in rows))
    found = {(row.label, row.data, row.epsilon): row.mean for row in rows}
    table = [
        [f"`{label}`", *(f"{math.log10(found[(label, *case)]):.2f}" for case in cases)]
        for label in dict.fromkeys(row.label for row in rows)
    ]
    return markdown(["mechanism", *(f"{data}, {float(epsilon):g}" for data, epsilon in cases)], table)


def _windows(rows: Sequence[Row]) -> str:
    lengths = sorted({row.x for row in rows})
    found = {(row.label, row.epsilon, row.x): row.mean for row in rows}
    table = [
        [f"`{label}`, {float(epsilon):g}", *(short(found[label, epsilon, length]) for length in lengths)]
        for epsilon in EPSILONS
        for label in dict.fromkeys(row.label for row in rows)
    ]
    return markdown(["mechanism, epsilon", *(f"{length:,}" for length in lengths)], table)


def _hierarchy(rows: Sequence[Row]) -> str:
    found = {(row.label, row.epsilon): row.mean for row in rows}
    table = [
        [f"`{label}`", *(short(found[label, epsilon]) for epsilon in EPSILONS)]
        for label in dict.fromkeys(row.label for row in rows)
    ]
    return markdown(["mechanism", *(f"epsilon {float(epsilon):g}" for epsilon in EPSILONS)], table)
