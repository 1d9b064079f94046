"""The part of docs/results/streams.md on events: areas under curves, and alarms at close as Keyhole runs them."""

import math
from collections.abc import Sequence

from benchmarks.experiments.tables import markdown, percent
from benchmarks.streams.events import CLOSE
from benchmarks.streams.rows import EPSILONS, LAPLACE, PEGASUS, PEGASUS_LARGE, Row
from benchmarks.streams.sliding import FNR, FPR

_EVENTS = "events, "


def describe(rows: Sequence[Row]) -> str:
    """Return the comparison and its result in words."""
    area = {(row.experiment, row.epsilon, row.label): row.mean for row in rows if row.experiment.startswith(_EVENTS)}
    cases = list(dict.fromkeys((experiment, epsilon) for experiment, epsilon, _ in area))
    jumps = [case for case in cases if "jumps" in case[0]]
    others = {
        case: max(own for (*at, label), own in area.items() if tuple(at) == case and label != CLOSE) for case in cases
    }
    ahead = sum(area[(*case, CLOSE)] > others[case] for case in cases)
    best = [case for case in jumps if area[(*case, PEGASUS_LARGE)] > area[(*case, CLOSE)]]
    grouped = sum(area[(*case, PEGASUS)] > area[(*case, LAPLACE)] for case in cases)
    return f"""The curves plot the share of found events against the share of other windows that are wrongly reported.
The thesis prints neither windows nor thresholds, so these are ours. A jump is a change of the count within `w` ticks, a
low signal a sum of the last `w` counts below a threshold. The thesis's monitors read estimates at every tick. An
alarm at close decides one window once, when it is over, on its exact value. It stands here twice, at the same epsilon
for one event:

- `alarm at close`: one decision in `w` ticks, with all of epsilon. All `w` possible beginnings are run and pooled, to
  compare the same windows. A user runs only one of them, and misses jumps inside a window.
- `alarm at close, every tick`: as many decisions as the others make, each with a part of epsilon.

The table has areas under the curve; .5 is a guess. The alarm at close has the largest in {ahead} of {len(cases)} cases.
PeGaSus with large groups has a larger area in {len(best)} of the {len(jumps)} cases of jumps, where noise is
as large as the jumps. The alarm at every tick follows sums worst, so Keyhole draws noise for sliding windows once.
PeGaSus as published has a larger area than plain noise in {grouped} of {len(cases)} cases.

The last columns are the alarm at close under a contract, missed with {FNR:g} and wrong with {FPR:g} at most. Epsilon
decides the least tolerance that it can keep; none is below the jump in some cases."""


def table(rows: Sequence[Row]) -> str:
    """Return a row per event and epsilon: areas, then Keyhole's own test at the least tolerance that epsilon allows."""
    own = [row for row in rows if row.experiment.startswith(_EVENTS)]
    found = {(row.experiment, row.epsilon, row.label): row.mean for row in rows}
    labels = list(dict.fromkeys(row.label for row in own))
    lines = []
    for event in dict.fromkeys(row.experiment.removeprefix(_EVENTS) for row in own):
        for epsilon in EPSILONS:
            areas = (found.get((f"{_EVENTS}{event}", epsilon, label)) for label in labels)
            tolerance = found.get((f"tolerance, {event}", epsilon, CLOSE))
            kept = ["none", "", "", ""] if tolerance is None else [f"{tolerance:.0f}"]
            if tolerance is not None:
                kinds = ("missed", "reported", "wrong")
                kept += (_joint(found.get((f"{kind}, {event}", epsilon, CLOSE), math.nan)) for kind in kinds)
            cells = ("" if area is None else f"{area:.3f}" for area in areas)
            lines.append([f"{event}, {float(epsilon):g}", *cells, *kept])
    headings = ["event in ticks, epsilon", *(f"`{label}`" for label in labels)]
    return markdown([*headings, "least tolerance", "missed", "others reported", "beyond tolerance"], lines)


def _joint(share: float) -> str:
    return percent(share).replace(" ", "")
