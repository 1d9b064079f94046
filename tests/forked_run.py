"""Tests shared by several processes that are forked from one, which has imported and collected everything once.

pytest-xdist lets each of its processes do that anew: for fourteen thousand tests in four processes a minute of
processor time, and one more where nothing is compiled yet. Here each process takes the next file when it is done with
one, so what a file's tests share is made once; `begun_first` says which files come first. A run that may not take long
begins no test after some seconds, and says how many tests it has left to another run.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

_NUMBER_BYTES = 4
_LOOK_S = 1.0  # between two looks whether a process is still there that has told nothing


@dataclass(frozen=True)
class _Message:
    """What a process tells of its tests: a call of one of pytest's hooks, its values as pytest writes them down."""

    hook: str
    values: dict[str, Any]


class ForkedRun:
    """A plugin of pytest that runs what was collected in `processes` processes at once.

    A process that ends before its tests do fails the test it was at; the other tests of that file are not run. Where
    `within_s` is given, each process begins with one test at least, and with no other after so many seconds.
    """

    def __init__(self, processes: int, *, within_s: float | None = None) -> None:
        self.processes = processes
        self._within_s = within_s
        self._begun = set[str]()
        self._left_out = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Run every item; as pytest's own loop, whose reports these become."""
        if session.config.option.collectonly or not session.items or session.testsfailed:
            return None
        files: dict[Path, list[pytest.Item]] = {}
        for item in session.items:
            files.setdefault(item.path, []).append(item)
        shared, children = _make_queue(len(files)), list["_Child"]()
        until = None if self._within_s is None else time.monotonic() + self._within_s
        # pytest shows its folders to fixtures alone, which no process has yet
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        try:
            for number in range(min(self.processes, len(files))):
                items = _take(shared, list(files.values()), until=until)
                children.append(_Child(session, base / f"process-{number}", items, elder=children))
            self._report(session, children)
            self._report_not_begun(session)
        finally:
            os.close(shared)
            for child in children:
                child.end()
        return True

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._begun.add(nodeid)

    def _report_not_begun(self, session: pytest.Session) -> None:
        """Let a run say what it did not begin for want of time."""
        left = [item for item in session.items if item.nodeid not in self._begun]
        if left and self._within_s is not None:
            self._left_out = len(left)
            session.config.hook.pytest_deselected(items=left)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left_out:
            terminalreporter.line(f"tests not begun within {self._within_s:g} s, left to another run: {self._left_out}")

    def _report(self, session: pytest.Session, children: "Sequence[_Child]") -> None:
        running = list(children)
        while running:
            heard = wait([child.told for child in running], timeout=_LOOK_S)
            for child in tuple(running):
                if not (child.hear() if child.told in heard else child.may_tell()):
                    running.remove(child)
                if session.shouldfail:
                    raise session.Failed(session.shouldfail)
                if session.shouldstop:
                    raise session.Interrupted(session.shouldstop)


def _make_queue(length: int) -> int:
    """A pipe with the numbers below `length`, of which each process that reads it takes the next one: who is killed at
    it keeps nobody waiting."""
    out, into = os.pipe()
    for number in range(length):
        os.write(into, number.to_bytes(_NUMBER_BYTES, "big"))
    os.close(into)
    return out


def _take(queue: int, files: Sequence[list[pytest.Item]], *, until: float | None) -> Iterator[pytest.Item]:
    while number := os.read(queue, _NUMBER_BYTES):
        for item in files[int.from_bytes(number, "big")]:
            yield item
            if until is not None and time.monotonic() > until:
                return


class _Child:
    """One process that was forked here, and the test that it is at."""

    def __init__(
        self, session: pytest.Session, folder: Path, items: Iterator[pytest.Item], *, elder: "Sequence[_Child]"
    ) -> None:
        self.told, telling = multiprocessing.Pipe(duplex=False)
        self._session = session
        self._at: tuple[str, tuple[str, int | None, str]] | None = None
        self._status: int | None = None
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # threads of libraries that wait for work, made when they are imported, which know that they are forked
            warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork.*", category=DeprecationWarning)
            self._process = os.fork()
        if self._process == 0:
            for child in (self, *elder):
                child.told.close()  # where only the parent can read, its end ends its children
            _run_and_exit(lambda: _run(session, folder, items, telling))
        telling.close()

    def hear(self) -> bool:
        """Hand a call of a hook on, as if its test had run here. Return whether there will be more."""
        try:
            message = self.told.recv()
        except EOFError:
            self._fail_unended(self._wait_for_end())
            return False
        hook, values = self._session.config.hook, message.values
        if message.hook == "pytest_warning_recorded":
            hook.pytest_warning_recorded.call_historic(kwargs=values)
            return True
        if message.hook == "pytest_runtest_logstart":
            self._at = values["nodeid"], values["location"]
        elif message.hook == "pytest_runtest_logfinish":
            self._at = None
        elif message.hook == "pytest_runtest_logreport":
            data = values["report"]
            values = {"report": hook.pytest_report_from_serializable(config=self._session.config, data=data)}
        getattr(hook, message.hook)(**values)
        return True

    def may_tell(self) -> bool:
        """Whether there may be more of a process that tells nothing now; what it has forked can outlive it."""
        if self._status is None:
            found, status = os.waitpid(self._process, os.WNOHANG)
            if not found:
                return True
            self._status = os.waitstatus_to_exitcode(status)
        if self.told.poll():
            return True
        self._fail_unended(self._status)
        return False

    def _wait_for_end(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._process, 0)[1])
        return self._status

    def _fail_unended(self, status: int) -> None:
        """Fail what the process was at where it did not end by itself."""
        if status == 0:
            return
        nodeid, location = self._at or ("the end of a process", ("", None, ""))
        text = f"the process of {nodeid} ended with {status}"
        report = pytest.TestReport(nodeid, location, {}, "failed", text, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)

    def end(self) -> None:
        """End the process where it still runs."""
        self.told.close()
        if self._status is None:
            os.kill(self._process, signal.SIGTERM)
            self._wait_for_end()


def _run_and_exit(run: Callable[[], None]) -> None:
    """Run, and end this process without anything that its parent began."""
    status = 1
    try:
        run()
        status = 0
    except KeyboardInterrupt:
        pass  # the parent has it, too, and says so
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(session: pytest.Session, folder: Path, items: Iterator[pytest.Item], telling: Connection) -> None:
    config = session.config
    config.pluginmanager.unregister(name="terminalreporter")
    config.pluginmanager.register(_Teller(config, telling))
    capture = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()  # the file that it writes to has one end for all processes
    capture.start_global_capturing()
    folder.mkdir(mode=0o700)
    config._tmp_path_factory._basetemp = folder  # type: ignore[attr-defined]
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
    config._ensure_unconfigure()
    atexit._run_exitfuncs()
    telling.close()


class _Teller:
    """Tells the parent what pytest's hooks are called with."""

    def __init__(self, config: pytest.Config, telling: Connection) -> None:
        self._config = config
        self._telling = telling

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._telling.send(_Message("pytest_runtest_logstart", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._telling.send(_Message("pytest_runtest_logfinish", {"nodeid": nodeid, "location": location}))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._telling.send(_Message("pytest_runtest_logreport", {"report": data}))

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        text = f"{warning_message.category.__name__}: {warning_message.message}"
        shown = warnings.WarningMessage(
            UserWarning(text), UserWarning, warning_message.filename, warning_message.lineno
        )
        values = {"warning_message": shown, "when": when, "nodeid": nodeid, "location": location}
        self._telling.send(_Message("pytest_warning_recorded", values))
