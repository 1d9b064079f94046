"""The secret behind what unknown users are told: a file beside the pins that is made once, and outlives restarts.

Guarantee: the file is whole or not there, and readable by Keyhole's user alone. Processes that look for it at the same
time find the same one.
"""

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import structlog
from sqlalchemy import make_url

from planner.policy.file import Policy
from proxy.open_policy.service import find_ledger_url
from proxy.security.mock_users import SECRET_BYTES

log = structlog.get_logger("keyhole.login")

SUFFIX = ".login-secret"


def read_login_secret(policy: Policy) -> bytes:
    """Return the secret that is kept beside the policy's pins.

    If nothing can be written there, it is beside a SQLite ledger.

    Where it can be kept nowhere it follows from the policy's verifiers, which are as secret, and so stays only as long
    as they do, or this process.
    """
    for makes in (False, True):
        for path in list_secret_folders(policy, SUFFIX):
            if makes:
                _make(path)
            with suppress(OSError):
                content = path.read_bytes()
                if len(content) >= SECRET_BYTES:
                    return sha256(content).digest()
    log.warning("the login secret cannot be kept", path=str(policy.path.with_suffix(SUFFIX)))
    return sha256("\n".join(section.password for section in policy.analysts.values()).encode()).digest()


def list_secret_folders(policy: Policy, suffix: str) -> Iterator[Path]:
    """Yield the folders that may keep what the secret stands for, in the order in which they are tried."""
    path = policy.path.with_suffix(suffix)
    yield path
    url = make_url(find_ledger_url(policy))
    if url.get_backend_name() == "sqlite" and url.database:
        yield Path(url.database).with_name(path.name)


def _make(path: Path) -> None:
    """Make the file, unless it is there or cannot be made."""
    with suppress(OSError):
        descriptor, temporary = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)  # readable by its owner alone
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(SECRET_BYTES))
                file.flush()
                os.fsync(file.fileno())
            os.link(temporary, path)  # fails where there is one by now
        finally:
            os.unlink(temporary)
