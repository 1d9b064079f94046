"""Key sets that pages were read from lately, so that the next page need not decode the whole answer again.

What is kept was released, and is handed out only for a stored answer that the ledger has just given to its analyst.
"""

from collections import OrderedDict
from threading import Lock

from accountant.charges import StoredAnswer
from planner.scorecard.key_order import KeyOrder
from proxy.pipeline.messages import KeySet, from_bytes
from proxy.rest.sorted_keys import sort_keys

MOST_KEPT_KEYS = 250_000  # some 50 MB


class KeptKeys:
    """The key sets of the answers used last, by reservation and order. Safe to share between threads.

    Guarantee: those of the answers before the last one have `most_keys` keys at most, together with its own. However
    many pages of one answer are read at a time, it is decoded and sorted once and there once in memory for each order.
    """

    def __init__(self, *, most_keys: int = MOST_KEPT_KEYS) -> None:
        self._most_keys = most_keys
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, KeyOrder], KeySet] = OrderedDict()
        self._keys = 0

    def of(self, stored: StoredAnswer, order: KeyOrder = ()) -> KeySet | None:
        """Return the key set of a stored answer, sorted; None for a denial.

        Raise IndexError and ValueError for an order that it cannot have.
        """
        wanted = stored.reservation, order
        with self._lock:
            found = self._kept.get(wanted)
            if found is None:
                released = from_bytes(stored.answer)
                if not isinstance(released, KeySet):
                    return None
                found = self._kept[wanted] = sort_keys(released, order)
                self._keys += len(found.keys)
            self._kept.move_to_end(wanted)
            while self._keys > self._most_keys and len(self._kept) > 1:
                _, oldest = self._kept.popitem(last=False)
                self._keys -= len(oldest.keys)
            return found

    def __len__(self) -> int:
        return self._keys
