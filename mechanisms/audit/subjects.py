"""Mechanisms as subjects of an audit, and the list of all audits.

Proof: docs/proofs/audit.md.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.arc.one_look import Arc
from mechanisms.arc.several_looks import ArcLooks
from mechanisms.audit.alarms import audit_alarms
from mechanisms.audit.auditor import AuditReport, Neighbours, Release, audit_subject
from mechanisms.audit.bound_scans import audit_scan, make_audited_scan
from mechanisms.audit.calendar_cells import MONTHS, audit_calendar_cells
from mechanisms.audit.events import Transcripts
from mechanisms.audit.joined_cells import WARDS, audit_joined_cells
from mechanisms.audit.many_groups import (
    DELTA,
    GROUPS,
    MOST_EPSILON_OF_A_GROUP,
    MOST_EPSILON_OF_A_LOOK,
    audit_many_groups,
)
from mechanisms.audit.noise_ahead import NoiseAhead
from mechanisms.audit.rankings import audit_ranking
from mechanisms.audit.stream_subjects import audit_stream, list_twins
from mechanisms.audit.table_subjects import audit_tables
from mechanisms.audit.worst_cases import (
    DEPTHS,
    FAR_DEPTHS,
    MIDDLE,
    Values,
    list_critical_neighbours,
    make_audit_tasks,
    make_values_at_depths,
    sharpen_task,
    widen_tolerances,
)
from mechanisms.formula import Integers
from mechanisms.keyhole.noise_continuation import CONTINUABLE, decide_on_refined_paths, plan_on_paths
from mechanisms.keyhole.one_shot import Keyhole
from mechanisms.protocol import Calibration, DecisionTask, Mechanism, Noise, Outcome, Unachievable
from mechanisms.registry import MECHANISMS

_RUN_KEYS = 3  # the one that moves and two for data-dependent choices to turn on
_CROWD = 6  # keys that one unit is in: five that move together and one against them
_NEARLY, _UNCERTAIN = 2, 0.3  # keys of a deniable question that are likely returned on uncertain values, in their bands
_FAR_FALSE, _FAR = 40, 8.0  # keys for each literal that are false beyond doubt, and by how many bands: among them few

_COST_OF_MANY_GROUPS = 2  # draws of a group that one of all of them stands for: few are enough to say something
_ASKED_IN_MANY_GROUPS = ("one condition", "coarse units")  # one value a group, and one in coarse steps; sums add up
_ON_PATHS = ((False, False), (True, False), (False, True))  # by itself, continued, in many groups
_ON_TABLES = ((False, False), (False, True))

# draws of single keys that one draw of a whole question stands for: what it takes, and less where much is needed
_COST_OF_A_QUESTION = 16
_COST_OF_A_STREAM = 4  # likewise of a stream of a few ticks: what it takes is more, but few are enough to say something
_COST_OF_A_WINDOW = 4  # likewise of all looks of an alarm's window
_CHEAPER = {"svt": 2, "svt_generalised": 2, "probe": 4, "probe_naive": 4, "probe_gradual": 4, "probe_ent": 8}
# what so many draws can refute: the larger a claim, the rarer are the answers that tell of it
_MOST_EPSILON_OF_KEYS, _MOST_EPSILON_OF_QUESTIONS = 6.0, 4.0
_KEYS_INDEPENDENT = frozenset(
    (
        "keyhole",
        "arc",
        "arc_looks",
        "tslm",
        "nlm",
        "naive",
        "probe_one_phase",
        "ppwlm",
        "mim",
        "mim_baseline",
        "mim_progressive",
        "progressive",
    )
)

_ARC_LOOKS = frozenset({Arc.name, ArcLooks.name})


@dataclass(frozen=True, slots=True)
class PlannedAudit:
    """One audit, by the names of its mechanism and question.

    If it `is_continued`, a later question continues the same noise. If it `has_many_groups`, one unit is in many
    groups, and the claim is its balance with a delta. `SCAN` and `TABLE` audit releases, `RANKING` an order, `ALARM`
    the looks at a window, `JOIN` a cell of a joined table, and `CELLS` a cell that several answers read. `STREAMED`
    audits mechanisms that no question may name.
    """

    mechanism: str
    question: str
    is_continued: bool = False
    has_many_groups: bool = False

    @property
    def subject(self) -> str:
        """The subject of the audit, as the report names it."""
        told = f"{self.mechanism}, {self.question}{', continued' * self.is_continued}"
        return f"{told}, a unit in {GROUPS} groups, delta {DELTA:g}" if self.has_many_groups else told

    @property
    def relative_duration(self) -> int:
        """Its relative duration, so that a caller can run the longest first."""
        if self in (SCAN, TABLE):
            return 1
        if self == CELLS:
            return MONTHS
        if self == JOIN:
            return WARDS
        if self == RANKING:
            return _COST_OF_A_QUESTION
        if self == ALARM:
            return _COST_OF_A_WINDOW
        if self in STREAMED:
            return _COST_OF_A_STREAM
        task = make_audit_tasks()[self.question]
        return len(_list_neighbours(self.mechanism, task)) * price_draw(self.mechanism)

    def run(self, *, samples: int, noise: Noise, progress: Callable[[str], None] | None = None) -> AuditReport | None:
        """Run the audit. Return its report, or None if the mechanism cannot answer the question.

        Parameters as for `run_all_audits`.
        """
        if self == SCAN:
            return audit_scan(
                make_audited_scan(), samples=samples, noise=noise, subject=self.subject, progress=progress
            )
        if self == TABLE:
            return audit_tables(samples=samples, noise=noise, subject=self.subject, progress=progress)
        if self == CELLS:
            return audit_calendar_cells(
                Keyhole(), samples=samples, noise=noise, subject=self.subject, progress=progress
            )
        if self == JOIN:
            return audit_joined_cells(Keyhole(), samples=samples, noise=noise, subject=self.subject, progress=progress)
        if self == RANKING:
            fewer = max(2, samples // _COST_OF_A_QUESTION)
            return audit_ranking(samples=fewer, noise=noise, subject=self.subject, progress=progress)
        if self == ALARM:
            fewer = max(2, samples // _COST_OF_A_WINDOW)
            return audit_alarms(samples=fewer, noise=noise, subject=self.subject, progress=progress)
        if self in STREAMED:
            fewer = max(2, samples // _COST_OF_A_STREAM)
            return audit_stream(self.mechanism, samples=fewer, noise=noise, subject=self.subject, progress=progress)
        mechanism, task = MECHANISMS[self.mechanism], make_audit_tasks()[self.question]
        most = _MOST_EPSILON_OF_KEYS if _decides_each_key_alone(self.mechanism) else _MOST_EPSILON_OF_QUESTIONS
        audit_one = audit_reuse if self.is_continued else audit_mechanism
        if self.has_many_groups:
            most = MOST_EPSILON_OF_A_LOOK if self.mechanism in _ARC_LOOKS else MOST_EPSILON_OF_A_GROUP
            samples = max(2, samples // _COST_OF_MANY_GROUPS)
            audit_one = audit_many_groups
        try:
            task = widen_tolerances(mechanism, task, most_epsilon=most)
            if self.is_continued or self.has_many_groups:
                task = replace(task, blocks=frozenset())
            return audit_one(mechanism, task, samples=samples, noise=noise, subject=self.subject, progress=progress)
        except Unachievable:
            return None


SCAN = PlannedAudit(mechanism="bounds", question="a unit between candidates")
"""The audit of the scan that finds bounds for owners: no mechanism that a question could name."""
TABLE = PlannedAudit(mechanism="table", question="a unit more")
"""The audit of a published table of counts and of the rows made from it."""
RANKING = PlannedAudit(mechanism="ranking", question="the first of three keys")
"""The audit of the first keys in an order: what `ORDER BY` and `LIMIT` run, whatever mechanism a question names."""
ALARM = PlannedAudit(mechanism="alarm", question="one window")
"""The audit of accumulating alarms, on values that grow, come and go, have either sign, or slide, of a ladder, of
formulas of alarms, and of noise on the ticks of a sliding window."""
CELLS = PlannedAudit(mechanism="cells", question="one cell of a calendar")
"""The audit of one cell that the answers of several groups are read off: differences, running totals."""
JOIN = PlannedAudit(mechanism="join", question="one cell of a joined table")
"""The audit of one cell of a joined table, whose rows reach all groups of a person."""
STREAMED = tuple(PlannedAudit(mechanism=name, question="one event more") for name in list_twins())
"""The audits of mechanisms for streams, which no question may name."""
UNASKED = (*STREAMED, ALARM, CELLS, JOIN, RANKING, SCAN, TABLE)
"""All of what no question may name."""


def plan_audits(mechanisms: Iterable[str] = ()) -> tuple[PlannedAudit, ...]:
    """List the audits of the named mechanisms, or of all if none are named.

    Each mechanism is audited on the questions of `make_audit_tasks`. Only mechanisms that decide several formulas get
    the scorecard and the comparison of a mean with two numbers. If a mechanism leaves noise paths, each question is
    also audited together with a later one that continues them. So are two questions for a unit in many groups, with all
    noise drawn at once, or by arc looks. Audits of `UNASKED` are included if none are named, or if their names are.
    """
    named = tuple(mechanisms)
    questions = tuple(
        PlannedAudit(mechanism=name, question=question, is_continued=continued, has_many_groups=many_groups)
        for name in named or MECHANISMS
        if name not in {one.mechanism for one in UNASKED}
        for question, task in make_audit_tasks().items()
        for continued, many_groups in _list_audited_ways(name)
        if not many_groups or question in _ASKED_IN_MANY_GROUPS
        if name in CONTINUABLE or not (task.predicates or task.common)
        if not (continued and task.common)  # it leaves no paths
    )
    return (*questions, *(one for one in UNASKED if not named or one.mechanism in named))


def run_all_audits(
    *,
    samples: int,
    noise: Noise,
    mechanisms: Iterable[str] = (),
    progress: Callable[[str], None] | None = None,
) -> tuple[AuditReport, ...]:
    """Run the audits of `plan_audits`, one after the other. Questions that a mechanism cannot answer are skipped.

    Parameters:
        samples: as for `audit`. 100,000 samples detect noise that is a quarter too small, if keys are decided one by
            one. 20,000 detect noise of half the right size in a sparse vector, which is drawn as whole questions.
        progress: called with the mechanism's name, the question and the databases being drawn.
    """
    reports = (planned.run(samples=samples, noise=noise, progress=progress) for planned in plan_audits(mechanisms))
    return tuple(report for report in reports if report is not None)


def audit_mechanism(
    mechanism: Mechanism,
    task: DecisionTask,
    *,
    samples: int,
    noise: Noise,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Compare a mechanism's answers and reported losses on neighbouring data whose values lie near the thresholds.

    The neighbours differ in one key, whose aggregates all change by the most that one privacy unit can change them. If
    a mechanism decides each key by itself, one run draws many keys at once. Otherwise each draw is a question of three
    keys or more, whose whole answer is compared. It counts as two to sixteen of `samples`. These questions are drawn
    only in the middle of the tolerance, where the answer depends on the key that changes. If the loss covers the whole
    question, one unit is in all of six keys, and changes the last one in the opposite direction to the others. A sparse
    vector has to hide all of that with one noisy threshold.

    Raises:
        Unachievable: the mechanism cannot calibrate the task.
    """
    calibration = mechanism.calibrate(task)
    alone = _decides_each_key_alone(mechanism.name)
    source = _release_single_keys if alone else _release_whole_questions
    pairs = [
        Neighbours(
            description=f"values {before} and {after}",
            first=source(mechanism, calibration, before, after, noise),
            second=source(mechanism, calibration, after, before, noise),
        )
        for before, after in _list_neighbours(mechanism.name, task)
    ]
    return audit_subject(
        subject or mechanism.name,
        pairs,
        samples=max(2, samples // price_draw(mechanism.name)),
        progress=progress,
    )


def price_draw(mechanism: str) -> int:
    """Return the number of samples for which one draw of a mechanism counts: 1 if it decides each key by itself."""
    return 1 if _decides_each_key_alone(mechanism) else _CHEAPER.get(mechanism, _COST_OF_A_QUESTION)


def audit_reuse(
    mechanism: Mechanism,
    task: DecisionTask,
    *,
    samples: int,
    noise: Noise,
    subject: str = "",
    progress: Callable[[str], None] | None = None,
) -> AuditReport:
    """Audit two questions on one noise path together. The second is sharper and continues the path of the first.

    A key's transcript has both answers and, for each functional, the number of revealed values and the finest one. The
    claim is the loss of the first question plus the fresh loss of the second.

    Raises:
        Unachievable: the mechanism cannot calibrate the task or leaves no path that the second question could continue.
    """
    first, second = mechanism.calibrate(task), mechanism.calibrate(sharpen_task(task))

    def source(values: Values) -> Release:
        def release(samples: int) -> Transcripts:
            aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples, axis=1)
            before = mechanism.decide(first, aggregates, noise=noise)
            question = plan_on_paths(second, before.paths)
            if question is None:
                raise Unachievable("the first question leaves nothing that the second could continue")
            after = decide_on_refined_paths(question, aggregates, noise=noise)
            claimed = before.epsilon + (after.epsilon if after.fresh is None else after.fresh)
            columns = [*_list_answers(before), *_list_answers(after)]
            for path in after.paths:
                if path is not None:
                    columns += [path.reached.astype(np.int64), path.values[path.reached - 1, np.arange(samples)]]
            return Transcripts(revealed_values=np.column_stack(columns), claimed_losses=claimed)

        return release

    pairs = [
        Neighbours(description=f"values {before} and {after}", first=source(before), second=source(after))
        for before, after in list_critical_neighbours(task, depths=MIDDLE)
    ]
    return audit_subject(subject or f"{mechanism.name}, two questions", pairs, samples=samples, progress=progress)


