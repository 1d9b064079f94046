"""Which certificates and versions are shown, renewed, asked for and accepted."""

import ssl
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa

from proxy.wire.frontend import Startup
from tests.proxy.certificates import Authority, Identity
from tests.proxy.conftest import Running
from tests.proxy.security.tls.clients import conninfo, shown
from tests.proxy.security.tls.sockets import agreed, client_context
from tests.worlds.countries import PASSWORD

ALERT = b"\x15"
STARTUP = Startup((3, 0), ((b"user", b"ada"), (b"database", b"retail"))).encode()


# --- the server's certificate


PSS = padding.PSS(padding.MGF1(hashes.SHA512()), padding.PSS.DIGEST_LENGTH)


def certificate_of(running: Running) -> bytes | None:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with agreed(running.port) as sock, context.wrap_socket(sock) as wrapped:
        return wrapped.getpeercert(binary_form=True)


def der(identity: Identity) -> bytes:
    return identity.certificate.public_bytes(serialization.Encoding.DER)


def test_binding_follows_the_hash_of_every_kind_of_signature(
    running: Running, directory: Path, authority: Authority
) -> None:
    """libpq computes the hash by itself. (No library signs with MD5 or SHA-1 any more.)"""
    for identity in (
        authority.issue("keyhole", algorithm=hashes.SHA384()),
        authority.issue("keyhole", algorithm=hashes.SHA512()),
        authority.issue("keyhole", key=rsa.generate_private_key(65537, 2048)),
        authority.issue(
            "keyhole", key=rsa.generate_private_key(65537, 2048), algorithm=hashes.SHA512(), rsa_padding=PSS
        ),
    ):
        identity.write(directory, "server")
        with psycopg.connect(running.conninfo(extra="sslmode=require channel_binding=require")) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)


def test_a_signature_without_a_hash_offers_no_binding(running: Running, directory: Path, authority: Authority) -> None:
    authority.issue("keyhole", key=ed25519.Ed25519PrivateKey.generate()).write(directory, "server")
    with psycopg.connect(running.conninfo(extra="sslmode=require")) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="channel binding"):
        psycopg.connect(running.conninfo(extra="sslmode=require channel_binding=require"))


def test_a_new_certificate_is_shown_without_a_restart_and_a_broken_one_never(
    running: Running, directory: Path, authority: Authority
) -> None:
    old, new = certificate_of(running), authority.issue("keyhole")
    with psycopg.connect(conninfo(running, directory)) as open_before:
        key = (directory / "server.key").read_bytes()
        new.write(directory, "server")
        (directory / "server.key").write_bytes(key)  # as if the key were still to come
        assert certificate_of(running) == old
        new.write(directory, "server")
        assert certificate_of(running) == der(new) != old
        for broken in (b"", b"nonsense"):
            (directory / "server.crt").write_bytes(broken)
            assert certificate_of(running) == der(new)
        (directory / "server.key").unlink()
        assert certificate_of(running) == der(new)
        assert open_before.execute("SELECT 1").fetchone() == (1,)


# --- versions of TLS


def handshake_with(port: int, context: ssl.SSLContext) -> str | None:
    with agreed(port) as sock, context.wrap_socket(sock, server_hostname="127.0.0.1") as wrapped:
        wrapped.sendall(STARTUP)
        assert wrapped.recv(1) == b"R"
        assert wrapped.compression() is None
        return wrapped.version()


def test_nothing_older_than_1_2_is_spoken(running: Running, directory: Path) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = client_context(directory)
        context.minimum_version = context.maximum_version = version
        assert handshake_with(running.port, context) == version.name.replace("_", ".")
    context = client_context(directory)
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake_with(running.port, context)


@pytest.mark.parametrize("more", [('minimum = "1.3"',)])
def test_the_owner_may_ask_for_1_3(running: Running, directory: Path) -> None:
    context = client_context(directory)
    assert handshake_with(running.port, context) == "TLSv1.3"
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises((ssl.SSLError, ConnectionError)):
        handshake_with(running.port, context)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_sessions_are_not_resumed(running: Running, directory: Path, version: ssl.TLSVersion) -> None:
    context = client_context(directory)
    context.minimum_version = context.maximum_version = version
    session: ssl.SSLSession | None = None
    with ExitStack() as kept:  # OpenSSL forgets the session of a client that hangs up without a good-bye
        for _ in range(3):
            raw = kept.enter_context(agreed(running.port))
            sock = kept.enter_context(context.wrap_socket(raw, session=session, server_hostname="127.0.0.1"))
            sock.sendall(STARTUP)
            assert sock.recv(1) == b"R"
            assert not sock.session_reused
            session = sock.session
            assert session is None or not session.has_ticket


# --- certificates of clients


@pytest.fixture
def clients(directory: Path, authority: Authority) -> Path:
    authority.issue("dashboard").write(directory, "right")
    authority.issue("somebody").write(directory, "other")
    authority.issue("dashboard", "somebody").write(directory, "two")
    authority.issue("dashboard", days=(-20, -10)).write(directory, "expired")
    Authority.new().issue("dashboard").write(directory, "stranger")
    return directory


def test_an_analyst_with_a_certificate_needs_it_and_the_password(running: Running, clients: Path) -> None:
    extra = shown(clients, "right")
    with psycopg.connect(conninfo(running, clients, extra, user="bob")) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("bob",)
    with pytest.raises(psycopg.OperationalError, match="KH401"):
        psycopg.connect(conninfo(running, clients, extra, user="bob", password="wrong"))
    with psycopg.connect(conninfo(running, clients, shown(clients, "other"), user="ada")) as connection:
        assert connection.execute("SELECT current_user").fetchone() == ("ada",)


@pytest.mark.parametrize("name", ["", "other", "two"])
def test_without_it_the_right_password_is_refused_like_a_wrong_one(running: Running, clients: Path, name: str) -> None:
    extra = shown(clients, name) if name else "sslcertmode=disable"

    def refusal(password: str) -> str:
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(conninfo(running, clients, extra, user="bob", password=password))
        return str(caught.value)

    assert refusal(PASSWORD) == refusal("wrong")
    assert "KH401" in refusal(PASSWORD)


@pytest.mark.parametrize("name", ["stranger", "expired"])
def test_a_certificate_that_does_not_verify_ends_the_handshake(running: Running, clients: Path, name: str) -> None:
    for user in ("ada", "bob"):
        with pytest.raises(psycopg.OperationalError) as caught:
            psycopg.connect(conninfo(running, clients, shown(clients, name), user=user))
        assert "KH" not in str(caught.value)


@pytest.mark.parametrize("more", [('client_ca = "authority.crt"', "require = false")])
def test_in_the_clear_nobody_has_a_certificate(running: Running, clients: Path) -> None:
    with pytest.raises(psycopg.OperationalError, match="KH401"):
        psycopg.connect(running.conninfo(user="bob", extra="sslmode=disable"))
