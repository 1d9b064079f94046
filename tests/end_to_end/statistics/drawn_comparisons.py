"""Random comparisons of groups with other groups, and the text by which PostgreSQL says who may be told wrongly.

A literal's text may be relaxed by its tolerance. A group that fails the relaxed text fails by the tolerance, whatever
Keyhole has made of the statement. Literals whose values PostgreSQL rounds are told apart only beyond a `blur`.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import TypeAlias

KEYS = (("ward",), ("month",), ("ward", "month"), ("month",), ("ward", "month"))
_BLUR = Decimal("0.000001")
_RATES = ("0.01", "0.02", "0.05", "0.1", "0.2")
_ABOVE, _BELOW = (">", ">="), ("<", "<=")
_SIZES = {"n": "count(*)", "s": "sum(amount)", "f": "count(*) FILTER (WHERE urgent)", "u": "count(DISTINCT person)"}


@dataclass(frozen=True, slots=True)
class Literal:
    """`left operator right`, perhaps negated. If it is `asked` otherwise, that is a quotient by `w`, of any sign."""

    left: str
    operator: str
    right: str
    tolerance: Decimal
    negated: bool = False
    rounded: bool = False
    asked: str = ""

    def write(self) -> str:
        """Return the text of the question."""
        return self._negate(self.asked or f"{self.left} {self.operator} {self.right}")

    def hold(self) -> str:
        """Return text that is true only where the literal holds."""
        return self._relax(-_BLUR if self.rounded else Decimal(0))

    def relax(self) -> str:
        """Return text that is false only where the literal fails by the tolerance."""
        return self._relax(self.tolerance + (_BLUR if self.rounded else Decimal(0)))

    def _relax(self, slack: Decimal) -> str:
        if self.asked:
            flipped = self.operator.translate(str.maketrans("<>", "><"))
            pairs = (
                ((self.operator, ">", "-"), (flipped, "<", "+"))
                if self.operator in _ABOVE
                else ((self.operator, ">", "+"), (flipped, "<", "-"))
            )
            return " OR ".join(
                f"(w {side} {'-' if side == '>' else ''}{slack} AND {self.left} {operator} {self.right} {sign} {slack})"
                for operator, side, sign in pairs
            ).join("()")
        lowers = (self.operator in _ABOVE) is not self.negated
        return self._negate(f"{self.left} {self.operator} {self.right} {'-' if lowers else '+'} ({slack})")

    def _negate(self, text: str) -> str:
        return f"NOT ({text})" if self.negated else f"({text})"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A question: a formula with places for literals, over a query of groups, and what is promised about it."""

    form: str
    keys: tuple[str, ...]
    columns: tuple[str, ...]
    formula: str
    literals: tuple[Literal, ...]
    settings: dict[str, str]
    people: bool

    @property
    def sql(self) -> str:
        """The statement, as an analyst writes it."""
        return self._write(Literal.write)

    @property
    def sql_of_true(self) -> str:
        """A statement for PostgreSQL: groups that may be missed with probability `fnr` at most."""
        return self._write(Literal.hold)

    @property
    def sql_of_possible(self) -> str:
        """A statement for PostgreSQL: the other groups may be returned with probability `fpr` at most."""
        return self._write(Literal.relax)

    def _write(self, write: Callable[[Literal], str]) -> str:
        keys = ", ".join(self.keys)
        sizes = ", ".join(f"{text} AS {name}" for name, text in _SIZES.items() if name != "u" or self.people)
        sizes += ", avg(amount) AS a, count(amount) AS c"
        groups = f"SELECT {keys}, {sizes} FROM visits GROUP BY {keys}"
        read = f"(SELECT {', '.join(('g.*', *self.columns))} FROM g)" if self.columns else "g"
        where = self.formula.format(*map(write, self.literals))
        return f"WITH g AS ({groups}) SELECT {keys} FROM {read} q WHERE {where}"


_Draw: TypeAlias = tuple[Sequence[str], Sequence[Literal], str]
"""Columns of the query of groups, literals, and the formula that the form itself has, or '' for any."""


