"""The log of questions for owners: one line for each question, or one question in full. Losses are exact."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np

from accountant.charges import NANO, ROW_UNIT, Spent
from accountant.events.owner_events import Published
from accountant.reports.history import AskedQuestion
from planner.catalog.key_space import quote_in_row
from proxy.open_policy.accounts import read_label
from proxy.report.terminal import make_visible, write_psql_table

SHORT_ID = 12  # hexadecimal digits of an id: 48 bits tell any ledger's questions apart, and can be copied by hand
SHOWN_LOSSES = 12  # lines of different losses of one question; the rest is summed up in one
SHOWN_KEYS = 3  # names of groups behind each loss, as examples

SHOWN_TEXT = 100  # characters of a question in a list: keys and threshold of most, a line of a wide terminal

_OF_PUBLISHED = ("when", "by", "why", "table", "method", "file", "sha-256")
_HEADINGS = ("when", "reservation", "analyst", "question", "about", "groups", "worst case", "cost", "status", "reuse")


def list_question_lines(questions: Sequence[AskedQuestion]) -> Iterator[str]:
    """Yield the lines of a table as psql prints it, with one row for each question."""
    yield from write_psql_table(_HEADINGS, [_make_line(question) for question in questions])


def _make_line(question: AskedQuestion) -> tuple[str, ...]:
    charge = question.charge
    return (
        question.asked_at.isoformat(sep=" ", timespec="seconds"),
        question.reservation[:SHORT_ID],
        charge.analyst,
        charge.question[:SHORT_ID],
        _shorten(describe_subject(question)),
        f"{charge.cells.key_count:,}",
        write_epsilon(charge.epsilon_nano),
        write_epsilon(find_cost(question)),
        question.status,
        describe_reuse(question),
    )


def _shorten(text: str) -> str:
    return text if len(text) <= SHOWN_TEXT else f"{text[: SHOWN_TEXT - 4]} ..."


def describe_subject(question: AskedQuestion) -> str:
    """Return the question's text. If no text was stored, describe table, grouping columns and filter."""
    if question.wording is not None and question.wording.text is not None:
        return question.wording.text
    return _describe_family(question)


def _describe_family(question: AskedQuestion) -> str:
    family = question.charge.family
    keys = ", ".join(read_label(label) for label in family.columns)
    return f"{family.table}{f' by {keys}' if keys else ''}{f' where {family.filter}' if family.filter else ''}"


def find_cost(question: AskedQuestion) -> int:
    """Return the largest loss of a key, in 1e-9 epsilon.

    For an open reservation, return the worst case. For a released one, return 0.
    """
    if question.spent is not None:
        return question.spent.epsilon_nano
    if question.largest_losses is not None:
        return question.largest_losses.epsilon_nano
    return 0 if question.status == "released" else question.charge.epsilon_nano


def describe_reuse(question: AskedQuestion) -> str:
    """Return in words which earlier answer or noise a question used."""
    charge = question.charge
    if question.read_reservation is not None:
        return f"the answer of {question.read_reservation[:SHORT_ID]}"
    if not charge.shared:
        return "noise paths, nothing new"
    if charge.path_continuation is not None:
        news = (
            charge.path_continuation.shared_loss
            if question.spent is None
            else question.spent.find_shared_part(charge).largest_losses
        )
        paths = len(charge.path_continuation.paths)
        return f"{paths} noise path{'' if paths == 1 else 's'}, new {write_epsilon(news.epsilon_nano)}"
    return ""


def show_question(question: AskedQuestion) -> Iterator[str]:
    """Yield all lines about one question, with its losses per key from the largest down."""
    facts = describe_question(question)
    wide = max(len(name) for name, _ in facts)
    yield from (f"{name.ljust(wide)}  {make_visible(told)}" for name, told in facts)
    if question.spent is not None:
        yield ""
        yield from _list_losses(question, question.spent)


def describe_question(question: AskedQuestion) -> list[tuple[str, str]]:
    """Return everything about one question except the losses of its keys, as pairs of name and text."""
    charge = question.charge
    family = charge.family
    unit = "each row by itself" if family.unit == ROW_UNIT else f"each ({family.unit.replace(',', ', ')})"
    facts = [
        ("reservation", question.reservation),
        ("reserved at", question.asked_at.isoformat(sep=" ", timespec="seconds")),
        ("window", str(question.window_number)),
        ("analyst", charge.analyst),
        ("question", charge.question),
        ("about", _describe_family(question)),
        *_describe_wording(question),
        ("data version", family.version),
        ("protects", unit),
        ("groups", f"{charge.cells.key_count:,}"),
        ("worst case", _write_amounts(charge.epsilon_nano, charge.unit_epsilon_nano, unit=family.unit)),
        ("status", question.status),
    ]
    if charge.renyi is not None:
        facts.insert(-1, ("unit counts", "Rényi divergences, where the policy has a delta"))
    if charge.cell_renyi is not None:
        facts.insert(-1, ("group counts", "Rényi divergences, where the policy has a delta_per_cell"))
    if question.monitor is not None:
        facts.insert(-1, ("monitor", question.monitor))
    if question.largest_losses is not None:
        most = question.largest_losses
        facts.append(("cost at most", _write_amounts(most.epsilon_nano, most.unit_epsilon_nano, unit=family.unit)))
    if question.spent is not None:
        spent = question.spent
        facts.append(("cost", _write_amounts(spent.epsilon_nano, spent.unit_epsilon_nano, unit=family.unit)))
        news = spent.find_shared_part(charge)
        if news is not spent:
            facts.append(("new to all", _write_amounts(news.epsilon_nano, news.unit_epsilon_nano, unit=family.unit)))
    if describe_reuse(question):
        facts.append(("reuses", describe_reuse(question)))
    if question.settled_by is not None:
        facts.append(("settled by", f"{question.settled_by}: {question.settled_why}"))
    return facts


