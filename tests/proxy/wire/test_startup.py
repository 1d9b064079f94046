import pytest

from planner.errors import KeyholeError
from planner.statements.allow_list import HARMLESS_SETTINGS
from proxy.wire.encodings import CODECS, find_codec
from proxy.wire.frontend import NEWEST_MINOR, Startup
from proxy.wire.startup import read_login
from tests.in_turn import in_turn


def startup(**parameters: str) -> Startup:
    return Startup((3, 0), tuple((name.encode(), value.encode()) for name, value in parameters.items()))


def test_the_database_is_the_users_unless_named() -> None:
    assert read_login(startup(user="ada")).database == "ada"
    assert read_login(startup(user="ada", database="retail")).database == "retail"


@pytest.mark.parametrize(("asked", "spoken"), [(0, 0), (NEWEST_MINOR, NEWEST_MINOR), (NEWEST_MINOR + 7, NEWEST_MINOR)])
def test_the_minor_version_is_one_that_both_sides_speak(asked: int, spoken: int) -> None:
    assert read_login(Startup((3, asked), ((b"user", b"ada"),))).minor_version == spoken


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ("-c keyhole.fnr=0.01", [("keyhole.fnr", "0.01")]),
        ("-ckeyhole.fnr=0.01  --search-path=public", [("keyhole.fnr", "0.01"), ("search_path", "public")]),
        (r"-c keyhole.tolerance=count=25,\ age=2", [("keyhole.tolerance", "count=25, age=2")]),
        ("", []),
    ],
)
def test_options_are_settings(options: str, settings: list[tuple[str, str]]) -> None:
    assert list(read_login(startup(user="ada", options=options)).settings) == settings


@pytest.mark.parametrize(
    "parameters",
    [
        {"options": "-c role=postgres"},
        {"options": "-c session_preload_libraries=x"},
        {"options": "--standard_conforming_strings=off"},
        {"options": "-d 5"},
        {"options": "-c"},
        {"options": "-c keyhole.fnr"},
        {"local_preload_libraries": "x"},
        {"replication": "database"},
    ],
)
def test_what_is_not_on_the_list_is_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(KeyholeError, match="KH404"):
        read_login(startup(user="ada", **parameters))


@in_turn("name", sorted(HARMLESS_SETTINGS))
def test_what_set_allows_may_be_given_at_connection_start(name: str) -> None:
    assert read_login(startup(user="ada", **{name: "on"})).settings == ((name, "on"),)
    assert read_login(startup(user="ada", options=f"-c {name.replace(' ', '_')}=on".replace("time_zone", "timezone")))


def test_a_login_needs_a_user() -> None:
    with pytest.raises(KeyholeError, match="KH405"):
        read_login(startup(database="retail"))


def test_names_are_case_insensitive_as_postgresql_has_them() -> None:
    assert read_login(startup(user="ada", DateStyle="ISO", TimeZone="UTC")).settings == (
        ("DateStyle", "ISO"),
        ("TimeZone", "UTC"),
    )


@in_turn("name", sorted(CODECS))
def test_ascii_is_ascii_in_every_encoding_read(name: str) -> None:
    found = find_codec(name)
    assert found is not None
    ascii_text = bytes(range(128))
    assert found.decode(ascii_text)[0] == ascii_text.decode("ascii")


def test_an_encoding_where_a_byte_may_be_half_a_character_is_not_read() -> None:
    assert find_codec("SJIS") is None
    assert find_codec("BIG5") is None
