"""Decisions and reports of the owner: `keyhole grant`, `revoke`, `approve`, `window open`, `odometer`, `passwd`, ..."""

import getpass
import secrets
import sys
from hashlib import sha256
from typing import Annotated

import typer

from accountant.balances.dependencies import Knowledge, assume_nothing
from accountant.charges import NANO
from accountant.errors import LedgerMisuse, MonitorNotEnded
from planner.errors import KeyholeError
from planner.policy.file import Policy
from proxy.cli.common import (
    DEFAULT_POLICY,
    By,
    Json,
    PolicyPath,
    Why,
    find_identity,
    open_owner_ledger,
    print_json,
    print_refusals,
    read_decider,
    read_reason,
    show_work,
)
from proxy.open_policy.column_dependencies import find_all_dependencies
from proxy.open_policy.pins import make_catalog_from_pins
from proxy.owner.decisions import Cap, make_grant, read_fingerprint
from proxy.report import odometer as odometers
from proxy.report.ledger_tables import SHORT_ID
from proxy.report.terminal import make_visible, write_psql_table, write_row_count

window = typer.Typer(name="window", help="Open a budget window: all balances start from zero.", no_args_is_help=True)


def grant(
    epsilon: Annotated[float, typer.Argument(help="By how much the cap rises, in epsilon.")],
    cap: Annotated[Cap, typer.Option("--cap", help="The raised cap: of one group, one privacy unit or one table.")],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    table: Annotated[str | None, typer.Option(help="On this table only; required with --cap table.")] = None,
    analyst: Annotated[str | None, typer.Option(help="This analyst's own cap, not the shared one.")] = None,
    by: By = None,
) -> None:
    """Raise a cap of the policy from now on. Prints the grant's id, for keyhole revoke."""
    with print_refusals(as_json=False):
        loaded = Policy.load(policy)
        given = make_grant(loaded, epsilon, cap=cap, table=table, analyst=analyst)
        with open_owner_ledger(policy) as ledger:
            print(ledger.owner.write_grant(given, by=read_decider(by), why=read_reason(why)))


def revoke(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The grant's id, or its beginning.")],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
) -> None:
    """End a grant. Epsilon that was spent within it stays spent."""
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        found = find_identity(identity, ledger.owner.list_grants(), hint="ID")
        try:
            ledger.owner.revoke_grant(found, by=read_decider(by), why=read_reason(why))
        except LedgerMisuse as error:
            raise typer.BadParameter(str(error), param_hint="ID") from None
    print(f"{found}: revoked")


