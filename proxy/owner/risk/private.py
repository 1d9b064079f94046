"""The sections of `--private`, for the owner alone: true group sizes, true shares, and rows that bounding cuts.

Only the source is read, and neither ledger nor pins are changed. No other section uses these figures.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from mechanisms.formula import TRUE, Integers
from mechanisms.risk.disclosure import compute_jump
from mechanisms.risk.share_learning import SharePair, compute_chance
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog
from planner.functionals.said_shares import ShareThreshold
from planner.functionals.unit_rows import make_existence
from planner.lower.scan import rewrite
from planner.parser.lexer import quote_identifier
from planner.policy.file import Policy
from planner.question.question import Functional, Measure, Question
from planner.statements import settings
from proxy.open_policy.pins import read_pinned_catalog
from proxy.open_policy.service import OWNER
from proxy.owner.measure import GroupingLeftOut, measure_groupings
from proxy.owner.risk.figures import write_loss, write_probability
from proxy.owner.risk.groups import JUMP
from proxy.owner.risk.open_keys import Key, make_key_text
from proxy.owner.risk.question_risks import RiskQuestion
from proxy.owner.risk.sensitive import SensitiveValue
from proxy.pipeline.messages import read_bare_question
from proxy.report.html.page import PageTable, Part
from proxy.report.section import ReportSection
from proxy.sources.protocol import Source
from proxy.sources.shared import open_policy_source

WIDTH, SURELY = 0.2, 0.7
"""As published: a share is known to within a fifth, 7 times in 10."""

_ANY = 2**40  # a unit's rows or steps in a group, where nothing is clipped: what is told is the truth
_ROUNDING = 1e-9  # three times a share is that, whatever floats make of it
_MOST_LISTED = 20  # groups of a table that a person reads; a program gets all


@dataclass(frozen=True, slots=True)
class OwnerSource:
    """The open source and pinned catalog of a policy, for exact figures that only the owner may see."""

    source: Source
    catalog: Catalog

    def count(self, question: Question, functionals: Sequence[Functional]) -> Integers:
        """Return the true values of other functionals over the groups of a question.

        Raise KH501 if reading the source fails.
        """
        asked = replace(
            question,
            functionals=tuple(functionals),
            atoms=(),
            formula=TRUE,
            predicates=(),
            predicate_names=(),
            publicly_false_keys=(),
            publicly_null_keys=(),
            null_predicates=(),
            ranked=None,
        )
        rewritten = rewrite(asked, dialect=self.source.dialect)
        timeout_ms = self.catalog.statement_timeout_ms
        with self.source.take_turn(analyst=OWNER.name, timeout_ms=timeout_ms):
            found = self.source.read_aggregates(
                rewritten, asked.keys, functionals=len(asked.functionals), timeout_ms=timeout_ms
            )
        return found.values

    def count_keys(self, question: RiskQuestion) -> Mapping[Key, int]:
        """Return the true count of each key, for a question with one count. Raise KH501 if reading the source fails."""
        asked = question.plan.question
        (values,) = self.count(asked, asked.functionals)
        return {make_key_text(asked.keys.get_key(index)): int(value) for index, value in enumerate(values)}


@contextmanager
def open_owner_source(policy_path: Policy) -> Iterator[OwnerSource]:
    """Open a policy's source for the owner. Raise KH002 to KH010."""
    source = open_policy_source(policy_path)
    try:
        yield OwnerSource(source, read_pinned_catalog(policy_path, source))
    finally:
        source.close()


@dataclass(frozen=True, slots=True)
class TrueShare:
    """One group: its size, how many members have the value, and the probability that an attacker learns that share."""

    key: Key
    group: int
    holders: int
    jump: float
    chance: float

    @property
    def is_disclosed(self) -> bool:
        """True if the published rule counts this share as disclosed."""
        return self.chance >= SURELY and self.jump >= JUMP * (1 - _ROUNDING)


def write_shares_section(
    reading: OwnerSource, questions: Sequence[RiskQuestion], sensitive: Sequence[SensitiveValue], *, epsilon: float
) -> ReportSection:
    """Return the report's section on disclosures, for each question.

    A disclosure is a group whose share is high and can be learned within the epsilon.
    """
    parts: list[Part] = [
        f"A share is disclosed where it is {JUMP:g} times as frequent in a group as everywhere, and the true size lets "
        f"anybody learn it to within {100 * WIDTH:g} % of itself, 7 times in 10, with epsilon "
        f"{write_loss(epsilon)}. This is about groups, and reveals nobody's presence."
    ]
    figures: list[dict[str, object]] = []
    for question in questions:
        made = question.plan.question
        if made.per_unit is not None or made.table.members or not made.keys.columns:
            parts.append(f"{question.name}: not worked out, for it joins, adds up units or has no groups.")
            continue
        for true in _list_shares(reading, question, sensitive):
            found = true.judge(made, epsilon=epsilon)
            parts += _show(question, true, found)
            figures.append(_make_document(question, true, found))
    if not figures:
        parts.append(
            "No question given compares a share with a number, and no sensitive value was declared (--sensitive)."
        )
    return ReportSection("true_shares", "True shares, and which are disclosed", tuple(parts), {"shares": figures})


