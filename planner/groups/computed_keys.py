"""The columns that GROUP BY computes: one per expression, made for one question, with a public list of groups.

    GROUP BY extract(dow FROM arrived)     a derived column, as the owner may declare one
    GROUP BY quantity > 10                 the parts into which 10 cuts the values of quantity, and NULL

Guarantee: the groups are a function of the policy and the statement's own text. A row's group follows from one column
of the row, and computing it fails on no row. A row outside the groups is in none.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from functools import lru_cache

from sqlglot import exp

from planner.catalog.catalog import Column, Computed, ComputedName, Derivation, SqlType, Value, ValueGroups
from planner.catalog.derived_columns import CLOCK_PARTS, DATE_PARTS, PART_RANGES, infer_derived_type
from planner.catalog.domains import expand_range
from planner.catalog.fault import Fault
from planner.catalog.key_space import format_value
from planner.errors import KeyholeError, cut_at_word
from planner.groups.computed_numbers import add_numbers, replace_numbers
from planner.groups.conditions import part_by_conditions
from planner.groups.cuts import CutFinder
from planner.groups.null_groups import group_time_part, has_null_group, keeps_null
from planner.groups.number_parts import find_column_unit, make_number_parts
from planner.groups.open_texts import group_listed_ends, group_listed_texts, refuse_open_texts
from planner.groups.pieces import MOST_CUTS, MOST_STEPS, NotFinite, TooManyCuts
from planner.groups.pinned_values import is_listed_number, part_by_values
from planner.groups.ranges import TimeRange, find_number_range, find_time_range, list_fixed_conditions
from planner.groups.time_cuts import group_times, list_starts, list_steps
from planner.groups.truths import add_truths, replace_truths
from planner.groups.unlisted_times import check_times
from planner.parser.lexer import spell_name
from planner.parser.tree import contains_type, find_position, strip_parentheses, write_node, write_short
from planner.question.condition import Condition
from planner.scope.group_by import resolve_item
from planner.scope.key_classes import find_plain_column, find_stand_in, is_too_wide, read_key_expression
from planner.scope.key_partitions import identify_parts, label_parts, may_miss_texts
from planner.scope.key_times import find_cycle, find_finest_part
from planner.scope.name_resolution import Scope, find_column, read_derivation
from planner.scope.number_keys import is_number_key
from planner.values.datetimes import extract_part, truncate_to_unit
from planner.values.expressions import uses_clock

_NUMBERS = frozenset({SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE})
_TIMES = frozenset({SqlType.DATE, SqlType.TIMESTAMP})
_LONGEST_HINT = 200  # characters of a hint that a reader takes in at once


def add_computed_keys(scope: Scope, select: exp.Select) -> Scope:
    """Return the scope with a key column for each expression in GROUP BY that the declared keys do not determine.

    Raises KH202 for an expression whose values are not finitely many, or more than a question may have groups.
    """
    group = select.args.get("group")
    if group is None or scope.subquery_columns is not None:
        return scope
    try:
        items = [resolve_item(strip_parentheses(item), select, scope) for item in group.expressions]
        plain = {column.name for item in items if (column := find_plain_column(item, scope)) is not None}
        scope = _replace_wide_lists(scope, items, plain)
        said = list_fixed_conditions(select, scope)
        open_ = [item for item in items if _is_computed(item, scope, said, plain)]
    except KeyholeError:
        return scope  # it is refused where the keys are read
    if not open_:
        return scope
    for item in open_:
        if uses_clock(item):
            raise _refuse_changing(item)
    try:
        scope = _add_keys(scope, items, open_, list_fixed_conditions(select, scope))
    except KeyholeError:
        for item in open_:
            check_times(item, scope, only_several=True)
        raise
    for item in open_:
        check_times(item, scope)
    return scope


def _add_keys(scope: Scope, items: list[exp.Expr], open_: list[exp.Expr], said: tuple[Condition, ...]) -> Scope:
    """Return the scope with a column for everything that the open items of GROUP BY compute."""
    for item in open_:
        scope = add_truths(scope, item, only_several=True)
    scope = add_numbers(scope, open_, said, only_lengths=True)
    for item in open_:
        for derived in _list_derivations(_replace_known_keys(item, scope), scope, said):
            scope = _add_derived_column(scope, derived, said, item, among=items)
        scope = add_truths(scope, item, only_several=False)
    scope = add_numbers(scope, open_, said, only_lengths=False)
    for column in _list_columns_read(open_, scope):
        reading = [item for item in items if column.name in _list_names_read(item, scope)]  # also a column by itself
        scope = _add_parts(scope, column, reading, said)
    refuse_open_texts(open_, scope)
    return scope


def describe_rows_without_group(keys: Iterable[Column]) -> Iterator[str]:
    """Yield a sentence for each computed key that may leave rows without a group."""
    for key in keys:
        if not key.computed or not key.domain:
            continue
        named = cut_at_word(key.name)
        match key.derivation:
            case ValueGroups(column=read) if read.startswith("extract("):
                pass  # a part of a time has no other numbers
            case ValueGroups() as parts if parts.cut_points and parts.groups[0] is None and parts.groups[-1] is None:
                first, past = (format_value(one) for one in _list_ends(parts))
                of = named if is_number_key(key) else cut_at_word(parts.column)
                yield f"rows whose {of} is below {first}, or {past} or more, are in no group of {named}"
            case ValueGroups(kind=SqlType.TEXT, null_group=int()) as parts if parts.tests and may_miss_texts(parts):
                yield f"values of {cut_at_word(parts.column)} of which no example was found are in no group of {named}"
            case Derivation(function="extract", part=part) as derived if part in PART_RANGES:
                yield f"rows without {derived.column} are in no group of {_write_derivation(derived)}"
            case Derivation() as derived:
                first, last = format_value(min(key.domain)), format_value(max(key.domain))
                outside = f"rows whose {derived.column} is NULL or not in {first} .. {last}"
                yield f"{outside} are in no group of {_write_derivation(derived)}"
            case _:
                pass


def _list_ends(parts: ValueGroups) -> tuple[Value, Value]:
    """Return the first and the last cut. Those of a computed number are in its own units."""
    first, past = parts.cut_points[0], parts.cut_points[-1]
    scale = 0
    if isinstance(parts.column, ComputedName) and isinstance(parts.column.column.derivation, Computed):
        scale = parts.column.column.derivation.term.scale
    if not scale:
        return first, past
    return Decimal(str(first)).scaleb(-scale), Decimal(str(past)).scaleb(-scale)


def _write_derivation(derived: Derivation) -> str:
    """Return the expression of a part of a time as it is written."""
    column = spell_name(derived.column)
    match derived.function:
        case "extract":
            return f"extract({derived.part} FROM {column})"
        case "date_trunc":
            return f"date_trunc('{derived.part}', {column})"
        case _:
            return f"{column}::date"


def _replace_wide_lists(scope: Scope, items: Iterable[exp.Expr], plain: Collection[str]) -> Scope:
    """Return the scope with long lists of days replaced by ranges, if items compute with these days.

    Parameters:
        plain: the keys that are grouped by as they are.
    """
    read = {column for item in items for one in item.find_all(exp.Column) if (column := find_column(one, scope))}
    wide = {
        column.name: column
        for column in read
        if column.sql_type is SqlType.DATE
        and column.derivation is None
        and column.name not in plain
        and is_too_wide([column])
        and None not in (column.domain or ())
    }
    if not wide:
        return scope
    columns = tuple(replace(one, domain=None) if one.name in wide else one for one in scope.table.columns)
    return replace(scope, table=replace(scope.table, columns=columns), wide_keys=tuple(wide.values()))


def _is_computed(item: exp.Expr, scope: Scope, said: tuple[Condition, ...], plain: Collection[str]) -> bool:
    """Return True if declared keys do not determine an item of GROUP BY, or only with too many of their values.

    Parameters:
        plain: the keys that are grouped by as they are. They determine everything that is computed from them.
    """
    if isinstance(item, exp.Rollup | exp.Cube | exp.GroupingSets | exp.Tuple | exp.Star):
        return False
    if item.find(exp.Column) is None:
        return False
    if item.find(exp.Query, exp.AggFunc, exp.Window, exp.Parameter) is not None:
        return False
    column = find_column(item, scope)
    if column is not None:
        return column.domain is None and column.name not in scope.table.unit and _has_few_values(column, said)
    expression = read_key_expression(item, scope)
    if expression is None:
        return True
    read = {key.name: key for _, key in expression.columns}
    return len(read) > 1 and not read.keys() <= set(plain) and is_too_wide(read.values())


def _has_few_values(column: Column, said: tuple[Condition, ...]) -> bool:
    """Return True if a column's type and bounds alone list its values, or WHERE lists them."""
    if column.derivation is None and group_listed_texts(column, said) is not None:
        return True
    whole = column.sql_type is SqlType.INTEGER and column.bounds is not None
    if is_listed_number(column):
        return True
    dated = column.sql_type is SqlType.DATE  # over a range that WHERE or a key gives
    return column.derivation is None and (whole or dated or column.sql_type is SqlType.BOOLEAN)


