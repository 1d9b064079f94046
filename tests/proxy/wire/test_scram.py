from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256
from hmac import digest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.security.scram import MECHANISM, MECHANISM_PLUS, AuthenticationFailed, ScramServer, Verifier, make_verifier
from proxy.security.violation import ProtocolViolation
from tests.effort import examples
from tests.in_turn import in_turn
from tests.proxy.wire.scram_client import ScramClient

CLIENT_NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")


def test_the_exchange_printed_in_rfc_7677() -> None:
    server = ScramServer(Verifier.parse(make_verifier("pencil", salt=SALT)), mocked=False, nonce=SERVER_NONCE)
    assert server.answer_client_first(b"n,,n=user,r=" + CLIENT_NONCE.encode()) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    final = (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert server.answer_client_final(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@in_turn(
    ("password", "prepared"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),
        ("USER", "USER"),
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007é", "\u0007é"),
        ("\u06271", "\u06271"),
    ],
)
def test_passwords_are_prepared_as_rfc_4013_says_and_taken_as_they_are_where_it_prohibits_them(
    password: str, prepared: str
) -> None:
    salted = pbkdf2_hmac("sha256", prepared.encode(), SALT, 4096)
    stored = sha256(digest(salted, b"Client Key", "sha256")).digest()
    expected = Verifier(4096, SALT, stored, digest(salted, b"Server Key", "sha256"))
    assert make_verifier(password, salt=SALT) == str(expected)


@examples(20)
@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=20))
def test_the_right_password_alone_gets_in(right: str, typed: str) -> None:
    known = Verifier.parse(make_verifier(right, iterations=1))
    client, server = ScramClient(typed), ScramServer(known, mocked=False)
    final = client.final(server.answer_client_first(client.first()))
    same = make_verifier(right, salt=SALT, iterations=1) == make_verifier(typed, salt=SALT, iterations=1)
    if same:
        assert server.answer_client_final(final) == client.expected
    else:
        with pytest.raises(AuthenticationFailed):
            server.answer_client_final(final)


def test_a_mock_looks_like_a_user_whose_password_never_fits() -> None:
    def salt_of(user: str, secret: bytes) -> bytes:
        known = Verifier.make_mock(user, secret=secret, iterations=4096)
        client, server = ScramClient("any"), ScramServer(known, mocked=True)
        first = server.answer_client_first(client.first())
        with pytest.raises(AuthenticationFailed):
            server.answer_client_final(client.final(first))
        return first.split(b",")[1]

    assert salt_of("eve", b"secret") == salt_of("eve", b"secret")
    assert salt_of("eve", b"secret") != salt_of("mallory", b"secret")
    assert salt_of("eve", b"secret") != salt_of("eve", b"other")
    assert len(b64decode(salt_of("eve", b"secret")[2:])) == 16


