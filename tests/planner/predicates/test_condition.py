"""WHERE as typed keeps exactly PostgreSQL's rows, with constants of every type on either side."""

import random
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import psycopg

from planner.catalog.catalog import Column, SqlType, Table, Value
from planner.errors import KeyholeError
from planner.predicates.condition import read_row_condition
from planner.question.condition import evaluate
from planner.scope.name_resolution import Scope
from planner.values.constant import ConstantContext
from tests.effort import rounds
from tests.planner.asked import select

_TABLE = Table(
    name="r",
    relation="r",
    columns=(
        Column("i", SqlType.INTEGER, "integer"),
        Column("x", SqlType.NUMERIC, "numeric"),
        Column("d", SqlType.DATE, "date"),
        Column("s", SqlType.TIMESTAMP, "timestamp"),
        Column("g", SqlType.BOOLEAN, "boolean"),
        Column("t", SqlType.TEXT, "text"),
    ),
    unit=(),
    groups_per_unit=1,
    rows_per_unit=None,
    row_cap=None,
    refresh="static",
    seed="r",
)
_ROWS: list[dict[str, Value | None]] = [
    {
        "i": random.Random(k).choice([None, -1, 0, 1, 2, 3]),
        "x": random.Random(k + 100).choice([None, *(Decimal(j) / 4 for j in range(8))]),
        "d": random.Random(k + 200).choice([None, *(date(2026, 1, 1 + j) for j in range(4))]),
        "s": random.Random(k + 300).choice([None, *(datetime(2026, 1, 1 + j // 2, 12 * (j % 2)) for j in range(8))]),
        "g": random.Random(k + 400).choice([None, True, False]),
        "t": random.Random(k + 500).choice([None, "", "a", "ab", "5", "O'Neil"]),
    }
    for k in range(50)
]
_CONSTANTS = {
    "i": ["1", "1.5", "-0.5", "'2'", "3 - 1", "7 / 2", "7 / 2.0", "-7 / 2", "7 % 4", "1e0", "NULL",
          "99999999999999999999", "'1'::int", "-99999999999999999999.5", "(2)", "2::numeric"],
    "x": ["1", "0.75", "'0.5'", "1.0 / 4", "5 - 4.25", "NULL", "'1.25'::numeric", "2 * 0.5"],
    "d": ["'2026-01-02'", "date '2026-01-03'", "timestamp '2026-01-02 12:00'", "date '2026-01-01' + 1",
          "date '2026-01-31' - interval '1 month'", "'2026-01-02'::date", "NULL", "timestamp '2026-01-02'",
          "date_trunc('month', date '2026-01-20')", "date '2026-01-01' + interval '36 hours'"],
    "s": ["'2026-01-02'", "'2026-01-02 12:00'", "timestamp '2026-01-02 12:00:00'", "date '2026-01-02'", "NULL",
          "date '2026-01-01' + interval '1 day 12 hours'", "'2026-01-03 00:00:00.5'"],
    "g": ["true", "'f'", "NULL", "'yes'"],
    "t": ["'a'", "''", "'O''Neil'", "'5'::text", "NULL", "$$ab$$"],
}  # fmt: skip
_PATTERNS = ["'a%'", "'_'", "'%e_l'", "'a\\b'", "NULL"]
_FLIP = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _leaf(random_: random.Random) -> str:
    name = random_.choice(list(_CONSTANTS))
    first, second = random_.choice(_CONSTANTS[name]), random_.choice(_CONSTANTS[name])
    ordered = name not in ("t", "g")
    operator = random_.choice(["=", "<>", "<", "<=", ">", ">="] if ordered else ["=", "<>"])
    forms = [
        f"{name} {operator} {first}",
        f"{first} {_FLIP[operator]} {name}",
        f"{name} {random_.choice(['', 'NOT '])}IN ({first}, {second})",
        f"{name} IS {random_.choice(['', 'NOT '])}DISTINCT FROM {first}",
        f"{name} IS {random_.choice(['', 'NOT '])}NULL",
        f"({name} {operator} {first}) IS {random_.choice(['', 'NOT '])}{random_.choice(['TRUE', 'FALSE', 'UNKNOWN'])}",
        random_.choice(["g", "NOT g", "g IS NOT TRUE", "true", "NULL", "1 = 0", "1 < 2"]),
        f"t {random_.choice(['', 'NOT '])}LIKE {random_.choice(_PATTERNS)}",
    ]
    if ordered:
        forms.append(f"{name} {random_.choice(['', 'NOT '])}BETWEEN {first} AND {second}")
    return random_.choice(forms)


def _tree(random_: random.Random, depth: int) -> str:
    if depth == 0:
        return _leaf(random_)
    parts = [_tree(random_, depth - 1) for _ in range(random_.randint(1, 3))]
    joined = f"({random_.choice([' AND ', ' OR ']).join(parts)})"
    return random_.choice(["", "", "NOT "]) + joined


def _kept(where: str, parameters: Mapping[int, Value | None] | None = None) -> list[int]:
    tree = select(f"SELECT 1 FROM r WHERE {where}").args["where"].this
    given = ConstantContext(parameters=parameters or {}, today=date(2026, 1, 2))
    condition = read_row_condition(tree, Scope(_TABLE, "r"), given)
    return [k for k, row in enumerate(_ROWS) if evaluate(condition, row) is True]


def test_where_keeps_postgresql_s_rows(postgres_url: str) -> None:
    """800 random conditions over 50 rows."""
    random_ = random.Random(11)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TEMP TABLE r (k integer, i integer, x numeric, d date, s timestamp, g boolean, t text)"
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO r VALUES (%s, %s, %s, %s, %s, %s, %s)",
                [(index, *row.values()) for index, row in enumerate(_ROWS)],
            )
        for _ in range(rounds(800, quick=100)):
            where = _tree(random_, random_.randint(0, 2))
            found = connection.execute(f"SELECT k FROM r WHERE {where} ORDER BY k".encode()).fetchall()
            assert _kept(where) == [k for (k,) in found], where


def test_parameters_count_as_their_values() -> None:
    assert _kept("i > $1", {1: Decimal("1.5")}) == _kept("i > 1.5")
    assert _kept("i > $1", {1: "1"}) == _kept("i > 1")
    assert _kept("d = $2 OR s < $1", {1: datetime(2026, 1, 2, 12), 2: date(2026, 1, 3)}) == _kept(
        "d = '2026-01-03' OR s < '2026-01-02 12:00'"
    )
    assert _kept("i = $1", {1: None}) == []
    assert _kept("g = $1", {1: True}) == _kept("g")


def test_the_clock_is_the_day_given() -> None:
    assert _kept("d = current_date") == _kept("d = '2026-01-02'")
    assert _kept("s >= now() - interval '1 day'") == _kept("s >= '2026-01-01'")
    assert _kept("s < date_trunc('month', now()) + interval '36 hours'") == _kept("s < '2026-01-02 12:00'")


def test_every_constant_of_a_wrong_type_is_refused() -> None:
    wrong = {"i": "'x'", "x": "true", "d": "5", "s": "1.5", "g": "7", "t": "5"}
    for name, constant in wrong.items():
        code = None
        try:
            _kept(f"{name} = {constant}")
        except KeyholeError as error:
            code = error.code
        assert code == "KH212", (name, constant)
