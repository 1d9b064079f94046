"""Children that are forked are as children that are started: statuses, signals, streams, descriptors, what is set."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.children import forked
from tests.worlds.served import ROOT

TOLD = """
import os, signal, sys, tempfile, threading
from pathlib import Path
own = os.open(".", os.O_RDONLY)
os.close(own)
print(sys.argv, sys.path[0], __name__, vars().get("__file__"), os.getcwd(), os.environ["SOME"], "PATH" in os.environ)
print(own, tempfile.gettempdir(), threading.active_count(), os.getsid(0) == os.getpid(), Path(__name__).is_dir())
print([signal.getsignal(number) for number in signal.valid_signals()], signal.pthread_sigmask(signal.SIG_BLOCK, ()))
print(os.umask(0o77), sys.stdin.read(), [one.line_buffering for one in (sys.stdin, sys.stdout, sys.stderr)])
print(sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.flags, sys.__stdout__ is sys.stdout)
sys.stderr.write("to standard error")
"""


def told(popen: type[Any], folder: Path, **keywords: Any) -> tuple[str, str, int]:
    process = popen(
        [sys.executable, "-c", TOLD, "one", "two words"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**os.environ, "SOME": "thing", "TMPDIR": str(folder)},
        **keywords,
    )
    out, err = process.communicate("given")
    return out, err, process.returncode


@pytest.mark.parametrize("new_session", [False, True])
def test_a_forked_child_finds_what_a_started_one_finds(tmp_path: Path, new_session: bool) -> None:
    before, interrupted = os.umask(0o27), signal.signal(signal.SIGINT, signal.default_int_handler)  # else inherited
    try:
        found = told(forked.Popen, tmp_path, start_new_session=new_session)
        assert found == told(subprocess.Popen, tmp_path, start_new_session=new_session)
    finally:
        os.umask(before)
        signal.signal(signal.SIGINT, interrupted)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("pass", 0),
        ("import sys; sys.exit(3)", 3),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", -signal.SIGINT),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL),
        ("import os; os._exit(7)", 7),
    ],
)
def test_its_end_is_told_as_it_was(text: str, status: int) -> None:
    assert forked.run([sys.executable, "-c", text], capture_output=True).returncode == status


def test_modules_run_as_modules() -> None:
    ran = forked.run([sys.executable, "-m", "tests.accountant.child"], capture_output=True, cwd=ROOT)
    assert ran.returncode == 1
    assert "not enough values to unpack" in ran.stderr


def test_signals_end_it_and_its_number_is_its_own_until_it_is_waited_for() -> None:
    waiting = [sys.executable, "-c", "print('here', flush=True); import time; time.sleep(600)"]
    for end, status in ((signal.SIGTERM, -15), (signal.SIGKILL, -9), (signal.SIGINT, -2)):
        with forked.Popen(waiting, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "here\n"
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=0.01)
            process.send_signal(end)
            assert process.stdout.read() == ""
            os.kill(process.pid, 0)
            assert process.wait() == status
            process.kill()  # of nobody else
            assert process.poll() == status


def test_what_a_start_would_read_is_read_by_a_start() -> None:
    command = [sys.executable, "-c", "import sys; print(sys.flags.dev_mode, 'proxy' in sys.modules)"]
    anew = forked.run(command, capture_output=True, env={**os.environ, "PYTHONDEVMODE": "1"})
    assert anew.stdout == "True False\n"
    if sys.platform == "linux":
        assert forked.run(command, capture_output=True).stdout == "False True\n"


def test_nothing_is_held_open_by_others_children() -> None:
    """A pipe ends with its own child, whoever was forked after it."""
    with (
        forked.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as one,
        forked.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, text=True) as two,
    ):
        assert one.stdin is not None
        assert one.stdout is not None
        one.stdin.write("\n")
        one.stdin.close()
        assert one.stdout.read() == ""
        assert one.wait() == 0
        assert two.poll() is None
        two.communicate("\n")
    assert two.returncode == 0
