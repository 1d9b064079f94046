"""Finding what Keyhole answers inside a query: questions, stored questions, monitors, relations under `keyhole.`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

from sqlglot import exp

from planner.bind.unit_lists.find_lists import find_listing_tables
from planner.bind.unit_values.find_sources import find_value_tables
from planner.catalog.catalog import Catalog, StoredQuestion, Table
from planner.catalog.monitor import Monitor
from planner.errors import KeyholeError, not_allowed
from planner.extract.constant_result import constantly_empty, idle_tables
from planner.extract.cut import Place, question_edits
from planner.extract.extract_refusals import (
    like_keyholes_table,
    monitor_asks_nothing,
    nested_questions,
    parameter_outside,
    refused_monitor,
    refused_stored,
    stored_asks_nothing,
    too_many_questions,
)
from planner.extract.normalise import Normalised, normalise
from planner.extract.outer_query import Asking
from planner.extract.set_operations import join_branches
from planner.extract.virtual_relations import (
    VIRTUAL_SCHEMA,
    MonitorRelation,
    VirtualRelation,
    monitor_relation,
    virtual_relation,
)
from planner.parser.clauses import at_offset
from planner.parser.edits import Edit, Origin
from planner.parser.lexer import Token, quote_identifier, tokens_after_edits
from planner.parser.lexer import tokens as lex
from planner.parser.tree import Parsed, cut_out, name, offset, parse, position
from planner.scope.embedded import Embedded, EmbeddedVirtual, leaves
from planner.scope.policy_names import use_policy_names
from planner.scope.stored_units import qualify_stored_units
from planner.scorecard.empty_source import without_rows

MOST_QUESTIONS = 16  # each is a scan of the source and a reservation of its own
Found: TypeAlias = Table | StoredQuestion | Monitor | VirtualRelation
_Unread: TypeAlias = Callable[[exp.Expr], frozenset[int]]


def embed(text: str, tokens: tuple[Token, ...], catalog: Catalog) -> Asking | None:
    """Take the query apart, or return None if there is nothing in it for Keyhole.

    Raises KH100-KH107 and KH2xx for keys; positions are in `text`.
    """
    _check_reading_only(tokens)
    names = _names(catalog)
    if not any(token.names and token.value in names for token in tokens):
        return None
    query = parse(text, tokens)
    _check_query(query)
    origin = Origin(text)
    if changes := use_policy_names(query, catalog):
        origin = origin.edit(changes, rule=use_policy_names.__name__)
        query = parse(origin.text, tokens_after_edits(origin.text, origin.kept, tokens))
    if changes := qualify_stored_units(query, catalog):
        origin = origin.edit(changes, rule=qualify_stored_units.__name__)
        query = parse(origin.text, tokens_after_edits(origin.text, origin.kept, query.tokens))
        asking = _take_normalised(query, catalog, origin)
        return None if asking is None else replace(asking, spelled=origin.text)
    return _take_normalised(query, catalog, origin)


def _take_normalised(query: Parsed, catalog: Catalog, origin: Origin) -> Asking | None:
    """Take the query apart, once it has been brought to the form of questions."""
    private = {id(node) for node, _ in _private(query, catalog)}
    if private:
        _check_ctes(query, catalog, origin)
    normalised: Normalised | None = None
    try:
        normalised = normalise(query, catalog, lambda query: _private(query, catalog), origin=origin)
        return _take_apart(normalised, catalog, unread=_none)
    except KeyholeError:
        idle = private & idle_tables(query.tree)
        instead = Normalised(query, origin) if idle == private else normalised
        if not idle or instead is None:
            raise
    return _take_apart(instead, catalog, unread=idle_tables)


def _none(_: exp.Expr) -> frozenset[int]:
    return frozenset()


def _private(query: Parsed, catalog: Catalog) -> list[tuple[exp.Table, Table]]:
    """Return the private tables that a statement reads, in order."""
    found = [(node, what) for node in query.tables if isinstance(what := _find_relation(node, catalog), Table)]
    listing = _find_listing(query, catalog) if len(found) > 1 else frozenset()
    return sorted((pair for pair in found if id(pair[0]) not in listing), key=lambda pair: _start(pair[0]))


def _find_listing(query: Parsed, catalog: Catalog, *, idle: frozenset[int] = frozenset()) -> frozenset[int]:
    """Return the tables that lists and values of units read: they are parts of questions."""

    def find_table(node: exp.Table) -> Table | None:
        what = _find_relation(node, catalog)
        return what if isinstance(what, Table) else None

    listing = find_listing_tables(query.tree, find_table, idle=idle)
    return listing | find_value_tables(query.tree, find_table, idle=idle)


def _check_query(query: Parsed) -> None:
    if not isinstance(query.tree, exp.Query | exp.Values):
        raise not_allowed("this form of query is not allowed", position=query.tokens[0].start + 1)
    if not query.says("insert", "update", "delete", "merge", "create", "into"):
        return
    for node in query.tree.find_all(exp.Insert, exp.Update, exp.Delete, exp.Merge, exp.Create, exp.Into):
        raise not_allowed(f"{type(node).__name__.upper()} is not allowed", position=position(node))


def _take_apart(read: Normalised, catalog: Catalog, *, unread: _Unread) -> Asking | None:
    """Take the query apart; the private tables that `unread` finds are empty ones."""
    tree = read.query.tree
    found = [(node, what) for node in read.query.tables if (what := _find_relation(node, catalog)) is not None]
    if not found:
        return None
    idle = unread(tree)
    listing = _find_listing(read.query, catalog, idle=idle) if len(found) > 1 else frozenset()
    found = [pair for pair in found if id(pair[0]) not in listing]
    _check_ctes(read.query, catalog, read.origin)
    try:
        found.sort(key=lambda pair: _start(pair[0]))
        asking = _taken_apart(read.query, catalog, found, unread=idle)
    except KeyholeError as error:
        raise read.origin.place_error(error) from None
    return replace(asking, embedded=tuple(_cut_out(part, read.origin) for part in asking.embedded))


def _cut_out(part: Embedded | EmbeddedVirtual, origin: Origin) -> Embedded | EmbeddedVirtual:
    """Return a question with trees of its own, once the statement around it is no longer read."""
    if isinstance(part, EmbeddedVirtual) or part.stored is not None:
        return part
    for leaf in leaves(part):
        cut_out(leaf.tree)
    if part.per_unit is not None:
        cut_out(part.per_unit.tree)
    return replace(part, origin=origin) if origin.edits else part


def _names(catalog: Catalog) -> frozenset[str]:
    """Return the names that a statement must contain if Keyhole answers it."""
    return catalog.answered_names | {one.name for one in catalog.source_names} | {VIRTUAL_SCHEMA}


def _check_reading_only(tokens: tuple[Token, ...]) -> None:
    for index, token in enumerate(tokens):
        if token.is_word("into"):
            raise not_allowed("SELECT INTO is not allowed", position=token.start + 1)
        if token.is_word("insert", "update", "delete", "merge") and index > 1 and tokens[index - 1].is_symbol("("):
            before = tokens[index - 2]
            if before.is_word("as", "materialized"):
                raise not_allowed(f"{token.value.upper()} is not allowed", position=token.start + 1)


def _find_relation(node: exp.Table, catalog: Catalog) -> Found | None:
    table, schema, database = name(node.this), name(node.args.get("db")), name(node.args.get("catalog"))
    if database not in ("", catalog.database):
        return None
    if schema == VIRTUAL_SCHEMA:
        return virtual_relation(table)
    if schema not in ("", "public"):
        return None
    stored = next((question for question in catalog.stored_questions if question.name == table), None)
    return catalog.table(table) or stored or catalog.monitor(table)


def _start(node: exp.Table) -> int:
    return offset(node.args.get("catalog") or node.args.get("db") or node.this)


def _check_ctes(query: Parsed, catalog: Catalog, origin: Origin) -> None:
    answered = catalog.answered_names
    for cte in query.tree.find_all(exp.CTE) if query.says("with") else ():
        alias = cte.args["alias"].this
        if name(alias) == VIRTUAL_SCHEMA or name(alias) in answered:
            raise origin.place_error(like_keyholes_table(alias))


@dataclass(frozen=True, slots=True)
class _Hole:
    """A span of the text, its replacement, and what the replacement's integers stand for."""

    edit: Edit
    embedded: tuple[Embedded | EmbeddedVirtual, ...]


