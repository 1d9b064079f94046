"""Canonical JSON and SHA-256 digests, by which the ledger identifies contents."""

import hashlib
import json
from collections.abc import Iterable

Domain = tuple[str, ...]


def write_canonical(value: object) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces, no floating-point numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: bytes) -> str:
    """Return the SHA-256 digest as hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def encode_domain(values: Domain) -> bytes:
    """Return the bytes that are hashed and stored for a tuple of key values."""
    return write_canonical(list(values)).encode()


def digest_row(cells: Iterable[str | bytes | None]) -> str:
    """Return the digest of a row that is stored outside the log.

    It covers the row's cells in order, with bytes replaced by their own digest.
    """
    return digest(write_canonical([digest(cell) if isinstance(cell, bytes) else cell for cell in cells]).encode())