def _describe_wording(question: AskedQuestion) -> Iterator[tuple[str, str]]:
    wording = question.wording
    if wording is not None:
        yield "asked", "not kept" if wording.text is None else wording.text
        yield "promised", wording.guarantee


def _list_losses(question: AskedQuestion, spent: Spent) -> Iterator[str]:
    levels = list_loss_levels(question, spent)
    rows = [
        (write_epsilon(loss), f"{count:,}", "; ".join(names) + (" ..." if count > len(names) else ""))
        for loss, count, names in levels[:SHOWN_LOSSES]
    ]
    yield from write_psql_table(("loss of a group", "groups", "such as"), rows)
    if len(levels) > SHOWN_LOSSES:
        rest = sum(count for _, count, _ in levels[SHOWN_LOSSES:])
        yield f"and {rest:,} groups with {len(levels) - SHOWN_LOSSES:,} smaller losses"


def list_loss_levels(question: AskedQuestion, spent: Spent) -> list[tuple[int, int, tuple[str, ...]]]:
    """Return the distinct losses from the largest down, each with the number of its keys and some of them."""
    cells = question.charge.cells
    losses = np.broadcast_to(spent.read_amounts(cells), cells.shape_by_column).reshape(-1)
    levels = []
    for loss, count in reversed(list(zip(*np.unique(losses, return_counts=True), strict=True))):
        places = islice(np.flatnonzero(losses == loss).tolist(), SHOWN_KEYS)
        levels.append((int(loss), int(count), tuple(_write_key(question, place) for place in places)))
    return levels


def _write_key(question: AskedQuestion, place: int) -> str:
    cells = question.charge.cells
    if not cells.columns:
        return "the whole table"
    indices = np.unravel_index(place, cells.shape_by_column)
    return ", ".join(
        quote_in_row(values[int(index)]) for (_, values), index in zip(cells.columns, indices, strict=True)
    )


def list_published_lines(published: Sequence[Published]) -> Iterator[str]:
    """Yield the lines of a psql table of published files that no budget covers, newest first.

    Yield nothing if there are none.
    """
    if published:
        yield ""
        yield "Published; no budget covers these:"
        yield from write_psql_table(_OF_PUBLISHED, [_make_published_line(one) for one in reversed(published)])


def _make_published_line(one: Published) -> tuple[str, ...]:
    when = one.at.isoformat(sep=" ", timespec="seconds")
    return when, one.by, one.why, one.table, one.method, one.file, one.file_hash[:SHORT_ID]


def make_published_document(one: Published) -> dict[str, Any]:
    """Return a published file that no budget covers as a JSON document."""
    return {
        "published_at": one.at.isoformat(),
        "by": one.by,
        "why": one.why,
        "table": one.table,
        "data_version": one.version,
        "status": "published",
        "method": one.method,
        "file": one.file,
        "sha256": one.file_hash,
        "statement": one.statement,
    }


def make_document(question: AskedQuestion) -> dict[str, Any]:
    """Return one question as a JSON document, with amounts in epsilon."""
    charge, family, spent = question.charge, question.charge.family, question.spent
    most = question.largest_losses if spent is None else spent.largest_losses
    found: dict[str, Any] = {
        "reservation": question.reservation,
        "reserved_at": question.asked_at.isoformat(),
        "window": question.window_number,
        "analyst": charge.analyst,
        "question": charge.question,
        "table": family.table,
        "grouped_by": [read_label(label) for label in family.columns],
        "filter": family.filter,
        "text": None if question.wording is None else question.wording.text,
        "guarantee": None if question.wording is None else question.wording.guarantee,
        "data_version": family.version,
        "privacy_unit": family.unit,
        "groups": charge.cells.key_count,
        "status": question.status,
        "reads": question.read_reservation,
        "continues_paths": 0 if charge.path_continuation is None else len(charge.path_continuation.paths),
        "worst_case_epsilon": charge.epsilon_nano / NANO,
        "worst_case_unit_epsilon": charge.unit_epsilon_nano / NANO,
        "epsilon": None if most is None else most.epsilon_nano / NANO,
        "unit_epsilon": None if most is None else most.unit_epsilon_nano / NANO,
        "new_epsilon": None if spent is None else spent.find_shared_part(charge).epsilon_nano / NANO,
        "monitor": question.monitor,
        "settled_by": question.settled_by,
        "settled_why": question.settled_why,
    }
    return found


def make_losses_document(question: AskedQuestion) -> list[dict[str, Any]] | None:
    """Return the distinct losses of a question's keys as a JSON document."""
    if question.spent is None:
        return None
    return [
        {"epsilon": loss / NANO, "groups": count, "such_as": list(names)}
        for loss, count, names in list_loss_levels(question, question.spent)
    ]


def write_epsilon(nanos: int) -> str:
    """Return an amount in epsilon as text, to four decimals."""
    return f"{nanos / NANO:.4f}"


def _write_amounts(epsilon_nano: int, unit_nano: int, *, unit: str) -> str:
    per_key = f"{write_epsilon(epsilon_nano)} epsilon a group"
    return per_key if unit == ROW_UNIT else f"{per_key}, {write_epsilon(unit_nano)} a unit"
