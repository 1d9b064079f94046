"""Random conditions over a table of odd values, and what each engine makes of them, row by row."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from random import Random

from planner.aggregates.computed_measure import Clips
from planner.aggregates.row_expression import read_row_expression
from planner.catalog.catalog import Column, Computed, Derivation, SqlType, Table
from planner.errors import KeyholeError
from planner.lower.dialects.dialect import Dialect
from planner.lower.row import RowSql
from planner.predicates.computed.ranges import Clip
from planner.predicates.condition import read_row_truth
from planner.question.three_valued import Truth
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from tests.planner.asked import TODAY, select

TABLE = Table(
    name="odd",
    relation="odd",
    columns=(
        Column("id", SqlType.INTEGER, "integer"),
        Column("n", SqlType.INTEGER, "integer"),
        Column("m", SqlType.INTEGER, "smallint"),
        Column("big", SqlType.INTEGER, "bigint"),
        Column("price", SqlType.NUMERIC, "numeric(10,2)"),
        Column("cost", SqlType.NUMERIC, "numeric"),
        Column("x", SqlType.DOUBLE, "double precision"),
        Column("y", SqlType.DOUBLE, "double precision"),
        Column("arrived", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("left_at", SqlType.TIMESTAMP, "timestamp without time zone"),
        Column("born", SqlType.DATE, "date"),
        Column("died", SqlType.DATE, "date"),
        Column("name", SqlType.TEXT, "text"),
        Column("code", SqlType.TEXT, "text", max_length=6),
        Column("said", SqlType.TEXT, "text"),
        Column("month", SqlType.DATE, "date", derivation=Derivation("date_trunc", "month", "arrived")),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="odd",
)
STORED = tuple(column for column in TABLE.columns if column.derivation is None)

WHOLE = ("0", "1", "-1", "2", "3", "7", "-7", "100", "32767", "-32768")
VALUES: dict[str, tuple[str, ...]] = {
    "n": (*WHOLE, "2147483647", "-2147483648"),
    "m": WHOLE,
    "big": (*WHOLE, "9223372036854775807", "-9223372036854775808", "9007199254740993", "4611686018427387904"),
    "price": ("0", "0.5", "-0.5", "1.25", "2.5", "-2.5", "99999999.99", "-99999999.99", "10", "0.01"),
    "cost": ("0", "0.5", "-0.5", "1.25", "3", "-7", "1000000", "0.0001", "12345.6789", "99999999999", "0.0000001"),
    "x": ("0", "-0", "0.5", "-0.5", "1", "2.5", "0.1", "0.2", "0.30000000000000004", "1e20", "-1e20", "1e-20",
          "20.45", "2.675", "-1.005", "0.285", "1.49999999999999", "-0.49999999999999994", "99.995", "123456.75",
          "9007199254740993", "1e300", "-1e300", "1e-300", "5e-324", "NaN", "Infinity", "-Infinity"),
    "arrived": ("2026-01-01 00:00:00", "2026-01-31 23:59:59.999999", "2024-02-29 12:30:00", "1969-12-31 23:59:59.5",
                "1970-01-01", "0001-01-01", "9999-12-31 23:59:59.999999", "2026-01-04 07:00:00", "1582-10-05 01:02:03"),
    "born": ("2026-01-01", "2026-01-31", "2024-02-29", "1969-12-31", "1970-01-01", "0001-01-01", "9999-12-31"),
    "name": ("", " ", "a", "A", "ab", " ab ", "AB", "Ann Lee", "é", "É", "ß", "i", "I", "tab\t", "100%", "a_b", "\\",
             "it''s", "zzzzzzzzzzzzzzzz", "日本"),
}  # fmt: skip
SAID = {
    "read": ("12", " 12 ", "+7", "-3", "007", "2147483647", "-2147483648", "-0", "0" * 480 + "7", "12\t", "\n4\r",
             "3.5", ".5", "5.", "-0.25", "+.125", "2.50000000000000000000000000", "0.005", "99999.995"),
    "none": ("", " ", "abc", "1,000", "1 000", "--1", "+-1", "+", ".", "1.2.3", "12x", "x12", "１２", "1\u00a0",
             "12\u2028", "e5", "1e", "$5", "1/2", "1-", "0b", "\\", "9" * 400 + "x"),
    "more": ("1e2", "2.5E-1", "0x1F", "1_000", "0o17", "NaN", "Infinity", "-inf", "9" * 18, "9" * 19,
             "-9223372036854775808", "9" * 300, "0" * 600, "1." + "1" * 30, "1e30", "1e99", "1e308", "1e-99", "4e-324"),
}  # fmt: skip
"""Texts that are numbers, that are none, and that PostgreSQL may read as numbers and Keyhole does not."""
VALUES["said"] = (*SAID["read"], *SAID["read"], *SAID["none"], *SAID["more"])
VALUES |= {"y": VALUES["x"], "left_at": VALUES["arrived"], "died": VALUES["born"]}
VALUES["code"] = tuple(one for one in VALUES["name"] if len(one) <= 6)  # of longer ones conditions see six characters
FAR = {"arrived": ("infinity", "-infinity", "10000-01-01", "0044-03-15 BC"), "born": ("infinity", "-infinity",
       "10000-01-01", "0044-03-15 BC")}  # fmt: skip
"""Times that are computed with nowhere, and that PostgreSQL may compute with."""
EXPRESSIONS = ("^[0-9]+$", r"^\d{1,3}$", r"^-?[0-9]+(\.[0-9]+)?$", "[0-9]", "[^0-9]", "[^a-z ]$", "^[A-Z]",
               "[a-z_]*b", "^[a-z]{2,}", "^(ab)?$", "[0-9]$", r"^\d*\.\d+$", "^[A-Za-z]+ [A-Za-z]+$", "z{3}",
               "^[0-9]{4,}")  # fmt: skip
SAYING = ("said::int", "said::bigint", "said::numeric", "said::numeric(8,2)", "said::numeric(4,0)", "trim(said)::int",
          "CAST(said AS double precision)", "left(said, 2)::int", "nullif(said, '')::numeric")  # fmt: skip
NUMBERS = ("n", "m", "big", "price", "cost", "x", "y")


class Writer:
    """Writes conditions at random, as people would with more patience."""

    def __init__(self, drawn: Random) -> None:
        self.drawn = drawn

    def condition(self) -> str:
        """A condition, or what CASE of conditions chooses compared with a constant."""
        if self.drawn.random() < 0.9:
            return self.plain_condition()
        constants = self.drawn.choice((("1", "0", "2.5", "NULL"), ("'a'", "'b'", "''", "NULL")))
        first, second, other, wanted = (self.drawn.choice(constants[: 3 + (i < 3)]) for i in range(4))
        more = f" WHEN {self.plain_condition()} THEN {second}" if self.drawn.random() < 0.5 else ""
        last = f" ELSE {other}" if self.drawn.random() < 0.7 else ""
        operator = self.drawn.choice(("=", "<>") if wanted.startswith("'") else ("=", "<>", "<", ">="))
        return f"CASE WHEN {self.plain_condition()} THEN {first}{more}{last} END {operator} {wanted}"

    def plain_condition(self) -> str:
        kind = self.drawn.randrange(14)
        operator = self.drawn.choice(("<", "<=", ">", ">=", "=", "<>"))
        equality = self.drawn.choice(("=", "<>"))
        match kind:
            case 0 | 1:
                return f"{self.number(2)} {operator} {self.number(1)}"
            case 2:
                return f"{self.number(3)} {operator} {self.drawn.choice(('0', '1', '2.5', '-7', '100'))}"
            case 3:
                return f"{self.length()} {operator} interval '{self.drawn.choice(('3 days', '-1 hour', '1 month'))}'"
            case 4:
                return f"{self.time()} {operator} {self.time()}"
            case 5:
                return f"{self.part()} {operator} {self.drawn.choice(('0', '1', '3', '6', '12'))}"
            case 6:
                return f"{self.text(2)} {equality} {self.text(1)}"
            case 7:
                return f"{self.text(2)} {equality} {self.drawn.choice(self.literals())}"
            case 8:
                like = self.drawn.choice(("LIKE", "ILIKE", "NOT ILIKE"))
                text = self.text(2).replace("code", "name")  # whose end is cut off
                return f"{text} {like} {self.drawn.choice(self.patterns())}"
            case 9:
                word = self.drawn.choice(self.literals())
                text = self.text(2).replace("code", "name")
                return f"position({word} IN {text}) {self.drawn.choice(('> 0', '>= 1', '= 0', '< 1'))}"
            case 10 | 11 | 12:
                return (self.case, self.clock, self.pattern)[kind - 10](operator)
            case _:
                return f"length({self.text(2)}) {operator} {self.drawn.randrange(6)}"

    def case(self, operator: str) -> str:
        """A CASE inside of a comparison, alone or computed with."""
        when, other = self.drawn.choice(("n > 2", "name = 'a'", "born IS NULL", "x < y")), f"{self.number(0)} > 1"
        kind = self.drawn.randrange(5)
        if kind == 0:
            chosen = f"CASE WHEN {when} THEN {self.text(1)} ELSE {self.text(1)} END"
            return self.drawn.choice((f"{chosen} IN ('a', 'ab')", f"{chosen} LIKE 'a%'", f"{chosen} IS NULL"))
        if kind == 1:
            chosen = f"CASE WHEN {when} THEN interval '1 day' WHEN {other} THEN interval '90 minutes' END"
            return f"{self.moment()} {operator} {self.moment()} + {chosen}"
        first, second = self.number(1), self.drawn.choice((self.number(1), "2.5", "3"))
        default = self.drawn.choice(("", " ELSE 1", " ELSE n", " ELSE 0.5"))
        chosen = f"CASE WHEN {when} THEN {first} WHEN {other} THEN {second}{default} END"
        if kind == 2:
            chosen = f"({chosen}) / 2"
        return f"{chosen} {operator} {self.drawn.choice(('1', '2.5', 'n', 'price'))}"

    def clock(self, operator: str) -> str:
        """A time of the day, or the years and months of an age."""
        of = self.drawn.choice(("arrived", "left_at", "born", "date '2024-02-29'", "timestamp '2026-01-31 12:00'"))
        ends = f"{of}, {self.drawn.choice(('arrived', 'left_at', 'born', 'died'))}"
        length = self.drawn.choice(("18 months", "1 month", "30 days", "31 days", "2 mons - 1 day", "-1 year", "0"))
        return self.drawn.choice(
            (f"age({ends}) {operator} interval '{length}'", f"age({ends}) {operator} {self.length()}",
             f"age({ends}) {operator} age(born, died)",
             f"extract(year FROM age({ends})) * 12 + extract(month FROM age({ends})) {operator} "
             f"{self.drawn.choice(('0', '1', '-1', '672'))}",
             f"{self.moment()}::time {operator} '{self.drawn.choice(('07:00', '23:59:59.5', '12:30'))}'",
             f"arrived::time {operator} left_at::time", "arrived::time BETWEEN time '06:00' AND time '12:30'",
             f"extract(year FROM age({ends})) {operator} {self.drawn.choice(('0', '1', '-1', '56', '2023'))}",
             f"extract(month FROM age({ends})) {operator} {self.drawn.choice(('0', '1', '-1', '11'))}")
        )  # fmt: skip

    def pattern(self, operator: str) -> str:
        """A part of a text, or what to_char shows of a time."""
        of, equality = self.drawn.choice(("arrived", "born", "left_at")), self.drawn.choice(("=", "<>"))
        return self.drawn.choice(
            (f"split_part(name, {self.drawn.choice((repr(' '), repr('a')))}, {self.drawn.randrange(1, 4)}) = 'ab'",
             f"name ILIKE {self.drawn.choice((repr('%i%'), repr('%ANN%lee'), repr('z%zzzzzzz_')))}",
             f"{self.drawn.choice(('name', 'said', 'code', 'trim(said)'))} {self.drawn.choice(('~', '!~'))} "
             f"'{self.drawn.choice(EXPRESSIONS)}'",
             f"CASE WHEN said ~ '^[+-]?[0-9]{{1,9}}$' THEN said::int {operator} 3 ELSE false END",
             "lower(name) IN ('ann lee', 'i', 'zzzzzzzzzzzzzzzz')", "lower(name) LIKE '%i%'",
             f"to_char({of}, 'YYYY-MM') {operator} '2026-01'", f"to_char({of}, 'YYYYMMDD') {operator} '20240229'",
             f"to_char({of}, 'Dy') {equality} 'Sat'", f"to_char({of}, 'HH24') {operator} '12'",
             f"to_char({of}, 'Mon') {equality} {self.drawn.choice((repr('Jan'), repr('JAN')))}",
             f"(n::int % 2) {operator} 0", f"price::int {operator} 2", f"x::int {equality} 2", "y::bigint % 2 = 1")
        )  # fmt: skip

    def number(self, depth: int) -> str:
        if depth == 0 or self.drawn.random() < 0.3:
            return self.drawn.choice((*NUMBERS, "n", "price", "10", "2", "0.5"))
        left, right = self.number(depth - 1), self.number(depth - 1)
        match self.drawn.randrange(14):
            case 12 | 13:
                return self.drawn.choice(SAYING)
            case 0 | 1 | 2 | 3:
                return f"({left} {self.drawn.choice('+-*')} {right})"
            case 4 | 5:
                return f"({left} / {self.drawn.choice((f'nullif({right}, 0)', '2', '-3', right))})"
            case 6:
                return f"mod({self.drawn.choice(('n', 'm', 'big'))}, {self.drawn.choice(('2', '7', '-3', 'm'))})"
            case 7:
                function = self.drawn.choice(("abs", "floor", "ceil", "-"))
                return f"{function}({left})"
            case 8:
                return self.rounded()
            case 9:
                return f"{self.drawn.choice(('greatest', 'least', 'coalesce'))}({left}, {right})"
            case 10:
                return f"({self.drawn.choice(('born - died', 'died - born'))})"
            case _:
                return f"extract(epoch FROM {self.length()})"

    def rounded(self) -> str:
        """A number in coarser steps, also those of a quotient, also before the point."""
        of = self.drawn.choice(("price", "price * n", "price * price", "price / 1000", "n / -7.0", "price / 0.3", "n",
                                "price / n", "n::numeric / m", "n / price", "price / nullif(n, 0)"))  # fmt: skip
        if self.drawn.random() < 0.3:
            double = self.drawn.choice(("x", "y", "(x * 1.8)", "(y - 0.1)", "(x / 3)"))
            places = f", {self.drawn.randrange(4)}" if self.drawn.random() < 0.7 else ""
            return self.drawn.choice(
                (f"round({double}::numeric{places})", f"trunc({double}::numeric, 1)", f"{double}::numeric(20,2)")
            )
        made = self.drawn.choice((f"round({of}, {self.drawn.randrange(-2, 3)})", f"trunc({of}, 1)", f"floor({of})",
                                  f"ceil({of})", f"round({of})", f"trunc({of})", f"({of})::numeric(30,1)",
                                  f"nullif({of}, 0)"))  # fmt: skip
        return self.drawn.choice((made, made, f"({made} / 2)"))

    def moment(self) -> str:
        return self.drawn.choice(
            ("arrived", "left_at", "date_trunc('month', arrived)", "date_trunc('week', left_at)",
             "date_trunc('hour', arrived)", "date_trunc('day', left_at)", "born::timestamp",
             "(arrived + interval '3 days')", "date_trunc('year', arrived)", "date_trunc('quarter', left_at)",
             "(arrived + interval '1 month')", self.by_months(), self.by_months(), self.by_months())
        )  # fmt: skip

    def by_months(self) -> str:
        """A time moved by months that is computed itself, or the beginning of a unit of one that was moved."""
        unit, of = (
            self.drawn.choice(("year", "quarter", "month", "week", "hour")),
            self.drawn.choice(("arrived", "born")),
        )
        months = self.drawn.choice(("1 month", "1 month - 1 day", "-3 months 2 days", "1 year", "13 mons -02:30"))
        sign = self.drawn.choice("+-")
        return self.drawn.choice(
            (f"(date_trunc('{unit}', {of}) {sign} interval '{months}')",
             f"date_trunc('{unit}', {of} {sign} interval '{months}')",
             f"({of} {sign} interval '{months}' {sign} interval '{months}')")
        )  # fmt: skip

    def length(self) -> str:
        return f"({self.moment()} - {self.moment()})"

    def time(self) -> str:
        return self.drawn.choice((self.moment(), "born", "died", "(born + 7)", "(died - n)", "arrived::date", "month",
                                  f"{self.by_months()}::date"))  # fmt: skip

    def part(self) -> str:
        part = self.drawn.choice(("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour", "minute"))
        of = self.drawn.choice(("arrived", "left_at", "(arrived + interval '3 days')", "(born + 1)", self.by_months()))
        return f"extract({part} FROM {of})" if self.drawn.random() < 0.8 else f"extract(day FROM {self.length()})"

    def text(self, depth: int) -> str:
        if depth == 0:
            return self.drawn.choice(("name", "code"))
        inner = self.text(depth - 1)
        return self.drawn.choice(
            (inner, f"lower({inner})", f"upper({inner})", f"trim({inner})", f"ltrim({inner})", f"rtrim({inner})",
             f"left({inner}, {self.drawn.randrange(4)})", f"right({inner}, {self.drawn.randrange(4)})",
             f"substring({inner}, 2, 2)", f"replace({inner}, 'a', 'xy')", f"{inner} || '-'", f"coalesce({inner}, 'a')",
             f"substring({inner}, 2)", f"nullif({inner}, '')", f"split_part({inner}, 'b', {self.drawn.randint(1, 3)})",
             f"split_part({inner}, ' ', {self.drawn.randint(1, 3)})", f"({inner})::varchar({self.drawn.randint(1, 3)})")
        )  # fmt: skip

    @staticmethod
    def literals() -> tuple[str, ...]:
        return ("'a'", "'ab'", "''", "'AB'", "'ann lee'", "'é'", "' '")

    @staticmethod
    def patterns() -> tuple[str, ...]:
        return (
            "'%a%'",
            "'A_%'",
            "'ann lee'",
            "'%I%'",
            "'%\\%'",
            "'%B'",
            "''",
            "'_'",
            "'i'",
            "'%n%l%'",
            "'zzzzzzzzz%'",
            "'日%'",
        )


def read(sql: str) -> Truth | None:
    """Return what a condition is to Keyhole, or None if it is refused."""
    where = select(f"SELECT 1 FROM odd WHERE {sql}").args["where"]
    given = ConstantContext(parameters={}, today=TODAY, is_utc=True)
    try:
        return read_row_truth(where.this, Scope(TABLE, "odd"), given)
    except KeyholeError as error:
        if error.code not in ("KH205", "KH212"):
            raise
        return None


def lowered(truth: Truth, dialect: Dialect) -> str:
    """Return the truth as SQL: 1 where it is true, 0 where it is false, NULL where it is unknown."""
    row = RowSql(table=TABLE, dialect=dialect)
    true, false, not_true, not_false = (
        row.write_condition(one) for one in (truth.true, truth.false, truth.not_true, truth.not_false)
    )
    return f"CASE WHEN {true} THEN 1 WHEN {false} THEN 0 WHEN ({not_true}) AND ({not_false}) THEN NULL ELSE 9 END"


def rows(drawn: Random, count: int, *, far: bool) -> list[dict[str, str | None]]:
    """Rows of texts that each engine casts to its columns' types."""
    found: list[dict[str, str | None]] = []
    for i in range(count):
        row: dict[str, str | None] = {"id": str(i)}
        for column in STORED[1:]:
            values = VALUES[column.name]
            if far and column.name in FAR:
                values = (*values, *FAR[column.name])
            row[column.name] = None if drawn.random() < 0.08 else drawn.choice(values)
        found.append(row)
    return found


