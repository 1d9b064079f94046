"""The claim of a planned question: its charge to the ledger, and the caps that apply.

Every public key of the question is charged, even one without rows. A filter on further key columns (`WHERE month = ...
GROUP BY country`) narrows the charged cells to those values, so that a new month brings its own budget. This holds only
for columns of which a privacy unit has one value. A customer with rows at two hours is counted in `WHERE hour = 9` and
again in `WHERE hour = 10`, so both answers reveal something about the same customer in the same group. If the rows of
one cell can change other groups than their own (`find_cell_reach`), all cells are charged, whatever the question's
keys. Then too, only columns with one value per unit separate cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

import numpy as np

from accountant.charges import MOST_NANO_PER_CHARGE, NANO, Amounts, Cells, Charge, Family, NanoArray, Spent
from accountant.events.packed_losses import find_levels
from accountant.limits import Limits
from accountant.look_losses import LossAfterLooks
from mechanisms.formula import Booleans
from mechanisms.keyhole.key_parts import cut_keys_into_parts
from mechanisms.keyhole.noise_continuation import CONTINUABLE
from mechanisms.protocol import Calibration, Epsilons, Outcome
from mechanisms.ranking.calibration import count_charged_groups
from mechanisms.ranking.run import Ranking
from mechanisms.side_by_side import count_threads, run_in_order
from mechanisms.threshold.renyi import Curve, bound_curve, compute_curve
from planner.catalog.catalog import Catalog, Column, Lookup, Table, Value
from planner.catalog.key_space import format_value
from planner.catalog.listed_values import format_values
from planner.functionals.cells import OWN_GROUP, find_cell_reach
from planner.question.condition import ALWAYS, And, Compare, Condition, Within
from planner.question.condition_text import write_canonical
from planner.question.plan import Plan
from planner.question.question import Question
from planner.question.unit_groups import count_unit_groups
from planner.statements.settings import read_max_epsilon
from proxy.open_policy.accounts import convert_to_nano, find_table_limits, make_label
from proxy.open_policy.service import Service
from proxy.pipeline.messages import Asked
from proxy.pipeline.question_refusals import refuse_changed_data, refuse_uncountable_cost

_QUESTIONS = 8  # whose cells are remembered: one is claimed twice or more, and a million cells take a while to check


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A planned question with its charge, its caps and its data version.

    `is_capped_by_session` is True if the session's own setting caps one question below the owner's cap.
    """

    asked: Asked
    plan: Plan
    charge: Charge
    limits: Limits
    version: str
    is_capped_by_session: bool = False


def make_claim(plan: Plan, catalog: Catalog, *, asked: Asked, version: str) -> Claim:
    """Return the claim of a plan on data version `version`: its worst-case charge, and its caps.

    Raise KH302 for a question that costs more than the ledger can hold.
    """
    question = plan.question
    family, cells = find_charged_keys(question, version=version)
    worst = find_worst_amounts(plan)
    allowed = find_table_limits(question.table, catalog, asked.analyst)
    if worst.epsilon_nano > MOST_NANO_PER_CHARGE:
        raise refuse_uncountable_cost(plan)
    charge = Charge(
        question=identify_question(plan, catalog),
        analyst=asked.analyst.name,
        family=family,
        cells=cells,
        epsilon_nano=worst.epsilon_nano,
        unit_epsilon_nano=worst.unit_epsilon_nano,
        shared=True,
        renyi=None if allowed.delta is None else find_worst_curve(plan),
        cell_renyi=None if allowed.cell_delta is None else find_worst_cell_curve(plan),
    )
    if charge.is_by_curve and charge.epsilon_nano:
        charge = replace(charge, looks=tuple(_list_losses_after_looks(plan, charge)))
    limits = _apply_own_cap(allowed, read_max_epsilon(asked.settings))
    return Claim(
        asked=asked,
        plan=plan,
        charge=charge,
        limits=limits,
        version=version,
        is_capped_by_session=limits.per_query_nano != allowed.per_query_nano,
    )


