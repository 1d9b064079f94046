"""The part of docs/results/streams.md on events: areas under the curves of each mechanism."""

from collections.abc import Sequence

from benchmarks.streams.events import CLOSE
from benchmarks.streams.rows import LAPLACE, PEGASUS, PEGASUS_LARGE, Row

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
The windows and thresholds are ours. A jump is a change of the count within `w` ticks, a low signal a sum of the last
`w` counts below a threshold. An alarm at close decides one window
once, when it is over, on its exact value. It stands here twice, at the same epsilon for one event:

- `alarm at close`: one decision in `w` ticks, with all of epsilon. All `w` possible beginnings are run and pooled. A
  user runs only one of them, and misses jumps inside a window.
- `alarm at close, every tick`: as many decisions as the others make, each with a part of epsilon.

By the area under the curve ([all areas](streams.csv)), the alarm at close is the best in {ahead} of {len(cases)}
cases. PeGaSus with large groups has a larger area in {len(best)} of the {len(jumps)} cases of jumps, where noise is as
large as the jumps. PeGaSus as published has a larger area than plain noise in {grouped} of {len(cases)} cases."""
