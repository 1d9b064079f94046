"""The texts of monitors' refusals. They depend only on the policy, the ledger and the clock."""

from collections.abc import Sequence
from datetime import datetime

from accountant.charges import NANO
from accountant.errors import BalanceScope, OverBudget
from planner.errors import KeyholeError
from planner.monitors.monitor_plan import MonitorPlan


def refuse_never_started(name: str) -> KeyholeError:
    """Return the refusal of a monitor that was never started."""
    return KeyholeError("KH606", f'the monitor "{name}" was never started', hint=f"keyhole monitor start {name}")


def refuse_already_started(name: str) -> KeyholeError:
    """Return the refusal to start a monitor that was already started."""
    return KeyholeError(
        "KH606",
        f'the monitor "{name}" has been started and has not ended',
        hint=f"keyhole monitor show {name} says what it does; keyhole monitor end {name} ends it for good.",
    )


def refuse_chosen_groups(name: str) -> KeyholeError:
    """Return the refusal of a monitor whose bounds cut rows of a unit, so that its groups cannot be charged."""
    return KeyholeError(
        "KH602",
        f'the monitor "{name}" counts only some groups of a privacy unit',
        detail='With cells = "every unit" a group may replace any other, even in a window that is over.',
        hint="Raise max_groups_per_unit to the number of groups that a unit can be in, or remove cells from [budget].",
    )


def refuse_wrong_state(name: str, state: str) -> KeyholeError:
    """Return the refusal of an owner's action that the monitor's state does not allow."""
    hint = {
        "running": f"Pause it first: keyhole monitor pause {name}",
        "paused": f"keyhole monitor resume {name}, or keyhole monitor end {name}.",
    }.get(state, f"keyhole monitor start {name} begins another one, which is charged again.")
    return KeyholeError("KH606", f'the monitor "{name}" is {state}', hint=hint)


def refuse_changed_monitor(name: str) -> KeyholeError:
    """Return the refusal of a monitor whose policy section has changed since its start."""
    return KeyholeError(
        "KH606",
        f'the policy\'s monitor "{name}" differs from the one that was started',
        detail="Its windows were charged for the earlier declaration, so no look is made under this policy.",
        hint=f"Put it back as it was, or: keyhole monitor end {name} --why '...', and start it again.",
    )


def refuse_removed_monitor(name: str) -> KeyholeError:
    """Return the refusal of a monitor that runs in the ledger but is no longer in the policy."""
    return KeyholeError(
        "KH606",
        f'the monitor "{name}" runs, but the policy no longer declares it',
        hint=f"Put it back, or: keyhole monitor end {name} --why '...'",
    )


def refuse_future_looks(name: str, newest: datetime) -> KeyholeError:
    """Return the refusal of a monitor whose newest look is in the future, because a clock was wrong."""
    return KeyholeError(
        "KH604",
        f'the newest look of the monitor "{name}" lies in the future, at {newest:%Y-%m-%d %H:%M:%S} UTC',
        detail="The clock was ahead when that look was made, or is behind now. A look is never made again, so the "
        "next one is after that moment.",
        hint="Set the clock. Windows that were closed too early are not watched again. End the monitor, and start it "
        "for later windows.",
    )


def refuse_lost_window(name: str, windows: Sequence[int]) -> KeyholeError:
    """Return the refusal of a monitor if the ledger has lost the state of one of its open windows."""
    which = ", ".join(str(window + 1) for window in windows)
    return KeyholeError(
        "KH502",
        f'the ledger has lost the state of the monitor "{name}" in window {which}',
        detail="A window never begins twice, since two draws would reveal more than was charged. It is closed with its "
        "alerts so far, and the next window is watched.",
        hint="Find out who changes the ledger's database beside Keyhole: keyhole ledger verify.",
    )


def refuse_over_budget(over: OverBudget, plan: MonitorPlan, *, fitting: Sequence[str]) -> KeyholeError:
    """Return the refusal of a monitor whose whole horizon costs more than is left.

    `fitting` are settings with which the monitor would fit. The result depends on ledger and policy alone.
    """
    needed, left = over.needed_nano / NANO, over.left_nano / NANO
    code, whose = _SCOPES[over.scope]
    return KeyholeError(
        code,
        f'not enough budget for the monitor "{plan.monitor.name}": {whose} would need {needed:.2f} epsilon, and has '
        f"{left:.2f} left",
        detail="A monitor reserves its whole horizon when it starts. Nothing is spent.",
        hint=f"Write {', or '.join(fitting)}; or grant more: keyhole grant."
        if fitting
        else "Wait for a new budget window, or grant more: keyhole grant.",
    )


_SCOPES = {
    BalanceScope.PER_QUERY: ("KH302", "one group and window"),
    BalanceScope.PER_PREDICATE: ("KH301", "a group and window"),
    BalanceScope.ANALYST_PER_PREDICATE: ("KH306", "a group and window"),
    BalanceScope.PER_UNIT: ("KH305", "the privacy unit"),
    BalanceScope.ANALYST_PER_UNIT: ("KH306", "the privacy unit"),
    BalanceScope.PER_TABLE: ("KH309", "the table"),
}


def refuse_too_expensive(plan: MonitorPlan) -> KeyholeError:
    """Return the refusal of a monitor that costs more than the ledger can hold."""
    return KeyholeError(
        "KH302",
        f'the monitor "{plan.monitor.name}" costs {plan.epsilon_per_cell:.2f} epsilon a group and window, more than '
        "anything may",
        detail="A loss of this size protects nobody.",
        hint="Write a smaller epsilon." if plan.monitor.is_stream else "Widen its tolerance, or look less often.",
    )
