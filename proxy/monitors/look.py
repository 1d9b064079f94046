"""One look of a monitor, step by step. Read this module first.

    due -> the window's draw, stored -> values as of the look -> standing.take_look -> one transaction

Guarantee: data is read in one line, after the window's noise was drawn and stored. Nothing is released before the
ledger has the look. After a crash, the look is made again with the same stored noise, so it is the same look. If
another process has recorded the look by then, this one is dropped.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC
from functools import partial

import structlog

from accountant.monitor_model import MonitorRun, WindowLook, WindowState
from mechanisms.formula import Integers
from planner.catalog.catalog import RELEASED_BY
from planner.errors import KeyholeError
from planner.functionals.per_key_offsets import subtract_offsets
from planner.lower.scan import rewrite
from planner.lower.shared_looks import share_scans
from planner.monitors.monitor_looks import make_look
from planner.monitors.monitor_plan import MonitorLook, MonitorPlan
from planner.question.plan import ReadRelation
from planner.question.question import Question
from proxy.monitors.places import CellMapping
from proxy.monitors.schedule import DueLook
from proxy.observe.logs import describe_exception
from proxy.open_policy.service import Service
from proxy.report.report_refusals import make_internal_error
from proxy.sources.public_moments import PublicMoments
from proxy.sources.read_types import MissingColumn, TypesChanged, check_types
from proxy.sources.source_refusals import report_missing_column

log = structlog.get_logger("keyhole.monitors")

LONGEST_MS = 600_000
"""How long a look may read: nobody waits for it, and the next one finds what it would have found."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A running monitor whose policy section is the same as at its start. `holder` names the process that looks."""

    service: Service
    plan: MonitorPlan
    run: MonitorRun
    holder: str

    def prepare_look(self, due: DueLook, state: WindowState | None) -> "PreparedLook | None":
        """Draw and store the window's noise, if that was not done before. Return None if the look was already made.

        Parameters:
            state: the window's newest stored state, or None if the window has not begun.

        Raises:
            KeyholeError: KH501 if a column is missing. Then the window does not begin, since no row can be read for it.
                The charge for a window that never begins is released.
            LedgerError: `MonitorStopped` if the monitor was paused or ended meanwhile, `WindowClosed`, `WindowLost`,
                `LedgerUnavailable`.
        """
        if state is None:
            _check_columns(self.service, make_look(self.plan, window=due.window, look=due.look).rewritten.relations)
            drawn = self.plan.standing.draw_state(keys=self.plan.keys.size, noise=self.service.noise)
            state = self.service.ledger.monitors.begin_window(self.run.run, due.window, drawn)
        if state.look >= due.look:
            return None
        return PreparedLook(self, due, state, make_look(self.plan, window=due.window, look=due.look))


@dataclass(frozen=True, slots=True)
class PreparedLook:
    """A look whose window has stored noise, so that data may be read for it."""

    watched: WatchedRun
    due: DueLook
    state: WindowState
    reading: MonitorLook

    def record_look(self, values: Integers) -> None:
        """Decide the look from the true values of the window's keys, and record the result in the ledger.

        Raises:
            LedgerError: `LookAlreadyRecorded` if another process has recorded it, and as `WatchedRun.prepare`.
            ValueError: a state that this version cannot read.
        """
        watched, due = self.watched, self.due
        plan, run, service = watched.plan, watched.run, watched.service
        own = subtract_offsets(self.reading.question, values)
        if plan.trend is not None:
            own = plan.trend.compute_functionals(own, shape=self.reading.keys.shape)
        looked = plan.standing.take_look(self.state.body, own, look=due.look, noise=service.noise)
        places = CellMapping.find_for_run(plan, run)
        before = places.mark_keys(service.ledger.monitors.find_keys_in_answer(run.run, due.window))
        told = WindowLook(
            window=due.window,
            since=self.state.look,
            look=due.look,
            body=looked.state,
            keys=places.find_cells(looked.alerted & ~before),
            cleared=places.find_cells(before & ~looked.alerted) if plan.clears_at_once else (),
        )
        last = due.look == plan.windows.looks
        service.ledger.monitors.record_look(
            run.run,
            (told,),
            number=due.moment_number,
            at=due.due_at.replace(tzinfo=UTC),
            holder=watched.holder,
            closing={due.window: places.expand_to_cells(plan.standing.compute_spent_losses(looked.state))}
            if last
            else {},
        )


def _check_columns(service: Service, relations: Sequence[ReadRelation]) -> None:
    """Raise KH501 if a column is missing. The look itself reports any other fault."""
    try:
        check_types(relations, service.source.read_schema)
    except MissingColumn:
        pass  # it carries no cause
    except (TypesChanged, KeyholeError):
        return
    else:
        return
    raise report_missing_column()


def read_looks(looks: Sequence[PreparedLook]) -> Iterator[tuple[PreparedLook, Integers | KeyholeError]]:
    """Read the true values for these looks, and yield each look with its values, or with the error.

    All looks belong to one service and one moment. They share statements as far as possible. If some values cannot be
    read, the others are still read.
    """
    if not looks:
        return
    service = looks[0].watched.service
    dialect = service.source.dialect
    for shared in share_scans([one.reading.question for one in looks], dialect=dialect):
        members = [(looks[number], standing) for number, standing in shared.places]
        try:
            found: Integers | KeyholeError = _read_statement(service, shared.question, [one for one, _ in members])
        except KeyholeError as error:
            found = error
        except Exception as error:  # the looks at other tables are made all the same
            log.error("monitors were not looked at", **describe_exception(error))
            found = make_internal_error()
        for one, standing in members:
            yield one, found if isinstance(found, KeyholeError) else found[list(standing)]


def _read_statement(service: Service, question: Question, looks: Sequence[PreparedLook]) -> Integers:
    """Run one statement, and return its values as an array of shape (functionals, keys).

    Raise KH501 if the source fails.
    """
    shortest = min(one.watched.plan.windows.every for one in looks)
    limit = min(LONGEST_MS, int(shortest.total_seconds() * 1000))
    rewritten = looks[0].reading.rewritten if len(looks) == 1 else rewrite(question, dialect=service.source.dialect)
    keys, functionals = question.keys, len(question.functionals)
    with ExitStack() as reading:
        reading.enter_context(service.take_turn(analyst=RELEASED_BY, timeout_ms=limit))
        moments = PublicMoments(timeout_ms=limit, every_ms=service.catalog.release_every_ms)
        aggregates = partial(service.source.read_aggregates, rewritten, keys, functionals=functionals, timeout_ms=limit)
        values: Integers = moments.read(aggregates, keeping=reading).values
        with moments.delay_release():  # a failed look is reported to nobody
            pass
    return values
