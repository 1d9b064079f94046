"""The encoding of refusals and notices as messages for PostgreSQL's clients."""

import codecs

from planner.errors import KeyholeError
from proxy.security.violation import ProtocolViolation
from proxy.wire.backend import Report


def encode_refusal(
    error: KeyholeError, *, codec: codecs.CodecInfo, severity: str = "ERROR", hint_in_message: bool = False
) -> bytes:
    """Return a refusal as an ErrorResponse: SQLSTATE, `KHnnn: message`, DETAIL, HINT and position.

    With `hint_in_message`, the beginning of the hint is added to the message, for clients that show only the message.
    """
    message = f"{error.code}: {error.message}"
    if hint_in_message and error.hint:
        message += _format_hint_ending(error.hint)
    fields = [
        (b"S", severity),
        (b"V", severity),
        (b"C", error.sqlstate),
        (b"M", message),
    ]
    optional = [(b"D", error.detail), (b"H", error.hint), (b"P", error.position and str(error.position))]
    fields += [(letter, text) for letter, text in optional if text]
    return Report("E", tuple((letter, _encode_text(text, codec)) for letter, text in fields)).encode()


def add_hint(report: Report, hint: str, *, codec: codecs.CodecInfo, hint_in_message: bool) -> Report:
    """Return an error of PostgreSQL with this hint, in the client's encoding.

    An error that has a hint stays as it is.
    """
    if report.find_field(b"H"):
        return report
    ending = _encode_text(_format_hint_ending(hint), codec) if hint_in_message else b""
    fields = tuple((letter, value + ending if letter == b"M" else value) for letter, value in report.fields)
    return Report(report.kind, (*fields, (b"H", _encode_text(hint, codec))))


def _format_hint_ending(hint: str) -> str:
    """Return the beginning of a hint, written so that it can end a message."""
    return f". Hint: {hint.split('  or  ')[0]}"


def encode_violation(error: ProtocolViolation) -> bytes:
    """Return the FATAL ErrorResponse that is sent before a connection is closed for a protocol violation."""
    fields = (b"S", b"FATAL"), (b"V", b"FATAL"), (b"C", error.sqlstate.encode()), (b"M", error.message.encode())
    return Report("E", fields).encode()


def encode_fatal(message: str, *, sqlstate: str) -> bytes:
    """Return a FATAL ErrorResponse for a connection that ends without anybody's fault, such as at a shutdown."""
    fields = (b"S", b"FATAL"), (b"V", b"FATAL"), (b"C", sqlstate.encode()), (b"M", message.encode())
    return Report("E", fields).encode()


def encode_notice(sentence: str, *, codec: codecs.CodecInfo) -> bytes:
    """Return a NoticeResponse with this sentence."""
    fields = (b"S", b"NOTICE"), (b"V", b"NOTICE"), (b"C", b"00000"), (b"M", _encode_text(sentence, codec))
    return Report("N", fields).encode()


def _encode_text(text: str, codec: codecs.CodecInfo) -> bytes:
    return codec.encode(text.replace("\0", ""), "replace")[0]
