"""Extraction of the parts of a query that Keyhole answers: questions, stored questions, monitors, its own relations."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from planner.catalog.catalog import Catalog, StoredQuestion, Table
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError, refuse_unsupported
from planner.extract.constant_result import find_idle_tables, is_constantly_empty
from planner.extract.cut import ExtractedQuestion, extract_question
from planner.extract.extract_refusals import (
    hide_monitor_text,
    hide_stored_text,
    refuse_monitor_without_question,
    refuse_nested_question,
    refuse_outer_parameter,
    refuse_reserved_name,
    refuse_stored_without_question,
    refuse_too_many_questions,
)
from planner.extract.normalise import CALENDAR_RULES, OTHER_GROUPS, normalise
from planner.extract.outer_joins.public_lists import is_zoned_series
from planner.extract.outer_query import Asking
from planner.extract.relations import Relation, list_private_tables, list_relations
from planner.extract.set_operations import join_branches
from planner.extract.virtual_relations import (
    VIRTUAL_SCHEMA,
    MonitorRelation,
    VirtualRelation,
    make_monitor_relation,
)
from planner.parser.clauses import find_token
from planner.parser.edited_query import EditedQuery
from planner.parser.edits import Edit, Origin
from planner.parser.lexer import Token, quote_identifier
from planner.parser.lexer import read_tokens as lex
from planner.parser.tree import (
    ParsedQuery,
    cut_out,
    find_offset,
    find_position,
    locate_name,
    parse,
    read_column_name,
    read_table,
)
from planner.scope.embedded import EmbeddedQuestion, EmbeddedRelation, list_leaves
from planner.scope.policy_names import use_policy_names
from planner.scope.stored_units import qualify_stored_units
from planner.scorecard.empty_source import write_without_rows

MOST_QUESTIONS = 16  # each is a scan of the source and a reservation of its own
_Unread: TypeAlias = Callable[[exp.Expr], frozenset[int]]


def extract_questions(text: str, tokens: tuple[Token, ...], catalog: Catalog) -> Asking | None:
    """Cut the questions out of a query. Return None if it holds nothing that Keyhole answers.

    Raises KH100-KH107, and KH2xx for keys, with positions in `text`.
    """
    _check_reading_only(tokens)
    names = _list_known_names(catalog)
    if not any(token.is_name and token.value in names for token in tokens):
        return None
    written = EditedQuery(parse(text, tokens), Origin(text))
    _check_query(written.query)
    if changes := use_policy_names(written.query, catalog):
        written = written.edit(changes, rule=use_policy_names.__name__)
    if changes := qualify_stored_units(written.query, catalog):
        written = written.edit(changes, rule=qualify_stored_units.__name__)
        asking = _extract_from_normal_form(written, catalog)
        return None if asking is None else replace(asking, shadow_text=written.origin.text)
    return _extract_from_normal_form(written, catalog)


def _extract_from_normal_form(written: EditedQuery, catalog: Catalog) -> Asking | None:
    """Bring the query to the form of questions, and cut these out."""
    private = {id(node) for node, _ in list_private_tables(written.query, catalog)}
    if private:
        _check_ctes(written, catalog)
    normalised: EditedQuery | None = None
    try:
        normalised = normalise(written, catalog)
        return _mark_zoned(_extract_questions(normalised, catalog, find_unread=_find_no_tables), written)
    except KeyholeError:
        idle = private & find_idle_tables(written.query.tree)
        instead = written if idle == private else normalised
        if not idle or instead is None:
            raise
    return _mark_zoned(_extract_questions(instead, catalog, find_unread=find_idle_tables), written)


def _mark_zoned(asking: Asking | None, written: EditedQuery) -> Asking | None:
    """Return the statement with a mark on questions whose groups the query lists by the session's TimeZone."""
    if asking is None or not any(map(is_zoned_series, written.query.tree.find_all(exp.GenerateSeries))):
        return asking
    embedded = tuple(
        replace(part, has_zoned_calendar=True)
        if isinstance(part, EmbeddedQuestion)
        and part.origin is not None
        and not CALENDAR_RULES.isdisjoint(part.origin.rules)
        else part
        for part in asking.embedded
    )
    return replace(asking, embedded=embedded)


def _find_no_tables(_: exp.Expr) -> frozenset[int]:
    return frozenset()


def _check_query(query: ParsedQuery) -> None:
    if not isinstance(query.tree, exp.Query | exp.Values):
        raise refuse_unsupported("this form of query is not allowed", position=query.tokens[0].start + 1)
    if not query.has_word("insert", "update", "delete", "merge", "create", "into"):
        return
    for node in query.tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Into):
        raise refuse_unsupported(f"{type(node).__name__.upper()} is not allowed", position=find_position(node))