def values_sql(found: list[dict[str, str | None]], cast: str, types: dict[str, str]) -> str:
    """Return a SELECT of the rows, each value cast from its text."""

    def spelled(column: Column, text: str | None) -> str:
        kind = types.get(column.name, column.declared)
        return f"{cast}({'NULL' if text is None else chr(39) + text + chr(39)} AS {kind}) AS {column.name}"

    return " UNION ALL ".join(f"SELECT {', '.join(spelled(one, row[one.name]) for one in STORED)}" for row in found)


def conditions(drawn: Random, count: int) -> list[tuple[str, Truth]]:
    """Return so many conditions that plan, each with what it is."""
    writer = Writer(drawn)
    found: list[tuple[str, Truth]] = []
    while len(found) < count:
        text = writer.condition()
        truth = read(text)
        if truth is not None:
            found.append((text, truth))
    return found


def measures(drawn: Random, count: int) -> list[tuple[str, Column]]:
    """Return so many expressions that sums take, each with the column that is computed: half of them are clipped as
    values without a range are, the others by themselves."""
    writer, found = Writer(drawn), list[tuple[str, Column]]()
    while len(found) < count:
        quotient = f"{writer.number(1)} / {writer.number(1)}"
        number = writer.drawn.choice(
            (writer.number(2), f"extract(epoch FROM {writer.length()})", writer.part(), "born - died", quotient)
        )
        low, high = drawn.randrange(1, 50), drawn.choice((1, 10, 100000, 50_000_000))
        text = number if drawn.random() < 0.5 else f"least(greatest({number}, -{low}), {high})"
        column = _measure(text, low=-low, high=high)
        if column is not None:
            found.append((text, column))
    return found


def _measure(text: str, *, low: int, high: int) -> Column | None:
    """The column that an expression is, clipped if it has no range; None for a sum of several, or of a stored one."""
    bounded = replace(TABLE, columns=tuple(map(_bounded, TABLE.columns)))
    scope, given = Scope(bounded, "odd"), ConstantContext(parameters={}, today=TODAY, is_utc=True)
    node = select(f"SELECT {text}").expressions[0]

    def read(clips: Clips) -> Column | None:
        try:
            parts = read_row_expression(node, scope, given, clips=clips).summands
        except KeyholeError as error:
            if error.code != "KH204":
                raise
            return None
        column = parts[0].column if len(parts) == 1 else None
        if column is None or not isinstance(column.derivation, Computed):
            return None
        return column if parts[0].coefficient == Fraction(1, 10**column.derivation.term.scale) else None

    found = read({})
    if found is None or found.bounds is not None:
        return found
    assert isinstance(found.derivation, Computed)
    step = 10**found.derivation.term.scale
    return read({str(found.name): Clip(Fraction(low * step), Fraction(high * step))})


def _bounded(column: Column) -> Column:
    return replace(column, bounds=(Decimal(-100), Decimal(100))) if column.name in ("n", "m", "price") else column
