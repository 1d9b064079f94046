"""The server's side of SCRAM-SHA-256 and SCRAM-SHA-256-PLUS, with verifiers as PostgreSQL stores them.

Guarantee: a wrong password, an unknown user and a malformed proof give the same messages and the same work. A verifier
does not let its holder log in. With channel binding, a proof made on one TLS connection is worth nothing on a
connection that shows another certificate. An attacker in the middle cannot pass it on.

References: RFC 5802, RFC 7677; RFC 5929, section 4 (tls-server-end-point).
"""

import secrets
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import pbkdf2_hmac, sha256
from hmac import compare_digest
from hmac import digest as hmac_digest

from proxy.security.violation import ProtocolViolation

MECHANISM = "SCRAM-SHA-256"
MECHANISM_PLUS = "SCRAM-SHA-256-PLUS"
CHANNEL_BINDING = "tls-server-end-point"
ITERATIONS = 4096  # PostgreSQL's own default: an attacker's cost for each guess, and every login's
_SALT_BYTES = 16  # as PostgreSQL's
_NONCE_BYTES = 18  # as PostgreSQL's
_NOT_AUTHORISED = "28000"


class AuthenticationFailed(Exception):
    """The error for a proof that does not fit the verifier, or for an unknown user. It does not say which."""


@dataclass(frozen=True, slots=True)
class Verifier:
    """The data that a server stores instead of a password."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @staticmethod
    def parse(text: str) -> "Verifier":
        """Parse `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`.

        Raise ValueError if the text is malformed.
        """
        mechanism, parameters, keys = text.split("$")
        iterations, salt = parameters.split(":")
        stored_key, server_key = (b64decode(key, validate=True) for key in keys.split(":"))
        if mechanism != MECHANISM or int(iterations) < 1 or len(stored_key) != 32 or len(server_key) != 32:
            raise ValueError("not a SCRAM-SHA-256 verifier")
        return Verifier(int(iterations), b64decode(salt, validate=True), stored_key, server_key)

    @staticmethod
    def make_mock(user: str, *, secret: bytes, iterations: int) -> "Verifier":
        """Return a verifier that no password fits. The same user and `secret` always give the same one.

        Another iteration count gives another verifier, as if the password had been set again.
        """

        def derive(purpose: bytes) -> bytes:
            return hmac_digest(secret, purpose + b"\0%d\0" % iterations + user.encode(), "sha256")

        return Verifier(iterations, derive(b"salt")[:_SALT_BYTES], derive(b"stored key"), derive(b"server key"))

    def __str__(self) -> str:
        salt, stored, server = (b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key))
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"


def make_verifier(password: str, *, salt: bytes | None = None, iterations: int = ITERATIONS) -> str:
    """Return a password's verifier in PostgreSQL's form. `salt` is random unless given."""
    salt = secrets.token_bytes(_SALT_BYTES) if salt is None else salt
    salted = pbkdf2_hmac("sha256", _normalise_password(password), salt, iterations)
    stored_key = sha256(hmac_digest(salted, b"Client Key", "sha256")).digest()
    return str(Verifier(iterations, salt, stored_key, hmac_digest(salted, b"Server Key", "sha256")))


def check_password(password: str, known: Verifier) -> bool:
    """Return True if a verifier belongs to a password. Its iteration count decides the computing time."""
    return compare_digest(str(known), make_verifier(password, salt=known.salt, iterations=known.iterations))


class ScramServer:
    """The server's side of one SCRAM exchange: client-first, server-first, client-final, server-final.

    `mocked` is True if there is no such user. The exchange then goes on and fails at its end. `end_point` is the hash
    of the server's certificate; it is None without TLS, when there is nothing to bind to. `nonce` is random unless a
    test gives one.
    """

    def __init__(
        self, known: Verifier, *, mocked: bool, end_point: bytes | None = None, nonce: str | None = None
    ) -> None:
        self.mechanisms = (MECHANISM,) if end_point is None else (MECHANISM_PLUS, MECHANISM)
        self._verifier = known
        self._mocked = mocked
        self._end_point = end_point
        self._nonce = b64encode(secrets.token_bytes(_NONCE_BYTES)).decode() if nonce is None else nonce
        self._bound = b""
        self._first = ""

    def answer_client_first(self, client_first: bytes, *, mechanism: str = MECHANISM) -> bytes:
        """Return the server-first message, by the mechanism that the client chose. Raise ProtocolViolation."""
        text = _decode_message(client_first)
        binding, _, rest = text.partition(",")
        identity, _, bare = rest.partition(",")
        self._bound = self._compute_expected_binding(binding, mechanism=mechanism)
        if identity:
            raise ProtocolViolation("client uses authorization identity, but it is not supported", sqlstate="0A000")
        attributes = bare.split(",")
        if len(attributes) < 2 or not attributes[0].startswith("n=") or not attributes[1].startswith("r="):
            raise ProtocolViolation("malformed SCRAM message")
        client_nonce = attributes[1][2:]
        if not client_nonce or not all("!" <= character <= "~" for character in client_nonce):
            raise ProtocolViolation("non-printable characters in SCRAM nonce")
        self._bound = f"{binding},{identity},".encode() + self._bound
        self._nonce = client_nonce + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        server_first = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._first = f"{bare},{server_first}"
        return server_first.encode()

    def answer_client_final(self, client_final: bytes) -> bytes:
        """Return the server-final message. Raise ProtocolViolation or AuthenticationFailed."""
        text = _decode_message(client_final)
        without_proof, separator, proof_text = text.rpartition(",p=")
        attributes = without_proof.split(",")
        if not separator or len(attributes) < 2:
            raise ProtocolViolation("malformed SCRAM message")
        if attributes[0] != "c=" + b64encode(self._bound).decode():
            raise ProtocolViolation("SCRAM channel binding check failed", sqlstate=_NOT_AUTHORISED)
        if attributes[1] != "r=" + self._nonce:
            raise ProtocolViolation("invalid SCRAM response: nonce does not match")
        try:
            proof = b64decode(proof_text, validate=True)
        except Base64Error:
            raise ProtocolViolation("malformed SCRAM proof in client-final-message") from None
        if len(proof) != 32:
            raise ProtocolViolation("malformed SCRAM proof in client-final-message")
        message = f"{self._first},{without_proof}".encode()
        signature = hmac_digest(self._verifier.stored_key, message, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        right = compare_digest(sha256(client_key).digest(), self._verifier.stored_key)
        server_signature = hmac_digest(self._verifier.server_key, message, "sha256")
        if self._mocked or not right:
            raise AuthenticationFailed
        return b"v=" + b64encode(server_signature)

    def _compute_expected_binding(self, flag: str, *, mechanism: str) -> bytes:
        """Return the binding data that the client's proof must contain after the header that begins with `flag`."""
        if mechanism not in self.mechanisms:
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        if mechanism == MECHANISM_PLUS:
            if flag != f"p={CHANNEL_BINDING}":
                raise ProtocolViolation("the SCRAM message has no channel binding of a supported type")
            assert self._end_point is not None
            return self._end_point
        if flag.startswith("p="):
            raise ProtocolViolation("channel binding without the mechanism that has it")
        if flag == "y" and self._end_point is not None:
            # the client would have bound the channel: somebody took the offer out of what it read
            raise ProtocolViolation("SCRAM channel binding negotiation error", sqlstate=_NOT_AUTHORISED)
        if flag not in ("n", "y"):
            raise ProtocolViolation("malformed SCRAM message")
        return b""


