"""A question in its statement: checked for form, and cut out of the text around it."""

from dataclasses import dataclass, replace

from sqlglot import exp

from planner.aggregate import contains_aggregate
from planner.catalog import Catalog, Column, Derivation, SqlType, Table
from planner.clauses import Clauses, at_offset, clauses, closing, opening
from planner.determined import lookup_sql
from planner.embedded import Embedded, UnitQuery
from planner.errors import KeyholeError
from planner.grouping import grouped_expressions, grouping, grouping_sets
from planner.joining import joins
from planner.key_classes import stand_in, stored_key
from planner.lexer import Token, quoted, readable
from planner.reference import Scope, derivation, same
from planner.rewording import own_threshold, set_operation
from planner.select_list import check_shown, shows_aggregates
from planner.syntax import bare, name, offset, position, written
from planner.unit_join import bounded
from planner.unit_query import NOTHING, UnitReading, check_groups, no_key, unit_readings


@dataclass(frozen=True, slots=True)
class Edit:
    """A span of the text and what replaces it; the integer 0 stands for the embedded relation."""

    start: int
    end: int
    replacement: tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class _Reading:
    """A question where it stands; `before` is the WITH clause without which it does not stand alone."""

    node: exp.Table
    select: exp.Select
    scope: Scope
    text: str
    tokens: tuple[Token, ...]
    clauses: Clauses
    before: str = ""
    per_unit: UnitQuery | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """A question in its statement: its SELECT, and the edits that leave the statement around it."""

    select: exp.Select
    embedded: Embedded
    edits: tuple[Edit, ...]


def question_edits(
    node: exp.Table, table: Table, text: str, tokens: tuple[Token, ...], catalog: Catalog
) -> tuple[Place, ...]:
    """The question that reads a private table, and the edits that leave the statement around it.

    They are several where the table is read by a WITH query per privacy unit that several questions read.
    Raises KH101, KH103-KH107, KH110, KH201, KH202.
    """
    select = _select(node, table)
    readings = unit_readings(select, node, table, text, tokens)
    if readings:
        return tuple(_over_units(node, reading, text, tokens) for reading in readings)
    first_node = select.args["from_"].this
    found = clauses(first_node if isinstance(first_node, exp.Table) else node, tokens)
    return (_place(_Reading(node, select, joins(select, node, table, catalog), text, tokens, found)),)


def _over_units(node: exp.Table, reading: UnitReading, text: str, tokens: tuple[Token, ...]) -> Place:
    query, scope = reading.query, reading.scope
    found = _Reading(node, reading.select, scope, text, tokens, reading.clauses, reading.before, query)
    try:
        place = _place(found)
    except KeyholeError as error:
        raise no_key(error, query.table) if error.code == "KH202" else error from None
    check_groups(query, place.embedded.keys, reading.select.args["group"])
    if not reading.shared:
        return place
    emptied = Edit(query.offset, query.offset + len(query.text), (NOTHING,))
    return replace(place, edits=(*place.edits, emptied))


def _place(place: _Reading) -> Place:
    text, tokens, scope, select = place.text, place.tokens, place.scope, place.select
    keys = _checked(place)
    first, past = tokens[place.clauses.select].start, tokens[place.clauses.end - 1].end
    embedded = Embedded(
        text=text[first:past],
        offset=first,
        table=bounded(_with(scope.table, keys), keys),
        alias=scope.alias,
        keys=keys,
        stored=None,
        looked_up=scope.joined,
        members=scope.members,
        per_unit=None if place.per_unit is None else replace(place.per_unit, offset=place.per_unit.offset - first),
    )
    body = Edit(tokens[place.clauses.source].start, past, ("FROM ", 0, f" AS {quoted(scope.alias)}"))
    answered = tuple(stored_key(key, scope.table.columns) for key in keys)
    return Place(select, embedded, (body, *_derived_edits(place, answered)))


def _with(table: Table, keys: tuple[Column, ...]) -> Table:
    """The table with the question's own columns: classes of the values of its keys."""
    known = {column.name for column in table.columns}
    more = tuple(key for key in keys if key.name not in known)
    return replace(table, columns=(*table.columns, *more)) if more else table


