"""The address of a Spark server: its URL, token and certificates as one value."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

from proxy.sources.spark.spark_refusals import refuse_malformed_url, refuse_plain_token, report_unreadable_certificates

SCHEME = "sc://"
_PORT = 15002  # where Spark Connect is served unless somebody says otherwise
_USER = "keyhole"
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_HEADER = re.compile(r"x-[a-z0-9-]+")  # what clouds want to be told besides the token, such as which cluster


@dataclass(frozen=True, slots=True)
class SparkAddress:
    """A server's host and port, with the user, token, request headers and TLS settings of the connection."""

    host: str
    port: int
    use_ssl: bool
    user: str
    token: str | None = field(repr=False)
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    ca_certificates: bytes | None = field(repr=False)

    @property
    def endpoint(self) -> str:
        """The host and port as gRPC writes them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Return True if the server is on this machine."""
        return self.host in _LOOPBACK


def parse_address(url: str, *, token: str | None = None, authority: Path | None = None) -> SparkAddress:
    """Return the server's address from a policy's URL, token and certificate file.

    `sc://host:port/;use_ssl=true;user_id=NAME;x-HEADER=VALUE`; a `token` may be in the URL, too. Other options of
    Spark's own clients are refused. A `session_id`, for example, would share a session with other clients.

    Raises:
        KeyholeError: KH008. Its text never contains the token.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise refuse_malformed_url("host and port cannot be read") from None
    if parts.scheme != "sc" or not host or parts.username is not None or parts.query or parts.fragment:
        raise refuse_malformed_url("it is sc://host:port and parameters behind /;")
    path, _, written = parts.path.partition(";")
    if path not in ("", "/"):
        raise refuse_malformed_url("nothing but parameters stands behind the host")
    given: dict[str, str] = {}
    for one in filter(None, written.split(";")):
        name, equals, value = one.partition("=")
        if not equals or name in given:
            raise refuse_malformed_url("a parameter is name=value, each once")
        given[name] = unquote(value)
    in_url, use_ssl = given.pop("token", None), given.pop("use_ssl", "false").lower()
    user = given.pop("user_id", _USER)
    if use_ssl not in ("true", "false"):
        raise refuse_malformed_url("use_ssl is true or false")
    for name in given:
        if not _HEADER.fullmatch(name):
            raise refuse_malformed_url("its parameters are use_ssl, user_id, token, and headers that begin with x-")
    content = None
    if authority is not None:
        try:
            content = authority.read_bytes()
        except OSError as error:
            raise report_unreadable_certificates(authority.name, detail=error.strerror or "") from None
    address = SparkAddress(
        host=host,
        port=port or _PORT,
        use_ssl=use_ssl == "true" or content is not None,
        user=user,
        token=token or in_url,
        headers=tuple(given.items()),
        ca_certificates=content,
    )
    if address.token is not None and not (address.use_ssl or address.is_loopback):
        raise refuse_plain_token()
    return address
