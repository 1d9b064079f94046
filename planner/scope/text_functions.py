"""Functions that write, pad, reverse and search texts, in expressions of keys, as PostgreSQL computes them."""

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from planner.parser.tree import write_short
from planner.scope.key_values import NUMBERS, TEXTS, NotExact, Raw, TypedValue, negate, to_text
from planner.values.like import is_unfinished, matches_pattern, normalise_escape
from planner.values.regular_expressions import convert_expression, convert_similar_pattern

_Of = Callable[[exp.Expr], TypedValue]
_LONGEST = 10_000  # characters of a text that is filled up or repeated
_WORDS = re.compile(r"[A-Za-z0-9]+")
_SEPARATORS = " \t\n\r\x0c\x0b!\"#$%&'()*+,\\-./:;<=>?@\\[\\]^_`{|}~"  # initcap's in the tree, where none are written
TEXT_FUNCTIONS = (
    exp.Concat,
    exp.ConcatWs,
    exp.Initcap,
    exp.Pad,
    exp.Repeat,
    exp.Reverse,
    exp.Translate,
    exp.StrPosition,
    exp.StartsWith,
    exp.Like,
    exp.ILike,
    exp.Escape,
    exp.RegexpLike,
    exp.RegexpILike,
    exp.SimilarTo,
)


def write_text(node: exp.Expr, of: _Of) -> TypedValue:
    """Return the value of one of `TEXT_FUNCTIONS`. Raise `NotExact` if it is not known exactly."""
    match node:
        case exp.Concat():
            return TypedValue("text", "".join(_list_texts([of(part) for part in node.expressions], node)))
        case exp.ConcatWs():
            return _join(node, [of(part) for part in node.expressions])
        case exp.Like() | exp.ILike():
            return _match(node, of, escape="\\")
        case exp.Escape() if isinstance(node.this, exp.Like | exp.ILike):
            mark = read_text(of(node.expression), node)
            if mark is None or len(mark) > 1:
                raise NotExact(write_short(node))
            return _match(node.this, of, escape=mark)
        case exp.RegexpLike() | exp.RegexpILike() | exp.SimilarTo():
            return _match_expression(node, of)
        case exp.StrPosition() | exp.StartsWith():
            return _find(node, of)
        case _:
            arguments = [_read_argument(of(one), node) for one in _list_arguments(node)]
            return TypedValue("text", None if None in arguments else _write(node, arguments))


def read_text(found: TypedValue, node: exp.Expr) -> str | None:
    """Return a text, None for NULL. Raise `NotExact` for another type."""
    if found.kind not in TEXTS:
        raise NotExact(write_short(node))
    return None if found.raw is None else str(found.raw)


def _list_texts(found: Sequence[TypedValue], node: exp.Expr) -> list[str]:
    """Return the arguments of concat as texts, without NULL. Unlike a cast, concat writes booleans as `t` and `f`."""
    parts = [one if one.kind == "boolean" else to_text(one, node) for one in found]
    if any(part.kind == "opaque" for part in parts):
        raise NotExact(write_short(node))
    return [
        ("t" if part.raw else "f") if part.kind == "boolean" else str(part.raw)
        for part in parts
        if part.raw is not None
    ]


def _join(node: exp.ConcatWs, found: Sequence[TypedValue]) -> TypedValue:
    between = read_text(found[0], node)
    return TypedValue("text", None if between is None else between.join(_list_texts(found[1:], node)))


def _match(node: exp.Like | exp.ILike, of: _Of, *, escape: str) -> TypedValue:
    text, pattern = read_text(of(node.this), node), read_text(of(node.expression), node)
    made = None if pattern is None else pattern if escape == "\\" else normalise_escape(pattern, escape)
    if pattern is not None and (made is None or is_unfinished(made)):
        raise NotExact(write_short(node))
    if text is None or made is None:
        return TypedValue("boolean", None)
    if isinstance(node, exp.ILike):
        if not (text + made).isascii():
            raise NotExact(write_short(node))
        text, made = text.lower(), made.lower()
    found = TypedValue("boolean", matches_pattern(text, made))
    return negate(found) if node.args.get("negate") else found


def _match_expression(node: exp.RegexpLike | exp.RegexpILike | exp.SimilarTo, of: _Of) -> TypedValue:
    text, written = read_text(of(node.this), node), read_text(of(node.expression), node)
    read = convert_similar_pattern if isinstance(node, exp.SimilarTo) else convert_expression
    made = None if written is None else read(written)
    if written is not None and made is None:
        raise NotExact(write_short(node))
    if text is None or made is None:
        return TypedValue("boolean", None)
    if isinstance(node, exp.RegexpILike):
        if not (text + "".join(made)).isascii():
            raise NotExact(write_short(node))
        text, made = text.lower(), tuple(one.lower() for one in made)
    return TypedValue("boolean", any(matches_pattern(text, one) for one in made))


def _find(node: exp.StrPosition | exp.StartsWith, of: _Of) -> TypedValue:
    word = node.args["substr"] if isinstance(node, exp.StrPosition) else node.expression
    text, looked_for = read_text(of(node.this), node), read_text(of(word), node)
    known = text is not None and looked_for is not None
    if isinstance(node, exp.StartsWith):
        return TypedValue("boolean", str(text).startswith(str(looked_for)) if known else None)
    return TypedValue("integer", str(text).find(str(looked_for)) + 1 if known else None)


def _list_arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Initcap):
        if node.expression and node.expression.this != _SEPARATORS:
            raise NotExact(write_short(node))
        return [node.this]
    names = ("this", "expression", "fill_pattern", "times", "from_", "to")
    return [node.args[name] for name in names if isinstance(node.args.get(name), exp.Expr)]


def _read_argument(found: TypedValue, node: exp.Expr) -> Raw:
    if found.kind not in NUMBERS:
        return read_text(found, node)
    if found.raw is None or found.kind != "integer":
        return found.raw if found.raw is None else _refuse_argument(node)
    return int(str(found.raw))


def _refuse_argument(node: exp.Expr) -> Raw:
    raise NotExact(write_short(node))


def _write(node: exp.Expr, arguments: list[Raw]) -> str:
    match node, arguments:
        case exp.Initcap(), [str() as text] if text.isascii():
            return _WORDS.sub(lambda word: word[0].capitalize(), text)
        case exp.Reverse(), [str() as text]:
            return text[::-1]
        case exp.Repeat(), [str() as text, int() as times] if len(text) * times <= _LONGEST:
            return text * times
        case exp.Translate(), [str() as text, str() as old, str() as new]:
            changed = {ord(one): new[at : at + 1] for at, one in reversed(list(enumerate(old)))}
            return text.translate(changed)
        case exp.Pad(), [str() as text, int() as length, *filled] if length <= _LONGEST:
            fill = str(filled[0]) if filled else " "
            missing = max(length - len(text), 0)
            more = (fill * (missing // len(fill) + 1))[:missing] if fill else ""
            kept = text[: max(length, 0)]
            return more + kept if node.args.get("is_left") else kept + more
        case _:
            raise NotExact(write_short(node))
