"""Key values are stored once under their digest; the cache that spares hashing and reading them again."""

from collections import OrderedDict

from accountant.events.digests import Domain, digest, domain_body

# memory against hashing and reading: one column of one question is one; set, not measured
CACHED_DOMAINS = 1_024


class DomainCache:
    """The key values last seen and their digests, so that a steady workload neither hashes nor reads them again."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, Domain] = OrderedDict()
        self._digests: dict[Domain, str] = {}

    def digest_of(self, values: Domain) -> str:
        """The digest of key values."""
        known = self._digests.get(values)
        if known is None:
            known = digest(domain_body(values))
            self.remember(known, values)
        return known

    def get(self, domain: str) -> Domain | None:
        """The key values of a digest, if they were seen lately."""
        return self._values.get(domain)

    def remember(self, domain: str, values: Domain) -> None:
        """Keep a pair, and forget the oldest beyond the cache's size."""
        self._values[domain] = values
        self._digests[values] = domain
        while len(self._values) > CACHED_DOMAINS:
            _, oldest = self._values.popitem(last=False)
            del self._digests[oldest]
