"""The refusals of a release, in words. All of them follow from the request, the policy and the ledger."""

import shlex
from decimal import ROUND_CEILING, ROUND_DOWN, Decimal

from planner.catalog.catalog import Catalog
from planner.errors import KeyholeError

_MOST_CUT = 0.5  # a bound that cuts more is none


def refuse_over_budget(scope: str, *, needed: float, left: float) -> KeyholeError:
    """Return the refusal of a release that a balance does not cover."""
    there = _round_balance_down(left)
    return KeyholeError(
        "KH310",
        f"not enough budget of {scope} for the release (needs {needed:g}, left {there:f})",
        detail="A release is charged to each group that it is about, and to each privacy unit. Nothing was spent.",
        hint=f"Ask with --epsilon {there:f}, which would use all that is left." if there else "See keyhole grant.",
    )


def refuse_hidden_cut(cut: float, *, least_epsilon: float, least_cut: float) -> KeyholeError:
    """Return the refusal of a requested cut share that is too small for the noise."""
    reachable = least_cut < _MOST_CUT
    return KeyholeError(
        "KH311",
        f"{100 * cut:g} % of the units cannot be distinguished from none at this epsilon",
        detail="The bound would be found among so few units that noise outweighs them.",
        hint=f"Ask with --epsilon {_round_loss_up(least_epsilon)}"
        + (f", or --cut {_round_loss_up(100 * least_cut)}%." if reachable else "."),
    )


def refuse_undrawable() -> KeyholeError:
    """Return the refusal of an epsilon so small or large that its noise cannot be sampled exactly."""
    return KeyholeError(
        "KH311",
        "noise of this epsilon cannot be drawn exactly",
        hint="Ask with an --epsilon between .000001 and 10; more would be no protection.",
    )


def _round_balance_down(left: float) -> Decimal:
    """Return a remaining balance rounded down to four decimals, so that a suggestion fits."""
    return Decimal(str(max(left, 0.0))).quantize(Decimal("1e-4"), rounding=ROUND_DOWN).normalize()


def _round_loss_up(value: float) -> str:
    """Return a loss rounded up to two digits, so that a suggestion suffices."""
    step = Decimal(1).scaleb(Decimal(value).adjusted() - 1)
    return f"{(Decimal(value) / step).to_integral_value(ROUND_CEILING) * step:f}"


def refuse_endless_column(table: str, column: str) -> KeyholeError:
    """Return the refusal of a column whose type has no largest value, so that the list of candidates would not end."""
    return KeyholeError(
        "KH312",
        f'"{column}" of "{table}" has a type without a largest value',
        hint=f"Say how large it can be at most, for any person: --most {shlex.quote(f'{column}=1000000')}",
    )


def refuse_open_release(reservation: str | None, *, minutes: int) -> KeyholeError:
    """Return the refusal of a release whose reservation is open: its process still runs, or has crashed.

    If `reservation` is None, the release was committed just now.
    """
    if reservation is None:
        return KeyholeError(
            "KH313",
            "the same release was made just now",
            detail="It was charged then. Nothing more was spent.",
            hint="Ask again: it costs nothing.",
        )
    return KeyholeError(
        "KH313",
        f"the same release is under way (reservation {reservation})",
        detail=f"It is charged already. If its process died or was stopped, it can be made again in {minutes} minutes.",
        hint="Ask again then: it costs nothing if it was made. If you know that its process has ended, close the "
        f"reservation and ask at once: {_write_settle(reservation)}",
    )


class StoppedRelease(KeyboardInterrupt):
    """The error for Ctrl-C during a release. Its text says what is spent and what to do."""


def make_stopped_release(
    reservation: str | None, *, is_made: bool, epsilon: float, unit_epsilon: float, minutes: int
) -> StoppedRelease:
    """Return the error for a release that its owner stopped with Ctrl-C.

    Parameters:
        reservation: the open reservation, if any.
        is_made: True if the release is committed in the ledger.
        epsilon: the charge to each group.
        unit_epsilon: the charge to each privacy unit; 0 if each row is one.
        minutes: the number of minutes for which the same release is refused.
    """
    if is_made:
        return StoppedRelease("Stopped. The release was made and is paid. Ask again: it costs nothing.")
    if reservation is None:
        return StoppedRelease("Stopped. Nothing was spent.")
    unit = f" and {unit_epsilon:g} of each privacy unit" if unit_epsilon else ""
    return StoppedRelease(
        f"Stopped. {epsilon:g} epsilon of each group{unit} stay spent, since data may have been read "
        f"(reservation {reservation}).\n"
        f"The same release is refused (KH313) for {minutes} minutes. To ask, and pay, anew at once, close it first:\n"
        f"    {_write_settle(reservation)}"
    )


def make_unknown_stopped_release() -> StoppedRelease:
    """Return the error for a release stopped with Ctrl-C, if the ledger cannot be read."""
    return StoppedRelease(
        "Stopped. The ledger cannot be read, so it is unknown what stays spent: see keyhole ledger list --open."
    )


def _write_settle(reservation: str) -> str:
    return f'keyhole ledger settle {reservation} --spent --why "stopped"'


def refuse_unknown_table(name: str, catalog: Catalog) -> KeyholeError:
    """Return the refusal of a table that the policy does not have."""
    known = ", ".join(one.name for one in catalog.tables)
    return KeyholeError("KH201", f'the policy has no private table "{name}"', hint=f"There are: {known}.")