def _extract_questions(read: EditedQuery, catalog: Catalog, *, find_unread: _Unread) -> Asking | None:
    """Cut the questions out of the query. The private tables that `find_unread` finds become empty relations."""
    idle = find_unread(read.query.tree)
    found = list_relations(read.query, catalog, idle=idle)
    if not found:
        return None
    _check_ctes(read, catalog)
    try:
        asking = _cut_questions(read.query, catalog, found, unread=idle)
    except KeyholeError as error:
        raise read.origin.place_error(error) from None
    rules = read.origin.rules
    has_calendar = len(asking.questions) == 1 and not CALENDAR_RULES.isdisjoint(rules) and OTHER_GROUPS not in rules
    parts = (_cut_out(part, read.origin, has_calendar=has_calendar) for part in asking.embedded)
    return replace(asking, embedded=tuple(parts))


def _cut_out(
    part: EmbeddedQuestion | EmbeddedRelation, origin: Origin, *, has_calendar: bool
) -> EmbeddedQuestion | EmbeddedRelation:
    """Return the question with trees of its own, detached from the statement's tree."""
    if isinstance(part, EmbeddedRelation) or part.stored_question is not None:
        return part
    for leaf in list_leaves(part):
        cut_out(leaf.tree)
    if part.unit_query is not None:
        cut_out(part.unit_query.tree)
    return replace(part, origin=origin, has_calendar=has_calendar) if origin.edits else part


def _list_known_names(catalog: Catalog) -> frozenset[str]:
    """Return the names that a statement must contain if Keyhole answers it."""
    return catalog.answered_names | {one.name for one in catalog.source_names} | {VIRTUAL_SCHEMA}


def _check_reading_only(tokens: tuple[Token, ...]) -> None:
    for index, token in enumerate(tokens):
        if token.is_word("into"):
            raise refuse_unsupported("SELECT INTO is not allowed", position=token.start + 1)
        if token.is_word("insert", "update", "delete", "merge") and index > 1 and tokens[index - 1].is_symbol("("):
            before = tokens[index - 2]
            if before.is_word("as", "materialized"):
                raise refuse_unsupported(f"{token.value.upper()} is not allowed", position=token.start + 1)


def _check_ctes(read: EditedQuery, catalog: Catalog) -> None:
    answered = catalog.answered_names | {VIRTUAL_SCHEMA}
    for called, identifier in read.query.list_ctes():
        if called in answered:
            raise read.origin.place_error(refuse_reserved_name(identifier))


@dataclass(frozen=True, slots=True)
class _Replacement:
    """A span of the text with its replacement, and the relations that the replacement's integers stand for."""

    edit: Edit
    embedded: tuple[EmbeddedQuestion | EmbeddedRelation, ...]


def _cut_questions(
    query: ParsedQuery, catalog: Catalog, found: list[tuple[exp.Table, Relation]], *, unread: frozenset[int]
) -> Asking:
    text, tokens, tree = query.text, query.tokens, query.tree
    holes: list[_Replacement] = []
    places: list[ExtractedQuestion] = []
    if sum(isinstance(what, StoredQuestion) for _, what in found) > MOST_QUESTIONS:
        raise refuse_too_many_questions(most=MOST_QUESTIONS)
    for node, what in found:
        if isinstance(what, Table) and id(node) not in unread:
            if any(_find_select(node) is place.select for place in places):
                continue  # joined there with another private table
            places.extend(extract_question(node, what, text, tokens, catalog))
        else:
            holes.append(_replace_relation(node, what, tokens, catalog))
            holes.extend(_Replacement(edit, ()) for edit in _cut_qualifiers(node, tree, tokens))
    whole = join_branches(tuple(places), text, tokens)
    holes.extend(_Replacement(edit, (embedded,)) for embedded, edit in whole)
    for place in places:
        if not any(edit.start <= place.embedded.offset < edit.end for _, edit in whole):
            holes.extend(_Replacement(edit, (place.embedded,) if 0 in edit.replacement else ()) for edit in place.edits)
    asking = _join_holes(text, holes)
    if len(asking.questions) > MOST_QUESTIONS:
        raise refuse_too_many_questions(most=MOST_QUESTIONS)
    return replace(asking, is_constantly_empty=is_constantly_empty(tree, (node for node, _ in found), asking))


def _find_select(node: exp.Table) -> exp.Expr | None:
    """Return the SELECT in whose FROM or JOIN a table stands."""
    return node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None


