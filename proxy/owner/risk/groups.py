"""The section on groups whose shares an attacker can learn: the smallest such size, and the sizes of asked groups."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from mechanisms.risk.share_learning import SharePair, compute_chance, find_least_group
from planner.explain.expected_bounding import ASSUMPTIONS, ExpectedClipping, list_expected_clipping
from planner.explain.rounded_numbers import write_percent
from planner.policy.file import Policy
from planner.question.unit_groups import count_unit_groups
from proxy.owner.risk.figures import write_loss, write_probability
from proxy.owner.risk.question_risks import RiskQuestion
from proxy.owner.risk.sensitive import SensitiveValue
from proxy.report.html.page import PageTable, Part
from proxy.report.section import ReportSection

JUMP = 3.0  # times as frequent in a group as everywhere, as published: from here on a share is a disclosure
_WIDTHS = (0.1, 0.2, 0.3)  # within which a share counts as learned, relative: a tenth, a fifth, a third of it
_WIDTH = 0.2  # the published one of these
_SHARES = (0.3, 0.5, 0.8)  # of a group: a minority, half, nearly all
_SURELY = 0.7  # how surely, as published: 7 times in 10
_ASSUMED = "; ".join(ASSUMPTIONS)
_LEAST = 0.001  # of a loss: below, groups whose shares are learned are larger than tables


@dataclass(frozen=True, slots=True)
class DeclaredSizes:
    """The numbers of privacy units and of rows that the owner has declared. None means not declared."""

    units: int | None
    rows: int | None


@dataclass(frozen=True, slots=True)
class GroupsInput:
    """The input of the section. `epsilon` is the spent loss if `is_spent`, and otherwise the largest possible one."""

    policy: Policy
    questions: tuple[RiskQuestion, ...]
    epsilon: float
    sizes: DeclaredSizes
    sensitive: tuple[SensitiveValue, ...]
    is_spent: bool

    @property
    def has_row_unit(self) -> bool:
        """Return True if each row is a unit in some table. Attackers learn more then."""
        return any(section.privacy_unit == () for section in self.policy.private_tables.values())

    @property
    def share_pair(self) -> SharePair:
        """The two counts from which the best attacker computes a share."""
        return SharePair.HOLDERS_AND_OTHERS if self.has_row_unit else SharePair.GROUP_AND_HOLDERS


def write_groups_section(asked: GroupsInput) -> ReportSection:
    """Return the report's section on the smallest groups whose shares can be learned, and on the asked groups."""
    title, epsilon = "Groups whose shares anybody can learn", asked.epsilon
    source = "the group that lost most has lost" if asked.is_spent else "a group may lose"
    if epsilon < _LEAST:
        told = (
            f"With what {source} (epsilon {write_loss(epsilon)}) no share of a group of any usual size can be learned."
        )
        return ReportSection("groups", title, (told,), {"epsilon": epsilon, "least": []})
    members = "rows" if asked.has_row_unit else "units"
    found = {(width, part): _find_least_group(asked, width, part) for width in _WIDTHS for part in _SHARES}
    rows = tuple((f"{100 * width:g} %", *(f"{found[width, part]:,}" for part in _SHARES)) for width in _WIDTHS)
    columns = ("to within", *(f"{100 * part:g} % have it" for part in _SHARES))
    parts: list[Part] = [
        f"With what {source} (epsilon {write_loss(epsilon)}) anybody can learn which share of a group has some "
        "yes-or-no "
        f"property, 7 times in 10, already in groups of so many {members}:",
        PageTable(columns, rows),
        "For other shares, the nearest column holds. The width is relative to the share. Answers are meant to show "
        "such facts about groups. They are not about taking part, so no promise about presence prevents this. If such "
        "a share is itself sensitive, do not declare the column, or make groups coarser.",
    ]
    least = [{"within": width, "share": part, "least_group": size} for (width, part), size in found.items()]
    figures: dict[str, object] = {"epsilon": epsilon, "surely": _SURELY, "least": least}
    if asked.sensitive:
        known = [(one, _find_least_group(asked, _WIDTH, min(1.0, JUMP * one.base_rate))) for one in asked.sensitive]
        parts += [_describe_sensitive(one, size, members) for one, size in known]
        figures["sensitive"] = [
            {"value": one.typed_text, "base_rate": one.base_rate, "jump": JUMP, "least_group": size}
            for one, size in known
        ]
    sized = [(question, _find_units_per_group(question, asked.sizes)) for question in asked.questions]
    told_sizes = [(question, size) for question, size in sized if size is not None]
    if told_sizes:
        parts += _describe_sizes(asked, told_sizes)
        figures["declared"] = [
            {"question": question.name, "units_a_group": size, "learned": _list_chances(asked, size)}
            for question, size in told_sizes
        ]
    return ReportSection("groups", title, tuple(parts), figures)


