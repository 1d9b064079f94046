"""The commands by section, in the order of the help. Each is imported only when it is run, so help imports none.

A test compares the names and summaries here with the commands themselves.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    # for whoever reads imports, such as a linter: `_load` imports these by name
    pass


@dataclass(frozen=True, slots=True)
class ListedCommand:
    """A command in the help's list, with the module and the attribute that define it."""

    name: str
    place: str
    summary: str


SECTIONS: Mapping[str, tuple[ListedCommand, ...]] = {
    "Set up and serve": (
        ListedCommand("demo", "proxy.cli.main:demo", "Ask real questions about real customers."),
        ListedCommand("play", "proxy.cli.main:play", "Play with a made-up building's noisy counts."),
        ListedCommand("init", "proxy.cli.main:init", "Write a starter policy to standard output."),
        ListedCommand("check", "proxy.cli.main:check", "Validate the policy and pin public data."),
        ListedCommand(
            "bounds", "proxy.cli.bounds:bounds", "Find bounds for the policy in the data, privately; charged."
        ),
        ListedCommand(
            "refresh", "proxy.cli.main:refresh", "Declare new data in tables, and have running servers read them."
        ),
        ListedCommand("passwd", "proxy.cli.owner:passwd", "Make a password verifier or a REST token."),
        ListedCommand("serve", "proxy.cli.main:serve", "Start the PostgreSQL endpoint and REST."),
    ),
    "Ask": (
        ListedCommand("query", "proxy.cli.ask:query", "Ask one question and print the keys that pass."),
        ListedCommand("explain", "proxy.cli.ask:explain", "Show the plan of a question and what it would cost."),
        ListedCommand(
            "plan", "proxy.cli.ask:plan", "Plan a list of questions as a whole: what fits, and how all would."
        ),
        ListedCommand("simulate", "proxy.cli.ask:simulate", "Show what a question or monitor would cost."),
        ListedCommand("budget", "proxy.cli.main:budget", "Show what is spent and what is left."),
    ),
    "Decide, as the data owner": (
        ListedCommand("grant", "proxy.cli.owner:grant", "Raise a cap of the policy from now on."),
        ListedCommand("revoke", "proxy.cli.owner:revoke", "End a grant."),
        ListedCommand("grants", "proxy.cli.owner:grants", "List the grants in force."),
        ListedCommand("queue", "proxy.cli.owner:queue", "List the questions that wait for the owner's approval."),
        ListedCommand("approve", "proxy.cli.owner:approve", "Approve a question that waits for the owner."),
        ListedCommand("decline", "proxy.cli.owner:decline", "Decline a question that waits for approval."),
        ListedCommand("window", "proxy.cli.owner:window", "Open a budget window: all balances start from zero."),
    ),
    "Look after it, as the data owner": (
        ListedCommand(
            "odometer", "proxy.cli.owner:odometer", "Say what all answers so far can have revealed, for a report."
        ),
        ListedCommand(
            "risk", "proxy.cli.risk.command:risk", "Say what the promises mean for people, in odds and guesses."
        ),
        ListedCommand(
            "diagnose",
            "proxy.cli.diagnose.command:diagnose",
            "Release how well scores predict outcomes, privately; charged.",
        ),
        ListedCommand(
            "publish", "proxy.cli.publish.command:publish", "Publish a table of counts or rows, with noise; charged."
        ),
        ListedCommand("audit", "proxy.cli.main:audit", "Try to prove that the mechanisms are not private."),
        ListedCommand("monitor", "proxy.cli.monitor:app", "Start, watch and end standing questions."),
        ListedCommand("ledger", "proxy.cli.ledger:app", "Read, check, settle and copy the ledger."),
    ),
}
_LISTED = {listed.name: listed for section in SECTIONS.values() for listed in section}


@cache
def _load(name: str) -> Any:
    """Import a command, once in a process, and return typer's object for it."""
    module, _, attribute = _LISTED[name].place.partition(":")
    found = getattr(import_module(module), attribute)
    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(found, typer.Typer):
        alone.add_typer(found)
    else:
        alone.command(name)(found)
    return typer.main.get_group(alone).commands[name]


class _Commands(Mapping[str, Any]):
    """A mapping of every command by its name. Listing the names imports nothing."""

    def __getitem__(self, name: str) -> Any:
        if name not in _LISTED:
            raise KeyError(name)
        return _load(name)

    def __contains__(self, name: object) -> bool:
        return name in _LISTED

    def __iter__(self) -> Iterator[str]:
        return iter(_LISTED)

    def __len__(self) -> int:
        return len(_LISTED)


class Sections(TyperGroup):
    """The group of all commands. Its help lists them by section."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (typer hands it)
        """Write the help's list of commands, by section."""
        widest = max(map(len, _LISTED))
        for title, section in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(listed.name, listed.summary) for listed in section], col_max=widest)
