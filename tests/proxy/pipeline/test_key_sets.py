"""Released key sets as the ledger keeps them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.pipeline.messages import Denial, KeySet, from_bytes
from tests.effort import examples


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


@pytest.mark.parametrize(
    ("stored", "why"),
    [
        (b'{"format":3,"columns":["a"],"count":1,"values":[["1"]]}', "unknown format"),
        (b'{"format":2,"columns":["a"],"count":2,"values":[["1"]]}', "lost keys"),
        (b'{"format":2,"columns":["a","b"],"count":1,"values":[["1"],["2","3"]]}', "longer"),
    ],
)
def test_what_is_no_key_set_is_refused(stored: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        from_bytes(stored)
