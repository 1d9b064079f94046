"""The TLS certificate of both endpoints, read from the policy's files, and again when they change.

Guarantee: TLS 1.2 or newer, without compression, renegotiation or resumed sessions. Unusable files never replace a
usable certificate.
"""

import ssl
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from stat import S_IROTH

import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes

from planner.catalog.fault import Fault
from planner.errors import KeyholeError
from planner.policy.file import Policy
from planner.policy.sections import TlsSection
from proxy.security.half_open import HalfOpenTls

log = structlog.get_logger("keyhole.tls")

ALPN = "postgresql"
HTTP_ALPN = "http/1.1"
_SOON = timedelta(days=14)  # how long before its end a certificate is warned of; automatic renewal has failed by then
_LOOPBACK = frozenset({"localhost", "::1"})
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
_State = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class Credentials:
    """The inputs of a TLS handshake, from the files as they were when read.

    `context` is for PostgreSQL. `http` is for REST, which asks nobody for a certificate. Both know the other's protocol
    too. This separates a client that was led to the wrong port from a client that names no protocol. `end_point` is the
    certificate's hash for channel binding (tls-server-end-point), or None if its signature has none. `valid_from` and
    `valid_to` are the certificate's.
    """

    context: ssl.SSLContext
    http: ssl.SSLContext
    end_point: bytes | None
    valid_from: datetime
    valid_to: datetime


