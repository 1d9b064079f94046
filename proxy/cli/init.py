"""The writer of `keyhole init`: a starter policy from the source's schema, never from its data."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain, count
from pathlib import Path, PurePath
from types import MappingProxyType

from planner.catalog.catalog import LONGEST_TEXT, SqlType
from planner.catalog.fault import Fault
from planner.catalog.refresh import parse_refresh
from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn, has_time_zone, read_sql_type, read_text_limit
from planner.errors import KeyholeError
from planner.policy.identifiers import SMALL_INTEGERS, is_identifier
from planner.policy.key_steps import KeyStep, SourceTable
from planner.policy.policy_refusals import BLANK
from planner.policy.proposed_units import ProposedUnit, propose_units
from planner.policy.relation_names import FILE_ENDINGS, NAME_PART, SPARK_PART, find_relation_fault, write_relation
from planner.policy.sections import SourceKind, SourceSection, TableSection
from proxy.cli.presets import GROUPS, Purpose, Unit, choose_preset, compute_posterior
from proxy.sources.open import SparkLogin, open_source
from proxy.sources.spark.spark_refusals import report_empty_catalog

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_TOKEN = re.compile(r";token=[^;]*", re.IGNORECASE)
_VARIABLE = "KEYHOLE_SOURCE_TOKEN"
_PASSWORD = re.compile(r"(?<=://)([^:/@]*):([^@/]*)@")
_NAME = re.compile(r"[^a-z0-9_]+")
# Names of yes and no, and of numbers that are few and name groups rather than add up.
_FLAG = re.compile(r"(is|has|was)_.+|.+_(flag|yn|ind)")
_FEW = re.compile(
    r"(.+_)?(year|quarter|month|week|day|dow|weekday|day_of_week|hour|level|grade|rating|class|status|type|kind|"
    r"category|stage|rank|floor|age_group|band|bin|decile|segment|group|version)(_(no|nr|num|number))?"
)

_HEAD = f"""\
# A starter policy for Keyhole, written from the schema alone. Nothing is exposed until you say so.
# Fill in everything that says "{BLANK}", uncomment the columns that analysts may use, then run: keyhole check
# docs/policy.md describes every key.

[source]
%s
[ledger]
url = "sqlite:///keyhole.db"

[accuracy]
fnr = 0.05          # a group that qualifies is missed at most this often
fpr = 0.10          # a group that stays below, even with the tolerance as slack, is returned at most this often
tolerance = "%d%%"   # of each threshold: twice as much costs half

