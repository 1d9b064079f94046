"""What a ledger must do, the simple way: a list of what was paid, and brute force over every possible record."""

from dataclasses import dataclass, field, replace

import numpy as np

from accountant.charges import MOST_NANO_PER_CHARGE, Amounts, Charge, PathState, Reservation, Spent, is_lasting
from accountant.errors import BalanceScope
from accountant.limits import BalanceLeft, BalanceRoom, Headroom, Limits
from accountant.unit_balance import UnitLoss, UnitRoom
from mechanisms.threshold.renyi import NO_CURVE, Curve
from tests.accountant.balances.test_overlap import exact_loss
from tests.accountant.examples import limits

OWN_CAP = 150
CAPS = limits(200, per_unit=500, per_query=90, per_table=700, analyst_per_predicate=OWN_CAP, analyst_per_unit=400)

DELTA = 1e-9
SMALL = tuple(range(80, 20, -5))
"""What a delta adds by order, in the place of numbers that are far above these caps."""


def small_conversion(delta: float) -> Curve:
    assert delta == DELTA
    return SMALL


def uniform(amounts: Amounts) -> Spent:
    return Spent.from_uniform(amounts.epsilon_nano, unit_epsilon_nano=amounts.unit_epsilon_nano)


NOTHING = Spent.from_uniform(0, unit_epsilon_nano=0)


@dataclass
class Paid:
    """One question: what each circle of readers has lost to it now."""

    charge: Charge
    own: Spent
    shared: Spent
    known: Spent
    refunded: Spent
    window: int


@dataclass
class Head:
    """A path. `origin` is the question whose refund depends on it, `taken` the one that continues it."""

    state: PathState
    origin: str | None
    taken: str | None = None


