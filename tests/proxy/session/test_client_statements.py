"""Names that may be the same to PostgreSQL are one: whatever was added is found, in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st

from proxy.session.client_statements import PossibleNames, may_be_same_name

names = st.builds(
    lambda first, rest: first + rest,
    st.sampled_from(("", "n" * 58, "n" * 59, "n" * 63)),
    st.text("né\U0001f512", max_size=5),
)


@given(name=names, encoding=st.sampled_from(("utf-8", "utf-16")), cut=st.booleans())
def test_a_name_is_found_however_it_comes(name: str, encoding: str, cut: bool) -> None:
    """In another encoding of the client only the ASCII letters before the first other one are the same bytes."""
    known = PossibleNames(most=10)
    known.add(name)
    kept = name.encode()[:63] if cut else name.encode().decode().encode()[:60]
    assert name in known
    assert kept in known
    assert may_be_same_name(kept, name)


def test_too_many_names_are_all_names_until_only_some_are_kept() -> None:
    known = PossibleNames(most=3)
    for number in range(3):
        known.add(f"n{number}")
    assert "other" not in known
    known.add("n3")
    assert "other" in known
    known.keep_only({b"n1", b"n2"})
    assert [name in known for name in ("n1", "n2", "n3", "other")] == [True, True, False, False]
    known.keep_only({b"n1", b"n3"})
    assert [name in known for name in ("n1", "n2", "n3")] == [True, False, False]
