"""`[server.tls]`: which files are taken, what the owner is told, and what is read again when."""

from datetime import UTC, datetime
from hashlib import sha256, sha384
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from planner.errors import KeyholeError
from proxy.security.scram import make_verifier
from proxy.security.tls import Tls, hash_certificate, list_exposure_warnings
from tests.proxy.certificates import Authority, policy_in, tls_in

NOW = datetime.now(UTC)
ANALYST = f"[analysts.ada]\npassword = '{make_verifier('x', iterations=1)}'\ncertificate_name = 'ada'"


@pytest.fixture
def authority() -> Authority:
    return Authority.new()


@pytest.fixture
def directory(tmp_path: Path, authority: Authority) -> Path:
    authority.identity.write(tmp_path, "authority")
    authority.issue("keyhole").write(tmp_path, "server")
    return tmp_path


def refused(directory: Path, *more: str) -> str:
    with pytest.raises(KeyholeError) as caught:
        tls_in(directory, *more)
    assert caught.value.hint
    return str(caught.value)


def test_without_the_section_there_is_no_tls(directory: Path) -> None:
    policy = policy_in(directory)
    assert (
        Tls.open_from_policy(policy.model_copy(update={"server": policy.server.model_copy(update={"tls": None})}))
        is None
    )


def test_a_missing_certificate_and_a_missing_key_are_named_with_their_line(directory: Path) -> None:
    (directory / "server.key").unlink()
    assert "server.tls.key" in (said := refused(directory))
    assert said.startswith("KH012: keyhole.toml, line ")
    (directory / "server.crt").unlink()
    assert "server.tls.certificate" in refused(directory)


def test_the_key_of_another_certificate_is_refused(directory: Path, authority: Authority) -> None:
    key = (directory / "server.key").read_bytes()
    authority.issue("keyhole").write(directory, "server")
    (directory / "server.key").write_bytes(key)
    assert "does not belong to the certificate" in refused(directory)


def test_a_key_with_a_passphrase_is_refused_without_asking_for_it(directory: Path, authority: Authority) -> None:
    authority.issue("keyhole").write(directory, "server", passphrase=b"secret")
    assert "KH012" in refused(directory)