@dataclass(frozen=True, slots=True, eq=False)
class CountedShare:
    """The true sizes of all groups, and how many members of each have a value.

    `members` says if the members are units or rows. One unit is at most `most` members, so the noise is `most` times as
    wide. `base_rate` is the value's share among all members, or None if no member has it.
    """

    name: str
    members: str
    most: int
    groups: Integers
    holders: Integers
    base_rate: float | None

    def judge(self, made: Question, *, epsilon: float) -> list[TrueShare]:
        """Return the share of each group, with what an attacker can learn about it within an epsilon.

        Disclosed shares come first. Shares are sorted by how far they exceed the base rate.
        """
        if self.base_rate is None or epsilon <= 0:
            return []
        pair = SharePair.HOLDERS_AND_OTHERS if made.table.is_row_unit else SharePair.GROUP_AND_HOLDERS
        found = []
        for index, (group, holders) in enumerate(zip(self.groups.tolist(), self.holders.tolist(), strict=True)):
            if 0 < holders <= group:
                higher = compute_jump(group=group, holders=holders, base_rate=self.base_rate)
                chance = compute_chance(WIDTH, group=group, holders=holders, epsilon=epsilon / self.most, pair=pair)
                found.append(TrueShare(make_key_text(made.keys.get_key(index)), group, holders, higher, chance))
        return sorted(found, key=lambda one: (not one.is_disclosed, -one.jump, one.key))


def _list_shares(
    reading: OwnerSource, question: RiskQuestion, sensitive: Sequence[SensitiveValue]
) -> Iterator[CountedShare]:
    """Yield the shares whose risk is reported: those that the question compares, then those of declared values."""
    made = question.plan.question
    declared = {one.typed_text: one for one in sensitive}
    for said in question.shares:
        known = next((one for one in sensitive if one.is_counted_by(said)), None)
        if known is not None and made.table.is_row_unit:
            declared.pop(known.typed_text, None)
        yield _count_shares(reading, made, said, None if known is None else known.base_rate)
    for one in declared.values():
        if any(column.name == one.column for column in made.table.columns):
            yield _count_value(reading, made, one)


def _count_shares(reading: OwnerSource, made: Question, said: ShareThreshold, base_rate: float | None) -> CountedShare:
    """Count the members and holders of a share that the question compares.

    They are sums over rows, each alone and unclipped, or over units.
    """
    functional = made.functionals[said.functional]
    gained, lost = (
        next(term for term in functional.terms if (term.coefficient > 0) == positive) for positive in (True, False)
    )
    of_units = functional.measure is Measure.UNIT_SUM
    alone = [
        make_existence(replace(term, coefficient=1))
        if of_units
        else replace(
            functional,
            measure=Measure.TOTAL,
            terms=(replace(term, coefficient=1),),
            sensitivity=_ANY,
            unit_range=None if functional.unit_range is None else (-_ANY, _ANY),
            offsets=None,
        )
        for term in (gained, lost)
    ]
    part, whole = reading.count(made, alone)
    scale = float(said.share) * gained.coefficient / -lost.coefficient
    holders = np.asarray(np.rint(part * scale), dtype=np.int64)
    everywhere = int(holders.sum()) / max(1, int(whole.sum())) or None
    cap = made.table.row_cap
    most = 1 if made.table.is_row_unit or of_units else cap.rows if cap is not None else made.table.rows_per_unit or 1
    return CountedShare(said.text, "units" if of_units else "rows", most, whole, holders, base_rate or everywhere)


def _count_value(reading: OwnerSource, made: Question, value: SensitiveValue) -> CountedShare:
    """Count the units of each group, and those with a sensitive value.

    A unit is one row, or has the value if one of its rows in the group has it. Raise KH1xx and KH2xx if no question can
    ask for the value.
    """
    keys = ", ".join(map(quote_identifier, made.keys.names))
    text = value.value.replace("'", "''")
    counted = f"count(*) FILTER (WHERE {quote_identifier(value.column)} = '{text}') > 1000000 AND count(*) > 1000000"
    sql = f"SELECT {keys} FROM {quote_identifier(made.table.name)} GROUP BY {keys} HAVING {counted}"
    accuracy = settings.read_accuracy({}, reading.catalog.defaults)
    today = datetime.now(UTC).date()
    asked = bind_question(
        read_bare_question(sql, reading.catalog),
        reading.catalog,
        accuracy=accuracy,
        parameters={},
        today=today,
        is_utc=True,
    )
    with_it, everybody = (one if made.table.is_row_unit else make_existence(one.terms[0]) for one in asked.functionals)
    holders, whole = reading.count(replace(asked, keys=made.keys, where=made.where), (with_it, everybody))
    return CountedShare(
        value.typed_text, "rows" if made.table.is_row_unit else "units", 1, whole, holders, value.base_rate
    )


