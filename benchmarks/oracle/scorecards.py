"""Random scorecards, judged whole: what the integers and the text around them show, and what PostgreSQL shows.

Each predicate is decided without noise on each source's own aggregates; PostgreSQL then runs the statement around keys
and truths, as a session's shadow does. That is held against the same statement over the bounded rows, in which every
predicate is `coalesce(<predicate>, false)` and every group of the question is a row: those of the domain that WHERE can
leave rows of, all that have some among them.
"""

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg

from benchmarks.oracle.judging import TODAY, Tally, compute_exact_values, decide_literal, parse_question, write_literal
from benchmarks.oracle.statements import (
    Branch,
    Statement,
    draw_compared_aggregate,
    draw_having,
    draw_restriction,
    draw_where,
)
from benchmarks.oracle.worlds import CATALOG, KEYS, TABLES, Engines, list_domain, name_bounded
from mechanisms.formula import Formula, evaluate_formula
from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Table
from planner.catalog.columns import Value
from planner.catalog.listed_values import format_values
from planner.errors import KeyholeError
from planner.extract.outer_query import Asking, write_outer_sql
from planner.plan.minimise import minimise
from planner.question.question import Question
from planner.statements.classify import classify
from planner.statements.settings import read_accuracy
from proxy.shadow.array import write_array_literal
from proxy.sources.protocol import Source

# Items of a select list: {} is a predicate each, {key} a key. What stands here is no larger formula of thresholds.
_ITEMS = (
    "{}", "{}", "({})", "({})::int", "CAST({} AS integer)", "({})::text", "CASE WHEN {} THEN 'yes' ELSE 'no' END",
    "CASE WHEN {} THEN 'high' WHEN {} THEN 'mid' END", "CASE {} WHEN true THEN 1 ELSE 0 END", "coalesce({}, false)",
    "({}) AND {key} IS NOT NULL", "{key}::text || ({})::text", "({})::int + ({})::int", "1 - ({})::int",
    "CASE WHEN {key} IS NULL THEN 'none' WHEN {} THEN 'some' ELSE 'few' END", "({}) = ({})", "100 * ({})::int + 1",
    "CASE WHEN {} THEN CASE WHEN {} THEN 1 ELSE 2 END ELSE 3 END", "upper(CASE WHEN {} THEN 'x' ELSE {key}::text END)",
    "concat({key}, ': ', {})", "coalesce(CASE WHEN {} THEN 'x' END, 'y')", "length(CASE WHEN {} THEN 'xx' END)",
    "CASE WHEN {} THEN {key} END", "CASE WHEN {} AND {key} IS NOT NULL THEN 1 END",
)  # fmt: skip
_AROUND = (
    "SELECT {key}, bool_and(c1::text <> ''), count(*) FROM ({card}) q GROUP BY {key} ORDER BY 1",
    "SELECT c1, count(*) FROM ({card}) q GROUP BY c1 ORDER BY 1",
    "SELECT q.*, rank() OVER (ORDER BY q.c1) FROM ({card}) q ORDER BY {keys}",
    "WITH q AS ({card}) SELECT {keys} FROM q WHERE c1 IS NOT NULL ORDER BY {keys}",
    "SELECT {keys}, c1 FROM ({card}) AS q UNION ALL SELECT {keys}, c1 FROM ({card}) AS q ORDER BY {keys}",
    "SELECT max(c1::text), min({key}) FROM ({card}) q",
)
_WRAPPED = ("({})", "({})", "({})", "({})", "(NOT ({}))", "(({}) IS TRUE)", "(({}) IS NOT TRUE)", "(({}) = false)")
_TRIES = 6  # formulas drawn for each that is asked: half of them would need a guard, and be refused
_SHOWN_AGAIN = 0.3  # of the predicates, those that stand in a further place


