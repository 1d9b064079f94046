"""Which statements a client's text has, and which of them Keyhole answers: read where it holds up nobody else."""

from concurrent.futures import Executor
from functools import partial

import structlog

from planner.errors import KeyholeError
from proxy.asker import Asker, Part
from proxy.client_text import ClientText
from proxy.held import Held
from proxy.logs import fault
from proxy.withdrawal import Work

log = structlog.get_logger("keyhole.session")

_LONG_BYTES = 2 * 1024
_VERY_LONG_BYTES = 64 * 1024  # read one at a time, whoever sends them


class Reading:
    """Reads one session's texts: short ones at once, long ones in `work`, very long ones in `readers`."""

    def __init__(self, asker: Asker, *, text: ClientText, held: Held, work: Work, readers: Executor) -> None:
        self._asker = asker
        self._text = text
        self._held = held
        self._work = work
        self._readers = Work(readers)

    async def parts(self, sql: bytes) -> tuple[Part, ...]:
        """The statements of a text. What PREPARE or EXECUTE names is noted. Raises KeyholeError."""
        text = await self._text.read(sql)
        if len(sql) > _LONG_BYTES:
            beside = self._readers if len(sql) > _VERY_LONG_BYTES else self._work
            parts = await beside.run(partial(self._asker.read, text))
        else:
            parts = self._at_once(text)
        for part in parts:
            if part.prepares is not None:
                self._held.prepared(part.prepares)
            if part.executing is not None:
                self._held.check_execute(part.executing.name, position=part.offset + 1)
        return parts

    def _at_once(self, text: str) -> tuple[Part, ...]:
        try:
            return self._asker.read(text)
        except KeyholeError:
            raise
        except Exception as error:
            log.error("internal error", **fault(error))
            raise KeyholeError("KH900", "internal error") from None
