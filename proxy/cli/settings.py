"""The command line options for settings.

Each setting in `planner.statements.settings.SETTINGS` is an option of every command that takes settings.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from types import MappingProxyType
from typing import Annotated

import typer

from planner.statements.settings import SETTINGS

Given = Mapping[str, str | None]

NOTHING_GIVEN: Given = MappingProxyType({})

_PREFIX = "keyhole."


def add_setting_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command for typer with an option for every setting, in place of the parameter `given: Given`.

    The command gets in `given` the settings that were typed, by full name.
    """
    names = {setting.name.removeprefix(_PREFIX): setting.name for setting in SETTINGS}

    @wraps(command)
    def run(**arguments: object) -> None:
        values = {full: arguments.pop(name) for name, full in names.items()}
        command(**arguments, given={full: value for full, value in values.items() if value is not None})

    signature = inspect.signature(command)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        parameters += _list_options() if parameter.name == "given" else [parameter]
    vars(run)["__signature__"] = signature.replace(parameters=parameters)  # what inspect and typer read
    return run


def _list_options() -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            setting.name.removeprefix(_PREFIX),
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=None,
            annotation=Annotated[str | None, typer.Option(help=f"{setting.name}: {setting.meaning}.")],
        )
        for setting in SETTINGS
    ]