def _list_derivations(item: exp.Expr, scope: Scope, said: tuple[Condition, ...]) -> Iterator[Derivation]:
    """Yield the parts of times that an expression reads and that are not columns of the table yet."""
    for node in item.walk():
        if isinstance(node, exp.TimeToStr):
            read = find_column(strip_parentheses(node.this), scope)
            if read is not None and read.domain is None and read.sql_type in _TIMES:
                yield from _list_shown_derivations(node, read, scope, said)
            continue
        written = read_derivation(node, scope)
        if written is not None and find_column(node, scope) is None:
            yield written


def _list_shown_derivations(
    node: exp.TimeToStr, read: Column, scope: Scope, said: tuple[Condition, ...]
) -> Iterator[Derivation]:
    """Yield the derivations that determine the text which to_char makes of a time.

    They are a truncation over a range, or a part with few numbers.
    """
    cycle, part = find_cycle(node), find_finest_part(node)
    column = node.find(exp.Column)
    open_ = (column is None or find_stand_in(column, scope) is None) and find_time_range(read, scope, said) is None
    if cycle and (open_ or part in CLOCK_PARTS):
        derived = Derivation("extract", cycle, read.name)
        if all(one.derivation != derived for one in scope.table.columns):
            yield derived
    elif part in DATE_PARTS:
        yield Derivation("date_trunc", part, read.name)