class Tls:
    """The TLS settings `[server.tls]` of an open policy, for one event loop.

    Raise KH012 if the files cannot be used.
    """

    def __init__(self, policy: Policy, section: TlsSection) -> None:
        self.required = section.require
        self.covers_rest = policy.server.rest.tls
        self._policy = policy
        self._section = section
        self._state = self._read_file_identities()
        self._credentials = self._load_credentials()

    @classmethod
    def open_from_policy(cls, policy: Policy) -> "Tls | None":
        """Open the policy's TLS settings, or return None if it has no `[server.tls]`. Raise KH012."""
        return None if policy.server.tls is None else cls(policy, policy.server.tls)

    def read_credentials(self) -> Credentials:
        """Return the credentials for the next handshake. Read the files again if one of them has changed."""
        found = self._credentials
        if self._read_file_identities() != self._state:
            self.reload()
        elif found.context.session_stats()["number"] or found.http.session_stats()["number"]:
            # OpenSSL keeps sessions of TLS 1.2 and Python cannot forbid it: a new context knows none
            with suppress(KeyholeError):
                self._credentials = self._load_credentials()
        return self._credentials

    def reload(self) -> None:
        """Read the files again. If they cannot be used, log why and keep the present credentials."""
        self._state = self._read_file_identities()
        try:
            self._credentials = self._load_credentials()
        except KeyholeError as error:
            log.error("the certificate cannot be used; the last one stays", why=str(error), detail=error.detail)
        else:
            log.info("certificate read", valid_to=self._credentials.valid_to.isoformat())

    def list_warnings(self, now: datetime) -> tuple[str, ...]:
        """Return warnings about allowed but risky settings, one sentence each."""
        found = self._credentials
        said = []
        if now >= found.valid_to:
            said.append(f"server.tls.certificate expired on {found.valid_to:%Y-%m-%d}: clients that verify refuse it.")
        elif now + _SOON >= found.valid_to:
            said.append(f"server.tls.certificate expires on {found.valid_to:%Y-%m-%d}.")
        if now < found.valid_from:
            said.append(f"server.tls.certificate is not valid before {found.valid_from:%Y-%m-%d}.")
        if found.end_point is None:
            said.append("server.tls.certificate has a signature without a hash: no client can bind its login to it.")
        if self._resolve_path(self._section.key).stat().st_mode & S_IROTH:
            said.append("server.tls.key can be read by everybody on this machine.")
        return tuple(said)

    def _resolve_path(self, name: str) -> Path:
        # resolved each time, for a link may lead to newer files by now
        return self._policy.path.resolve().parent / name

    def _read_file_identities(self) -> _State:
        section = self._section
        return tuple(
            _identify_file(self._resolve_path(name))
            for name in (section.certificate, section.key, section.client_ca or "")
        )

    def _refuse(self, key: str, problem: str, *, hint: str) -> KeyholeError:
        return self._policy.refuse(("server", "tls", key), Fault("KH012", problem, hint=hint))

    def _load_credentials(self) -> Credentials:
        section = self._section
        leaf = self._read_certificate()
        context, http = self._make_context(ALPN, HTTP_ALPN), self._make_context(HTTP_ALPN, ALPN)
        context.sslobject_class = HalfOpenTls
        if section.client_ca is not None:
            self._require_client_certificates(context, section.client_ca)
        return Credentials(
            context=context,
            http=http,
            end_point=hash_certificate(leaf),
            valid_from=leaf.not_valid_before_utc,
            valid_to=leaf.not_valid_after_utc,
        )

    def _make_context(self, *protocols: str) -> ssl.SSLContext:
        section = self._section
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = _VERSIONS[section.minimum]
        context.options |= ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.set_alpn_protocols(protocols)
        try:
            # without a password OpenSSL would ask for one at the terminal
            context.load_cert_chain(
                self._resolve_path(section.certificate), self._resolve_path(section.key), password=""
            )
        except ssl.SSLError as error:
            raise self._refuse_key_pair(error) from None
        except OSError as error:
            hint = "Name the file with the private key, relative to the policy, and let Keyhole's user read it."
            raise self._refuse("key", f"cannot be read ({type(error).__name__})", hint=hint) from None
        return context

    def _read_certificate(self) -> x509.Certificate:
        try:
            pem = self._resolve_path(self._section.certificate).read_bytes()
        except OSError as error:
            hint = "Name the file with the certificate, relative to the policy, and let Keyhole's user read it."
            raise self._refuse("certificate", f"cannot be read ({type(error).__name__})", hint=hint) from None
        try:
            return x509.load_pem_x509_certificates(pem)[0]
        except ValueError:
            hint = "The file begins with -----BEGIN CERTIFICATE-----; docs/tls.md shows how to make one."
            raise self._refuse("certificate", "is not a certificate in PEM", hint=hint) from None

    def _refuse_key_pair(self, error: ssl.SSLError) -> KeyholeError:
        if error.reason == "KEY_VALUES_MISMATCH":
            hint = "Put the key that the certificate was made for beside it."
            return self._refuse("key", "does not belong to the certificate", hint=hint)
        hint = "Both are PEM files, the key without a passphrase; docs/tls.md shows how to make them."
        reason = (error.reason or "unknown").lower().replace("_", " ")
        return self._refuse("key", f"certificate and key cannot be used ({reason})", hint=hint)

    def _require_client_certificates(self, context: ssl.SSLContext, name: str) -> None:
        try:
            context.load_verify_locations(cafile=self._resolve_path(name))
        except OSError as error:  # ssl.SSLError is an OSError, too
            hint = "Name a PEM file with the certificate of the authority that signs client certificates."
            raise self._refuse("client_ca", f"cannot be read ({type(error).__name__})", hint=hint) from None
        # which analysts must show one is decided after the handshake
        context.verify_mode = ssl.CERT_OPTIONAL


def hash_certificate(certificate: x509.Certificate) -> bytes | None:
    """Return the certificate's hash for channel binding (RFC 5929), or None if its signature has none.

    It uses the hash function of the certificate's signature, but SHA-256 in place of MD5 and SHA-1.
    """
    try:
        algorithm = certificate.signature_hash_algorithm
    except UnsupportedAlgorithm:
        return None
    if algorithm is None:
        return None
    return certificate.fingerprint(hashes.SHA256() if algorithm.name in ("md5", "sha1") else algorithm)


def list_exposure_warnings(host: str, tls: Tls | None, *, now: datetime) -> tuple[str, ...]:
    """Return warnings for an owner who listens on `host`, one sentence each."""
    local = host in _LOOPBACK or host.startswith("127.")
    if tls is None:
        clear = "" if local else "there is no [server.tls]: tokens, questions and answers travel unencrypted."
    else:
        clear = "" if local or tls.covers_rest else "server.rest.tls is false: tokens of REST travel unencrypted."
    said = () if tls is None else tls.list_warnings(now)
    return (*said, f"{host} is not loopback and {clear}") if clear else said


def _identify_file(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