class _Drawing:
    """One question as it is drawn: its keys, its size, its tolerance and its numbers."""

    def __init__(self, drawn: random.Random, *, people: bool) -> None:
        self.random = drawn
        self.people = people
        self.keys = drawn.choice(KEYS)
        self.size = drawn.choice("nnnssfu" if people else "nnnssf")
        self.tolerance = Decimal(drawn.choice((8, 12, 20, 33, 60)) * (4 if self.size == "s" else 1))
        self.typical = {"n": 120, "s": 480, "f": 60, "u": 70}[self.size]
        self.groups = {("ward",): 8, ("month",): 10, ("ward", "month"): 20}[self.keys]

    @property
    def parts(self) -> str:
        return "PARTITION BY ward " if len(self.keys) > 1 else ""

    def order(self) -> str:
        return f"{self.parts}ORDER BY month"

    def times(self, *texts: str) -> str:
        return self.random.choice(texts)

    def compare(self, left: str, right: str, **others: bool | str) -> Literal:
        operator = self.random.choice((*_ABOVE, *_BELOW)) if self.random.random() < 0.4 else self.random.choice(_ABOVE)
        negated = not others.get("asked") and self.random.random() < 0.15
        return Literal(left, operator, right, self.tolerance, negated, **others)  # type: ignore[arg-type]

    def number(self, about: int) -> str:
        return str(max(1, round(about * self.random.uniform(0.7, 1.3))))


def _share(at: _Drawing) -> _Draw:
    part = at.random.choice((1.0 / at.groups, 1.5 / at.groups, 0.1))
    factor = f"{part * at.random.uniform(0.7, 1.2):.3f}"
    over = "" if len(at.keys) == 1 or at.random.random() < 0.5 else "PARTITION BY " + at.random.choice(at.keys)
    if over:
        factor = at.times("0.25", "0.2", "0.1")
    column = f"sum({at.size}) OVER ({over}) AS w"
    found = at.compare(at.size, f"{factor} * w")
    if at.size == "s" and not found.negated and at.random.random() < 0.5:
        text = at.times(
            f"s / nullif(w, 0) {found.operator} {factor}",
            f"100.0 * s / nullif(w, 0) {found.operator} {Decimal(factor) * 100}",
        )
        found = Literal("s", found.operator, f"{factor} * w", at.tolerance, asked=text)
    return [column], [found], ""


def _total_of_rows(at: _Drawing) -> _Draw:
    """Each person counts once in the total, in however many groups."""
    if at.people:
        at.size = at.random.choice("nsfuu")
    factor = f"{at.random.uniform(0.7, 1.4) / at.groups:.3f}"
    return [], [at.compare(at.size, f"{factor} * (SELECT {_SIZES[at.size]} FROM visits)")], ""


def _mean_of_groups(at: _Drawing) -> _Draw:
    factor = at.times("0.8", "1", "1.1", "1.25", "2")
    if at.random.random() < 0.5:
        return [], [at.compare(at.size, f"{factor} * (SELECT avg(z.{at.size}) FROM g z)")], ""
    return [f"avg({at.size}) OVER () AS w"], [at.compare(at.size, f"{factor} * w", rounded=True)], ""


def _statistic(at: _Drawing) -> _Draw:
    x = f"z.{at.size}"
    what = at.times(
        f"percentile_cont(0.5) WITHIN GROUP (ORDER BY {x})",
        f"percentile_cont(0.9) WITHIN GROUP (ORDER BY {x})",
        f"percentile_disc(0.25) WITHIN GROUP (ORDER BY {x})",
        f"max({x})",
        f"min({x})",
    )
    at.tolerance *= 2
    value = f"{at.times('0.8', '1', '1.2')} * (SELECT {what} FROM g z)"
    return [], [at.compare(at.size, value, rounded=True)], ""


def _spread(at: _Drawing) -> _Draw:
    at.tolerance *= 3
    size, times = at.size, at.times("0.5", "1", "2")
    spread = at.times("stddev", "stddev_pop") + f"({size}) OVER () AS d"
    columns = [f"avg({size}) OVER () AS w", spread]
    return columns, [at.compare(size, f"w {at.times('+', '-')} {times} * d", rounded=True)], ""


def _difference(at: _Drawing) -> _Draw:
    size, by = at.size, at.times("", ", 2")
    call = at.times("lag", "lag", "lead")
    column = f"{call}({size}{by}) OVER ({at.order()}) AS w"
    constant = at.times("0", "5", "-12", "30")
    return [column], [at.compare(f"{size} - w", constant)], ""


