"""Warnings about settings that weaken the promises of a policy: one sentence each, for `keyhole check`."""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from math import exp, log, prod

from planner.catalog.joined_rows import MOST_JOINED_ROWS, share_joined_rows
from planner.catalog.relation_names import RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.policy.identifiers import find_people
from planner.policy.rules.table_rules import find_unit_root
from planner.policy.rules.unit_paths import describe_vouched_paths
from planner.policy.sections import PolicyDocument

MOST_EPSILON = 10.0  # a probability may differ by e^10, 22,000-fold, whether or not somebody is there
SLOW_ROWS_PER_S = 1_000_000  # read with bounding, on two busy cores: half of what docs/benchmarks.md measures at worst
_ROUND_DIGITS = 3  # before the zeros at the end: people choose 110, 5000, 0.25; 87.43 looks read from the data


def describe_doubts(policy: PolicyDocument) -> Iterator[str]:
    """Yield doubts that the policy alone shows: budgets that protect nobody, groups of one unit, bounds from data."""
    for key in ("epsilon_per_predicate", "epsilon_per_unit"):
        epsilon = getattr(policy.budget, key)
        if epsilon is not None and epsilon > MOST_EPSILON:
            yield (
                f"budget.{key} ({epsilon:g}) is above {MOST_EPSILON:g}: so much loss protects hardly anybody "
                f"(even odds on somebody may become {_write_odds(epsilon)} to one), whatever else the policy says."
            )
    for name, table in policy.private_tables.items():
        unit = () if table.path is not None else table.unit_columns
        if unit and all(column in table.columns and table.columns[column].key is not None for column in unit):
            yield (
                f"tables.{name} has its whole privacy unit ({', '.join(unit)}) as keys: every group is one unit by "
                "itself, and each answer is about single ones."
            )
        for column, section in table.columns.items():
            ends = (*(section.bounds or ()), *(section.per_unit or ()))
            if any(_looks_data_dependent(end) for end in ends):
                yield (
                    f"tables.{name}.columns.{column} has bounds that look as if they were read from the data: bounds "
                    "are public, so choose them from what is known without looking."
                )


def describe_join_doubts(policy: PolicyDocument) -> Iterator[str]:
    """Yield doubts about the rows of one unit that joins read: too many to be fast, or fewer than the tables count."""
    tables = policy.private_tables
    joined = [
        name
        for name, table in tables.items()
        if table.privacy_unit and not table.max_rows_per_group and find_unit_root(policy, name)
    ]
    for _, found in groupby(
        sorted(joined, key=lambda name: str(find_unit_root(policy, name))), lambda name: find_unit_root(policy, name)
    ):
        names = sorted(found)
        if len(names) < 2:
            continue
        together = prod(share_joined_rows([tables[name].joined_rows_per_unit for name in names]))
        if together > MOST_JOINED_ROWS:
            yield (
                f"joins of tables.{', tables.'.join(names)} may make {together:,} rows of one unit, the product of "
                "joined_rows_per_unit: whether a unit has so many decides how long a question takes, so lower it."
            )
        for name in names:
            counted = (tables[name].max_groups_per_unit or 1) * (tables[name].rows_per_unit or 1)
            read, _ = share_joined_rows([tables[name].joined_rows_per_unit, None])
            if counted > read:
                yield (
                    f"tables.{name} counts {counted:,} rows of a unit (max_groups_per_unit times rows_per_unit), and a "
                    f"join with a table of the same units reads {read:,} of them (joined_rows_per_unit)."
                )


def _write_odds(epsilon: float) -> str:
    return "more than a million" if epsilon > log(1e6) else f"{exp(epsilon):,.0f}"


