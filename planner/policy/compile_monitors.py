"""Compilation of the owner's monitors from the policy's sections to the catalog."""

from datetime import date, datetime, timedelta

from planner.catalog.monitor import Alert, ClearRule, Monitor, Windows
from planner.policy.sections import MonitorSection, PolicyDocument


def compile_monitors(policy: PolicyDocument) -> tuple[Monitor, ...]:
    """Return the monitors that the policy declares, in its order."""
    return tuple(_compile_monitor(name, section) for name, section in policy.monitors.items())


def find_horizon(section: MonitorSection) -> tuple[datetime, datetime]:
    """Return the horizon of a monitor: when its first window begins, and the time from which no more windows begin.

    If `until` names a day, that is the end of the day.
    """
    return _convert_moment(section.from_), _convert_moment(section.until, is_end=True)


def _convert_moment(read: date, *, is_end: bool = False) -> datetime:
    if isinstance(read, datetime):
        return read
    midnight = datetime(read.year, read.month, read.day)
    return midnight + timedelta(days=1) if is_end and midnight < _LAST_DAY else midnight


_LAST_DAY = datetime(9999, 12, 31)  # whose end no moment can tell


def _compile_monitor(name: str, section: MonitorSection) -> Monitor:
    window = section.window
    begins, ends = find_horizon(section)
    return Monitor(
        name=name,
        sql=section.sql,
        windows=Windows(column=window.column, length=window.length, hop=window.hop, sliding=window.sliding),
        every=section.every,
        lateness=section.lateness,
        begins=begins,
        ends=ends,
        mechanism=section.mechanism,
        epsilon=section.epsilon,
        analysts=section.analysts,
        fnr=section.fnr,
        fpr=section.fpr,
        tolerance=section.tolerance,
        alert=None if section.alert is None else Alert(section.alert),
        early_any=section.early_any,
        progressive=section.progressive,
        clears=ClearRule(section.clears),
        comment=section.comment,
    )
