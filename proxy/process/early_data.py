"""The first shadow's data, which `initdb` makes while `keyhole serve` still imports what serves.

Nothing in them depends on the policy, unless it names programs of the operator's own: those are looked at first.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.concurrency.signals import Signals
from proxy.process.own_folder import make_own_folder
from proxy.shadow.embedded import EmbeddedShadow
from proxy.shadow.guard import stop_server_with_process


class EarlyShadowData:
    """A data directory that is prepared in a thread for the first shadow. `close` removes it if no shadow took it."""

    def __init__(self) -> None:
        self._opened = ExitStack()
        self._directory = self._opened.enter_context(make_shadow_directory())
        self._making = threading.Thread(target=self._make_data, name="keyhole-early-data")
        self._making.start()

    @contextmanager
    def hand_over_directory(self) -> Iterator[Path]:
        """Yield the prepared directory for a shadow while the block runs.

        If the data could not be made, the shadow makes its own.
        """
        with self._opened:
            self._making.join()
            yield self._directory

    def close(self) -> None:
        """Delete the prepared data directory, unless a shadow uses it now."""
        self._making.join()
        self._opened.close()

    def _make_data(self) -> None:
        with suppress(KeyholeError):
            EmbeddedShadow(self._directory).make_data()


def begin_early_data(policy_path: Path, signals: Signals) -> EarlyShadowData | None:
    """Start preparing a data directory. Return None if the policy names the operator's own PostgreSQL.

    Raise KeyholeError for a policy that cannot be read.
    """
    if Policy.load(policy_path).shadow.bindir is not None:
        return None
    signals.note_ending_signals()
    return EarlyShadowData()


@contextmanager
def make_shadow_directory() -> Iterator[Path]:
    """Make a directory for a shadow while the block runs.

    A server that uses it ends with this process. Raise OSError if the directory cannot be made.
    """
    # a shadow holds no data, so it lives in a folder of its own that goes away with it
    with make_own_folder() as folder, stop_server_with_process(folder / "shadow"):
        yield folder / "shadow"