@dataclass(frozen=True, slots=True)
class RandomScorecard:
    """A question with predicates, each in some expression; `question` has its HAVING, "" for none.

    `items` and `ordered` have predicates as `{p0}`, ..., bands as `{w0}`, ...; `around` is what is done with it.
    Where `inside` is not empty, predicates and bands read its aggregates as `a0`, ..., columns of a subquery.
    """

    question: Statement
    predicates: tuple[str, ...]
    bands: tuple[str, ...]
    items: tuple[str, ...]
    ordered: tuple[str, ...]
    distinct: bool
    around: str
    inside: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        (only,) = self.question.branches
        names = ", ".join(self.question.keys)
        source = self.question.write_grouped(only)
        if self.inside:
            listed = ", ".join(f"{one} AS a{place}" for place, one in enumerate(self.inside))
            source = f"FROM (SELECT {names}, {listed} {source}) AS s"
        return self._write(source, predicates=self.predicates, bands=self.bands)

    def write_meaning(self, groups: Iterable[tuple[Value, ...]]) -> str:
        """Return the SQL of what it must show for these groups, from the bounded rows of each."""
        (only,) = self.question.branches
        names = self.question.keys
        held = [
            f"coalesce({_make_nullable(_write_inline(one, self.inside))}, false) AS p{n}"
            for n, one in enumerate(self.predicates)
        ]
        held += [f"coalesce({_write_inline(one, self.inside)}, 0) AS w{place}" for place, one in enumerate(self.bands)]
        ours = " AND ".join(f"v.{name} = d.{name}" for name in names)
        values = ", ".join("(" + ", ".join(map(write_literal, key)) + ")" for key in groups)
        where_ = f" AND ({only.where})" if only.where else ""
        source = (
            f"FROM (VALUES {values}) AS d ({', '.join(names)}), "
            f"LATERAL (SELECT {', '.join(held)} FROM {name_bounded(self.question.table, names)} v "
            f"WHERE {ours}{where_} HAVING {_make_nullable(only.having or 'true')}) h WHERE {only.restriction or 'true'}"
        )
        truths = tuple(f"p{place}" for place in range(len(self.predicates)))
        return self._write(source, predicates=truths, bands=tuple(f"w{place}" for place in range(len(self.bands))))

    @property
    def inhabited(self) -> str:
        """The SQL of the groups that have rows."""
        (only,) = self.question.branches
        names = ", ".join(self.question.keys)
        conditions = f"({only.where or 'true'}) AND ({only.restriction or 'true'})"
        return (
            f"SELECT DISTINCT {names} FROM {name_bounded(self.question.table, self.question.keys)} v WHERE {conditions}"
        )

    @property
    def plain(self) -> str:
        """As it is asked, over the bounded rows of the groups that have some."""
        name = self.question.table.name
        bounded = name_bounded(self.question.table, self.question.keys)
        return re.sub(rf"\bFROM {name}\b", f"FROM {bounded} AS {name}", self.sql)

    def _write(self, source: str, *, predicates: tuple[str, ...], bands: tuple[str, ...]) -> str:
        named = {f"p{place}": one for place, one in enumerate(predicates)}
        named |= {f"w{place}": one for place, one in enumerate(bands)}
        keys = "" if self.distinct else f"{', '.join(self.question.keys)}, "
        shown = ", ".join(f"{item.format(**named)} AS c{place + 1}" for place, item in enumerate(self.items))
        ordered = ", ".join(
            (*(one.format(**named) for one in self.ordered), *(() if self.distinct else self.question.keys))
        )
        order = f" ORDER BY {ordered}" if ordered else ""
        card = f"SELECT {'DISTINCT ' if self.distinct else ''}{keys}{shown} {source}"
        if not self.around:
            return card + order
        return self.around.format(card=card, key=self.question.keys[0], keys=", ".join(self.question.keys))


def _make_nullable(formula: str) -> str:
    """A formula as its own group without rows takes it: there a ratio to COUNT(*) is NULL."""
    return formula.replace("/ count(*)", "/ nullif(count(*), 0)")


