"""The policy of one table `visits` whose columns and bounds of a privacy unit a test draws."""

from planner.catalog.catalog import Analyst, Budget, Catalog, Column, Defaults, RowCap, Table


def make_visits_catalog(
    columns: tuple[Column, ...], *, name: str, groups: int, rows: int, is_capped: bool, timeout_ms: int
) -> Catalog:
    """Return a policy whose budget no question exceeds.

    Parameters:
        name: the database, from which the table's seed follows.
        groups: the most groups of a unit, a `person`. 0: the row is the unit.
        rows: the most rows of a unit. If it `is_capped`, rows are chosen by `id`, else totals are clipped.
    """
    has_units = groups > 0
    table = Table(
        name="visits",
        relation="visits",
        columns=columns,
        unit=("person",) if has_units else (),
        groups_per_unit=max(1, groups),
        rows_per_unit=rows if has_units and not is_capped else None,
        row_cap=RowCap(rows=rows, unique="id") if has_units and is_capped else None,
        refresh="static",
        seed=name,
    )
    return Catalog(
        tables=(table,),
        public_tables=(),
        stored_questions=(),
        analysts=(Analyst("demo", "SCRAM-SHA-256$4096:c2FsdA==$a:b", None, None, None),),
        defaults=Defaults(fnr=0.05, fpr=0.10, tolerance="10", min_rows=1, mechanism="keyhole"),
        budget=Budget(per_predicate=1e6, per_unit=1e6, per_query=1e6),
        database=name,
        max_keys=1000,
        statement_timeout_ms=timeout_ms,
        digest="0" * 64,
    )
