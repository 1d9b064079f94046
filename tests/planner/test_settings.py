"""Settings: good values give the accuracy, bad ones are refused by name."""

import pytest

from planner.catalog import Defaults
from planner.errors import KeyholeError
from planner.settings import MECHANISMS, SETTINGS, accuracy, check, max_epsilon
from tests.planner.catalogs import DEFAULTS


def test_defaults_are_the_policys() -> None:
    defaults = Defaults(fnr=0.01, fpr=0.02, tolerance="5", min_rows=7, mechanism="tslm")
    found = accuracy({}, defaults)
    assert (found.fnr, found.fpr, found.tolerance, found.min_rows, found.mechanism) == (0.01, 0.02, "5", 7, "tslm")
    assert accuracy({setting.name: None for setting in SETTINGS}, defaults) == found
    assert accuracy({setting.name: "" for setting in SETTINGS}, defaults) == found
    for setting in SETTINGS:
        setting.check(setting.default(defaults))


def test_values_are_read() -> None:
    values = {
        "keyhole.fnr": "0.2",
        "keyhole.fpr": "1e-3",
        "keyhole.tolerance": "25",
        "keyhole.min_rows": "10",
        "keyhole.mechanism": "NLM",
        "keyhole.max_epsilon": "0.5",
    }
    found = accuracy(values, DEFAULTS)
    assert (found.fnr, found.fpr, found.tolerance, found.min_rows, found.mechanism) == (0.2, 0.001, "25", 10, "nlm")
    assert max_epsilon(values) == 0.5
    assert max_epsilon({}) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("keyhole.fnr", "0"),
        ("keyhole.fnr", "0.5"),
        ("keyhole.fnr", "nan"),
        ("keyhole.fpr", "often"),
        ("keyhole.fpr", "-0.1"),
        ("keyhole.tolerance", "ten"),
        ("keyhole.min_rows", "0"),
        ("keyhole.min_rows", "1.5"),
        ("keyhole.mechanism", "magic"),
        ("keyhole.max_epsilon", "0"),
        ("keyhole.max_epsilon", "inf"),
    ],
)
def test_bad_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(KeyholeError, match="KH402") as refusal:
        check(name, value)
    assert name in refusal.value.message
    with pytest.raises(KeyholeError, match="KH402"):
        accuracy({name: value}, DEFAULTS)
    assert refusal.value.hint


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(KeyholeError, match="KH403"):
        check("keyhole.speed", "1")
    with pytest.raises(KeyholeError, match="KH403"):
        accuracy({"keyhole.speed": "1"}, DEFAULTS)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_may_be_named(mechanism: str) -> None:
    assert accuracy({"keyhole.mechanism": mechanism}, DEFAULTS).mechanism == mechanism
