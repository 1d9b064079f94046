"""Computed keys, WHERE and HAVING written at random over the table of `test_truth`, as people would with patience."""

from random import Random

NUMBERS = {
    "n": ("0", "1", "-1", "7", "10", "-20", "60", "59.5", "-0.5", "100", "3"),
    "price": ("0", "9.99", "10", "10.005", "25.5", "50", "-1", "0.01", "49.995"),
    "loose": ("0", "0.1", "-0.1", "1.5", "-2.5", "3", "-3", "0.005"),
    "weight": ("0", "0.1", "-0.1", "0.3", "2.5", "-5", "5", "0.7", "1e-3"),
}
STEPS = {
    "n": ("10", "7", "3", "2.5", "-4", "10.0", "60"),
    "price": ("10", "5", "2.5", "0.5", "7", "-10", "0.3"),
    "loose": ("1", "0.5", "0.3", "2", "-1"),
    "weight": ("1", "0.5", "0.3", "0.1", "2", "-1", "0.7"),
}
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")
DAYS = ("2026-01-01", "2026-01-20", "2026-01-31", "2026-02-28", "2024-02-29", "2026-03-01", "1999-12-31")
MOMENTS = (*DAYS, "2026-01-31 23:59:59.999999", "2026-01-20 12:00", "2026-02-01 00:00:00.000001")
CODES = ("A1", "B2", "", "a1", "C", "Axx", "%", "A_")
FORMS = (
    "YYYY", "YYYY-MM", "YYYY-MM-DD", "MM", "Q", "HH24", "Day", "Mon", "YYYY-MM-DD HH24", "IYYY-IW", "HH12 AM", "FMDay",
    "D", "FMMonth YY", "DDD", "WW", "Dy HH24",
)  # fmt: skip
PATTERNS = ("A%", "%2", "_", "", "%", "A_", "%x%", "_2%", "a%", "A\\%%")


