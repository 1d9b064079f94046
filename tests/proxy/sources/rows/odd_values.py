"""Tables of groups that differ by one odd row each, and questions that look at every column of them.

Group w0 has ordinary rows alone. Every other group has the same rows and one odd value in one column, of a unit of its
own. So one question meets all odd values at once, and each may move its group by no more than its bound.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from planner.errors import KeyholeError
from proxy.open_policy.service import Service
from proxy.pipeline import stages
from tests.effort import PATIENCE_S
from tests.end_to_end.certainty import asked

UNITS = 3  # ordinary ones, in each group


@dataclass(frozen=True)
class Odd:
    """A column: what questions do with it, its type, an ordinary value for each unit, and odd ones; as SQL."""

    use: str
    type: str
    usual: tuple[str, str, str]
    odd: tuple[str, ...]

    @property
    def is_unit(self) -> bool:
        """Whether the column may be a privacy unit."""
        return self.use not in ("number", "double", "other", "hidden")


Columns = Mapping[str, Odd]


def quoted(values: tuple[str, ...]) -> tuple[str, ...]:
    """The values as SQL texts, which are read as any type."""
    return tuple("'" + one.replace("'", "''") + "'" for one in values)


def whole(kind: str, *odd: str) -> Odd:
    return Odd("whole", kind, ("1", "2", "5"), quoted(odd))


def doubles(kind: str, *odd: str) -> Odd:
    return Odd("double", kind, ("1", "2", "5"), quoted(odd))


def numbers(kind: str, *odd: str) -> Odd:
    return Odd("number", kind, ("1", "2", "5"), quoted(odd))


def moments(kind: str, *odd: str) -> Odd:
    return Odd("moment", kind, ("'2026-01-01'", "'2026-01-02'", "'2026-02-03'"), quoted(odd))


def texts(kind: str, *odd: str) -> Odd:
    return Odd("text", kind, ("'ann'", "'bob'", "'o''hare'"), quoted(odd))


def others(kind: str, value: str) -> Odd:
    """A column of a type that no question can use."""
    return Odd("other", kind, (value, value, "NULL"), (value,))


BINARY = ("NaN", "Infinity", "-Infinity", "-0.0", "1e-45", "3.4e38", "-3.4e38")
DOUBLE = (*BINARY, "5e-324", "1.7976931348623157e308")
TEXTS = ("", " ", "\\", "%_\\", "n\u0303", "\U0010ffff", "\u202egnu", "\ufeffann", "ann ", "\x01", "\u2028")
LONG = "x" * 1_000_000
KEY = Odd(
    "uuid",
    "UUID",
    ("'00000001-0000-4000-8000-000000000000'", "'00000002-0000-4000-8000-000000000000'", "NULL"),
    ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
)
FLAG = Odd("flag", "BOOLEAN", ("TRUE", "FALSE", "TRUE"), ("NULL",))


def statements(columns: Columns) -> Iterator[str]:
    """What makes the table `odd`, and for each column that may be a unit a table `of_NAME` without the others."""
    declared = ", ".join(f"{name} {column.type}" for name, column in columns.items())
    yield f"CREATE TABLE odd (id INTEGER, ward INTEGER, {declared})"
    wards = 1 + sum(len(column.odd) for column in columns.values())
    for unit in range(UNITS):
        usual = ", ".join(f"CAST({column.usual[unit]} AS {column.type})" for column in columns.values())
        yield (
            f"INSERT INTO odd SELECT ward * {UNITS} + {unit}, ward, {usual} "
            f"FROM generate_series(0, {wards - 1}) AS series(ward)"
        )
    ward = 0
    for name, column in columns.items():
        for value in column.odd:
            ward += 1
            yield f"INSERT INTO odd (id, ward, {name}) VALUES ({-ward}, {ward}, {value})"
    for name, column in columns.items():
        if column.is_unit:
            yield f"CREATE TABLE of_{name} AS SELECT ward, {name} FROM odd"


def policy(columns: Columns, *, source: str, relation: str = "{}") -> str:
    """A policy over the tables; `relation` says what the source calls them."""
    wards = sum(len(column.odd) for column in columns.values())
    ward = f"ward = {{ key = {{ range = [0, {wards}] }} }}\n"
    bounded = 'refresh = "static"\nmax_groups_per_unit = 1\nrows_per_unit = 1\n'
    lines = [
        f'[source]\n{source}[ledger]\nurl = "sqlite:///keyhole.db"\n',
        "[budget]\nepsilon_per_predicate = 400\nepsilon_per_unit = 800\nepsilon_per_query = 400\n",
        f'[tables.odd]\nrelation = "{relation.format("odd")}"\nprivacy_unit = "id"\n{bounded}',
        f"[tables.odd.columns]\n{ward}",
    ]
    for name, column in columns.items():
        match column.use:
            case "number" | "whole" | "double":
                grid = "1" if column.use == "whole" else "0.01"
                lines.append(f"{name} = {{ bounds = [0, 10], grid = {grid}, per_unit = [0, 10] }}\n")
            case "moment":
                lines.append(f"{name} = {{}}\n{name}_month = {{ expression = \"date_trunc('month', {name})\"")
                lines.append(", key = { range = [2026-01-01, 2026-02-01], step = '1 month' } }\n")
            case "hidden":
                continue
            case "text":
                lines.append(f'{name} = {{ key = {{ values = ["ann", "bob", "o\'hare"] }} }}\n')
            case _:
                lines.append(f"{name} = {{}}\n")
    for name, column in columns.items():
        if column.is_unit:
            named = relation.format(f"of_{name}")
            lines.append(f'[tables.of_{name}]\nrelation = "{named}"\nprivacy_unit = "{name}"\n{bounded}')
            lines.append(f"[tables.of_{name}.columns]\n{name} = {{}}\n{ward}")
    return "".join(lines)


_NUMBERS = (
    "sum({0}) > 3 AND avg({0}) > 1.5 AND count({0}) > 2"
    " AND count(*) FILTER (WHERE {0} > 1 AND {0} <> 5) > 1 AND count(*) FILTER (WHERE {0} IN (1, 2)) > 1"
)
_HAVINGS = {
    "double": _NUMBERS,
    "number": f"count(DISTINCT {{0}}) > 1 AND count(DISTINCT abs({{0}})) > 1 AND {_NUMBERS}",
    "whole": f"count(DISTINCT {{0}}) > 1 AND count(DISTINCT abs({{0}})) > 1 AND {_NUMBERS}",
    "moment": "count({0}) > 2 AND count(DISTINCT {0}) > 1 AND count(DISTINCT {0}::date) > 1"
    " AND count(DISTINCT extract(dow FROM {0}::timestamp)) > 1 AND count(*) FILTER (WHERE {0} > '2026-01-01') > 1",
    "text": "count(DISTINCT {0}) > 1 AND count(DISTINCT lower(trim({0}))) > 1"
    " AND count(*) FILTER (WHERE {0} LIKE 'a%') > 1"
    " AND count(*) FILTER (WHERE {0} <> 'bob' AND {0} IN ('ann', '')) > 1",
    "uuid": "count(DISTINCT {0}) > 1 AND count(*) FILTER (WHERE {0} <> '00000001-0000-4000-8000-000000000000') > 1",
    "flag": "count(*) FILTER (WHERE NOT {0}) > 1 AND count({0}) > 1",
}


def check_odd_rows(service: Service, columns: Columns, *, has_few_patterns: bool = False) -> None:
    """Ask about every column, and insist that odd rows fail nothing and move only their own groups, by their bounds.

    `has_few_patterns`: of a Spark, which is asked no pattern that is looked for.
    """
    for name, column in columns.items():
        if column.use == "hidden":
            continue
        if column.use == "other":
            for condition in (f"{name} IS NULL", f"{name} = '1'"):
                with pytest.raises(KeyholeError, match=r"KH205|KH212"):
                    _values(service, f"SELECT ward FROM odd WHERE {condition} GROUP BY ward HAVING count(*) > 1")
            continue
        _check_groups(service, f"SELECT ward FROM odd GROUP BY ward HAVING {_HAVINGS[column.use].format(name)}")
        if column.use == "text" and not has_few_patterns:
            _check_groups(service, f"SELECT ward FROM odd WHERE {name} LIKE '%n%' GROUP BY ward HAVING count(*) > 1")
        key = {"text": name, "moment": f"{name}_month"}.get(column.use)
        if key is not None:
            _check_keys(service, f"SELECT {key} FROM odd GROUP BY {key} HAVING count(*) > 1", column)
        if column.is_unit:
            _check_units(service, f"of_{name}", name)


def _values(service: Service, question: str) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The aggregates by key, and how far one unit may move each."""
    plan = stages.plan_asked_question(service, asked(service, question, fnr="0.4"))
    computed = plan.question.computed_functionals
    found = service.source.read_aggregates(
        plan.rewritten, plan.question.keys, functionals=len(computed), timeout_ms=1000 * PATIENCE_S
    )
    return found.values, np.array([one.sensitivity for one in computed])


def _check_groups(service: Service, question: str) -> None:
    values, bounds = _values(service, question)
    assert values[:, 0].any(), question
    assert (abs(values - values[:, :1]) <= bounds[:, None]).all(), question


def _check_keys(service: Service, question: str, column: Odd) -> None:
    (counts,), _ = _values(service, question)
    assert counts.min() > 1, (question, counts)


def _check_units(service: Service, table: str, unit: str) -> None:
    """Each unit counts once, in the group that a hash of its value draws."""
    having = f"count(*) > 1 AND count(DISTINCT {unit}) > 1"
    (rows, units), _ = _values(service, f"SELECT ward FROM {table} GROUP BY ward HAVING {having}")
    (found,) = [one for one in service.catalog.tables if one.name == table]
    ((expected,),) = service.source.read_for_owner(table, f"SELECT count(DISTINCT {unit}) FROM {found.relation}")
    assert rows.sum() == units.sum() == expected, unit
