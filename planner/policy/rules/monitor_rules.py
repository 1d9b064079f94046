"""Rules for monitors: windows, looks and horizons that do not fit together, and unknown readers."""

from datetime import timedelta
from pathlib import PurePath
from urllib.parse import urlsplit

from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.catalog.monitor import SILENT_STREAM, STREAMS
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError
from planner.parser.lexer import read_tokens
from planner.policy.compile_monitors import find_horizon
from planner.policy.durations import find_nearest_divisor, write_duration
from planner.policy.relation_names import FILE_ENDINGS
from planner.policy.sections import MonitorSection, PolicyDocument

_NOTHING = timedelta(0)


def find_monitor_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for each contradiction or gap in a monitor that the policy alone shows."""
    for name, section in policy.monitors.items():
        place = ("monitors", name)
        for key, fault in _find_faults(section):
            yield (*place, *key), fault
        yield from _find_held_faults((*place, "sql"), section, policy)
        for analyst in section.analysts:
            if analyst not in policy.analysts:
                hint = suggest_nearest_name(analyst, policy.analysts)
                yield (*place, "analysts"), Fault("KH002", f'names "{analyst}", who is no analyst', hint=hint)


def _find_faults(section: MonitorSection) -> Faults:
    if not section.sql.strip():
        hint = 'Write a question, such as "SELECT ward, day FROM visits GROUP BY ward, day HAVING count(*) > 400".'
        yield ("sql",), Fault("KH002", "is empty", hint=hint)
    yield from _find_window_faults(section)
    begins, ends = find_horizon(section)
    if ends <= begins:
        hint = "Write the earlier one first; windows that begin before until are watched to their end."
        yield ("until",), Fault("KH601", "is not later than from", hint=hint)
    if section.tolerance is not None:
        try:
            parse_tolerances(section.tolerance)
        except KeyholeError:
            hint = 'Write "10%" of each threshold, "25", or per functional "count=25, age=2".'
            yield ("tolerance",), Fault("KH002", "is not a tolerance", hint=hint)
    if section.clears == "at once":
        yield from _find_clearing_faults(section)
    if section.mechanism in STREAMS:
        yield from _find_stream_faults(section)
    elif section.epsilon is not None:
        hint = (
            'Remove it: an alarm costs what its rates and tolerance come to. Streams have one: mechanism = "pegasus".'
        )
        yield ("epsilon",), Fault("KH002", f'has no meaning beside mechanism = "{section.mechanism}"', hint=hint)
    elif section.early_any and section.alert == "close":
        hint = 'Remove it, or write alert = "early".'
        yield ("early_any",), Fault("KH002", 'has no meaning beside alert = "close"', hint=hint)


def _find_clearing_faults(section: MonitorSection) -> Faults:
    """Yield settings that have no meaning if an alert is cleared as soon as it no longer holds.

    Each look then decides by itself.
    """
    if not section.window.sliding:
        hint = (
            'Write window = { column = "seen_at", length = "24 hours", sliding = true }, the last 24 hours at every '
            "look; or remove clears."
        )
        yield ("clears",), Fault("KH601", "has no meaning in windows that do not slide", hint=hint)
    if section.mechanism in STREAMS:
        hint = 'Remove it, or write mechanism = "alarm".'
        yield ("clears",), Fault("KH002", f'has no meaning beside mechanism = "{section.mechanism}"', hint=hint)
        return
    for key, written in (
        ("alert", section.alert is not None),
        ("early_any", section.early_any),
        ("progressive", section.progressive),
    ):
        if written:
            hint = "Remove it: every look is decided by itself, whatever the condition."
            yield (key,), Fault("KH002", 'has no meaning beside clears = "at once"', hint=hint)


def _find_stream_faults(section: MonitorSection) -> Faults:
    """Yield settings that a stream does not use because it has no contract, and a missing loss, which it needs."""
    name = section.mechanism
    if name == SILENT_STREAM and section.epsilon is not None:
        hint = "Remove it: zeros are released for nothing."
        yield ("epsilon",), Fault("KH002", f'has no meaning beside mechanism = "{name}"', hint=hint)
    if name != SILENT_STREAM and section.epsilon is None:
        hint = "Write what it may lose of one event, such as epsilon = 0.5: no fnr and fpr decide it, as none is kept."
        yield ("epsilon",), Fault("KH002", f'is missing beside mechanism = "{name}"', hint=hint)
    for key in ("fnr", "fpr"):
        if getattr(section, key) is not None:
            hint = 'Remove it: nothing bounds how often a stream is mistaken. An alarm keeps it, mechanism = "alarm".'
            yield (key,), Fault("KH002", f'has no meaning beside mechanism = "{name}"', hint=hint)
    for key in ("early_any", "progressive"):
        if getattr(section, key):
            hint = 'Remove it, or write mechanism = "alarm".'
            yield (key,), Fault("KH002", f'has no meaning beside mechanism = "{name}"', hint=hint)
    if section.alert == "close":
        hint = 'Remove it: a stream is read at every look. A question when the window closes has mechanism = "alarm".'
        yield ("alert",), Fault("KH002", f'has no meaning beside mechanism = "{name}"', hint=hint)
    if section.window.sliding:
        hint = 'Give the windows a hop in the place of sliding, or write mechanism = "alarm".'
        yield ("window", "sliding"), Fault("KH601", f'has no meaning beside mechanism = "{name}"', hint=hint)


def _find_held_faults(place: tuple[str, ...], section: MonitorSection, policy: PolicyDocument) -> Faults:
    """Yield a file that nobody can write while Keyhole serves, because DuckDB keeps it locked."""
    url, hold = policy.source.url, policy.source.hold
    if not hold or not url.startswith("duckdb:") or not urlsplit(url).path.strip("/"):
        return
    try:
        named = {token.value for token in read_tokens(section.sql) if token.is_name}
    except KeyholeError:
        return  # planning the question reports the syntax error
    for name, table in policy.private_tables.items():
        if name in named and PurePath(table.relation or name).suffix.lower() not in FILE_ENDINGS:
            fault = f"watches {name} in a DuckDB file that Keyhole holds, so that no row can be added while it serves"
            hint = (
                "Write hold = false under [source], and add rows while Keyhole does not read; or read a folder of "
                f'parquet files, relation = "{name}/*.parquet", or PostgreSQL.'
            )
            yield place, Fault("KH603", fault, hint=hint)


def _find_window_faults(section: MonitorSection) -> Faults:
    window = section.window
    for key in ("length", "hop"):
        if getattr(window, key) == _NOTHING:
            yield ("window", key), Fault("KH601", "must be above zero", hint='Write a length such as "1 day".')
    if section.every == _NOTHING:
        yield ("every",), Fault("KH601", "must be above zero", hint='Write how often to look, such as "1 hour".')
    if window.length is None:
        for key in sorted({"hop", "sliding"} & window.model_fields_set):
            hint = 'Give the windows a length, { column = "seen_at", length = "24 hours" }, or name only a key column.'
            yield ("window", key), Fault("KH601", "has no meaning without a length", hint=hint)
        return
    if not window.length or not section.every or window.hop == _NOTHING:
        return
    if window.sliding and window.hop is not None:
        hint = "Remove it: a sliding window ends at every look."
        yield ("window", "hop"), Fault("KH601", "has no meaning in a sliding window", hint=hint)
        return
    if window.hop is not None and (window.hop > window.length or window.length % window.hop):
        hint = f"Write a hop that {write_duration(window.length)} is a whole number of."
        yield ("window", "hop"), Fault("KH601", "does not divide the window's length", hint=hint)
        return
    step = window.hop or window.length
    if step % section.every:
        fault = f"does not divide {write_duration(step)}, after which windows begin"
        hint = f'Write every = "{write_duration(find_nearest_divisor(step, section.every))}".'
        yield ("every",), Fault("KH601", fault, hint=hint)