def find_charged_keys(question: Question, *, version: str) -> tuple[Family, Cells]:
    """Return the family and the cells that the ledger charges for a question on data version `version`."""
    cells, remaining = _find_cells(question)
    table = question.table
    unchanging = {make_label(column) for column in table.columns if column.immutable}
    family = Family(
        table=table.ledger_root.table,
        unit=",".join(table.ledger_root.unit) or "row",
        columns=tuple(label for label, _ in cells.columns),
        filter="" if remaining == ALWAYS else write_canonical(remaining),
        version=version,
        immutable=frozenset(label for label, _ in cells.columns if label in unchanging),
    )
    return family, cells


def make_current_claim(service: Service, plan: Plan, asked: Asked) -> Claim:
    """Return the question's claim on its table's current data version. Raise KH302."""
    return make_claim(plan, service.catalog, asked=asked, version=service.find_version(plan.question.table))


def check_same_data(service: Service, claim: Claim, *, is_paid: bool) -> None:
    """Refuse a question if its table's data version has changed since the claim was made.

    Call it before reserving, and again after reading.

    Guarantee: every answer was read between two moments at which its table had the charged version. Otherwise a row
    that moved from one version to the next could be read in the new one and charged in the old one. The refusal depends
    on the clock, the owner's declarations and the current files alone. A live table has a version for each question,
    and is read in one statement.

    Raises:
        KeyholeError: KH501. If `is_paid`, it says that the reserved loss stays spent.
    """
    if not service.can_read(claim.plan.question.table, claim.version):
        raise refuse_changed_data(is_paid=is_paid)


def identify_question(plan: Plan, catalog: Catalog) -> str:
    """Return the SHA-256 digest by which the ledger identifies a question.

    The digest covers the question's meaning, the policy, the pinned data and the source.
    """
    return sha256(f"{catalog.digest}:{plan.fingerprint}".encode()).hexdigest()


def count_groups_of_unit(plan: Plan) -> int:
    """Return the largest number of keys whose losses add up for one privacy unit.

    It is the number of groups that a unit can be in, or 1 if the loss of a key is that of the whole question. For a
    ranking without early looks it is at most the number of returned groups, or twice that if a unit may raise some
    values and lower others.
    """
    groups, ranked = count_unit_groups(plan.question), plan.question.ranked
    if ranked is not None and plan.ranking is not None:
        if plan.question.functionals or plan.ranking.looks:
            return groups
        return count_charged_groups(plan.ranking.task, groups=groups, signed=ranked.has_both_signs)
    return 1 if plan.calibration.whole_question else groups


def count_losses_in_cell(plan: Plan) -> int:
    """Return how many times a cell is charged the loss of one key."""
    return find_cell_reach(plan.question).count_losses(count_groups_of_unit(plan))


def find_worst_amounts(plan: Plan) -> Amounts:
    """Return the worst-case loss of a plan for one cell and for one unit, on new or on stored noise."""
    of_key = convert_to_nano(plan.worst_case_epsilon)
    return Amounts(
        count_losses_in_cell(plan) * of_key, count_groups_of_unit(plan) * of_key if plan.question.table.unit else 0
    )


def find_worst_curve(plan: Plan) -> Curve | None:
    """Return one unit's loss as a curve of Rényi divergences, if all noise is drawn at the finest rates at once.

    Return None if that is not known: for rows, rankings, and mechanisms that read other noise than one path per
    functional and group and bring no divergences. These are charged by their pure loss alone.
    """
    calibration = plan.calibration
    if not plan.question.table.unit or not _has_known_curve(plan):
        return None
    most = find_worst_amounts(plan).unit_epsilon_nano
    return tuple(min(nano, most) for nano in compute_curve(calibration, groups=count_groups_of_unit(plan)))