def _decides_each_key_alone(mechanism: str) -> bool:
    return mechanism in _KEYS_INDEPENDENT


def _list_audited_ways(mechanism: str) -> Sequence[tuple[bool, bool]]:
    """Return whether questions are continued, and whether a unit is in many groups, for each audit of a mechanism."""
    return _ON_PATHS if mechanism in CONTINUABLE else _ON_TABLES if mechanism in _ARC_LOOKS else _ON_PATHS[:1]


def _list_neighbours(mechanism: str, task: DecisionTask) -> list[tuple[Values, Values]]:
    if _decides_each_key_alone(mechanism):
        return list(list_critical_neighbours(task, depths=FAR_DEPTHS if mechanism in _ARC_LOOKS else DEPTHS))
    return list(list_critical_neighbours(task, depths=MIDDLE, leaves_out_ends=True))


def _release_single_keys(
    mechanism: Mechanism, calibration: Calibration, values: Values, neighbour: Values, noise: Noise
) -> Release:
    del neighbour

    def release(samples: int) -> Transcripts:
        aggregates = np.repeat(np.array(values, dtype=np.int64)[:, np.newaxis], samples, axis=1)
        outcome = mechanism.decide(calibration, aggregates, noise=noise)
        return Transcripts(revealed_values=np.column_stack(_list_answers(outcome)), claimed_losses=outcome.epsilon)

    return release


