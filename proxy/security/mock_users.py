"""Login replies for unknown users, which look like the replies for users in the policy.

Guarantee: the salt and iteration count of an unknown name stay when others join, leave or change, as a known user's do.
Only if analysts have different counts may a name get another count, and with it another salt, as after a change of
password. Each unknown name has the iteration count of some analyst, so counts are spread over unknown names as over
analysts. Finding the count takes the same work for known and unknown names.
"""

import secrets
from collections.abc import Sequence
from hmac import digest as hmac_digest

from planner.catalog.catalog import Analyst
from proxy.security.scram import ITERATIONS, Verifier

SECRET_BYTES = 32  # as long as the SHA-256 that it is the key of


class MockUsers:
    """The maker of login replies for unknown users, from the bytes `secret`, which are random unless given."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret

    def make_key(self, purpose: bytes) -> bytes:
        """Return a key for another purpose, which reveals nothing about the secret.

        One secret and one purpose always give the same key.
        """
        return hmac_digest(self._secret, b"key\0" + purpose, "sha256")

    def make_verifier(self, user: str, analysts: Sequence[Analyst]) -> Verifier:
        """Return a password verifier for an unknown user, which no password fits."""

        def rank(analyst: Analyst) -> bytes:
            return hmac_digest(self._secret, b"like\0" + user.encode() + b"\0" + analyst.name.encode(), "sha256")

        # by the highest rank, not by a number modulo their count: adding or removing one moves no other
        like = max(analysts, key=rank, default=None)
        iterations = ITERATIONS if like is None else Verifier.parse(like.verifier).iterations
        return Verifier.make_mock(user, secret=self._secret, iterations=iterations)
