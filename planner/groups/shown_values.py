"""SQL that gives each answered group one value inside it, from which PostgreSQL computes what is shown."""

from collections.abc import Sequence
from decimal import Decimal

from planner.catalog.catalog import Column, MergedKeys, Table, Value, ValueGroups
from planner.catalog.key_space import format_value
from planner.catalog.steps import StepSamples
from planner.parser.lexer import quote_identifier
from planner.scope.number_keys import find_shown_type, is_number_key, name_number
from planner.scope.truth_keys import is_truth_key, name_value


def wrap_answer(keys: tuple[Column, ...], table: Table) -> tuple[str, str]:
    """Return SQL to put before and after the relation of answered keys.

    The SQL adds a column for each column that was divided into numbered groups. It holds one value inside the group,
    from which PostgreSQL computes the shown expressions.
    """
    own = {key.name for key in keys}
    shown: dict[str, str] = {}
    for key in keys:
        match key.derivation:
            case ValueGroups() as parts:
                shown |= _write_values(key, table.get_column(parts.column), parts.shown_values)
            case MergedKeys() as merged:
                for place, name in enumerate(merged.columns):
                    inner, values = table.get_column(name), [one[place] for one in merged.shown_values]
                    if isinstance(inner.derivation, ValueGroups):
                        base, lying = table.get_column(inner.derivation.column), inner.derivation.shown_values
                        held = [lying[int(str(value))] for value in values]
                        shown |= _write_values(key, base, held, inner)
                    elif name not in own:
                        shown |= _write_values(key, inner, values)
    columns = "".join(f", {value}" for name, value in shown.items() if name not in own)
    return (f"(SELECT answered.*{columns} FROM ", " AS answered)") if columns else ("", "")


def _write_values(
    key: Column, base: Column, values: Sequence[Value | None], parted: Column | None = None
) -> dict[str, str]:
    parted = parted or key
    declared, called = base.declared, base.name
    if is_truth_key(parted):
        declared, called = "boolean", name_value(parted)
    elif is_number_key(parted):
        declared, called = find_shown_type(parted), name_number(parted)
    named = quote_identifier(called)
    if isinstance(values, StepSamples):
        return {
            called: f"{_write_stepped_value(f'answered.{quote_identifier(key.name)}', values, declared)} AS {named}"
        }
    written = ", ".join("NULL" if value is None else _quote(format_value(value)) for value in values)
    found = f"(ARRAY[{written}]::text[])[answered.{quote_identifier(key.name)} + 1]"
    return {called: f"{found}::{declared} AS {named}"}


def _write_stepped_value(number: str, values: StepSamples, declared: str) -> str:
    """Return SQL that computes the value shown for a group number.

    A list of that many values would take seconds to read.
    """
    steps = values.steps
    arms = [f"WHEN {number} = {len(values) - 1} THEN NULL"] if values.has_null else []
    first = int(values.has_below)
    if values.has_below:
        arms.append(f"WHEN {number} = 0 THEN {steps.runs[0].first - 1}")
    for run in steps.runs:
        arms.append(f"WHEN {number} < {first + run.count} THEN {run.first} + {run.step}::bigint * ({number} - {first})")
        first += run.count
    unit = "" if steps.scale is None else f" * {format_value(Decimal(1).scaleb(-steps.scale))}"
    return f"((CASE {' '.join(arms)} END){unit})::{declared}"


def _quote(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
