"""The plan of a question: what will be computed, decided and charged, fixed before any data is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from mechanisms.formula import Cut, Formula
from mechanisms.protocol import Calibration, DecisionTask
from mechanisms.ranking.calibration import RankingCalibration
from mechanisms.registry import MECHANISMS, price_baselines
from mechanisms.threshold.joint_loss import expose_all_at_once
from mechanisms.threshold.one_shot import round_up_to_float
from planner.catalog.catalog import Value
from planner.catalog.key_space import KeySpace
from planner.question.question import Question

APART = "apart"
"""What `Calibration.compared` has the loss under that noise on every functional by itself would come to."""


@dataclass(frozen=True, slots=True)
class Minimised:
    """The canonical form of a formula.

    `formula` is the minimal DNF (what is evaluated, relaxed, bounded and printed) or, beyond twelve thresholds, the
    tree as typed without what its own literals settle (`exact` is then false). `implicants` and `clauses` are all prime
    ones, for EXPLAIN.
    """

    formula: Formula
    implicants: tuple[tuple[Cut, ...], ...]
    clauses: tuple[tuple[Cut, ...], ...]
    exact: bool


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """A relation that a statement reads.

    It has its columns by name with the types that the statement was written for, and the columns that the source has to
    keep unique together.
    """

    relation: str
    columns: tuple[tuple[str, str], ...]
    keys: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PinnedColumn:
    """Pinned values as a column of a `PinnedRelation`, row by row: of `type_name` in SQL; `whole`: bigint in fact."""

    name: str
    type_name: str
    whole: bool
    values: tuple[Value | None, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PinnedRelation:
    """Pinned public rows that a statement reads as a relation called `name`, which the source is given with it.

    Equal names mean the same rows: a sha256 of them is part of the name. Nothing that the source itself holds is read.
    """

    name: str
    columns: tuple[PinnedColumn, ...]


@dataclass(frozen=True, slots=True)
class Rollup:
    """The rows of `table` that count, kept by the source for later questions of the same data version.

    `build` is the SELECT whose rows it holds, with an index on column `indexed`, if any. Equal names mean equal builds.
    `sql` answers the question like `Rewritten.sql`, behind a clause `WITH rolled AS (SELECT * FROM it),`. `relations`
    and `pinned` are what `build` reads. `steps` are what `build` defines in front of its `body`, if anything.
    """

    table: str
    name: str
    build: str
    indexed: str | None
    sql: str
    relations: tuple[ReadRelation, ...] = ()
    pinned: tuple[PinnedRelation, ...] = ()
    steps: "tuple[KeptStep, ...]" = ()
    body: str = ""

    def build_from(self, kept: Mapping[str, str]) -> str:
        """Return the SQL of the same rows that reads some steps from relations of the source.

        Parameters:
            kept: the relation that holds a step's rows, by the step's name.
        """
        return _read_kept(self.steps, self.body, kept) if self.steps else self.build


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step that a statement defines in front, and that the source may keep as it keeps a rollup.

    The statement calls it by its `name`. `defined` is its definition in a WITH clause, which reads the steps called
    `reads`. `rows.build` gives its rows by itself; None where the source is not to keep it.
    """

    name: str
    defined: str
    reads: frozenset[str]
    rows: Rollup | None


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Some of a question's keys in its order from place `start` on, and the statement that gives their aggregates."""

    start: int
    keys: KeySpace
    sql: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One-scan SQL for one dialect: key columns first, then one integer column per functional, named f0, f1, ...

    `sql` is empty when the formula is constant: then nothing is read. `rollup` gives the same integers from rows that
    bounding has chosen once for many questions; None where bounding chooses nothing or nothing may be kept.
    `relations` are what it reads: the statement means what the question does while they are as it says. `pinned` are
    public rows that it reads, and that the source does not have. `blocks`, where there are any, give together what
    `sql` gives, read in their order and in one state of the data. `steps` are what `sql` defines in front of its
    `body`, each behind those that it reads; none where nothing may be kept. `apart` gives the same integers where all
    steps that its `body` names are kept, and is expensive where they are not.
    """

    dialect: str
    sql: str
    rollup: Rollup | None = None
    relations: tuple[ReadRelation, ...] = ()
    pinned: tuple[PinnedRelation, ...] = ()
    blocks: tuple[KeyBlock, ...] = ()
    steps: tuple[KeptStep, ...] = ()
    body: str = ""
    apart: "Rewritten | None" = None

    def read_kept(self, kept: Mapping[str, str]) -> str:
        """Return the statement that reads the same rows of some steps from relations of the source.

        Parameters:
            kept: the relation that holds a step's rows, by the step's name.
        """
        return _read_kept(self.steps, self.body, kept)


def _read_kept(steps: Sequence[KeptStep], body: str, kept: Mapping[str, str]) -> str:
    """Return the SQL of a body behind the steps that it reads: from relations that hold their rows, else defined."""
    needed = {step.name for step in steps if step.name in body}
    defined = []
    for step in reversed(steps):
        if step.name not in needed:
            continue
        if step.name in kept:
            defined.append(f"{step.name} AS NOT MATERIALIZED (SELECT * FROM {kept[step.name]})")
        else:
            needed |= step.reads
            defined.append(step.defined)
    return "WITH\n" + ",\n".join(reversed(defined)) + body


@dataclass(frozen=True, slots=True)
class Sharing:
    """That a question pays for noise which other thresholds can share.

    `functionals` have noise on their sums although noise on blocks would cost less: `apart` is the question as numbers
    with that, as `mechanism` decides it where `keyhole.reuse` is off.
    """

    functionals: frozenset[int]
    mechanism: str
    apart: DecisionTask

    @property
    def epsilon_in_blocks(self) -> float:
        """The worst case of the question with noise on blocks, calibrated when it is first asked for."""
        return _worst_case(self.mechanism, self.apart)


@lru_cache(maxsize=128)
def _worst_case(mechanism: str, task: DecisionTask) -> float:
    return MECHANISMS[mechanism].calibrate(task).worst_case_epsilon


def together(calibration: Calibration, ranking: RankingCalibration | None) -> float:
    """Return the highest cost of deciding and ranking a key, rounded up."""
    decided = calibration.worst_case_epsilon
    return decided if ranking is None else round_up_to_float(Fraction(decided) + Fraction(ranking.worst_case_epsilon))


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything decided about a question before data is touched; all of it public.

    `question` is what will be computed: the formula is `minimised.formula`, and only the functionals that it needs are
    left, in canonical order (the calibration, the SQL and the aggregates count them the same way). `asked` is the
    question as the analyst put it. Equal fingerprints mean that one answer serves both, on the same data version.
    `sharing` is there where noise that others can share was chosen although other noise would cost this question less.
    `predicates` are the canonical forms of the question's predicates. `ranking` is how the keys that the formula leaves
    are put in their order, on noise of its own, where the question ranks them.
    """

    asked: Question
    question: Question
    minimised: Minimised
    calibration: Calibration
    rewritten: Rewritten
    fingerprint: str
    warnings: tuple[str, ...]
    sharing: Sharing | None = None
    predicates: tuple[Minimised, ...] = ()
    ranking: RankingCalibration | None = None

    @property
    def reads_data(self) -> bool:
        """Return True if the answer depends on data at all."""
        return bool(self.question.functionals) or (self.ranking is not None and self.ranking.rate > 0)

    @property
    def canonical(self) -> tuple[Minimised, ...]:
        """The canonical forms of the formula and of the predicates, in their order."""
        return (self.minimised, *self.predicates)

    @property
    def worst_case_epsilon(self) -> float:
        """The most that any single key can cost."""
        return together(self.calibration, self.ranking)

    @property
    def compared(self) -> Mapping[str, float]:
        """By name, what published mechanisms would reserve for the formula as typed and the same contract.

        Nothing for several formulas, a ranking or comparisons with other groups, which none of them decides.

        Calculated when it is first asked for: EXPLAIN and the demo show it, an answer does not need it.
        """
        asked = self.asked
        if asked.predicates or asked.ranked is not None or any(one.cell_reads for one in asked.functionals):
            return MappingProxyType({})
        sensitivities = tuple(functional.sensitivity for functional in asked.functionals)
        return _compare_published(asked.formula, sensitivities, fnr=asked.accuracy.fnr, fpr=asked.accuracy.fpr)


@lru_cache(maxsize=128)
def _compare_published(
    formula: Formula, sensitivities: tuple[int, ...], *, fnr: float, fpr: float
) -> Mapping[str, float]:
    exposures = expose_all_at_once(len(sensitivities))
    task = DecisionTask(formula=formula, sensitivities=sensitivities, exposures=exposures, fnr=fnr, fpr=fpr)
    return MappingProxyType(price_baselines(task, formula))