def _find_least_group(asked: GroupsInput, width: float, part: float) -> int:
    return find_least_group(part, width=width, certainty=_SURELY, epsilon=asked.epsilon, pair=asked.share_pair)


def _describe_sensitive(value: SensitiveValue, size: int, members: str) -> str:
    most = min(1.0, JUMP * value.base_rate)
    return (
        f"{value.typed_text}, which {100 * value.base_rate:g} % of everybody have: where {100 * most:g} % have it "
        f"({most / value.base_rate:.3g} times as many), that can be learned to within a fifth in groups of {size:,} "
        f"{members} or more."
    )


def _find_units_per_group(question: RiskQuestion, sizes: DeclaredSizes) -> float | None:
    """Return the mean number of units in one group of the question, or None if no size was declared."""
    made = question.plan.question
    units = sizes.units if sizes.units is not None else sizes.rows if made.table.is_row_unit else None
    if units is None or made.keys.size == 0:
        return None
    return units * count_unit_groups(made) / made.keys.size


def _list_chances(asked: GroupsInput, size: float) -> list[dict[str, float]]:
    """Return, for each share, the probability that an attacker learns it within a fifth, in a group of that size."""
    group = max(2, ceil(size))
    return [{"share": part, "chance": _find_chance(asked, group, part)} for part in _SHARES]


def _find_chance(asked: GroupsInput, group: int, part: float) -> float:
    holders = min(group, max(1, round(part * group)))
    return compute_chance(_WIDTH, group=group, holders=holders, epsilon=asked.epsilon, pair=asked.share_pair)


def _describe_sizes(asked: GroupsInput, sized: Sequence[tuple[RiskQuestion, float]]) -> Iterator[Part]:
    rows = tuple(
        (question.name, f"{size:,.1f}", *(write_probability(one["chance"]) for one in _list_chances(asked, size)))
        for question, size in sized
    )
    columns = ("question", "units a group", *(f"{100 * part:g} % have it" for part in _SHARES))
    yield "By the declared sizes, how surely shares of a group of average size can be learned to within a fifth:"
    yield PageTable(columns, rows)
    cut = [told for question, _ in sized if (told := _expect_cut(question, asked.sizes)) is not None]
    if cut:
        yield f"Bounding is expected to cut {'; '.join(cut)}. That takes for granted that of a unit {_ASSUMED}."


def _expect_cut(question: RiskQuestion, sizes: DeclaredSizes) -> str | None:
    """Return in words the share of rows that bounding probably cuts, from the declared rows of a unit."""
    if sizes.units is None or sizes.rows is None:
        return None
    cuts = list_expected_clipping(question.plan, mean_rows=sizes.rows / sizes.units, groups=None)
    if not cuts:
        return None
    told = ", ".join(f"{_write_range(one)} of {one.name}" for one in cuts if one.concentrated_share > 0)
    return f"of {question.name} {told}" if told else None


def _write_range(cut: ExpectedClipping) -> str:
    least, most = write_percent(cut.spread_share, places=2), write_percent(cut.concentrated_share, places=2)
    return most if least == most else f"{least} to {most}"
