"""How Keyhole's default compares with a rival, question by question, at the same contract."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.experiments.runs import Measured
from mechanisms.registry import DEFAULT

BAR_WITH_OR = 0.6
BAR = 1.0


@dataclass(frozen=True, slots=True)
class Duel:
    """The default and a rival on one question, same aggregates and same contract."""

    ours: Measured
    theirs: Measured

    def compute_ratio(self, metric: str) -> float:
        """Our mean over runs by theirs; one where both are zero."""
        ours, theirs = self.ours.spreads[metric].mean, self.theirs.spreads[metric].mean
        return 1.0 if ours == theirs else ours / theirs if theirs else float("inf")

    @property
    def bar(self) -> float:
        """What the ratio of mean losses should not exceed."""
        return BAR_WITH_OR if self.ours.with_or else BAR


@dataclass(frozen=True, slots=True)
class Standing:
    """Some duels: the ratio of summed losses, the worst single ratio, and on how many questions the bar was met."""

    questions: int
    pooled: float
    worst: float
    met: int


def list_duels(measured: Sequence[Measured], rival: str) -> list[Duel]:
    """All questions on which both took part with the same contract, in order."""
    theirs = {_identify_question(m): m for m in measured if m.label == rival and not m.refused}
    ours = [m for m in measured if m.label == DEFAULT and not m.refused]
    return [Duel(m, theirs[_identify_question(m)]) for m in ours if _identify_question(m) in theirs]


def sum_duels(found: Sequence[Duel], metric: str) -> Standing:
    """Sum up duels; at least one."""
    ours = sum(duel.ours.spreads[metric].mean for duel in found)
    theirs = sum(duel.theirs.spreads[metric].mean for duel in found)
    ratios = [duel.compute_ratio(metric) for duel in found]
    return Standing(
        questions=len(found),
        pooled=ours / theirs if theirs else float("inf"),
        worst=max(ratios),
        met=sum(duel.compute_ratio(metric) <= duel.bar for duel in found),
    )


def _identify_question(m: Measured) -> tuple[object, ...]:
    return m.experiment, m.panel, m.x, m.fnr_asked, m.fpr_asked, m.tolerances
