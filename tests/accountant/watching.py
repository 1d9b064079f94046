"""Monitors that the tests share: wards by days, of which a unit counts in two cells."""

from datetime import UTC, datetime, timedelta

from accountant.charges import NANO, Charge
from accountant.ledger import Ledger
from accountant.limits import Limits
from accountant.monitor_model import MonitorRun, WindowAxis, WindowLook, WindowState
from tests.accountant.examples import cells, charge, limits

DAYS = ("01", "02", "03", "04")
WARDS = ("A", "B", "C")
KEYS = cells(day=DAYS, ward=WARDS)
BY = {"by": "the owner", "why": "to see"}
CAPS = limits(100 * NANO)
OWNER = "(owner)"
BY_DAY = WindowAxis("day", 1)
MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def horizon(epsilon_nano: int = NANO, *, unit: str = "row", version: str = "v1", fingerprint: str = "m1") -> Charge:
    """What a monitor of wards by days is charged."""
    return charge(
        epsilon_nano,
        keys=KEYS,
        analyst=OWNER,
        question=fingerprint,
        table="visits",
        unit=unit,
        unit_epsilon_nano=0 if unit == "row" else 2 * epsilon_nano,
        version=version,
    )


def start(
    ledger: Ledger,
    charged: Charge | None = None,
    *,
    monitor: str = "crowded",
    caps: Limits = CAPS,
    windows: WindowAxis | None = BY_DAY,
    anew: bool = False,
) -> MonitorRun:
    charged = horizon() if charged is None else charged
    return ledger.monitors.start_run(
        monitor, charged, caps, windows=windows, fingerprint=charged.question, wording=None, is_restarted=anew, **BY
    )


def moment(number: int) -> datetime:
    """When a look is made."""
    return MIDNIGHT + timedelta(hours=number)


def look(
    state: WindowState,
    *keys: int,
    look: int | None = None,
    body: bytes | None = None,
    cleared: tuple[int, ...] = (),
) -> WindowLook:
    """The look after a state."""
    number = state.look + 1 if look is None else look
    made = state.body + b"+%d" % number if body is None else body
    return WindowLook(state.window, state.look, number, made, keys, cleared)


def look_at(
    ledger: Ledger, run: str, *windows: int, number: int, keys: tuple[int, ...] = (), cleared: tuple[int, ...] = ()
) -> None:
    """Begin windows and record a look at them, at which keys come into the answer of each, and others go."""
    states = [ledger.monitors.begin_window(run, window, b"drawn %d" % window) for window in windows]
    ledger.monitors.record_look(
        run, [look(one, *keys, cleared=cleared) for one in states], number=number, at=moment(number)
    )
