"""From a question that compares windows with earlier ones to what a monitor reads and weighs, or to a refusal.

Proof: docs/proofs/standing.md.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import gcd

from mechanisms.alarm.shapes import Regime
from mechanisms.formula import Cut
from mechanisms.standing.alarms import can_alarms_decide
from mechanisms.threshold.joint_loss import drop_dominated_exposures
from planner.catalog.catalog import Value
from planner.catalog.monitor import Alert, Monitor
from planner.functionals.cell_readings import list_cell_sums, reads_cells
from planner.lower.dialects.dialect import Dialect
from planner.lower.look import find_growing_functionals
from planner.monitors.monitor_question_refusals import refuse_condition, refuse_windows
from planner.monitors.trend import Trend, Weights
from planner.monitors.windows import Horizon
from planner.question.key_cells import OWN_GROUP_ALONE
from planner.question.question import CellRead, Functional, Measure, Question
from planner.question.unit_groups import count_unit_groups

MOST_BACK = 400
"""How many windows earlier one may be that is compared: a year of days. All windows since are charged."""
MOST_READ = 61
"""The most windows that are read for one, of which each look reads all again."""
_ADDED = (Measure.ROWS, Measure.TOTAL, Measure.UNITS)  # of single windows
_MOST_ROWS = 10**9  # of a window: sums of more are clipped; chosen as more than a look could read


def list_read_windows(question: Question, horizon: Horizon, trend: Trend) -> tuple[Value, ...]:
    """Return the windows that a monitor reads: those of its horizon, and `back` windows before them."""
    listed = question.keys.values[question.keys.names.index(horizon.column)]
    first = listed.index(horizon.values[0])
    return listed[first - trend.back : first + len(horizon.values)]


def find_trend(
    question: Question, horizon: Horizon, monitor: Monitor, *, dialect: Dialect
) -> tuple[Question, Trend | None]:
    """Return the question with its comparisons of windows as functionals of single windows.

    Also return the `Trend` that combines the single windows again. Without such comparisons return the question
    unchanged, and None.

    Raises:
        KeyholeError: KH601 if the first windows have no earlier ones, KH602 for comparisons that no alarm watches.
    """
    if not reads_cells(question):
        return question, None
    _check_monitor(question, horizon, monitor)
    sums, common = list_cell_sums(question)
    listed = question.keys.values[question.keys.names.index(horizon.column)]
    first = listed.index(horizon.values[0])
    weights = list[dict[tuple[int, int], int]]()
    for functional in question.functionals:
        reads = functional.cell_reads or (CellRead(functional, OWN_GROUP_ALONE, 1),)
        own: defaultdict[tuple[int, int], int] = defaultdict(int)
        for read, (place, factor) in zip(reads, common.readings[len(weights)], strict=True):
            for earlier, weight in _find_offsets(read, functional, horizon, listed, first, monitor).items():
                own[place, earlier] += factor * weight
        if not any(own.values()):
            hint = "Compare an aggregate of each window with earlier ones, or with a threshold."
            raise refuse_condition(monitor, f"{functional.name} does not depend on data", hint=hint)
        weights.append({at: weight for at, weight in sorted(own.items()) if weight})
    steps = [gcd(*one.values()) for one in weights]
    scaled = tuple(
        tuple((at, weight // step) for at, weight in one.items()) for one, step in zip(weights, steps, strict=True)
    )
    sensitivities = [sum(abs(weight) * sums[place].sensitivity for (place, _), weight in one) for one in scaled]
    parts = drop_dominated_exposures(
        tuple(
            sum((exposure[place] * abs(weight) * sums[place].sensitivity for (place, _), weight in one), Fraction(0))
            / sensitivity
            for one, sensitivity in zip(scaled, sensitivities, strict=True)
        )
        for exposure in common.exposures
    )
    grown = find_growing_functionals(replace(question, functionals=sums), dialect=dialect)
    trend = Trend(
        sums=sums,
        weights=scaled,
        earlier=tuple(sorted({0, *(earlier for one in scaled for (_, earlier), _ in one)}, reverse=True)),
        axis=question.keys.names.index(horizon.column),
        exposures=parts,
        regimes=tuple(_find_regime(one, grown, question) for one in scaled),
        fills=tuple(
            all(weight > 0 and grown[place] for (place, earlier), weight in one if not earlier) for one in scaled
        ),
        rises=tuple(_rises(one, grown, question) for one in scaled),
        constant=frozenset(index for index, one in enumerate(scaled) if _is_constant(one, question)),
    )
    _check_range(question, trend, monitor)
    functionals = tuple(
        replace(one, cell_reads=(), terms=(), sensitivity=sensitivity, unit_size=one.unit_size * step, offsets=None)
        for one, sensitivity, step in zip(question.functionals, sensitivities, steps, strict=True)
    )
    formula = question.formula.map_literals(lambda literal: _scale(literal, steps[literal.functional]))
    return replace(question, functionals=functionals, formula=formula, common=sums), trend


def decide_early(question: Question, trend: Trend, monitor: Monitor) -> bool:
    """Return True if keys alert before their windows close.

    Raise KH602 if the monitor asks for early alerts and its condition does not allow them. A condition stays true from
    some look on if all its values only rise. A single value, or several under OR, may also fall again, since an alert
    reports the truth at one look.
    """
    if monitor.early_any:
        raise refuse_condition(
            monitor,
            "early_any watches no condition on earlier windows",
            detail="A row raises one threshold's value and lowers another's, in a window and in later ones.",
            hint='Remove early_any; or write alert = "close".',
        )
    firm = tuple(Regime.GROWING if rises else Regime.COMING_AND_GOING for rises in trend.rises)
    suits = all(trend.fills) and can_alarms_decide(question.formula, firm)
    if monitor.alert is Alert.EARLY and not suits:
        name = question.table.name
        promised = f"append_only = true and arrived under [tables.{name}]"
        raise refuse_condition(
            monitor,
            "its condition may become false again before the window closes, and an alert would stay",
            detail="A window that fills lowers a value from which it is subtracted, and late rows may raise an earlier "
            "window.",
            hint=f'Write alert = "close", decided once, when the window is over. With {promised}, conditions with '
            "AND alert early if the window's own value is on the greater side.",
        )
    return suits and monitor.alert is not Alert.CLOSE


def _check_monitor(question: Question, horizon: Horizon, monitor: Monitor) -> None:
    """Raise KH602 for settings and comparisons that no monitor on earlier windows has, and for windows of a length."""
    rest = [name for name in question.keys.names if name != horizon.column]
    parts = f"PARTITION BY {', '.join(rest)} " if rest else ""
    lag = f"lag(count(*)) OVER ({parts}ORDER BY {horizon.column})"
    own = f"its own earlier windows, such as {lag}"
    if not horizon.is_key:
        own = 'its earlier windows (group by the time and let its values be the windows, such as window = "day")'
    mean = f"avg(count(*)) OVER ({parts}ORDER BY {horizon.column} ROWS BETWEEN 7 PRECEDING AND 1 PRECEDING)"
    for functional in question.functionals:
        reads = functional.cell_reads
        others = any(
            one.cells.summed_keys or one.cells.key not in (None, horizon.column) or one.summed.measure not in _ADDED
            for one in reads
        )
        if others or (reads and not horizon.is_key):
            raise refuse_condition(
                monitor,
                f"{functional.name} compares a group with other groups",
                detail="A row of one group would change the alarms of all.",
                hint=f"Compare a group with {own}, with a number, or with a threshold of its own from a public table. "
                "Or ask it as a question, once a period.",
            )
        if functional.pair is not None or any(one.cells.statistic is not None for one in reads):
            raise refuse_condition(
                monitor,
                f"{functional.name} reads a mean of rows, a quantile, a largest or a deviation of earlier windows",
                detail="An alarm watches sums with fixed weights.",
                hint=f"Compare with sums of earlier windows or with their mean, such as {mean}. Or ask it as a "
                "question, once a period.",
            )
        if functional.offsets is not None:
            raise refuse_condition(
                monitor,
                f"{functional.name} has a threshold for each group beside comparisons with earlier windows",
                hint="Make a monitor of each condition.",
            )
    for is_set, setting in (
        (monitor.is_stream, f'mechanism = "{monitor.mechanism}"'),
        (monitor.clears_at_once, 'clears = "at once"'),
        (monitor.progressive, "progressive = true"),
    ):
        if is_set:
            raise refuse_condition(
                monitor, f"{setting} watches no condition on earlier windows", hint=f"Remove {setting}."
            )


def _find_offsets(
    read: CellRead, functional: Functional, horizon: Horizon, listed: Sequence[Value], first: int, monitor: Monitor
) -> Mapping[int, int]:
    """Return how many windows earlier a reading is taken, each with its weight. Raise KH601, KH602.

    Parameters:
        listed: the windows that the question lists.
        first: the place of the horizon's first window among them.
    """
    if read.cells.key is None:
        return {0: 1}
    taken, last = read.cells.used_places, first + len(horizon.values) - 1
    offsets = tuple(sorted(len(listed) - 1 - place for place in taken[-1]))
    running = all(places == tuple(range(place + 1)) for place, places in enumerate(taken))
    if any(place > own for own, places in enumerate(taken) for place in places):
        raise refuse_condition(
            monitor,
            f"{functional.name} reads windows that come later",
            hint="Compare with earlier windows: lag, or a frame that ends at CURRENT ROW or before.",
        )
    alike = all(
        tuple(sorted(own - place for place in taken[own])) == tuple(one for one in offsets if one <= own)
        for own in range(first, last + 1)
    )
    if running or not alike:
        raise refuse_condition(
            monitor,
            f"{functional.name} reads other earlier windows at each window",
            detail="A running total reaches further back each time, so that a row would be in too many alarms.",
            hint="Write a frame of so many windows, such as ROWS BETWEEN 6 PRECEDING AND CURRENT ROW.",
        )
    if not offsets or offsets[-1] > MOST_BACK or len(offsets) > MOST_READ:
        raise refuse_condition(
            monitor,
            f"{functional.name} reads windows too far back, or too many",
            detail=f"A window is compared with ones up to {MOST_BACK} before, at most {MOST_READ - 1} of them, that "
            f"{horizon.column} lists.",
            hint="Write a smaller offset, or a frame of fewer ROWS.",
        )
    if offsets[-1] > first:
        needed = f'from = "{listed[offsets[-1]]}"' if offsets[-1] <= last else "a later from and until"
        raise refuse_windows(
            monitor,
            f"{functional.name} has no value in the first windows, which have too few earlier ones",
            hint=f"Write {needed}. Or declare a range of {horizon.column} that begins earlier.",
        )
    weight = read.cells.most_places // len(offsets) if read.cells.most_places else 1
    return dict.fromkeys(offsets, weight)


def _check_range(question: Question, trend: Trend, monitor: Monitor) -> None:
    """Raise KH602 for sums that could be clipped before they are weighed."""
    most = trend.largest_sum
    for functional, weights in zip(question.functionals, trend.weights, strict=True):
        if any(trend.sums[place].sensitivity * _MOST_ROWS > most for (place, _), _ in weights):
            raise refuse_condition(
                monitor,
                f"{functional.name} has steps so fine that sums of many rows are beyond 64-bit integers",
                hint="Round the numbers that it is multiplied by, or declare a coarser grid for the summed column.",
            )


def _scale(literal: Cut, step: int) -> Cut:
    """Return a literal on a value that is counted in steps. On multiples of the step it means the same."""
    cut, relaxed = literal.cut // step, literal.relax().cut // step
    return replace(literal, cut=cut, tolerance=abs(cut - relaxed))


def _find_regime(weights: Weights, grown: Sequence[bool], question: Question) -> Regime:
    """Return how one privacy unit changes a functional from look to look of one window.

    A unit in several windows may raise it by the rows of one and lower it by those of another.
    """
    table = question.table
    rising = Regime.GROWING if table.append_only else Regime.COMING_AND_GOING
    if not all(grown[place] for (place, _), _ in weights):
        return Regime.SIGNED
    if table.is_row_unit and table.append_only:
        return rising
    in_one = table.is_row_unit or count_unit_groups(question) == 1
    signs = defaultdict[int, set[bool]](set)
    for (_, earlier), weight in weights:
        signs[earlier if in_one else 0].add(weight > 0)
    return rising if all(len(one) == 1 for one in signs.values()) else Regime.SIGNED


def _is_constant(weights: Weights, question: Question) -> bool:
    """Return True if a functional reads earlier windows alone, which have all their rows before the first look."""
    table = question.table
    return table.append_only and table.arrival_column is not None and all(earlier for (_, earlier), _ in weights)


def _rises(weights: Weights, grown: Sequence[bool], question: Question) -> bool:
    """Return True if a functional never falls while its window fills: no later row lowers it.

    If rows say when they came, earlier windows have all their rows before the first look.
    """
    table = question.table
    complete = table.arrival_column is not None
    return table.append_only and all(
        (earlier > 0 and complete) or (grown[place] and weight > 0) for (place, earlier), weight in weights
    )
