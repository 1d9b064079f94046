"""Hierarchies: sums of their parts, losses on a path, PRUNE as printed and corrected; what is skipped."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.noise.discrete_laplace import compute_mass, compute_upper_tail
from mechanisms.streams.hierarchy import Hierarchy, HierarchyMechanism, make_balanced_hierarchy, prune_parts_of_small
from mechanisms.streams.hs_pegasus import HierarchyState, HsLaplace, HsPegasus
from mechanisms.streams.pegasus import Pegasus
from mechanisms.streams.phs_pegasus import FreePruningState, PhsPegasus, PhsPegasusFree, find_small_aggregations
from tests.effort import examples
from tests.mechanisms.streams.given_noise import GivenNoise, run_stream
from tests.seeded_noise import SeededNoise

CHAIN = Hierarchy(parents=(-1, 0, 1))
TREE = make_balanced_hierarchy(branching=2, levels=3)


@st.composite
def forests(draw: st.DrawFn) -> Hierarchy:
    return Hierarchy(parents=tuple(draw(st.integers(-1, place - 1)) for place in range(draw(st.integers(1, 12)))))


def contained(hierarchy: Hierarchy, place: int, inside: int) -> bool:
    while inside > place:
        inside = hierarchy.parents[inside]
    return inside == place


@given(forests(), st.integers(0, 2**32))
@examples(300)
def test_an_aggregation_counts_what_it_contains(hierarchy: Hierarchy, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 50, (2, len(hierarchy.leaves)))
    found = hierarchy.aggregate(counts)
    for place in range(len(hierarchy.parents)):
        inside = [contained(hierarchy, place, leaf) for leaf in hierarchy.leaves]
        assert found[:, place].tolist() == counts[:, inside].sum(axis=1).tolist()
        assert hierarchy.node_levels[place] == sum(contained(hierarchy, other, place) for other in range(place + 1))


@given(forests(), st.integers(0, 2**32))
@examples(500)
def test_shares_on_a_path_add_up_to_the_height_at_most(hierarchy: Hierarchy, seed: int) -> None:
    """To exactly the height where the path is pruned or as long as any: nothing that could be spent is left."""
    small = np.random.default_rng(seed).random((1, len(hierarchy.parents))) < 0.4
    pruning = prune_parts_of_small(hierarchy, small)
    for leaf in hierarchy.leaves:
        path = [place for place in range(leaf + 1) if contained(hierarchy, place, leaf)]
        assert pruning.shares[0, path].sum() == hierarchy.levels
        above = [any(small[0, path[:number]]) for number in range(len(path))]
        assert pruning.pruned[0, path].tolist() == above
        assert (pruning.shares[0, path] == 0).tolist() == above


def test_parents_come_first() -> None:
    for parents in ((), (0,), (-1, 2, 0), (-2,)):
        with pytest.raises(ValueError, match="comes after"):
            Hierarchy(parents=parents)
    with pytest.raises(ValueError, match="without parts"):
        TREE.aggregate(np.zeros((1, 7), dtype=np.int64))


def test_the_height_divides_the_loss() -> None:
    noise = GivenNoise()
    plain = HsLaplace(hierarchy=TREE, epsilon=Fraction(3, 10), sensitivity=2)
    tick = plain.advance((plain.start(),), np.array([[1, 2, 3, 4]]), noise=noise)
    assert noise.rates == [Fraction(1, 20)] * 7
    assert [list(map(int, row)) for row in tick.estimates] == [[10, 3, 7, 1, 2, 3, 4]]


def test_each_aggregation_is_a_pegasus_of_its_own() -> None:
    """Without noise each aggregation's estimates are those of a PeGaSus on its counts."""
    mechanism = HsPegasus(hierarchy=TREE, epsilon=Fraction(3), sensitivity=1, theta_factor=Fraction(1))
    alone = Pegasus(epsilon=Fraction(1), sensitivity=1, theta_factor=Fraction(1))
    assert mechanism.pegasus == alone
    counts = np.random.default_rng(85).integers(0, 8, (12, 2, 4))
    states: tuple[HierarchyState, ...] = (mechanism.start(),) * 2
    found = []
    for now in counts:
        tick = mechanism.advance(states, now, noise=GivenNoise())
        states = tick.states
        found.append(tick.estimates)
    for row, place in product(range(2), range(7)):
        own = [int(TREE.aggregate(now)[row, place]) for now in counts]
        assert [one[row][place] for one in found] == run_stream(alone, own, noise=GivenNoise())