def find_worst_cell_curve(plan: Plan) -> Curve | None:
    """Return one cell's loss as a curve of Rényi divergences, if all noise is drawn at the finest rates at once.

    Return None if that is not known, as `find_worst_curve` does. A cell that may move a group in both directions loses
    at most what randomised response of twice the group's loss does.

    Proof: docs/proofs/cells.md.
    """
    if not _has_known_curve(plan):
        return None
    reach, most = find_cell_reach(plan.question), find_worst_amounts(plan).epsilon_nano
    groups = count_groups_of_unit(plan) if reach.changes_all_groups else 1
    if reach.is_doubled:
        curve = bound_curve(2 * convert_to_nano(plan.worst_case_epsilon), groups=groups)
    else:
        curve = compute_curve(plan.calibration, groups=groups)
    return tuple(min(nano, most) for nano in curve)


def _has_known_curve(plan: Plan) -> bool:
    """Return True if a plan reads one noise path per functional and group and no other noise, or brings divergences."""
    calibration = plan.calibration
    is_known = calibration.mechanism in CONTINUABLE or bool(calibration.divergences)
    # looks are charged to cells by what ran in their own group
    is_read = not calibration.after_looks or find_cell_reach(plan.question) == OWN_GROUP
    return is_known and is_read and not calibration.whole_question and plan.ranking is None


def _list_losses_after_looks(plan: Plan, charge: Charge) -> Iterator[LossAfterLooks]:
    """Yield the loss of one cell after each look of a question whose looks draw their own noise."""
    for one in _list_calibrations_after_looks(plan):
        nano = convert_to_nano(one.worst_case_epsilon)
        curve = tuple(min(nano, order) for order in compute_curve(one, groups=1))
        yield LossAfterLooks(nano, None if charge.cell_renyi is None else curve)


def _list_calibrations_after_looks(plan: Plan) -> list[Calibration]:
    """Return what a question would be calibrated to if its looks ended after the first, the second, and so on."""
    return [
        replace(plan.calibration, worst_case_epsilon=loss.epsilon, divergences=loss.divergences)
        for loss in plan.calibration.after_looks
    ]


def find_largest_amounts(plan: Plan, losses: Epsilons) -> Amounts:
    """Return the largest loss of any cell, and the total loss of one unit, from the loss of each key.

    `losses` has the loss of each key, in epsilon. A unit that can be in G groups loses at most the sum of the G largest
    losses, or the loss of the whole question.
    """
    return _find_amounts(plan, _convert_to_nanos(losses))


def find_run_loss(claim: Claim, outcome: Outcome, ranking: Ranking | None = None) -> Spent:
    """Return the loss that a run really had, including the part that it newly revealed of earlier noise.

    The charge of `claim` is the reserved one.
    """
    all_of_it = _spend(claim, outcome.epsilon if ranking is None else _add_ranking(claim, outcome.epsilon, ranking))
    if claim.charge.looks and claim.charge.renyi is not None:
        return replace(all_of_it, renyi=_sum_curves_that_ran(claim, outcome, all_of_it, claim.charge.renyi))
    if claim.charge.path_continuation is None or outcome.fresh is None:
        return all_of_it
    return replace(all_of_it, fresh=_spend(claim, outcome.fresh))


def _sum_curves_that_ran(claim: Claim, outcome: Outcome, spent: Spent, reserved: Curve) -> Curve:
    """Return one unit's curve of the looks that ran: those of the keys with the most looks, in as many as it can be."""
    plan = claim.plan
    losses = np.array([loss.epsilon for loss in plan.calibration.after_looks])
    ran = np.searchsorted(losses, np.sort(outcome.epsilon)[-count_groups_of_unit(plan) :])
    numbers = np.bincount(ran, minlength=losses.size).tolist()
    curves = [
        compute_curve(one, groups=number)
        for one, number in zip(_list_calibrations_after_looks(plan), numbers, strict=True)
    ]
    sums = (sum(orders) for orders in zip(*curves, strict=True))
    return tuple(min(nano, most, spent.unit_epsilon_nano) for nano, most in zip(sums, reserved, strict=True))


