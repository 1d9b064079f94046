"""Where Keyhole's own time goes, by stage. The product has no timing code: the benchmark wraps its functions."""

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from planner.plan import build as planning
from planner.statements import settings
from proxy.concurrency.cancellable_work import QuestionWork
from proxy.open_policy.service import Service
from proxy.pipeline import answering, messages
from proxy.pipeline import claim as charging
from proxy.pipeline import ledger_verbs as spending
from proxy.pipeline import noise_reuse as reuse
from proxy.pipeline.messages import KeySet
from proxy.shadow.exchange import ShadowExchange

SOURCE = "source"
OUTER = "shadow: outer query, wire"
THREADS = "thread hops"
STAGES = (
    "parse, classify",
    "question",
    "plan",
    "shadow: prepare",
    THREADS,
    "ledger: stored answer?",
    "source ready?",
    "reserve",
    SOURCE,
    "decide",
    "key set",
    "commit",
    OUTER,
)
_WORK, _WORKED = "work", "worked"


class Stopwatch:
    """Milliseconds by stage since the last `take_lap`. Stages never contain each other."""

    def __init__(self) -> None:
        self._laps: list[tuple[str, float]] = []

    def take_lap(self, total_ms: float) -> dict[str, float]:
        """What each stage took of a question that took `total_ms` for its client, and start again."""
        laps, self._laps = self._laps, []
        sums = dict.fromkeys((*STAGES, _WORK, _WORKED), 0.0)
        for stage, taken_ms in laps:
            sums[stage] += taken_ms
        sums[THREADS] = sums.pop(_WORK) - sums.pop(_WORKED)
        sums[OUTER] = total_ms - sum(sums.values())
        return sums

    @contextmanager
    def install(self, service: Service) -> Iterator["Stopwatch"]:
        """Time the stages of every question while the block runs."""
        source, ready = type(service.source), "_has_live_connection"
        with ExitStack() as stack:
            for owner, name, stage in (
                (answering, "split_statements", "parse, classify"),
                (answering, "classify", "parse, classify"),
                (answering, "write_outer_sql", "parse, classify"),
                (settings, "read_accuracy", "question"),
                (messages, "bind_question", "question"),
                (planning, "plan_question", "plan"),
                (ShadowExchange, "settle", "shadow: prepare"),
                (QuestionWork, "run", _WORK),
                (answering.StatementAnswerer, "prepare", _WORKED),
                (answering.StatementAnswerer, "release", _WORKED),
                (charging, "make_claim", "ledger: stored answer?"),
                (spending, "find_answer_or_noise", "ledger: stored answer?"),
                (source, ready if hasattr(source, ready) else "take_turn", "source ready?"),
                (spending, "reserve", "reserve"),
                (source, "read_aggregates", SOURCE),
                (reuse, "decide_question", "decide"),
                (reuse, "list_paths_to_store", "commit"),
                (charging, "find_run_loss", "commit"),
                (spending, "commit", "commit"),
            ):
                stack.enter_context(self._time_stage(owner, name, stage))
            made, original = self._wrap(KeySet.from_passed, "key set"), staticmethod(KeySet.from_passed)
            stack.enter_context(_replace(KeySet, "from_passed", staticmethod(made), original=original))
            yield self

    @contextmanager
    def _time_stage(self, owner: Any, name: str, stage: str) -> Iterator[None]:
        original = getattr(owner, name)
        with _replace(owner, name, self._wrap(original, stage), original=original):
            yield

    def _wrap(self, call: Callable[..., Any], stage: str) -> Callable[..., Any]:
        async def waited(*given: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return await call(*given, **named)
            finally:
                self._laps.append((stage, 1000 * (time.perf_counter() - started)))

        def called(*given: Any, **named: Any) -> Any:
            started = time.perf_counter()
            try:
                return call(*given, **named)
            finally:
                self._laps.append((stage, 1000 * (time.perf_counter() - started)))

        return waited if inspect.iscoroutinefunction(call) else called


@contextmanager
def _replace(owner: Any, name: str, value: Any, *, original: Any) -> Iterator[None]:
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
