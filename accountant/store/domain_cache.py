"""A cache of key values by their digest. The ledger stores each tuple of key values once."""

import threading
from collections import OrderedDict

from accountant.events.digests import Domain, digest, encode_domain

# memory against hashing and reading: one column of one question is one; set, not measured
CACHED_DOMAINS = 1_024
# the same for long ones: four columns of a million values, some hundred megabytes
CACHED_VALUES = 4_000_000


class DomainCache:
    """The recently used key values and their digests, so that repeated questions do not hash or read them again.

    It keeps at most `CACHED_DOMAINS` tuples with `CACHED_VALUES` values in total, or a single longer one.
    """

    def __init__(self) -> None:
        self._values: OrderedDict[str, Domain] = OrderedDict()
        self._digests: dict[Domain, str] = {}
        self._lock = threading.Lock()
        self._size = 0

    def digest(self, values: Domain) -> str:
        """Return the digest of key values."""
        known = self._digests.get(values)
        if known is None:
            known = digest(encode_domain(values))
        self.store_values(known, values)
        return known

    def find_values(self, domain: str) -> Domain | None:
        """Return the key values of a digest, if they were seen recently."""
        return self._values.get(domain)

    def store_values(self, domain: str, values: Domain) -> None:
        """Keep a pair, and drop the least recently used ones beyond the cache's size."""
        with self._lock:
            if domain in self._values:
                self._values.move_to_end(domain)
                return
            self._values[domain] = values
            self._digests[values] = domain
            self._size += len(values)
            while len(self._values) > CACHED_DOMAINS or (self._size > CACHED_VALUES and len(self._values) > 1):
                _, oldest = self._values.popitem(last=False)
                self._size -= len(oldest)
                del self._digests[oldest]
