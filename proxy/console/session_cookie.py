"""The console's sessions as sealed cookies: name, role, expiry time, and the login that began the session.

The server keeps no sessions.

Guarantee: an accepted cookie was sealed with this installation's key, for this role, and has not expired. The person
still has the credential with which it was sealed. So a new password or token, or removal from the policy, ends the
session. Processes with the same key accept each other's cookies. A copied cookie works like the original. Both belong
to one login, which logging out ends (`ended_logins.py`).
"""

import json
import secrets
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from hmac import digest as hmac_digest

from starlette.requests import Request
from starlette.responses import Response

from planner.catalog.catalog import Analyst

PURPOSE = b"sessions of the console"
ANALYST, OWNER = "analyst", "owner"
PLACES = {ANALYST: "/console", OWNER: "/console/owner"}
_COOKIES = {ANALYST: "keyhole", OWNER: "keyhole_owner"}
_LOGIN_BYTES = 16  # of what a login is known by: no two are alike
_MOST_CHARACTERS = 1_000  # of a cookie: names of analysts have 63 bytes, in base64 84


@dataclass(frozen=True, slots=True)
class ConsoleSession:
    """A session: the person's name, the id of the login that began it, and its end in seconds since 1970."""

    name: str
    login: str
    until: int


class SessionSeal:
    """A maker and checker of session cookies, with a secret key of this installation."""

    def __init__(self, key: bytes, *, clock: Callable[[], float] = time.time) -> None:
        self._key = key
        self._clock = clock

    def seal(self, role: str, name: str, *, credential: str, minutes: int) -> str:
        """Return a new session's cookie value for a person who has just proved `credential`."""
        session = ConsoleSession(name, secrets.token_hex(_LOGIN_BYTES), int(self._clock()) + 60 * minutes)
        seal = _encode(self._sign(role, session, credential))
        return f"{_encode(name.encode())}.{session.until}.{session.login}.{seal}"

    def open(self, role: str, value: str, *, credential_of: Callable[[str], str | None]) -> ConsoleSession | None:
        """Return the session in a cookie's value. Return None if it is invalid, expired, or has another credential."""
        parts = value.split(".") if len(value) <= _MOST_CHARACTERS else []
        if len(parts) != 4 or not parts[1].isascii() or not parts[1].isdigit():
            return None
        try:
            name, signature = _decode(parts[0]).decode(), _decode(parts[3])
        except (Base64Error, ValueError):
            return None
        session = ConsoleSession(name, parts[2], int(parts[1]))
        credential = credential_of(name)
        expected = self._sign(role, session, credential or "")
        if not compare_digest(signature, expected) or credential is None or session.until <= self._clock():
            return None
        return session

    def _sign(self, role: str, session: ConsoleSession, credential: str) -> bytes:
        said = [role, session.name, session.until, session.login, credential]
        return hmac_digest(self._key, json.dumps(said).encode(), "sha256")


def _encode(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")  # which would have to be quoted in a cookie


def _decode(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


def join_credential(analyst: Analyst) -> str:
    """Return the credential of an analyst's session: the password verifier and the token hash in the policy."""
    return f"{analyst.verifier} {(analyst.token_hash or '').lower()}"


def read_cookie(request: Request, role: str) -> str:
    """Return the value of the role's cookie in a request, or ""."""
    return request.cookies.get(_COOKIES[role], "")


def set_cookie(request: Request, response: Response, role: str, value: str, *, minutes: int) -> None:
    """Set a browser's session cookie, for this site's pages only. Scripts cannot read it."""
    response.set_cookie(
        _COOKIES[role],
        value,
        max_age=60 * minutes,
        path=PLACES[role],
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def delete_cookie(request: Request, response: Response, role: str) -> None:
    """Delete a browser's session cookie."""
    response.delete_cookie(
        _COOKIES[role],
        path=PLACES[role],
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