def _show(question: RiskQuestion, true: CountedShare, found: Sequence[TrueShare]) -> Iterator[Part]:
    columns = (*question.plan.question.keys.names, true.members, "with it", "share", "times as usual", "learned")
    disclosed = [one for one in found if one.is_disclosed]
    groups = int(np.count_nonzero(true.groups > 0))
    rate = "nobody has it" if true.base_rate is None else f"everywhere {100 * true.base_rate:.2f} %"
    yield (
        f"{question.name}, {true.name}: {rate}; {len(disclosed):,} of {groups:,} groups that are not empty are "
        "disclosed."
    )
    if found:
        rows = tuple(
            (
                *one.key,
                f"{one.group:,}",
                f"{one.holders:,}",
                f"{100 * one.holders / one.group:.1f} %",
                f"{one.jump:.2f}",
                write_probability(one.chance) + (", disclosed" if one.is_disclosed else ""),
            )
            for one in found[:_MOST_LISTED]
        )
        left = f"; {len(found) - _MOST_LISTED:,} more are not shown" if len(found) > _MOST_LISTED else ""
        yield PageTable(columns, rows, title=f"Groups of {question.name}, the disclosed ones first{left}")


def _make_document(question: RiskQuestion, true: CountedShare, found: Sequence[TrueShare]) -> dict[str, object]:
    return {
        "question": question.name,
        "share_of": true.name,
        "members": true.members,
        "base_rate": true.base_rate,
        "disclosed": sum(one.is_disclosed for one in found),
        "groups": [
            {
                "key": list(one.key),
                "size": one.group,
                "holders": one.holders,
                "jump": one.jump,
                "chance": one.chance,
                "disclosed": one.is_disclosed,
            }
            for one in found
        ],
    }


def write_bounding_section(reading: OwnerSource, questions: Sequence[RiskQuestion]) -> ReportSection:
    """Return the report's section on the units and rows of each question that contribution bounds leave out."""
    rows: list[tuple[str, ...]] = []
    figures: list[dict[str, object]] = []
    notes: list[Part] = []
    for question in questions:
        made = question.plan.question
        if made.table.members or made.per_unit is not None:
            notes.append(f"{question.name}: not measured, for it joins or adds up units.")
            continue
        if made.table.is_row_unit:
            notes.append(
                f"{question.name}: no row is cut, for each row is its own unit. What clipping values to their bounds "
                "changes, keyhole check --measure says."
            )
            continue
        table = reading.catalog.find_table(made.table.name)
        assert table is not None
        (found,) = measure_groupings(table, [made.keys.columns], reading.source)
        rows.append(_make_row(question.name, found))
        figures.append(_make_left_out_document(question.name, found))
    parts: list[Part] = [
        "Answers keep their promised error rates about what is left of each unit after bounding. This is what "
        "bounding takes away from all rows, before any WHERE. Bounds chosen by these figures would reveal them.",
        *notes,
    ]
    if rows:
        columns = ("question", "units", "units cut", "of units in groups", "of rows", "of totals")
        parts.append(PageTable(columns, tuple(rows), title="Left out"))
    return ReportSection("bounding", "What bounding really cuts", tuple(parts), {"questions": figures})


def _make_row(name: str, found: GroupingLeftOut) -> tuple[str, ...]:
    totals = "; ".join(f"{_write_percent(kept.left_out)} of {column}" for column, kept in found.totals)
    return (
        name,
        f"{found.units:,}",
        f"{found.units_cut:,}",
        _write_percent(found.memberships.left_out),
        _write_percent(found.rows.left_out),
        totals,
    )


def _make_left_out_document(name: str, found: GroupingLeftOut) -> dict[str, object]:
    return {
        "question": name,
        "units": found.units,
        "units_cut": found.units_cut,
        "memberships_left_out": found.memberships.left_out,
        "rows_left_out": found.rows.left_out,
        "totals_left_out": {column: kept.left_out for column, kept in found.totals},
    }


def _write_percent(part: float) -> str:
    return f"{100 * part:.1f} %"