def _select(node: exp.Table, table: Table) -> exp.Select:
    source = node.parent
    if isinstance(source, exp.Join) and isinstance(source.parent, exp.Select) and "from_" in source.parent.args:
        return source.parent
    if not isinstance(source, exp.From) or not isinstance(source.parent, exp.Select):
        raise _outside(node, table)
    return source.parent


def _outside(node: exp.Table, table: Table) -> KeyholeError:
    return KeyholeError(
        "KH103",
        f'the private table "{table.name}" is used outside a question',
        detail="A private table is read by questions alone: GROUP BY keys HAVING a threshold is crossed.",
        hint=_example(table),
        position=position(node),
    )


def _several(node: exp.Expr) -> KeyholeError:
    return KeyholeError(
        "KH107",
        "a question reads one table, without joins or subqueries",
        hint="Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key "
        "HAVING ...) q JOIN public_table ...",
        position=position(node),
    )


def _example(table: Table) -> str | None:
    key = next((column for column in table.columns if column.domain is not None), None)
    if key is None:
        return None
    column = readable(key.name)
    return f"SELECT {column} FROM {readable(table.name)} GROUP BY {column} HAVING count(*) > 1000;"


_ALLOWED_CLAUSES = frozenset(
    (
        "with_",
        "expressions",
        "from_",
        "where",
        "group",
        "having",
        "order",
        "limit",
        "offset",
        "distinct",
        "kind",
        "hint",
    )
)
_ALLOWED_ON_TABLE = frozenset(("this", "db", "catalog", "alias"))


def _check_clauses(place: _Reading) -> None:
    for key, value in place.select.args.items():
        if value and key == "laterals":
            raise _several(value[0] if isinstance(value, list) else value)
        if value and key != "joins" and key not in _ALLOWED_CLAUSES:
            raise _clause(place, key)
    for key, value in place.node.args.items():
        if value and key == "joins":
            raise _several(place.node)
        if value and key not in _ALLOWED_ON_TABLE:
            raise _clause(place, key)
    alias = place.node.args.get("alias")
    if alias is not None and alias.args.get("columns"):
        raise _clause(place, "column aliases")
    for key, value in place.select.args.items():
        for part in value if isinstance(value, list) else [value]:
            if (
                key not in ("from_", "with_")
                and isinstance(part, exp.Expr)
                and (inner := part.find(exp.Query)) is not None
            ):
                raise _nested(place, inner, key)


def _nested(place: _Reading, inner: exp.Query, key: str) -> KeyholeError:
    """A subquery in a clause of the question: what it asks for, in another form where there is one."""
    if key == "having" and inner.find(exp.Table) is None:
        return KeyholeError(
            "KH208",
            "a threshold is a constant, not a subquery",
            hint="Write the constant without SELECT, as in HAVING count(*) > 8000.",
            position=position(inner),
        )
    refusal = _several(inner)
    if key != "where" or place.before or place.select.args.get("joins"):
        return refusal
    together = set_operation(place.select, place.scope, place.clauses, place.text, place.tokens)
    return (
        refusal
        if together is None
        else KeyholeError(
            "KH107",
            "a question inside the WHERE of a question",
            detail="Both are asked as one: INTERSECT and EXCEPT between questions with the same keys.",
            hint=together,
            position=position(inner),
        )
    )


def _clause(place: _Reading, key: str) -> KeyholeError:
    words = {"windows": "WINDOW", "locks": "FOR UPDATE", "sample": "TABLESAMPLE", "only": "ONLY"}
    return KeyholeError(
        "KH106",
        f"{words.get(key, key.strip('_').replace('_', ' ').upper())} is not supported in a question",
        detail="A question is SELECT, FROM, WHERE, GROUP BY, HAVING, and ORDER BY, LIMIT, OFFSET, DISTINCT over it.",
        hint="Leave it out.",
        position=position(place.node),
    )


def _check_operators(place: _Reading) -> None:
    """Refuse PostgreSQL's operators with @, of which the parser takes one for a parameter."""
    for token in place.tokens[place.clauses.select : place.clauses.end]:
        if token.kind == "symbol" and "@" in token.value:
            raise KeyholeError(
                "KH106", f"the operator {token.value} is not supported in a question", position=token.start + 1
            )


