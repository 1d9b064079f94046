"""FROM and JOIN of a question: its private table, extended by the columns of the public tables that are joined to it.

A public table is joined by equality with a column of it that the pinned copy shows to be unique and not NULL, so that
every private row finds one public row at most. Everything else is refused: it could count a row twice.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from planner.catalog import Catalog, Column, PublicTable, Table
from planner.condition import Condition
from planner.constant import Given
from planner.errors import KeyholeError
from planner.lexer import readable
from planner.lookup import JOINED_TYPES, MOST_ROWS, NotUnique, looked_up, unique_values
from planner.reference import JoinedTable, Scope, referenced
from planner.row_condition import row_condition
from planner.syntax import bare, name, position

_APART = (
    "Put the question into a subquery and join its keys: SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) "
    "q JOIN public_table ..."
)
_VIEW = (
    "Ask the owner to expose a view of the source that joins them, or ask two questions and join their keys: "
    "SELECT ... FROM (SELECT key FROM ... GROUP BY key HAVING ...) a "
    "JOIN (SELECT key FROM ... GROUP BY key HAVING ...) b ON ..."
)
_ON_TABLE = frozenset(("this", "db", "catalog", "alias"))
_ON_JOIN = frozenset(("this", "on", "using", "side", "kind", "pivots"))


@dataclass(frozen=True, slots=True)
class _Relation:
    """One table of FROM; `public` is None for the question's own."""

    node: exp.Table
    alias: str
    public: PublicTable | None
    join: exp.Join | None

    @property
    def outer(self) -> bool:
        return self.join is not None and bool(self.join.side)


@dataclass(frozen=True, slots=True)
class _Found:
    """How a public table can be joined: its key, the column of the tables before it, and where that stands."""

    key: str
    base: Column
    at: int | None


@dataclass(frozen=True, slots=True)
class _Equality:
    """An equality that may join two tables."""

    left: exp.Expr
    right: exp.Expr
    at: int | None

    def columns(self) -> Iterator[exp.Column]:
        yield from self.left.find_all(exp.Column)
        yield from self.right.find_all(exp.Column)


def joins(select: exp.Select, node: exp.Table, table: Table, catalog: Catalog) -> Scope:
    """The question's table with what its joins look up, and the names in it.

    Raises KH107 for a join that is not many-to-one or not with a pinned public table, KH201, KH213.
    """
    alias = _alias(node)
    plain = Scope(table=table, alias=alias)
    if not select.args.get("joins"):
        return plain
    return _Joining(select, table, alias, _relations(select, node, catalog)).scope()


def _alias(node: exp.Table) -> str:
    alias = node.args.get("alias")
    return name(alias.this) if alias is not None and alias.this is not None else name(node.this)


def _refused(message: str, node: exp.Expr, *, hint: str = _APART, detail: str | None = None) -> KeyholeError:
    return KeyholeError("KH107", message, detail=detail, hint=hint, position=position(node))


def _relations(select: exp.Select, own: exp.Table, catalog: Catalog) -> tuple[_Relation, ...]:
    nodes: list[tuple[exp.Expr, exp.Join | None]] = [(select.args["from_"].this, None)]
    nodes += [(join.this, join) for join in select.args["joins"]]
    hidden = {name(cte.args["alias"].this) for cte in select.root().find_all(exp.CTE)}
    found: list[_Relation] = []
    before = False
    for node, join in nodes:
        if not isinstance(node, exp.Table) or any(v for k, v in node.args.items() if v and k not in _ON_TABLE):
            raise _refused("a question joins its table with public tables, without subqueries or functions", node)
        alias = node.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            raise _refused("column aliases of a joined table are not supported", node, hint="Leave them out.")
        if join is not None:
            _check_kind(join, node, before=before, own=node is own)
        public = None if node is own else _public(node, catalog, hidden)
        found.append(_Relation(node, _alias(node), public, join))
        before = before or node is own
    for called, times in Counter(relation.alias for relation in found).items():
        if times > 1:
            again = [relation.node for relation in found if relation.alias == called][-1]
            raise _refused(f'the table name "{called}" is used twice', again, hint="Give each table an alias.")
    return tuple(found)


def _check_kind(join: exp.Join, node: exp.Table, *, before: bool, own: bool) -> None:
    side, kind = str(join.side or "").upper(), str(join.kind or "").upper()
    unknown = [key for key, value in join.args.items() if value and key not in _ON_JOIN]
    if join.args.get("method"):
        raise _refused("NATURAL JOIN is not supported in a question", node, hint="Write JOIN ... USING (column).")
    if unknown or side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER", "CROSS"):
        raise _refused(
            f"{side or kind or 'this'} JOIN is not supported in a question",
            node,
            detail="A question's rows are those of its private table.",
            hint="Write JOIN or LEFT JOIN, the private table first.",
        )
    if side == "LEFT" and (own or not before):
        raise _refused(
            "LEFT JOIN needs the private table on its left",
            node,
            detail="A question's rows are those of its private table.",
            hint="Write FROM the private table LEFT JOIN the public one, or JOIN.",
        )


