"""The cache of key values holds those of steady work, and no more than it says, however long they are."""

import pytest

from accountant.events.digests import Domain, digest, encode_domain
from accountant.store import domain_cache
from accountant.store.domain_cache import DomainCache


def domain(number: int, size: int) -> Domain:
    return tuple(f"{number}:{place}" for place in range(size))


def kept(cache: DomainCache, *domains: Domain) -> list[bool]:
    return [cache.find_values(digest(encode_domain(values))) is not None for values in domains]


def test_long_key_values_are_kept_by_how_many_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_cache, "CACHED_VALUES", 100)
    cache = DomainCache()
    first, second, third = (domain(number, 40) for number in range(3))
    for values in (first, second, first, third):
        assert cache.digest(values) == digest(encode_domain(values))
    assert kept(cache, first, second, third) == [True, False, True]
    huge = domain(3, 1000)
    assert cache.digest(huge) == digest(encode_domain(huge))
    assert kept(cache, first, third, huge) == [False, False, True]
    for values in (first, second):
        cache.digest(values)
    assert kept(cache, first, second, huge) == [True, True, False]


def test_short_key_values_are_kept_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(domain_cache, "CACHED_DOMAINS", 3)
    cache = DomainCache()
    domains = [domain(number, 2) for number in range(5)]
    for values in (*domains, domains[2]):
        cache.digest(values)
        cache.digest(values)
    assert kept(cache, *domains) == [False, False, True, True, True]
