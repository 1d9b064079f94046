"""What docs/results/streams.md says of events: areas under curves, and alarms at close as Keyhole would run them."""

import math
from collections.abc import Sequence

from benchmarks.experiments.tables import markdown, percent
from benchmarks.streams.events import CLOSE, FALSE_RATES
from benchmarks.streams.rows import EPSILONS, LAPLACE, PEGASUS, PEGASUS_LARGE, Row
from benchmarks.streams.sliding import FNR, FPR

_EVENTS = "events, "


def describe(rows: Sequence[Row]) -> str:
    """What is compared, and what came of it."""
    area = {(row.experiment, row.epsilon, row.label): row.mean for row in rows if row.experiment.startswith(_EVENTS)}
    cases = list(dict.fromkeys((experiment, epsilon) for experiment, epsilon, _ in area))
    jumps = [case for case in cases if "jumps" in case[0]]
    others = {
        case: max(own for (*at, label), own in area.items() if tuple(at) == case and label != CLOSE) for case in cases
    }
    ahead = sum(area[(*case, CLOSE)] > others[case] for case in cases)
    best = [case for case in jumps if area[(*case, PEGASUS_LARGE)] > area[(*case, CLOSE)]]
    grouped = sum(area[(*case, PEGASUS)] > area[(*case, LAPLACE)] for case in cases)
    return f"""The share of events that is found over the share of other windows that is reported too, as the threshold
moves. The thesis prints neither windows nor thresholds: these are ours. `block_tree` and `sliding noise` know only
sums.

**What is compared.** A jump at a tick is a change by so many between its count and that `w - 1` ticks before; a low
signal is a sum of the last `w` counts below so many. Both move on with every tick, and the thesis's monitors read
estimates at every tick: many looks at noise that was paid for once. An alarm at close is another thing: it decides
*one* window, once, when the window is over, on its exact value with noise of its own (Keyhole's one-shot test; the jump
is two literals, `x >= d OR x <= -d`, on the difference of the window's two counts). So it stands here twice, both
times at the same epsilon for one event:

- `alarm at close`: windows follow each other, one decision in `w` ticks. An event is in one window, whose decision has
  the whole of epsilon. All `w` places at which windows may begin are run, each by itself, and all their windows are
  pooled; so the curves are over the same windows as the others'. But who runs one of them hears of an event only where
  a window closes on it, and of a jump inside of a window never.
- `alarm at close, every tick`: as many decisions as the others make. An event is at an end of two windows, or in `w`
  sums, and each of these decisions gets its part of epsilon.

Areas under the curve (.5: no better than a guess): the alarm at close has the largest in {ahead} of {len(cases)} cases,
as it pays for one value a window instead of one a tick; PeGaSus with large groups has a larger one in {len(best)} of
the {len(jumps)} cases of jumps, where noise is as large as they are and groups that are only closed by large changes
find them. Asked at every tick it is the worst way to follow sums: for windows that slide Keyhole takes noise that is
drawn once, on ticks and blocks, and EXPLAIN prices both. PeGaSus as published is above plain noise in {grouped} of
{len(cases)} cases."""


def areas(rows: Sequence[Row]) -> str:
    """The area, and what is found at two rates of others reported."""
    own = [row for row in rows if row.experiment.startswith(_EVENTS)]
    found = {(row.experiment, row.epsilon, row.label): row.mean for row in rows}
    cases = list(dict.fromkeys((row.experiment, row.epsilon) for row in own))
    table = []
    for label in dict.fromkeys(row.label for row in own):
        cells = []
        for experiment, epsilon in cases:
            what = experiment.removeprefix(_EVENTS)
            area = found.get((experiment, epsilon, label))
            shares = [found.get((f"found at {rate:g}, {what}", epsilon, label), 0.0) for rate in FALSE_RATES]
            cells.append("" if area is None else f"{area:.3f} ({', '.join(f'{share:.2f}' for share in shares)})")
        table.append([f"`{label}`", *cells])
    headings = [f"{experiment.removeprefix(_EVENTS)} ticks, {float(epsilon):g}" for experiment, epsilon in cases]
    text = "Areas; in brackets what is found where one in twenty, and one in ten, of the other windows is reported:"
    return f"{text}\n\n{markdown(['mechanism', *headings], table)}"


def closes(rows: Sequence[Row]) -> str:
    """Keyhole's own test, at the least tolerance that epsilon pays for."""
    found = {(row.experiment, row.epsilon): row.mean for row in rows if row.label == CLOSE}
    table = []
    for what in dict.fromkeys(
        row.experiment.removeprefix(_EVENTS) for row in rows if row.experiment.startswith(_EVENTS)
    ):
        for epsilon in EPSILONS:
            name = f"{what} ticks, {float(epsilon):g}"
            if (f"tolerance, {what}", epsilon) not in found:
                table.append([name, "none below the jump", "", "", ""])
                continue
            rates = (
                percent(found.get((f"{kind}, {what}", epsilon), math.nan)) for kind in ("missed", "reported", "wrong")
            )
            table.append([name, f"{found[f'tolerance, {what}', epsilon]:.0f}", *rates])
    text = f"""The alarm at close has no threshold to be chosen by a curve: it has a contract, missed with {FNR:g} and
wrong with {FPR:g} at most, and epsilon says which tolerance it can keep. So run, at every place at which windows may
begin:"""
    headings = ["event, epsilon", "least tolerance", "missed", "others reported", "of these beyond the tolerance"]
    return f"{text}\n\n{markdown(headings, table)}"