# What answers may tell on one data version. Losses add up; beside each cap stands how far anybody's guess that a
# certain %s is there, 1 %% beforehand, can rise at most. Of questions like count(*) > 500 at this tolerance,
# %s, at least 30 fit; for others: keyhole simulate "SELECT ..." --units 20000
[budget]
"""

_MANY = """\
# A person in many groups of an answer, such as weeks? Then several times as many questions fit with
# %-27s # the cap on a person holds but for one chance in a billion
# and epsilon_per_query at most %g: dearer questions gain nothing by it.
"""

_TAIL = """
# [analysts.somebody]
# password = "SCRAM-SHA-256$..."   # from keyhole passwd
"""


def write_starter_policy(
    schema: Mapping[str, Sequence[SourceColumn]],
    url: str,
    *,
    unit: Unit | None = None,
    purpose: Purpose = Purpose.DASHBOARD,
    known: Mapping[str, RelationIdentity] = MappingProxyType({}),
    spark: Sequence[str] = (),
    refresh: str | None = None,
) -> str:
    """Return the text of a conservative starter policy.

    Every table and column is listed, none is exposed, and every choice is left to the owner. A password in `url` is
    replaced by `${KEYHOLE_SOURCE_PASSWORD}`; a token is left out.

    Parameters:
        unit: who is protected; None if the owner has yet to say.
        known: by table, facts from the source's catalogue: the unique columns that number rows rather than people, and
            the foreign keys to tables that may name people.
        spark: the lines of `[source]` besides the address.
        refresh: when rows of all tables change; None if the owner has yet to say.

    Raises KH002 for an invalid `refresh`.
    """
    safe = _TOKEN.sub("", _PASSWORD.sub(r"\1:${KEYHOLE_SOURCE_PASSWORD}@", url))
    parts = [_write_policy_head(safe, spark, unit or Unit.PERSON, purpose)]
    names: dict[str, str] = {}
    for named in sorted(schema):
        names[named] = _find_free_name(_simplify_name(named), set(names.values()))
    tables = _read_tables(schema, names, known)
    changes = _REFRESH if refresh is None else _write_refresh(refresh)
    proposed = propose_units(tables)
    for named, name in names.items():
        parts.append(_write_table(name, named, tables[name], unit, proposed[name], changes))
    return "\n".join(parts)


def _read_tables(
    schema: Mapping[str, Sequence[SourceColumn]], names: Mapping[str, str], known: Mapping[str, RelationIdentity]
) -> dict[str, SourceTable]:
    """Return the tables under their names in the policy, with the foreign keys that lead to one of these."""
    called = {known[named].name: name for named, name in names.items() if named in known}
    found = {}
    for named, name in names.items():
        identity = known.get(named)
        leading = [key for key in (identity.foreign_keys if identity is not None else ()) if key.relation in called]
        keys = tuple(replace(key, relation=called[key.relation]) for key in leading if called[key.relation] != name)
        found[name] = SourceTable(tuple(schema[named]), identity, keys)
    return found


def _write_policy_head(url: str, spark: Sequence[str], unit: Unit, purpose: Purpose) -> str:
    chosen = choose_preset(unit, purpose)
    told = f"with a person in {GROUPS} groups of an answer" if unit is Unit.PERSON else "where each is in one group"
    caps = [
        (
            "epsilon_per_predicate",
            chosen.per_predicate,
            f"all answers about one group: {_describe_belief(chosen.per_predicate)}",
        )
    ]
    if unit is not Unit.ROW:
        caps.append(("epsilon_per_unit", chosen.per_unit, f"all answers together: {_describe_belief(chosen.per_unit)}"))
    caps.append(
        ("epsilon_per_query", chosen.per_query, f"one question, for a group: {_describe_belief(chosen.per_query)}")
    )
    lines = "".join(f"{f'{key} = {epsilon}':29} # {comment}\n" for key, epsilon, comment in caps)
    many = (
        ""
        if chosen.many_groups is None
        else _MANY % (f"delta = {chosen.many_groups.delta:g}", chosen.many_groups.per_query)
    )
    source = "".join(f"{line}\n" for line in (f"url = {_quote_text(url)}", *spark))
    return _HEAD % (source, chosen.tolerance, unit, told) + lines + many + _TAIL


def _describe_belief(epsilon: float) -> str:
    return f"to {100 * compute_posterior(epsilon):.0f} %"


def _find_free_name(name: str, taken: set[str]) -> str:
    return next(free for free in chain([name], (f"{name}_{number}" for number in count(2))) if free not in taken)


def write_policy_from_source(
    *sources: str,
    directory: Path,
    unit: Unit | None = None,
    purpose: Purpose = Purpose.DASHBOARD,
    tables: Sequence[str] = (),
    refresh: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> str:
    """Return the starter policy for a source's URL, or for .parquet and .csv files in `directory` or below.

    Parameters:
        tables: the relations to list, as `relation` in a policy names them; empty for all of the source.
        refresh: when rows of all tables change, as a policy says it.
        environment: the variables in which the token for a Spark server is looked up.

    Raises KH002, KH006 and KH008.
    """
    url, opened = sources[0], directory
    if all(_is_file(source) for source in sources):
        url, tables = "duckdb://", (*sources, *tables)
        opened = Path(os.path.commonpath([(directory / source).resolve().parent for source in sources]))
    elif len(sources) > 1:
        raise _refuse_several_sources(sources)
    kind = SourceSection(url=url).kind
    named = {text: _name_relation(text, kind, directory) for text in tables}
    token = environment.get(_VARIABLE)
    with closing(open_source(url, directory=opened, spark=SparkLogin(token=token))) as source:
        names = named or {_strip_quotes(name): name for name in source.list_relations()}
        if kind == "spark" and not names:
            raise report_empty_catalog()
        schema = {shown: source.read_schema(name) for shown, name in names.items()}
        known = {shown: source.identify(name) for shown, name in names.items()}
        has_token = token is not None or _TOKEN.search(url) is not None
        spark = _write_spark_lines(source.dialect.name, has_token=has_token) if kind == "spark" else ()
    return write_starter_policy(schema, url, unit=unit, purpose=purpose, known=known, spark=spark, refresh=refresh)


def _refuse_several_sources(sources: Sequence[str]) -> KeyholeError:
    """Return the error for several --source options that are not all files."""
    return KeyholeError(
        "KH002",
        f"--source is given {len(sources)} times, and a policy has one source",
        detail="Several .parquet and .csv files are one source. Each database is one by itself.",
        hint="Run keyhole init for each source, and write a policy for each. A file beside a DuckDB database is "
        "--table FILE.",
    )


def _is_file(source: str) -> bool:
    return PurePath(source).suffix.lower() in FILE_ENDINGS and "://" not in source


def _name_relation(text: str, kind: SourceKind, directory: Path) -> str:
    fault = find_relation_fault(text, kind=kind)
    if fault is not None:
        raise KeyholeError(fault.code, f"--table {text} {fault.problem}", hint=fault.hint)
    return write_relation("", TableSection(relation=text), directory=directory, kind=kind)


def _write_spark_lines(engine: str, *, has_token: bool) -> tuple[str, ...]:
    return (
        f"engine = {_quote_text(engine)}",
        *([f'token = "${{{_VARIABLE}}}"'] if has_token else []),
        *(["skip_blocks = true   # as Sail does whatever it is told; docs/policy.md"] if engine == "sail" else []),
    )


def _strip_quotes(named: str) -> str:
    parts = NAME_PART.findall(named)
    return ".".join(part[1:-1] if re.fullmatch(r'"\w+"', part) else part for part in parts)


def _write_path(step: KeyStep) -> str:
    """Return a path as the policy writes it."""
    through = [f"{step.table}.{column}" for column in step.reached_columns]
    written = [_quote_text(ends[0]) if len(ends) == 1 else json.dumps(ends) for ends in (through, list(step.columns))]
    return "{{ through = {}, by = {} }}".format(*written)


def _describe_ground(step: KeyStep) -> str:
    """Return the reason why a path is proposed."""
    if step.is_declared:
        return f"by the foreign key to {step.table}"
    return f"by names alone: nothing proves that its keys are those of {step.table}"


def _write_table(
    name: str,
    named: str,
    table: SourceTable,
    unit: Unit | None,
    proposed: ProposedUnit,
    changes: Sequence[str],
) -> str:
    lines = [f"[tables.{name}]"]
    if name != named:
        lines.append(f"relation = {_quote_text(named)}")
    if PurePath(named).suffix.lower() == ".csv":
        lines += [
            "# Types are guessed from the file's first rows, once: keyhole check pins them. Say otherwise with",
            '# type = "numeric(10,2)" below a column. A value that does not convert counts as NULL.',
        ]
    day = next((column for column in table.columns if _has_days(column)), None)
    if proposed.is_lookup and unit is not Unit.ROW:
        lines += [
            f'public = "{BLANK}"          # true if every analyst may see every row: nobody is named, and others look',
            "                            # its rows up. If not, remove this, and uncomment and fill in what follows",
            *(f"# {line}" for line in (*_write_unit(unit, day, proposed), *changes)),
        ]
    else:
        lines += [*_write_unit(unit, day, proposed), *changes, _PUBLIC]
    if unit is Unit.VISIT and day is not None:
        lines += ["", *_write_day_column(name, day)]
    for column in table.columns:
        lines += ["", *_write_column(name, column, unit, table, proposed)]
    return "\n".join(lines) + "\n"


_REFRESH = (
    f'refresh = "{BLANK}"         # when its rows change: "live": at any time, nothing is used twice;',
    '                            # "static": never, and you vouch; "explicit": when you run keyhole refresh;',
    '                            # "hourly", "daily 02:00" (UTC): then and at no other time',
)
_PUBLIC = "# public = true             # instead of all of the above, if every analyst may see every row"


def _write_refresh(refresh: str) -> tuple[str, ...]:
    """Return when rows change, as the policy writes it. Raise KH002."""
    try:
        parse_refresh(refresh)
    except Fault as fault:
        raise KeyholeError(fault.code, f'--refresh "{refresh}" {fault.problem}', hint=fault.hint) from None
    return (f"refresh = {_quote_text(refresh)}",)


def _write_unit(unit: Unit | None, day: SourceColumn | None, proposed: ProposedUnit) -> Iterator[str]:
    """Yield lines of the policy: who is protected and how much one unit may contribute, as far as it is known."""
    if unit is Unit.ROW:
        yield 'privacy_unit = "row"         # each row by itself: whoever has several rows is protected that much less'
        return
    column, paths = proposed.column, proposed.paths
    named = ", ".join(proposed.candidates)
    others = f"{named} may name people" if named else "a column that names a person"
    chosen = column is not None and unit is Unit.PERSON and not paths
    if unit is Unit.VISIT and column is not None and day is not None:
        yield f"privacy_unit = [{_quote_text(column)}, {_quote_text(_name_day(day))}]   # a person's day; {others}"
    elif chosen and column is not None:
        yield f"privacy_unit = {_quote_text(column)}   # who is protected: {others}"
        yield from _write_same_people(column, proposed)
    elif unit is Unit.PERSON and column is None and paths:
        yield f"privacy_unit = {_write_path(paths[0])}   # who is protected there, {_describe_ground(paths[0])}"
        yield from (
            f"# privacy_unit = {_write_path(step)}   # or there, {_describe_ground(step)}" for step in paths[1:]
        )
    else:
        yield f'privacy_unit = "{BLANK}"    # who is protected: {others}; several columns; or "row"'
        led = () if unit is Unit.VISIT else paths
        yield from (
            f"# privacy_unit = {_write_path(step)}   # or who is there, {_describe_ground(step)}" for step in led
        )
    for columns, tables in proposed.vouched_paths.items() if unit is Unit.PERSON else ():
        yield f"# unique = {json.dumps(columns)}   # nothing proves it: uncomment it if you vouch that no two rows have"
        yield f"                            # the same; paths of {', '.join(tables)} lead here by it"
    if chosen and proposed.is_one_row:
        proof = f"{column} is unique" if proposed.is_unique else f"{column} is taken to be unique; if not, how many"
        yield f"max_groups_per_unit = 1     # a person has one row: {proof}"
        yield "rows_per_unit = 1"
        return
    off = "# " if unit is None else ""
    blank = "   # unless each row is its own unit:" if unit is None else "   #"
    yield f'{off}max_groups_per_unit = "{BLANK}"{blank} in how many groups of an answer a unit counts: what a question'
    yield "                            # costs a unit is that many times what it costs a group"
    yield f'{off}rows_per_unit = "{BLANK}"{blank} how many of its rows count in a group, for count(*) and averages'
    yield "# groupings.month = { max_groups = 12 }   # other bounds for the groups of certain keys (docs/policy.md)"


def _write_same_people(column: str, proposed: ProposedUnit) -> Iterator[str]:
    """Yield lines of the policy that declare that another table has the same people, so that they share one budget."""
    if (step := proposed.same_people_step) is not None:
        ground = _describe_ground(step)
        yield f"same_unit_as = {_quote_text(step.table)}   # {column} names the same people there, {ground}"
    elif proposed.similar_table is not None:
        other = _quote_text(proposed.similar_table)
        yield f"# same_unit_as = {other}   # if {column} names the same people there: one budget"


def _write_column(
    table: str, column: SourceColumn, unit: Unit | None, source: SourceTable, proposed: ProposedUnit
) -> tuple[str, ...]:
    is_key = source.keeps_unique([column.name])
    header = f"# [tables.{table}.columns.{_quote_key(column.name)}]   # {' '.join(column.declared.split())}"
    kind = read_sql_type(column.declared)
    if has_time_zone(column.declared):
        return (f"{header}: expose it from a view as ({_quote_key(column.name)} AT TIME ZONE 'UTC')",)
    if (step := proposed.lookups.get(column.name)) is not None and _can_be_unit(column):
        listed = _quote_text(f"{step.table}.{step.reached_columns[0]}")
        return header, f"# key = {{ values_from = {listed} }}   # if {step.table} is public: joins with it, too"
    if is_key or (is_identifier(column) and kind is not SqlType.TEXT):
        named = "a row" if is_key else "somebody or something"
        return (f"{header}: names {named}; a privacy unit perhaps, no measure, and a key only if public",)
    match kind:
        case SqlType.TEXT:
            length = f"# max_length = {read_text_limit(column.declared) or LONGEST_TEXT}"
            return (
                header,
                f'# key = {{ values = ["{BLANK}"] }}   # the public list of groups; without it, filters only',
                f"{length:31}# so many characters count; fewer allow more LIKE patterns",
            )
        case SqlType.INTEGER if _FLAG.fullmatch(column.name.lower()):
            return header, "# key = { values = [0, 1] }    # a flag: count(*) FILTER (WHERE ...) counts it"
        case SqlType.INTEGER if _FEW.fullmatch(column.name.lower()) or column.declared.lower() in SMALL_INTEGERS:
            return (
                header,
                f'# key = {{ range = ["{BLANK}", "{BLANK}"] }}   # if its values are few and public; or a measure:',
                *_write_measures(unit),
            )
        case SqlType.INTEGER | SqlType.NUMERIC | SqlType.DOUBLE:
            return header, *_write_measures(unit)
        case SqlType.DATE:
            return (
                header,
                f'# key = {{ range = ["{BLANK}", "{BLANK}"], step = "1 day" }}   # its days',
            )
        case SqlType.TIMESTAMP:
            month = _quote_key(f"{column.name}_month")
            return (
                header,
                f"# [tables.{table}.columns.{month}]",
                f"# expression = {_quote_text(_truncate_to_month(column.name))}",
                f'# key = {{ range = ["{BLANK}", "{BLANK}"], step = "1 month" }}   # first days of months',
            )
        case SqlType.BOOLEAN:
            return header, "# key = { values = [true, false] }"
        case SqlType.UUID:
            return (header,)
        case _:
            return (f"{header}: usable in nothing",)


def _write_measures(unit: Unit | None) -> Iterator[str]:
    yield f'# bounds = ["{BLANK}", "{BLANK}"]   # every value is clipped to this; from what is publicly known'
    yield "# grid = 1                     # and rounded to this"
    if unit is not Unit.ROW:
        yield f'# per_unit = ["{BLANK}", "{BLANK}"]   # a unit\'s total per group is clipped to this'
    yield f'# # bands = ["{BLANK}", "{BLANK}"]   # if you like: thresholds that analysts are shown for its sums, rising'


def _can_be_unit(column: SourceColumn) -> bool:
    return read_sql_type(column.declared) in (SqlType.INTEGER, SqlType.TEXT, SqlType.UUID)


def _has_days(column: SourceColumn) -> bool:
    return read_sql_type(column.declared) in (SqlType.DATE, SqlType.TIMESTAMP) and not has_time_zone(column.declared)


def _name_day(column: SourceColumn) -> str:
    """Return the column that separates a person's days."""
    return column.name if read_sql_type(column.declared) is SqlType.DATE else f"{column.name}_day"


