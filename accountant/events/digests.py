"""Canonical JSON and SHA-256: what the ledger knows contents by."""

import hashlib
import json

Domain = tuple[str, ...]


def canonical(value: object) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no floating-point numbers."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def digest(content: bytes) -> str:
    """SHA-256 as hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def domain_body(values: Domain) -> bytes:
    """What is hashed and stored for a tuple of key values."""
    return canonical(list(values)).encode()
