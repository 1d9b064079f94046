"""Where the data come from and where Keyhole listens."""

import re
from ipaddress import ip_network

from planner.catalog.fault import Fault, Faults
from planner.policy.sections import PolicyDocument

_ORIGIN = re.compile(r"https?://[a-z0-9.\-\[\]:]+")


def find_source_faults(policy: PolicyDocument) -> Faults:
    """Keys of `[source]` that mean nothing for its engine."""
    if policy.source.scratch is not None and policy.source.url.startswith("duckdb:"):
        hint = "Leave it out: DuckDB keeps rollups in memory."
        yield ("source", "scratch"), Fault("KH002", "is for a PostgreSQL source", hint=hint)


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
