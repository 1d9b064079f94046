"""Where the data come from and where Keyhole listens."""

import re
from ipaddress import ip_network

from planner.catalog.fault import Fault, Faults
from planner.policy.sections import PolicyDocument

# the keys of one engine, with what somebody who has the other should do
_POSTGRESQL = {
    "scratch": "Leave it out: DuckDB keeps rollups in memory.",
    "work_mem": "Write memory_limit: it holds for all that DuckDB does.",
    "max_parallel_workers_per_gather": "Write threads: so many read at a time.",
}
_DUCKDB = {
    "memory_limit": "Write work_mem: PostgreSQL limits each step of a query.",
    "threads": "Write max_parallel_workers_per_gather: so many more processes read for one query.",
    "temp_directory": "Leave it out: PostgreSQL has its own place, temp_tablespaces.",
}
_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")


def find_source_faults(policy: PolicyDocument) -> Faults:
    """Keys of `[source]` that mean nothing for its engine."""
    engine, foreign = ("DuckDB", _POSTGRESQL) if policy.source.url.startswith("duckdb:") else ("PostgreSQL", _DUCKDB)
    for key, hint in foreign.items():
        if getattr(policy.source, key) is not None:
            yield ("source", key), Fault("KH002", f"is not for a {engine} source", hint=hint)


def find_rest_faults(policy: PolicyDocument) -> Faults:
    """Origins and proxies that are none."""
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
