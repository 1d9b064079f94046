"""What each test takes of the processor, its children's part included: `--costs` shows those that take most.

A test that takes more than a second is one for `tests/long_tests.toml`, or is made shorter: `make test` is to be waited
for. What a server does that a test did not start itself is nobody's here.
"""

import resource
from collections import defaultdict
from collections.abc import Generator

import pytest

DEAR_S = 1.0  # four thousand functions share what two cores do in some six minutes
_TOLD = "processor_s"


class Costs:
    """A plugin of pytest that shows the functions whose cases take more than `DEAR_S` together."""

    def __init__(self) -> None:
        self._began_s = 0.0
        self._taken_s: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        self._began_s = _measure_taken_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            report.user_properties.append((_TOLD, _measure_taken_s() - self._began_s))
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what a test took, in whichever process it ran."""
        for name, value in report.user_properties:
            if name == _TOLD:
                self._taken_s[report.nodeid.partition("[")[0]] += float(str(value))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        dear = sorted((taken, name) for name, taken in self._taken_s.items() if taken > DEAR_S)
        terminalreporter.section(
            f"processor: {sum(self._taken_s.values()):.0f} s, {sum(s for s, _ in dear):.0f} in these"
        )
        for taken, name in reversed(dear):
            terminalreporter.line(f"{taken:6.1f} s {name}")


def _measure_taken_s() -> float:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