def _public(node: exp.Table, catalog: Catalog, hidden: set[str]) -> PublicTable:
    called, schema, database = name(node.this), name(node.args.get("db")), name(node.args.get("catalog"))
    known = schema in ("", "public") and database in ("", catalog.database)
    if known and schema == "" and called in hidden:
        raise _refused(
            f'"{called}" is a WITH query here, not a public table', node, hint=f"Rename it, or write public.{called}."
        )
    if known and catalog.table(called) is not None:
        raise _refused(
            "private tables are not joined with each other in a question",
            node,
            detail="One privacy unit could count for many rows of the other table.",
            hint=_VIEW,
        )
    public = next((table for table in catalog.public_tables if known and table.name == called), None)
    if public is None:
        raise _refused(f'"{called}" is not a public table', node)
    if len(public.rows) > MOST_ROWS:
        raise KeyholeError(
            "KH213",
            f'the public table "{called}" has {len(public.rows):,} rows; the most in a question is {MOST_ROWS:,}',
            hint=_APART,
            position=position(node),
        )
    return public


class _Joining:
    """The tables of one FROM, joined one after the other to the private one."""

    def __init__(self, select: exp.Select, table: Table, alias: str, relations: tuple[_Relation, ...]) -> None:
        self._select = select
        self._relations = relations
        self._own = Scope(table=table, alias=alias)
        self._done = self._own
        self._merged: dict[str, set[str]] = {relation.alias: set() for relation in relations}
        self._inner, self._outer = self._equalities()
        equalities = [*self._inner, *(one for found in self._outer.values() for one in found)]
        read = [*select.find_all(exp.Column), *(c for one in equalities for c in one.columns())]
        self._mentioned = {name(column.this) for column in read}

    def scope(self) -> Scope:
        waiting = [relation for relation in self._relations if relation.public is not None]
        while waiting:
            for relation in waiting:
                found = self._found(relation)
                if found is not None:
                    self._join(relation, found)
                    waiting.remove(relation)
                    break
            else:
                raise _refused(
                    f'no equality joins "{waiting[0].alias}" to the table of the question',
                    waiting[0].node,
                    detail="A public table is joined by equality with one of its columns, unique and not NULL.",
                )
        return self._renamed()

    def _equalities(self) -> tuple[list[_Equality], dict[str, list[_Equality]]]:
        inner: list[_Equality] = []
        outer: dict[str, list[_Equality]] = {}
        for index, relation in enumerate(self._relations):
            if relation.join is None:
                continue
            conditions = list(_conjuncts(relation.join.args.get("on")))
            found = [_Equality(part.this, part.expression, position(part)) for part in conditions if _equal(part)]
            found += [self._using(index, identifier) for identifier in relation.join.args.get("using") or ()]
            if not relation.outer:
                inner += found
                continue
            if len(found) != 1 or len(found) < len(conditions):
                raise _refused(
                    "LEFT JOIN is supported ON one equality",
                    relation.node,
                    hint="Move other conditions on public columns into WHERE or FILTER.",
                )
            outer[relation.alias] = found
        where = self._select.args.get("where")
        for part in _conjuncts(None if where is None else where.this):
            if _equal(part):
                inner.append(_Equality(part.this, part.expression, position(part)))
        return inner, outer

    def _using(self, index: int, identifier: exp.Expr) -> _Equality:
        """USING as an equality; one of its two columns is hidden from unqualified names."""
        called = name(identifier if isinstance(identifier, exp.Identifier) else identifier.this)
        this, before = self._relations[index], self._relations[:index]
        left = [one for one in before if called in self._names(one) and called not in self._merged[one.alias]]
        if called not in self._names(this) or len(left) != 1:
            raise KeyholeError(
                "KH201",
                f'column "{called}" in USING is not one column on each side',
                hint="Write JOIN ... ON an equality.",
                position=position(identifier),
            )
        hidden = this if this.public is not None else left[0]
        self._merged[hidden.alias].add(called)
        first, second = (exp.column(called, table=one.alias, quoted=True) for one in (left[0], this))
        return _Equality(first, second, position(identifier))

    def _names(self, relation: _Relation) -> frozenset[str]:
        columns = self._own.table.columns if relation.public is None else relation.public.columns
        return frozenset(column.name for column in columns)

    def _owners(self, node: exp.Expr) -> set[str]:
        """The tables whose columns an expression reads; empty where a name is unknown or ambiguous."""
        owners: set[str] = set()
        for column in node.find_all(exp.Column):
            called, qualifier = name(column.this), name(column.args.get("table"))
            if qualifier:
                owners.add(qualifier)
                continue
            found = [
                one.alias
                for one in self._relations
                if called in self._names(one) and called not in self._merged[one.alias]
            ]
            if len(found) != 1:
                return set()
            owners.add(found[0])
        return owners

    def _found(self, relation: _Relation) -> _Found | None:
        """How the relation joins what is joined already; None if it does not yet. Raises KH107."""
        assert relation.public is not None
        reached = {self._done.alias, *(joined.alias for joined in self._done.joined)}
        refusal: KeyholeError | None = None
        for equality in self._outer[relation.alias] if relation.outer else self._inner:
            left, right = bare(equality.left), bare(equality.right)
            for key, other in ((left, right), (right, left)):
                owners = self._owners(other)
                if not isinstance(key, exp.Column) or self._owners(key) != {relation.alias}:
                    continue
                if len(owners) != 1 or not owners <= reached:
                    continue
                base = referenced(other, self._done)
                if base is None:
                    continue
                found = _Found(name(key.this), base, equality.at)
                refusal = _refusal(relation.public, found, relation.node)
                if refusal is None:
                    return found
        if refusal is not None:
            raise refusal
        return None

    def _join(self, relation: _Relation, found: _Found) -> None:
        public = relation.public
        assert public is not None
        table, columns = self._done.table, []
        for column in public.columns:
            if column.name not in self._mentioned:
                continue
            if column.name == found.key and not relation.outer and found.base.domain is not None:
                columns.append((column.name, found.base.name))
                continue
            made = looked_up(
                f"{relation.alias}.{column.name}", public, column.name, key=found.key, base=found.base, table=table
            )
            same = next((known for known in table.columns if known.derivation == made.derivation), None)
            if same is None:
                table = replace(table, columns=(*table.columns, made))
            columns.append((column.name, (same or made).name))
        joined = JoinedTable(
            alias=relation.alias,
            name=public.name,
            key=found.key,
            base=found.base.name,
            values=unique_values(public, found.key),
            columns=tuple(columns),
            every=self._names(relation),
            merged=frozenset(self._merged[relation.alias]),
            outer=relation.outer,
        )
        self._done = replace(self._done, table=table, joined=(*self._done.joined, joined))

    def _renamed(self) -> Scope:
        """Looked-up columns under their own names, where no other column of the question has them."""
        own = [column.name for column in self._own.table.columns]
        publics = {named: public for joined in self._done.joined for public, named in joined.columns}
        made = [column.name for column in self._done.table.columns if column.name not in own]
        times = Counter([*own, *(publics[named] for named in made)])
        names = {named: publics[named] if times[publics[named]] == 1 else named for named in made}
        columns = tuple(
            replace(column, name=names.get(column.name, column.name)) for column in self._done.table.columns
        )
        return replace(
            self._done,
            table=replace(self._done.table, columns=columns),
            joined=tuple(
                replace(
                    joined,
                    base=names.get(joined.base, joined.base),
                    columns=tuple((public, names.get(named, named)) for public, named in joined.columns),
                )
                for joined in self._done.joined
            ),
        )


