"""Several processes tell what one would have told, and a process that ends before its tests fails one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFTEST = """
from tests.forked_run import ForkedRun

def pytest_configure(config):
    config.pluginmanager.register(ForkedRun(3))
"""
SHORT_CONFTEST = CONFTEST.replace("3)", "1, within_s=0)")
FIRST = """
def test_one(): ...

def test_of_another_run(): assert False
"""
ORDINARY = """
import os, warnings
import pytest

@pytest.fixture(scope="session", autouse=True)
def shared(tmp_path_factory):
    yield
    (tmp_path_factory.getbasetemp().parent / f"ended-{os.getpid()}").touch()

def test_passes(tmp_path):
    print("SECRET")
    (tmp_path.parent.parent / f"ran-{os.getpid()}").touch()

@pytest.mark.parametrize("n", range(3))
def test_fails(n):
    print("told", n)
    assert n == 1

@pytest.mark.skip(reason="for once")
def test_skipped(): ...

def test_warns():
    warnings.warn("look here")

@pytest.fixture
def ended():
    yield
    raise ValueError("afterwards")

def test_whose_end_fails(ended): ...
"""
KILLED = """
import os, signal

def test_before(): ...

def test_kills_its_process():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after(): ...
"""


# what is not used here takes half of the start of a process
_ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _command(folder: Path, *arguments: str, conftest: str = CONFTEST) -> list[str]:
    (folder / "conftest.py").write_text(conftest)
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", f"--basetemp={folder / 'temp'}"]
    return [*command, *arguments, "-c", os.devnull, f"--rootdir={folder}", str(folder)]


def _run(folder: Path, *arguments: str, conftest: str = CONFTEST) -> tuple[int, str]:
    command, told = _command(folder, *arguments, conftest=conftest), folder / "told"
    with told.open("wb") as output:  # not a pipe, whose end would be the end of all that holds it
        run = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, stdout=output, stderr=output, check=False)
    return run.returncode, told.read_text()


@pytest.mark.process
def test_what_processes_tell_is_what_one_process_would(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"test_{number}.py").write_text(ORDINARY)
    code, told = _run(tmp_path)
    assert code == 1
    assert "10 failed, 20 passed, 5 skipped, 5 warnings, 5 errors in" in told
    assert told.count(": UserWarning: look here") == 5
    assert told.count("ValueError: afterwards") >= 5
    assert "told 0" in told
    assert "told 2" in told
    assert "SECRET" not in told
    processes = {file.name.partition("-")[2] for file in (tmp_path / "temp").glob("ran-*")}
    assert 1 <= len(processes) <= 3
    assert {file.name.partition("-")[2] for file in (tmp_path / "temp").glob("ended-*")} >= processes


@pytest.mark.process
def test_a_process_that_is_killed_fails_its_test_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text(KILLED)
    (tmp_path / "test_1.py").write_text(KILLED.replace("os.kill(os.getpid(), signal.SIGKILL)", "..."))
    code, told = _run(tmp_path)
    assert code == 1
    assert "the process of test_0.py::test_kills_its_process ended with -9" in told
    assert "1 failed, 4 passed in" in told


@pytest.mark.process
def test_what_a_killed_process_has_forked_keeps_nobody_waiting(tmp_path: Path) -> None:
    killed = KILLED.replace("import os, signal", "import os, signal, time\nfrom pathlib import Path")
    left = "left = os.fork()\n    if left == 0: time.sleep(600)\n    "
    left += "Path(__file__).with_suffix('.left').write_text(str(left))\n    "
    (tmp_path / "test_0.py").write_text(killed.replace("os.kill(", f"{left}os.kill("))
    try:
        code, told = _run(tmp_path)
    finally:
        os.kill(int((tmp_path / "test_0.left").read_text()), signal.SIGKILL)
    assert code == 1
    assert "1 failed, 1 passed in" in told


@pytest.mark.process
def test_the_end_of_the_run_ends_its_processes(tmp_path: Path) -> None:
    waits = "import os, time\nfrom pathlib import Path\n"
    waits += "def test_waits():\n    Path(__file__).with_suffix('.pid').write_text(str(os.getpid()))\n    time.sleep(2)"
    waits += "\n\ndef test_goes_on(): time.sleep(600)"
    (tmp_path / "test_0.py").write_text(waits)
    run = subprocess.Popen(_command(tmp_path), cwd=tmp_path, env=_ENVIRONMENT, stdout=subprocess.DEVNULL)
    file = tmp_path / "test_0.pid"
    while not (file.exists() and (text := file.read_text())):
        assert run.poll() is None
        time.sleep(0.01)
    run.kill()
    run.wait()
    while Path(f"/proc/{text}").exists():
        time.sleep(0.01)


@pytest.mark.process
def test_the_first_failure_ends_all_where_that_is_asked(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text("def test_fails(): assert False")
    (tmp_path / "test_1.py").write_text("import time\ndef test_waits(): time.sleep(600)")
    code, told = _run(tmp_path, "-x")
    assert code == 1
    assert "1 failed" in told
    assert "stopping after 1 failures" in told


@pytest.mark.process
def test_nothing_is_forked_where_nothing_was_collected(tmp_path: Path) -> None:
    (tmp_path / "test_0.py").write_text("raise ValueError('cannot be read')")
    code, told = _run(tmp_path)
    assert code == 2
    assert "1 error in" in told


@pytest.mark.process
def test_a_run_that_may_not_take_long_begins_no_other_test_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(FIRST)
    (tmp_path / "test_b.py").write_text("def test_of_another_run(): assert False")
    status, told = _run(tmp_path, conftest=SHORT_CONFTEST)
    assert status == 0, told
    assert "1 passed, 2 deselected" in told
    assert "tests not begun within 0 s, left to another run: 2" in told