def _list_answers(outcome: Outcome) -> list[Integers]:
    """Return arrays of 0 and 1 over keys: returned or not, and the value of each predicate."""
    return [answer.astype(np.int64) for answer in (outcome.passed, *outcome.predicates)]


def _release_whole_questions(
    mechanism: Mechanism, calibration: Calibration, values: Values, neighbour: Values, noise: Noise
) -> Release:
    """Return a release of whole questions. The first key has the values, and the others are the same in both databases.

    If the loss covers the whole question, a unit in all keys moves them at once.

    A mechanism that may deny a question gets one that it mostly answers, in which most keys are clearly false. Its
    transcript has the first key's answer, the number of returned keys, and the denial.
    """
    task, deniable = calibration.task, calibration.deniable

    def alike(depth: float) -> Values:
        return make_values_at_depths(task, [depth] * len(task.sensitivities))

    if calibration.whole_question:
        keys = [values] * (_CROWD - 1) + [neighbour]
    elif deniable:
        keys = [values] + [alike(_UNCERTAIN)] * _NEARLY + [alike(_FAR)] * (_FAR_FALSE * len(calibration.occurrences))
    else:
        keys = [values] + [next(list_critical_neighbours(task))[0]] * (_RUN_KEYS - 1)
    ahead = NoiseAhead(noise)

    def release(samples: int) -> Transcripts:
        aggregates = np.array(keys, dtype=np.int64).T.copy()
        outcomes = [mechanism.decide(calibration, aggregates, noise=ahead) for _ in range(samples)]
        epsilon = np.array([outcome.epsilon for outcome in outcomes])
        if deniable:
            answers = [(outcome.passed[0], outcome.passed.sum(), outcome.denied) for outcome in outcomes]
            seen = np.array(answers, dtype=np.int64)
        else:
            passed = np.array([outcome.passed for outcome in outcomes], dtype=np.int64)
            seen = np.column_stack((passed, epsilon.view(np.int64)))
        return Transcripts(revealed_values=seen, claimed_losses=epsilon[:, 0].copy())

    return release
