"""Users whom the policy does not know, as they look to anybody who tries to log in: like those whom it knows.

Guarantee: the salt and the count of iterations that an unknown name is told stay, whoever is added to the policy,
removed or changed, as those of a known one do; only where counts differ may a name be told another count, and then
another salt with it, as after a change of password. Each unknown name has the count of some analyst, so names with a
count are shared out as verifiers with it are. Finding it takes the same work for known and unknown names.
"""

import secrets
from collections.abc import Sequence
from hmac import digest as hmac_digest

from planner.catalog.catalog import Analyst
from proxy.security.scram import ITERATIONS, Verifier

SECRET_BYTES = 32  # as long as the SHA-256 that it is the key of


class MockUsers:
    """The replies to unknown users at their login, by a `secret` of some bytes: random unless given."""

    def __init__(self, secret: bytes | None = None) -> None:
        self._secret = secrets.token_bytes(SECRET_BYTES) if secret is None else secret

    def make_key(self, purpose: bytes) -> bytes:
        """Return a key for something else, which reveals nothing of the secret and is the same wherever that is."""
        return hmac_digest(self._secret, b"key\0" + purpose, "sha256")

    def make_verifier(self, user: str, analysts: Sequence[Analyst]) -> Verifier:
        """Return a verifier that nobody's password fits."""

        def rank(analyst: Analyst) -> bytes:
            return hmac_digest(self._secret, b"like\0" + user.encode() + b"\0" + analyst.name.encode(), "sha256")

        # by the highest rank, not by a number modulo how many there are: who comes or goes moves nobody else
        like = max(analysts, key=rank, default=None)
        iterations = ITERATIONS if like is None else Verifier.parse(like.verifier).iterations
        return Verifier.make_mock(user, secret=self._secret, iterations=iterations)
