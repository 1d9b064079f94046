"""The refusals of an open policy: a missing ledger, changed tables, pins that differ from the source."""

from collections.abc import Sequence

from accountant.errors import LedgerBehind, LedgerError, LedgerMoved, NoLedger, StorageFailed, StorageFull
from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError


def report_unavailable_ledger() -> KeyholeError:
    """Return the analyst's error for a ledger that cannot be read or written."""
    return KeyholeError(
        "KH502",
        "the ledger is not available",
        detail="No answer is released without a durable entry. The reserved budget stays spent.",
        hint="Ask again later, or inform the data owner.",
    )


def report_unopened_ledger(error: LedgerError) -> KeyholeError:
    """Return the owner's error for a ledger that cannot be opened. It names the first fault, and never data."""
    if isinstance(error, NoLedger | LedgerBehind):
        return report_lost_ledger(error)
    if isinstance(error, StorageFailed):
        return report_failed_storage(error)
    return KeyholeError(
        "KH009",
        "the ledger cannot be opened, or its chain of events is broken",
        detail=f"{error}.",
        hint="Check ledger.url in the policy, the file's permissions or the database's grants.",
    )


def report_unreadable_ledger(error: LedgerError) -> KeyholeError:
    """Return the owner's error for an open ledger that fails. It names the first fault, and never data."""
    if isinstance(error, LedgerBehind):
        return report_lost_ledger(error)
    if isinstance(error, StorageFailed):
        return report_failed_storage(error)
    return KeyholeError(
        "KH009",
        "the ledger cannot be read, or its chain of events is broken",
        detail=f"{error}.",
        hint="Compare with the newest hash and the backup that you keep elsewhere; see docs/operating.md.",
    )


def report_failed_storage(error: StorageFailed) -> KeyholeError:
    """Return the owner's error for a ledger whose storage failed, though its content may be correct."""
    return KeyholeError(
        "KH009",
        "the ledger's storage failed",
        detail=f"{error}. The ledger itself is not known to be damaged, and all spending is in it.",
        hint=_choose_hint(error),
    )


def _choose_hint(error: StorageFailed) -> str:
    match error:
        case StorageFull():
            return "Free space on the ledger's disk, and try again. Do not restore a backup: it has forgotten spending."
        case LedgerMoved():
            return (
                "Put the file back, or if it was replaced on purpose, stop every Keyhole that has the old one open: "
                "docs/operating.md."
            )
        case _:
            return "Check ledger.url in the policy, the file's permissions or the database's grants, and try again."


def report_lost_ledger(error: NoLedger | LedgerBehind) -> KeyholeError:
    """Return the owner's error for a ledger that is missing, or has been replaced by another one."""
    return KeyholeError(
        "KH016",
        f"{error}",
        detail="The events that are missing spent budget, and without them it could be spent again.",
        hint="Check ledger.url, or put back the ledger or its newest backup. If there never was one, or the missing "
        "events are lost, keyhole check --confirm starts from the present state. keyhole ledger copy moves a ledger.",
    )


def report_unwritten_witness(file: str, error: OSError) -> KeyholeError:
    """Return the owner's error for a ledger that was accepted while its witness cannot be written."""
    return KeyholeError(
        "KH009",
        f"{file}, which knows the ledger's last event, cannot be written ({error.strerror})",
        hint="Let Keyhole's user write the policy's folder.",
    )


def refuse_superseded() -> KeyholeError:
    """Return the refusal of a question to a service that another one has replaced after a reload."""
    return KeyholeError(
        "KH411",
        "the data owner has changed the tables",
        detail="This session began before that, and still shows the earlier tables. Nothing was spent.",
        hint="Connect again and ask there.",
    )


def refuse_unknown_analyst(name: str, catalog: Catalog) -> KeyholeError:
    """Return the refusal of an analyst's name that is not in the policy."""
    known = ", ".join(analyst.name for analyst in catalog.analysts) or "none"
    return KeyholeError("KH401", f'there is no analyst "{name}"', detail=f"The policy has: {known}.")


def refuse_changed_pins(policy: str, names: Sequence[str], *, detail: str) -> KeyholeError:
    """Return the refusal of public tables or key domains that differ from the pinned ones."""
    return KeyholeError(
        "KH007",
        f"{policy}: {', '.join(names)} differs from what was pinned",
        detail=detail,
        hint="If the change is meant, let it take effect with keyhole check --confirm.",
    )


def refuse_renamed_table(policy: str, table: str, before: str, relation: str) -> KeyholeError:
    """Return the refusal of a table whose relation the ledger knows under another name."""
    return KeyholeError(
        "KH007",
        f"{policy}: tables.{table} is the relation that was charged as {before}",
        detail=f"It is {relation} in the source. Under the new name its groups and the table begin with a full "
        f"budget. The losses under {before} no longer count, and everybody in them may lose a whole budget again.",
        hint=f"Name it [tables.{before}], and give its place in the source as relation. For a new budget run "
        "keyhole check --confirm.",
    )


def refuse_edited_pins(file: str) -> KeyholeError:
    """Return the refusal of a pin file that Keyhole did not write."""
    hint = "Restore the file, or delete it and run keyhole check."
    return KeyholeError("KH007", f"{file} is not what keyhole check wrote", hint=hint)


def refuse_unrefreshed_table(table: str) -> KeyholeError:
    """Return the refusal of a table with explicit refreshes for which no data version was declared yet."""
    message = f'table "{table}" has no data version yet'
    return KeyholeError("KH007", message, hint="Run keyhole check, or keyhole refresh.")
