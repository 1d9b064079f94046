"""The plan of a question: everything that is computed, decided and charged, fixed before any data is touched."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from types import MappingProxyType

from mechanisms.formula import Cut, Formula
from mechanisms.protocol import Calibration, DecisionTask
from mechanisms.ranking.calibration import RankingCalibration
from mechanisms.registry import MECHANISMS, price_baselines
from mechanisms.threshold.joint_loss import expose_all_functionals
from mechanisms.threshold.one_shot import round_up_to_float
from planner.catalog.catalog import Value
from planner.catalog.key_space import KeySpace
from planner.question.question import Question

APART = "apart"
"""The name in `Calibration.compared` of the loss with noise on every functional by itself."""


@dataclass(frozen=True, slots=True)
class Minimised:
    """The canonical form of a formula.

    `formula` is the minimal DNF, which is evaluated, relaxed, bounded and printed. With more than twelve thresholds it
    is the formula as typed, without parts that its own literals decide, and `is_minimal` is false. `implicants` and
    `clauses` are all prime ones, for EXPLAIN.
    """

    formula: Formula
    implicants: tuple[tuple[Cut, ...], ...]
    clauses: tuple[tuple[Cut, ...], ...]
    is_minimal: bool


@dataclass(frozen=True, slots=True)
class ReadRelation:
    """A relation that a statement reads.

    `columns` has its columns by name with the types for which the statement was written. `keys` has the sets of columns
    that the source has to keep unique together.
    """

    relation: str
    columns: tuple[tuple[str, str], ...]
    keys: frozenset[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class PinnedColumn:
    """Pinned values as a column of a `PinnedRelation`, row by row. `type_name` is the type in SQL.

    `is_whole`: the values are bigints.
    """

    name: str
    type_name: str
    is_whole: bool
    values: tuple[Value | None, ...] = field(repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class PinnedRelation:
    """Pinned public rows that a statement reads as a relation called `name`.

    They are sent to the source with the statement.

    Equal names mean the same rows, because the name contains their sha256. The statement reads these rows instead of
    the source's own copy.
    """

    name: str
    columns: tuple[PinnedColumn, ...]


@dataclass(frozen=True, slots=True)
class Rollup:
    """The rows of `table` that count, kept by the source for later questions of the same data version.

    `build` is the SELECT that computes the rows, which are indexed by column `indexed_column`, if any. Equal names
    mean equal builds. `sql` answers the question like `Rewritten.sql`, behind a clause `WITH rolled AS (SELECT * FROM
    it),`. `relations` and `pinned_relations` are read by `build`. `steps` are the definitions in front of the `body`
    of `build`, if any.
    """

    table: str
    name: str
    build: str
    indexed_column: str | None
    sql: str
    relations: tuple[ReadRelation, ...] = ()
    pinned_relations: tuple[PinnedRelation, ...] = ()
    steps: "tuple[KeptStep, ...]" = ()
    body: str = ""

    def write_build(self, kept: Mapping[str, str]) -> str:
        """Return the SQL that computes the rollup's rows, with some steps read from relations of the source.

        Parameters:
            kept: the relation that holds a step's rows, by the step's name.
        """
        return _write_from_kept(self.steps, self.body, kept) if self.steps else self.build


@dataclass(frozen=True, slots=True)
class KeptStep:
    """A step that a statement defines in a WITH clause, and whose rows the source may keep like a rollup.

    The statement refers to it by its `name`. `definition` is its definition, which reads the steps named in
    `read_steps`. `kept_rows.build` computes its rows alone. `kept_rows` is None if the source is not to keep them.
    """

    name: str
    definition: str
    read_steps: frozenset[str]
    kept_rows: Rollup | None


@dataclass(frozen=True, slots=True)
class KeyBlock:
    """Some of a question's keys, in order from index `start` on, and the statement that returns their aggregates."""

    start: int
    keys: KeySpace
    sql: str


@dataclass(frozen=True, slots=True)
class Rewritten:
    """One-scan SQL for one dialect: key columns first, then one integer column per functional, named f0, f1, ...

    `sql` is empty if the formula is constant: then nothing is read. `rollup` returns the same integers from rows that
    bounding has chosen once for many questions. It is None if bounding chooses nothing or nothing may be kept.
    `relations` are the relations that the statement reads. It has the question's meaning as long as they are as
    described. `pinned_relations` are public rows that are sent with the statement. `blocks`, if there are any,
    together return the rows of `sql`, if they are read in their order and in one state of the data. `steps` are the
    definitions in front of the `body` of `sql`, each after those that it reads. There are none if nothing may be kept.
    `from_kept_steps` returns the same integers if all steps that its `body` names are kept. It is expensive if they
    are not.
    """

    dialect: str
    sql: str
    rollup: Rollup | None = None
    relations: tuple[ReadRelation, ...] = ()
    pinned_relations: tuple[PinnedRelation, ...] = ()
    blocks: tuple[KeyBlock, ...] = ()
    steps: tuple[KeptStep, ...] = ()
    body: str = ""
    from_kept_steps: "Rewritten | None" = None

    def write_from_kept(self, kept: Mapping[str, str]) -> str:
        """Return the statement with some steps read from relations of the source.

        Parameters:
            kept: the relation that holds a step's rows, by the step's name.
        """
        return _write_from_kept(self.steps, self.body, kept)


