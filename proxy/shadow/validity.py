"""The check that the shadow can show a catalog, used by `keyhole check`, `keyhole serve` and reloads.

Guarantee: the shadow's PostgreSQL accepts every catalog in which no fault is found, except for the SQL of stored
questions (`proxy/shadow/schema.py`). The check needs no running shadow.
"""

from collections.abc import Iterator

from planner.catalog.catalog import Catalog
from planner.catalog.fault import Fault, Faults
from planner.errors import KeyholeError
from planner.extract.extract import declare_monitor
from planner.extract.virtual_relations import VIRTUAL_SCHEMA
from planner.policy.policy_refusals import write_dotted_key
from proxy.shadow.address import OWNER

GROUP = "keyhole_analyst"
"""The role that all analysts are in, and that nobody can become."""
MOST_COLUMNS = 1600  # of a relation of PostgreSQL
_LONGEST_NAME = 63  # bytes of an identifier
_RESERVED = frozenset({OWNER, GROUP, VIRTUAL_SCHEMA, "public", "none"})
_OF_EACH_ROW = frozenset({"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"})  # columns that PostgreSQL adds itself
_TEMPLATES = frozenset({"template0", "template1"})  # databases that new ones are copied from


def check_showable(catalog: Catalog) -> None:
    """Refuse a catalog that the shadow cannot show. Raise KH002 and KH006, with the policy key of the fault."""
    for place, fault in find_faults(catalog):
        raise KeyholeError(fault.code, f"{write_dotted_key(place)}: {fault.problem}", hint=fault.hint)


def find_faults(catalog: Catalog) -> Faults:
    """Yield the faults for which PostgreSQL would refuse a catalog, each with its dotted key in the policy."""
    if catalog.database in _TEMPLATES:
        hint = "Choose another name for the database that clients connect to."
        yield ("server", "database"), Fault("KH002", "is a database of PostgreSQL's own", hint=hint)
    for analyst in catalog.analysts:
        if _is_forbidden_role(analyst.name):
            hint = "Choose another name: it is also the name of a role in the shadow database."
            problem = f'"{analyst.name}" cannot be the name of an analyst'
            yield ("analysts", analyst.name), Fault("KH002", problem, hint=hint)
    for table in catalog.tables:
        shown = [column.name for column in table.columns]
        yield from _find_column_faults(table.name, shown, bands=len(table.band_columns))
    for public in catalog.public_tables:
        yield from _find_column_faults(public.name, [column.name for column in public.columns], bands=0)
    yield from _find_monitor_faults(catalog)


def _is_forbidden_role(name: str) -> bool:
    cut = len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME
    return name in _RESERVED or name.startswith("pg_") or not name or "\0" in name or cut


def _find_column_faults(table: str, names: list[str], *, bands: int) -> Faults:
    hint = "Expose a view of the source that gives the column another name."
    for name in names:
        problem = next(_describe_bad_name(name), None)
        if problem is not None:
            yield ("tables", table, "columns", name), Fault("KH006", problem, hint=hint)
    if len(names) + bands > MOST_COLUMNS:
        problem = f"would show {len(names) + bands:,} columns, and PostgreSQL has {MOST_COLUMNS:,} at most"
        fewer = "Expose fewer columns, or a view of the source with those that are asked about."
        yield ("tables", table), Fault("KH006", problem, hint=fewer)


def _describe_bad_name(name: str) -> Iterator[str]:
    if not name or "\0" in name:
        yield "has a name that PostgreSQL cannot write"
    if len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME:
        yield f"has a name of more than {_LONGEST_NAME} bytes, which PostgreSQL would cut"
    if name in _OF_EACH_ROW:
        yield "has the name of a column that PostgreSQL adds to each table"


def _find_monitor_faults(catalog: Catalog) -> Faults:
    for monitor in catalog.monitors:
        try:
            declare_monitor(monitor, catalog)
        except KeyholeError as error:
            hint = "Mend it; keyhole check says what else is wrong with monitors."
            yield ("monitors", monitor.name, "sql"), Fault("KH002", error.message, hint=hint)