def _taken_apart(
    query: Parsed, catalog: Catalog, found: list[tuple[exp.Table, Found]], *, unread: frozenset[int]
) -> Asking:
    text, tokens, tree = query.text, query.tokens, query.tree
    holes: list[_Hole] = []
    places: list[Place] = []
    if sum(isinstance(what, StoredQuestion) for _, what in found) > MOST_QUESTIONS:
        raise too_many_questions(most=MOST_QUESTIONS)
    for node, what in found:
        if isinstance(what, Table) and id(node) not in unread:
            if any(_from(node) is place.select for place in places):
                continue  # joined there with another private table
            places.extend(question_edits(node, what, text, tokens, catalog))
        else:
            holes.append(_relation(node, what, tokens, catalog))
            holes.extend(_Hole(edit, ()) for edit in _cut_qualifiers(node, tree, tokens))
    whole = join_branches(tuple(places), text, tokens)
    holes.extend(_Hole(edit, (embedded,)) for embedded, edit in whole)
    for place in places:
        if not any(edit.start <= place.embedded.offset < edit.end for _, edit in whole):
            holes.extend(_Hole(edit, (place.embedded,) if 0 in edit.replacement else ()) for edit in place.edits)
    asking = _join_holes(text, holes)
    if len(asking.questions) > MOST_QUESTIONS:
        raise too_many_questions(most=MOST_QUESTIONS)
    return replace(asking, constantly_empty=constantly_empty(tree, (node for node, _ in found), asking))


