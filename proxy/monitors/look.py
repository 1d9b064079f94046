"""One look of a monitor, in order. Read this first.

    due -> the window's draw, stored -> values as of the look -> standing.look -> one transaction

Guarantee: data are read in one line, after the draw was stored, and nothing is told before the ledger has the look. A
look that dies before that is made again on the same draw: it is the same look. One that another process recorded
meanwhile is void.
"""

from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC
from functools import partial

from accountant.monitor_model import MonitorRun, WindowLook, WindowState
from mechanisms.formula import Booleans, Integers
from planner.catalog.model import RELEASED_BY
from planner.functionals.per_key_offsets import without_offsets
from planner.monitors.looks import look_of
from planner.monitors.model import MonitorPlan
from proxy.monitors.places import Places
from proxy.monitors.schedule import DueLook
from proxy.service.service import Service
from proxy.sources.public_moments import PublicMoments

LONGEST_MS = 600_000
"""How long a look may read: nobody waits for it, and the next one finds what it would have found."""


@dataclass(frozen=True, slots=True)
class WatchedRun:
    """A monitor that runs, under a policy that has it as it was started."""

    service: Service
    plan: MonitorPlan
    run: MonitorRun
    holder: str

    def look(self, due: DueLook, state: WindowState | None) -> None:
        """Make a look. `state` is the window's newest; None where it has not begun.

        Raises:
            KeyholeError: KH501, and nothing of the look is kept.
            LedgerError: `LookTaken` where somebody else has recorded it, `MonitorStopped` where it was paused or ended
                meanwhile, `WindowOver`, `WindowLost`, `LedgerUnavailable`.
            ValueError: a state that this version cannot read.
        """
        standing, monitors = self.plan.standing, self.service.ledger.monitors
        if state is None:
            drawn = standing.draw(keys=self.plan.keys.size, noise=self.service.noise)
            state = monitors.begin_window(self.run.run, due.window, drawn)
        if state.look >= due.look:
            return
        values = self._read(due)
        looked = standing.look(state.body, values, look=due.look, noise=self.service.noise)
        places = Places.of(self.plan, self.run)
        told = WindowLook(
            window=due.window,
            since=state.look,
            look=due.look,
            body=looked.state,
            keys=places.of_keys(looked.alerted & ~self._alerted_before(due, places)),
        )
        last = due.look == self.plan.windows.looks
        monitors.record_look(
            self.run.run,
            (told,),
            number=due.number,
            at=due.at.replace(tzinfo=UTC),
            holder=self.holder,
            closing={due.window: places.lay_out(standing.spent(looked.state))} if last else {},
        )

    def _read(self, due: DueLook) -> Integers:
        """The true values of the window's keys as of the look, shape (functionals, keys)."""
        service, one = self.service, look_of(self.plan, window=due.window, look=due.look)
        limit = min(LONGEST_MS, int(self.plan.windows.every.total_seconds() * 1000))
        with ExitStack() as reading:
            reading.enter_context(service.turn(analyst=RELEASED_BY, timeout_ms=limit))
            moments = PublicMoments(timeout_ms=limit, every_ms=service.catalog.release_every_ms)
            aggregates = partial(
                service.source.aggregates, one.rewritten, one.keys, functionals=one.functionals, timeout_ms=limit
            )
            values = moments.read(aggregates, keeping=reading).values
            with moments.told():  # a look that failed is told to nobody
                pass
        return without_offsets(one.question, values)

    def _alerted_before(self, due: DueLook, places: Places) -> Booleans:
        """Which keys came into the window's answer with earlier looks, shape (keys,)."""
        first = due.number - due.look
        page = self.service.ledger.monitors.alerts(self.run.run, after_number=first)
        return places.marks(one.key for one in page.alerts if one.window == due.window)
