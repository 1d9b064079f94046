"""Statements of analysts written at random over the tables of `tests.planner.drawn.tables`."""

from dataclasses import dataclass
from random import Random

from tests.planner.groups.drawn_keys import KeyWriter

FAMILIES = ("question", "scorecard", "windows", "ranking", "grouping sets", "correlated", "per unit")
COLUMNS = ("n", "price", "loose", "weight")
THRESHOLDS = ("0", "1", "-1", "2", "3.5", "7", "10", "25", "-4.5", "40")
_COMPARED = ("<", "<=", ">", ">=", "=", "<>")
_KEYS = (
    ("city",), ("city",), ("hour",), ("city", "hour"), ("hour / 6",), ("gift",), ("n > 10",), ("city", "gift"),
    ("CASE WHEN hour < 12 THEN 'am' ELSE 'pm' END", "city"), ("left(city, 1)",), ("extract(dow FROM met)",),
)  # fmt: skip
_SHOWN = (
    "coalesce({a}, false)", "coalesce({a}, false) AS p", "({a}) IS TRUE", "({a}) IS NOT TRUE",
    "CASE WHEN {a} THEN 'yes' WHEN {b} THEN 'no' END", "coalesce(NOT ({a}), false)",
    "coalesce({a}, false) = coalesce({b}, false)", "coalesce({a}, false) IS DISTINCT FROM coalesce({b}, false)",
)  # fmt: skip
_WINDOWS = (
    "lag({p}) OVER (ORDER BY {k})", "lead({p}, 2, false) OVER (ORDER BY {k})", "bool_or({p}) OVER ()",
    "sum(({p})::int) OVER (ORDER BY {k} ROWS UNBOUNDED PRECEDING)", "{p} AND lag({p}) OVER (ORDER BY {k})",
    "first_value({p}) OVER (ORDER BY {k} DESC)", "sum(CASE WHEN {p} THEN 1 ELSE 0 END) OVER (ORDER BY {k})",
    "row_number() OVER (PARTITION BY {p} ORDER BY {k})",
)  # fmt: skip
_RANKED = (
    "SELECT {g}, {w} {t}", "SELECT {g}, {w} <= {n} AS top {t}", "SELECT {g}, ntile({m}) OVER ({o}) AS part {t}",
    "SELECT {g}, percent_rank() OVER ({o}) <= 0.3 AS first {t}", "SELECT {g}, percent_rank() OVER ({o}) > 0.3 {t}",
    "SELECT {g}, cume_dist() OVER ({o}) < 0.5, ntile(2) OVER ({o}) = 1 {t}",
    "SELECT {k} FROM (SELECT {a}, {w} AS place {t}) q WHERE place <= {n}",
    "SELECT {k} FROM (SELECT {a}, {w} AS place {t}) q WHERE place BETWEEN {n} AND {m}",
    "WITH q AS (SELECT {a}, {w} AS r {t}) SELECT {k}, r FROM q WHERE r = {n} OR r > {m}",
    "SELECT {g} {t} ORDER BY {s} LIMIT {n}", "SELECT {g} {t} ORDER BY {s} LIMIT {n} OFFSET 2",
    "SELECT {g} {t} ORDER BY {s} OFFSET {n} ROWS FETCH FIRST 2 ROWS ONLY",
    "SELECT {k} FROM (SELECT {a}, {v} AS total {t}) q ORDER BY total{d} LIMIT {n}",
    "SELECT {k} FROM (SELECT {k}, rank() OVER (ORDER BY total{d}) AS r FROM (SELECT {a}, {v} AS total {t}) a) b "
    "WHERE r <= {n}",
    "SELECT {g}, CASE WHEN {w} = 1 THEN 'first' WHEN {w} <= {m} THEN 'next' ELSE 'other' END {t}",
    "SELECT DISTINCT ON ({l}) {g} {t} ORDER BY {l}, {s}", "SELECT DISTINCT ON ({l}) {g} {t} ORDER BY {l}, {s}",
)  # fmt: skip
_CORRELATED = (
    "SELECT c.name FROM places c WHERE {no}EXISTS (SELECT 1 FROM {t} l WHERE l.city = c.name{w} {by}{h})",
    "SELECT c.name, c.region FROM places c WHERE {no}EXISTS (SELECT FROM {t} l WHERE c.name = l.city{w} {by}{h}) "
    "AND c.region <> 'x'",
    "SELECT c.name, {no}EXISTS (SELECT 1 FROM {t} l WHERE l.city = c.name{w} {by}{h}) FROM places c",
    "SELECT c.name FROM places c WHERE c.name {no}IN (SELECT city FROM {t} l WHERE l.city = c.name{w} "
    "GROUP BY city {h})",
    "SELECT c.name FROM places c WHERE c.name {no}IN (SELECT city FROM {t} GROUP BY city {h})",
    "SELECT c.name, q.hour FROM places c, LATERAL (SELECT l.hour FROM {t} l WHERE l.city = c.name{w} GROUP BY 1 {h}) q",
    "SELECT region, count(*) FROM places c WHERE {no}EXISTS (SELECT 1 FROM {t} l WHERE l.city = c.name AND "
    "l.hour = c.opens{w} GROUP BY l.city, l.hour {h}) GROUP BY region",
    "SELECT p.region FROM {t} l JOIN places p ON l.city = p.name GROUP BY p.region {h}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DrawnStatement:
    """A statement; `groups` counts its groups with rows where all must have some, `sizes` lists what it ranks by."""

    sql: str
    groups: str = ""
    sizes: str = ""


_OF_ONE_UNIT = (
    "min(n)", "max(price)", "max(n) - min(n)", "avg(hour)", "avg(n) FILTER (WHERE gift)", "avg(n)",
    "max(hour) FILTER (WHERE n > 3)", "CASE WHEN count(*) > 2 THEN max(n) ELSE 0 END",
)  # fmt: skip


class StatementWriter:
    """Writes statements of one table."""

    def __init__(self, drawn: Random, table: str) -> None:
        self.drawn, self.table = drawn, table
        self.pick = drawn.choice
        self.keys = KeyWriter(drawn)

    def write(self, family: str) -> DrawnStatement:
        """A statement of one of `FAMILIES`."""
        match family:
            case "question":
                return self._question()
            case "scorecard" | "windows":
                return self._shown(windows=family == "windows")
            case "ranking":
                return self._ranking()
            case "grouping sets":
                return self._grouping_sets()
            case "correlated":
                return self._correlated()
            case _:
                return self._per_unit()

    def _condition(self) -> str:
        """A condition of rows: of one column, or an expression over some."""
        one, operator, number = self.pick(COLUMNS), self.pick(_COMPARED), self.pick(THRESHOLDS)
        return self.pick(
            (
                f"{one} {operator} {number}", "gift", "NOT gift", "code LIKE 'A%'", f"{one} IS NULL",
                f"n {operator} price", f"n * 2 - 5 {operator} price", f"n + hour {operator} {number}",
                f"price * n {operator} {number}", f"price / nullif(n, 0) {operator} {number}",
                f"n / 3 {operator} hour", f"n % 4 {operator} 1", f"abs(loose) {operator} 1.5",
                f"coalesce(n, hour) {operator} {number}", f"greatest(n, price, hour) {operator} {number}",
                f"least(n, hour) {operator} 3", f"round(price, 1) {operator} {number}", "met >= paid",
                f"met::date - paid {operator} {self.pick(('0', '10', '-5'))}", f"length(code) {operator} 1",
                f"extract(dow FROM met) {self.pick(('=', '<', '>='))} {self.drawn.randrange(7)}",
                f"extract(epoch FROM met - paid::timestamp) {operator} 86400", "lower(code) = 'a1'",
                "upper(left(code, 1)) = 'A'", "code || city = 'B2Bonn'", "n IS DISTINCT FROM 10",
                f"nullif(n, 10) {operator} {number}", "n BETWEEN price - 10 AND price + 10",
                f"(n {operator} 5 OR price < 20) AND gift IS NOT FALSE", self.keys.condition(1),
            )
        )  # fmt: skip

    def _filter(self) -> str:
        return f" FILTER (WHERE {self._condition()})" if self.drawn.random() < 0.4 else ""

    def _row(self) -> str:
        """What a sum adds."""
        one, held = self.pick(COLUMNS), self._condition()
        return self.pick(
            (
                one, one, f"{one} * 2", f"-{one}", "n + price", "n * price", "price - loose", "abs(n)", "abs(loose)",
                f"coalesce({one}, 0)", f"coalesce({one}, 1.5)", f"CASE WHEN {held} THEN {one} END", f"({held})::int",
                f"CASE WHEN {held} THEN {one} ELSE 0 END", f"CASE WHEN {held} THEN 1 ELSE 0 END",
                f"CASE WHEN {held} THEN n WHEN gift THEN 2 ELSE -1 END", "least(n, 20)", "greatest(price, 10)",
                "least(greatest(n - hour, 0), 10)", "round(price)", "n % 7", "extract(hour FROM met)",
                "least(greatest(met::date - paid, -30), 30)", "floor(price)", "length(code)", "n * hour",
            )
        )  # fmt: skip

    def _counted(self) -> str:
        """What counts privacy units."""
        return "count(DISTINCT person)" if self.table == "lines" else "count(*)"

    def _aggregate(self) -> str:
        filtered, row = self._filter(), self._row()
        counted = self.pick(("count(*)", self._counted(), f"count({self.pick(COLUMNS)})", f"count({row})"))
        return f"{self.pick((counted, f'sum({row})'))}{filtered}"

    def _ratio(self) -> str:
        operator, t = self.pick(("<", "<=", ">", ">=")), self.pick((*THRESHOLDS, "0.5", "0.25"))
        filtered, row, share = self._filter(), self._row(), self.pick(("0", "20", "50", "33.3", "60"))
        base, units = self.pick(("5", "100", "12.5", "1")), f"{self._counted()}{filtered}"
        divisor = f"sum({self.pick(('price', 'hour', 'abs(n)'))}){filtered}"
        both = f" FILTER (WHERE n IS NOT NULL AND price IS NOT NULL AND {self._condition()})"
        return self.pick(
            (
                f"({self._aggregate()}::numeric / {divisor} {operator} {t} AND {divisor} >= {base})",
                f"(sum({row}){filtered} / nullif({divisor}, 0)::numeric {operator} {t} AND {divisor} > {base})",
                f"(sum(price){filtered} / sum(price) {operator} 0.4 AND sum(price) > {base})",
                f"(avg(n){both} / nullif(avg(price){both}, 0) {operator} {t} AND sum(price){both} >= {base})",
                f"(sum({row}){filtered} * 1.0 / {units} {operator} {t} AND {units} >= 1)",
                f"(count(*){filtered} / {units} {operator} {self.drawn.randrange(4)} AND {units} >= 1)",
                f"100.0 * count(*){filtered} / nullif(count(*), 0) {operator} {share}",
                f"100 * count(*){filtered} / count(*) {operator} {self.pick(('0', '20', '33', '50', '-1'))}",
                f"count(*){filtered} * 100 / count(*) {operator} {self.pick(('0', '20', '33', '50'))}",
                f"round(100.0 * count(*){filtered} / count(*), 1) {operator} {share}",
                f"count(*){filtered} / count(*)::float {operator} 0.3",
                f"sum(n){filtered} / count(n){filtered} {operator} {self.pick(('0', '3', '-2', '7'))}",
                f"sum(n) / 7 {operator} {self.pick(('0', '3', '-2'))}", f"-(sum(n) / count(*)) {operator} -2",
                f"avg({row}){filtered} {operator} {t}", f"avg(({self._condition()})::int) {operator} 0.4",
            )
        )  # fmt: skip

    def _atom(self) -> str:
        operator, t, one = self.pick(_COMPARED), self.pick(THRESHOLDS), self._aggregate()
        return self.pick(
            (
                f"{one} {operator} {t}", f"{one} {operator} {t}", f"{t} {operator} {one}", self._ratio(), self._ratio(),
                f"{one} BETWEEN 2 AND {t}", f"bool_and({self._condition()})", f"bool_or({self._condition()})",
                f"every({self._condition()}) IS TRUE", f"max({self.pick(COLUMNS)}){self._filter()} {operator} {t}",
                f"sum(price){self._filter()} > sum(hour){self._filter()}", self._interval(),
            )
        )  # fmt: skip

    def _interval(self) -> str:
        """A comparison of lengths of time in whole minutes, since sums are taken in steps of ten seconds."""
        operator, days = self.pick(_COMPARED), self.pick(("10 days", "3 days 06:00", "-1 day", "0", "1.5 weeks"))
        met = "date_trunc('minute', met)"
        of = self.pick(
            (f"{met} - paid", f"{met} - paid::timestamp", f"paid - {met}", f"{met} - date_trunc('day', met)")
        )
        held = f"FILTER (WHERE {of} BETWEEN interval '-40 days' AND interval '60 days' AND {self._condition()})"
        call = f"{self.pick(('avg', 'sum'))}({of}) {held}"
        return self.pick(
            (
                f"{call} {operator} interval '{days}'", f"{call} - interval '6 hours' {operator} '{days}'",
                f"extract(epoch FROM {call}) / 3600 {operator} {self.pick(THRESHOLDS)}",
                f"{self.pick(('max', 'min'))}({of}) {operator} interval '{days}'",
                f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {of}) {operator} interval '{days}'",
                f"{call} / 2 {operator} interval '{days}' * 3", f"coalesce({call}, '0') {operator} interval '{days}'",
                f"max({self.pick(('n - hour', 'abs(loose)', 'price * n', 'met::date - paid'))}) {operator} 3",
            )
        )  # fmt: skip

    def _formula(self, depth: int) -> str:
        """A formula of HAVING."""
        if depth == 0 or self.drawn.random() < 0.4:
            return self._atom()
        one, other = self._formula(depth - 1), self._formula(depth - 1)
        compared = self.pick(("AND", "OR", "=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"))
        said = self.pick(("TRUE", "FALSE", "UNKNOWN", "NULL", "NOT TRUE", "NOT FALSE", "NOT UNKNOWN"))
        return self.pick((f"({one}) {compared} ({other})", f"({one}) {compared} ({other})", f"NOT ({one})",
                          f"({one}) IS {said}", f"({one}) = {self.pick(('true', 'false'))}"))  # fmt: skip

    def _predicate(self) -> str:
        """A formula that is shown, where NULL is false: what it is part of does not tell them apart."""
        one, other = self._atom(), self._atom()
        return self.pick((one, f"({one}) AND ({other})", f"({one}) OR ({other})", f"NOT ({one})", f"({one}) IS TRUE"))

    def _where(self) -> str:
        return f" WHERE ({self._condition()})" if self.drawn.random() < 0.4 else ""

    def _groups(self, listed: str, where: str) -> str:
        return f"SELECT count(*) FROM (SELECT 1 FROM {self.table}{where} GROUP BY {listed}) q"

    def _question(self) -> DrawnStatement:
        listed = ", ".join(self.pick(_KEYS))
        having = f"HAVING count(*) > 0 AND ({self._formula(2)})"
        return DrawnStatement(f"SELECT {listed} FROM {self.table}{self._where()} GROUP BY {listed} {having}")

    def _shown(self, *, windows: bool) -> DrawnStatement:
        listed, where = ", ".join(self.pick(_KEYS)), self._where()
        items = ", ".join(
            self.pick(_WINDOWS).format(p=f"(({self._predicate()}) IS TRUE)", k=listed)
            if windows
            else self.pick(_SHOWN).format(a=self._predicate(), b=self._atom())
            for _ in range(self.drawn.randint(1, 2))
        )
        having = self.pick(("", "", f" HAVING count(*) > 0 AND ({self._atom()})"))
        sql = f"SELECT {listed}, {items} FROM {self.table}{where} GROUP BY {listed}{having}"
        return DrawnStatement(sql, "" if having else self._groups(listed, where))

    def _ranking(self) -> DrawnStatement:
        keys = self.pick(_KEYS)
        listed, where = ", ".join(keys), self._where()
        summed = f"coalesce(sum({self._row()}){self._filter()}, 0)"
        size = self.pick(("count(*)", f"count({self.pick(COLUMNS)}){self._filter()}", summed, summed))
        way = self.pick(("", " DESC", " DESC NULLS LAST"))
        having = self.pick(("", f" HAVING count(*) > 0 AND ({self._atom()})"))
        if self.drawn.random() < 0.3:  # of groups with values: without one the mean is NULL
            row, filtered = self._row(), self._filter()
            share = f"100.0 * count(*){filtered} / count(*)"
            size = self.pick(
                (f"avg({row}){filtered}", f"-2 * avg({row}){filtered}", share, f"avg({row} - 1){filtered}")
            )
            having = f" HAVING count(*) > 0 AND count({row}){filtered} > 0"
        part = f"PARTITION BY {self.pick(keys)} " if len(keys) > 1 and self.drawn.random() < 0.5 else ""
        base = f"FROM {self.table}{where} GROUP BY {listed}{having}"
        order = f"{part}ORDER BY {size}{way}"
        sql = self.pick(_RANKED).format(
            g=listed, t=base, o=order, v=size, d=way, s=f"{size}{way}", l=self.pick(keys), n=self.drawn.randint(1, 3),
            m=self.drawn.randint(3, 6), w=f"{self.pick(('rank', 'row_number', 'dense_rank'))}() OVER ({order})",
            a=", ".join(f"{key} AS k{place}" for place, key in enumerate(keys)),
            k=", ".join(f"k{place}" for place in range(len(keys))),
        )  # fmt: skip
        return DrawnStatement(sql, "" if having else self._groups(listed, where), f"SELECT {size} {base}")

    def _grouping_sets(self) -> DrawnStatement:
        keys = self.pick((("city", "hour / 6"), ("city", "gift"), ("hour", "city"), ("gift", "hour / 12")))
        one, last = keys
        listed = f"{one}, {last}"
        grouping = self.pick(
            (
                f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({one}), ())",
                f"{one}, ROLLUP ({last})", f"GROUPING SETS (({last}), ({one}))",
            )
        )  # fmt: skip
        item = self.pick(("", "", f", ({self._atom()}) IS TRUE AS p", f", grouping({one}) AS level"))
        having = f"HAVING count(*) > 0 AND ({self._formula(1)})"
        return DrawnStatement(f"SELECT {listed}{item} FROM {self.table}{self._where()} GROUP BY {grouping} {having}")

    def _correlated(self) -> DrawnStatement:
        sql = self.pick(_CORRELATED).format(
            t=self.table, no=self.pick(("", "NOT ")), by=self.pick(("GROUP BY l.city ", "GROUP BY l.hour ", "")),
            h=f"HAVING count(*) > 0 AND ({self._formula(1)})",
            w=f" AND ({self._condition()})" if self.drawn.random() < 0.4 else "",
        )  # fmt: skip
        return DrawnStatement(sql)

    def _per_unit(self) -> DrawnStatement:
        """A question about what each person adds up to in a group."""
        key, t, operator = self.pick(("city", "hour", "gift")), self.pick(THRESHOLDS), self.pick(_COMPARED)
        total = self.pick(("sum(n)", "sum(price)", "count(*)", "sum(hour)", *_OF_ONE_UNIT))
        inner = (
            f"SELECT {key} AS k, person, {total} AS total, count(*) AS m FROM lines{self._where()} GROUP BY k, person"
        )
        told = (
            f"count(*) FILTER (WHERE total {operator} {t}) > 2", f"bool_and(total > {t})",
            f"100.0 * count(*) FILTER (WHERE total > {t}) / count(*) {operator} 30",
            f"(count(*) > 3) = (count(*) FILTER (WHERE total < {t}) > 1)", f"count(total) {operator} {t}",
            f"count(*) FILTER (WHERE total {operator} m) > 2", f"count(*) FILTER (WHERE total * 1.0 / m < {t}) > 1",
            f"count(*) FILTER (WHERE round(total, 1) {operator} {t}) > 1",
            f"count(*) FILTER (WHERE abs(total - m) + 1 {operator} 2 * m) > 2",
        )  # fmt: skip
        summed = (
            f"sum(total) {operator} {t}", f"avg(total) {operator} {t}", f"sum(total) / count(*) {operator} 3",
            f"sum(CASE WHEN total > {t} THEN total ELSE 0 END) > 5", f"sum(abs(total - m)) {operator} {t}",
            f"avg(greatest(total, m)) {operator} {t}",
        )  # fmt: skip
        having = self.pick(told if "avg" in total else told + summed)  # a sum of means is off by a part of a step
        return DrawnStatement(f"SELECT k FROM ({inner}) v GROUP BY k HAVING count(*) > 0 AND ({having})")
