"""Rules for the source of the data and for the addresses on which Keyhole listens."""

import re
from collections.abc import Mapping
from ipaddress import ip_network

from planner.catalog.fault import Fault, Faults
from planner.policy.sections import PolicyDocument, SourceKind, SourceSection

_ENGINES: Mapping[SourceKind, str] = {"duckdb": "DuckDB", "postgresql": "PostgreSQL", "spark": "Spark"}
_IN_URL = "Leave it out: url says it."
# the keys that an engine has not, with what somebody who has another engine's should do
_FOREIGN: Mapping[SourceKind, Mapping[str, str]] = {
    "duckdb": {
        "scratch": "Leave it out: DuckDB keeps rollups in memory.",
        "work_mem": "Write memory_limit: it holds for all that DuckDB does.",
        "max_parallel_workers_per_gather": "Write threads: so many read at a time.",
        "engine": _IN_URL,
        "token": "Leave it out: files are opened by Keyhole's own user.",
        "ca": "Leave it out: nothing is sent over a network.",
        "catalog": _IN_URL,
        "database": _IN_URL,
    },
    "postgresql": {
        "memory_limit": "Write work_mem: PostgreSQL limits each step of a query.",
        "threads": "Write max_parallel_workers_per_gather: so many more processes read for one query.",
        "temp_directory": "Leave it out: PostgreSQL has its own place, temp_tablespaces.",
        "engine": _IN_URL,
        "token": "Write the password into url, as ${KEYHOLE_SOURCE_PASSWORD}.",
        "ca": "Write ?sslmode=verify-full&sslrootcert=FILE behind url.",
        "catalog": _IN_URL,
        "database": _IN_URL,
    },
    "spark": {
        "scratch": "Leave it out: nothing is written to Spark, so that each question reads its table.",
        "memory_limit": "Leave it out: whoever runs the server says how much memory it takes.",
        "threads": "Leave it out: whoever runs the server says how many workers it has.",
        "temp_directory": "Leave it out: the server's workers have their own.",
        "work_mem": "Leave it out: whoever runs the server says how much memory it takes.",
        "max_parallel_workers_per_gather": "Leave it out: whoever runs the server says how many workers it has.",
    },
}
_TOKEN_IN_URL = re.compile(r";token=", re.IGNORECASE)
_TOKEN = re.compile(r"[0-9a-f]{64}")
_HOST = re.compile(r"(?=.{1,253}$)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
_IPV6 = re.compile(r"(?=[^%]*:)[0-9A-Fa-f:.]{2,45}(%[A-Za-z0-9_.-]{1,32})?")
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")


def find_source_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for each key of `[source]` that its engine does not use, and for each key that Spark needs."""
    source = policy.source
    for key, hint in _FOREIGN[source.kind].items():
        if getattr(source, key) is not None:
            yield ("source", key), Fault("KH002", f"is not for a {_ENGINES[source.kind]} source", hint=hint)
    if source.kind == "spark":
        yield from _find_spark_faults(source)


def _find_spark_faults(source: SourceSection) -> Faults:
    if source.engine is None:
        hint = 'Write engine = "spark" for Apache Spark 4 and what is made of it, engine = "sail" for Sail.'
        yield ("source", "engine"), Fault("KH002", "is missing: url does not say which engine answers", hint=hint)
    if source.engine == "sail" and not source.skip_blocks:
        hint = "Write skip_blocks = true, and see docs/policy.md for what a stopwatch may then show; or use Spark."
        problem = "cannot be false: no session can keep Sail from leaving out blocks by their least and greatest values"
        yield ("source", "skip_blocks"), Fault("KH002", problem, hint=hint)
    if _TOKEN_IN_URL.search(source.url):
        hint = 'Write token = "${KEYHOLE_SOURCE_TOKEN}" under [source], and leave it out of url.'
        yield ("source", "url"), Fault("KH002", "has a token in it, which url is no place for", hint=hint)


def find_rest_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for each text that is no web origin, or no address of a proxy."""
    for origin in policy.server.rest.origins:
        if not _ORIGIN.fullmatch(origin):
            hint = (
                'Write scheme, host and port as a browser sends them: "https://lab.example.org". A wildcard is no name.'
            )
            yield ("server", "rest", "origins"), Fault("KH002", "is not an origin", hint=hint)
    for proxy in policy.server.rest.trusted_proxies:
        try:
            ip_network(proxy)
        except ValueError:
            hint = 'Write the address that the proxy connects from, or its network: "127.0.0.1", "10.0.0.0/24".'
            yield ("server", "rest", "trusted_proxies"), Fault("KH002", "is not an address", hint=hint)


def find_listen_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for each address to listen on that cannot be resolved."""
    for key in ("host", "metrics_host"):
        host = getattr(policy.server, key)
        if not (_HOST.fullmatch(host) or _IPV6.fullmatch(host)):
            hint = 'Write a name or an address, such as "127.0.0.1", "::1" or "0.0.0.0" for all.'
            yield ("server", key), Fault("KH002", "is neither a host name nor an address", hint=hint)


def find_play_faults(policy: PolicyDocument) -> Faults:
    """Yield the faults of a playground that cannot work.

    It needs a console to show it, and a single process, because its sessions are in memory.
    """
    server = policy.server
    place = ("server", "play", "enabled")
    if server.play.enabled and server.workers > 1:
        hint = "Sessions live in one process: leave workers at 1, or run keyhole play beside it."
        yield place, Fault("KH002", "cannot be true with several workers", hint=hint)
    if server.play.enabled and not server.console.enabled:
        hint = "Let [server.console] be enabled, or run keyhole play."
        yield place, Fault("KH002", "cannot be true without the console", hint=hint)


def find_console_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for an owner's token of a wrong form, or one that an analyst also has."""
    console = policy.server.console
    place = ("server", "console", "owner_token_sha256")
    if console.owner_token_sha256 is None:
        return
    if not _TOKEN.fullmatch(console.owner_token_sha256):
        hint = "Write the sha256 of the owner's token as 64 hexadecimal digits: keyhole passwd --token prints it."
        yield place, Fault("KH002", "is not a sha256 in hex", hint=hint)
    for name, analyst in policy.analysts.items():
        if analyst.token_sha256 == console.owner_token_sha256:
            hint = "Make one of its own with keyhole passwd --token."
            yield place, Fault("KH002", f"is the token of analysts.{name} too", hint=hint)