@dataclass
class ModelLedger:
    """`open` are reservations as they were granted, `ended` those that continued paths when a window opened.

    `heads` are paths by identity and version, `gone` states that can be
    continued no longer, `withdrawn` the questions whose refunds are gone for good; `answers` the
    stored answers by reservation, oldest first, and `held` by analyst and version the one that was paid for.
    """

    unit: str = "row"
    caps: Limits = CAPS
    paid: dict[str, Paid] = field(default_factory=dict)
    open: dict[str, Reservation] = field(default_factory=dict)
    heads: dict[tuple[str, str], Head] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    ended: set[str] = field(default_factory=set)
    grants: dict[str, int] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    held: dict[tuple[str, str], str] = field(default_factory=dict)
    gone: list[PathState] = field(default_factory=list)
    window: int = 0

    def in_window(self) -> list[Paid]:
        return [item for item in self.paid.values() if item.window == self.window]

    def left(self, asked: Charge, own_cap_nano: int) -> Headroom:
        """What each balance has left for a question over these keys, the analyst's own cap per key being this one."""
        paid = self.in_window()
        own = [(item.charge, item.own) for item in paid if item.charge.analyst == asked.analyst]
        shared = [(item.charge, item.shared) for item in paid if item.charge.shared]
        if self.caps.separates_analysts:
            refunded = {name for name, item in self.paid.items() if item.charge.analyst == asked.analyst}
            refunded -= self.withdrawn_by(asked)
            shared = [
                (item.charge, item.refunded if name in refunded else item.known)
                for name, item in self.paid.items()
                if item.charge.shared and item.window == self.window
            ]
        rooms = {BalanceScope.ANALYST_PER_UNIT: UnitRoom(loss_of_unit(own), 400, self.caps.delta)}
        left = {
            BalanceScope.ANALYST_PER_PREDICATE: (
                own_cap_nano - int(self.balances_of_cells(asked, own).max()),
                own_cap_nano,
            ),
            BalanceScope.ANALYST_PER_UNIT: (400 - self.balance(own), 400),
        }
        if asked.shared:
            cap = 200 + sum(self.grants.values())
            left[BalanceScope.PER_PREDICATE] = (cap - int(self.balances_of_cells(asked, shared).max()), cap)
            left[BalanceScope.PER_UNIT] = (500 - self.balance(shared), 500)
            rooms[BalanceScope.PER_UNIT] = UnitRoom(loss_of_unit(shared), 500, self.caps.delta)
            left[BalanceScope.PER_TABLE] = (700 - sum(spent.largest_losses.table_nano for _, spent in shared), 700)
        if self.unit == "row":
            left = {scope: amounts for scope, amounts in left.items() if not scope.endswith("per_unit")}
        return _headroom(left, rooms, row=self.unit == "row", apart=self.caps.separates_analysts)

    def balance(self, paid: list[tuple[Charge, Spent]]) -> int:
        """A unit's balance: all in pure terms, or the curves at the best order and the rest in pure terms."""
        pure = sum(spent.unit_epsilon_nano for _, spent in paid)
        curves = [curve for item, spent in paid if (curve := curve_of_unit(item, spent)) is not None]
        if self.caps.delta is None or not curves:
            return pure
        rest = sum(spent.unit_epsilon_nano for item, spent in paid if item.renyi is None)
        sums = [sum(at) for at in zip(*curves, strict=True)]
        return min(pure, rest + min(int(known + added) for known, added in zip(sums, SMALL, strict=True)))

    def balances_of_cells(self, asked: Charge, paid: list[tuple[Charge, Spent]]) -> np.ndarray:
        """Every key's balance: all in pure terms, or at the best order of the key, each at its worst record."""
        pure = exact_loss(asked, paid)
        if self.caps.cell_delta is None:
            return pure
        forms = [pure, *(at + added for at, added in zip(by_order(asked, paid), SMALL, strict=True))]
        return np.asarray(np.min(forms, axis=0))

    def further(self, asked: Charge, own_cap_nano: int, *, uses_curve: bool) -> dict[BalanceScope, int]:
        """How many more questions like this fit into the balances of cells, with each key at its own best order."""
        paid = self.in_window()
        own = [(item.charge, item.own) for item in paid if item.charge.analyst == asked.analyst]
        shared = [(item.charge, item.shared) for item in paid if item.charge.shared]
        found = {BalanceScope.ANALYST_PER_PREDICATE: self._fits(asked, own, own_cap_nano, uses_curve)}
        if asked.shared and not self.caps.separates_analysts:
            cap = 200 + sum(self.grants.values())
            found[BalanceScope.PER_PREDICATE] = self._fits(asked, shared, cap, uses_curve)
        return found

    def _fits(self, asked: Charge, paid: list[tuple[Charge, Spent]], cap_nano: int, uses_curve: bool) -> int:
        curve = asked.cell_renyi if uses_curve else None
        each = (asked.epsilon_nano,) * len(SMALL) if curve is None else curve
        forms = [(exact_loss(asked, paid), 0, asked.epsilon_nano)]
        forms += zip(by_order(asked, paid), SMALL, each, strict=True)
        many = 10**6  # more than anything that costs a nano
        counts = [
            np.where(left < 0, 0, many if more == 0 else np.maximum(left, 0) // max(more, 1))
            for left, more in ((cap_nano - known - added, more) for known, added, more in forms)
        ]
        return int(np.max(counts, 0).min())

    def check_within_caps(self, analyst: str, asked: Charge) -> None:
        """No unit has lost more than its caps, whatever was refunded, nor any record in these keys."""
        paid = self.in_window()
        shared = [(item.charge, item.shared) for item in paid if item.charge.shared]
        assert self.balances_of_cells(asked, shared).max() <= 200 + sum(self.grants.values())
        own = [(item.charge, item.own) for item in paid if item.charge.analyst == analyst]
        assert self.balance([(item.charge, item.shared) for item in paid if item.charge.shared]) <= 500
        assert self.balance(own) <= 400

    def withdrawn_by(self, asked: Charge) -> set[str]:
        """The asker's own questions whose refunds count no longer once their paths are continued."""
        states = () if asked.path_continuation is None else asked.path_continuation.paths
        origins = {head.origin for head in self.heads.values() if head.state in states}
        return {name for name in origins if name is not None and self.paid[name].charge.analyst == asked.analyst}

    def continuing(self) -> list[str]:
        """Open reservations that continue paths in this window."""
        return [name for name, one in self.open.items() if one.charge.path_continuation and name not in self.ended]

    def continued_before(self) -> list[str]:
        """Open reservations that continued paths when a window opened."""
        return [name for name in self.open if name in self.ended]

    def is_taken(self, states: list[PathState]) -> bool:
        return any(self.heads[state.identity, state.version].taken is not None for state in states)

    def reserve(self, reservation: Reservation) -> None:
        asked = reservation.charge
        self.paid[reservation.id] = Paid(
            asked,
            own=uniform(asked.own_amounts),
            shared=uniform(asked.shared_amounts),
            known=uniform(asked.known_amounts),
            refunded=uniform(asked.known_amounts),
            window=self.window,
        )
        self.open[reservation.id] = reservation
        for state in () if asked.path_continuation is None else asked.path_continuation.paths:
            self.heads[state.identity, state.version].taken = reservation.id
        self._recount()

    def commit(self, identity: str, spent: Spent, answer: bytes | None, names: frozenset[str]) -> None:
        item = self.paid[identity]
        charge, version = item.charge, item.charge.family.version
        item.own, item.shared = replace(spent, fresh=None), spent.find_shared_part(charge)
        del self.open[identity]
        self._leave(charge)
        for name in () if identity in self.ended else names:
            self._forget(name, version)
            origin = identity if charge.path_continuation is None and not charge.is_by_curve else None
            taken = identity if charge.is_by_curve else None
            self.heads[name, version] = Head(PathState(name, version, identity), origin, taken)
        if answer is not None:
            self._store(identity, answer)
        self._recount()

    def read(self, identity: str, asked: Charge, spent: Spent, answer: bytes | None) -> None:
        """Charge one analyst alone; an answer of paths is stored, a stored one is not stored again."""
        self.paid[identity] = Paid(asked, spent, NOTHING, NOTHING, NOTHING, self.window)
        if answer is not None:
            self._store(identity, answer)

    def answer_for(self, analyst: str, version: str) -> str | None:
        """Whose answer an analyst is given: the one held, else the first."""
        stored = [identity for identity in self.answers if self.paid[identity].charge.family.version == version]
        return self.held.get((analyst, version), stored[0] if stored else None)

    def give_back(self, identity: str) -> None:
        del self.paid[identity]
        del self.open[identity]
        for head in self.heads.values():
            if head.taken == identity:
                head.taken = None
        self._recount()

    def spend_for_good(self, identity: str) -> None:
        del self.open[identity]
        self._leave(self.paid[identity].charge)
        self._recount()

    def open_window(self) -> None:
        self.ended.update(self.continuing())
        self.window += 1
        self.gone += [head.state for head in self.heads.values()]
        self.heads.clear()
        for identity in self.open:
            charge = replace(self.paid[identity].charge, path_continuation=None)
            worst = uniform(charge.own_amounts)
            self.paid[identity] = Paid(charge, worst, worst, worst, worst, self.window)

    def prune(self, version: str) -> None:
        for name, of_version in list(self.heads):
            if of_version == version:
                self._forget(name, version)

    def _store(self, identity: str, answer: bytes) -> None:
        charge = self.paid[identity].charge
        self.answers[identity] = answer
        self.hold(charge.analyst, charge.family.version, identity)

    def hold(self, analyst: str, version: str, identity: str) -> None:
        """Nobody asks again on a live version, and nothing is kept for who did."""
        if is_lasting(version):
            self.held.setdefault((analyst, version), identity)

    def _recount(self) -> None:
        """Refunds count unless a path of the question is being continued, or was."""
        for identity, item in self.paid.items():
            if identity in self.open or not item.charge.shared or item.charge.path_continuation is not None:
                continue
            held = (
                any(head.origin == identity and head.taken in self.open for head in self.heads.values())
                or identity in self.withdrawn
            )
            item.refunded = item.known if held else item.own

    def _leave(self, charge: Charge) -> None:
        for state in () if charge.path_continuation is None else charge.path_continuation.paths:
            self.withdrawn.update(
                head.origin for head in self.heads.values() if head.state == state and head.origin is not None
            )
            self.heads = {key: head for key, head in self.heads.items() if head.state != state}
            self.gone.append(state)

    def _forget(self, name: str, version: str) -> None:
        """A path that is gone while a question continues it is never given back."""
        head = self.heads.pop((name, version), None)
        if head is not None:
            self.gone.append(head.state)
        if head is not None and head.taken in self.open and head.origin is not None:
            self.withdrawn.add(head.origin)


def by_order(asked: Charge, paid: list[tuple[Charge, Spent]]) -> list[np.ndarray]:
    """At each order, what every key of `asked` has lost at most, questions by curve at their divergence."""
    return [
        exact_loss(
            asked,
            [(one, spent if one.cell_renyi is None else at_order(one, spent, order)) for one, spent in paid],
        )
        for order in range(len(SMALL))
    ]


def at_order(charge: Charge, spent: Spent, order: int) -> Spent:
    """The loss with every key at its divergence: of all looks, or of those that ran."""
    assert charge.cell_renyi is not None
    curves = {look.epsilon_nano: look.cell_renyi for look in charge.looks} | {charge.epsilon_nano: charge.cell_renyi}
    losses = np.broadcast_to(spent.read_amounts(charge.cells), charge.cells.shape_by_column)
    return Spent.from_keys([(curves[int(one)] or ())[order] for one in losses.reshape(-1)], unit_epsilon_nano=0)


def curve_of_unit(charge: Charge, spent: Spent) -> Curve | None:
    return charge.renyi if spent.renyi is None else spent.renyi


def loss_of_unit(paid: list[tuple[Charge, Spent]]) -> UnitLoss:
    curves = [curve for item, spent in paid if (curve := curve_of_unit(item, spent)) is not None]
    return UnitLoss(
        sum(spent.unit_epsilon_nano for _, spent in paid),
        sum(spent.unit_epsilon_nano for item, spent in paid if item.renyi is not None),
        tuple(map(sum, zip(*curves, strict=True))) if curves else NO_CURVE,
    )


def _headroom(
    left: dict[BalanceScope, tuple[int, int]], rooms: dict[BalanceScope, UnitRoom], *, row: bool, apart: bool
) -> Headroom:
    """What is left of each balance, by its scope, and its cap, put together; one question may cost 90."""
    amounts = {scope: amount for scope, (amount, _) in left.items()}
    table = amounts.get(BalanceScope.PER_TABLE)
    key = amounts.get(BalanceScope.PER_PREDICATE, MOST_NANO_PER_CHARGE)
    units = [amounts.get(BalanceScope.PER_UNIT), None if row else table]
    return Headroom(
        analyst_room=BalanceRoom(
            min(90, amounts[BalanceScope.ANALYST_PER_PREDICATE]), amounts.get(BalanceScope.ANALYST_PER_UNIT)
        ),
        shared_room=BalanceRoom(
            key if table is None or not row else min(key, table),
            min((one for one in units if one is not None), default=None),
        ),
        separates_analysts=apart,
        query_room_nano=90,
        balances=tuple(BalanceLeft(scope, *left[scope], rooms.get(scope)) for scope in BalanceScope if scope in left),
    )
