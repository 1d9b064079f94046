"""The reference in docs/policy.md: the keys of every section of the policy, with their types and defaults.

Keys, types and defaults come from `planner.policy.sections`. The meaning of a key is written by hand on the page:
`- `key` (type; default): meaning`. The generator keeps meanings and rewrites the rest.
"""

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from planner.policy import sections

PAGE = Path(__file__).resolve().parents[1] / "policy.md"
BEGIN = "<!-- Keys, types and defaults below are written by `python -m docs.generator`; meanings by hand. -->"
END = "<!-- End of the generated part. -->"
SECTIONS: Mapping[str, type[BaseModel]] = {
    "[source]": sections.SourceSection,
    "[ledger]": sections.LedgerSection,
    "[shadow]": sections.ShadowSection,
    "[accuracy]": sections.AccuracySection,
    "[budget]": sections.BudgetSection,
    "[limits]": sections.LimitsSection,
    "[server]": sections.ServerSection,
    "[server.tls]": sections.TlsSection,
    "[server.limits]": sections.ServerLimitsSection,
    "[server.rest]": sections.RestSection,
    "[server.console]": sections.ConsoleSection,
    "[server.play]": sections.PlaySection,
    "[tables.NAME]": sections.TableSection,
    "[tables.NAME.groupings]": sections.GroupingSection,
    "max_rows_per_group": sections.RowCapSection,
    "size": sections.SizeSection,
    "[tables.NAME.columns.COLUMN]": sections.ColumnSection,
    "key": sections.KeySection,
    "bands": sections.BandsSection,
    "[views.NAME]": sections.ViewSection,
    "[monitors.NAME]": sections.MonitorSection,
    "window": sections.WindowSection,
    "[analysts.NAME]": sections.AnalystSection,
}
_HARDLY_A_LIMIT = 2**31  # of a whole number: no policy comes near it, so the page does not name it
_WIDTH = 120  # of a line of the page, as of the code
_ITEM = re.compile(r"^- `(\w+)`(?: \([^)]*\))?: *(.*(?:\n  .*)*)\n?", re.M)
_CHAPTER = re.compile(r"^#+ `(.+)`\n(?:(?!#).*\n)*", re.M)
_NAMED: Sequence[tuple[Any, str]] = (
    (sections.Epsilon, ""),  # one range for all, which the page states once
    (sections.Pair, "[lowest, highest]"),
    (sections.Number, "number"),
    (sections.Percent, 'share such as "12 %"'),
    (sections.Names, "list"),
    (sections.Values, "list"),
    (sections.Thresholds, "rising numbers"),
    (sections.Unit, "text, list or path"),
    (sections.MechanismName, ""),
    (sections.MechanismNames, "list"),
    (sections.MonitorMechanismName, ""),
    (sections.Duration, "length of time"),
    (sections.Moment, "date or moment"),
    (sections.MemorySize, 'size such as "4GB"'),
)
"""Types that a validator of their own reads, in words."""


def write_reference(page: str) -> str:
    """Return the page with the keys, types and defaults between its markers as the code has them."""
    before, _, rest = page.partition(BEGIN)
    reference, _, after = rest.partition(END)
    return "".join((before, BEGIN, _CHAPTER.sub(_write_chapter, reference), END, after))


def read_meanings(page: str) -> dict[str, dict[str, str]]:
    """Return what the page says of each key, by heading and key; empty for a key without a meaning."""
    reference = page.partition(BEGIN)[2].partition(END)[0]
    return {chapter[1]: _read_meanings(chapter[0]) for chapter in _CHAPTER.finditer(reference)}


def _read_meanings(chapter: str) -> dict[str, str]:
    return {item[1]: " ".join(item[2].split()) for item in _ITEM.finditer(chapter)}


def _write_chapter(chapter: re.Match[str]) -> str:
    """Return one section of the reference: what stands around its list stays."""
    items = list(_ITEM.finditer(chapter[0]))
    start, end = (items[0].start(), items[-1].end()) if items else (len(chapter[0]), len(chapter[0]))
    meanings = _read_meanings(chapter[0])
    return chapter[0][:start] + "".join(_write_keys(SECTIONS[chapter[1]], meanings)) + chapter[0][end:]


def _write_keys(section: type[BaseModel], meanings: Mapping[str, str]) -> Iterator[str]:
    hints = get_type_hints(section, include_extras=True)
    for name, field in section.model_fields.items():
        key = field.alias or name
        facts = "; ".join(_describe(hints[name], field))
        text = f"- `{key}`{f' ({facts})' if facts else ''}: {meanings.get(key, '')}"
        lines = textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        yield "\n".join(lines) + "\n"


def _describe(hint: Any, field: FieldInfo) -> Iterator[str]:
    """Yield a key's type unless its default or its meaning shows it, and its default."""
    if (named := _name_type(hint, field)) not in ("", "text", "table", "boolean"):
        yield named
    if field.is_required():
        yield "required"
    elif (shown := _show_default(field.get_default(call_default_factory=True))) is not None:
        yield f"default {shown}"


def _name_type(hint: Any, field: FieldInfo) -> str:
    """Return a type in words, with its range."""
    arguments = [argument for argument in get_args(hint) if argument is not NoneType]
    named = next((words for known, words in _NAMED if hint == known), None)
    if named is not None:
        return named
    if get_origin(hint) is Annotated:
        base, *metadata = arguments
        flat = [part for one in metadata for part in (one.metadata if isinstance(one, FieldInfo) else [one])]
        return f"{_name_type(base, field)} {_name_range(flat)}".strip()
    if get_origin(hint) is Literal:
        quoted = [f'`"{choice}"`' for choice in arguments]
        return f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    if get_origin(hint) is dict:
        return "table"
    if len(arguments) == 1 and get_origin(hint) is not tuple:  # X | None
        return _name_type(arguments[0], field)
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return "table"
    return {str: "text", int: "", float: "", bool: "boolean"}.get(hint, "text or integer")


def _name_range(metadata: Sequence[object]) -> str:
    """Return a number's range in words.

    >>> _name_range([annotated_types.Ge(1), annotated_types.Le(64)])
    '1 to 64'
    """
    ends: dict[str, Any] = {type(one).__name__.lower(): value for one in metadata for value in _list_ends(one)}
    match ends:
        case {"ge": 1, "le": int(most)} if most >= _HARDLY_A_LIMIT:
            return ""
        case {"ge": least, "le": most}:
            return f"{least:,} to {most:,}" if isinstance(most, int) else f"{least:g} to {most:g}"
        case {"gt": below, "le": most}:
            return f"above {below}, at most {most:,}"
        case {"gt": below, "lt": above}:
            return f"above {below}, below {above}"
    return ""


def _list_ends(one: object) -> Iterator[Any]:
    """Yield the value of one end of a range; nothing for other metadata."""
    match one:
        case (
            annotated_types.Ge(value)
            | annotated_types.Gt(value)
            | annotated_types.Le(value)
            | annotated_types.Lt(value)
        ):
            yield value


def _show_default(value: object) -> str | None:
    """Return a default as the policy would spell it; None if the code has none or only an empty one."""
    match value:
        case bool():
            return f"`{value}`".lower()
        case int() | float():
            return f"`{value}`"
        case str():
            return f'`"{value}"`'
        case timedelta():
            return '`"0 s"`'
    return None