def row_conditions(select: exp.Select, scope: Scope, given: Given) -> Iterator[tuple[exp.Expr, Condition]]:
    """What WHERE and the inner joins say of rows, one conjunct after the other. Raises KH2xx."""
    for joined in scope.joined:
        if not joined.outer:
            yield select, joined.membership()
    clauses = [join.args.get("on") for join in select.args.get("joins") or () if not join.side]
    where = select.args.get("where")
    for clause in (*clauses, None if where is None else where.this):
        for part in _conjuncts(clause):
            yield part, scope.membership(part) or row_condition(part, scope, given)


def _equal(part: exp.Expr) -> bool:
    """Whether the expression is an equality of two expressions with columns."""
    return isinstance(part, exp.EQ) and all(side.find(exp.Column) is not None for side in (part.this, part.expression))


def _conjuncts(node: exp.Expr | None) -> Iterator[exp.Expr]:
    if node is None:
        return
    inner = bare(node)
    if isinstance(inner, exp.And) and not inner.args.get("negate"):
        yield from _conjuncts(inner.this)
        yield from _conjuncts(inner.expression)
    else:
        yield inner


def _refusal(public: PublicTable, found: _Found, node: exp.Table) -> KeyholeError | None:
    """Why a public table cannot be joined by a column, if it cannot."""
    key = next((column for column in public.columns if column.name == found.key), None)
    spelled = f"{readable(public.name)}.{readable(found.key)}"
    at = found.at or position(node)
    if key is None:
        return KeyholeError(
            "KH201",
            f'the public table "{public.name}" has no column "{found.key}"',
            detail=f"Its columns: {', '.join(column.name for column in public.columns)}.",
            position=at,
        )
    if key.sql_type is not found.base.sql_type or key.sql_type not in JOINED_TYPES:
        return KeyholeError(
            "KH107",
            f'{spelled} is of type {key.declared}, "{found.base.name}" of type {found.base.declared}: they do not join',
            detail="Joined columns are of one type: text, integer, date, timestamp, boolean or uuid.",
            hint="Ask the owner to expose one of them with the other's type.",
            position=at,
        )
    try:
        unique_values(public, found.key)
    except NotUnique as problem:
        return KeyholeError(
            "KH107",
            f"{spelled} {problem} in the pinned copy",
            detail="A row of the question could be counted more than once.",
            hint=f"Join {readable(public.name)} by a column that is unique and not NULL. " + _APART,
            position=at,
        )
    return None
