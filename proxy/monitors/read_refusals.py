"""The refusals to let an analyst read a monitor. A missing monitor gets the same text as an unreadable one."""

from accountant.charges import NANO
from accountant.errors import OverBudget
from planner.errors import KeyholeError


def refuse_unreadable_monitor(name: str, *, position: int | None = None) -> KeyholeError:
    """Return KH605. An analyst who may not read a monitor does not learn that it exists."""
    return KeyholeError(
        "KH605",
        f'there is no monitor "{name}", or you may not read it',
        hint="SELECT name FROM keyhole.monitors; lists those that you may read.",
        position=position,
    )


def refuse_expensive_reading(monitor: str, over: OverBudget) -> KeyholeError:
    """Return KH306 for a reader whose own cap does not cover a monitor's whole horizon."""
    needed, left = over.needed_nano / NANO, over.left_nano / NANO
    return KeyholeError(
        "KH306",
        f'your own cap does not hold the monitor "{monitor}" (needs {needed:.2f}, left {left:.2f})',
        detail="Its first reading, or LISTEN, is charged for all its windows at once; everything after that is free.",
        hint="Ask the data owner for a larger cap of your own: keyhole.budget shows what is left.",
    )
