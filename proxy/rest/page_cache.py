"""A cache of key sets for reading an answer by pages, so that each page need not decode the whole answer.

The cache has only released answers. A key set is returned only for a stored answer that the ledger has just returned to
the analyst.
"""

from collections import OrderedDict
from threading import Lock

from accountant.charges import StoredAnswer
from planner.scorecard.key_order import KeyOrder
from proxy.pipeline.messages import KeySet, from_bytes
from proxy.rest.sorted_keys import sort_keys

MOST_KEPT_KEYS = 250_000  # some 50 MB


class KeySetCache:
    """A cache of the key sets of recently used answers, by reservation and order. It is safe to share among threads.

    Guarantee: all key sets together have at most `most_keys` keys, unless the last one alone has more. An answer is
    decoded and sorted once for each order, however many of its pages are read at the same time.
    """

    def __init__(self, *, most_keys: int = MOST_KEPT_KEYS) -> None:
        self._most_keys = most_keys
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, KeyOrder], KeySet] = OrderedDict()
        self._keys = 0

    def find_keys(self, stored: StoredAnswer, order: KeyOrder = ()) -> KeySet | None:
        """Return the sorted key set of a stored answer. Return None for a denial.

        Raise IndexError or ValueError if its columns do not allow the order.
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