def draw_scorecard(drawn: random.Random) -> RandomScorecard:
    """A random scorecard of one to three items, with up to two predicates or bands in each."""
    table, keys = drawn.choice(TABLES), drawn.choice(KEYS)
    only = Branch(
        draw_restriction(drawn, keys),
        draw_where(drawn, keys),
        _draw_predicate(drawn, table, ()) if drawn.random() < 0.3 else "",
    )
    inside = tuple(draw_compared_aggregate(drawn) for _ in range(drawn.choice((1, 2)))) if drawn.random() < 0.2 else ()
    predicates: list[str] = []
    bands: list[str] = []

    def place_predicate() -> str:
        if predicates and drawn.random() < _SHOWN_AGAIN:
            return f"{{p{drawn.randrange(len(predicates))}}}"
        predicates.append(_draw_predicate(drawn, table, inside))
        return f"{{p{len(predicates) - 1}}}"

    items: list[str] = []
    for _ in range(drawn.choice((1, 1, 2, 3))):
        if drawn.random() < 0.15:
            bands.append(
                _draw_band(drawn, f"a{drawn.randrange(len(inside))}" if inside else draw_compared_aggregate(drawn))
            )
            items.append(f"{{w{len(bands) - 1}}}")
            continue
        template = drawn.choice(_ITEMS)
        items.append(re.sub(r"\{\}", lambda _: place_predicate(), template).replace("{key}", keys[0]))
    around = drawn.choice(_AROUND) if drawn.random() < 0.3 else ""
    ordered: list[str] = []
    if not around and drawn.random() < 0.4:
        ordered.append(drawn.choice((f"{place_predicate()} DESC", "c1", f"CASE WHEN {place_predicate()} THEN 0 END")))
    return RandomScorecard(
        question=Statement(table, keys, (only,), ()),
        predicates=tuple(predicates),
        bands=tuple(bands),
        items=tuple(items),
        ordered=tuple(ordered),
        distinct=not around and not ordered and drawn.random() < 0.1,
        around=around,
        inside=inside,
    )


def _draw_predicate(drawn: random.Random, table: Table, inside: tuple[str, ...]) -> str:
    """A formula that most probably needs no further guard: the first of some that is answered as HAVING is; with
    `inside`, over the aggregates of a subquery."""
    for _ in range(_TRIES):
        formula = _draw_around_columns(drawn, inside) if inside else draw_having(drawn)
        wrapped = drawn.choice(_WRAPPED).format(formula)
        try:
            parse_question(f"SELECT ward FROM {table.name} GROUP BY ward HAVING {_write_inline(wrapped, inside)}")
        except KeyholeError:
            continue
        return wrapped
    return f"a0 > {drawn.randint(0, 9)}" if inside else f"count(*) > {drawn.randint(0, 9)}"


def _draw_around_columns(drawn: random.Random, inside: tuple[str, ...]) -> str:
    """A formula over the aggregates of a subquery."""
    atoms = [
        f"a{drawn.randrange(len(inside))} {drawn.choice(('>', '>=', '<', '<=', '=', '<>'))} {drawn.randint(-1, 9)}"
        for _ in range(drawn.choice((1, 1, 2)))
    ]
    return drawn.choice((" AND ", " OR ")).join(atoms)


def _write_inline(formula: str, inside: tuple[str, ...]) -> str:
    """A formula with the aggregates themselves in the place of the subquery's columns."""
    return re.sub(r"\ba(\d)\b", lambda found: f"({inside[int(found[1])]})", formula)


def _draw_band(drawn: random.Random, value: str) -> str:
    thresholds = sorted({drawn.randint(-2, 12) for _ in range(drawn.randint(1, 4))})
    return f"width_bucket({value}, ARRAY[{', '.join(map(str, thresholds))}])"