def not_small(count: int, *, rate: float) -> float:
    """`P(count + K >= K')`, by summing over both noises."""
    reach = math.ceil(40 / rate)
    return sum(
        compute_mass(rate, second) * compute_upper_tail(rate, second - count) for second in range(-reach, reach + 1)
    )


def test_prune_as_printed_is_not_private() -> None:
    """Deterministic: eight comparisons, counts 1 against 0, beta 0, a claim of 1: nothing is pruned with .0221 against
    .0039, a loss of 1.733, with noise of whole numbers 1.484; a bound of 2 makes it 2.458."""
    continuous = 1 - math.exp(-0.5) * 2.5 / 4
    assert continuous**8 == pytest.approx(0.0221, abs=5e-5)
    assert math.log(continuous**8 / 2**-8) == pytest.approx(1.733, abs=5e-4)
    # twenty times as much of everything comes close to continuous noise
    assert 8 * math.log(not_small(20, rate=1 / 40) / not_small(0, rate=1 / 40)) == pytest.approx(1.733, rel=0.01)
    for prune_below, loss in ((0, 1.4837), (2, 2.4584)):
        law = [not_small(count - prune_below, rate=0.5) for count in (0, 1)]
        assert 8 * math.log(law[1] / law[0]) == pytest.approx(loss, abs=1e-4)


def paths(levels: int, count: int, *, rate: float, prune_below: int) -> list[float]:
    """The chance that the path is pruned below each level, and that it is not, by the corrected comparisons."""
    above = compute_upper_tail(rate, prune_below - count)
    return [above**level * (1 - above) for level in range(levels - 1)] + [above ** (levels - 1)]


@pytest.mark.parametrize("prune_below", [-2, 0, 1, 5, 30])
def test_prune_corrected_loses_what_it_claims_and_no_more(prune_below: int) -> None:
    """Deterministic: the outcomes on a path of eight levels, all counts one larger."""
    epsilon = 0.75
    laws = [paths(8, count, rate=epsilon / 7, prune_below=prune_below) for count in (0, 1)]
    losses = [abs(math.log(first / second)) for first, second in zip(*laws, strict=True)]
    assert max(losses) <= epsilon + 1e-12
    if prune_below > 0:
        assert max(losses) == pytest.approx(epsilon)


def test_comparisons_are_of_the_inner_aggregations_at_the_rate_of_their_number() -> None:
    noise = GivenNoise([-5, 0, 2])
    small = find_small_aggregations(
        TREE, TREE.aggregate(np.array([[1, 2, 3, 4]])), rate=Fraction(1, 9), prune_below=6, noise=noise
    )
    assert small.tolist() == [[True, True, False, False, False, False, False]]
    assert noise.rates == [Fraction(1, 9)] * 3
    mechanism = PhsPegasus(
        hierarchy=TREE, epsilon=Fraction(1), sensitivity=3, prune_epsilon=Fraction(1, 4), prune_below=6
    )
    assert mechanism.prune_rate == Fraction(1, 4) / (2 * 3)


def rates_of_a_tick(mechanism: PhsPegasus, small: Sequence[bool]) -> list[Fraction]:
    """The rates of counts' noise at the first tick, all groups opening, when these aggregations are small."""
    noise = GivenNoise([-1000 if one else 1000 for one in small])
    mechanism.advance((mechanism.start(),), np.array([[5]]), noise=noise)
    return noise.rates[len(small) :]


def test_losses_of_a_tick_are_those_of_algorithm_18() -> None:
    """Levels 3, epsilon_p + epsilon_g = 3 with epsilon_g 3/5: at (epsilon_agg * 3 - 3/5) / 3, each group at 3/5/3/4."""
    mechanism = PhsPegasus(
        hierarchy=CHAIN, epsilon=Fraction(4), sensitivity=1, prune_epsilon=Fraction(1), prune_below=0
    )
    opening = Fraction(1, 20)
    once, twice, thrice = (share - Fraction(1, 5) for share in (1, 2, 3))
    assert rates_of_a_tick(mechanism, (False, False)) == [once] * 3 + [opening] * 3
    assert rates_of_a_tick(mechanism, (False, True)) == [once, twice] + [opening] * 2
    assert rates_of_a_tick(mechanism, (True, True)) == rates_of_a_tick(mechanism, (True, False)) == [thrice, opening]


