"""The rewriting of hints for REST: fields of a request instead of SET and RESET."""

import json
import re

_FIELDS = (
    "fnr",
    "fpr",
    "tolerance",
    "min_rows",
    "min_base",
    "guard",
    "mechanism",
    "test",
    "most_positives",
    "public_knowledge",
    "max_epsilon",
    "reuse",
    "numbers",
)
_NAME = rf"(?P<name>{'|'.join(_FIELDS)})"
_SET = re.compile(rf"SET keyhole\.{_NAME} = (?P<value>'(?:[^']|'')*'|[^;']+);")
_RESET = re.compile(rf"RESET keyhole\.{_NAME};")
_NEXT = re.compile(r"; ((?:RE)?SET keyhole\.)")  # what is set together with the setting before
_MENTIONED = re.compile(rf"\bkeyhole\.{_NAME}\b")
_NUMBERS = frozenset(("fnr", "fpr", "min_rows", "min_base", "most_positives", "max_epsilon"))


def write_as_fields(hint: str) -> str:
    """Return a hint with SET statements replaced by fields of a request.

    For example, `SET keyhole.tolerance = '13%';` becomes `"tolerance": "13%"`.
    """
    hint = _NEXT.sub(r";, \1", hint)
    hint = _SET.sub(lambda found: _write_field(found["name"], found["value"].strip()), hint)
    hint = _RESET.sub(lambda found: f'without "{found["name"]}"', hint)
    return _MENTIONED.sub(lambda found: found["name"], hint)


def _write_field(name: str, value: str) -> str:
    text = value[1:-1].replace("''", "'") if value.startswith("'") else value
    if not text:
        return f'without "{name}"'
    return f'"{name}": {text if name in _NUMBERS else json.dumps(text, ensure_ascii=False)}'
