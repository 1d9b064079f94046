"""Rules for paths to the privacy unit: where they lead, and whether each step leads to at most one row."""

from collections.abc import Iterator, Mapping

from planner.catalog.fault import Fault, Faults, suggest_nearest_name
from planner.catalog.relation_names import RelationIdentity
from planner.policy.sections import PolicyDocument, TableSection, WrittenPath


def find_path_faults(place: tuple[str, ...], path: WrittenPath, table: TableSection, policy: PolicyDocument) -> Faults:
    """Return the faults in a path that the policy alone shows. Columns and types are checked with the source."""
    here = (*place, "privacy_unit")
    reached = policy.tables.get(path.table)
    if table.same_unit_as is not None:
        hint = "Remove it: units that are reached by a path are those of the table that it leads to."
        yield (*place, "same_unit_as"), Fault("KH005", "has no meaning beside a path to the unit", hint=hint)
    if reached is None:
        hint = "Add [tables.NAME] for it, with a privacy_unit: every table on the way is a private one of the policy. "
        yield (
            here,
            Fault(
                "KH005",
                f"leads to {path.table}, which is no table",
                hint=hint + suggest_nearest_name(path.table, policy.private_tables),
            ),
        )
    elif reached.public:
        hint = "Let every table on the way be private, with a privacy_unit: who is protected is no public fact."
        yield here, Fault("KH005", f"leads to {path.table}, which is public", hint=hint)
    elif reached.privacy_unit == ():
        own = f'privacy_unit = "{path.by[0]}"'
        hint = f"Name who is protected in tables.{path.table}, or by a column of this table: {own}."
        yield here, Fault("KH005", f"leads to {path.table}, where each row is a unit by itself", hint=hint)
    elif _is_circular(policy, place[1]):
        hint = "Let the last table on the way name its unit by a column of its own."
        yield here, Fault("KH005", "leads in a circle, from table to table and back", hint=hint)


def find_reached_columns(policy: PolicyDocument, name: str) -> tuple[str, ...]:
    """Return the columns of a table to which paths of other tables lead, each once."""
    paths = (table.path for table in policy.private_tables.values())
    found = (column for path in paths if path is not None and path.table == name for column in path.through)
    return tuple(dict.fromkeys(found))


def find_unproved_paths(policy: PolicyDocument, identities: Mapping[str, RelationIdentity]) -> Faults:
    """Return a fault for each path with a step that may lead to several rows.

    Neither a constraint of the source nor the owner's word limits such a step to one row.
    """
    for name, path in _list_paths(policy):
        identity = identities.get(path.table)
        if identity is None or identity.has_key(path.through) or _is_vouched(policy, path):
            continue
        columns = ", ".join(f'"{column}"' for column in path.through)
        hint = (
            f"Add a unique constraint there, or vouch for it: unique = [{columns}] under [tables.{path.table}]. If two "
            "rows have the same values all the same, one of them counts."
        )
        problem = f"no constraint of the source keeps {path.table} by {', '.join(path.through)} unique"
        yield ("tables", name, "privacy_unit"), Fault("KH005", problem, hint=hint)


def describe_vouched_paths(policy: PolicyDocument, identities: Mapping[str, RelationIdentity]) -> Iterator[str]:
    """Yield the consequence of a wrong promise by the owner about a path's step that no constraint guarantees."""
    for name, path in _list_paths(policy):
        identity = identities.get(path.table)
        if identity is not None and not identity.has_key(path.through) and _is_vouched(policy, path):
            yield (
                f"tables.{path.table}.unique is your word alone: if two of its rows have the same "
                f"{', '.join(path.through)}, the rows of tables.{name} that lead there count for one of the two units."
            )


def _list_paths(policy: PolicyDocument) -> Iterator[tuple[str, WrittenPath]]:
    for name, table in policy.private_tables.items():
        if table.path is not None:
            yield name, table.path


def _is_vouched(policy: PolicyDocument, path: WrittenPath) -> bool:
    unique = policy.tables[path.table].unique
    return bool(unique) and set(unique) <= set(path.through)


def _is_circular(policy: PolicyDocument, name: str) -> bool:
    """Return True if the tables to which a table leads form a circle."""
    seen: set[str] = set()
    current: str | None = name
    while current is not None and current in policy.private_tables:
        if current in seen:
            return True
        seen.add(current)
        current = policy.private_tables[current].leads_to
    return False
