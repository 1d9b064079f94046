"""The cutting of a question out of its statement, once its form is checked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.bind.bind_refusals import suggest_group_by_key
from planner.bind.joined_tables import read_joins
from planner.bind.other_tables import offer_join
from planner.bind.path_join import list_declared_tables
from planner.bind.unit_join import apply_bounds
from planner.bind.unit_lists.read_lists import read_lists
from planner.bind.unit_query import NOTHING, UnitQuestion, check_groups, read_unit_queries
from planner.bind.unit_values.find_sources import ValueSource
from planner.bind.unit_values.read_rows import RowsQuestion, read_row_values
from planner.bind.unit_values.read_values import list_read_sources, read_values
from planner.catalog.catalog import Catalog, Column, MergedKeys, Table, ValueGroups
from planner.errors import KeyholeError
from planner.extract.extract_refusals import refuse_outside_question, refuse_without_threshold, write_example_question
from planner.extract.form import check_form, find_partition_keys
from planner.extract.hints.curve_thresholds import ask_by_thresholds
from planner.extract.key_edits import edit_keys, show_keys
from planner.extract.private_read import ParsedQuestion
from planner.groups.computed_keys import add_computed_keys
from planner.groups.shown_values import wrap_answer
from planner.parser.clauses import Clauses, check_matches_tree, find_clauses, find_clauses_from, find_token
from planner.parser.edits import Edit
from planner.parser.lexer import Token, quote_identifier
from planner.parser.subquery_readers import find_enclosing_from
from planner.parser.tree import locate_name, write_node
from planner.scope.embedded import EmbeddedQuestion, Predicate, RankedExpression, UnitQuery
from planner.scope.functional_dependencies import write_existing
from planner.scope.group_by import read_group_by
from planner.scope.key_classes import find_stored_key
from planner.scope.name_resolution import Scope
from planner.scorecard.empty_source import write_empty_source
from planner.scorecard.number_columns import Numbers, NumberSql, band_numbers, describe_numbers
from planner.scorecard.ranked import RankedItem, find_ranking
from planner.scorecard.shown import find_shown_predicates, list_predicates
from planner.scorecard.shown_numbers import find_numbers, find_sorted_numbers, list_sorting_names, read_outer_use


@dataclass(frozen=True, slots=True)
class ExtractedQuestion:
    """A question of a statement: its SELECT, and the edits that replace the SELECT in the statement."""

    select: exp.Select
    embedded: EmbeddedQuestion
    edits: tuple[Edit, ...]


def extract_question(
    node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> tuple[ExtractedQuestion, ...]:
    """Return the question that reads a private table, with the edits that cut it out of its statement.

    There are several if several questions read the table through one WITH query per privacy unit. Raises KH100, KH101,
    KH103-KH107, KH110, KH201, KH202, KH215.
    """
    select = _find_select(node, table)
    rows = read_row_values(select, node, table, tokens)
    if rows:
        return tuple(_cut_over_rows(node, reading, text, tokens, catalog) for reading in rows)
    readings = read_unit_queries(select, node, table, text, tokens)
    if readings:
        return tuple(_cut_over_units(node, reading, text, tokens, catalog) for reading in readings)
    sources = list_read_sources(select, catalog)
    try:
        found = _find_clauses(select, node, tokens, is_behind=bool(sources))
    except KeyholeError as error:
        hint = write_example_question(table, node)
        raise refuse_outside_question(table, node, hint=hint) if error.code == "KH103" else error from None
    check_matches_tree(found, select, tokens)
    scope = read_joins(select, node, table, catalog, beside=[id(source.node) for source in sources])
    scope, own = read_values(select, sources, scope, catalog)
    scope = _compute_keys(select, scope)
    lists = read_lists(select, scope, catalog)
    reading = ParsedQuestion(node, select, scope, text, tokens, found, lists=lists, value_queries=own, catalog=catalog)
    reading = _read_numbers(reading, catalog)
    try:
        place = _make_extracted_question(reading, catalog)
        return (replace(place, edits=(*place.edits, *_empty_queries(sources, tokens))),)
    except KeyholeError as error:
        raise offer_join(error, scope.table, catalog, alias=scope.alias) from None


def _compute_keys(select: exp.Select, scope: Scope) -> Scope:
    """Return the scope with the keys that a question computes.

    Raise KH202, with a question by thresholds if there is one.
    """
    try:
        return add_computed_keys(scope, select)
    except KeyholeError as error:
        instead = ask_by_thresholds(select, scope) if error.code == "KH202" else None
        raise error if instead is None else error.replace_hint(instead) from None


def _cut_over_rows(
    node: exp.Table, reading: RowsQuestion, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> ExtractedQuestion:
    """Return the question over a table's rows with values of their units."""
    select, scope = reading.select, _compute_keys(reading.select, reading.scope)
    check_matches_tree(reading.clauses, select, tokens)
    lists = read_lists(select, scope, catalog)
    found = ParsedQuestion(
        node, select, scope, text, tokens, reading.clauses, lists=lists, value_queries=(reading.query,)
    )
    place = _make_extracted_question(_read_numbers(found, catalog), catalog)
    if reading.with_query_tokens is None:
        return place
    first, past = reading.with_query_tokens
    return replace(place, edits=(*place.edits, Edit(tokens[first].start, tokens[past - 1].end, (NOTHING,))))


