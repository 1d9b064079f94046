"""Releases and publications that die by SIGKILL at a chosen step: `python -m tests.proxy.release.killed`.

A policy, a file, a number and, of a release that is charged, its command a line in, where it died a line out, as
JSON. Everything runs in a fork of this process, which has everything imported and nothing open. Steps are whatever the
file's folder is asked for, every statement to the ledger, and its COMMIT.
"""

import gc
import io
import json
import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from proxy.cli.main import app
from proxy.open_policy.service import Service
from proxy.release.publication import PublicationRequest, TableMethod, plan_publication
from proxy.release.unprotected import publish_unprotected

ASKED = PublicationRequest(
    table="taken",
    public=("ward",),
    sensitive="drug",
    method=TableMethod.PERTURBED,
    epsilon=None,
    most_rows=1,
    retention=Fraction(1, 2),
    within=Fraction(3, 10),
    unsure=Fraction(3, 10),
    exact=False,
    name="published",
    why="a test",
)


def publish(policy: Path, file: Path, death: "Death | None" = None) -> str:
    """Publish, or find what was published; the file's hash."""
    with Service.open(policy) as service:
        planned = plan_publication(ASKED, service.catalog, service.source.dialect)
        if death is not None:
            death.arm()
        return publish_unprotected(service, planned, file, by="owner").file_hash


def release(policy: Path, arguments: list[str], death: "Death | None" = None) -> str:
    """Run one of the commands that charge, as a terminal would; the JSON that it prints, also of a refusal."""
    told = io.StringIO()
    if death is not None:
        death.arm()
    with redirect_stdout(told), redirect_stderr(io.StringIO()):
        app([*arguments, "--policy", str(policy), "--json"], standalone_mode=False)
    return told.getvalue()


class Death:
    """Kills this process at the n-th step from when it is armed, having said which it is."""

    def __init__(self, at: int, says: int, folder: Path) -> None:
        self._left = at
        self._says = says
        self._folder = str(folder)
        self._armed = False

    def arm(self) -> None:
        """From here on steps count."""
        sa.event.listen(sa.Engine, "before_cursor_execute", lambda _, __, statement, *_rest: self._step(statement[:40]))
        sa.event.listen(sa.Engine, "commit", lambda _: self._step("COMMIT"))
        sys.addaudithook(self._hear)
        self._armed = True

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        asked = [one for one in arguments if isinstance(one, str | os.PathLike)]
        if self._armed and any(os.fspath(one).startswith(self._folder) for one in asked):
            self._step(f"{event} {' '.join(Path(one).name for one in asked if str(one).startswith('/'))}")

    def _step(self, what: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.write(self._says, what.encode())
            os.kill(os.getpid(), signal.SIGKILL)


def run(command: dict[str, Any]) -> dict[str, Any]:
    """Fork, publish, and die at a step: which that was (None: the end came first)."""
    listens, says = os.pipe()
    process = os.fork()
    if process == 0:
        status = 1
        try:
            file = Path(command["file"])
            policy, death = Path(command["policy"]), Death(command["at"], says, file.parent)
            if command["release"]:
                release(policy, command["release"], death)
            else:
                publish(policy, file, death)
            status = 0
        finally:
            os._exit(status)
    os.close(says)
    with open(listens) as pipe:
        where = pipe.read() or None
    _, status = os.waitpid(process, 0)
    return {"where": where, "signal": status & 0x7F, "exit": status >> 8}


def main() -> None:
    """Listen until the input ends."""
    gc.freeze()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
