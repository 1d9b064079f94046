"""The reference in docs/commands.md: every command with its flags, as `keyhole COMMAND --help` has them.

Notes below a command, after the comment `NOTES`, are written by hand. The generator keeps them and rewrites the rest.
"""

import re
from collections.abc import Iterator, Mapping
from enum import Enum, EnumType
from pathlib import Path
from typing import Any

import typer.main
from typer.core import TyperGroup

from planner.statements.settings import SETTINGS
from proxy.cli.main import app
from proxy.cli.sections import SECTIONS

PAGE = Path(__file__).resolve().parents[1] / "commands.md"
BEGIN = "<!-- Commands and flags below are written by `python -m docs.generator`; notes by hand. -->"
END = "<!-- End of the generated part. -->"
NOTES = "<!--notes-->"
COMMON = {
    "--policy": "The policy file.",
    "--json": "Print JSON",
    "--why": "Why, for the record",
    "--by": "Who decides",
    "--dry-run": "Show the cost",
    "--html": "Write the report",
    "--as": "The analyst who asks",
}
"""Flags that the page explains once, and how their help begins. A command names those that it takes."""
_EVERYWHERE = ("--policy", "--json", "--why", "--by")
"""Flags of which the page says once which commands take them."""
_ARGUMENTS = (
    "The question.",
    "The private table.",
    "The monitor, as the policy calls it.",
    "The grant's id, or its beginning.",
    "The reservation's or question's id, or its beginning.",
)
"""The help of arguments that the page explains once."""
_SETTINGS = {f"--{setting.name.removeprefix('keyhole.').replace('_', '-')}" for setting in SETTINGS}
_CHAPTER = re.compile(r"^### `keyhole (.+)`\n((?:(?!##).*\n)*)", re.MULTILINE)


def list_commands() -> Iterator[tuple[str, Any]]:
    """Yield every command in the order of the help, `ledger list` for one of a subgroup."""
    group = typer.main.get_group(app)
    for section in SECTIONS.values():
        for listed in section:
            yield from _list_commands(listed.name, group.commands[listed.name])


def _list_commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(command, TyperGroup):
        for below, found in command.commands.items():
            yield f"{name} {below}", found
    else:
        yield name, command


def read_notes(page: str) -> Mapping[str, str]:
    """Return the notes of each command, as they were written by hand."""
    part = page.partition(BEGIN)[2].partition(END)[0]
    return {name: text.partition(NOTES)[2].strip() for name, text in _CHAPTER.findall(part)}


def write_reference(page: str) -> str:
    """Return the page with every command as it is now, with its notes."""
    notes = read_notes(page)
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    written = [BEGIN, ""]
    group = typer.main.get_group(app)
    for title, section in SECTIONS.items():
        written += [f"## {title}", ""]
        for listed in section:
            for name, command in _list_commands(listed.name, group.commands[listed.name]):
                written += _describe(name, command)
                if notes.get(name):
                    written += [NOTES, "", notes[name], ""]
    return before + "\n".join([*written, END]) + after


def _describe(name: str, command: Any) -> Iterator[str]:
    arguments = [found for found in command.params if found.param_type_name == "argument"]
    options = [found for found in command.params if found.param_type_name == "option"]
    own = [found for found in (*arguments, *options) if not _is_common(found) and not _is_setting(found)]
    shared = [_name(found) for found in arguments if _is_common(found)]
    shared += [f"`{found.opts[0]}`" for found in options if _is_common(found) and found.opts[0] not in _EVERYWHERE]
    if any(_is_setting(found) for found in options):
        shared.append("the [flags of settings](#flags-of-many-commands)")
    yield f"### `keyhole {name}`"
    yield ""
    yield " ".join(command.help.split())
    yield ""
    if own:
        yield from (f"- {_name(found)}: {_describe_parameter(found)}" for found in own)
        yield ""
    if shared:
        yield f"Takes {', '.join(shared)}."
        yield ""


def _is_common(parameter: Any) -> bool:
    if parameter.param_type_name == "argument":
        return parameter.help in _ARGUMENTS and parameter.required
    beginning = COMMON.get(parameter.opts[0])
    return beginning is not None and str(parameter.help).startswith(beginning)


def _is_setting(option: Any) -> bool:
    return option.opts[0] in _SETTINGS and str(option.help).startswith("keyhole.")


def _name(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).upper()}`"
    return ", ".join(f"`{spelling}`" for spelling in parameter.opts)


def _describe_parameter(parameter: Any) -> str:
    meaning = str(parameter.help)
    choices: Any = parameter.type_descriptor.annotation
    if isinstance(choices, EnumType):
        values: list[Enum] = list(choices)
        if not all(re.search(rf"\b{re.escape(str(choice.value))}\b", meaning) for choice in values):
            meaning += f" One of {', '.join(f'`{choice.value}`' for choice in values)}."
    if getattr(parameter, "multiple", False):
        meaning += " May be repeated."
    elif isinstance(parameter.default, Enum | Path | str | int | float) and parameter.default not in (False, "", 0):
        meaning += f" Default: `{getattr(parameter.default, 'value', parameter.default)}`."
    if parameter.param_type_name == "argument":
        return meaning + ("" if parameter.required else " Optional.")
    return meaning + (" Required." if parameter.required else "")
