"""The owner's monitors, from the policy's sections to the catalog."""

from datetime import date, datetime, timedelta

from planner.catalog.monitor import Alert, ClearRule, Monitor, Windows
from planner.policy.sections import MonitorSection, PolicyDocument


def compiled_monitors(policy: PolicyDocument) -> tuple[Monitor, ...]:
    """Return the monitors that the policy declares, in its order."""
    return tuple(_monitor(name, section) for name, section in policy.monitors.items())


def horizon(section: MonitorSection) -> tuple[datetime, datetime]:
    """Return when the first window begins, and from when on none does: a day that `until` names is over at its end."""
    return _moment(section.from_), _moment(section.until, end_of_day=True)


def _moment(read: date, *, end_of_day: bool = False) -> datetime:
    if isinstance(read, datetime):
        return read
    midnight = datetime(read.year, read.month, read.day)
    return midnight + timedelta(days=1) if end_of_day and midnight < _LAST_DAY else midnight


_LAST_DAY = datetime(9999, 12, 31)  # whose end no moment can tell


def _monitor(name: str, section: MonitorSection) -> Monitor:
    window = section.window
    begins, ends = horizon(section)
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