def _checked(place: _Reading) -> tuple[Column, ...]:
    """The keys, once the question's form is right."""
    _check_clauses(place)
    _check_operators(place)
    select = place.select
    shown = shows_aggregates(select)
    if isinstance(shown, exp.Window) and not _of_groups(shown):
        raise _over_the_answer(shown, place)
    if shown is not None:
        raise KeyholeError(
            "KH101",
            "Keyhole answers which groups cross a threshold, not how large they are",
            hint=_corrected(place),
            position=position(shown),
        )
    group, having = select.args.get("group"), select.args.get("having")
    if group is None and having is None:
        raise KeyholeError(
            "KH103",
            f'the private table "{place.scope.table.name}" is used outside a question',
            detail="A private table is read by questions alone: GROUP BY keys HAVING a threshold is crossed.",
            hint=_corrected(place),
            position=position(place.node),
        )
    keys = _grouped(place)
    if having is None:
        raise KeyholeError(
            "KH104",
            "the question has no HAVING",
            detail="Without a threshold it would ask which groups exist.",
            hint=_corrected(place),
            position=position(select if group is None else group),
        )
    try:
        check_shown(select, place.scope, *grouped_expressions(select, place.scope))
    except KeyholeError as error:
        raise KeyholeError(
            error.code,
            error.message,
            detail=error.detail,
            hint=(_corrected(place) if error.code == "KH101" else None) or error.hint,
            position=error.position,
        ) from None
    return keys


def _of_groups(window: exp.Window) -> bool:
    """Whether a window reads an aggregate of each group, and not the rows of the answer alone."""
    called = window.this.this if isinstance(window.this, exp.Filter) else window.this
    return any(found is not called for found in window.find_all(exp.AggFunc))


def _over_the_answer(window: exp.Window, place: _Reading) -> KeyholeError:
    asked = _corrected(place)
    spelled = written(window)
    whole = asked is not None and not any(column.table for column in window.find_all(exp.Column))
    return KeyholeError(
        "KH101",
        f"{spelled[:80]} is over the answer's rows, and stands in the question itself",
        detail="Around a question, windows and aggregates work on its answer as in PostgreSQL, for nothing.",
        hint=f"SELECT q.*, {spelled} FROM ({(asked or '').rstrip(';')}) AS q;"
        if whole
        else f"Write {spelled[:80]} around the question: SELECT q.*, ... FROM (...) AS q.",
        position=position(window),
    )


def _grouped(place: _Reading) -> tuple[Column, ...]:
    """The keys; several groupings at once are refused with the questions that ask for each."""
    try:
        return grouping(place.select, place.scope)
    except KeyholeError as error:
        sets = grouping_sets(place.select, place.scope) if error.code == "KH106" else ()
        if not sets or place.select.args.get("having") is None:
            raise
        raise KeyholeError(error.code, error.message, hint=_each(place, sets), position=error.position) from None


def _each(place: _Reading, sets: tuple[tuple[Column, ...], ...]) -> str:
    """One question per grouping, joined by UNION ALL, with NULL for keys that a grouping leaves open."""
    everything = tuple({column.name: column for columns in sets for column in columns}.values())
    source = place.text[place.tokens[place.clauses.source].start : _source_end(place)]
    where = place.clauses.part("where", place.text, place.tokens)
    having = place.clauses.part("having", place.text, place.tokens)
    questions: list[str] = []
    for columns in sets:
        shown = ", ".join(
            place.scope.spelled(column) if column in columns else f"NULL::{column.declared} AS {readable(column.name)}"
            for column in everything
        )
        names = ", ".join(place.scope.spelled(column) for column in columns)
        parts = (f"SELECT {shown}", source, where, f"GROUP BY {names}", having)
        questions.append(" ".join(part for part in parts if part))
    return f"{place.before} {' UNION ALL '.join(questions)};".strip()