def _write_from_kept(steps: Sequence[KeptStep], body: str, kept: Mapping[str, str]) -> str:
    """Return the SQL of a body after its WITH steps.

    Steps with kept rows are read from the relations that keep them.
    """
    needed = {step.name for step in steps if step.name in body}
    defined = []
    for step in reversed(steps):
        if step.name not in needed:
            continue
        if step.name in kept:
            defined.append(f"{step.name} AS NOT MATERIALIZED (SELECT * FROM {kept[step.name]})")
        else:
            needed |= step.read_steps
            defined.append(step.definition)
    return "WITH\n" + ",\n".join(reversed(defined)) + body


@dataclass(frozen=True, slots=True)
class NoiseSharing:
    """The decision to pay more for noise that questions with other thresholds can share.

    `functionals` have noise on their sums although noise on blocks would cost less. `task_in_blocks` is the question as
    numbers with noise on blocks, as `mechanism` decides it if `keyhole.reuse` is off.
    """

    functionals: frozenset[int]
    mechanism: str
    task_in_blocks: DecisionTask

    @property
    def epsilon_in_blocks(self) -> float:
        """The worst case of the question with noise on blocks, calibrated on first use."""
        return _find_worst_case(self.mechanism, self.task_in_blocks)


@lru_cache(maxsize=128)
def _find_worst_case(mechanism: str, task: DecisionTask) -> float:
    return MECHANISMS[mechanism].calibrate(task).worst_case_epsilon


def find_joint_epsilon(calibration: Calibration, ranking: RankingCalibration | None) -> float:
    """Return the highest cost of deciding and ranking a key, rounded up."""
    decided = calibration.worst_case_epsilon
    return decided if ranking is None else round_up_to_float(Fraction(decided) + Fraction(ranking.worst_case_epsilon))


@dataclass(frozen=True, slots=True)
class ComparedTests:
    """How many questions like one fit into the balances when nothing is spent: with arc looks, and with gradual ones.

    Both are counted at the worst case.
    """

    arc: int
    gradual: int

    @property
    def sentence(self) -> str:
        """The explanation for EXPLAIN."""
        return (
            f"arc looks, since at least {self.arc:,} such questions fit (gradual tests: {self.gradual:,}). Another "
            "threshold on the same value costs the full price again, because arc looks leave no noise to read."
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that is decided about a question before data is touched. All of it is public.

    `question` is the question that is computed. Its formula is `minimised.formula`, and only the functionals that it
    needs are left, in canonical order. The calibration, the SQL and the aggregates number them the same way.
    `asked_question` is the question as the analyst asked it. Equal fingerprints mean that one answer serves both, on
    the same data version. `sharing` is set if the noise can be shared with other questions and costs this question
    more. `predicates` are the canonical forms of the question's predicates. If the question ranks keys, `ranking`
    orders the keys that pass the formula, with separate noise. `compared_tests` is set if arc looks were chosen.
    """

    asked_question: Question
    question: Question
    minimised: Minimised
    calibration: Calibration
    rewritten: Rewritten
    fingerprint: str
    warnings: tuple[str, ...]
    sharing: NoiseSharing | None = None
    predicates: tuple[Minimised, ...] = ()
    ranking: RankingCalibration | None = None
    compared_tests: ComparedTests | None = None

    @property
    def reads_data(self) -> bool:
        """True if the answer depends on data."""
        return bool(self.question.functionals) or (self.ranking is not None and self.ranking.noise_rate > 0)

    @property
    def canonical(self) -> tuple[Minimised, ...]:
        """The canonical forms of the formula and of the predicates, formula first."""
        return (self.minimised, *self.predicates)

    @property
    def worst_case_epsilon(self) -> float:
        """The most that any single key can cost."""
        return find_joint_epsilon(self.calibration, self.ranking)

    @property
    def compared(self) -> Mapping[str, float]:
        """The cost of published mechanisms for the formula as typed and the same contract, by name.

        It is empty for several formulas, a ranking or comparisons with other groups, which no published mechanism
        decides. It is computed on first use, because EXPLAIN and the demo show it and an answer does not need it.
        """
        asked = self.asked_question
        if asked.predicates or asked.ranked is not None or any(one.cell_reads for one in asked.functionals):
            return MappingProxyType({})
        sensitivities = tuple(functional.sensitivity for functional in asked.functionals)
        return _compare_published(asked.formula, sensitivities, fnr=asked.accuracy.fnr, fpr=asked.accuracy.fpr)


@lru_cache(maxsize=128)
def _compare_published(
    formula: Formula, sensitivities: tuple[int, ...], *, fnr: float, fpr: float
) -> Mapping[str, float]:
    exposures = expose_all_functionals(len(sensitivities))
    task = DecisionTask(formula=formula, sensitivities=sensitivities, exposures=exposures, fnr=fnr, fpr=fpr)
    return MappingProxyType(price_baselines(task, formula))
