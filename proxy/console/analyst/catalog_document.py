"""The catalog as JSON for pages: tables, keys, measures and suggested thresholds. Only the catalog is read."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import islice
from typing import Any

from planner.bind.lookup_columns import NotUnique, read_unique_values
from planner.catalog.catalog import Bands, Catalog, Column, PublicTable, SqlType, StoredQuestion, Table
from planner.catalog.key_space import format_value
from planner.parser.lexer import spell_name

SHOWN_VALUES = 12  # of a key, beside its table: enough to see what they are like
_NUMBERS = (SqlType.INTEGER, SqlType.NUMERIC, SqlType.DOUBLE)
_COMPARED = (SqlType.TEXT, SqlType.INTEGER, SqlType.DATE, SqlType.UUID)  # types that public rows are found by
MOST_ROWS_READ = 100_000  # of a public table for a page: its columns are read once, in a tenth of a second
MOST_VALUES = 10_000  # of a key that a picture needs: as many as `keyhole.domains` lists


def make_catalog_document(catalog: Catalog) -> dict[str, Any]:
    """Return the catalog and the default accuracy as JSON for pages."""
    usual = catalog.defaults
    return {
        "tables": [
            _describe_table(table) | {"lookups": _propose_lookups(table, catalog.public_tables)}
            for table in catalog.tables
        ],
        "public": [_describe_public_table(one) for one in catalog.public_tables],
        "stored": [_describe_stored_question(one) for one in catalog.stored_questions],
        "usual": {
            "fnr": usual.fnr,
            "fpr": usual.fpr,
            "tolerance": usual.tolerance,
            "min_rows": usual.min_rows,
            "mechanism": usual.mechanism,
            "numbers": usual.numbers,
        },
        "mechanisms": list(usual.mechanisms),
    }


def list_key_values(catalog: Catalog, table: str, column: str) -> list[str] | None:
    """Return a key's public values in order.

    Return None if the table has no such key, or if the key has too many values.
    """
    found = catalog.find_table(table)
    known = None if found is None else next((one for one in found.columns if one.name == column), None)
    if known is None or known.domain is None or len(known.domain) > MOST_VALUES:
        return None
    return [format_value(value) for value in known.domain]


def _describe_table(table: Table) -> dict[str, Any]:
    keys = [column for column in table.columns if column.domain is not None]
    measures = [column for column in table.columns if column.bounds is not None]
    others = [column for column in table.columns if column.domain is None and column.bounds is None]
    return {
        "name": table.name,
        "sql": spell_name(table.name),
        "comment": table.comment,
        "unit": table.unit_text,
        "unit_columns": [{"name": name, "sql": spell_name(name)} for name in table.unit],
        "bands": {bands.aggregate: _describe_numbers(bands.thresholds) for bands in table.bands},
        "keys": [_describe_key(column) for column in keys],
        "measures": [_describe_measure(column) for column in measures],
        "others": [_describe_column(column) for column in others],
    }


def _describe_public_table(table: PublicTable) -> dict[str, Any]:
    """Return a public table for the page.

    `by` are the columns by which a row can be looked up. Their values are all different and not NULL.
    """
    return {
        "name": table.name,
        "sql": spell_name(table.name),
        "comment": table.comment,
        "rows": len(table.rows),
        "by": [column.name for column in _list_lookup_columns(table)],
        "columns": [{**_describe_column(column), "number": column.sql_type in _NUMBERS} for column in table.columns],
    }


def _propose_lookups(table: Table, public: Iterable[PublicTable]) -> dict[str, dict[str, str]]:
    """Return, for each public table, the private column that most likely refers to its rows.

    Both columns have the same type. A column of the same name is preferred, and next one whose public values all occur
    in the public table.
    """
    proposed = {}
    for one in public:
        pairs = [
            (key, base)
            for key in _list_lookup_columns(one)
            for base in _sort_columns(table)
            if base.sql_type is key.sql_type
        ]
        if pairs:
            key, base = min(pairs, key=lambda pair: (pair[0].name != pair[1].name, not _are_all_found(one, *pair)))
            proposed[one.name] = {"key": key.name, "base": base.name}
    return proposed


def _sort_columns(table: Table) -> list[Column]:
    """Return the table's columns, keys first."""
    return sorted(table.columns, key=lambda column: column.domain is None)


def _list_lookup_columns(table: PublicTable) -> list[Column]:
    return [column for column in table.columns if _is_unique(table, column)]


def _are_all_found(public: PublicTable, key: Column, base: Column) -> bool:
    """Return True if each public value of a column occurs in a key of a public table.

    Return False if there are too many.
    """
    if base.domain is None or max(len(base.domain), len(public.rows)) > MOST_VALUES:
        return False
    return set(base.domain) <= set(read_unique_values(public, key.name))


def _is_unique(table: PublicTable, column: Column) -> bool:
    """Return True if no two rows share a column's value. For a large table, only the source's constraints decide."""
    if column.sql_type not in _COMPARED:
        return False
    if len(table.rows) > MOST_ROWS_READ:
        return column.name in table.unique and column.name in table.not_null_columns
    try:
        return bool(read_unique_values(table, column.name))
    except NotUnique:
        return False


def _describe_column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "sql": spell_name(column.name),
        "type": column.declared,
        "kind": column.sql_type.value,
        "comment": column.comment,
    }


def _describe_key(column: Column) -> dict[str, Any]:
    domain = column.domain or ()
    shown = [format_value(value) for value in islice(domain, SHOWN_VALUES)]
    return {**_describe_column(column), "values": len(domain), "shown": shown}


def _describe_measure(column: Column) -> dict[str, Any]:
    low, high = column.bounds or (Decimal(0), Decimal(0))
    return {
        **_describe_column(column),
        "bounds": _describe_numbers((low, high)),
        "bands": _describe_bands(column.bands),
    }


def _describe_bands(bands: Iterable[Bands]) -> dict[str, list[str]]:
    return {one.aggregate: _describe_numbers(one.thresholds) for one in bands}


def _describe_numbers(numbers: Iterable[Decimal]) -> list[str]:
    return [f"{number:f}" for number in numbers]


def _describe_stored_question(one: StoredQuestion) -> dict[str, Any]:
    parameters = [{"name": each.name, "default": format_value(each.default)} for each in one.parameters]
    return {"name": one.name, "sql": one.sql.strip(), "comment": one.comment, "parameters": parameters}