def _replace_relation(node: exp.Table, what: Relation, tokens: tuple[Token, ...], catalog: Catalog) -> _Replacement:
    first = find_token(tokens, locate_name(node))
    last = find_token(tokens, find_offset(node.this))
    alias = node.args.get("alias")
    named = "" if alias is not None and alias.this is not None else f" AS {quote_identifier(what.name)}"
    if first > 0 and tokens[first - 1].is_word("table"):
        first, before = first - 1, "SELECT * FROM "
    else:
        before = ""
    body: tuple[str | int, ...]
    embedded: tuple[EmbeddedQuestion | EmbeddedRelation, ...]
    match what:
        case Table():
            body, embedded = (write_without_rows(what) + named,), ()
        case VirtualRelation():
            body, embedded = (0, named), (EmbeddedRelation(what.name, what.columns),)
        case Monitor():
            relation = declare_monitor(what, catalog)
            shown, behind = relation.wrapping_sql
            at = find_offset(node.this) + 1
            body = (shown, 0, behind + named) if shown else (0, named)
            embedded = (EmbeddedRelation(what.name, relation.columns, monitor_position=at),)
        case StoredQuestion():
            stored = _extract_stored_question(what, catalog)
            body, embedded = ("(", *stored.outer, ")" + named), stored.embedded
    return _Replacement(Edit(tokens[first].start, tokens[last].end, (before, *body) if before else body), embedded)


def _extract_stored_question(question: StoredQuestion, catalog: Catalog) -> Asking:
    alone = replace(catalog, stored_questions=())
    sql = question.sql.strip().rstrip(";")
    try:
        tokens = lex(sql)
        asking = extract_questions(sql, tokens, alone)
    except KeyholeError as error:
        raise hide_stored_text(error, question) from None
    if asking is None or not asking.questions:
        raise refuse_stored_without_question(question)
    around = " q ".join(part for part in asking.outer if isinstance(part, str))
    given = any(token.kind == "parameter" for token in tokens)
    if given and any(token.kind == "parameter" for token in lex(around)):
        raise refuse_outer_parameter(question)
    embedded = tuple(
        replace(part, stored_question=question.name, parameters=question.parameters)
        if isinstance(part, EmbeddedQuestion)
        else part
        for part in asking.embedded
    )
    return replace(asking, embedded=embedded)


def declare_monitor(monitor: Monitor, catalog: Catalog) -> MonitorRelation:
    """Return the relation of a monitor: its question's keys in the order of GROUP BY, then its times.

    Raises KH1xx and KH2xx if its SQL is not one question.
    """
    sql = monitor.sql.strip().rstrip(";")
    try:
        asking = extract_questions(
            sql, lex(sql), replace(catalog, stored_questions=(), monitors=()).replace_numbers("refuse")
        )
    except KeyholeError as error:
        raise hide_monitor_text(error, monitor) from None
    if asking is None or len(asking.questions) != 1 or len(asking.embedded) != 1:
        raise refuse_monitor_without_question(monitor)
    return make_monitor_relation(monitor, asking.questions[0])


def _cut_qualifiers(node: exp.Table, tree: exp.Expr, tokens: tuple[Token, ...]) -> list[Edit]:
    """Return the edits that drop `keyhole.` and `public.` before column references.

    These refer to a relation that is replaced and has no alias.
    """
    if node.args.get("alias") is not None:
        return []
    _, _, schema, called = read_table(node)
    edits = {}
    for column in tree.find_all(exp.Column):
        named = read_column_name(column)
        if named.schema == (schema or "public") and named.table == called:
            start = locate_name(column)
            edits[start] = Edit(tokens[find_token(tokens, start)].start, find_offset(column.args["table"]), ())
    return list(edits.values())


def _join_holes(text: str, holes: list[_Replacement]) -> Asking:
    outer: list[str | int] = []
    embedded: list[EmbeddedQuestion | EmbeddedRelation] = []
    at = 0
    seen: set[tuple[int, int]] = set()
    for hole in sorted(holes, key=lambda hole: (hole.edit.start, hole.edit.end)):
        edit = hole.edit
        if (edit.start, edit.end) in seen:
            continue
        if edit.start < at:
            raise refuse_nested_question(at=edit.start + 1)
        seen.add((edit.start, edit.end))
        outer.append(text[at : edit.start])
        outer.extend(part if isinstance(part, str) else part + len(embedded) for part in edit.replacement)
        embedded.extend(hole.embedded)
        at = edit.end
    outer.append(text[at:])
    return Asking(
        embedded=tuple(embedded), outer=tuple(part for part in outer if part != ""), is_constantly_empty=False
    )
