"""The secret for login replies to unknown users: a file beside the pins, created once.

Guarantee: the file is complete or missing, and only Keyhole's user can read it. Processes that read it at the same time
get the same secret.
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
    """Return the secret from its file, beside the policy's pins or an SQLite ledger. Create the file if it is missing.

    If no file can be written, the secret is derived from the policy's password verifiers, which are as secret. It then
    changes when they change. Without verifiers it is random and ends with this process.
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
    """Yield the paths with this suffix where the secret, or data that belongs to it, may be stored.

    Try them in order.
    """
    path = policy.path.with_suffix(suffix)
    yield path
    url = make_url(find_ledger_url(policy))
    if url.get_backend_name() == "sqlite" and url.database:
        yield Path(url.database).with_name(path.name)


def _make(path: Path) -> None:
    """Create the file, unless it exists or cannot be created."""
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
