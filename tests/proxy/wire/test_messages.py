import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.security.violation import ProtocolViolation
from proxy.wire import backend, frontend
from proxy.wire.backend import BackendMessage
from proxy.wire.frames import Frame, FrameReader
from proxy.wire.frontend import FrontendMessage

text = st.binary(max_size=20).map(lambda raw: raw.replace(b"\0", b""))
some = text.filter(bool)
oids = st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple)
formats = st.lists(st.integers(0, 1), max_size=4).map(tuple)
values = st.lists(st.none() | st.binary(max_size=20), max_size=5).map(tuple)
small = st.integers(-(2**15), 2**15 - 1)
large = st.integers(-(2**31), 2**31 - 1)
oid = st.integers(0, 2**32 - 1)
target = st.sampled_from([b"S", b"P"])

FRONTEND: st.SearchStrategy[FrontendMessage] = st.one_of(
    st.builds(frontend.Credential, st.binary(max_size=50)),
    st.builds(frontend.Query, text),
    st.builds(frontend.Parse, text, text, oids),
    st.builds(frontend.Bind, text, text, formats, values, formats),
    st.builds(frontend.Describe, target, text),
    st.builds(frontend.Execute, text, large),
    st.builds(frontend.Close, target, text),
    st.builds(frontend.Sync),
    st.builds(frontend.Flush),
    st.builds(frontend.Terminate),
    st.builds(frontend.FunctionCall, st.binary(max_size=50)),
    st.builds(frontend.Copy, st.sampled_from("dcf"), st.binary(max_size=50)),
)
UNTYPED = st.one_of(
    st.builds(
        frontend.Startup,
        st.tuples(st.just(3), st.integers(0, 9999)),
        st.lists(st.tuples(some, text), max_size=5).map(tuple),
    ),
    st.builds(frontend.EncryptionRequest, is_gss=st.booleans()),
    st.builds(frontend.Cancel, oid, st.binary(min_size=4, max_size=256)),
)
fields = st.builds(backend.ColumnField, text, oid, small, oid, small, large, st.integers(0, 1))
reports = st.lists(st.tuples(st.sampled_from([b"S", b"C", b"M", b"P"]), text), max_size=5).map(tuple)
BACKEND: st.SearchStrategy[BackendMessage] = st.one_of(
    st.builds(backend.Authentication, large, st.binary(max_size=50)),
    st.builds(backend.NegotiateProtocolVersion, large, st.lists(text, max_size=3).map(tuple)),
    st.builds(backend.ParameterStatus, text, text),
    st.builds(backend.BackendKeyData, oid, st.binary(min_size=4, max_size=32)),
    st.builds(backend.ReadyForQuery, st.sampled_from([b"I", b"T", b"E"])),
    st.builds(backend.Report, st.sampled_from("EN"), reports),
    st.builds(backend.RowDescription, st.lists(fields, max_size=4).map(tuple)),
    st.builds(backend.DataRow, values),
    st.builds(backend.CommandComplete, text),
    st.builds(backend.ParameterDescription, oids),
    st.builds(backend.EmptyMessage, st.sampled_from("123nsI")),
)


def only_frame(raw: bytes) -> Frame:
    reader = FrameReader(limit_bytes=1 << 20, merges_rows=False)
    reader.feed(raw)
    received = reader.read_typed_frame()
    assert received is not None
    assert reader.buffered == 0
    return received


@given(FRONTEND)
def test_a_client_message_is_what_its_bytes_say(message: FrontendMessage) -> None:
    assert frontend.decode(only_frame(message.encode())) == message


@given(BACKEND)
def test_a_server_message_is_what_its_bytes_say(message: BackendMessage) -> None:
    assert backend.decode(only_frame(message.encode())) == message


@given(UNTYPED)
def test_a_first_packet_is_what_its_bytes_say(
    message: frontend.Startup | frontend.EncryptionRequest | frontend.Cancel,
) -> None:
    reader = FrameReader(limit_bytes=10_000, merges_rows=False)
    reader.feed(message.encode())
    payload = reader.read_untyped_packet()
    assert payload is not None
    assert frontend.decode_untyped(payload) == message


@given(st.sampled_from(b"pQPBDECSHXFdcfZ!"), st.binary(max_size=60))
def test_any_payload_is_a_message_or_a_violation(kind: int, payload: bytes) -> None:
    try:
        message = frontend.decode(Frame(kind, b"\0" * 5 + payload))
    except ProtocolViolation:
        return
    assert message.encode()[5:] == payload


@given(st.binary(max_size=60))
def test_any_first_packet_is_a_message_or_a_violation(payload: bytes) -> None:
    try:
        message = frontend.decode_untyped(payload)
    except ProtocolViolation:
        return
    assert message.encode()[4:] == payload


@given(FRONTEND, st.data())
def test_a_shortened_message_is_a_violation_or_another_message(message: FrontendMessage, data: st.DataObject) -> None:
    payload = message.encode()[5:]
    shorter = payload[: data.draw(st.integers(0, len(payload)))]
    try:
        found = frontend.decode(Frame(message.encode()[0], b"\0" * 5 + shorter))
    except ProtocolViolation:
        return
    assert found.encode()[5:] == shorter


@pytest.mark.parametrize("major", [1, 2, 4, 1234])
def test_another_major_version_is_refused(major: int) -> None:
    with pytest.raises(ProtocolViolation, match="unsupported frontend protocol") as caught:
        frontend.decode_untyped((major << 16).to_bytes(4, "big") + b"\0")
    assert caught.value.sqlstate == "0A000"