def _decode_message(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ProtocolViolation("malformed SCRAM message") from None


def _normalise_password(password: str) -> bytes:
    """Apply SASLprep (RFC 4013) to a password. If SASLprep forbids it, keep it, as PostgreSQL and libpq do."""
    try:
        return _apply_saslprep(password).encode()
    except ValueError:
        return password.encode()


_PROHIBITED = (
    stringprep.in_table_c12,
    stringprep.in_table_c21_c22,
    stringprep.in_table_c3,
    stringprep.in_table_c4,
    stringprep.in_table_c5,
    stringprep.in_table_c6,
    stringprep.in_table_c7,
    stringprep.in_table_c8,
    stringprep.in_table_c9,
    stringprep.in_table_a1,
)


def _apply_saslprep(text: str) -> str:
    if text.isascii():
        return text
    spaced = (" " if stringprep.in_table_c12(c) else c for c in text if not stringprep.in_table_b1(c))
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", "".join(spaced))
    if not prepared or any(prohibited(c) for c in prepared for prohibited in _PROHIBITED):
        raise ValueError("prohibited by SASLprep")
    if any(stringprep.in_table_d1(c) for c in prepared):
        ends_right_to_left = stringprep.in_table_d1(prepared[0]) and stringprep.in_table_d1(prepared[-1])
        if any(stringprep.in_table_d2(c) for c in prepared) or not ends_right_to_left:
            raise ValueError("mixed directions")
    return prepared