def judge_scorecard(card: RandomScorecard, engines: Engines, tally: Tally) -> str | None:
    """Both sources on a scorecard; None where they agree with PostgreSQL, in groups with rows and without, or where
    there is nothing to judge."""
    read = read_questions(card.sql, tally)
    if read is None:
        return None
    asking, questions = read
    groups = [questions[0].keys.get_key(place) for place in range(questions[0].keys.size)]
    try:
        with engines.truth.cursor() as cursor:
            cursor.execute(card.inhabited.encode())
            if missing := {*cursor.fetchall()} & {*list_domain(card.question.keys)} - {*groups}:
                return f"the question has no groups {missing}, which have rows"
            cursor.execute(card.write_meaning(groups).encode())
            wanted = cursor.fetchall()
            cursor.execute(f"SELECT * FROM ({card.plain}) p LIMIT 0".encode())
            columns = [(one.name, one.type_code) for one in cursor.description or ()]
    except psycopg.Error:
        tally.meaningless += 1
        return None
    tally.judged += 1
    tally.joined += bool(card.around)
    for source in engines.sources:
        for form in ("as typed", "minimised"):
            relations = [_release(question, source, engines, form=form) for question in questions]
            found, described = run_around(asking, relations, engines)
            if described != columns:
                return f"{source.dialect.name}, {form}: columns {described}, not {columns}"
            if (found if card.ordered or card.around else Counter(found)) != (
                wanted if card.ordered or card.around else Counter(wanted)
            ):
                return f"{source.dialect.name}, {form}: {found}, not {wanted}"
    return None


def read_questions(sql: str, tally: Tally) -> tuple[Asking, list[Question]] | None:
    """Return a statement and its questions, without tolerances and added counts. Count it if it is refused."""
    try:
        asking = classify(sql, CATALOG)
        assert isinstance(asking, Asking)
        return asking, [_ask_exactly(asking, place) for place in range(len(asking.questions))]
    except KeyholeError as error:
        if error.code in ("KH900", "KH100", "KH106"):
            raise
        tally.refused[error.code] += 1
        return None


def _ask_exactly(asking: Asking, place: int) -> Question:
    """Return a question of a statement, without tolerances and added counts. Raise what binding raises."""
    wanted = read_accuracy({"keyhole.tolerance": "0", "keyhole.guard": "refuse"}, CATALOG.defaults)
    return bind_question(asking.questions[place], CATALOG, accuracy=wanted, parameters={}, today=TODAY)


def _release(question: Question, source: Source, engines: Engines, *, form: str) -> list[tuple[str, ...]]:
    """The columns of the answer without noise: keys, then truths."""
    space = question.keys
    values = compute_exact_values(question, source, engines)

    def decide(formula: Formula) -> list[bool]:
        one = formula if form == "as typed" else minimise(formula).formula
        return list(map(bool, evaluate_formula(one, partial(decide_literal, values), keys=space.size)))

    passed, *truths = (decide(formula) for formula in question.formulas)
    rows = [
        (*format_values(space.get_key(place)), *("true" if truth[place] else "false" for truth in truths))
        for place in range(space.size)
        if passed[place]
    ]
    return list(zip(*rows, strict=True)) if rows else [()] * (len(space.names) + len(truths))


def run_around(
    asking: Asking, relations: Sequence[Sequence[tuple[str | None, ...]]], engines: Engines
) -> tuple[list[tuple[Any, ...]], list[tuple[str, int]]]:
    """Return the rows of a statement around answers, and the names and types of their columns."""
    outer = write_outer_sql(asking, first_parameter=1)
    arrays = {array.number: write_array_literal(relations[array.embedded][array.column]) for array in outer.arrays}
    sql = re.sub(r"\$(\d+)::text\[\]", lambda found: f"{arrays[int(found[1])]}::text[]", outer.sql)
    with engines.truth.cursor() as cursor:
        cursor.execute(sql.encode())
        return cursor.fetchall(), [(one.name, one.type_code) for one in cursor.description or ()]
