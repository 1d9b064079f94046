"""One look of a monitor, in order. Read this first.

    due -> the window's draw, stored -> values as of the look -> standing.take_look -> one transaction

Guarantee: data are read in one line, after the draw was stored, and nothing is released before the ledger has the look.
A look that dies before that is made again on the same draw, so it is the same look. If another process recorded the
look meanwhile, this one is void.
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
from proxy.monitors.places import CellPlaces
from proxy.monitors.schedule import DueLook
from proxy.observe.logs import describe_exception
from proxy.open_policy.service import Service
from proxy.report.report_refusals import make_internal_error
from proxy.sources.public_moments import PublicMoments
from proxy.sources.read_types import ColumnGone, TypesChanged, check_types
from proxy.sources.source_refusals import report_missing_column

log = structlog.get_logger("keyhole.monitors")

LONGEST_MS = 600_000
"""How long a look may read: nobody waits for it, and the next one finds what it would have found."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A running monitor, under a policy that declares it as it was started. `holder` names the process that looks."""

    service: Service
    plan: MonitorPlan
    run: MonitorRun
    holder: str

    def prepare(self, due: DueLook, state: WindowState | None) -> "PreparedLook | None":
        """Store the window's draw, if it has none yet. Return None if the look was made meanwhile.

        Parameters:
            state: the window's newest; None if it has not begun.

        Raises:
            KeyholeError: KH501 if a column is gone. The window does not begin, since no row can be read for it. The
                price of a window that never began is given back.
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
    """A look whose draw is stored, so that data may be read for it."""

    watched: WatchedRun
    due: DueLook
    state: WindowState
    reading: MonitorLook

    def record(self, values: Integers) -> None:
        """Decide by the true values of the window's keys, shape (functionals, keys), and record the result.

        Raises:
            LedgerError: `LookAlreadyRecorded` if another process has recorded it, and as `WatchedRun.prepare`.
            ValueError: a state that this version cannot read.
        """
        watched, due = self.watched, self.due
        plan, run, service = watched.plan, watched.run, watched.service
        own = subtract_offsets(self.reading.question, values)
        looked = plan.standing.take_look(self.state.body, own, look=due.look, noise=service.noise)
        places = CellPlaces.find_for_run(plan, run)
        before = places.mark_keys(service.ledger.monitors.find_keys_in_answer(run.run, due.window))
        told = WindowLook(
            window=due.window,
            since=self.state.look,
            look=due.look,
            body=looked.state,
            keys=places.find_places(looked.alerted & ~before),
            cleared=places.find_places(before & ~looked.alerted) if plan.clears_at_once else (),
        )
        last = due.look == plan.windows.looks
        service.ledger.monitors.record_look(
            run.run,
            (told,),
            number=due.number,
            at=due.at.replace(tzinfo=UTC),
            holder=watched.holder,
            closing={due.window: places.expand_to_cells(plan.standing.compute_spent(looked.state))} if last else {},
        )


def _check_columns(service: Service, relations: Sequence[ReadRelation]) -> None:
    """Raise KH501 if a column is gone. The look itself reports any other fault."""
    try:
        check_types(relations, service.source.schema)
    except ColumnGone:
        pass  # it carries no cause
    except (TypesChanged, KeyholeError):
        return
    else:
        return
    raise report_missing_column()


def read_looks(looks: Sequence[PreparedLook]) -> Iterator[tuple[PreparedLook, Integers | KeyholeError]]:
    """Yield, for each look, the true values that it asks for, or the error.

    All looks are of one service and of one moment. They share as few statements as possible. If some cannot be read,
    the others are still read.
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
    """Read the values of one statement, shape (functionals, keys). Raise KH501."""
    shortest = min(one.watched.plan.windows.every for one in looks)
    limit = min(LONGEST_MS, int(shortest.total_seconds() * 1000))
    rewritten = looks[0].reading.rewritten if len(looks) == 1 else rewrite(question, dialect=service.source.dialect)
    keys, functionals = question.keys, len(question.functionals)
    with ExitStack() as reading:
        reading.enter_context(service.take_turn(analyst=RELEASED_BY, timeout_ms=limit))
        moments = PublicMoments(timeout_ms=limit, every_ms=service.catalog.release_every_ms)
        aggregates = partial(service.source.aggregates, rewritten, keys, functionals=functionals, timeout_ms=limit)
        values: Integers = moments.read(aggregates, keeping=reading).values
        with moments.release():  # a failed look is reported to nobody
            pass
    return values
