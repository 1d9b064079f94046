"""The warnings of `check` and `serve` about files of Keyhole that others on this machine can read or change."""

import os
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError

from accountant.store.private_files import is_open_to_others
from planner.policy.file import Policy

_BESIDE_SQLITE = ("", "-wal", "-shm")


def describe_exposed_files(policy: Policy, *, ledger: str) -> tuple[str, ...]:
    """Return the files that others on this machine could read or change, one sentence each.

    `ledger` is the ledger's URL.
    """
    said = []
    if _has_secrets(policy) and is_open_to_others(policy.path):
        said.append(_describe_exposed_file(policy.path, "holds passwords or what proves them"))
    exposed = filter(is_open_to_others, _list_ledger_files(ledger))
    said.extend(_describe_exposed_file(file, "holds answers, losses and noise") for file in exposed)
    if os.geteuid() == 0:
        said.append("Keyhole runs as root: give it a user of its own, who can read the source and write the ledger.")
    return tuple(said)


def _describe_exposed_file(file: Path, why: str) -> str:
    return f"{file.name} {why}, and not its owner alone may open it: chmod 600 {file.name}"


def _has_secrets(policy: Policy) -> bool:
    if policy.analysts or policy.source.token:
        return True
    return any(_has_password(url) for url in (policy.source.url, policy.ledger.url))


def _has_password(url: str) -> bool:
    parsed = _parse_url(url)
    return parsed is not None and bool(parsed.password or "password" in parsed.query)


def _list_ledger_files(url: str) -> Iterator[Path]:
    parsed = _parse_url(url)
    if parsed is not None and parsed.get_backend_name() == "sqlite" and parsed.database:
        for suffix in _BESIDE_SQLITE:
            yield Path(f"{parsed.database}{suffix}")


def _parse_url(url: str) -> URL | None:
    try:
        return make_url(url)
    except ArgumentError:
        return None