def _add_derived_column(
    scope: Scope, derived: Derivation, said: tuple[Condition, ...], item: exp.Expr, *, among: list[exp.Expr]
) -> Scope:
    """Return the scope with a derived column, which has its possible values or is grouped with a group for NULL."""
    base = scope.table.get_column(derived.column)
    if not base.groupable:
        raise _refuse_ungroupable(item, base)
    if derived.part == "day" and derived.function == "date_trunc":
        derived = Derivation("date", "", derived.column)  # one column for both spellings
    try:
        kind = infer_derived_type(derived, base.sql_type)
    except Fault:
        return scope
    always = PART_RANGES.get(derived.part) if derived.function == "extract" else None
    if derived.function == "extract" and always is None and derived.part not in ("year", "isoyear"):
        return scope
    domain: tuple[Value, ...] | None
    if always is not None:
        domain = tuple(range(always[0], always[1] + 1))
    else:
        times = find_time_range(base, scope, said)
        if times is None:
            raise _refuse_open_range(item, base)
        domain = _list_periods(derived, times, item)
    if not domain:
        return scope
    column = Column(
        name=f"{derived.function}({derived.part} {derived.column})".replace("( ", "("),
        sql_type=kind,
        declared=kind.value,
        domain=domain,
        derivation=derived,
        immutable=base.immutable,
        prunable=base.prunable,
        computed=True,
    )
    if any(known.name == column.name for known in scope.table.columns):
        return scope
    if always is None or not has_null_group(base, among, scope, said):
        return replace(scope, table=replace(scope.table, columns=(*scope.table.columns, column)))
    column = replace(column, domain=None, ledger=column.name)
    key = _make_group_column(_write_derivation(derived), group_time_part(column, always), column)
    return replace(scope, table=replace(scope.table, columns=(*scope.table.columns, column, key)))


def _list_periods(derived: Derivation, times: TimeRange, item: exp.Expr) -> tuple[Value, ...]:
    last = times.end - timedelta(microseconds=1)
    if derived.function == "extract":
        return tuple(range(extract_part(derived.part, times.first), extract_part(derived.part, last) + 1))
    part = "day" if derived.function == "date" else derived.part
    if part not in (*DATE_PARTS, "hour") or times.first > last:
        return ()
    least = {"hour": 1 / 24, "day": 1, "week": 7, "month": 28, "quarter": 90, "year": 365}[part]
    size = int((last - times.first).days / least) + 1
    if size > MOST_CUTS:
        raise _refuse_too_many(item, size)
    first = truncate_to_unit(times.first, part)
    if part == "hour":
        return expand_range(first, truncate_to_unit(last, part), "1 hour", SqlType.TIMESTAMP, most=MOST_CUTS)
    step = "3 months" if part == "quarter" else f"1 {part}"
    return expand_range(first.date(), last.date(), step, SqlType.DATE, most=MOST_CUTS)


def _list_names_read(item: exp.Expr, scope: Scope) -> frozenset[str]:
    return frozenset(column.name for column in _list_columns_read([item], scope))


