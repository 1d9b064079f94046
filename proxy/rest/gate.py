"""Who may come in, how often, and how many at once. Everything is decided before a body is read or SQL is looked at.

A bearer token names the analyst; the policy holds only its SHA-256. The counts are in the memory of this process.
"""

import hashlib
import hmac
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import structlog

from planner.catalog.catalog import Analyst
from planner.errors import KeyholeError
from planner.policy.sections import RestSection
from proxy.rest.request_refusals import no_such_token, too_many_at_a_time, too_many_of_an_analyst, too_often
from proxy.security.failed_logins import FailedLogins
from proxy.security.networks import find_network
from proxy.security.rate_limit import MOST_NAMES, RateLimit

log = structlog.get_logger("keyhole.rest")

EVERYBODY = ""
SHORT_TOKEN = 32  # characters, below which a token might be guessed; what keyhole passwd makes has 43
MOST_STREAMS = 32  # of an analyst at a time in one process: each waits, and costs a connection; set, not measured
ALL_ADDRESSES = 10  # the failed logins of all addresses together, in those of one


class Gate:
    """The counters of one process, beside the `failures` of both endpoints.

    For one event loop: nothing here waits or locks.
    """

    def __init__(self, limits: RestSection, failures: FailedLogins) -> None:
        self._limits = limits
        self._addresses = RateLimit(limits.requests_per_minute_per_address)
        self._analysts = RateLimit(limits.requests_per_minute)
        self._failures = failures
        self._all_failures = RateLimit(limits.failed_logins_per_minute * ALL_ADDRESSES)
        self._welcome: OrderedDict[str, None] = OrderedDict()
        self._working: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._short: set[str] = set()

    def arrive(self, address: str) -> None:
        """Count a request from an address. Raise KH430."""
        _wait(self._addresses.count_if_allowed(find_network(address)), "too many requests from this address")

    def login(self, analysts: Sequence[Analyst], token: str, *, address: str) -> Analyst:
        """Return the analyst whose token it is, and count one request. Raise KH401, KH430.

        Guarantee: from an address with too many failures, and with too many from all addresses from all but those from
        which a login succeeded lately, no token is looked at that could be guessed. Others are at most as many as the
        requests that an address may send.
        """
        if len(token) < SHORT_TOKEN:
            self.insist_heard(address)
        try:
            analyst = authenticate(analysts, token)
        except KeyholeError:
            self.insist_heard(address)
            self.note_failure(address)
            raise
        if len(token) < SHORT_TOKEN and analyst.name not in self._short:
            self._short.add(analyst.name)
            log.warning("a short token", analyst=analyst.name)
        self.note_success(address)
        self.count(analyst)
        return analyst

    def insist_heard(self, address: str, *, user: str = "") -> None:
        """Raise KH430 where no token, or password of this user, is looked at from an address now."""
        place = find_network(address)
        _wait(self._failures.get_wait_s(place, user=user), "too many failed logins from this address")
        if place not in self._welcome:
            _wait(self._all_failures.get_wait_s(EVERYBODY), "too many failed logins")

    def note_failure(self, address: str, *, user: str = "") -> None:
        """Note that a token, or a password of this user, was wrong."""
        self._failures.note_failure(find_network(address), user=user)
        self._all_failures.count_if_allowed(EVERYBODY)

    def note_success(self, address: str) -> None:
        """Note that a login from an address succeeded: it is heard on when too many from elsewhere fail."""
        place = find_network(address)
        self._welcome[place] = None
        self._welcome.move_to_end(place)
        while len(self._welcome) > MOST_NAMES:
            self._welcome.popitem(last=False)

    def count(self, analyst: Analyst) -> None:
        """Count a request of an analyst who has logged in. Raise KH430."""
        _wait(self._analysts.count_if_allowed(analyst.name), "too many requests of this analyst")

    @contextmanager
    def together_of(self, analyst: Analyst) -> Iterator[None]:
        """Take one of the places for concurrent requests, of this analyst and of all. Raise KH406, KH430."""
        if self._working[EVERYBODY] >= self._limits.concurrent_requests:
            raise too_many_at_a_time()
        if self._working[analyst.name] >= self._limits.concurrent_requests_per_analyst:
            raise too_many_of_an_analyst()
        with _counted(self._working, EVERYBODY), _counted(self._working, analyst.name):
            yield

    @contextmanager
    def stream_of(self, analyst: Analyst) -> Iterator[None]:
        """Take one of the streams of events that an analyst may have open: a connection, and no concurrent request.

        Raise KH430.
        """
        if self._streams[analyst.name] >= MOST_STREAMS:
            raise too_many_of_an_analyst()
        with _counted(self._streams, analyst.name):
            yield


@contextmanager
def _counted(counter: "Counter[str]", name: str) -> Iterator[None]:
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]


def _wait(wait_s: int, message: str) -> None:
    if wait_s:
        raise too_often(message, wait_s=wait_s)


def authenticate(analysts: Sequence[Analyst], token: str) -> Analyst:
    """Return the analyst a bearer token belongs to; every stored hash is compared, in constant time. Raise KH401."""
    digest = hashlib.sha256(token.encode()).hexdigest()
    found = None
    for analyst in analysts:
        if hmac.compare_digest((analyst.token_hash or "").lower(), digest) and token:
            found = analyst
    if found is None:
        raise no_such_token()
    return found
