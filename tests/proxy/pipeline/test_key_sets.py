"""Released key sets as the ledger keeps them."""

import json
import zlib
from base64 import b64encode

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.pipeline.key_rows import KeyRows
from proxy.pipeline.messages import Denial, KeySet, from_bytes
from tests.effort import examples
from tests.in_turn import in_turn


def _packed(*, columns: list[str], count: int, places: list[list[int]]) -> bytes:
    """The bytes of an answer of the third format, of keys that all have one text."""
    packed = [b64encode(zlib.compress(np.array(one, dtype="<u4").tobytes())).decode() for one in places]
    document = {"format": 3, "columns": columns, "count": count, "texts": [["x"] for _ in places], "places": packed}
    return json.dumps(document).encode()


@st.composite
def key_sets(draw: st.DrawFn) -> KeySet:
    columns = tuple(f"column{number}" for number in range(draw(st.integers(0, 3))))
    keys = draw(st.lists(st.tuples(*(st.text(max_size=4) for _ in columns)), max_size=5, unique=bool(columns)))
    return KeySet(columns=columns, keys=tuple(keys[: None if columns else 1]))


@examples(100)
@given(key_sets())
def test_what_was_stored_is_read(released: KeySet) -> None:
    assert from_bytes(released.to_bytes()) == released
    assert released.arrays == tuple(
        tuple(key[place] for key in released.keys) for place in range(len(released.columns))
    )


@examples(50)
@given(key_sets())
def test_answers_of_the_first_format_are_read(released: KeySet) -> None:
    older = json.dumps({"format": 1, "columns": released.columns, "keys": released.keys}, ensure_ascii=False)
    assert from_bytes(older.encode()) == released
    assert from_bytes(b'{"format":1,"denied":true}') == Denial() == from_bytes(Denial().to_bytes())


@examples(100)
@given(key_sets().filter(lambda released: bool(released.columns)))
def test_keys_in_little_memory_are_the_same_keys(released: KeySet) -> None:
    texts = tuple(tuple(reversed(["unused", *dict.fromkeys(column)])) for column in released.arrays)
    places = tuple(
        np.array([known.index(text) for text in column], dtype=np.uint32)
        for known, column in zip(texts, released.arrays, strict=True)
    )
    rows = KeyRows(texts, places)
    assert rows == released.keys
    assert list(rows) == list(released.keys)
    assert [rows[place] for place in range(len(rows))] == list(released.keys)
    assert rows[1:4] == released.keys[1:4]
    packed = KeySet(columns=released.columns, keys=rows)
    assert packed.arrays == released.arrays
    stored = packed.to_bytes()
    assert b"unused" not in stored
    again = from_bytes(stored)
    assert isinstance(again, KeySet)
    assert again == released
    assert again.to_bytes() == stored


def test_keys_in_little_memory_differ_where_one_does() -> None:
    rows = KeyRows((("a", "b"),), (np.array([0, 1], dtype=np.uint32),))
    assert rows == (("a",), ("b",))
    assert rows != (("a",), ("a",))
    assert rows != (("a",),)
    assert rows != "ab"


@in_turn(
    ("stored", "why"),
    [
        (b'{"format":4,"columns":["a"],"count":1,"values":[["1"]]}', "unknown format"),
        (b'{"format":2,"columns":["a"],"count":2,"values":[["1"]]}', "lost keys"),
        (_packed(columns=["a"], count=2, places=[[0]]), "lost keys"),
        (_packed(columns=["a"], count=1, places=[[0, 0]]), "lost keys"),
        (_packed(columns=["a"], count=1, places=[[1]]), "text that is not there"),
        (_packed(columns=["a", "b"], count=1, places=[[0]]), "lost columns"),
        (b'{"format":2,"columns":["a","b"],"count":1,"values":[["1"],["2","3"]]}', "longer"),
    ],
)
def test_what_is_no_key_set_is_refused(stored: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_bytes(stored)
