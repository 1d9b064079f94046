"""The filter of a unit's balance against every strategy of an adversary in a small world."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accountant import unit_balance
from accountant.balances.filter import find_headroom
from accountant.balances.fold import Balances
from accountant.charges import MOST_CAP_NANO
from accountant.unit_balance import UnitLoss, UnitRoom
from mechanisms.threshold.renyi import NO_CURVE, ORDERS, Curve, bound_curve, convert_to_epsilon
from tests.accountant.examples import charge, limits

NANO = 10**9
DELTA = 0.05
CURVES = st.lists(st.integers(1, 50), min_size=len(ORDERS), max_size=len(ORDERS)).map(tuple)


Kinds = tuple[tuple[int, Curve | None], ...]


def list_admitted(kinds: Kinds, asked: tuple[int, ...], *, cap: float) -> tuple[int, ...]:
    """The kinds of which a unit's balance admits one more after so many of each."""
    loss = UnitLoss(0)
    for kind, count in zip(kinds, asked, strict=True):
        for _ in range(count):
            loss = loss.add_question(*kind)
    here = UnitRoom(loss, round(cap * NANO), DELTA)
    return tuple(place for place, kind in enumerate(kinds) if here.compute_needed_amount(*kind) <= here.left_nano)


def most_excess(
    kinds: Kinds, *, cap: float, steps: int, list_kinds: Callable[..., tuple[int, ...]] = list_admitted
) -> float:
    """The largest excess of P(E) over exp(cap) P'(E), whatever is chosen in turn among randomised responses of these
    pure losses, each charged by that or by its curve, as long as the filter admits it."""

    @cache
    def admitted(asked: tuple[int, ...]) -> tuple[int, ...]:
        return list_kinds(kinds, asked, cap=cap)

    @cache
    def most(asked: tuple[int, ...], lost: int) -> float:
        best = max(0.0, 1.0 - math.exp(cap - lost / NANO))
        for place in admitted(asked) if sum(asked) < steps else ():
            nano = kinds[place][0]
            chance = 1 / (1 + math.exp(-nano / NANO))
            now = tuple(count + (other == place) for other, count in enumerate(asked))
            best = max(best, chance * most(now, lost + nano) + (1 - chance) * most(now, lost - nano))
        return best

    return most((0,) * len(kinds), 0)


SOME = 300_000_000
KINDS = ((SOME, None), (SOME, bound_curve(SOME, groups=1)))


def test_no_strategy_tells_more_than_the_cap_but_for_delta() -> None:
    assert 0 < most_excess(KINDS, cap=4.0, steps=22) <= DELTA


