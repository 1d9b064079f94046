"""The data of `keyhole play --policy`: the counts of one private table by two of its keys, for the owner alone.

The counts are those of a question, with its bounds and over its public key domains, but without noise. Nothing is
charged, since nothing is released: a caller may show them to the owner only.
"""

from datetime import UTC, datetime
from pathlib import Path

from planner.bind.bind_question import bind_question
from planner.catalog.catalog import Catalog, Table
from planner.catalog.key_space import KeySpace, format_value
from planner.functionals.unit_rows import make_existence
from planner.parser.lexer import quote_identifier
from planner.policy.file import Policy
from planner.statements import settings
from proxy.owner.mistyped import Mistyped
from proxy.owner.risk.private import open_owner_source
from proxy.pipeline.messages import read_bare_question
from proxy.play.own_streams import MOST_PLACES, MOST_TIMES, OwnStreams

_FAR = 1_000_000  # a threshold for which any accuracy can be had; nothing is compared with it


def read_streams(policy_path: Path, *, table: str, place: str, time: str) -> OwnStreams:
    """Return the true counts of a private table, grouped by two of its keys.

    Raises:
        Mistyped: if the policy does not have the table or a key, or the counts are too many for a page.
        KeyholeError: KH001 to KH010 if the policy or its source is at fault, KH501 if reading fails.
    """
    with open_owner_source(Policy.load(policy_path)) as reading:
        catalog = reading.catalog
        found = _find_table(catalog, table)
        _check_key(found, "place", place)
        _check_key(found, "time", time)
        if place == time:
            raise Mistyped("time", f'"{time}" is the place already')
        keys = _write_names((place, time))
        sql = f"SELECT {keys} FROM {quote_identifier(table)} GROUP BY {keys} HAVING count(*) > {_FAR}"
        asked = bind_question(
            read_bare_question(sql, catalog),
            catalog,
            accuracy=settings.read_accuracy({}, catalog.defaults),
            parameters={},
            today=datetime.now(UTC).date(),
            is_utc=True,
        )
        _check_fits_page(asked.keys)
        functional = asked.functionals[0]
        (counts,) = reading.count(asked, [functional if found.is_row_unit else make_existence(functional.terms[0])])
        places, times = (tuple(map(format_value, values)) for values in asked.keys.values)
        return OwnStreams(
            table=table,
            counted="rows" if found.is_row_unit else f"units ({', '.join(found.unit)})",
            groups=None if found.is_row_unit else asked.table.groups_per_unit,
            place=place,
            time=time,
            places=places,
            times=times,
            counts=counts.reshape(asked.keys.shape),
        )


def _find_table(catalog: Catalog, name: str) -> Table:
    found = next((table for table in catalog.tables if table.name == name), None)
    if found is None:
        known = ", ".join(table.name for table in catalog.tables)
        raise Mistyped("table", f'the policy has no private table "{name}"; there are: {known}')
    return found


def _check_key(table: Table, option: str, name: str) -> None:
    keys = [column.name for column in table.columns if column.domain is not None]
    if name not in keys:
        raise Mistyped(option, f'"{name}" is no key of {table.name}; there are: {", ".join(keys)}')


def _check_fits_page(keys: KeySpace) -> None:
    for option, size, most in zip(("place", "time"), keys.shape, (MOST_PLACES, MOST_TIMES), strict=True):
        if size > most:
            raise Mistyped(option, f"the key has {size:,} values, and the page holds {most:,}")


def _write_names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))