def _from(node: exp.Table) -> exp.Expr | None:
    """Return the SELECT in whose FROM or JOIN a table stands."""
    return node.parent.parent if isinstance(node.parent, exp.From | exp.Join) else None


def _relation(node: exp.Table, what: Found, tokens: tuple[Token, ...], catalog: Catalog) -> _Hole:
    first = at_offset(tokens, _start(node))
    last = at_offset(tokens, offset(node.this))
    alias = node.args.get("alias")
    named = "" if alias is not None and alias.this is not None else f" AS {quote_identifier(what.name)}"
    if first > 0 and tokens[first - 1].is_word("table"):
        first, before = first - 1, "SELECT * FROM "
    else:
        before = ""
    body: tuple[str | int, ...]
    embedded: tuple[Embedded | EmbeddedVirtual, ...]
    match what:
        case Table():
            body, embedded = (without_rows(what) + named,), ()
        case VirtualRelation():
            body, embedded = (0, named), (EmbeddedVirtual(what.name, what.columns),)
        case Monitor():
            relation = declare_monitor(what, catalog)
            shown, behind = relation.around
            at = offset(node.this) + 1
            body = (shown, 0, behind + named) if shown else (0, named)
            embedded = (EmbeddedVirtual(what.name, relation.columns, monitor_at=at),)
        case StoredQuestion():
            stored = _take_stored(what, catalog)
            body, embedded = ("(", *stored.outer, ")" + named), stored.embedded
    return _Hole(Edit(tokens[first].start, tokens[last].end, (before, *body) if before else body), embedded)


def _take_stored(question: StoredQuestion, catalog: Catalog) -> Asking:
    alone = replace(catalog, stored_questions=())
    sql = question.sql.strip().rstrip(";")
    try:
        tokens = lex(sql)
        asking = embed(sql, tokens, alone)
    except KeyholeError as error:
        raise refused_stored(error, question) from None
    if asking is None or not asking.questions:
        raise stored_asks_nothing(question)
    around = " q ".join(part for part in asking.outer if isinstance(part, str))
    given = any(token.kind == "parameter" for token in tokens)
    if given and any(token.kind == "parameter" for token in lex(around)):
        raise parameter_outside(question)
    embedded = tuple(
        replace(part, stored=question.name, parameters=question.parameters) if isinstance(part, Embedded) else part
        for part in asking.embedded
    )
    return replace(asking, embedded=embedded)


def declare_monitor(monitor: Monitor, catalog: Catalog) -> MonitorRelation:
    """Return the relation of a monitor: the keys of its question in the order of its GROUP BY, then its times.

    Raises KH1xx and KH2xx where its SQL is not one question.
    """
    sql = monitor.sql.strip().rstrip(";")
    try:
        asking = embed(sql, lex(sql), replace(catalog, stored_questions=(), monitors=()).with_numbers("refuse"))
    except KeyholeError as error:
        raise refused_monitor(error, monitor) from None
    if asking is None or len(asking.questions) != 1 or len(asking.embedded) != 1:
        raise monitor_asks_nothing(monitor)
    return monitor_relation(monitor, asking.questions[0])


def _cut_qualifiers(node: exp.Table, tree: exp.Expr, tokens: tuple[Token, ...]) -> list[Edit]:
    """Return cuts of `keyhole.` and `public.` before column references.

    They refer to a relation that is replaced and has no alias.
    """
    if node.args.get("alias") is not None:
        return []
    qualifier = name(node.args.get("db")) or "public"
    edits = {}
    for column in tree.find_all(exp.Column):
        schema, table = column.args.get("db"), column.args.get("table")
        if schema is not None and table is not None and name(schema) == qualifier and name(table) == name(node.this):
            start = offset(column.args.get("catalog") or schema)
            edits[start] = Edit(tokens[at_offset(tokens, start)].start, offset(table), ())
    return list(edits.values())


def _join_holes(text: str, holes: list[_Hole]) -> Asking:
    outer: list[str | int] = []
    embedded: list[Embedded | EmbeddedVirtual] = []
    at = 0
    seen: set[tuple[int, int]] = set()
    for hole in sorted(holes, key=lambda hole: (hole.edit.start, hole.edit.end)):
        edit = hole.edit
        if (edit.start, edit.end) in seen:
            continue
        if edit.start < at:
            raise nested_questions(at=edit.start + 1)
        seen.add((edit.start, edit.end))
        outer.append(text[at : edit.start])
        outer.extend(part if isinstance(part, str) else part + len(embedded) for part in edit.replacement)
        embedded.extend(hole.embedded)
        at = edit.end
    outer.append(text[at:])
    return Asking(embedded=tuple(embedded), outer=tuple(part for part in outer if part != ""), constantly_empty=False)
