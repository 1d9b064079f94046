"""The values of statement parameters for the planner, parsed from the shadow's replies.

Guarantee: no setting that affects PostgreSQL's output changes the parsed values. Floating-point numbers and intervals
are read from their binary form. All other types that Keyhole computes with have only one text form.
"""

import json
import struct
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal, InvalidOperation

from planner.values.constant import ArrayValue, ForeignValue, Interval, ParameterValue
from proxy.wire.frontend import Bind

_BOOLEAN = 16  # oids of pg_type, here and below
_INTEGERS = frozenset({20, 21, 23})  # int8, int2, int4
_OID = 26  # oid
_FLOATS = {700: ("float4send", ">f"), 701: ("float8send", ">d")}  # how each is sent, and how that is read
_NUMERIC = 1700  # numeric
_DATE = 1082  # date
_TIMESTAMP = 1114  # timestamp
_ZONED = 1184  # timestamptz
_UUID = 2950  # uuid
_INTERVAL = 1186  # interval
_TEXTS = frozenset({25, 1043})  # text, varchar
_ALMOST_TEXTS = {18: '"char"', 19: "name", 1042: "character"}
_ONE_TEXT = _INTEGERS | _TEXTS | {_BOOLEAN, _NUMERIC, _DATE, _TIMESTAMP, _ZONED, _UUID}
_NUMBERS = _INTEGERS | _FLOATS.keys() | {_NUMERIC, _OID}
_PLAIN = _NUMBERS | _TEXTS | _ALMOST_TEXTS.keys() | {_BOOLEAN, _UUID}  # written in one way, whatever is set
_FIXED = _NUMBERS | {_TIMESTAMP, _ZONED, _BOOLEAN, _DATE, _UUID}  # the same in binary, whatever is set
_ARRAYS = {
    1000: 16,
    1016: 20,
    1005: 21,
    1007: 23,
    1021: 700,
    1022: 701,
    1231: 1700,
    1182: 1082,
    1115: 1114,
    1185: 1184,
    2951: 2950,
    1187: 1186,
    1009: 25,
    1015: 1043,
    1002: 18,
    1003: 19,
    1014: 1042,
}
"""By the oid of an array its members' type, for all types that Keyhole can tell."""


def write_values_query(values: Sequence[tuple[str, int]]) -> str:
    """Return SQL that computes values. Each value is given as an SQL expression with its type's OID.

    The result has one column, with a JSON array of texts and nulls for `read_value`. A statement may have more
    parameters than a row may have columns.
    """
    texts = ", ".join(_write_as_text(f"({expression})", oid) for expression, oid in values)
    return f"SELECT pg_catalog.to_jsonb(ARRAY[{texts}]::pg_catalog.text[])::pg_catalog.text"


def _write_as_text(value: str, oid: int) -> str:
    if oid in _ONE_TEXT:
        return f"pg_catalog.to_jsonb({value}) OPERATOR(pg_catalog.#>>) '{{}}'"
    if oid in _FLOATS:
        return f"pg_catalog.encode(pg_catalog.{_FLOATS[oid][0]}({value}), 'hex')"
    if oid == _INTERVAL:
        return f"pg_catalog.encode(pg_catalog.interval_send({value}), 'hex')"
    if oid in _ARRAYS:
        member = _ARRAYS[oid]
        if member in _FLOATS or member == _INTERVAL:
            return f"pg_catalog.encode(pg_catalog.array_send({value}), 'hex')"
        cast = "::pg_catalog.text[]" if member in _ALMOST_TEXTS else ""
        return f"pg_catalog.to_jsonb({value}{cast})::pg_catalog.text"
    named = f"pg_catalog.format_type(pg_catalog.pg_typeof({value}), NULL)"
    return f"{named} OPERATOR(pg_catalog.||) pg_catalog.chr(10) OPERATOR(pg_catalog.||) {value}::pg_catalog.text"


def are_independent_of_settings(bound: Bind, types: tuple[int, ...]) -> bool:
    """Return True if no setting and no encoding affects how a portal's parameters are parsed."""
    return all(
        raw is None or (oid in _FIXED if bound.get_format(index) else oid in _PLAIN and raw.isascii())
        for index, (raw, oid) in enumerate(zip(bound.values, types, strict=True))
    )


def read_value(text: str | None, oid: int) -> ParameterValue | None:
    """Parse one value from the result of `write_values_query`.

    A value that Keyhole cannot represent (infinity, NaN, years BC) stays text. An array of several dimensions becomes a
    `Foreign`.
    """
    if text is None:
        return None
    if oid in _FLOATS:
        return _read_float(bytes.fromhex(text), oid)
    if oid == _INTERVAL:
        return _read_interval(bytes.fromhex(text))
    if oid in _ARRAYS:
        return _read_array(text, _ARRAYS[oid])
    if oid in _ONE_TEXT:
        return _read_scalar(text, oid)
    declared, _, written = text.partition("\n")
    return ForeignValue(declared, written)


def _read_scalar(text: str, oid: int) -> ParameterValue:
    if oid == _BOOLEAN:
        return text == "true"
    try:
        if oid in _INTEGERS:
            return int(text)
        if oid == _NUMERIC:
            number = Decimal(text)
            return number if number.is_finite() else text
        if oid == _DATE:
            return date.fromisoformat(text)
        if oid in (_TIMESTAMP, _ZONED):
            return datetime.fromisoformat(text)
    except (ValueError, InvalidOperation):
        return text
    return text


def _read_float(sent: bytes, oid: int) -> ParameterValue:
    """Return the shortest decimal number that PostgreSQL parses as this double.

    For a `real`, whose text is not its exact value, return the exact value.
    """
    (number,) = struct.unpack(_FLOATS[oid][1], sent)
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "Infinity" if number > 0 else "-Infinity"
    return Decimal(repr(number)) if oid == 701 else Decimal(number)


def _read_interval(sent: bytes) -> Interval:
    microseconds, days, months = struct.unpack(">qii", sent)
    return Interval(months=months, days=days, microseconds=microseconds)


def _read_array(text: str, member: int) -> ParameterValue:
    sent = member in _FLOATS or member == _INTERVAL
    items = _read_sent_array(bytes.fromhex(text)) if sent else json.loads(text, parse_int=str, parse_float=str)
    if items is None or any(isinstance(item, list) for item in items):
        return ForeignValue("array", text)
    return ArrayValue(tuple(None if item is None else _read_member(item, member) for item in items))


def _read_member(item: object, member: int) -> ParameterValue:
    match item:
        case bool():
            return item
        case bytes():
            return _read_interval(item) if member == _INTERVAL else _read_float(item, member)
        case _ if member in _ALMOST_TEXTS:
            return ForeignValue(_ALMOST_TEXTS[member], str(item))
        case _:
            return _read_scalar(str(item), member)


def _read_sent_array(sent: bytes) -> list[bytes | None] | None:
    """Return the members of an array in PostgreSQL's binary format, or None if it has several dimensions."""
    (dimensions,) = struct.unpack_from(">i", sent)
    if dimensions != 1:
        return [] if dimensions == 0 else None
    (count,) = struct.unpack_from(">i", sent, 12)
    found: list[bytes | None] = []
    at = 20
    for _ in range(count):
        (length,) = struct.unpack_from(">i", sent, at)
        at += 4
        found.append(None if length < 0 else sent[at : at + length])
        at += max(length, 0)
    return found
