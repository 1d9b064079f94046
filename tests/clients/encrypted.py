"""The gallery behind TLS, and where clients find the authority that signed its certificate."""

import ssl
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from tests.worlds.house import VERIFIER
from tests.worlds.served import Served

TOKEN = "a token of forty characters, more or less"
MORE = f"""
token_sha256 = "{sha256(TOKEN.encode()).hexdigest()}"

[analysts.dashboard]
password = "{VERIFIER}"
certificate_name = "dashboard"

[server.tls]
certificate = "server.crt"
key = "server.key"
client_ca = "authority.crt"
"""


@dataclass(frozen=True, slots=True)
class Encrypted:
    """A served policy, and `directory` with the certificates: authority, stranger (another one), dashboard."""

    served: Served
    directory: Path

    def file(self, name: str) -> str:
        """The path of a certificate or key."""
        return str(self.directory / name)

    def context(self, *, authority: str = "authority", client: str = "") -> ssl.SSLContext:
        """What Python's drivers take; it believes one authority alone, and shows a certificate if asked to."""
        context = ssl.create_default_context(cafile=self.file(f"{authority}.crt"))
        if client:
            context.load_cert_chain(self.file(f"{client}.crt"), self.file(f"{client}.key"))
        return context

    def libpq(self, *, authority: str = "authority") -> dict[str, str]:
        """libpq's own words for it."""
        return {"sslmode": "verify-full", "sslrootcert": self.file(f"{authority}.crt")}
