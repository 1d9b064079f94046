"""Joins of a grouped query with itself, and how far each of its sources is from one of them, on one of the keys."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from planner.bind.from_clause import split_conjuncts
from planner.extract.private_read import PrivateRead
from planner.extract.relations import list_private_tables
from planner.extract.subqueries.calendar_shifts import (
    Calendar,
    Shift,
    ShiftedColumn,
    measure,
    read_calendar,
    read_shifted_column,
)
from planner.extract.subqueries.same_groups import GroupedQuery, find_source, have_same_groups, read_grouped_query
from planner.parser.subquery_readers import Reader, find_conjuncts, is_unclear
from planner.parser.tree import contains_type, is_star, read_alias, read_name, strip_parentheses

_IN_READER = frozenset(("expressions", "from_", "joins", "where", "order", "limit", "offset", "distinct", "with_"))


@dataclass(frozen=True, slots=True)
class JoinedGroups:
    """A grouped query in FROM, with its alias. It `is_outer` if LEFT JOIN joins it."""

    alias: str
    node: exp.Table | exp.Subquery
    query: GroupedQuery
    is_outer: bool


@dataclass(frozen=True, slots=True)
class SelfJoin:
    """A join of grouped queries in one SELECT: its sources, and the conditions of its inner joins in ON and WHERE."""

    reader: Reader
    sources: tuple[JoinedGroups, ...]
    on: tuple[exp.Expr, ...]
    where: tuple[tuple[tuple[int, int], exp.Expr], ...]
    using: frozenset[str]


@dataclass(frozen=True, slots=True)
class Partner:
    """A source of a self-join, compared with the base: `names` maps the base's keys to the source's keys.

    If the join shifts one key, `key` is its name and `shift` the distance.
    """

    source: JoinedGroups
    names: Mapping[str, str]
    key: str
    shift: Shift

    def find_base_key(self, name: str) -> str:
        """Return the base's name of a key."""
        return next(base for base, own in self.names.items() if own == name)


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """One source of a self-join, the `base`, and the others relative to it.

    `linking_conditions` are the identities of the conditions that relate them.
    """

    base: JoinedGroups
    partners: tuple[Partner, ...]
    linking_conditions: frozenset[int]

    def find_partner(self, alias: str) -> Partner | None:
        """Return the partner of that name."""
        return next((one for one in self.partners if one.source.alias == alias), None)


def read_self_join(reader: Reader, read: PrivateRead) -> SelfJoin | None:
    """Return the outer SELECT as a join of grouped queries with the same groups. Return None for other SELECTs."""
    select = reader.select
    joins = select.args.get("joins") or ()
    if not joins or any(value for key, value in select.args.items() if key not in _IN_READER):
        return None
    if any(map(is_star, select.expressions)) or contains_type(select.args.get("where") or exp.Null(), exp.Query):
        return None
    private = {id(node): table for node, table in list_private_tables(read.query, read.catalog)}
    sources: list[JoinedGroups] = []
    on: list[exp.Expr] = []
    using: set[str] = set()
    for part in (select.args["from_"], *joins):
        side = str(part.args.get("side") or "").upper()
        query = find_query(part.this)
        first = None if query is None else find_source(query)
        if query is None or id(first) not in private or part.args.get("method") or side not in ("", "LEFT"):
            return None
        grouped = read_grouped_query(query, private[id(first)])
        if grouped is None or (sources and not have_same_groups(sources[0].query, grouped)):
            return None
        if side and (part.args.get("on") is None or part.args.get("using")):
            return None
        if str(part.args.get("kind") or "").upper() not in ("", "INNER", "CROSS", "OUTER"):
            return None
        sources.append(JoinedGroups(read_alias(part.this), part.this, grouped, bool(side)))
        on.extend(split_conjuncts(part.args.get("on")))
        using.update(
            read_name(one if isinstance(one, exp.Identifier) else one.this) for one in part.args.get("using") or ()
        )
    where = find_conjuncts(select, reader.clauses, read.tokens)
    names = {one.alias for one in sources}
    if where is None or "" in names or len(names) < len(sources) or (using and len(sources) > 2):
        return None
    if not using <= sources[0].query.keys.keys():
        return None  # USING compares sizes, too
    return SelfJoin(reader, tuple(sources), tuple(on), where, frozenset(using))


def find_query(source: exp.Expr) -> exp.Select | None:
    """Return the SELECT that a source of FROM is, or names as a WITH query."""
    found: exp.Expr | None = None
    if isinstance(source, exp.Subquery):
        found = source.this
    elif isinstance(source, exp.Table) and source.args.get("db") is None:
        every = [
            one
            for one in source.root().find_all(exp.CTE)
            if read_name(one.args["alias"].this) == read_name(source.this)
        ]
        found = every[0].this if len(every) == 1 and not is_unclear(every[0]) else None
    if any(value for key, value in source.args.items() if key not in ("this", "alias")):
        return None
    alias = source.args.get("alias")
    named = alias is not None and alias.args.get("columns")
    return found if isinstance(found, exp.Select) and not named else None


def list_bases(join: SelfJoin) -> Sequence[JoinedGroups]:
    """Return the sources that can be the base of a self-join.

    Inner joins have the source whose keys are shown, others the first source.
    """
    first, *others = join.sources
    if any(one.is_outer for one in others):
        return (first,)
    shown = {
        (read_name(column.args.get("table")), read_name(column.this))
        for item in join.reader.select.expressions
        for column in item.find_all(exp.Column)
    }
    keyed = [one for one in join.sources if any((one.alias, name) in shown for name in one.query.keys)]
    return keyed if len(keyed) == 1 else (first,)


