"""The way of a question's text to a `Question`: its tables, its restricted keys, and thresholds as integers."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime

from mechanisms.formula import TRUE, Cut, list_literals
from planner.aggregates.comparison import Comparison
from planner.bind.bind_refusals import refuse_deep_nesting, refuse_too_many_groups
from planner.bind.fixed_keys import narrow_by_fixed_keys
from planner.bind.lookup_columns import move_conditions_to_bases
from planner.bind.other_tables import offer_join
from planner.bind.set_branches import QuestionParts, read_question
from planner.bind.unit_lists.resolve_lists import resolve_lists
from planner.bind.unit_totals import resolve_unit_query
from planner.bind.unit_values.bound_places import narrow_by_row_numbers
from planner.bind.unit_values.resolve_values import resolve_values
from planner.catalog.catalog import Catalog, Table
from planner.catalog.key_space import KeySpace
from planner.catalog.pace import TableSize
from planner.errors import KeyholeError
from planner.functionals.atoms.read_atoms import Atoms, read_atoms
from planner.functionals.cell_readings import GROUPS_COUNTED
from planner.functionals.unit_rows import canonicalise_rows
from planner.groups.computed_keys import describe_rows_without_group
from planner.groups.null_groups import describe_lost_nulls
from planner.parser.lexer import spell_name
from planner.question.condition import ALWAYS
from planner.question.products import add_products
from planner.question.question import Accuracy, Measure, Question, Ranked, UnitRows
from planner.rankings.differences import describe_priced_differences, price_differences
from planner.rankings.group_differences import describe_missing_values
from planner.rankings.growth_bases import propose_base, set_bases
from planner.rankings.ranked import make_ranking, settle_price
from planner.scope.embedded import EmbeddedQuestion, list_leaves
from planner.scope.key_classes import count_charged_groups
from planner.scope.owner_bands import find_bands
from planner.values.constant import ConstantContext, ParameterCast, ParameterValue
from planner.values.expressions import uses_clock
from planner.values.row_counts import read_count


def bind_question(
    embedded: EmbeddedQuestion,
    catalog: Catalog,
    *,
    accuracy: Accuracy,
    parameters: Mapping[int, ParameterValue | None],
    today: date,
    is_utc: bool = False,
    skipped_midnights: tuple[date, ...] = (),
    casts: Mapping[ParameterCast, ParameterValue | None] | None = None,
) -> Question:
    """Read the names and conditions of a question's text against the policy, and return it as a `Question`.

    Parameters:
        parameters: the values of `$1`, `$2`, ... that the question uses.
        today: the value of current_date.
        is_utc: the session's TimeZone is UTC.
        skipped_midnights: the days on which clocks there jump over midnight.
        casts: the results of PostgreSQL's casts of parameters.

    Raises KH1xx, KH2xx, KH304, with positions in the statement that holds the question.
    """
    try:
        given = ConstantContext(parameters=parameters, today=today, casts=casts or {}, is_utc=is_utc)
        made = _ask(embedded, catalog, accuracy, given)
        lost = tuple(_describe_lost_days(embedded, made.keys, skipped_midnights))
        return replace(made, warnings=made.warnings + lost) if lost else made
    except RecursionError:
        raise refuse_deep_nesting() from None
    except KeyholeError as error:
        if embedded.stored_question is not None:
            raise KeyholeError(
                error.code,
                error.message,
                detail=error.detail or f'The stored question "{embedded.stored_question}" is refused.',
                hint=error.hint,
            ) from None
        told = error
        if embedded.unit_query is None:
            told = offer_join(error, embedded.table, catalog, alias=embedded.alias)
        raise embedded.place_error(told) from None


def _ask(embedded: EmbeddedQuestion, catalog: Catalog, accuracy: Accuracy, given: ConstantContext) -> Question:
    embedded, told = resolve_lists(embedded, given)
    embedded = resolve_values(embedded, given)
    embedded, per_unit = resolve_unit_query(embedded, given)
    composed = () if embedded.unit_query is None else embedded.unit_query.total_expressions
    if not composed:
        return _ask_resolved(embedded, per_unit, told, catalog, accuracy, given)
    try:
        made = _ask_resolved(embedded, per_unit, told, catalog, accuracy, given)
    except KeyholeError as error:
        detail, hint = (None if one is None else _name_totals(one, composed) for one in (error.detail, error.hint))
        message = _name_totals(error.message, composed)
        raise KeyholeError(error.code, message, detail=detail, hint=hint, position=error.position) from None
    return replace(made, warnings=tuple(_name_totals(one, composed) for one in made.warnings))


def _name_totals(text: str, composed: Iterable[tuple[str, str]]) -> str:
    """Return a message with the names that a subquery gives to expressions of totals in their place."""
    for written, called in composed:
        spelled = re.escape(written)  # the parentheses of a call stay
        text = re.sub(rf"(?<!\w)\({spelled}\)|{spelled}", lambda _: spell_name(called), text)  # noqa: B023
    return text


def _ask_resolved(
    embedded: EmbeddedQuestion,
    per_unit: UnitRows | None,
    told: tuple[str, ...],
    catalog: Catalog,
    accuracy: Accuracy,
    given: ConstantContext,
) -> Question:
    what = read_question(embedded, given, per_unit=per_unit, adds_clips=accuracy.adds_guards)
    if embedded.domain_refusal is not None and what.where != ALWAYS:
        raise embedded.domain_refusal
    formulas = (what.formula, *what.predicates)
    compared = [leaf for one in formulas for leaf in one.list_comparisons() if isinstance(leaf, Comparison)]
    compared += [] if what.ranked is None else [what.ranked]
    bounded = embedded.table
    if embedded.declared_table is not None:
        bounded = narrow_by_fixed_keys(embedded.declared_table, bounded, keys=what.keys.columns, where=what.where)
    bounded = narrow_by_row_numbers(bounded, what.where)
    table = add_products(bounded, (part.column for leaf in compared for part in leaf.every_part))
    based, told_of_bases = set_bases(formulas, accuracy)
    (formula, *predicates), priced = price_differences(
        based,
        table=table,
        keys=what.keys,
        where=what.where,
        per_unit=per_unit,
        accuracy=accuracy,
        per_query=catalog.budget.per_query,
    )
    made = read_atoms(
        formula,
        predicates=predicates,
        names=embedded.predicate_names,
        table=table,
        where=what.where,
        accuracy=accuracy,
    )
    size = count_charged_groups(what.keys.columns, what.keys.values)
    if size > catalog.max_keys:
        raise refuse_too_many_groups(size, embedded.keys, catalog, at=what.group)
    ranked = _rank(embedded, what, table, accuracy, given)
    clock = what.reads_clock or (embedded.unit_query is not None and uses_clock(embedded.unit_query.tree))
    told_of_bases += (
        *describe_priced_differences(formulas, priced, accuracy),
        *propose_base(formulas, dict(priced), accuracy),
    )
    counted = {GROUPS_COUNTED} if embedded.has_calendar else set()
    warnings = told + what.clipped + told_of_bases + tuple(one for one in made.warnings if one not in counted)
    warnings += tuple(_list_warnings(made, what.keys, ranked=ranked, reads_clock=clock, given=given))
    warnings += tuple(describe_rows_without_group(what.keys.columns))
    warnings += tuple(_warn_of_size(made, table, dict(catalog.sizes).get(table.name)))
    warnings += tuple(dict.fromkeys(one for leaf in list_leaves(embedded) for one in describe_lost_nulls(leaf)))
    warnings += tuple(
        f"{name} is {truth} for the values of {key} that have no threshold"
        for truth, known in (("false", what.publicly_false_keys), ("NULL", what.publicly_null_keys))
        for name, places in zip(embedded.predicate_names, known, strict=True)
        for key, _ in places
    )
    question = Question(
        table=table,
        keys=what.keys,
        where=what.where,
        functionals=made.functionals,
        atoms=made.atoms,
        formula=made.formula,
        predicates=made.predicates,
        predicate_names=embedded.predicate_names,
        publicly_false_keys=what.publicly_false_keys,
        publicly_null_keys=what.publicly_null_keys,
        null_predicates=what.null_predicates,
        ranked=ranked,
        accuracy=accuracy,
        warnings=warnings,
        per_unit=per_unit,
        lists_domain=embedded.domain_refusal is not None,
        priced_differences=priced,
    )
    return move_conditions_to_bases(canonicalise_rows(settle_price(question, per_query=catalog.budget.per_query)))


def _rank(
    embedded: EmbeddedQuestion, what: QuestionParts, table: Table, accuracy: Accuracy, given: ConstantContext
) -> Ranked | None:
    """Return the ranking of the question's keys, if there is one.

    A tolerance in percent refers to the least positive band of the owner. Raise KH106, and what `make_ranking` raises.
    """
    written = embedded.ranked
    if written is None or what.ranked is None:
        return None
    bands = find_bands(written.tree, embedded.scope, set(what.keys.names))
    found = make_ranking(
        what.ranked,
        descending=written.descending,
        limit=None if written.limit is None else read_count(written.limit, given),
        table=table,
        where=what.where,
        formula=what.formula,
        accuracy=accuracy,
        scale=None if bands is None else min((one for one in bands.thresholds if one > 0), default=None),
        keys=what.keys,
        puts_nulls_first=written.puts_nulls_first,
    )
    return replace(
        found,
        offset=0 if written.offset is None else read_count(written.offset, given) or 0,
        partition=written.partition,
        may_cut_anywhere=written.is_cut_elsewhere,
        keeps_every_row=written.returns_all_rows,
    )


def _warn_of_size(made: Atoms, table: Table, size: TableSize | None) -> Iterator[str]:
    """Warn if no group can qualify, because the whole table would not reach a threshold even within its tolerance."""
    if size is None or table.members:
        return

    def is_beyond(cut: Cut) -> bool:
        functional = made.functionals[cut.functional]
        if functional.cell_reads:
            return False  # it adds up groups
        each = None if table.is_row_unit else functional.unit_range
        most = size.rows * functional.sensitivity if each is None else size.units * each[1]
        if functional.measure not in (Measure.TOTAL, Measure.UNIT_SUM):
            most = min(most, size.units if functional.measure is Measure.UNITS else size.rows)
        return cut.above and functional.offsets is None and cut.cut - cut.tolerance >= most

    if made.formula.fold(is_beyond, every=any, some=lambda parts: bool(parts) and all(parts)):
        beyond = {cut.functional for cut in list_literals(made.formula) if is_beyond(cut)}
        text = next(atom.text for atom in made.atoms if atom.functional in beyond)
        yield (
            f"no group can reach {text}: {table.name} has about {size.rows:,} rows"
            + ("" if table.is_row_unit else f" of {size.units:,} ({table.unit_text})")
        )


def _describe_lost_days(embedded: EmbeddedQuestion, keys: KeySpace, skipped: Sequence[date]) -> Iterator[str]:
    """Yield a sentence if PostgreSQL's calendar of a question goes on beside midnight, because clocks jump over one.

    Parameters:
        skipped: the days without a midnight in the session's TimeZone.
    """
    if not embedded.has_zoned_calendar or not skipped:
        return
    days = {one.date() if isinstance(one, datetime) else one for values in keys.values for one in values}
    lost = min(days.intersection(skipped), default=None)
    if lost is not None:
        yield (
            f"this TimeZone has no midnight on {lost}: from there PostgreSQL's generate_series goes on at a later hour "
            "and finds no rows, while Keyhole counts every day; with ends cast ::timestamp PostgreSQL does as well"
        )


def _list_warnings(
    made: Atoms, space: KeySpace, *, ranked: Ranked | None, reads_clock: bool, given: ConstantContext
) -> Iterator[str]:
    if ranked is not None:
        groups = f"every value of {space.description}" if made.formula == TRUE else "every group that qualifies"
        counted = "" if ranked.mean is not None else "; a group without values counts as 0"
        yield f"the ranking has {groups}, with rows of data or without{counted}"
        if ranked.cells is not None:
            yield from describe_missing_values(ranked.cells)
            if not any(one.cell_reads for one in made.functionals):
                yield GROUPS_COUNTED
    if made.predicates:
        every = made.formula == TRUE and ranked is None
        rows = f"every value of {space.description} is a row, with rows of data or without" if every else ""
        lacks = any(read.cells.indices_without_value for one in made.functionals for read in one.cell_reads)
        null = "where a neighbour is missing, a comparison is NULL as in SQL" if lacks else ""
        yield "; ".join(filter(None, (rows, "a predicate over no values, which is NULL in SQL, is false", null)))
    if reads_clock:
        yield f"current_date and now() stand for {given.today.isoformat()} 00:00"
    if space.size == 0:
        yield "WHERE leaves no groups"
    if ranked is None and not any(True for one in (made.formula, *made.predicates) for _ in list_literals(one)):
        yield "the formula is constant: the answer does not depend on the data"