@pytest.mark.parametrize("name", ["server.crt", "server.key", "authority.crt"])
@pytest.mark.parametrize(
    "content", [b"", b"nonsense", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_what_is_not_pem_is_refused(directory: Path, name: str, content: bytes) -> None:
    (directory / name).write_bytes(content)
    assert "KH012" in refused(directory, 'client_ca = "authority.crt"')


def test_a_certificate_names_need_an_authority_and_no_token(directory: Path) -> None:
    for more, problem in (
        (("", ANALYST), "an authority"),
        (('client_ca = "authority.crt"', ANALYST, f"token_sha256 = '{'0' * 64}'"), "REST"),
    ):
        with pytest.raises(KeyholeError, match="KH002") as caught:
            policy_in(directory, *more)
        assert "certificate_name" in str(caught.value)
        assert problem in str(caught.value)
    assert policy_in(directory, 'client_ca = "authority.crt"', ANALYST).analysts["ada"].certificate_name == "ada"


def test_only_known_versions_are_a_minimum(directory: Path) -> None:
    with pytest.raises(KeyholeError, match="KH002"):
        policy_in(directory, 'minimum = "1.1"')


@pytest.mark.parametrize(
    ("days", "said"),
    [((-10, 100), None), ((-10, -1), "expired"), ((-10, 5), "expires on"), ((5, 100), "not valid before")],
)
def test_the_owner_hears_of_days_on_which_clients_will_not_believe_it(
    directory: Path, authority: Authority, days: tuple[int, int], said: str | None
) -> None:
    authority.issue("keyhole", days=days).write(directory, "server")
    found = list_exposure_warnings("127.0.0.1", tls_in(directory), now=NOW)
    assert found == () if said is None else [sentence for sentence in found if said in sentence] == list(found)
    assert (said is None) == (not found)


def test_the_owner_hears_of_a_key_for_everybody_and_of_a_signature_without_a_hash(
    directory: Path, authority: Authority
) -> None:
    (directory / "server.key").chmod(0o644)
    (sentence,) = list_exposure_warnings("0.0.0.0", tls_in(directory), now=NOW)
    assert "server.tls.key" in sentence
    authority.issue("keyhole", key=ed25519.Ed25519PrivateKey.generate()).write(directory, "server")
    (sentence,) = list_exposure_warnings("0.0.0.0", tls_in(directory), now=NOW)
    assert "without a hash" in sentence


@pytest.mark.parametrize(
    ("host", "warned"),
    [("127.0.0.1", False), ("::1", False), ("localhost", False), ("0.0.0.0", True), ("10.1.2.3", True), ("::", True)],
)
def test_the_owner_hears_of_a_server_in_the_clear_that_others_can_reach(host: str, warned: bool) -> None:
    assert bool(list_exposure_warnings(host, None, now=NOW)) == warned


@pytest.mark.parametrize(("host", "warned"), [("127.0.0.1", False), ("0.0.0.0", True)])
def test_the_owner_hears_of_rest_in_the_clear_that_others_can_reach(directory: Path, host: str, warned: bool) -> None:
    assert list_exposure_warnings(host, tls_in(directory), now=NOW) == ()
    found = list_exposure_warnings(host, tls_in(directory, "[server.rest]", "tls = false"), now=NOW)
    assert [sentence for sentence in found if "server.rest.tls" in sentence] == list(found)
    assert bool(found) == warned


def test_files_are_read_again_when_one_changes_and_not_otherwise(directory: Path, authority: Authority) -> None:
    tls = tls_in(directory)
    before = tls.read_credentials()
    assert tls.read_credentials() is before
    authority.issue("keyhole").write(directory, "server")
    after = tls.read_credentials()
    assert after is not before
    assert after.end_point != before.end_point
    tls.reload()
    assert tls.read_credentials() is not after
    (directory / "server.key").unlink()
    kept = tls.read_credentials()
    assert tls.read_credentials() is kept
    assert kept.end_point == after.end_point


# `openssl req -x509 -newkey ec -sha1`: nothing in Python makes such a signature any more
SHA1_SIGNED = b"""
-----BEGIN CERTIFICATE-----
MIIBcTCCARigAwIBAgIUGQjA+3kYEO/GebMWzxsf5f7yW/owCQYHKoZIzj0EATAP
MQ0wCwYDVQQDDARzaGExMB4XDTI2MTEyMjAxMDMxNloXDTI2MTEyMzAxMDMxNlow
DzENMAsGA1UEAwwEc2hhMTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCVBE/Ld
IyR0cC5KscBK9BPcBpJrUlDYqgoVazyif9Tb7ma7xdnS4LBY1hXe4uf4KA09VjRd
fIvSR2ylw9brJVejUzBRMB0GA1UdDgQWBBRm0gn2Kqrcf6rYcBH+bxJ5gmJq1TAf
BgNVHSMEGDAWgBRm0gn2Kqrcf6rYcBH+bxJ5gmJq1TAPBgNVHRMBAf8EBTADAQH/
MAkGByqGSM49BAEDSAAwRQIgc7jKUUnHROCZFonD8/dwswkEC7+vHm8uqnQ49Xly
egICIQDVUkFv7fXeFsQRuW+M/IH7IMBuyKtkqBc340j+H/COBg==
-----END CERTIFICATE-----
"""


def test_sha_256_stands_for_a_hash_that_is_broken() -> None:
    certificate = x509.load_pem_x509_certificate(SHA1_SIGNED)
    assert isinstance(certificate.signature_hash_algorithm, hashes.SHA1)
    assert hash_certificate(certificate) == sha256(certificate.public_bytes(serialization.Encoding.DER)).digest()


def test_other_signatures_give_their_own_hash_or_none(authority: Authority) -> None:
    certificate = authority.issue("x", algorithm=hashes.SHA384()).certificate
    assert hash_certificate(certificate) == sha384(certificate.public_bytes(serialization.Encoding.DER)).digest()
    assert hash_certificate(authority.issue("x", key=ed25519.Ed25519PrivateKey.generate()).certificate) is None
