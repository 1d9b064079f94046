"""Settings: good values give the accuracy, bad ones are refused by name."""

from dataclasses import replace
from decimal import Decimal

import pytest

from mechanisms.registry import LIMITED
from planner.catalog.catalog import Defaults
from planner.errors import KeyholeError
from planner.statements.settings import MECHANISMS, SETTINGS, check_setting_value, read_accuracy, read_max_epsilon
from tests.in_turn import in_turn
from tests.worlds.retail import DEFAULTS, EVERY_MECHANISM


def test_defaults_are_the_policys() -> None:
    defaults = Defaults(fnr=0.01, fpr=0.02, tolerance="5", min_rows=7, mechanism="tslm")
    found = read_accuracy({}, defaults)
    assert (found.fnr, found.fpr, found.tolerance, found.min_rows, found.mechanism) == (0.01, 0.02, "5", 7, "tslm")
    assert read_accuracy({setting.name: None for setting in SETTINGS}, defaults) == found
    assert read_accuracy({setting.name: "" for setting in SETTINGS}, defaults) == found
    assert (found.most_positives, found.public_knowledge) == (None, "")
    for setting in SETTINGS:
        setting.check(setting.default(defaults))


def test_values_are_read() -> None:
    values = {
        "keyhole.fnr": "0.2",
        "keyhole.fpr": "1e-3",
        "keyhole.tolerance": "25",
        "keyhole.min_rows": "10",
        "keyhole.min_base": "2.50",
        "keyhole.mechanism": "NLM",
        "keyhole.max_epsilon": "0.5",
    }
    found = read_accuracy(values, EVERY_MECHANISM)
    assert (found.fnr, found.fpr, found.tolerance, found.min_rows, found.mechanism) == (0.2, 0.001, "25", 10, "nlm")
    assert (found.min_base, read_accuracy({}, EVERY_MECHANISM).min_base) == (Decimal("2.5"), None)
    assert read_max_epsilon(values) == 0.5
    assert read_max_epsilon({}) is None


@in_turn(
    ("name", "value"),
    [
        ("keyhole.fnr", "0"),
        ("keyhole.fnr", "0.5"),
        ("keyhole.fnr", "5e-324"),
        ("keyhole.fnr", "1e-400"),
        ("keyhole.fnr", "0.49999999999999999999"),
        ("keyhole.fpr", "9.9e-101"),
        ("keyhole.fnr", "nan"),
        ("keyhole.fpr", "often"),
        ("keyhole.fpr", "-0.1"),
        ("keyhole.tolerance", "ten"),
        ("keyhole.min_rows", "0"),
        ("keyhole.min_rows", "1.5"),
        ("keyhole.min_base", "0"),
        ("keyhole.min_base", "-500"),
        ("keyhole.min_base", "many"),
        ("keyhole.min_base", "1e19"),
        ("keyhole.min_base", "5000.0000000000000000001"),
        ("keyhole.min_base", "1e-400"),
        ("keyhole.mechanism", "magic"),
        ("keyhole.max_epsilon", "0"),
        ("keyhole.max_epsilon", "inf"),
        ("keyhole.most_positives", "0"),
        ("keyhole.most_positives", "2.5"),
        ("keyhole.most_positives", "few"),
        ("keyhole.public_knowledge", "240"),
        ("keyhole.public_knowledge", "240 far by 90"),
        ("keyhole.public_knowledge", "240 far by 90, 28 near by 91"),
        ("keyhole.public_knowledge", "240 far by 90, 28 near by 0"),
        ("keyhole.public_knowledge", "-1 far by 90, 28 near by 75"),
        ("keyhole.public_knowledge", "1.5 far by 90, 28 near by 75"),
        ("keyhole.public_knowledge", "1 far by 90, 28 near by 1e3"),
        ("keyhole.public_knowledge", "1 far by 90, 2 near by 75;"),
        ("keyhole.public_knowledge", "1 far by 9, 2 near by 7; 3 far by 9, 4 near by 7"),
        ("keyhole.public_knowledge", "count: 1 far by 9, 2 near by 7; COUNT : 3 far by 9, 4 near by 7"),
    ],
)
def test_bad_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(KeyholeError, match="KH402") as refusal:
        check_setting_value(name, value, DEFAULTS)
    assert name in refusal.value.message
    with pytest.raises(KeyholeError, match="KH402"):
        read_accuracy({name: value}, DEFAULTS)
    assert refusal.value.hint


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(KeyholeError, match="KH403"):
        check_setting_value("keyhole.speed", "1", DEFAULTS)
    with pytest.raises(KeyholeError, match="KH403"):
        read_accuracy({"keyhole.speed": "1"}, DEFAULTS)


@in_turn("mechanism", MECHANISMS)
def test_every_mechanism_that_the_policy_allows_may_be_named(mechanism: str) -> None:
    limit = "3" if mechanism in LIMITED else None
    named = {"keyhole.mechanism": mechanism, "keyhole.most_positives": limit}
    found = read_accuracy(named, EVERY_MECHANISM)
    assert (found.mechanism, found.most_positives) == (mechanism, 3 if limit else None)
    others = replace(EVERY_MECHANISM, mechanisms=tuple(other for other in MECHANISMS if other != mechanism))
    for refuse in (
        lambda: read_accuracy(named, others),
        lambda: check_setting_value("keyhole.mechanism", mechanism.upper(), others),
    ):
        with pytest.raises(KeyholeError, match=f"KH402: the policy does not allow mechanism {mechanism}$"):
            refuse()


@pytest.mark.parametrize("mechanism", ["nlm", "dppwlm", "probe_gradual", "probe_ent", "svt", "svt_generalised"])
def test_what_lacks_a_bound_is_not_allowed_by_default(mechanism: str) -> None:
    with pytest.raises(KeyholeError, match="KH402") as refusal:
        check_setting_value("keyhole.mechanism", mechanism, DEFAULTS)
    assert refusal.value.hint == "SET keyhole.mechanism = 'keyhole';"


def test_hints_name_no_mechanism_that_is_not_allowed() -> None:
    few = replace(DEFAULTS, mechanisms=("progressive", "keyhole"))
    for name, value in (("keyhole.most_positives", "3"), ("keyhole.public_knowledge", "24 far by 90, 28 near by 75")):
        with pytest.raises(KeyholeError, match="has no use for it") as refusal:
            read_accuracy({name: value}, few)
        assert refusal.value.hint == f"RESET {name};"