def _write_day_column(table: str, column: SourceColumn) -> tuple[str, ...]:
    if read_sql_type(column.declared) is SqlType.DATE:
        return ()
    base = _quote_sql_name(column.name)
    return (
        f"[tables.{table}.columns.{_quote_key(_name_day(column))}]   # the day that the privacy unit has",
        f"expression = {_quote_text(f'{base}::date')}",
    )


def _quote_sql_name(column: str) -> str:
    return column if re.fullmatch(r"[a-z_][a-z0-9_]*", column) else '"' + column.replace('"', '""') + '"'


def _truncate_to_month(column: str) -> str:
    return f"date_trunc('month', {_quote_sql_name(column)})"


def _simplify_name(named: str) -> str:
    """Return a table name that clients can use without quotes, made from the source's name."""
    path = PurePath((SPARK_PART.findall(named) or [named])[-1].strip("`")) if "`" in named else PurePath(named)
    if path.suffix.lower() in FILE_ENDINGS or len(path.parts) > 1:
        last = next((part for part in (path.stem, path.parent.name) if _NAME.sub("", part.lower()).strip("_")), "")
    else:
        last = NAME_PART.findall(named)[-1]
    name = _NAME.sub("_", last.lower()).strip("_")[:60] or "data"
    return name if name[0].isalpha() else f"t_{name}"


def _quote_key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _quote_text(name)


def _quote_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