def _add_ranking(claim: Claim, decided: Epsilons, ranking: Ranking) -> Epsilons:
    """Return the loss of each key by its decision and its ranking together, rounded up.

    The loss is capped at the worst case of both together.
    """
    added: Epsilons = np.minimum(np.nextafter(decided + ranking.epsilon, np.inf), claim.plan.worst_case_epsilon)
    return np.where(ranking.epsilon > 0.0, added, decided)


def _spend(claim: Claim, epsilon: Epsilons) -> Spent:
    losses = _convert_to_nanos(epsilon)
    most, reach = _find_amounts(claim.plan, losses), find_cell_reach(claim.plan.question)
    if reach.reaches_other_groups:
        return Spent.from_uniform(most.epsilon_nano, unit_epsilon_nano=most.unit_epsilon_nano)
    losses = losses * reach.count_losses(1)
    if int(losses.min()) == most.epsilon_nano:
        return Spent.from_uniform(most.epsilon_nano, unit_epsilon_nano=most.unit_epsilon_nano)
    in_order = _arrange_by_cell(losses, claim.plan.question, claim.charge.cells)
    return Spent.from_keys(in_order, unit_epsilon_nano=most.unit_epsilon_nano)


def _convert_to_nanos(epsilon: Epsilons) -> NanoArray:
    found = np.empty(epsilon.size, dtype=np.int64)

    def convert(part: slice) -> None:
        levels = find_levels(epsilon[part])  # a handful; to look each one up is cheaper than to sort the keys by them
        nanos = np.array([convert_to_nano(float(level)) for level in levels], dtype=np.int64)
        found[part] = nanos[np.searchsorted(levels, epsilon[part])]

    list(run_in_order(convert, cut_keys_into_parts(epsilon.size), threads=count_threads()))
    return found


def _find_amounts(plan: Plan, losses: NanoArray) -> Amounts:
    unit = 0
    if plan.question.table.unit:
        groups = count_groups_of_unit(plan)
        unit = int(np.partition(losses, losses.size - groups)[losses.size - groups :].sum())
    reach = find_cell_reach(plan.question)
    return Amounts(reach.count_losses(1) * (unit if reach.changes_all_groups else int(losses.max())), unit)


def _apply_own_cap(given: Limits, epsilon: float | None) -> Limits:
    """Return the caps, with the cap on one question lowered to the session's own `keyhole.max_epsilon`."""
    if epsilon is None:
        return given
    least = min(given.per_query_nano or MOST_NANO_PER_CHARGE, int(epsilon * NANO))
    return replace(given, per_query_nano=least)


@lru_cache(maxsize=_QUESTIONS)
def _find_cells(question: Question) -> tuple[Cells, Condition]:
    """Return the charged cells, and the conditions of the filter that do not narrow them.

    A question without groups costs nothing: the whole domain is charged zero.
    """
    everywhere = find_cell_reach(question).reaches_other_groups
    columns = {
        make_label(column): _list_charged_texts(column, values or column.domain or ())
        for column, values in zip(question.keys.columns, question.keys.values, strict=True)
        if not everywhere or question.table.is_fixed_by_unit(column)
    }
    remaining: list[Condition] = []
    for conjunct in question.where.list_conjuncts():
        narrowed = _find_restricted_key(question.table, conjunct)
        if narrowed is None or narrowed[0] in columns:
            remaining.append(conjunct)
        else:
            columns[narrowed[0]] = tuple(format_value(value) for value in narrowed[1])
    return Cells(tuple(sorted(columns.items()))), remaining[0] if len(remaining) == 1 else And(tuple(remaining))


def _list_charged_texts(column: Column, values: tuple[Value, ...]) -> tuple[str, ...]:
    """Return the values of a key that are charged, as text for the ledger."""
    if is_class_key(column):
        return tuple(format_value(value) for value, _ in list_charged_values(column, values))
    return format_values(values)


