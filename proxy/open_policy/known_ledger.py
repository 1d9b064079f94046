"""The check that a policy's ledger was not lost or replaced, by its witness file and the pins.

Guarantee: if the policy was ever charged to a ledger, an empty ledger replaces it only if the owner confirms that.
"""

from accountant.errors import LedgerBehind, LedgerError, LedgerUnavailable
from accountant.ledger import Ledger
from accountant.store.witness import NOTHING, Witness
from planner.policy.file import Policy
from proxy.open_policy.pins import find_pins_path, read_private_pins
from proxy.open_policy.service_refusals import report_unopened_ledger, report_unwritten_witness

SUFFIX = ".ledger-witness"
_FORGOTTEN = "what was spent beyond it is forgotten, and may be spent again"


def find_witness(policy: Policy) -> Witness:
    """Return the witness of a policy's ledger: the file keyhole.ledger-witness beside keyhole.toml."""
    return Witness(policy.path.with_suffix(SUFFIX))


def can_be_new(policy: Policy) -> bool:
    """Return True if the ledger may be new: the witness knows no event, or there is neither a witness nor a pin."""
    try:
        mark = find_witness(policy).read()
    except LedgerError:
        return False
    return mark == NOTHING if mark is not None else not _pinned_relations(policy)


def is_foreign(policy: Policy, ledger: Ledger) -> bool:
    """Return True if the ledger seems to belong to another policy: it knows no pinned table, and has no witness.

    A ledger that `keyhole check` opened once knows the tables, even without events. Raise KH007, `LedgerUnavailable`.
    """
    if ledger.known_event_count or find_witness(policy).path.exists():
        return False
    pinned = _pinned_relations(policy)
    return bool(pinned) and not ledger.exposures.knows_any_relation(pinned)


def describe_lost_events(policy: Policy, ledger: Ledger) -> str | None:
    """Return in words which events the ledger lacks, compared with its witness and the pins. Return None if none.

    The ledger was opened with `is_trusted=True`. Raise KH009 if the witness cannot be read.
    """
    try:
        if is_foreign(policy, ledger):
            return f"it is empty, and {_FORGOTTEN}"
        ledger.check_witness()
    except LedgerBehind as behind:
        return f"{behind}; {_FORGOTTEN}"
    except LedgerUnavailable as error:
        try:
            find_witness(policy).read()
        except LedgerUnavailable:
            return f"{error}; it is written again"
        raise report_unopened_ledger(error) from None
    return None


def accept_ledger(policy: Policy, ledger: Ledger) -> None:
    """Accept the ledger as it is now, because its owner says so, and update the witness.

    Raise KH009 if the witness cannot be written.
    """
    try:
        ledger.accept_current_log()
    except LedgerError as error:
        raise report_unopened_ledger(error) from None
    except OSError as error:
        raise report_unwritten_witness(find_witness(policy).path.name, error) from None


def _pinned_relations(policy: Policy) -> frozenset[str]:
    pins = read_private_pins(find_pins_path(policy))
    return frozenset(relation for _, relations in pins.relations for relation in relations)