def test_pruned_ticks_are_zero_and_skipped() -> None:
    """The leaf of a chain is pruned at the second tick: its group goes on from the first to the third."""
    mechanism = PhsPegasus(
        hierarchy=Hierarchy(parents=(-1, 0)),
        epsilon=Fraction(4),
        sensitivity=1,
        prune_epsilon=Fraction(1),
        prune_below=10,
    )
    states: tuple[HierarchyState, ...] = (mechanism.start(),)
    released = []
    for count, drawn in ((20, 0), (20, -100), (20, 0)):
        tick = mechanism.advance(states, np.array([[count]]), noise=GivenNoise([drawn]))
        states = tick.states
        released.append(tuple(map(float, tick.estimates[0])))
    assert released == [(20, 20), (20, 0), (20, 20)]
    assert [node.grouper.times for node in states[0].nodes] == [(3,), (2,)]


def test_free_pruning_follows_the_last_estimates() -> None:
    """Without noise, below 10: what is small at one tick has its parts pruned at the next, and one level comes back at
    each tick."""
    mechanism = PhsPegasusFree(
        hierarchy=CHAIN, epsilon=Fraction(3), sensitivity=1, prune_below=10, theta_factor=Fraction(0)
    )
    states: tuple[FreePruningState, ...] = (mechanism.start(),)
    released = []
    for count in (20, 5, 5, 20, 20, 20, 20):
        tick = mechanism.advance(states, np.array([[count]]), noise=GivenNoise())
        states = tick.states
        released.append(tuple(map(float, tick.estimates[0])))
    assert released == [(20, 20, 20), (5, 5, 5), (5, 0, 0), (20, 0, 0), (20, 20, 0), (20, 20, 20), (20, 20, 20)]


def test_parameters_are_checked() -> None:
    for prune_epsilon in (Fraction(0), Fraction(1)):
        with pytest.raises(ValueError, match="takes a part"):
            PhsPegasus(hierarchy=TREE, epsilon=Fraction(1), sensitivity=1, prune_epsilon=prune_epsilon, prune_below=1)


def test_errors_on_a_sparse_hierarchy_are_in_the_published_order() -> None:
    """128 streams with .2525 events a tick in all, 255 aggregations, 12 ticks of four seeded hierarchies at epsilon .1:
    the Laplace mechanism errs by h / epsilon = 80 on average, PeGaSus less, pruning far less; zeros 1.01 on average."""
    tree, levels = make_balanced_hierarchy(branching=2, levels=8), 8
    total = 646_254 / 20_000
    assert levels * total / 255 == pytest.approx(1.01373, abs=5e-6)
    counts = np.random.default_rng(86).poisson(total / 128, (12, 4, 128))
    budget: dict[str, Any] = {"hierarchy": tree, "epsilon": Fraction(1, 10), "sensitivity": 1}
    mechanisms: tuple[HierarchyMechanism[Any], ...] = (
        HsLaplace(**budget),
        HsPegasus(**budget),
        PhsPegasus(**budget, prune_epsilon=Fraction(1, 50), prune_below=20),
    )
    errors = {}
    for mechanism in mechanisms:
        noise = SeededNoise(87)
        states: tuple[Any, ...] = (mechanism.start(),) * 4
        found = []
        for now in counts:
            tick = mechanism.advance(states, now, noise=noise)
            states = tick.states
            found.append(np.abs(np.array(tick.estimates, dtype=np.float64) - tree.aggregate(now)).mean())
        errors[mechanism.name] = np.mean(found)
    assert errors["hs_laplace"] == pytest.approx(80, rel=0.1)
    assert errors["phs_pegasus"] < errors["hs_pegasus"] / 5
    assert errors["hs_pegasus"] < errors["hs_laplace"]