def _growth(at: _Drawing) -> _Draw:
    size, base = at.size, at.number(at.typical // 2)
    column = f"lag({size}) OVER ({at.order()}) AS w"
    factor = at.times("1.2", "1.05", "1.5", "0.9")
    grown = Literal(size, at.random.choice(_ABOVE), f"{factor} * w", at.tolerance)
    return [column], [grown, Literal("w", ">=", base, at.tolerance)], "{0} AND {1}"


def _moving(at: _Drawing) -> _Draw:
    length = at.random.choice((2, 3, 5, 7))
    frame = f"OVER ({at.order()} ROWS BETWEEN {length - 1} PRECEDING AND CURRENT ROW) AS w"
    if at.random.random() < 0.5:
        at.tolerance *= 2
        return [f"sum({at.size}) {frame}"], [at.compare("w", at.number(length * at.typical))], ""
    factor = at.times("0.8", "1.1", "1.3")
    return [f"avg({at.size}) {frame}"], [at.compare(at.size, f"{factor} * w", rounded=True)], ""


def _running(at: _Drawing) -> _Draw:
    at.tolerance *= 2
    column = f"sum({at.size}) OVER ({at.order()}) AS w"
    if at.random.random() < 0.5:
        return [column], [at.compare("w", at.number(4 * at.typical))], ""
    return [column], [at.compare(at.size, f"{at.times('0.2', '0.4')} * w")], ""


def _in_a_row(at: _Drawing) -> _Draw:
    size, count = at.size, at.random.choice((2, 3))
    lags = [f"lag({size}, {by}) OVER ({at.order()}) AS w{by}" for by in range(1, count)]
    names = [size, *(f"w{by}" for by in range(1, count))]
    if at.random.random() < 0.5:
        bar = at.number(at.typical)
        return lags, [Literal(name, ">", bar, at.tolerance) for name in names], ""
    pairs = pairwise(names)
    return lags, [Literal(f"{one} - {other}", ">", "0", at.tolerance) for one, other in pairs], ""


def _correlated(at: _Drawing) -> _Draw:
    if len(at.keys) == 1:
        return _share(at)
    key = at.random.choice(at.keys)
    call, factor = at.random.choice((("sum", "0.2"), ("sum", "0.3"), ("avg", "1.2"), ("max", "0.8")))
    at.tolerance *= 2 if call == "max" else 1
    value = f"{factor} * (SELECT {call}(z.{at.size}) FROM g z WHERE z.{key} = q.{key})"
    return [], [at.compare(at.size, value, rounded=call == "avg")], ""


def _means(at: _Drawing) -> _Draw:
    """Means of rows have counts beside them, on both sides."""
    rows, near = at.random.choice((40, 60)), Decimal(at.random.choice((2, 3)))
    factor = at.times("1", "1.1", "0.9")
    few = Literal("c", ">=", str(rows), Decimal(8))
    if at.random.random() < 0.5:
        columns = ["sum(s) OVER () AS ws", "sum(c) OVER () AS wc"]
        mean = Literal("a", at.random.choice(_ABOVE), f"{factor} * (ws / nullif(wc, 0.0))", near, rounded=True)
        other = Literal("wc", ">=", str(rows * at.groups // 2), Decimal(8))
    else:
        columns = [f"lag(a) OVER ({at.order()}) AS wa", f"lag(c) OVER ({at.order()}) AS wc"]
        mean = Literal("a", at.random.choice(_ABOVE), f"{factor} * wa", near, rounded=True)
        other = Literal("wc", ">=", str(rows), Decimal(8))
    return columns, [mean, few, other], "{0} AND {1} AND {2}"


FORMS: dict[str, Callable[[_Drawing], _Draw]] = {
    "share": _share,
    "total of rows": _total_of_rows,
    "mean of groups": _mean_of_groups,
    "statistic": _statistic,
    "spread": _spread,
    "difference": _difference,
    "growth": _growth,
    "moving": _moving,
    "running": _running,
    "in a row": _in_a_row,
    "correlated": _correlated,
    "means": _means,
}
_CALENDAR = ("difference", "growth", "moving", "running", "in a row", "means")


def draw_comparison(drawn: random.Random, form: str, *, people: bool) -> Drawn:
    """Return a random question of a form, alone or beside a threshold that is a number."""
    at = _Drawing(drawn, people=people)
    while form in _CALENDAR and "month" not in at.keys:
        at = _Drawing(drawn, people=people)
    columns, literals, formula = FORMS[form](at)
    conjunction = " AND ".join(f"{{{place}}}" for place in range(len(literals)))
    formula = formula or (conjunction if drawn.random() < 0.7 else conjunction.replace("AND", "OR"))
    literals = [*literals]
    if form != "means" and drawn.random() < 0.5:
        literals.append(Literal("n", ">", at.number(100), at.tolerance))
        formula = f"({formula}) {drawn.choice(('AND', 'OR'))} {{{len(literals) - 1}}}"
    default = f"{at.tolerance}" if form != "means" else f"8, avg={literals[0].tolerance}"
    settings = {"fnr": drawn.choice(_RATES), "fpr": drawn.choice(_RATES), "tolerance": default, "guard": "refuse"}
    return Drawn(form, at.keys, tuple(columns), formula, tuple(literals), settings, people)
