"""The looks at noisy values, coarse to fine, until every key's formulas are settled; on fresh noise or stored paths.

Values that a path has are read from it. A path is refined only for keys for which one of its undecided literals still
matters. First `formula` is settled, then the predicates. For a key that is not returned, no look is taken for its
predicates. A one-shot question takes all looks for every key.

| here | in the proofs |
|---|---|
| taken | the looks that this question has read |
| reached | the levels that have been revealed, by this question or earlier ones |

Proofs: docs/proofs/three_zone.md, docs/proofs/short_cuts.md, docs/proofs/several_formulas.md, docs/proofs/reuse.md.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from mechanisms.formula import Booleans, Cut, Formula, Integers, list_literals
from mechanisms.keyhole.key_parts import cut_keys_into_parts, decide_in_parts
from mechanisms.keyhole.noisy_values import ChosenKeys, NoisyValues
from mechanisms.protocol import Calibration, Epsilons, Noise, NoisePath, Outcome
from mechanisms.three_valued import Verdicts, find_undecided_keys, settle_formula
from mechanisms.threshold.joint_loss import compute_joint_losses
from mechanisms.threshold.one_shot import round_up_to_float

Paths = Sequence[NoisePath | None]


def decide_on_fresh_noise(
    calibration: Calibration, aggregates: Integers, *, looks_at_everything: bool, keeps_paths: bool, noise: Noise
) -> Outcome:
    """Decide every key on fresh noise. The parameters are those of `decide_on_paths`. All of the loss is fresh."""
    none = (None,) * len(calibration.task.sensitivities)
    return decide_on_paths(
        calibration,
        aggregates,
        none,
        looks_at_everything=looks_at_everything,
        reads_known_first=False,
        keeps_paths=keeps_paths,
        noise=noise,
    )


def decide_on_paths(
    calibration: Calibration,
    aggregates: Integers,
    paths: Paths,
    *,
    looks_at_everything: bool,
    reads_known_first: bool,
    keeps_paths: bool,
    noise: Noise,
) -> Outcome:
    """Decide every key, revealing the values that are needed and not yet known.

    Guarantee: exactly the looks taken are revealed, and values that were known before are read, not drawn again. Per
    functional and key the transcript of all questions on the path loses that of the finest level reached
    (docs/proofs/reuse.md). Without a path all of the loss is fresh, and `Outcome.fresh` is None.

    Parameters:
        aggregates: exact values, int64, shape (functionals, keys), within +-2**62; of the same data as `paths`.
        paths: by functional, the values revealed before. The calibration's tests look at their rates or above them.
        looks_at_everything: take every look of every key, even if it no longer matters. Then all keys lose the worst
            case.
        reads_known_first: take every look that costs nothing before any other. Then the values that the question
            reads, and so `epsilon`, depend on what others have revealed. Otherwise they depend on the read values
            alone.
        keeps_paths: True to return the paths, which take memory for all looks of all keys.

    Raises:
        ValueError: the paths have another number of keys.
    """
    if any(path is not None and path.reached.size != aggregates.shape[1] for path in paths):
        raise ValueError("paths and aggregates are of the same keys")
    is_fresh = all(path is None for path in paths)
    decided = _KeyResults.make_empty(
        aggregates.shape[1], predicates=len(calibration.task.predicates), is_fresh=is_fresh
    )

    def decide(part: slice) -> _PartResults:
        run = _KeysRun(
            calibration,
            aggregates[:, part],
            _slice_paths(paths, part),
            looks_at_everything=looks_at_everything,
            keeps_paths=keeps_paths,
            noise=noise,
        )
        if reads_known_first:
            run.read_known_looks()
            run.draw_ties()
        run.take_looks()
        return run.collect_results()

    for part, closed in decide_in_parts(decide, aggregates.shape[1], noise=noise):
        decided.add_part(part, closed)
    return decided.make_outcome(keeps_paths=keeps_paths)


def decide_without_new_noise(
    calibration: Calibration, paths: Paths, *, looks_at_everything: bool, noise: Noise
) -> Outcome | None:
    """Decide every key on known values. Return None if some outcome of the random draws may leave a key undecided.

    This is determined before any draw, so that a second attempt with more values favours no answer.
    """
    keys = next(path.reached.size for path in paths if path is not None)
    decided = _KeyResults.make_empty(keys, predicates=len(calibration.task.predicates), is_fresh=False)
    for part in cut_keys_into_parts(keys):
        nothing = np.zeros((len(paths), part.stop - part.start), dtype=np.int64)
        known = _slice_paths(paths, part)
        run = _KeysRun(
            calibration, nothing, known, looks_at_everything=looks_at_everything, keeps_paths=False, noise=noise
        )
        run.read_known_looks()
        if run.needs_values():
            return None
        run.draw_ties()
        decided.add_part(part, run.collect_results())
    return decided.make_outcome(keeps_paths=False)


def price_unrevealed_values(path: NoisePath | None, top: Fraction, *, sensitivity: int, keys: int) -> Epsilons:
    """Return for each key the epsilon of one functional's values up to the rate `top` that are not yet revealed.

    It is rounded up.
    """
    if path is None:
        return np.full(keys, round_up_to_float(top * sensitivity))
    before = (Fraction(0), *path.rates)
    return np.array([round_up_to_float(max(Fraction(0), top - rate) * sensitivity) for rate in before])[path.reached]


def _slice_paths(paths: Paths, part: slice) -> list[NoisePath | None]:
    return [
        path and NoisePath(rates=path.rates, values=path.values[:, part], reached=path.reached[part]) for path in paths
    ]


@dataclass(frozen=True, slots=True)
class _PartResults:
    """The results of a run over some keys."""

    passed: Booleans
    predicates: tuple[Booleans, ...]
    losses: Epsilons
    fresh_losses: Epsilons
    paths: tuple[NoisePath | None, ...]


@dataclass(frozen=True, slots=True)
class _Stage:
    """Formulas that are settled together, listed by the functionals that they mention, in a public order.

    With `needs_returned` they matter only for keys that may be returned.
    """

    formulas: Mapping[int, tuple[Formula, ...]]
    needs_returned: bool


class _KeysRun:
    """The state of some keys between looks: each literal's verdict, and how far each functional was read."""

    def __init__(
        self,
        calibration: Calibration,
        aggregates: Integers,
        paths: Paths,
        *,
        looks_at_everything: bool,
        keeps_paths: bool,
        noise: Noise,
    ) -> None:
        task = calibration.task
        self._calibration = calibration
        self._task = task
        self._noise = noise
        self._everything = looks_at_everything
        self._keep_paths = keeps_paths
        self._anew = all(path is None for path in paths)
        self._keys = aggregates.shape[1]
        self._literals = tuple(dict.fromkeys(task.list_literals()))
        self._verdicts: dict[Cut, Verdicts] = {cut: np.zeros(self._keys, dtype=np.int8) for cut in self._literals}
        used = {cut.functional for cut in self._literals}
        self._order = sorted(used, key=lambda functional: calibration.tests[functional].epsilon)
        self._stages = (
            _Stage(self._list_by_functional((task.formula,)), needs_returned=False),
            _Stage(self._list_by_functional(task.predicates), needs_returned=True),
        )
        self._values = {
            f: NoisyValues(calibration.tests[f], aggregates[f], paths[f], task.sensitivities[f], keeps_path=keeps_paths)
            for f in used
        }

    def read_known_looks(self) -> None:
        """Take every look that matters and costs nothing. Values exactly on a boundary wait for `draw_ties`."""
        for stage, functional, look in self._list_turns():
            concerned = self._find_keys_at_look(stage, functional, look)
            self._take_look(functional, look, concerned & self._values[functional].is_known(look), draws_ties=False)

    def needs_values(self) -> bool:
        """Return True if an unknown value could still matter for some result of `draw_ties`."""
        return any(
            self._find_keys_with_looks_left(stage, functional).any()
            for stage in self._stages
            for functional in stage.formulas
        )

    def draw_ties(self) -> None:
        """Toss the coins of the values that `read_known_looks` found on the boundary of a last look."""
        for functional in self._order:
            values = self._values[functional]
            last = len(values.test.looks)
            open_ = [self._verdicts[cut] == 0 for cut in self._list_literals(functional)]
            looked = values.choose_keys(np.logical_or.reduce(open_) & (values.taken > last))
            if looked.size:
                self._decide_literals(functional, last, looked, tie=self._draw_boundary_ties(functional, looked))

    def take_looks(self) -> None:
        """Take looks until every key's formula is settled, and the predicates of returned keys."""
        for stage, functional, look in self._list_turns():
            last = look == len(self._values[functional].test.looks)
            self._take_look(functional, look, self._find_keys_at_look(stage, functional, look), draws_ties=last)

    def collect_results(self) -> _PartResults:
        """Return the answers and losses of the keys, which must all be settled."""
        task, worst = self._task, self._calibration.worst_case_epsilon
        answer, *values_of = (settle_formula(formula, self._verdicts, keys=self._keys) for formula in task.formulas)
        assert np.all(answer != 0), "a key's formula is still open after every look"
        passed = answer == 1
        assert all(np.all(value[passed] != 0) for value in values_of), "a returned key's predicate is still open"
        lost = {functional: values.compute_total_loss() for functional, values in self._values.items()}
        fresh = (
            {}
            if self._anew
            else {functional: values.compute_fresh_loss() for functional, values in self._values.items()}
        )
        own = np.minimum(compute_joint_losses(lost, task.exposures, keys=self._keys), worst)
        if self._everything:
            own = np.full(self._keys, worst)
        paths = [self._values[f].make_path() if f in self._values else None for f in range(len(task.sensitivities))]
        return _PartResults(
            passed=passed,
            predicates=tuple(passed & (value == 1) for value in values_of),
            losses=own,
            fresh_losses=own
            if self._anew
            else np.minimum(compute_joint_losses(fresh, task.exposures, keys=self._keys), own),
            paths=tuple(paths) if self._keep_paths else (),
        )

    def _list_by_functional(self, formulas: Sequence[Formula]) -> dict[int, tuple[Formula, ...]]:
        """Return the formulas that mention each functional. The functional that is cheapest to look at comes first."""
        mentioned = {formula: {cut.functional for cut in list_literals(formula)} for formula in formulas}
        own = {f: tuple(formula for formula, used in mentioned.items() if f in used) for f in self._order}
        return {functional: formulas for functional, formulas in own.items() if formulas}

    def _list_turns(self) -> Iterator[tuple[_Stage, int, int]]:
        """Yield stages, their functionals and their looks in a public order.

        The tests of a stage end together, so a test with fewer looks starts later.
        """
        for stage in self._stages:
            looks = {functional: len(self._values[functional].test.looks) for functional in stage.formulas}
            most = max(looks.values(), default=0)
            for turn in range(most + 1):
                for functional in stage.formulas:
                    look = turn - (most - looks[functional])
                    if look >= 0:
                        yield stage, functional, look

    def _find_keys_at_look(self, stage: _Stage, functional: int, look: int) -> Booleans:
        """Return the keys whose next look this is and for which it matters."""
        return self._find_undecided_keys(stage, functional, self._values[functional].taken == look)

    def _find_keys_with_looks_left(self, stage: _Stage, functional: int) -> Booleans:
        """Return the keys for which the functional matters and has looks left."""
        left = self._values[functional].taken <= len(self._values[functional].test.looks)
        return self._find_undecided_keys(stage, functional, left)

    def _find_undecided_keys(self, stage: _Stage, functional: int, among: Booleans) -> Booleans:
        """Return those keys of `among` for which the functional can still change a formula of the stage."""
        if self._everything:
            return among
        if stage.needs_returned:
            among = among & (settle_formula(self._task.formula, self._verdicts, keys=self._keys) >= 0)
        if not among.any():
            return among
        matters = np.zeros(self._keys, dtype=np.bool_)
        for formula in stage.formulas[functional]:
            matters |= find_undecided_keys(formula, self._verdicts, keys=self._keys)[functional]
        return among & matters

    def _take_look(self, functional: int, look: int, concerned: Booleans, *, draws_ties: bool) -> None:
        looking = self._values[functional].choose_keys(concerned)
        if looking.size:
            tie = self._draw_boundary_ties(functional, looking) if draws_ties else None
            self._values[functional].reveal_look(look, looking, noise=self._noise)
            self._decide_literals(functional, look, looking, tie=tie)

    def _decide_literals(self, functional: int, look: int, looking: ChosenKeys, *, tie: Booleans | None) -> None:
        values = self._values[functional]
        test = values.test
        for cut in self._list_literals(functional):
            noisy, origin = values.compute_distances(cut, look, looking)
            if look < len(test.looks):
                zone = test.looks[look]
                high, low = noisy >= origin + zone.accepting, noisy <= origin + zone.rejecting
            else:
                boundary = origin - test.shift
                high, low = noisy > boundary, noisy < boundary
                if tie is not None:
                    high |= (noisy == boundary) & tie
                    low = ~high
            looking.write_verdicts(self._verdicts[cut], np.subtract(high, low, dtype=np.int8))

    def _draw_boundary_ties(self, functional: int, looking: ChosenKeys) -> Booleans:
        return self._noise.draw_bernoulli(probability=self._values[functional].test.tie, size=looking.size)

    def _list_literals(self, functional: int) -> Sequence[Cut]:
        return [cut for cut in self._literals if cut.functional == functional]


