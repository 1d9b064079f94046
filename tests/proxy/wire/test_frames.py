import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.security.violation import ProtocolViolation
from proxy.wire.frames import Frame, FrameReader, make_frame

frames = st.lists(st.tuples(st.sampled_from("QPBDECS"), st.binary(max_size=40)), max_size=12)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    at = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in pairwise(at)]


def drain(reader: FrameReader) -> list[Frame]:
    found = []
    while (one := reader.read_typed_frame()) is not None:
        found.append(one)
    return found


@given(frames, st.lists(st.integers(min_value=0), max_size=20))
def test_frames_survive_any_cutting_of_the_stream(sent: list[tuple[str, bytes]], cuts: list[int]) -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=False)
    found = []
    for piece in pieces(b"".join(make_frame(kind, data) for kind, data in sent), cuts):
        reader.feed(piece)
        found += drain(reader)
    assert [(chr(one.kind), one.payload) for one in found] == sent
    assert reader.buffered == 0


@given(frames, st.lists(st.integers(min_value=0), max_size=20))
def test_merging_rows_keeps_every_byte_in_order(sent: list[tuple[str, bytes]], cuts: list[int]) -> None:
    data = b"".join(make_frame(kind, payload) for kind, payload in sent)
    reader = FrameReader(limit_bytes=1000, merges_rows=True)
    found = []
    for piece in pieces(data, cuts):
        reader.feed(piece)
        found += drain(reader)
    assert b"".join(one.raw for one in found) == data


@given(frames, st.lists(st.integers(min_value=0), max_size=20))
def test_a_frame_is_said_to_be_there_when_it_can_be_had(sent: list[tuple[str, bytes]], cuts: list[int]) -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=False)
    for piece in pieces(b"".join(make_frame(kind, payload) for kind, payload in sent), cuts):
        reader.feed(piece)
        there = reader.has_frame
        assert (reader.read_typed_frame() is not None) == there


def test_rows_side_by_side_are_one_frame() -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=True)
    reader.feed(make_frame("T", b"x") + make_frame("D", b"1") + make_frame("D", b"2") + make_frame("C", b"x"))
    assert [one.raw for one in drain(reader)] == [
        make_frame("T", b"x"),
        make_frame("D", b"1") + make_frame("D", b"2"),
        make_frame("C", b"x"),
    ]


@pytest.mark.parametrize("length", [b"\0\0\0\x03", b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\0\0\x03\xe9"])
def test_a_length_outside_the_limits_is_refused_before_its_payload_comes(length: bytes) -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=False)
    reader.feed(b"Q" + length)
    with pytest.raises(ProtocolViolation, match="length"):
        reader.read_typed_frame()


@pytest.mark.parametrize("length", [b"\0\0\0\0", b"\0\0\0\x07", b"\xff\xff\xff\xff", b"\0\x01\0\0"])
def test_a_startup_length_outside_the_limits_is_refused(length: bytes) -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=False)
    reader.feed(length)
    with pytest.raises(ProtocolViolation, match="length"):
        reader.read_untyped_packet()


def test_a_type_that_may_not_come_is_refused_at_its_first_byte() -> None:
    reader = FrameReader(limit_bytes=1000, merges_rows=False)
    reader.feed(b"Z")
    with pytest.raises(ProtocolViolation, match="type"):
        reader.read_typed_frame(frozenset(b"Q"))


@pytest.mark.parametrize("rest", [b"", b"Q"])
def test_what_was_handed_out_is_not_held(rest: bytes) -> None:
    sent, reader = make_frame("Q", b"x" * 1_000_000), FrameReader(limit_bytes=1 << 24, merges_rows=False)
    tracemalloc.start()
    try:
        reader.feed(sent + rest)
        assert reader.read_typed_frame() is not None
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
