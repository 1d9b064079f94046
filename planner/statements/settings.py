"""The session settings under `keyhole.`: their meanings and defaults, and the accuracy that they ask for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from mechanisms.arc.one_look import Arc
from mechanisms.registry import DEFAULT, INFORMED, LIMITED
from mechanisms.registry import MECHANISMS as REGISTERED
from planner.catalog.catalog import NUMBERS, Catalog, Defaults
from planner.catalog.tolerance import parse_tolerances
from planner.errors import KeyholeError
from planner.question.public_knowledge import parse_public_knowledge
from planner.question.question import Accuracy
from planner.statements.statement_refusals import (
    refuse_long_value,
    refuse_mechanism,
    refuse_missing_limit,
    refuse_unknown_setting,
    refuse_useless_setting,
    refuse_value,
)

HINT_IN_MESSAGE = "keyhole.hint_in_message"
MECHANISMS = tuple(REGISTERED)
GUARDS = ("add", "refuse")
AUTOMATIC, GRADUAL = "auto", "gradual"
TESTS = (AUTOMATIC, GRADUAL, Arc.name)
"""The values of `keyhole.test`."""
LEAST_RATE = Decimal("1e-100")  # below it the mechanisms' arithmetic comes to its own end
MOST_CHARACTERS = 10_000  # of a value: reading one takes time with its length, also squared


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: its full name, its meaning, and the policy's default as text ("" for none).

    If it `begins_empty`, a session begins without a value, so that a value set by the analyst differs from the default.
    """

    name: str
    meaning: str
    default: Callable[[Defaults], str]
    check: Callable[[str], None]
    begins_empty: bool = False

    def find_initial(self, defaults: Defaults) -> str:
        """Return the value with which a session begins."""
        return "" if self.begins_empty else self.default(defaults)