def grants(policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """List the grants in force."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy) as ledger:
        found = ledger.owner.list_grants()
    if as_json:
        print_json(
            [
                {
                    "grant": identity,
                    "cap": given.scope.value,
                    "epsilon": given.amount_nano / NANO,
                    "table": given.table,
                    "analyst": given.analyst,
                }
                for identity, given in found.items()
            ]
        )
        return
    rows = [
        (
            identity[:SHORT_ID],
            given.scope.value,
            f"{given.amount_nano / NANO:g}",
            given.table or "",
            given.analyst or "",
        )
        for identity, given in found.items()
    ]
    print(*write_psql_table(("grant", "cap", "epsilon", "table", "analyst"), rows), sep="\n")
    print(f"({write_row_count(len(rows))})")


def approve(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The question's full id.")],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
) -> None:
    """Approve a question that waits for the owner."""
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        question = read_fingerprint(identity)
        waiting = ledger.owner.find_waiting_questions(question)
        new = ledger.owner.approve_question(question, by=read_decider(by), why=read_reason(why))
        asked = [one.wording.text for one in ledger.find_questions(question) if one.wording is not None]
    print(f"{question}: {'approved' if new else 'was approved before'}")
    for text in sorted({text for text in (*asked, *(one.text for one in waiting)) if text is not None}):
        print(f"asked as: {make_visible(text)}")


def decline(
    identity: Annotated[str, typer.Argument(metavar="ID", help="The question's full id.")],
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    by: By = None,
) -> None:
    """Decline a question that waits for approval. The analyst reads why. Asked again, it waits again."""
    with print_refusals(as_json=False), open_owner_ledger(policy) as ledger:
        question = read_fingerprint(identity)
        waited = ledger.owner.decline_question(question, by=read_decider(by), why=read_reason(why))
    print(f"{question}: {'declined' if waited else 'does not wait for approval'}")


def queue(policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """List the questions that wait for the owner's approval."""
    with print_refusals(as_json=as_json), open_owner_ledger(policy) as ledger:
        found = ledger.owner.find_waiting_questions()
    if as_json:
        print_json(
            [
                {
                    "question": one.question,
                    "analyst": one.analyst,
                    "asked_at": one.asked_at.isoformat(),
                    "table": one.table,
                    "epsilon": one.needed_nano / NANO,
                    "text": one.text,
                    "guarantee": one.guarantee,
                }
                for one in found
            ]
        )
        return
    for one in found:
        when = one.asked_at.isoformat(sep=" ", timespec="seconds")
        print(f"{one.question}")
        print(f"  {when}, {make_visible(one.analyst)}: {one.needed_nano / NANO:.4f} epsilon for a group of {one.table}")
        print(f"  {'(the policy keeps no texts)' if one.text is None else make_visible(one.text)}")
        if one.guarantee is not None:
            print(f"  {make_visible(one.guarantee)}")
    print(f"({len(found)} question{'' if len(found) == 1 else 's'} waiting)")


@window.command("open")
def open_window(
    why: Why,
    policy: PolicyPath = DEFAULT_POLICY,
    sure: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    by: By = None,
) -> None:
    """Let all balances start from zero. This weakens the promise to everybody in the data, for good."""
    with print_refusals(as_json=False):
        budget = Policy.load(policy).budget
        with open_owner_ledger(policy) as ledger:
            windows = odometers.count_windows(ledger) + 1
            print("\n".join(odometers.write_window_risk(windows=windows, per_predicate=budget.epsilon_per_predicate)))
            deciding, because = read_decider(by), read_reason(why)
            if not sure:
                typer.confirm("Open the window?", abort=True)
            try:
                opened = ledger.owner.open_window(by=deciding, why=because)
            except MonitorNotEnded as error:
                raise typer.BadParameter(f"{error}. No window was opened.", param_hint="window") from None
            print(f"window {windows}: {opened}")


def odometer(policy: PolicyPath = DEFAULT_POLICY, as_json: Json = False) -> None:
    """Say what all answers so far can have revealed, for a report."""
    with print_refusals(as_json=as_json):
        loaded = Policy.load(policy)
        with (
            show_work("adding up the ledger"),
            open_owner_ledger(policy, knowledge=find_pinned_knowledge(loaded)) as ledger,
        ):
            reading = odometers.read_odometer(loaded, ledger)
    if as_json:
        print_json(reading.make_document())
    else:
        print("\n".join(reading.write_lines()))


def find_pinned_knowledge(policy: Policy) -> Knowledge:
    """Return the public knowledge about columns that the pins contain, with which caps are computed.

    Return nothing if the pins belong to another policy. Groups then count as if every combination of keys were
    possible, which overstates their losses.
    """
    try:
        return find_all_dependencies(make_catalog_from_pins(policy))
    except KeyholeError:
        return assume_nothing


def passwd(
    token: Annotated[bool, typer.Option("--token", help="Make a bearer token for REST instead.")] = False,
) -> None:
    """Make a password verifier or a REST token. Prints the line for the policy; asks for the password, or reads it."""
    from proxy.security import scram

    if token:
        made = secrets.token_urlsafe(32)
        print(f"token (give it to the analyst, it is not kept): {made}")
        print(f'token_sha256 = "{sha256(made.encode()).hexdigest()}"')
        return
    print(f'password = "{scram.make_verifier(_read_password())}"')


def _read_password() -> str:
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = getpass.getpass("Password: ")
        if password and getpass.getpass("Again: ") != password:
            raise typer.BadParameter("the two passwords differ")
    if not password:
        raise typer.BadParameter("an empty password")
    return password