def test_a_filter_without_what_delta_adds_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail."""
    monkeypatch.setattr(unit_balance, "convert_to_epsilon", lambda delta: NO_CURVE)
    assert most_excess(KINDS, cap=4.0, steps=46) > DELTA


FIRST, SECOND = SOME // 2, 3 * SOME


def most_excess_by_looks(*, cap: float, gives_back_all: bool, questions: int) -> float:
    """The same for questions of two looks, of which the second runs if the first came out low. Both are reserved. What
    is given back is the second look if it did not run, or always."""
    first, second = ((nano, bound_curve(nano, groups=1)) for nano in (FIRST, SECOND))

    @cache
    def is_admitted(firsts: int, seconds: int) -> bool:
        loss = UnitLoss(0)
        for kind, times in ((first, firsts), (second, seconds)):
            for _ in range(times):
                loss = loss.add_question(*kind)
        both = tuple(map(sum, zip(first[1], second[1], strict=True)))
        room = UnitRoom(loss, round(cap * NANO), DELTA)
        return room.compute_needed_amount(FIRST + SECOND, both) <= room.left_nano

    @cache
    def most(firsts: int, seconds: int, lost: int) -> float:
        best = max(0.0, 1.0 - math.exp(cap - lost / NANO))
        if firsts == questions or not is_admitted(firsts, seconds):
            return best
        ran = seconds + (0 if gives_back_all else 1)
        for sign in (1, -1):  # what the low outcome of the first look tells
            of_low = 1 / (1 + math.exp(-sign * FIRST / NANO))
            chance = 1 / (1 + math.exp(-SECOND / NANO))
            more = lost + sign * FIRST
            low = chance * most(firsts + 1, ran, more + SECOND) + (1 - chance) * most(firsts + 1, ran, more - SECOND)
            best = max(best, of_low * low + (1 - of_low) * most(firsts + 1, seconds, lost - sign * FIRST))
        return best

    return most(0, 0, 0)


def test_looks_that_did_not_run_may_be_given_back_and_no_others() -> None:
    assert 0 < most_excess_by_looks(cap=4.0, gives_back_all=False, questions=20) <= DELTA
    assert most_excess_by_looks(cap=4.0, gives_back_all=True, questions=20) > DELTA


@given(st.lists(st.tuples(st.integers(1, 50), st.none() | CURVES), max_size=6), st.none() | CURVES, st.integers(1, 50))
def test_as_many_fit_as_can_be_charged_one_after_the_other(
    asked: list[tuple[int, Curve | None]], form: Curve | None, nano: int
) -> None:
    added = convert_to_epsilon(1e-5)
    cap = min(added) + 300
    loss = UnitLoss(0)
    for earlier in asked:
        loss = loss.add_question(*earlier)
    room = UnitRoom(loss, cap, 1e-5)
    # all of them together, since by curve the first may need more than the balance has for one alone
    count = room.count_further_questions(nano, form)
    for more, fits in ((count, True), (count + 1, False)):
        together = UnitLoss(
            loss.pure_nano + more * nano,
            loss.in_curve_nano + (0 if form is None else more * nano),
            loss.curve if form is None else tuple(a + more * b for a, b in zip(loss.curve, form, strict=True)),
        )
        if more:
            assert (together.find_balance(1e-5) <= cap) is fits


def test_without_a_delta_a_balance_is_the_plain_sum() -> None:
    loss = UnitLoss(0).add_question(7, (1,) * len(ORDERS)).add_question(5, None)
    assert (loss.find_balance(None), loss.bound_odds_change(None)) == (12, 12)
    room = UnitRoom(loss, 20, None)
    assert (room.left_nano, room.count_further_questions(4, (1,) * len(ORDERS)), room.find_largest_by_curve(3)) == (
        8,
        2,
        0,
    )


def test_odds_that_may_move_either_way_fail_with_half_of_delta_in_each() -> None:
    order = ORDERS[3]
    loss = UnitLoss(0).add_question(9 * NANO, tuple(0 if one == order else 9 * NANO for one in ORDERS))
    part = DELTA / 2 / len(ORDERS)
    least = min(math.log(1 / part) / (one - 1) + (0 if one == order else 9) for one in ORDERS)
    assert loss.bound_odds_change(DELTA) == pytest.approx(least * NANO, abs=100)


def test_a_curve_is_charged_only_where_it_leaves_more() -> None:
    """Where another balance ends after one question, both fit as often, and noise that can be refined is kept."""
    asked = replace(charge(SOME, unit="patient"), renyi=bound_curve(SOME, groups=1))
    for per_predicate, more in ((MOST_CAP_NANO, True), (SOME, False), (SOME // 2, False)):
        caps = replace(limits(per_predicate, per_unit=400 * SOME), delta=1e-9)
        assert find_headroom(Balances(), asked, caps).uses_curve is more


def test_a_smaller_delta_leaves_less_and_none_least() -> None:
    dear = tuple(2 * NANO // 100 * order for order in ORDERS)
    loss = UnitLoss(0)
    for _ in range(10):
        loss = loss.add_question(2 * NANO, dear)
    left = [UnitRoom(loss, 8 * NANO, delta).left_nano for delta in (1e-5, 1e-9, 1e-20, None)]
    assert left == sorted(left, reverse=True)
    assert left[-1] == -12 * NANO


def test_what_fits_by_curve_fits_whatever_its_noise() -> None:
    room = UnitRoom(UnitLoss(NANO), 8 * NANO, 1e-9)
    found = room.find_largest_by_curve(52)
    assert room.compute_needed_amount(52 * found, bound_curve(found, groups=52)) <= room.left_nano
    beyond = found + 200_000
    assert room.compute_needed_amount(52 * beyond, bound_curve(beyond, groups=52)) > room.left_nano