def _list_columns_read(items: Iterable[exp.Expr], scope: Scope) -> tuple[Column, ...]:
    """Return the columns without a list of values that expressions read, unless keys determine what is read."""
    found: dict[str, Column] = {}

    def visit(node: exp.Expr) -> None:
        column = find_column(node, scope)
        if column is not None:
            if column.domain is None:
                found[column.name] = column
        elif read_key_expression(node, scope) is None:
            for child in node.iter_expressions():
                visit(child)

    try:
        for item in items:
            visit(strip_parentheses(item))
    except KeyholeError:
        return ()
    return tuple(found.values())


def _add_parts(scope: Scope, column: Column, items: list[exp.Expr], said: tuple[Condition, ...]) -> Scope:
    """Return the scope with a column for the parts into which expressions cut a column's values."""
    if not column.groupable:
        raise _refuse_ungroupable(items[0], column)
    name = ", ".join(dict.fromkeys(write_node(_spell_columns_alike(item, scope)) for item in items))
    taken = {known.name for known in scope.table.columns}
    while name in taken:
        name += " by value"
    parts = part_by_values(column, scope, said)
    if parts is not None:
        pass
    elif column.sql_type in _NUMBERS:
        parts = _cut_numbers(scope, column, items, said)
    else:
        parts = part_by_conditions(scope, column, [_replace_known_keys(item, scope) for item in items])
    if parts is None and column.sql_type is SqlType.TEXT:
        parts = group_listed_texts(column, said) or group_listed_ends(column, items, scope, said)
    if parts is None and column.sql_type in _TIMES:
        parts = _cut_times(scope, column, items, said)
    if parts is None and column.sql_type is SqlType.DATE:
        parts = _cut_days(scope, column, said, items[0])
    if parts is None:
        return scope
    made = _make_group_column(name, parts, column)
    return replace(scope, table=replace(scope.table, columns=(*scope.table.columns, made)))


def _make_group_column(name: str, parts: ValueGroups, column: Column) -> Column:
    """Return the key whose values number the groups of a column's values."""
    return Column(
        name=name,
        sql_type=SqlType.INTEGER,
        declared="integer",
        domain=_count_groups(len(parts.shown_values)),
        derivation=parts,
        immutable=column.immutable,
        prunable=False,
        ledger=label_parts(parts, column),
        computed=True,
        canonical=identify_parts(parts),
    )