def is_class_key(column: Column) -> bool:
    """Return True if a key groups values of another key into classes.

    The ledger then charges the values of that other key.
    """
    return isinstance(column.derivation, Lookup) and column.derivation.has_classes


def list_charged_values(column: Column, values: tuple[Value, ...]) -> tuple[tuple[Value, int], ...]:
    """Return the charged values of a key, each with the index of the question's value to which it belongs.

    If a group is a class of several key values, each of these values is charged. So each value has one budget, whatever
    classes it is in.
    """
    places = {value: index for index, value in enumerate(values)}
    if isinstance(column.derivation, Lookup) and column.derivation.has_classes:
        pairs = column.derivation.pairs
        return tuple((value, places[first]) for value, first in pairs if first is not None and first in places)
    return tuple(places.items())


def _find_restricted_key(table: Table, conjunct: Condition) -> tuple[str, tuple[Value, ...]] | None:
    """Return the key that a condition restricts, and the values that it allows. Return None if it restricts no key."""
    match conjunct:
        case Compare(column=name, operator="=", value=value):
            wanted: tuple[Value, ...] = (value,)
        case Within(column=name, values=wanted):
            pass
        case _:
            return None
    column = table.get_column(name)
    if not (table.is_row_unit or table.is_fixed_by_unit(column)):
        return None
    domain = column.domain
    values = tuple(value for value in wanted if domain is not None and value in domain)
    # A value outside the public domain would be a cell that nobody charges: leave such a filter a filter.
    return (make_label(column), values) if values and len(values) == len(wanted) else None


def arrange_by_question(cells: Booleans, claim: Claim) -> Booleans:
    """Return an array over the question's groups: True where any of a group's charged cells is marked.

    `cells` is in the ledger's order of cells. The result has the shape of the question's keys.
    """
    question, charged = claim.plan.question, claim.charge.cells
    names = [name for name, _ in charged.columns]
    own = [make_label(column) for column in question.keys.columns]
    others = tuple(axis for axis, name in enumerate(names) if name not in own)
    marked: Booleans = np.asarray(cells.reshape(charged.shape_by_column).any(axis=others), dtype=np.bool_)
    kept = [name for name in names if name in own]
    marked = marked.transpose([kept.index(name) for name in own if name in kept])
    there = tuple(slice(None) if name in kept else None for name in own)
    shape = [
        len(charged.columns[names.index(name)][1]) if name in kept else size
        for name, size in zip(own, claim.plan.question.keys.shape, strict=True)
    ]
    marked = np.broadcast_to(marked[there], shape)
    for axis, (column, values) in enumerate(zip(question.keys.columns, question.keys.values, strict=True)):
        if own[axis] in kept and is_class_key(column):
            together = np.zeros((len(values), *np.moveaxis(marked, axis, 0).shape[1:]), dtype=np.bool_)
            np.logical_or.at(
                together, [place for _, place in list_charged_values(column, values)], np.moveaxis(marked, axis, 0)
            )
            marked = np.moveaxis(together, 0, axis)
    return marked


def _arrange_by_cell(losses: NanoArray, question: Question, cells: Cells) -> NanoArray:
    """Return the losses of the question's keys in the ledger's order of cells.

    A loss is repeated for each cell of its key.
    """
    names = tuple(make_label(column) for column in question.keys.columns)
    shaped = losses.reshape(question.keys.shape)
    for axis, (column, values) in enumerate(zip(question.keys.columns, question.keys.values, strict=True)):
        if is_class_key(column):
            shaped = shaped.take([place for _, place in list_charged_values(column, values)], axis=axis)
    order = [names.index(name) for name, _ in cells.columns if name in names]
    arranged = shaped.transpose(order)
    index = tuple(slice(None) if name in names else None for name, _ in cells.columns)
    return np.ascontiguousarray(np.broadcast_to(arranged[index], cells.shape_by_column)).reshape(-1)
