"""Certificates for tests: an authority, and what it signs."""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.x509.oid import NameOID

from planner.policy.file import Policy
from proxy.security.tls import Tls

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey


@dataclass(frozen=True)
class Identity:
    """A certificate with its private key."""

    certificate: x509.Certificate
    key: Key

    def write(self, directory: Path, name: str, *, passphrase: bytes | None = None) -> None:
        """Into NAME.crt and NAME.key."""
        (directory / f"{name}.crt").write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))
        sealed = (
            serialization.NoEncryption() if passphrase is None else serialization.BestAvailableEncryption(passphrase)
        )
        pem = self.key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed)
        path = directory / f"{name}.key"
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(pem)


def _name(*common_names: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name) for name in common_names])


@dataclass(frozen=True)
class Authority:
    """Signs what tests need; its own certificate is `identity`."""

    identity: Identity

    @staticmethod
    def new() -> "Authority":
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("a test's authority")
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - timedelta(days=400))
            .not_valid_after(now + timedelta(days=400))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        return Authority(Identity(certificate, key))

    def issue(
        self,
        *common_names: str,
        key: Key | None = None,
        algorithm: hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None = None,
        rsa_padding: padding.PSS | None = None,
        days: tuple[int, int] = (-1, 100),
    ) -> Identity:
        """A certificate for 127.0.0.1; self-signed where `key` is given, so that it is signed by a key of that kind."""
        now = datetime.now(UTC)
        own = ec.generate_private_key(ec.SECP256R1()) if key is None else key
        signer = self.identity.key if key is None else key
        issuer = self.identity.certificate.subject if key is None else _name(*common_names)
        hashed = None if isinstance(signer, ed25519.Ed25519PrivateKey) else algorithm or hashes.SHA256()
        certificate = (
            x509.CertificateBuilder(issuer, _name(*common_names), own.public_key(), x509.random_serial_number())
            .not_valid_before(now + timedelta(days=days[0]))
            .not_valid_after(now + timedelta(days=days[1]))
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
            )
            .sign(signer, hashed, rsa_padding=rsa_padding)
        )
        return Identity(certificate, own)


POLICY = """
[source]
url = "duckdb://"

[budget]
epsilon_per_predicate = 1
epsilon_per_query = 1

[tables.sales]
privacy_unit = "row"
refresh = "static"

[server.tls]
certificate = "server.crt"
key = "server.key"
"""


def policy_in(directory: Path, *more: str) -> Policy:
    """A policy whose `[server.tls]` names server.crt and server.key in a directory."""
    return Policy.parse("\n".join((POLICY, *more)), path=directory / "keyhole.toml")


def tls_in(directory: Path, *more: str) -> Tls:
    """The opened `[server.tls]` of such a policy."""
    tls = Tls.open_from_policy(policy_in(directory, *more))
    assert tls is not None
    return tls