@in_turn(
    "first",
    [
        b"",
        b"n",
        b"p=tls-server-end-point,,n=,r=abc",
        b"x,,n=,r=abc",
        b"n,a=other,n=,r=abc",
        b"n,,m=future,n=,r=abc",
        b"n,,n=",
        b"n,,n=,r=",
        b"n,,n=,r=a b",
        b"n,,r=abc,n=",
        b"\xff",
    ],
)
def test_a_malformed_first_message_is_a_violation(first: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        ScramServer(Verifier.parse(make_verifier("x", iterations=1)), mocked=False).answer_client_first(first)


def _spoilt(final: bytes, part: bytes, replacement: bytes) -> bytes:
    assert part in final
    return final.replace(part, replacement)


@pytest.mark.parametrize(
    ("part", "replacement"),
    [
        (b"c=biws", b"c=eSws"),
        (b",r=", b",r=other"),
        (b",p=", b",p=!"),
        (b",p=", b",q="),
        (b",p=", b",p=" + b64encode(b"xxx")),
    ],
)
def test_a_malformed_final_message_is_a_violation(part: bytes, replacement: bytes) -> None:
    client = ScramClient("x")
    server = ScramServer(Verifier.parse(make_verifier("x", iterations=1)), mocked=False)
    final = client.final(server.answer_client_first(client.first()))
    with pytest.raises(ProtocolViolation):
        server.answer_client_final(_spoilt(final, part, replacement))


@pytest.mark.parametrize("text", ["", "md5abc", "SCRAM-SHA-256$0:c2FsdA==$YQ==:YQ==", "SCRAM-SHA-1$1:c2E=$YQ==:YQ=="])
def test_what_is_no_verifier_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of them
        Verifier.parse(text)


END_POINT = sha256(b"a certificate").digest()
PLUS = "p=tls-server-end-point"


def bound_server(*, mocked: bool = False) -> ScramServer:
    return ScramServer(Verifier.parse(make_verifier("x", iterations=1)), mocked=mocked, end_point=END_POINT)


def test_a_proof_bound_to_the_certificate_that_was_shown_gets_in() -> None:
    client, server = ScramClient("x", binding=PLUS, channel=END_POINT), bound_server()
    assert server.mechanisms == ("SCRAM-SHA-256-PLUS", "SCRAM-SHA-256")
    final = client.final(server.answer_client_first(client.first(), mechanism=MECHANISM_PLUS))
    assert server.answer_client_final(final) == client.expected


@pytest.mark.parametrize("channel", [b"", sha256(b"another").digest(), END_POINT + b"\0", END_POINT[:-1]])
def test_a_proof_bound_to_another_certificate_does_not(channel: bytes) -> None:
    client, server = ScramClient("x", binding=PLUS, channel=channel), bound_server()
    first = server.answer_client_first(client.first(), mechanism=MECHANISM_PLUS)
    with pytest.raises(ProtocolViolation, match="binding check failed"):
        server.answer_client_final(client.final(first))


def test_a_client_from_which_the_offer_was_hidden_is_refused() -> None:
    with pytest.raises(ProtocolViolation, match="negotiation error") as caught:
        bound_server().answer_client_first(ScramClient("x", binding="y").first())
    assert caught.value.sqlstate == "28000"


@pytest.mark.parametrize(("end_point", "binding"), [(END_POINT, "n"), (None, "n"), (None, "y")])
def test_a_client_that_binds_nothing_gets_in(end_point: bytes | None, binding: str) -> None:
    server = ScramServer(Verifier.parse(make_verifier("x", iterations=1)), mocked=False, end_point=end_point)
    client = ScramClient("x", binding=binding)
    assert server.answer_client_final(client.final(server.answer_client_first(client.first()))) == client.expected


@in_turn(
    ("mechanism", "binding"),
    [
        (MECHANISM_PLUS, "n"),
        (MECHANISM_PLUS, "y"),
        (MECHANISM_PLUS, "p=tls-unique"),
        (MECHANISM_PLUS, "p=tls-exporter"),
        (MECHANISM, PLUS),
        ("SCRAM-SHA-1", "n"),
        ("", "n"),
    ],
)
def test_mechanism_and_binding_must_fit(mechanism: str, binding: str) -> None:
    with pytest.raises(ProtocolViolation):
        bound_server().answer_client_first(
            ScramClient("x", binding=binding, channel=END_POINT).first(), mechanism=mechanism
        )


def test_binding_is_not_offered_where_there_is_nothing_to_bind_to() -> None:
    server = ScramServer(Verifier.parse(make_verifier("x", iterations=1)), mocked=False)
    assert server.mechanisms == ("SCRAM-SHA-256",)
    with pytest.raises(ProtocolViolation):
        server.answer_client_first(ScramClient("x", binding=PLUS).first(), mechanism=MECHANISM_PLUS)


def test_a_mock_goes_to_the_end_with_binding_too_and_fails_there() -> None:
    client, server = ScramClient("x", binding=PLUS, channel=END_POINT), bound_server(mocked=True)
    first = server.answer_client_first(client.first(), mechanism=MECHANISM_PLUS)
    with pytest.raises(AuthenticationFailed):
        server.answer_client_final(client.final(first))