def _make_rate_check(name: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        number = _parse_number(value)
        if number is None or number < LEAST_RATE or float(number) >= 0.5:
            raise refuse_value(name, value, wanted="a rate from 1e-100 to below 0.5", example="0.05")

    return check


def _parse_number(value: str) -> Decimal | None:
    try:
        number = Decimal(value.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _make_whole_check(name: str, example: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        number = _parse_number(value)
        if number is None or number != number.to_integral_value() or not 1 <= number <= 10**9:
            raise refuse_value(name, value, wanted="a whole number of at least 1", example=example)

    return check


def _allow_empty(check: Callable[[str], None]) -> Callable[[str], None]:
    return lambda value: check(value) if value.strip() else None


def _check_mechanism(value: str) -> None:
    if value.strip().lower() not in MECHANISMS:
        raise refuse_value("keyhole.mechanism", value, wanted=f"one of {', '.join(MECHANISMS)}", example=f"'{DEFAULT}'")


def _check_allowed(mechanism: str, defaults: Defaults) -> None:
    if mechanism not in defaults.mechanisms:
        raise refuse_mechanism(mechanism, allowed=defaults.mechanisms, default=defaults.mechanism)


def _check_max_epsilon(value: str) -> None:
    number = _parse_number(value)
    if value.strip() and (number is None or not 0 < float(number) <= 1000):
        raise refuse_value("keyhole.max_epsilon", value, wanted="a positive number, or empty for no cap", example="0.5")


def _check_min_base(value: str) -> None:
    number = _parse_number(value)
    exponent = -19 if number is None else number.as_tuple().exponent
    if value.strip() and (number is None or number <= 0 or number.adjusted() > 18 or int(exponent) < -18):
        raise refuse_value("keyhole.min_base", value, wanted="a positive number, or empty for none", example="500")


def _check_tolerance(value: str) -> None:
    parse_tolerances(value)


def _check_public_knowledge(value: str) -> None:
    parse_public_knowledge(value)


def _check_numbers(value: str) -> None:
    if value.strip().lower() not in NUMBERS:
        raise refuse_value("keyhole.numbers", value, wanted=f"one of {', '.join(NUMBERS)}", example="'threshold'")


def _check_guard(value: str) -> None:
    if value.strip().lower() not in GUARDS:
        raise refuse_value("keyhole.guard", value, wanted="add or refuse", example="'refuse'")


def _check_test(value: str) -> None:
    if value.strip().lower() not in TESTS:
        raise refuse_value("keyhole.test", value, wanted=f"one of {', '.join(TESTS)}", example="'gradual'")


def _make_switch_check(name: str, example: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value.strip().lower() not in ("on", "off"):
            raise refuse_value(name, value, wanted="on or off", example=example)

    return check


SETTINGS: tuple[Setting, ...] = (
    Setting(
        "keyhole.fnr",
        "at most this share of groups that truly qualify may be missed, per group",
        lambda defaults: repr(defaults.fnr),
        _make_rate_check("keyhole.fnr"),
    ),
    Setting(
        "keyhole.fpr",
        "at most this share of groups that stay below even with the tolerance may be returned, per group",
        lambda defaults: repr(defaults.fpr),
        _make_rate_check("keyhole.fpr"),
    ),
    Setting(
        "keyhole.tolerance",
        "how far beyond its threshold an atom may err: '10%', '25', or 'count=25, age=2'",
        lambda defaults: defaults.tolerance,
        _check_tolerance,
    ),
    Setting(
        "keyhole.min_rows",
        "the group size for which the tolerance of an average is meant",
        lambda defaults: str(defaults.min_rows),
        _allow_empty(_make_whole_check("keyhole.min_rows", "50")),
        begins_empty=True,
    ),
    Setting(
        "keyhole.min_base",
        "the least size of other groups, as an earlier month or a total, to compare a group with; empty for none",
        lambda _: "",
        _check_min_base,
    ),
    Setting(
        "keyhole.guard",
        "what becomes of an atom that groups without values would pass: add a count beside it, or refuse the question",
        lambda defaults: defaults.guard,
        _check_guard,
    ),
    Setting(
        "keyhole.mechanism",
        f"how keys are decided: {', '.join(MECHANISMS)}",
        lambda defaults: defaults.mechanism,
        _check_mechanism,
    ),
    Setting(
        "keyhole.test",
        "the tests of mechanism progressive: gradual, whose noise later questions share; arc, of which more fit where "
        "a unit is in many groups; or auto, whichever leaves more questions",
        lambda _: AUTOMATIC,
        _check_test,
    ),
    Setting(
        "keyhole.most_positives",
        "the most groups that a sparse vector returns; empty for the other mechanisms",
        lambda _: "",
        _allow_empty(_make_whole_check("keyhole.most_positives", "3")),
    ),
    Setting(
        "keyhole.public_knowledge",
        "for mim: how many groups fail anyway, and by how much: '240 far by 90, 28 near by 75'; empty for nothing",
        lambda _: "",
        _check_public_knowledge,
    ),
    Setting(
        "keyhole.max_epsilon",
        "the most that one question may cost this session; empty for no cap of its own",
        lambda _: "",
        _check_max_epsilon,
    ),
    Setting(
        "keyhole.reuse",
        "whether noise that earlier questions left is read again: on costs everybody less, off draws new noise",
        lambda _: "on",
        _make_switch_check("keyhole.reuse", "off"),
    ),
    Setting(
        "keyhole.numbers",
        "what stands where a question shows how large a group is: null, the threshold that it passed, its bands' lower "
        "edge, or a refusal",
        lambda defaults: defaults.numbers,
        _check_numbers,
    ),
)
SESSION_SETTINGS: tuple[Setting, ...] = (
    Setting(
        HINT_IN_MESSAGE,
        "whether the message of a refusal ends with its hint, for clients that show nothing else",
        lambda _: "off",
        _make_switch_check(HINT_IN_MESSAGE, "on"),
    ),
)
"""Those of the PostgreSQL endpoint's sessions alone: no question means anything else by them."""
ALL_SETTINGS = SETTINGS + SESSION_SETTINGS
_BY_NAME = {setting.name: setting for setting in ALL_SETTINGS}


def find_setting(name: str) -> Setting:
    """Return the setting of that full name, in any case. Raise KH403 if there is none."""
    found = _BY_NAME.get(name.lower())
    if found is None:
        raise refuse_unknown_setting(name, (known.name for known in SETTINGS))
    return found


def check_setting_value(name: str, value: str | None, defaults: Defaults) -> None:
    """Raise KH402 for a bad value of a setting, and KH403 for an unknown setting. None means the default.

    A mechanism that the policy does not allow is a bad value.
    """
    _check_value(name, value)
    if value is not None and name.lower() == "keyhole.mechanism":
        _check_allowed(value.strip().lower(), defaults)


def _check_value(name: str, value: str | None) -> None:
    found = find_setting(name)
    if value is None:
        return
    if len(value) > MOST_CHARACTERS:
        raise refuse_long_value(name, most_characters=MOST_CHARACTERS)
    found.check(value)


def _read_value(values: Mapping[str, str | None], name: str, defaults: Defaults) -> str:
    value = values.get(name)
    # an unset custom setting reads as empty text in PostgreSQL once it was set and rolled back
    return find_setting(name).default(defaults) if value is None or value == "" else value


def read_accuracy(values: Mapping[str, str | None], defaults: Defaults) -> Accuracy:
    """Return the accuracy that a session's settings ask for. Unset, empty and None mean the policy's default.

    A tolerance for some aggregates leaves the policy's tolerance for the others. A setting that the mechanism cannot
    use is refused, and so is a sparse vector without its limit. Raise KH402 for a bad value, KH403 for an unknown
    name.
    """
    for name, value in values.items():
        # parameters are checked with the stored question that they belong to
        if value != "" and not name.startswith("keyhole.param."):
            check_setting_value(name, value, defaults)
    tolerance = _read_value(values, "keyhole.tolerance", defaults)
    if parse_tolerances(tolerance).default_tolerance is None:
        usual = parse_tolerances(defaults.tolerance).default_tolerance
        if usual is not None:
            tolerance = f"{usual.text}, {tolerance}"
    mechanism = _read_value(values, "keyhole.mechanism", defaults).strip().lower()
    return Accuracy(
        fnr=float(_read_value(values, "keyhole.fnr", defaults)),
        fpr=float(_read_value(values, "keyhole.fpr", defaults)),
        tolerance=tolerance,
        min_rows=int(Decimal(_read_value(values, "keyhole.min_rows", defaults))),
        mechanism=mechanism,
        most_positives=_read_most_positives(
            _read_value(values, "keyhole.most_positives", defaults), mechanism, defaults
        ),
        public_knowledge=_read_public_knowledge(
            _read_value(values, "keyhole.public_knowledge", defaults), mechanism, defaults
        ),
        allows_reuse=allows_reuse(values),
        allowed_mechanisms=defaults.mechanisms,
        is_min_rows_set=bool(values.get("keyhole.min_rows")),
        adds_guards=_read_value(values, "keyhole.guard", defaults).strip().lower() == "add",
        min_base=_parse_number(_read_value(values, "keyhole.min_base", defaults)),
    )


def read_test(values: Mapping[str, str | None], defaults: Defaults) -> str:
    """Return the session's choice of tests, one of `TESTS`. Raise KH402."""
    value = _read_value(values, "keyhole.test", defaults)
    _check_test(value)
    return value.strip().lower()


def read_numbers(values: Mapping[str, str | None], defaults: Defaults) -> str:
    """Return the session's choice for columns that ask for numbers, one of `NUMBERS`.

    Raise KH402 for any other value.
    """
    value = _read_value(values, "keyhole.numbers", defaults)
    _check_value("keyhole.numbers", value)
    return value.strip().lower()


def read_catalog(catalog: Catalog, values: Mapping[str, str | None]) -> Catalog:
    """Return the catalog with the session's settings applied. Statements are read with it.

    Raise KH402 for a bad value.
    """
    return catalog.replace_numbers(read_numbers(values, catalog.defaults))


def _read_most_positives(text: str, mechanism: str, defaults: Defaults) -> int | None:
    limited = mechanism in LIMITED
    if limited and not text.strip():
        raise refuse_missing_limit(mechanism)
    if text.strip() and not limited:
        raise _refuse_useless("keyhole.most_positives", mechanism, "svt_generalised", users=LIMITED, defaults=defaults)
    return int(Decimal(text)) if text.strip() else None


def _read_public_knowledge(text: str, mechanism: str, defaults: Defaults) -> str:
    if text.strip() and mechanism not in INFORMED:
        raise _refuse_useless("keyhole.public_knowledge", mechanism, "mim", users=INFORMED, defaults=defaults)
    return text.strip()


def _refuse_useless(
    name: str, mechanism: str, instead: str, *, users: frozenset[str], defaults: Defaults
) -> KeyholeError:
    allowed = instead if instead in defaults.mechanisms else None
    return refuse_useless_setting(name, mechanism, users=users, instead=allowed)


def read_max_epsilon(values: Mapping[str, str | None]) -> float | None:
    """Return the session's own cap on one question's worst-case loss. Return None if it set none.

    Raise KH402 for a bad value.
    """
    value = values.get("keyhole.max_epsilon")
    if value is None or not value.strip():
        return None
    _check_value("keyhole.max_epsilon", value)
    return float(value)


def allows_reuse(values: Mapping[str, str | None]) -> bool:
    """Return True if the session's questions may be decided on noise of earlier ones. Raise KH402 for a bad value."""
    value = values.get("keyhole.reuse") or "on"
    _check_value("keyhole.reuse", value)
    return value.strip().lower() == "on"