def refuse_unread_expression(flag: str, text: str, *, readable: str | None) -> KeyholeError:
    """Return the refusal of a flag whose text is not an expression over one row.

    `readable` is a corrected flag, if there is one.
    """
    return KeyholeError(
        "KH100",
        f"{flag} {text[:80]} cannot be read as SQL",
        detail="A name with blanks or capitals stands in double quotes, a text in single ones, and a decimal has a "
        "point. Nothing was read or spent.",
        hint=f"Write {readable}" if readable is not None else None,
    )


def refuse_outcome(text: str) -> KeyholeError:
    """Return the refusal of an outcome that is neither a condition nor always 0 or 1."""
    return KeyholeError(
        "KH314",
        f"{text[:80]} is neither a condition nor a number that is 0 or 1",
        detail="A curve of scores compares two kinds of rows. Nothing was read or spent.",
        hint='Say which rows are positive, such as --outcome "y > 0"; or declare bounds = [0, 1] of a column of '
        "whole numbers.",
    )


def refuse_score(text: str) -> KeyholeError:
    """Return the refusal of a score that may lie outside 0 to 1, and so cannot be compared with outcomes."""
    return KeyholeError(
        "KH314",
        f"{text[:80]} has values outside 0 to 1, so it is no probability to compare outcomes with",
        detail="The bounds that the policy declares say so. Nothing was read or spent.",
        hint='Give the probability itself, such as --score "score / 100.0"; an ROC curve takes scores of any range.',
    )


def refuse_constant(text: str) -> KeyholeError:
    """Return the refusal of a score or outcome that is publicly known to be the same for all rows."""
    return KeyholeError(
        "KH314",
        f"{text[:80]} has the same value on every row that can be asked about",
        detail="That follows from the policy and the condition on rows. Nothing was read or spent.",
        hint="Ask with another expression, or without the condition that fixes it.",
    )


def refuse_never_positive(text: str) -> KeyholeError:
    """Return the refusal of an outcome or score that no row with declared values makes positive."""
    return KeyholeError(
        "KH314",
        f"{text[:80]} holds on no row that has the values which the policy declares",
        detail="The bounds and key values of its columns leave no such row. Nothing was read or spent.",
        hint="Ask about declared values, or declare the bounds and key values that the columns really have.",
    )


def refuse_always_positive(text: str) -> KeyholeError:
    """Return the refusal of an outcome or score that every row with declared values makes positive."""
    return KeyholeError(
        "KH314",
        f"{text[:80]} holds on every row that has the values which the policy declares",
        detail="The bounds and key values of its columns leave no other row. Nothing was read or spent.",
        hint="Ask with a condition that holds for some rows and not for others.",
    )


def refuse_no_rows(where: str) -> KeyholeError:
    """Return the refusal of a condition that no row with declared values can meet."""
    return KeyholeError(
        "KH315",
        f"--where {where[:80]} leaves no row with values that the policy declares",
        detail="So the release would have no group. Nothing was read or spent.",
        hint="Ask about declared values, or declare the bounds and key values that the columns really have.",
    )


def refuse_many_curves(groups: int, *, most: int) -> KeyholeError:
    """Return the refusal of more groups than a diagnosis may have."""
    return KeyholeError(
        "KH315",
        f"{groups:,} groups would each have a curve; at most {most:,} can",
        hint="Name fewer grouping columns with --by, or leave groups out with --where.",
    )


def refuse_pinned_lookup(table: str) -> KeyholeError:
    """Return the refusal of a release whose groups come from a lookup in a long public table."""
    return KeyholeError(
        "KH315",
        f'the groups of "{table}" are looked up among more public values than a release can name',
        hint="Group by a column of the table itself.",
    )


def refuse_many_cells(cells: int, *, most: int) -> KeyholeError:
    """Return the refusal of more combinations of public values than a published table may have."""
    return KeyholeError(
        "KH315",
        f"{cells:,} combinations of public values would each have a count; at most {most:,} can",
        hint="Publish fewer columns, or columns with fewer public values.",
    )


def refuse_unprotected(method: str) -> KeyholeError:
    """Return the refusal of a method that no budget covers, which the owner has not explicitly allowed."""
    return KeyholeError(
        "KH316",
        f"--method {method} is not differentially private, and shows who is in the table",
        detail="Nothing was read. No budget covers this file, and the ledger records that for good.",
        hint="Publish noisy counts with --method table, or confirm with --not-differentially-private.",
    )


def refuse_live_table(table: str) -> KeyholeError:
    """Return the refusal of a perturbation of a live table.

    Such a table has no version, so the draw could be repeated.
    """
    return KeyholeError(
        "KH317",
        f'"{table}" is live, so the same rows could be perturbed many times and averaged',
        detail="Nothing was read.",
        hint='Declare refresh = "explicit" for the table, or publish noisy counts with --method table.',
    )


def refuse_second_draw(file: str, digest: str) -> KeyholeError:
    """Return the refusal of a repeated perturbation of the same rows, which would be a second draw of noise."""
    return KeyholeError(
        "KH317",
        f"the same was published before, as {file}, and two files could be averaged",
        detail=f"That file is in another place than this one would be. Its SHA-256 is {digest}. Nothing was read.",
        hint="Hand out a copy of that file, or publish noisy counts with --method table.",
    )
