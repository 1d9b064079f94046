"""A parameter's value as Keyhole's planner takes it, from what the shadow says it is."""

from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from planner.catalog.model import Value
from planner.values.model import nearest_real
from proxy.wire.frontend import Bind

_BOOLEAN = 16  # oids of pg_type, here and below
_INTEGERS = frozenset({20, 21, 23, 26})  # int8, int2, int4, oid
_NUMBERS = frozenset({700, 701, 1700})  # float4, float8, numeric
_REAL = 700  # float4
_DATE = 1082  # date
_TIMESTAMPS = frozenset({1114, 1184})  # timestamp, timestamptz
_UUID = 2950  # uuid
_TEXTS = frozenset({18, 19, 25, 1042, 1043})  # "char", name, text, bpchar, varchar
_PLAIN = _INTEGERS | _NUMBERS | _TEXTS | {_BOOLEAN, _UUID}  # written in one way, whatever is set
_FIXED = _INTEGERS | _NUMBERS | _TIMESTAMPS | {_BOOLEAN, _DATE, _UUID}  # the same in binary, whatever is set


def values_sql(count: int) -> str:
    """SQL that turns `count` parameters of any types into one column: JSON, an array of canonical texts and nulls.

    One column, since a statement has more parameters than a row may have columns; canonical, whatever the session's
    settings are.
    """
    texts = ", ".join(f"pg_catalog.to_jsonb(${number}) OPERATOR(pg_catalog.#>>) '{{}}'" for number in _to(count))
    return f"SELECT pg_catalog.to_jsonb(ARRAY[{texts}])::pg_catalog.text"


def all_mean_the_same(bound: Bind, types: tuple[int, ...]) -> bool:
    """Whether no setting, and no encoding, changes what the values of a portal mean."""
    return all(
        raw is None or (oid in _FIXED if bound.format_of(index) else oid in _PLAIN and raw.isascii())
        for index, (raw, oid) in enumerate(zip(bound.values, types, strict=True))
    )


def value(text: str | None, oid: int) -> Value | None:
    """The value behind canonical text of that type; what has no counterpart (infinity, NaN, years BC) stays text."""
    if text is None:
        return None
    if oid == _BOOLEAN:
        return text == "true"
    try:
        if oid in _INTEGERS:
            return int(text)
        if oid in _NUMBERS:
            number = Decimal(text)
            if oid == _REAL and number.is_finite():  # its shortest text is not its value
                number = nearest_real(Fraction(number)) or number
            return number if number.is_finite() else text
        if oid == _DATE:
            return date.fromisoformat(text)
        if oid in _TIMESTAMPS:
            # a timestamp with time zone becomes the session's local time, as PostgreSQL's own cast does
            return datetime.fromisoformat(text).replace(tzinfo=None)
    except (ValueError, InvalidOperation):
        return text
    return text


def _to(count: int) -> range:
    return range(1, count + 1)
