"""The login and the request limits of REST. They are applied before a body is read or SQL is parsed.

A bearer token identifies the analyst. The policy stores only the token's SHA-256. Counts are kept in the memory of this
process.
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
from proxy.rest.request_refusals import refuse_full_analyst, refuse_full_service, refuse_too_often, refuse_unknown_token
from proxy.security.failed_logins import FailedLogins
from proxy.security.networks import find_network
from proxy.security.rate_limit import MOST_NAMES, RateLimit

log = structlog.get_logger("keyhole.rest")

EVERYBODY = ""
SHORT_TOKEN = 32  # characters, below which a token might be guessed; what keyhole passwd makes has 43
MOST_STREAMS = 32  # of an analyst at a time in one process: each waits, and costs a connection; set, not measured
ALL_ADDRESSES = 10  # the failed logins of all addresses together, in those of one


class Gate:
    """The request limits of one process. `failures` counts failed logins at both endpoints.

    Use it from one event loop only, since nothing here waits or locks.
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

    def count_arrival(self, address: str) -> None:
        """Count a request from an address. Raise KH430 if there are too many."""
        _refuse_for_now(self._addresses.count_if_allowed(find_network(address)), "too many requests from this address")

    def login(self, analysts: Sequence[Analyst], token: str, *, address: str) -> Analyst:
        """Return the analyst with this token, and count one request. Raise KH401 and KH430.

        Guarantee: guessed tokens are not compared if they come from an address with too many failures. After too many
        failures from all addresses, this holds for every address without a recent successful login. At most as many
        tokens are compared as an address may send requests.
        """
        if len(token) < SHORT_TOKEN:
            self.check_may_log_in(address)
        try:
            analyst = authenticate(analysts, token)
        except KeyholeError:
            self.check_may_log_in(address)
            self.note_failure(address)
            raise
        if len(token) < SHORT_TOKEN and analyst.name not in self._short:
            self._short.add(analyst.name)
            log.warning("a short token", analyst=analyst.name)
        self.note_success(address)
        self.count_request(analyst)
        return analyst

    def check_may_log_in(self, address: str, *, user: str = "") -> None:
        """Raise KH430 if this address may not try a token, or a password of this user, now."""
        place = find_network(address)
        _refuse_for_now(self._failures.get_wait_s(place, user=user), "too many failed logins from this address")
        if place not in self._welcome:
            _refuse_for_now(self._all_failures.get_wait_s(EVERYBODY), "too many failed logins")

    def note_failure(self, address: str, *, user: str = "") -> None:
        """Count a wrong token, or a wrong password of this user."""
        self._failures.note_failure(find_network(address), user=user)
        self._all_failures.count_if_allowed(EVERYBODY)

    def note_success(self, address: str) -> None:
        """Record a successful login from an address. This address may then log in even if too many others fail."""
        place = find_network(address)
        self._welcome[place] = None
        self._welcome.move_to_end(place)
        while len(self._welcome) > MOST_NAMES:
            self._welcome.popitem(last=False)

    def count_request(self, analyst: Analyst) -> None:
        """Count a request of a logged-in analyst. Raise KH430 if there are too many."""
        _refuse_for_now(self._analysts.count_if_allowed(analyst.name), "too many requests of this analyst")

    @contextmanager
    def take_slot(self, analyst: Analyst) -> Iterator[None]:
        """Count a concurrent request of this analyst during the block. Raise KH406 or KH430 if there are too many."""
        if self._working[EVERYBODY] >= self._limits.concurrent_requests:
            raise refuse_full_service()
        if self._working[analyst.name] >= self._limits.concurrent_requests_per_analyst:
            raise refuse_full_analyst()
        with _count(self._working, EVERYBODY), _count(self._working, analyst.name):
            yield

    @contextmanager
    def take_stream(self, analyst: Analyst) -> Iterator[None]:
        """Count an open event stream of this analyst during the block. Raise KH430 if there are too many.

        An open stream does not count as a concurrent request.
        """
        if self._streams[analyst.name] >= MOST_STREAMS:
            raise refuse_full_analyst()
        with _count(self._streams, analyst.name):
            yield


@contextmanager
def _count(counter: "Counter[str]", name: str) -> Iterator[None]:
    counter[name] += 1
    try:
        yield
    finally:
        counter[name] -= 1
        if not counter[name]:
            del counter[name]


def _refuse_for_now(wait_s: int, message: str) -> None:
    if wait_s:
        raise refuse_too_often(message, wait_s=wait_s)


def authenticate(analysts: Sequence[Analyst], token: str) -> Analyst:
    """Return the analyst with a bearer token. Raise KH401 if no analyst has it.

    The token's hash is compared with every stored hash, in constant time.
    """
    digest = hashlib.sha256(token.encode()).hexdigest()
    found = None
    for analyst in analysts:
        if hmac.compare_digest((analyst.token_hash or "").lower(), digest) and token:
            found = analyst
    if found is None:
        raise refuse_unknown_token()
    return found
