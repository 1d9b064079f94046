"""An endpoint with TLS, in the place of the plain one; bob must show a certificate."""

from dataclasses import replace
from pathlib import Path

import pytest

from planner.catalog.catalog import Catalog
from proxy.security.tls import Tls
from tests.proxy.certificates import Authority, tls_in
from tests.worlds.countries import endpoint_catalog


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority.new()


@pytest.fixture
def directory(tmp_path: Path, authority: Authority) -> Path:
    """The server's certificate and the authority's."""
    authority.identity.write(tmp_path, "authority")
    authority.issue("keyhole").write(tmp_path, "server")
    return tmp_path


@pytest.fixture
def catalog(statement_timeout_ms: int) -> Catalog:
    """Bob must show a certificate, ada need not."""
    plain = endpoint_catalog(timeout_ms=statement_timeout_ms)
    ada, bob = plain.analysts
    return replace(plain, analysts=(ada, replace(bob, certificate_name="dashboard")))


@pytest.fixture
def more() -> tuple[str, ...]:
    return ('client_ca = "authority.crt"',)


@pytest.fixture
def tls(directory: Path, more: tuple[str, ...]) -> Tls:
    return tls_in(directory, *more)
