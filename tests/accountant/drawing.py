"""What the ledger's state machine draws: losses that a charge covers, and questions that continue paths."""

from dataclasses import replace

from hypothesis import strategies as st

from accountant.charges import Amounts, Charge, PathContinuation, Spent
from accountant.look_losses import LossAfterLooks
from mechanisms.threshold.renyi import ORDERS, Curve
from tests.accountant.model_ledger import ModelLedger


def unit_nano(epsilon_nano: int, *, unit: str) -> int:
    """A unit is in one key."""
    return 0 if unit == "row" else epsilon_nano


def uniform(epsilon_nano: int, *, unit: str) -> Spent:
    return Spent.from_uniform(epsilon_nano, unit_epsilon_nano=unit_nano(epsilon_nano, unit=unit))


def losses(data: st.DataObject, charge: Charge, most: int) -> Spent:
    """Of every key at most so much, one by one or all alike."""
    size, unit = charge.cells.key_count, charge.family.unit
    drawn = data.draw(st.lists(st.integers(0, most), min_size=size, max_size=size))
    if data.draw(st.booleans()):
        return uniform(max(drawn), unit=unit)
    return Spent.from_keys(drawn, unit_epsilon_nano=unit_nano(max(drawn), unit=unit))


def a_loss(data: st.DataObject, charge: Charge) -> Spent:
    """A loss that the charge, as it was reserved, covers."""
    is_by_looks = bool(charge.looks)
    if is_by_looks and data.draw(st.booleans()):
        return looks_that_ran(data, charge)
    if charge.is_by_curve:
        return Spent.from_uniform(charge.epsilon_nano, unit_epsilon_nano=charge.unit_epsilon_nano)
    spent = losses(data, charge, charge.epsilon_nano)
    if charge.path_continuation is None:
        return spent
    return replace(spent, fresh=losses(data, charge, charge.shared_amounts.epsilon_nano))


def sized(charge: Charge, most: int) -> Charge:
    """The same question, not dearer than `most`, so that the balances last for a few more."""
    epsilon_nano = min(charge.epsilon_nano, most)
    return replace(
        charge, epsilon_nano=epsilon_nano, unit_epsilon_nano=unit_nano(epsilon_nano, unit=charge.family.unit)
    )


def following(data: st.DataObject, model: ModelLedger, asked: Charge, identities: frozenset[str], most: int) -> Charge:
    """The question as one that continues the paths of these identities that there are, each news at most so dear."""
    version = asked.family.version
    states = sorted(head.state for identity in identities if (head := model.heads.get((identity, version))) is not None)
    if not states:
        return asked
    shared, known = (
        Amounts(news, unit_nano(news, unit=model.unit))
        for news in data.draw(st.tuples(st.integers(0, most), st.integers(0, most)))
    )
    return replace(asked, path_continuation=PathContinuation(tuple(states), shared_loss=shared, public_loss=known))


def with_curve(data: st.DataObject, asked: Charge, *, for_units: bool, for_cells: bool) -> Charge:
    """The question with a unit in three keys, and curves by which unit and cell may be charged: cheap, or as dear as a
    sum."""
    if for_units:
        unit_epsilon_nano = 3 * asked.epsilon_nano
        asked = replace(asked, unit_epsilon_nano=unit_epsilon_nano, renyi=a_curve(data, unit_epsilon_nano))
    asked = replace(asked, cell_renyi=a_curve(data, asked.epsilon_nano)) if for_cells else asked
    return with_looks(data, asked) if for_units or for_cells else asked


def with_looks(data: st.DataObject, asked: Charge) -> Charge:
    """The question by one look, or by up to three, each at a share of its loss."""
    most = asked.epsilon_nano
    early = data.draw(st.sets(st.integers(1, most - 1), max_size=2)) if most > 1 else set()
    looks = tuple(
        LossAfterLooks(
            end, None if asked.cell_renyi is None else tuple(nano * end // most for nano in asked.cell_renyi)
        )
        for end in (*sorted(early), most)
    )
    return replace(asked, looks=looks) if early else asked


def looks_that_ran(data: st.DataObject, charge: Charge) -> Spent:
    """Some looks of each key, and of a unit as many as of the key with most of them."""
    ends = st.sampled_from([look.epsilon_nano for look in charge.looks])
    ran = data.draw(st.lists(ends, min_size=charge.cells.key_count, max_size=charge.cells.key_count))
    most, reserved = max(ran), charge.epsilon_nano
    unit = charge.unit_epsilon_nano * most // reserved
    curve = None if charge.renyi is None else tuple(nano * most // reserved for nano in charge.renyi)
    if len(set(ran)) == 1:
        return Spent(most, unit, None, renyi=curve)
    return replace(Spent.from_keys(ran, unit_epsilon_nano=unit), renyi=curve)


def a_curve(data: st.DataObject, pure_nano: int) -> Curve:
    share = data.draw(st.sampled_from([0, 1, 4, 10]))
    return tuple(pure_nano * min(10, share + order) // 10 for order in range(len(ORDERS)))
