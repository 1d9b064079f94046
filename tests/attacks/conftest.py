"""The endpoint over an empty shadow, and the shop with a ledger, as other packages of tests have them."""

from tests.end_to_end.conftest import on_duckdb
from tests.proxy.conftest import (
    asker,
    catalog,
    failures,
    limits,
    running,
    shadow,
    shadow_address,
    statement_timeout_ms,
    tls,
)

__all__ = [
    "asker",
    "catalog",
    "failures",
    "limits",
    "on_duckdb",
    "running",
    "shadow",
    "shadow_address",
    "statement_timeout_ms",
    "tls",
]
