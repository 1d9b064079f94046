"""Where a Spark server is, as a policy says it, and that nothing of it is told again that is a secret."""

from pathlib import Path

import pytest

from planner.errors import KeyholeError
from proxy.sources.spark.address import parse_address

SECRET = "hush-hush"


def test_an_address() -> None:
    assert parse_address("sc://lake").endpoint == "lake:15002"
    assert parse_address("sc://[::1]:7/").endpoint == "[::1]:7"
    found = parse_address("sc://lake:443/;use_ssl=true;user_id=reader;x-cluster=a%3Db", token=SECRET)
    assert (found.host, found.port, found.use_ssl, found.user) == ("lake", 443, True, "reader")
    assert (found.token, found.headers) == (SECRET, (("x-cluster", "a=b"),))
    assert parse_address(f"sc://lake/;use_ssl=true;token={SECRET}").token == SECRET
    assert SECRET not in repr(found)


def test_an_authority_means_tls(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"certificate")
    found = parse_address("sc://lake", token=SECRET, authority=tmp_path / "ca.pem")
    assert found.use_ssl
    assert found.ca_certificates == b"certificate"


@pytest.mark.parametrize(
    "url",
    [
        "sc://",
        "sc://lake:none",
        "sc://lake:99999999",
        f"sc://reader:{SECRET}@lake",
        "sc://lake/database",
        f"sc://lake/?token={SECRET}",
        f"sc://lake/;token={SECRET};token={SECRET}",
        f"sc://lake/;use_ssl=yes;token={SECRET}",
        f"sc://lake/;session_id=5c1f;use_ssl=true;token={SECRET}",
        f"sc://lake/;{SECRET}",
        f"sc://lake/;token={SECRET}",
        f"sc://lake/;use_ssl=false;token={SECRET}",
    ],
)
def test_no_address(url: str) -> None:
    with pytest.raises(KeyholeError, match="KH008") as caught:
        parse_address(url)
    assert SECRET not in str(caught.value) + repr(caught.value.detail) + repr(caught.value.hint)
    assert caught.value.__cause__ is None


def test_a_token_stays_on_the_machine_without_tls() -> None:
    assert parse_address("sc://127.0.0.1:15002", token=SECRET).token == SECRET
    with pytest.raises(KeyholeError, match="unencrypted"):
        parse_address("sc://127.0.0.1.example.org:15002", token=SECRET)


def test_an_authority_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(KeyholeError, match=r"ca\.pem, cannot be read"):
        parse_address("sc://lake", authority=tmp_path / "ca.pem")