class KeyWriter:
    """Writes keys of GROUP BY."""

    def __init__(self, drawn: Random) -> None:
        self.drawn = drawn
        self.pick = drawn.choice

    def number(self, column: str, depth: int) -> str:
        """A number computed from a column."""
        if depth == 0:
            return column
        inner = self.number(column, depth - 1)
        constant = self.pick(NUMBERS[column])
        match self.drawn.randrange(12):
            case 0:
                return f"({inner} {self.pick('+-*')} {self.pick(STEPS[column])})"
            case 1:
                return f"({constant} - {inner})"
            case 2:
                return f"coalesce({inner}, {constant})"
            case 3:
                return f"nullif({inner}, {constant})"
            case 4:
                return f"{self.pick(('greatest', 'least'))}({inner}, {constant})"
            case 5:
                return f"abs({inner})"
            case 6:
                return (
                    f"CASE WHEN {self.compared(column, 0)} THEN {inner} ELSE {self.pick((constant, f'-{column}'))} END"
                )
            case 7:
                return f"(-{inner})"
            case 8:
                return f"({inner} / {self.pick(STEPS[column])})"
            case _:
                return inner

    def stepped(self, column: str) -> str:
        inner = self.number(column, self.drawn.randrange(3))
        step = self.pick(STEPS[column])
        whole = self.pick(("floor", "ceil", "trunc", "round", "ceiling"))
        match self.drawn.randrange(11):
            case 0 | 1:
                return f"{whole}({inner} / {step})"
            case 2:
                return f"{whole}({inner} / {step}) * {step}"
            case 3:
                return f"{self.pick(('round', 'trunc'))}({inner}, {self.pick(('0', '1', '-1', '2'))})"
            case 4:
                return f"{inner} / {step}"
            case 5:
                return f"{inner} % {self.pick(('7', '2', '-3', '5'))}"
            case 6:
                low, high = sorted(self.drawn.sample((-5, -3, 0, 3, 10, 50, 60), 2))
                return f"width_bucket({inner}, {low}, {high}, {self.pick((1, 3, 4, 10))})"
            case 7:
                return f"width_bucket({inner}, ARRAY[-1, 0, 2.5, 10])"
            case 8:
                return f"sign({inner})"
            case 9:
                return f"({inner})::{self.pick(('int', 'text', 'bigint', 'numeric(10,1)', 'smallint'))}"
            case _:
                return inner

    def compared(self, column: str, depth: int) -> str:
        inner, constant = self.number(column, depth), self.pick(NUMBERS[column])
        match self.drawn.randrange(8):
            case 0:
                return f"{inner} IS {self.pick(('', 'NOT '))}NULL"
            case 1:
                low, high = self.pick(NUMBERS[column]), self.pick(NUMBERS[column])
                return f"{inner} {self.pick(('', 'NOT '))}BETWEEN {low} AND {high}"
            case 2:
                return f"{inner} {self.pick(('', 'NOT '))}IN ({constant}, {self.pick(NUMBERS[column])}, 5)"
            case 3:
                return f"{constant} {self.pick(OPERATORS)} {inner}"
            case _:
                return f"{inner} {self.pick(OPERATORS)} {constant}"

    def condition(self, depth: int) -> str:
        if depth and self.drawn.random() < 0.5:
            one, other = self.condition(depth - 1), self.condition(depth - 1)
            match self.drawn.randrange(4):
                case 0:
                    return f"NOT ({one})"
                case 1:
                    return f"({one}) IS {self.pick(('', 'NOT '))}{self.pick(('TRUE', 'FALSE', 'NULL', 'UNKNOWN'))}"
                case _:
                    return f"({one} {self.pick(('AND', 'OR'))} {other})"
        equal = self.pick(("=", "<>"))
        match self.drawn.randrange(10):
            case 0 | 1 | 2:
                return self.compared(self.pick(tuple(NUMBERS)), self.drawn.randrange(3))
            case 3:
                return f"code {self.pick(('', 'NOT '))}LIKE '{self.pick(PATTERNS)}'"
            case 4:
                return f"code {equal} '{self.pick(CODES)}'"
            case 5:
                return f"code {self.pick(('', 'NOT '))}IN ('{self.pick(CODES)}', '{self.pick(CODES)}')"
            case 6:
                return self.pick(
                    ("gift", "NOT gift", "gift IS TRUE", "gift IS NOT FALSE", "coalesce(gift, true)", "gift = false")
                )
            case 7:
                return f"paid {self.pick(OPERATORS)} '{self.pick(DAYS)}'"
            case 8:
                return f"met {self.pick(OPERATORS)} '{self.pick(MOMENTS)}'"
            case _:
                return self.pick(("hour < 12", "hour IN (0, 6, 23)", "city = 'Bonn'", "city LIKE 'B%'", "hour % 2 = 0"))

    def case(self) -> str:
        labels = self.pick((("'a'", "'b'", "'c'"), ("1", "2", "3"), ("1", "2.5", "NULL"), ("true", "false", "NULL")))
        ifs = " ".join(f"WHEN {self.condition(1)} THEN {self.pick(labels)}" for _ in range(self.drawn.randint(1, 3)))
        return f"CASE {ifs}{self.pick(('', f' ELSE {self.pick(labels)}'))} END"

    def one_column(self) -> str:
        """A CASE or a condition about one column."""
        column = self.pick(tuple(NUMBERS))
        if self.drawn.random() < 0.3:
            return self.compared(column, 2)
        tests = [self.compared(column, self.drawn.randrange(3)) for _ in range(self.drawn.randint(1, 4))]
        ifs = " ".join(f"WHEN {test} THEN {self.pick(('1', '2', '3', 'NULL'))}" for test in tests)
        return f"CASE {ifs}{self.pick(('', ' ELSE 9'))} END"

    def time(self) -> str:
        part = self.pick(("year", "quarter", "month", "week", "day", "dow", "isodow", "doy", "hour"))
        of = self.pick(("met", "met", "paid"))
        made = self.pick(
            (
                f"date_trunc('{self.pick(('hour', 'day', 'week', 'month', 'quarter', 'year'))}', {of})",
                f"{of}::date",
                f"extract({part} FROM {of})",
                f"date_part('{part}', {of})",
                f"to_char({of}, '{self.pick(FORMS)}')",
                f"date_bin('{self.pick(('1 day', '7 days', '9 hours'))}', met, '{self.pick(MOMENTS)}')",
                f"({of} {self.pick('+-')} interval '{self.pick(('6 hours', '1 day', '25 hours'))}')::date",
                f"(met::date - paid) / {self.pick(('7', '30', '1'))}",
                f"extract({self.pick(('day', 'day', 'epoch'))} FROM {self.pick(('met - paid', 'paid - met'))})",
                f"coalesce(to_char({of}, '{self.pick(FORMS)}'), 'none')",
                f"({of}::date - date '{self.pick(DAYS)}') / {self.pick(('7', '30', '1'))}",
                of,
            )
        )
        if self.drawn.random() < 0.2 and made.startswith("extract"):
            return f"{made} {self.pick(OPERATORS)} {self.drawn.randrange(8)}"
        return made

    def text(self) -> str:
        inner = "city"
        for _ in range(self.drawn.randint(1, 2)):
            inner = self.pick(
                (f"left({inner}, {self.drawn.randint(-2, 3)})", f"right({inner}, {self.drawn.randint(-2, 3)})",
                 f"upper({inner})", f"lower({inner})", f"trim({inner})", f"ltrim({inner})", f"rtrim({inner})",
                 f"substring({inner} FROM {self.drawn.randint(-1, 3)} FOR 2)", f"replace({inner}, 'B', 'P')",
                 f"split_part({inner}, 'e', {self.pick((1, 2, -1))})", f"length({inner})",
                 f"concat({inner}, '!', NULL)",
                 f"{inner} || '-'", f"coalesce({inner}, 'none')", f"nullif({inner}, 'Bonn')")
            )  # fmt: skip
        return inner

    def key(self) -> str:
        match self.drawn.randrange(12):
            case 0 | 1 | 2:
                return self.stepped(self.pick(tuple(NUMBERS)))
            case 3 | 4:
                return self.one_column()
            case 5 | 6:
                return self.condition(2)
            case 7:
                return self.case()
            case 8 | 9:
                return self.time()
            case 10:
                return self.text()
            case _:
                return self.pick(("hour", "hour / 6", "city", "gift", "n", "hour - 3", "hour % 5", "code"))

    def keys(self) -> list[str]:
        return [self.key() for _ in range(self.pick((1, 1, 1, 2, 2, 3)))]

    def where(self) -> str:
        times = (
            "met >= '2026-01-05' AND met < '2026-02-12 06:00'",
            "met BETWEEN '2026-01-31' AND '2026-02-28 23:59:59.999999'",
            "met > '2026-01-31 23:59:59.999999' AND met <= '2026-03-01'",
            "met::date BETWEEN '2026-01-30' AND '2026-02-02'",
            "date_trunc('month', met) = '2026-02-01'",
            "met >= '2024-02-29' AND met < '2024-03-01'",
            "extract(year FROM met) = 2026",
            "met = '2026-01-20 12:00'",
            "met >= '2026-01-05' AND met < '2026-01-01'",
        )
        days = ("paid >= '2026-01-10' AND paid <= '2026-02-28'", "paid > '2024-02-28' AND paid < '2024-03-02'")
        compared = f"{self.pick(tuple(NUMBERS))} {self.pick(OPERATORS)} {self.pick(('1', '0', '2.5'))}"
        others = ("n BETWEEN 0 AND 30", "NOT n > 20", "n IN (1, 2, 7)", "price < 20", "weight BETWEEN -1 AND 1")
        chances = ((times, 0.8), (days, 0.4), ((compared,), 0.2), (others, 0.2))
        said = [self.pick(choices) if self.drawn.random() < chance else "" for choices, chance in chances]
        kept = [one for one in said if one]
        return f"WHERE {' AND '.join(kept)}" if kept else ""

    def aggregate(self) -> str:
        """A comparison of HAVING."""
        column, filtered = self.pick(tuple(NUMBERS)), self.condition(1)
        form = self.pick(
            (
                "count(*)",
                "count(DISTINCT person)",
                f"count({column})",
                f"sum({column})",
                f"avg({column})",
                f"min({column})",
                f"count(*) FILTER (WHERE {filtered})",
                f"sum({column}) FILTER (WHERE {filtered})",
                f"count(DISTINCT person) FILTER (WHERE {filtered})",
                f"sum(CASE WHEN {filtered} THEN {column} ELSE 0 END)",
                f"sum(least(greatest({self.number(column, 2)}, -5), 20))",
                f"avg(least(greatest({column} * n - 1, 0), 60))",
                f"sum({column} * n)",
                "sum(least(greatest(paid - met::date, -10), 10))",
                f"sum(price) FILTER (WHERE {filtered}) / nullif(sum(price), 0)",
            )
        )
        return f"{form} {self.pick(('>', '<', '>=', '<='))} {self.pick(('2', '5', '-3', '0.2'))}"