def _corrected(place: _Reading) -> str | None:
    """The question that this statement could have been: its keys, its WHERE, and a HAVING."""
    keys: tuple[Column, ...] = ()
    if place.select.args.get("group") is not None:
        try:
            keys = grouping(place.select, place.scope)
        except KeyholeError:
            keys = ()
    columns = place.scope.table.columns
    if place.scope.listed is not None:
        columns = tuple(place.scope.table.column(column) for _, column in place.scope.listed)
    shown = keys or tuple(column for column in columns if column.domain is not None)[:1]
    if not shown:
        return None
    names = ", ".join(place.scope.spelled(column) for column in shown)
    source = place.text[place.tokens[place.clauses.source].start : _source_end(place)]
    where = place.clauses.part("where", place.text, place.tokens)
    having = place.clauses.part("having", place.text, place.tokens)
    if not having or not contains_aggregate(place.select.args["having"]):
        having = f"HAVING {own_threshold(place.select) or 'count(*) > 1000'}"
    parts = (place.before, f"SELECT {names}", source, where, f"GROUP BY {names}", having)
    return " ".join(part for part in parts if part) + ";"


def _source_end(place: _Reading) -> int:
    past = min((index for _, index in place.clauses.marks), default=place.clauses.end)
    return place.tokens[past - 1].end


def _derived_edits(place: _Reading, keys: tuple[Column, ...]) -> list[Edit]:
    """Edits of the select list and ORDER BY: derived expressions become their column, qualified names lose schemas."""
    edits: list[Edit] = []
    select = place.select
    for part in (*select.expressions, select.args.get("order"), select.args.get("distinct")):
        if part is not None:
            edits.extend(_part_edits(place, part, keys))
    if len(select.expressions) != len(place.clauses.items):
        raise KeyholeError("KH106", "the select list cannot be read", position=position(select))
    for projection, (_, past) in zip(select.expressions, place.clauses.items, strict=True):
        label = _label(place, projection, keys)
        if label is not None:
            end = place.tokens[past - 1].end
            edits.append(Edit(end, end, (f" AS {quoted(label)}",)))
    return edits


def _key_of(node: exp.Expr, scope: Scope, keys: tuple[Column, ...]) -> Column | None:
    written = derivation(node, scope)
    return None if written is None else next((key for key in keys if same(key.derivation, written)), None)


def _part_edits(place: _Reading, node: exp.Expr, keys: tuple[Column, ...]) -> list[Edit]:
    column = _key_of(node, place.scope, keys)
    if column is not None:
        first, last = _span(place, node)
        cast = _cast(place, node, column, place.tokens[first].value)
        text = f"{quoted(place.scope.alias)}.{quoted(column.name)}{cast}"
        return [Edit(place.tokens[first].start, place.tokens[last].end, (text,))]
    if isinstance(node, exp.Column) and (found := stand_in(node, place.scope)) is not None and found in keys:
        read = place.scope.column(node)
        start = offset(node.args.get("catalog") or node.args.get("db") or node.args.get("table") or node.this)
        end = place.tokens[at_offset(place.tokens, offset(node.this))].end
        text = f"{quoted(place.scope.alias)}.{quoted(found.name)}::{read.declared}"
        return [Edit(start, end, (text,))]
    if isinstance(node, exp.Column) and _has_names_of_its_own(place.scope) and _renamed(place, node, keys):
        start = offset(node.args.get("catalog") or node.args.get("db") or node.args.get("table") or node.this)
        end = place.tokens[at_offset(place.tokens, offset(node.this))].end
        return [Edit(start, end, (lookup_sql(place.scope.column(node), [key.name for key in keys], place.scope),))]
    if isinstance(node, exp.Column) and node.args.get("db") is not None:
        start = offset(node.args.get("catalog") or node.args["db"])
        return [Edit(start, offset(node.args["table"]), ())]
    return [edit for child in node.iter_expressions() for edit in _part_edits(place, child, keys)]


def _cast(place: _Reading, node: exp.Expr, column: Column, spelled: str) -> str:
    """What the derived column is cast to for the type that PostgreSQL gives the expression as written."""
    if isinstance(node, exp.Extract):
        return "::double precision" if spelled == "date_part" else "::numeric"
    if not isinstance(node, exp.TimestampTrunc):
        return ""
    read = bare(node.this)
    if isinstance(read, exp.Cast):
        return "::timestamp" if read.to.this == exp.DataType.Type.TIMESTAMP else "::timestamptz"
    return "::timestamptz" if _is_of_date(column, place.scope.table) else "::timestamp"