def _replace_known_keys(item: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the expression with its conditions and numbers replaced if they have keys of their own."""
    return replace_numbers(replace_truths(item, scope), scope)


@lru_cache(maxsize=4)
def _count_groups(count: int) -> tuple[int, ...]:
    """Return the numbers of all groups. The tuple is cached, because long ones are keys of other caches."""
    return tuple(range(count))


def _cut_times(scope: Scope, column: Column, items: list[exp.Expr], said: tuple[Condition, ...]) -> ValueGroups | None:
    """Return the parts into which the steps of expressions cut a range of a time, or None if there are no steps."""
    steps = list_steps(column, [_replace_known_keys(item, scope) for item in items], scope)
    if not steps or (column.sql_type is SqlType.DATE and any(one.is_of_clock for one in steps)):
        return None
    times = find_time_range(column, scope, said)
    if times is None:
        raise _refuse_open_range(items[0], column)
    try:
        starts = list_starts(steps, times)
    except TooManyCuts as many:
        raise _refuse_too_many(items[0], many.args[0]) from None
    return group_times(column, starts, times, nullable=not column.required and keeps_null(column, scope, said))


def _cut_days(scope: Scope, column: Column, said: tuple[Condition, ...], item: exp.Expr) -> ValueGroups | None:
    """Return every day of a range as a part.

    Return None if the range is open and the days themselves are not needed.
    """
    times = find_time_range(column, scope, said)
    if times is None and (find_column(item, scope) == column or contains_type(item, exp.Add, exp.Sub)):
        raise _refuse_open_range(item, column)
    days = () if times is None else _list_periods(Derivation("date", "", column.name), times, item)
    if not days or max(days) == date.max:
        return None
    last = max(day for day in days if isinstance(day, date))
    return ValueGroups(
        column=column.name,
        kind=column.sql_type,
        cut_points=(*days, last + timedelta(days=1)),
        groups=(None, *range(len(days)), None),
        null_group=None if column.required else len(days),
        shown_values=days if column.required else (*days, None),
    )


def _cut_numbers(
    scope: Scope, column: Column, items: list[exp.Expr], said: tuple[Condition, ...]
) -> ValueGroups | None:
    low, high = find_number_range(column, said)
    finder = CutFinder(
        name=write_node(scope.make_reference(column)),
        is_whole=column.sql_type is SqlType.INTEGER,
        is_double=column.sql_type is SqlType.DOUBLE,
        low=low,
        high=high,
        unit=find_column_unit(column),
    )
    read: list[exp.Expr] = []
    for item in items:
        named = _spell_columns_alike(_replace_known_keys(item, scope), scope)
        read.append(named)
        try:
            finder.add_cuts(named)
        except NotFinite as part:
            raise _refuse_infinite(item, column, str(part)) from None
        except TooManyCuts as many:
            raise _refuse_too_many(item, many.args[0]) from None
    try:
        return make_number_parts(column, finder, distinct=len(read) == 1 and finder.is_chain(read[0]))
    except TooManyCuts as many:
        raise _refuse_too_many(items[0], many.args[0]) from None


def _spell_columns_alike(item: exp.Expr, scope: Scope) -> exp.Expr:
    """Return the expression with every reference to a column spelled as the scope spells it."""

    def spell(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Column) and (found := find_column(node, scope)) is not None:
            return scope.make_reference(found)
        return node

    copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
    return copied.transform(spell, copy=False)


def _refuse_ungroupable(item: exp.Expr, column: Column) -> KeyholeError:
    return KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail=f"The owner does not allow groups that are computed from {column.name}.",
        hint="Group by declared columns.",
        position=find_position(item),
    )


def _refuse_changing(item: exp.Expr) -> KeyholeError:
    written = write_node(_fix_clock(item))
    return KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail="Its groups would change from day to day.",
        hint=f"Write the day: GROUP BY {written}." if len(written) < _LONGEST_HINT else "Write the day as a constant.",
        position=find_position(item),
    )


def _fix_clock(item: exp.Expr) -> exp.Expr:
    """Return the expression with a constant day in the place of the clock."""
    day = exp.Cast(this=exp.Literal.string("2026-01-01"), to=exp.DataType(this=exp.DType.DATE))

    def settle(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.CurrentDate | exp.CurrentTimestamp | exp.Localtimestamp):
            return day.copy()
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "age" and len(node.expressions) == 1:
            return exp.Anonymous(this="age", expressions=[day.copy(), node.expressions[0]])
        return node

    copied: exp.Expr = exp.Tuple(expressions=[item.copy()]).expressions[0]
    return copied.transform(settle, copy=False)


def _refuse_infinite(item: exp.Expr, column: Column, part: str) -> KeyholeError:
    named = spell_name(column.name)
    return KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail=f"Nothing public says which values {part} has: not the bounds of {column.name}, nor WHERE."
        if column.bounds is None
        else f"Keyhole cannot list the values of {part}. It lists the values of conditions, and of sums, differences, "
        "products and roundings of exact numbers with bounds.",
        hint=f"Group by a condition on {named}, or restrict it in WHERE from both sides and group by steps of it."
        if column.bounds is None
        else f"Group by a condition on {named}, or by steps of it: floor({named} / {_suggest_step(column.bounds)}).",
        position=find_position(item),
    )


def _suggest_step(bounds: tuple[Decimal, Decimal]) -> str:
    """Return the least round step that cuts the declared bounds into at most ten parts."""
    width = max(bounds[1] - bounds[0], Decimal(1)) / 10
    scale = Decimal(10) ** width.adjusted()
    return f"{next(one * scale for one in (1, 2, 5, 10) if one * scale >= width).normalize():f}"


def _refuse_open_range(item: exp.Expr, column: Column) -> KeyholeError:
    named = spell_name(column.name)
    return KeyholeError(
        "KH202",
        f"{write_short(item)} is not a column with a public domain",
        detail=f"Nothing public says over which time it runs: WHERE does not restrict {column.name}, and no key does.",
        hint=f"Restrict it: WHERE {named} >= '2026-01-01' AND {named} < '2027-01-01'.",
        position=find_position(item),
    )


def _refuse_too_many(item: exp.Expr, size: int) -> KeyholeError:
    return KeyholeError(
        "KH202",
        f"{write_short(item)} has {size:,} values",
        detail=f"A question makes at most {MOST_CUTS:,} equal steps of an integer, of a numeric of declared "
        f"decimals or of a time, and at most {MOST_STEPS:,} others.",
        hint="Group by wider steps, or restrict the column in WHERE.",
        position=find_position(item),
    )
