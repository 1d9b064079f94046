"""A probe of whether a login can begin: as a client would meet it, up to the question for its proof."""

import ssl
from socket import AF_INET6, create_connection, socket

from proxy.wire.frontend import PROTOCOL_3_0, EncryptionRequest, Startup

PROBE_TIMEOUT_S = 2.0  # of each step, within the time for which a balancer waits
_NOBODY = ((b"user", b"readiness"),)  # unknown users are asked for a proof like others, so no name need exist
_ANSWERS = (b"R", b"E")  # a question for a proof, or a refusal that says why, such as too many clients


def find_local_address(accepting: socket) -> tuple[str, int]:
    """Return the address at which this machine reaches the listener on `accepting`.

    It is loopback for a socket that listens everywhere.
    """
    host, port = accepting.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared with, not listened on
        host = "::1" if accepting.family == AF_INET6 else "127.0.0.1"
    return host, port


def check_login_begins(host: str, port: int, *, over_tls: bool) -> None:
    """Begin a login at this address, and disconnect. Raise OSError if the endpoint does not answer.

    Nothing is proved, so no session is opened. The certificate is not verified, since the caller is the same machine.
    """
    with create_connection((host, port), timeout=PROBE_TIMEOUT_S) as connected:
        if not over_tls:
            _begin_login(connected)
            return
        connected.sendall(EncryptionRequest(is_gss=False).encode())
        if connected.recv(1) != b"S":
            raise ConnectionError("TLS is not offered")
        with _make_unverified_context().wrap_socket(connected) as encrypted:
            _begin_login(encrypted)


def _begin_login(connected: socket) -> None:
    connected.sendall(Startup(version=(PROTOCOL_3_0 >> 16, 0), parameters=_NOBODY).encode())
    if connected.recv(1) not in _ANSWERS:
        raise ConnectionError("no login can begin")


def _make_unverified_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
