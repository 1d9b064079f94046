"""`keyhole init`: a starter policy from the source's schema, never from its data."""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path, PurePath

from planner.catalog.model import LONGEST_TEXT, SqlType
from planner.catalog.sql_types import SourceColumn, has_time_zone, sql_type, text_limit
from planner.policy.compile import relation
from planner.policy.rules.names import FILES, NAME_PART
from planner.policy.sections import TableSection
from proxy.sources.open import open_source

BLANK = "FILL IN"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):([^@/]*)@")
_NAME = re.compile(r"[^a-z0-9_]+")

_HEAD = f"""\
# A starter policy for Keyhole, written from the schema alone. Nothing is exposed until you say so.
# Fill in every line marked {BLANK}, uncomment the columns that analysts may use, then run: keyhole check
# docs/policy.md describes every key.

[source]
url = %s

[ledger]
url = "sqlite:///keyhole.db"

[accuracy]
fnr = 0.05          # a group that qualifies is missed at most this often
fpr = 0.10          # a group that stays below, even with the tolerance as slack, is returned at most this often
tolerance = "10%%"   # of each threshold

[budget]
epsilon_per_predicate = 4.0   # what all answers about one group may tell about one unit in it
epsilon_per_unit = 8.0        # what all answers together may cost one unit
epsilon_per_query = 2.0       # what one question may cost at most

# [analysts.somebody]
# password = "SCRAM-SHA-256$..."   # from keyhole passwd
"""


def starter_policy(schema: Mapping[str, Sequence[SourceColumn]], url: str) -> str:
    """The text of a conservative policy: every table and column listed, none exposed, every choice left to the owner.

    A password in `url` is replaced by `${KEYHOLE_SOURCE_PASSWORD}`.
    """
    safe = _PASSWORD.sub(r"\1:${KEYHOLE_SOURCE_PASSWORD}@", url)
    parts = [_HEAD % _quote(safe)]
    taken: set[str] = set()
    for named, columns in sorted(schema.items()):
        name = _free(_plain(named), taken)
        taken.add(name)
        parts.append(_table(name, named, columns))
    return "\n".join(parts)


def _free(name: str, taken: set[str]) -> str:
    return next(free for free in chain([name], (f"{name}_{number}" for number in count(2))) if free not in taken)


def from_source(url: str, *, directory: Path) -> str:
    """The starter policy for a source's URL, or for one .parquet or .csv file below `directory`.

    Raises KH006 and KH008.
    """
    file = PurePath(url)
    if file.suffix.lower() in FILES and "://" not in url:
        source = open_source("duckdb://", directory=(directory / file).parent)
        name = relation("", TableSection(relation=url), directory=directory)
        schema = {url: source.schema(name)}
        url = "duckdb://"
    else:
        source = open_source(url, directory=directory)
        schema = {_strip_quotes(name): source.schema(name) for name in source.relations()}
    source.close()
    return starter_policy(schema, url)


def _strip_quotes(named: str) -> str:
    parts = NAME_PART.findall(named)
    return ".".join(part[1:-1] if re.fullmatch(r'"\w+"', part) else part for part in parts)


def _table(name: str, named: str, columns: Sequence[SourceColumn]) -> str:
    lines = [f"[tables.{name}]"]
    if name != named:
        lines.append(f"relation = {_quote(named)}")
    lines += [
        f'privacy_unit = ""           # {BLANK}: who is protected: a column that names a person, several, or "row"',
        f"# max_groups_per_unit = 1   # {BLANK} unless each row is its own unit: groups a unit may count in",
        f"# rows_per_unit = 20        # {BLANK} unless each row is its own unit: its rows per group",
        f'refresh = ""                # {BLANK}: when its rows change: "live": at any time, nothing is used twice;',
        '                            # "static": never, and you vouch; "explicit": when you run keyhole refresh;',
        '                            # "hourly", "daily 02:00" (UTC): then and at no other time',
        "# public = true             # instead of all of the above, if every analyst may see every row",
    ]
    for column in columns:
        lines += ["", *_column(name, column)]
    return "\n".join(lines) + "\n"


def _column(table: str, column: SourceColumn) -> tuple[str, ...]:
    header = f"# [tables.{table}.columns.{_key(column.name)}]   # {' '.join(column.declared.split())}"
    kind = sql_type(column.declared)
    if has_time_zone(column.declared):
        return (f"{header}: expose it from a view as ({_key(column.name)} AT TIME ZONE 'UTC')",)
    match kind:
        case SqlType.TEXT:
            length = f"# max_length = {text_limit(column.declared) or LONGEST_TEXT}"
            return (
                header,
                '# key = { values = ["..."] }   # the public list of groups; without it, filters only',
                f"{length:31}# so many characters count; fewer allow more LIKE patterns",
            )
        case SqlType.INTEGER | SqlType.NUMERIC | SqlType.DOUBLE:
            return (
                header,
                "# bounds = [0, 100]            # every value is clipped to this; from what is publicly known",
                "# grid = 1                     # and rounded to this",
                "# per_unit = [0, 500]          # a unit's total per group is clipped to this",
            )
        case SqlType.DATE:
            return header, '# key = { range = ["2026-01-01", "2026-12-31"], step = "1 day" }'
        case SqlType.TIMESTAMP:
            month = _key(f"{column.name}_month")
            return (
                header,
                f"# [tables.{table}.columns.{month}]",
                f"# expression = {_quote(_truncate_to_month(column.name))}",
                '# key = { range = ["2026-01-01", "2026-12-01"], step = "1 month" }',
            )
        case SqlType.BOOLEAN:
            return header, "# key = { values = [true, false] }"
        case SqlType.UUID:
            return (header,)
        case _:
            return (f"{header}: usable in nothing",)


def _truncate_to_month(column: str) -> str:
    name = column if re.fullmatch(r"[a-z_][a-z0-9_]*", column) else '"' + column.replace('"', '""') + '"'
    return f"date_trunc('month', {name})"


def _plain(named: str) -> str:
    """A table name that clients can use plainly, from the source's own name."""
    file = PurePath(named)
    last = file.stem if file.suffix.lower() in FILES else NAME_PART.findall(named)[-1]
    name = _NAME.sub("_", last.lower()).strip("_")[:60] or "data"
    return name if name[0].isalpha() else f"t_{name}"


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote(name)


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
