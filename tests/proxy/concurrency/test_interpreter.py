"""What a process imports is never looked through for garbage, and it ends with everything done that Python would do."""

import subprocess
import sys

import pytest

from tests.worlds.served import ROOT

LOOKED_THROUGH = """
import gc, pickle, sys
from proxy.concurrency.interpreter import freeze_objects
from proxy.process.worker_start import GarbageCollectionOff
light = not {"sqlglot", "sqlalchemy", "planner.policy.file"} & sys.modules.keys()
pickle.loads(pickle.dumps((GarbageCollectionOff(), "the others")))
collecting = gc.isenabled()
with freeze_objects():
    lasts = []
later = []
seen = gc.get_objects()
print(light, collecting, gc.isenabled(), *(any(one is other for other in seen) for one in (lasts, later)))
"""
STARTED = """
import gc, sys
USUAL = gc.get_threshold()[0]
sys.argv = ["keyhole", "--version"]
from proxy.cli.script import run
light = "proxy.cli.main" not in sys.modules
import proxy.cli.script
def ended(status):
    print(light, gc.isenabled(), gc.get_threshold()[0] > USUAL)
proxy.cli.script.end_process = ended
run()
"""
ENDED = """
import atexit, sys, threading
from concurrent.futures import ThreadPoolExecutor
from proxy.concurrency.interpreter import end_process
class Noisy:
    def __del__(self): print("taken apart")
noisy = Noisy()
going = threading.Event()
threading.Thread(target=lambda: (going.wait(), print("a thread"))).start()
ThreadPoolExecutor(1).submit(print, "a pool").result()
atexit.register(print, "registered")
going.set()
end_process(SystemExit({status}))
"""


def told(program: str, *, status: int = 0, error: str = "") -> list[str]:
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (ran.returncode, ran.stderr) == (status, error)
    return ran.stdout.splitlines()


def test_what_lasts_is_not_looked_through_and_what_is_made_later_is() -> None:
    assert told(LOOKED_THROUGH) == ["True False True False True"]


def test_the_script_looks_for_garbage_less_often_until_something_lasts() -> None:
    assert told(STARTED)[1:] == ["True True True"] * 2
    again = (
        "from proxy.concurrency.interpreter import collect_garbage_seldom, freeze_objects\n"
        "import gc; usual = gc.get_threshold()\n"
    )
    assert told(
        again + "collect_garbage_seldom()\nwith freeze_objects(): pass\nprint(gc.get_threshold() == usual)"
    ) == ["True"]


@pytest.mark.parametrize(("given", "status", "error"), [("", 0, ""), ("0", 0, ""), ("3", 3, ""), ("'why'", 1, "why\n")])
def test_an_end_leaves_nothing_undone(given: str, status: int, error: str) -> None:
    done = told(ENDED.replace("{status}", given), status=status, error=error)
    assert done[0] == "a pool"
    assert sorted(done[1:]) == ["a thread", "registered"]