@dataclass(frozen=True, slots=True)
class _KeyResults:
    """The results of all keys, filled part by part into arrays that exist once."""

    passed: Booleans
    predicates: tuple[Booleans, ...]
    losses: Epsilons
    fresh_losses: Epsilons | None
    paths: list[tuple[NoisePath | None, ...]]

    @staticmethod
    def make_empty(keys: int, *, predicates: int, is_fresh: bool) -> "_KeyResults":
        """Return results in which nothing is decided."""
        return _KeyResults(
            passed=np.zeros(keys, dtype=np.bool_),
            predicates=tuple(np.zeros(keys, dtype=np.bool_) for _ in range(predicates)),
            losses=np.zeros(keys),
            fresh_losses=None if is_fresh else np.zeros(keys),
            paths=[],
        )

    def add_part(self, part: slice, closed: _PartResults) -> None:
        """Write the results of a part of the keys."""
        self.passed[part] = closed.passed
        self.losses[part] = closed.losses
        if self.fresh_losses is not None:
            self.fresh_losses[part] = closed.fresh_losses
        for all_, own in zip(self.predicates, closed.predicates, strict=True):
            all_[part] = own
        self.paths.append(closed.paths)

    def make_outcome(self, *, keeps_paths: bool) -> Outcome:
        """Return the results of all keys as an outcome."""
        return Outcome(
            passed=self.passed,
            predicates=self.predicates,
            epsilon=self.losses,
            fresh=self.fresh_losses,
            paths=tuple(map(_join_paths, zip(*self.paths, strict=True))) if keeps_paths else (),
        )


def _join_paths(parts: Sequence[NoisePath | None]) -> NoisePath | None:
    known = [part for part in parts if part is not None]
    if len(known) <= 1:
        return known[0] if known else None
    return NoisePath(
        rates=known[0].rates,
        values=np.concatenate([part.values for part in known], axis=1),
        reached=np.concatenate([part.reached for part in known]),
    )