def _is_of_date(column: Column, table: Table) -> bool:
    """Whether the column is derived from a date, which PostgreSQL truncates as midnight in the session's zone."""
    base = None if not isinstance(column.derivation, Derivation) else column.derivation.column
    return any(known.name == base and known.sql_type is SqlType.DATE for known in table.columns)


def _has_names_of_its_own(scope: Scope) -> bool:
    return bool(scope.joined or scope.members) or scope.listed is not None


def _renamed(place: _Reading, node: exp.Column, keys: tuple[Column, ...]) -> bool:
    """Whether the reference would mean nothing to the relation that takes the place of the joined tables."""
    if isinstance(node.parent, exp.Ordered) and node.args.get("table") is None and name(node.this) in _aliases(place):
        return False
    found = place.scope.column(node)
    shown = found.name == name(node.this) and found in keys
    return name(node.args.get("table")) not in ("", place.scope.alias) or not shown


def _aliases(place: _Reading) -> set[str]:
    return {name(item.args["alias"]) for item in place.select.expressions if isinstance(item, exp.Alias)}


_CALLS = ("date_trunc", "extract", "date_part", "date")


def _span(place: _Reading, node: exp.Expr) -> tuple[int, int]:
    """The first and last token of a derived expression."""
    column = node.find(exp.Column)
    assert column is not None
    first = last = at_offset(place.tokens, offset(column.this))
    while first > 1 and place.tokens[first - 1].is_symbol("."):
        first -= 2
    inner: exp.Expr | None = column
    while inner is not node:
        inner = inner.parent if inner is not None else None
        if isinstance(inner, exp.DataType | exp.Var | exp.Literal):
            continue
        first, last = _around(place, inner, first, last)
    return first, last


def _around(place: _Reading, node: exp.Expr | None, first: int, last: int) -> tuple[int, int]:
    """The tokens of an expression around those of the one inside it."""
    tokens = place.tokens
    if isinstance(node, exp.Cast) and last + 2 < len(tokens) and tokens[last + 1].is_symbol("::"):
        past = last + 3
        if past < len(tokens) and tokens[past].is_symbol("("):
            past = closing(tokens, past) + 1
        zoneless = past + 2 < len(tokens) and tokens[past].is_word("without")
        if tokens[last + 2].is_word("date", "timestamp"):
            return first, past + 2 if zoneless else past - 1
    around = opening(tokens, first)
    if around is not None and isinstance(node, exp.Paren) and around == first - 1:
        return around, closing(tokens, around)
    called = isinstance(node, exp.Cast) and around is not None and tokens[around - 1].is_word("cast")
    called = called or (node is not None and around is not None and tokens[around - 1].is_word(*_CALLS))
    if around is not None and around > 0 and called:
        return around - 1, closing(tokens, around)
    raise KeyholeError(
        "KH106",
        "this way of writing a derived key is not supported in a select list",
        hint="Select the derived column by its name.",
        position=tokens[first].start + 1,
    )


def _label(place: _Reading, projection: exp.Expr, keys: tuple[Column, ...]) -> str | None:
    """The name that PostgreSQL gives a derived expression as written, to be kept when it becomes a column."""
    node = bare(projection)
    while isinstance(node, exp.Cast | exp.Case) and _key_of(node, place.scope, keys) is None:
        inner = node.args.get("default") if isinstance(node, exp.Case) else node.this
        if inner is None:
            return None
        node = bare(inner)
    if isinstance(node, exp.Column) and _has_names_of_its_own(place.scope):
        written = name(node.this)
        return None if place.scope.column(node).name == written else written
    if _key_of(node, place.scope, keys) is None:
        return None
    while isinstance(node, exp.Cast):
        node = bare(node.this)
    if isinstance(node, exp.Column):
        return name(node.this)
    return place.tokens[_span(place, node)[0]].value