def describe_source_doubts(
    policy: PolicyDocument,
    identities: Mapping[str, RelationIdentity],
    schema: Mapping[str, Sequence[SourceColumn]],
) -> Iterator[str]:
    """Yield doubts that the source's catalog shows: views, hidden rows, units with several rows, values that repeat."""
    delays = {one.replay_delay for one in identities.values()} - {None}
    if delays:
        yield _describe_standby(str(delays.pop()))
    yield from describe_vouched_paths(policy, identities)
    for name, table in policy.private_tables.items():
        if identities[name].is_view:
            yield (
                f"tables.{name} reads a view: if a cast or a division in it fails on a row, every question that reads "
                "the row fails, which reveals the row. If the view has now(), random() or LIMIT, its rows may "
                "differ between questions on one data version."
            )
        yield from _describe_failing_rows(name, identities[name])
        if identities[name].hides_rows:
            yield (
                f"tables.{name} has row-level security, which hides rows from the role that reads it: hidden rows "
                "count nowhere, so give the role a policy for all rows, or BYPASSRLS, unless that is meant."
            )
        repeating = [one.name for one in schema[name] if one.name not in identities[name].unique]
        listed = {column for column, section in table.columns.items() if section.key is not None}
        people = find_people(one for one in schema[name] if one.name in repeating and one.name not in listed)
        if not table.privacy_unit and people:
            yield (
                f"tables.{name} protects each row by itself, and {people[0]} may be the same in several: whoever has "
                f'that many rows is protected that much less, so consider privacy_unit = "{people[0]}".'
            )
        cap = table.max_rows_per_group
        if cap is not None and cap.unique in repeating:
            yield (
                f"tables.{name}.max_rows_per_group chooses rows by {cap.unique}, which no constraint of the source "
                "keeps unique: rows with the same value count together, and the cap does not hold."
            )


def _describe_failing_rows(name: str, identity: RelationIdentity) -> Iterator[str]:
    if identity.is_foreign:
        yield (
            f"tables.{name} reads a foreign table: if a value of it does not convert to its column's type, every "
            "question that reads the row fails, which reveals the row. So copy it into a table of the source."
        )
    if identity.virtual_columns:
        yield (
            f"tables.{name} computes {', '.join(identity.virtual_columns)} when it is read (VIRTUAL): if a cast or a "
            "division fails on a row, every question that reads the column fails, which reveals the row. So make it "
            "STORED."
        )


def _describe_standby(delay: str) -> str:
    late = "some time" if delay == "0" else f"{delay} or more (recovery_min_apply_delay)"
    return (
        f"source.url is a standby, which replays its server's changes {late} after them: run keyhole refresh only "
        "when new data are replayed, or the new data version begins on old rows and continues on new ones."
    )


def describe_size_doubts(policy: PolicyDocument, rows: Mapping[str, int]) -> Iterator[str]:
    """Yield a sentence for each setting that does not suit a table's approximate number of rows.

    The sentences are about rollups, and about the time that a question takes.
    """
    source, timeout_s = policy.source, policy.limits.statement_timeout_ms / 1000
    for name, count in rows.items():
        table = policy.tables[name]
        if source.has_rollups and table.privacy_unit and table.refresh != "live" and count > source.rollup_rows:
            yield (
                f"tables.{name} has some {count:,} rows, and a rollup may have {source.rollup_rows:,} "
                "(source.rollup_rows). If more of them count, no rollup is kept after one try, and every question "
                "reads the table."
            )
        if count / SLOW_ROWS_PER_S > timeout_s:
            declared = f" If tables.{name}.size is declared, such a question is refused free of charge."
            refused = "" if table.size else declared
            yield (
                f"tables.{name} has some {count:,} rows. At {SLOW_ROWS_PER_S:,} a second a question reads for "
                f"{count / SLOW_ROWS_PER_S:,.0f} s. It is ended after {timeout_s:g} s "
                f"(limits.statement_timeout_ms), and stays charged.{refused}"
            )


def _looks_data_dependent(end: Decimal) -> bool:
    digits = "".join(map(str, end.as_tuple().digits)).strip("0")
    is_year = end == end.to_integral_value() and 1800 <= end <= 2200
    return len(digits) > _ROUND_DIGITS and not is_year