def plan_windows(base: JoinedGroups, join: SelfJoin) -> JoinPlan | None:
    """Return the distance of every other source from `base`.

    Return None if the conditions do not determine all distances.
    """
    found = [Partner(base, {name: name for name in base.query.keys}, "", Shift())]
    links: set[int] = set()
    waiting = [one for one in join.sources if one is not base]
    for _ in join.sources:
        for other in list(waiting):
            read = _find_partner(other, found, join)
            if read is not None:
                found.append(read[0])
                links |= read[1]
                waiting.remove(other)
    ends = (node for node in join.on if _belongs_to_outer_join(node))
    if waiting or not all(id(node) in links for node in ends):
        return None
    return JoinPlan(base, tuple(found[1:]), frozenset(links))


def _belongs_to_outer_join(condition: exp.Expr) -> bool:
    around = condition.find_ancestor(exp.Join)
    return around is not None and bool(around.args.get("side"))


def _list_links(source: JoinedGroups, join: SelfJoin) -> Iterator[tuple[exp.Expr, ShiftedColumn, ShiftedColumn]]:
    """Yield the conditions that decide which groups of a source are joined, its own side first."""
    if source.is_outer:
        own = source.node.parent
        assert own is not None
        conditions = list(split_conjuncts(own.args.get("on")))
    else:
        conditions = [node for node in join.on if not _belongs_to_outer_join(node)]
        conditions += [strip_parentheses(node) for _, node in join.where]
    for node in conditions:
        if not isinstance(node, exp.EQ):
            continue
        left, right = read_shifted_column(node.this), read_shifted_column(node.expression)
        if left is not None and right is not None and source.alias in (left.table, right.table):
            yield (node, left, right) if left.table == source.alias else (node, right, left)


def _find_partner(source: JoinedGroups, known: Sequence[Partner], join: SelfJoin) -> tuple[Partner, set[int]] | None:
    """Return a source as seen from the base, and the conditions that say so. Return None if they leave a key open."""
    base = known[0].source.query
    names: dict[str, str] = {}
    shifts: dict[str, Shift] = {}
    links: set[int] = set()
    for name, node in source.query.keys.items():
        key = base.find_key(source.query.spell(node))
        if key is None:
            return None
        names[key] = name
        calendar = read_calendar(node, base.table)
        if name in join.using:
            if key != name:
                return None
            shifts[key] = Shift()
        for condition, own, other in _list_links(source, join):
            partner = next((one for one in known if one.source.alias == other.table), None)
            if own.name != name or key in shifts or partner is None or partner.source.is_outer:
                continue
            shift = _add_shifts(partner, key, own, other, calendar)
            if shift is not None:
                shifts[key] = shift
                links.add(id(condition))
        if key not in shifts and (fixed := _find_fixed_distance(source, name, known[0], key, join)) is not None:
            shifts[key] = fixed[0]
            links.add(id(fixed[1]))
    away = [key for key, shift in shifts.items() if not shift.is_none]
    if len(shifts) < len(names) or len(away) > 1:
        return None
    key = away[0] if away else ""
    return Partner(source, names, key, shifts[key] if key else Shift()), links


def _find_fixed_distance(
    source: JoinedGroups, name: str, base: Partner, key: str, join: SelfJoin
) -> tuple[Shift, exp.Expr] | None:
    """Return how far a source is from the base whose keys both equal constants, and the condition on the source's.

    `a.year = 2025 AND b.year = 2024` is one year. Return None for other keys.
    """
    own = _find_constant(source, name, join)
    other = _find_constant(base.source, key, join)
    distance = None if own is None or other is None else measure(other[0], own[0])
    return None if own is None or distance is None else (distance, own[1])


def _find_constant(source: JoinedGroups, name: str, join: SelfJoin) -> tuple[exp.Expr, exp.Expr] | None:
    """Return the constant that a key of a source equals in an inner join, and the condition that says so."""
    if source.is_outer:
        return None
    conditions = [node for node in join.on if not _belongs_to_outer_join(node)]
    for node in (*conditions, *(strip_parentheses(node) for _, node in join.where)):
        sides = [strip_parentheses(one) for one in (node.this, node.expression)] if isinstance(node, exp.EQ) else []
        for column, constant in (sides, sides[::-1]) if sides else ():
            named = isinstance(column, exp.Column) and read_name(column.args.get("table")) == source.alias
            if named and read_name(column.this) == name and not contains_type(constant, exp.Column):
                return constant, node
    return None


def _add_shifts(
    partner: Partner, key: str, own: ShiftedColumn, other: ShiftedColumn, calendar: Calendar
) -> Shift | None:
    """Return how far a source is from the base, on a key, if it is so far from a partner of the base.

    Return None if another value may be as far, or none.
    """
    if partner.names[key] != other.name or not (own.shift.is_none or other.shift.is_none):
        return None
    if not calendar.can_invert(own.shift) or not all(map(calendar.can_compare, (own, other))):
        return None
    further = own.shift.negate() if other.shift.is_none else other.shift
    before = partner.shift if partner.key == key else Shift()
    if before.is_none or further.is_none:
        return further if before.is_none else before
    total = before.add(further)
    regular = all(map(calendar.can_invert, (before, further)))
    return total if regular and total is not None and not total.is_none and calendar.can_invert(total) else None