def _find_clauses(select: exp.Select, node: exp.Table, tokens: tuple[Token, ...], *, is_behind: bool) -> Clauses:
    """Return the question's clauses. If the table `is_behind` them, subqueries of values follow FROM first."""
    first = select.args["from_"].this
    if not is_behind:
        return find_clauses(first if isinstance(first, exp.Table) else node, tokens)
    source = find_enclosing_from(tokens, find_token(tokens, locate_name(node)))
    return find_clauses(node, tokens) if source is None else find_clauses_from(source, tokens)


def _empty_queries(sources: Sequence[ValueSource], tokens: tuple[Token, ...]) -> Iterator[Edit]:
    """Yield the edits that empty the WITH queries whose values a question reads."""
    for source in sources:
        if source.cte is not None:
            inner = find_clauses(source.table, tokens)
            yield Edit(tokens[inner.select].start, tokens[inner.end - 1].end, (NOTHING,))


def _cut_over_units(
    node: exp.Table, reading: UnitQuestion, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> ExtractedQuestion:
    query, scope = reading.query, reading.scope
    found = ParsedQuestion(node, reading.select, scope, text, tokens, reading.clauses, reading.with_text, query)
    try:
        place = _make_extracted_question(_read_numbers(found, catalog), catalog)
    except KeyholeError as error:
        raise suggest_group_by_key(error, query.table, reading.select) if error.code == "KH202" else error from None
    check_groups(query, place.embedded.keys, reading.select.args.get("group") or reading.select)
    if not reading.is_shared:
        return place
    emptied = Edit(query.offset, query.offset + len(query.text), (NOTHING,))
    return replace(place, edits=(*place.edits, emptied))


def _read_numbers(place: ParsedQuestion, catalog: Catalog) -> ParsedQuestion:
    """Return the question with its shown and sorted expressions beside its keys."""
    select, found, tokens, chosen = place.select, place.clauses, place.tokens, catalog.defaults.numbers
    shown = () if chosen == "refuse" else find_numbers(select, found, tokens)
    predicates = find_shown_predicates(select, found, place.text, tokens, hidden=frozenset(one.item for one in shown))
    ranked = find_ranking(select, found, place.text, tokens, shown)
    place = replace(place, predicates=predicates, ranked=ranked)
    if not shown:
        return place
    is_banded = chosen == "bands" and ranked is None
    bands, asked = band_numbers(shown, place.scope, _find_keys(place), predicates) if is_banded else ((), ())
    written = () if ranked is not None else find_sorted_numbers(select, found, tokens, shown)
    return replace(
        place,
        numbers=Numbers(
            chosen=chosen,
            shown=shown,
            sorted=written,
            outer_use=read_outer_use(select, shown),
            band_predicates=asked,
            bands=bands,
            sorts=list_sorting_names(select, shown),
        ),
    )


def _find_keys(place: ParsedQuestion) -> tuple[Column, ...]:
    try:
        return read_group_by(place.select, place.scope)
    except KeyholeError:
        return ()


def _make_extracted_question(place: ParsedQuestion, catalog: Catalog) -> ExtractedQuestion:
    text, tokens, scope, select = place.text, place.tokens, place.scope, place.select
    keys = check_form(place)
    ranked = place.ranked
    first, past = tokens[place.clauses.select].start, tokens[place.clauses.end - 1].end
    end = past if ranked is None else max(past, tokens[ranked.end - 1].end)
    table, per_unit = _apply_bounds(place, keys)
    embedded = EmbeddedQuestion(
        text=text[first:end],
        offset=first,
        table=_add_key_columns(table, keys),
        alias=scope.alias,
        keys=keys,
        stored_question=None,
        public_tables=scope.public_tables,
        members=scope.members,
        unit_query=None if per_unit is None else replace(per_unit, is_only_query=_follows_one_with(select)),
        declared_table=_add_key_columns(scope.table, keys)
        if per_unit is None and _has_groupings(scope.table)
        else None,
        domain_refusal=None if place.has_thresholds else refuse_without_threshold(place),
        predicates=(
            *list_predicates(place.predicates, text, tokens),
            *(Predicate(text=write_node(node), name="", tree=node) for node in place.numbers.band_predicates),
        ),
        unit_lists=place.lists,
        unit_values=place.value_queries,
        numbers=describe_numbers(
            place.numbers, scope, select.args.get("having"), keys=keys, is_ranked=place.ranked is not None
        ),
        ranked=None if ranked is None else _make_ranked_expression(ranked, find_partition_keys(place, keys)),
        tree=select,
    )
    before, behind = around = wrap_answer(keys, embedded.table)
    if ranked is not None and ranked.partition and (existing := write_existing(keys, scope)):
        before, behind = before or "(SELECT answered.* FROM ", f"{behind[:-1] or ' AS answered'} WHERE {existing})"
    inner = [name for key in keys if isinstance(key.derivation, MergedKeys) for name in key.derivation.columns]
    alias = quote_identifier(scope.alias)
    body = Edit(tokens[place.clauses.source].start, past, (f"FROM {before}", 0, f"{behind} AS {alias}"))
    answered = tuple(find_stored_key(key, scope.table.columns) for key in keys)
    answered += tuple(embedded.table.get_column(name) for name in dict.fromkeys(inner))
    edits = [body, *edit_keys(place, answered)]
    embedded = replace(embedded, shown_keys=show_keys(place, keys, answered, around))
    if place.numbers.shown:
        source = write_empty_source(select, place.clauses, text, tokens, catalog)
        edits += NumberSql(place.numbers, select, scope, text, tokens, source).list_edits()
    return ExtractedQuestion(select, embedded, tuple(edits))


def _make_ranked_expression(ranked: RankedItem, partition: tuple[Column, ...]) -> RankedExpression:
    cut = ranked.cut
    return RankedExpression(
        tree=ranked.node,
        descending=ranked.descending,
        limit=cut.limit,
        offset=cut.offset,
        partition=tuple(key.name for key in partition),
        is_cut_elsewhere=cut.may_cut_anywhere,
        returns_all_rows=cut.keeps_every_row,
        is_self_contained=not ranked.windows and not ranked.partition and cut.offset is None,
        puts_nulls_first=ranked.nulls_first,
    )


def _apply_bounds(place: ParsedQuestion, keys: tuple[Column, ...]) -> tuple[Table, UnitQuery | None]:
    """Return the question's table with one unit's contribution bounds for these keys, and the subquery per unit.

    That subquery has one row per unit and key.
    """
    if place.per_unit is None:
        return apply_bounds(place.scope.table, keys), None
    query = replace(place.per_unit, table=apply_bounds(place.per_unit.table, keys), declared_table=place.per_unit.table)
    groups = query.table.groups_per_unit
    return replace(place.scope.table, groups_per_unit=groups, groupings=()), query


def _has_groupings(table: Table) -> bool:
    return any(one.groupings for one in list_declared_tables(table))


def _follows_one_with(select: exp.Select) -> bool:
    """Return True if a SELECT is a statement that starts with one WITH query."""
    with_ = select.args.get("with_")
    return select.parent is None and with_ is not None and len(with_.expressions) == 1


def _add_key_columns(table: Table, keys: tuple[Column, ...]) -> Table:
    """Return the table with the question's own columns: classes of the values of its keys."""
    own = {key.name: key for key in keys}
    inner = {name for key in keys if isinstance(key.derivation, MergedKeys) for name in key.derivation.columns}
    kept = [one for one in table.columns if not isinstance(one.derivation, ValueGroups) or one.name in inner - set(own)]
    known = {column.name for column in kept}
    return replace(table, columns=(*kept, *(key for name, key in own.items() if name not in known)))


def _find_select(node: exp.Table, table: Table) -> exp.Select:
    source = node.parent
    if isinstance(source, exp.Join) and isinstance(source.parent, exp.Select) and "from_" in source.parent.args:
        return source.parent
    if not isinstance(source, exp.From) or not isinstance(source.parent, exp.Select):
        raise refuse_outside_question(table, node, hint=write_example_question(table, node))
    return source.parent
