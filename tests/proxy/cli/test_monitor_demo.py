"""`keyhole demo --monitor`, a day of it: alerts that LISTEN has heard, beside the truth, and what they cost."""

import io
import re
from contextlib import redirect_stdout

import pytest

from accountant.monitor_model import MonitorRun
from planner.monitors.monitor_plan import MonitorPlan
from proxy.cli import monitor_demo
from proxy.monitors.start import start_monitor
from proxy.open_policy.service import Service
from tests.seeded_noise import SeededNoise

pytestmark = pytest.mark.server


def test_a_day_is_replayed_and_told_beside_the_truth() -> None:
    """On its first day 95 customers came from the United Kingdom, where more than 60 alert: missed once in 20, and
    not under this noise."""

    def start_seeded(service: Service, plan: MonitorPlan, **said: str) -> MonitorRun:
        service.noise = SeededNoise(1)
        return start_monitor(service, plan, **said)

    output = io.StringIO()
    with redirect_stdout(output), pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitor_demo, "start_monitor", start_seeded)
        patch.setenv("NO_COLOR", "1")
        patch.delenv("COLUMNS", raising=False)
        monitor_demo.run_monitor_demo(days=1)
    said = " ".join(output.getvalue().split())
    assert re.search(r"United Kingdom 2011-11-14 2011-11-14T\d\d:00", said)
    assert "Alerts: 1, days: 1, looks: 24" in said
    assert "with more than 60 customers 1 of 1 alerted; of those with 45 or fewer 0 of 37." in said
    assert "0.44 epsilon a country and day. Asking at every look would cost 13.2 times that." in said
