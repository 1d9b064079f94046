"""What a question's aggregates are by definition: plain Python over a list of rows, exact, slow, independent of SQL."""

import hashlib
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from planner.catalog.catalog import Column, Derivation, Lookup, Product, SqlType, Table
from planner.question.as_of import AsOf
from planner.question.condition import And, Compare, Condition, IsNull, Like, Not, Or, Within
from planner.question.question import Functional, Measure, Question, Term

Row = Mapping[str, Any]


def true_aggregates(question: Question, rows: Sequence[Row]) -> npt.NDArray[np.int64]:
    """The bounded aggregates, shape (functionals, keys)."""
    question = over_horizon(question)
    table, keys = question.table, question.keys
    index = {key: i for i, key in enumerate(keys.get_key(i) for i in range(keys.size))}
    result = np.zeros((len(question.functionals), keys.size), dtype=np.int64)
    different: dict[tuple[int, int], set[Any]] = defaultdict(set)
    by_unit: dict[tuple[Any, ...], dict[tuple[Any, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    for number, row in enumerate(one for stored in rows for one in in_windows(question, stored)):
        unit = (number,) if table.is_row_unit else tuple(read(table, row, name) for name in table.unit)
        key = tuple(read(table, row, name) for name in keys.names)
        if None in unit or not all(
            part in (column.domain or ()) for part, column in zip(key, keys.columns, strict=True)
        ):
            continue
        if any(read(table, row, key.name) not in key.values for key in table.fixed):
            continue
        if question.as_of is not None and not is_in_time(question, question.as_of, row):
            continue
        by_unit[unit][key].append(row)
    for unit, groups in by_unit.items():
        counted = [key for key in chosen(question, unit, groups) if key in index]
        divide_unit(question, {key: capped(question, groups[key]) for key in counted}, index, result)
        for key in counted:
            kept = capped(question, groups[key])
            for f, functional in enumerate(question.functionals):
                if functional.measure is Measure.UNIT_PARTS:
                    continue
                if functional.measure is Measure.VALUES:
                    different[f, index[key]] |= values_that_count(question, functional, kept)
                    continue
                result[f, index[key]] += contribution(question, functional, kept)
    for place, values in different.items():
        result[place] = len(values)
    return result


def divide_unit(
    question: Question,
    groups: Mapping[tuple[Any, ...], Sequence[Row]],
    index: Mapping[tuple[Any, ...], int],
    result: npt.NDArray[np.int64],
) -> None:
    """Add a unit in parts alike to the groups in which it has rows that count, apart for each value of other keys."""
    for f, functional in enumerate(question.functionals):
        if functional.measure is Measure.UNIT_PARTS:
            (term,) = functional.terms
            having = [key for key, rows in groups.items() if any(counts(question, term, row) for row in rows)]
            places = [i for i, name in enumerate(question.keys.names) if name not in functional.split_keys]
            for key in having:
                alike = [other for other in having if all(other[place] == key[place] for place in places)]
                part, left = divmod(functional.sensitivity, len(alike))
                assert not left
                result[f, index[key]] += part


def values_that_count(question: Question, functional: Functional, rows: Sequence[Row]) -> set[Any]:
    """The different values of one unit in one key: all, or where totals are clipped the first in the order of md5."""
    (term,) = functional.terms
    assert term.column is not None
    found = {read(question.table, row, term.column) for row in rows if counts(question, term, row)}
    if question.table.is_row_unit or question.table.row_cap is not None:
        return found
    assert functional.unit_range is not None

    def drawn(value: Any) -> tuple[datetime, str]:
        having = [row for row in rows if read(question.table, row, term.column or "") == value]
        return came(question, [row for row in having if counts(question, term, row)]), digest(question.table, [value])

    return set(sorted(found, key=drawn)[: functional.unit_range[1]])


def in_windows(question: Question, row: Row) -> list[Row]:
    """The row once for each window of a look that it is in, where these overlap; else as it is."""
    as_of = question.as_of
    if as_of is None or as_of.hopping is None:
        return [row]
    time = as_moment(read(question.table, row, as_of.hopping.column))
    windows = [as_moment(one) for one in as_of.horizon]
    return [{**row, as_of.window: one} for one in windows if timedelta() <= time - one < as_of.hopping.length]


def is_in_time(question: Question, as_of: AsOf, row: Row) -> bool:
    """Whether a row of a window of the horizon had come by the look, before its window closed."""
    arrived = came(question, [row])
    before = as_of.before
    keys, table = question.keys, question.table
    free = [i for i, one in enumerate(keys.columns) if not table.determines(one)]
    chooses = (
        table.row_cap is not None or math.prod(len(keys.get_whole_domain(i)) for i in free) > table.groups_per_unit
    )
    if table.get_column(as_of.column).sql_type is SqlType.DATE and chooses and not table.is_row_unit:
        before = datetime(before.year, before.month, before.day)
    if read(table, row, as_of.column) is None or arrived >= before:
        return False
    if as_of.hopping is not None and as_of.hopping.column == as_of.column:
        return True
    if getattr(question.table.get_column(as_of.window).derivation, "column", None) == as_of.column:
        return True
    return arrived - as_moment(read(question.table, row, as_of.window)) < as_of.window_open_for


def came(question: Question, rows: Sequence[Row]) -> datetime:
    """When the first of the rows came, NULL last; always the same where no look asks for it."""
    if question.as_of is None:
        return datetime.min
    found = [read(question.table, row, question.as_of.column) for row in rows]
    return min(as_moment(value) for value in found)


def as_moment(value: Any) -> datetime:
    if value is None:
        return datetime.max
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)


def over_horizon(question: Question) -> Question:
    """A look's question with the windows of the horizon as the window column's domain."""
    as_of = question.as_of
    if as_of is None:
        return question

    def windows(columns: tuple[Column, ...]) -> tuple[Column, ...]:
        return tuple(replace(c, domain=as_of.horizon) if c.name == as_of.window else c for c in columns)

    return replace(
        question,
        table=replace(question.table, columns=windows(question.table.columns)),
        keys=replace(question.keys, columns=windows(question.keys.columns)),
    )


def chosen(
    question: Question, unit: tuple[Any, ...], groups: Mapping[tuple[Any, ...], Sequence[Row]]
) -> list[tuple[Any, ...]]:
    """The keys of a unit that count: the first G in the order of md5; at a look, of when the unit came into them."""
    table, names = question.table, question.keys.names
    if table.is_row_unit:
        return list(groups)

    def drawn(key: tuple[Any, ...]) -> tuple[datetime, str]:
        values = dict(zip(table.unit, unit, strict=True)) | dict(zip(names, key, strict=True))
        rows = capped(question, groups[key])
        return came(question, rows or groups[key]), digest(table, [values[name] for name in sorted(values)])

    return sorted(groups, key=drawn)[: table.groups_per_unit]


def capped(question: Question, rows: Sequence[Row]) -> Sequence[Row]:
    """The rows of one unit in one key that count."""
    table, cap = question.table, question.table.row_cap
    if cap is None:
        return rows
    unique = cap.unique
    present = [row for row in rows if row[unique] is not None]
    return sorted(present, key=lambda row: (came(question, [row]), digest(table, [row[unique]])))[: cap.rows]


def contribution(question: Question, functional: Functional, rows: Sequence[Row]) -> int:
    """What one unit adds to one functional of one key."""
    table = question.table
    total = sum(added(question, term, row) for row in rows for term in functional.terms if counts(question, term, row))
    if functional.measure is Measure.UNITS:
        return min(total, 1)
    if functional.measure is Measure.UNIT_SUM:
        held = [term for term in functional.terms if any(counts(question, term, row) for row in rows)]
        total = sum(term.coefficient for term in held)
        assert functional.unit_range is not None
        assert functional.unit_range[0] <= total <= functional.unit_range[1]  # what is said of every unit
        return total
    off = functional.terms[0].condition if functional.off_condition is None else functional.off_condition
    if functional.off_each_unit and any(counts(question, Term(1, None, off, 0), row) for row in rows):
        total -= functional.off_each_unit
    elif table.is_row_unit or table.row_cap is not None:
        return total
    assert functional.unit_range is not None
    low, high = functional.unit_range
    return max(min(low, 0), min(max(high, 0), total))


def added(question: Question, term: Term, row: Row) -> int:
    """What a row that counts adds."""
    if not term.power:
        return term.coefficient
    assert term.column is not None
    factors = [question.table.get_column(name) for name in multiplied(question.table, term.column)]
    return term.coefficient * math.prod(
        grid_steps(column, read(question.table, row, column.name)) for column in factors
    )


def counts(question: Question, term: Term, row: Row) -> bool:
    values = [read(question.table, row, name) for name in multiplied(question.table, term.column)]
    if any(value is None or is_nan(value) for value in values):
        return False
    return holds(question.table, question.where, row) is True and holds(question.table, term.condition, row) is True


def multiplied(table: Table, column: str | None) -> tuple[str, ...]:
    """The columns whose values a product is made of; any other column alone."""
    if column is None:
        return ()
    derivation = table.get_column(column).derivation
    return derivation.columns if isinstance(derivation, Product) else (column,)


def grid_steps(column: Column, value: Any) -> int:
    """The clipped value in grid steps, halves rounded up."""
    assert column.bounds is not None
    assert column.grid is not None
    low, high = column.bounds
    if column.sql_type is SqlType.DOUBLE:
        clipped = max(float(low), min(float(high), value))
        steps: float = clipped / float(column.grid) + 0.5
        return math.floor(steps)
    exact = max(Fraction(low), min(Fraction(high), Fraction(value)))
    return math.floor(exact / Fraction(column.grid) + Fraction(1, 2))


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def read(table: Table, row: Row, name: str) -> Any:
    """A stored or derived column of a row."""
    derivation = table.get_column(name).derivation
    if derivation is None:
        return row[name]
    if isinstance(derivation, Lookup):
        return dict(derivation.pairs).get(row[derivation.column])
    assert isinstance(derivation, Derivation)
    value = row[derivation.column]
    if value is None:
        return None
    if derivation.function == "date":
        return value.date() if isinstance(value, datetime) else value
    if derivation.function == "extract":
        return {"year": value.year, "month": value.month, "hour": getattr(value, "hour", 0),
                "dow": value.isoweekday() % 7, "doy": value.timetuple().tm_yday,
                "quarter": (value.month + 2) // 3}[derivation.part]  # fmt: skip
    assert derivation.function == "date_trunc"
    day = value.date() if isinstance(value, datetime) else value
    match derivation.part:
        case "month":
            day = day.replace(day=1)
        case "year":
            day = day.replace(month=1, day=1)
        case "week":
            day = date.fromordinal(day.toordinal() - day.weekday())
        case "hour":
            return value.replace(minute=0, second=0, microsecond=0)
    return day if table.get_column(name).sql_type is SqlType.DATE else datetime(day.year, day.month, day.day)


def digest(table: Table, parts: list[Any]) -> str:
    return hashlib.md5("|".join([table.seed, *map(canonical, parts)]).encode()).hexdigest()


def canonical(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f"{len(value)}:{value}"
        case datetime():
            text = value.strftime("%Y-%m-%d %H:%M:%S.%f").zfill(26)
            return text.rstrip("0").rstrip(".") if "." in text else text
        case Decimal():
            with localcontext() as context:
                context.prec = 60
                return format(value.normalize(), "f")
        case _:
            return str(value)


def holds(table: Table, condition: Condition, row: Row) -> bool | None:
    """A condition by SQL's three-valued logic; NaN is above every number."""
    match condition:
        case Compare(name, operator, value):
            found = read(table, row, name)
            return None if found is None else compared(found, operator, value)
        case Within(name, values):
            found = read(table, row, name)
            return None if found is None else any(compared(found, "=", value) for value in values)
        case Like(name, pattern):
            found = read(table, row, name)
            return None if found is None else matches(found, pattern)
        case IsNull(name):
            return any(read(table, row, factor) is None for factor in multiplied(table, name))
        case Not(inner):
            held = holds(table, inner, row)
            return None if held is None else not held
        case And(parts):
            every = [holds(table, part, row) for part in parts]
            return False if False in every else None if None in every else True
        case Or(parts):
            some = [holds(table, part, row) for part in parts]
            return True if True in some else None if None in some else False


def compared(found: Any, operator: str, value: Any) -> bool:
    if isinstance(found, float):
        sign = 1 if math.isnan(found) else (found > float(value)) - (found < float(value))
    elif isinstance(found, str):
        sign = (found.encode() > value.encode()) - (found.encode() < value.encode())
    else:
        sign = (found > value) - (found < value)
    return {"=": sign == 0, "<>": sign != 0, "<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]


def matches(found: str, pattern: str) -> bool:
    if not pattern:
        return not found
    head, rest = pattern[0], pattern[1:]
    match head:
        case "%":
            return any(matches(found[i:], rest) for i in range(len(found) + 1))
        case "_":
            return bool(found) and matches(found[1:], rest)
        case "\\":
            return found[:1] == rest[0] and matches(found[1:], rest[1:])
        case _:
            return found[:1] == head and matches(found[1:], rest)
