"""Refusals of a policy: the file, the line, the dotted key, its value, the fault and the fix."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Self, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from planner.catalog.fault import Fault, suggest_nearest_name
from planner.errors import KeyholeError
from planner.policy.toml_lines import find_key_lines, find_line

BLANK = "FILL IN"
"""Stands in a starter policy for what only its owner can say."""

_SECRET_KEYS = frozenset({"url", "token", "password", "token_sha256"})
_MOST_FAULTS = 30  # that one refusal names: a page
_MOST_WRITTEN_OUT = 3  # keys of a section that a hint writes out: of more it names none, and the page does
_LONGEST_VALUE = 80  # characters of a value that a refusal repeats: it stays one line
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class PolicyText:
    """The text of a policy, for error messages. Values under secret keys are never shown.

    `directory` is the folder of the file when it was read; a link to it may have changed since.
    """

    path: Path = Path("keyhole.toml")
    directory: Path = field(default_factory=Path.cwd)
    raw: Mapping[str, object] = field(default_factory=dict, repr=False)
    lines: Mapping[tuple[str, ...], int] = field(default_factory=dict)

    @classmethod
    def from_toml(cls, text: str, *, path: Path, raw: Mapping[str, object]) -> Self:
        """Return the places and values of a TOML text that has been parsed to `raw`."""
        return cls(path=path, directory=path.resolve().parent, raw=raw, lines=find_key_lines(text))

    def refuse(self, place: tuple[str, ...], fault: Fault, *, detail: str | None = None) -> KeyholeError:
        """Return the error for a fault at a dotted key."""
        return KeyholeError(
            fault.code, f"{self.describe_place(place)}: {fault.problem}", detail=detail, hint=fault.hint
        )

    def describe_place(self, place: tuple[str, ...]) -> str:
        """Return file, line, dotted key and value of a place."""
        line = self.find_line(place)
        shown = self._show_value(place)
        file = self.path.name if line is None else f"{self.path.name}, line {line}"
        return f"{file}: {write_dotted_key(place)}" + ("" if shown is None else f" = {shown}")

    def find_line(self, place: tuple[str, ...]) -> int | None:
        """Return the line of a place in the policy, or of the nearest section that contains the place.

        Return None if there is neither.
        """
        return find_line(place, self.lines)

    def _show_value(self, place: tuple[str, ...]) -> str | None:
        node: object = self.raw
        for name in place:
            if not isinstance(node, dict) or name not in node:
                return None
            node = node[name]
        if isinstance(node, dict) or _SECRET_KEYS.intersection(place[-1:]):
            return None
        shown = _write_toml(node)
        return shown if len(shown) <= _LONGEST_VALUE else f"{shown[:_LONGEST_VALUE]}..."


def write_dotted_key(place: tuple[str, ...]) -> str:
    """Return a path as a dotted TOML key."""
    return ".".join(name if _BARE_KEY.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name in place)


def _write_toml(value: object) -> str:
    match value:
        case list():
            return f"[{', '.join(_write_toml(item) for item in value)}]"
        case dict():
            return "{" + ", ".join(f"{key} = {_write_toml(item)}" for key, item in value.items()) + "}"
        case Decimal() | date() | datetime() | time():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def refuse_invalid(model: type[BaseModel], error: ValidationError, text: PolicyText) -> KeyholeError:
    """Return an error for the first unknown key, or else the first wrong one. Its DETAIL lists all other faults."""
    found = [
        (tuple(str(part) for part in details["loc"]), details)
        for details in error.errors(include_url=False, include_input=False)
    ]
    found.sort(key=lambda item: (item[1]["type"] != "extra_forbidden", text.find_line(item[0]) or 0))
    return refuse_all_faults([(place, _make_fault(model, place, details)) for place, details in found], text)


def refuse_all_faults(faults: Sequence[tuple[tuple[str, ...], Fault]], text: PolicyText) -> KeyholeError:
    """Return an error for the first of several faults. Its DETAIL lists all others, line by line."""
    (place, first), *others = faults
    detail = None
    if others:
        told = [f"{text.describe_place(where)}: {fault.problem}" for where, fault in others[:_MOST_FAULTS]]
        if len(others) > len(told):
            told.append(f"and {len(others) - len(told)} more")
        detail = "Also wrong:\n  " + "\n  ".join(told)
    return text.refuse(place, first, detail=detail)


def find_blanks(raw: object, *, place: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Fault]]:
    """Yield the places of a starter policy that the owner has not filled in yet, each with its fault."""
    match raw:
        case dict():
            for key, value in raw.items():
                yield from find_blanks(value, place=(*place, key))
        case list():
            if BLANK in raw:
                yield from find_blanks(BLANK, place=place)
        case str() if raw == BLANK:
            yield place, Fault("KH002", "is still to be filled in", hint=f"docs/policy.md describes {place[-1]}.")


def _make_fault(model: type[BaseModel], place: tuple[str, ...], details: ErrorDetails) -> Fault:
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, Fault):
        return cause
    match details["type"]:
        case "extra_forbidden":
            return Fault(
                "KH002",
                "is not a key of the policy",
                hint=suggest_nearest_name(place[-1], _list_keys(model, place[:-1])),
            )
        case "model_type" | "dict_type":
            return Fault(
                "KH002", "is no value but has keys of its own", hint=_show_keys(place[-1], _list_keys(model, place))
            )
        case "missing":
            return Fault("KH002", "is missing", hint=f"Add it; docs/policy.md describes {write_dotted_key(place)}.")
        case _:
            problem = details["msg"][:1].lower() + details["msg"][1:]
            return Fault("KH002", problem, hint=f"docs/policy.md describes {place[-1]}.")


def _show_keys(name: str, keys: tuple[str, ...]) -> str:
    if not 0 < len(keys) <= _MOST_WRITTEN_OUT:
        return f"docs/policy.md describes the keys of {name}."
    return f"Write {name} = {{ {', '.join(f'{key} = ...' for key in keys)} }}; docs/policy.md describes them."


def _list_keys(model: type[BaseModel], place: tuple[str, ...]) -> tuple[str, ...]:
    """Return the keys that the policy knows at a place."""
    kind: Any = model
    for name in place:
        if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
            kind = get_args(kind)[1] if get_origin(kind) is dict else None
        elif name in kind.model_fields:
            kind = _strip_none(kind.model_fields[name].annotation)
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return ()
    return tuple(known.alias or name for name, known in kind.model_fields.items())


def _strip_none(kind: Any) -> Any:
    if get_origin(kind) is Annotated:
        return _strip_none(get_args(kind)[0])
    if isinstance(kind, UnionType):
        return next(choice for choice in get_args(kind) if choice is not type(None))
    return kind
