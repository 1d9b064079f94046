"""What date_trunc and extract give of a date and time, in Python."""

from datetime import datetime, timedelta


def truncated(part: str, moment: datetime) -> datetime:
    """What date_trunc gives."""
    if part == "hour":
        return moment.replace(minute=0, second=0, microsecond=0)
    day = datetime(moment.year, moment.month, moment.day)
    match part:
        case "week":
            return day - timedelta(days=day.weekday())
        case "month":
            return day.replace(day=1)
        case "quarter":
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "year":
            return day.replace(month=1, day=1)
        case _:
            return day


def extracted(part: str, moment: datetime) -> int:
    """What extract gives."""
    return {
        "year": moment.year,
        "quarter": (moment.month - 1) // 3 + 1,
        "month": moment.month,
        "week": moment.isocalendar().week,
        "day": moment.day,
        "dow": moment.isoweekday() % 7,
        "isodow": moment.isoweekday(),
        "doy": moment.timetuple().tm_yday,
        "hour": moment.hour,
    }[part]
