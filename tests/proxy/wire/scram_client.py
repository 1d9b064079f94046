"""The client's side of SCRAM-SHA-256, for tests that speak the protocol themselves."""

import secrets
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256
from hmac import digest

from proxy.security.scram import _normalise_password


class ScramClient:
    """`binding` begins the message: `n`, `y`, or `p=` with a channel's kind, whose data is `channel`."""

    def __init__(self, password: str, *, binding: str = "n", channel: bytes = b"") -> None:
        self._password = password
        self._header = f"{binding},,".encode()
        self._channel = channel
        self._bare = f"n=,r={secrets.token_hex(8)}"
        self.expected = b""

    def first(self) -> bytes:
        return self._header + self._bare.encode()

    def final(self, server_first: bytes) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salted = pbkdf2_hmac("sha256", _normalise_password(self._password), b64decode(fields["s"]), int(fields["i"]))
        client_key = digest(salted, b"Client Key", "sha256")
        without_proof = f"c={b64encode(self._header + self._channel).decode()},r={fields['r']}"
        message = f"{self._bare},{server_first.decode()},{without_proof}".encode()
        signature = digest(sha256(client_key).digest(), message, "sha256")
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        self.expected = b"v=" + b64encode(digest(digest(salted, b"Server Key", "sha256"), message, "sha256"))
        return f"{without_proof},p={b64encode(proof).decode()}".encode()
