"""A process that asks several questions at once: `python -m tests.end_to_end.concurrency.asking_process POLICY DEATH`.

It reads its questions, as JSON, says that it is ready, and asks them when it is told so, each in a thread of its own.
Then it says how each ended, and which noise was drawn for it. With a DEATH it kills itself by SIGKILL once a question
has drawn its noise, before that is committed, or after it.
"""

import json
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from threading import Barrier, local
from typing import Any

from accountant.ledger import Ledger
from mechanisms.protocol import Outcome
from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import noise_reuse
from proxy.pipeline import stages as pipeline
from tests.end_to_end.certainty import asked

DEATHS = ("drawn", "before the commit", "after the commit")
_decide, _commit = noise_reuse.decide_question, Ledger.commit
_here = local()


def _describe(outcome: Outcome) -> list[list[tuple[str, str]]]:
    """Return for every sum the levels of its noise: rates, and digests of the values of all groups."""
    return [
        [
            (str(rate), sha256(values.tobytes()).hexdigest())
            for rate, values in zip(path.rates, path.values[: int(path.reached.min())], strict=False)
        ]
        for path in outcome.paths
        if path is not None
    ]


def _ask(service: Service, together: Barrier, one: dict[str, Any]) -> dict[str, Any]:
    _here.drawn = []
    question = replace(asked(service, one["sql"], **one["settings"]), analyst=service.find_analyst(one["who"]))
    plan = pipeline.plan_asked_question(service, question)
    together.wait()
    try:
        answer = pipeline.answer(service, plan, question)
    except KeyholeError as error:
        return {"refused": error.code, "drawn": _here.drawn}
    return {"keys": [list(key) for key in answer.keys.keys], "reused": answer.is_reused, "drawn": _here.drawn}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    policy, death, *_ = sys.argv[1:]
    questions = json.loads(sys.stdin.readline())

    def decide(*given: Any, **more: Any) -> Outcome:
        outcome = _decide(*given, **more)
        _here.drawn += _describe(outcome)
        if death == DEATHS[0]:
            _die()
        return outcome

    def commit(*given: Any, **more: Any) -> None:
        if death == DEATHS[1]:
            _die()
        _commit(*given, **more)
        if death == DEATHS[2]:
            _die()

    noise_reuse.decide_question = decide
    Ledger.commit = commit  # type: ignore[method-assign]
    with Service.open(Path(policy)) as service, ThreadPoolExecutor(len(questions)) as threads:
        together = Barrier(len(questions))
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        found = [*threads.map(lambda one: _ask(service, together, one), questions)]
    with suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
