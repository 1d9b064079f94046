"""Rules for names: of relations for clients, of stored questions' parameters, and of relations in the source."""

import re
from collections.abc import Iterable
from math import isfinite

from planner.catalog.fault import Fault, Faults
from planner.catalog.source_names import SourceName
from planner.errors import KeyholeError
from planner.policy.relation_names import NAME_PART, find_known_name, find_relation_fault, list_known_names
from planner.policy.sections import PolicyDocument
from planner.policy.stored_questions import number_parameters

_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_RESERVED = frozenset({"keyhole", "public", "none", "postgres", "information_schema"})


def find_name_faults(policy: PolicyDocument) -> Faults:
    """Yield a fault for each name that needs quotes, collides, or is not possible for a relation of the source."""
    groups: tuple[tuple[str, Iterable[str]], ...] = (
        ("tables", policy.tables),
        ("views", policy.views),
        ("monitors", policy.monitors),
        ("analysts", policy.analysts),
    )
    for group, names in groups:
        for name in names:
            if not _NAME.fullmatch(name) or name.startswith("pg_") or name in _RESERVED:
                hint = "Use lower-case letters, digits and _, at most 63, not pg_..., keyhole or another reserved name."
                yield (group, name), Fault("KH002", "is not a name that PostgreSQL clients can use plainly", hint=hint)
    for name in policy.views:
        if name in policy.tables:
            hint = "Give the stored question a name of its own."
            yield ("views", name), Fault("KH002", "has the name of a table", hint=hint)
    for name in policy.monitors:
        kind = "a table" if name in policy.tables else "a stored question" if name in policy.views else None
        if kind is not None:
            hint = "Give the monitor a name of its own: clients see it as a relation."
            yield ("monitors", name), Fault("KH002", f"has the name of {kind}", hint=hint)
    yield from _find_parameter_faults(policy)
    if not _NAME.fullmatch(policy.server.database):
        hint = "Use lower-case letters, digits and _."
        yield ("server", "database"), Fault("KH002", "is not a database name", hint=hint)
    if not policy.private_tables:
        hint = "Add [tables.NAME] with a privacy_unit."
        yield ("tables",), Fault("KH002", "no private table is exposed", hint=hint)
    yield from _find_relation_faults(policy)


def _find_parameter_faults(policy: PolicyDocument) -> Faults:
    for name, view in policy.views.items():
        for parameter, default in view.parameters.items():
            if not _NAME.fullmatch(parameter):
                hint = "Use lower-case letters, digits and _."
                yield ("views", name, "parameters", parameter), Fault("KH002", "is not a parameter's name", hint=hint)
            if isinstance(default, float) and not isfinite(default):
                fault = Fault("KH002", "is not a number", hint="Write a finite default.")
                yield ("views", name, "parameters", parameter), fault
        try:
            number_parameters(view.sql, view.parameters)
        except Fault as fault:
            yield ("views", name, "sql"), fault
        except KeyholeError as error:
            yield ("views", name, "sql"), Fault("KH002", error.message, hint="Correct the SQL.")


def _find_relation_faults(policy: PolicyDocument) -> Faults:
    relations: dict[str, str] = {}
    for name, table in policy.tables.items():
        other = relations.setdefault(table.relation or name, name)
        if other != name:
            hint = "A relation is exposed once, as private or as public; a second name would be a second budget."
            fault = Fault("KH002", f"is the relation of tables.{other} too", hint=hint)
            yield ("tables", name, "relation"), fault
        unclear = None if table.known_as is None else _find_known_as_fault(policy, name, table.known_as)
        if unclear is not None:
            yield ("tables", name, "known_as"), unclear
        wrong = find_relation_fault(table.relation or name, kind=policy.source.kind)
        if wrong is not None:
            yield ("tables", name, "relation"), wrong


def _find_known_as_fault(policy: PolicyDocument, name: str, text: str) -> Fault | None:
    """Return the fault of the second name by which clients may write a table."""
    parts = NAME_PART.findall(text)
    if ".".join(parts) != text or len(parts) != len(("schema", "table")):
        hint = 'Write schema.table, or "schema"."table" with odd names in double quotes.'
        return Fault("KH002", "is not the name of a table in a schema", hint=hint)
    if SourceName(*_find_known_name(policy, name), name) not in list_known_names(policy):
        hint = (
            "Name a schema that is neither public, keyhole nor PostgreSQL's own, and a table that no other is known as."
        )
        return Fault("KH002", "is not a name that clients can have for one table", hint=hint)
    return None


def _find_known_name(policy: PolicyDocument, name: str) -> tuple[str, str]:
    found = find_known_name(policy.tables[name], kind=policy.source.kind)
    assert found is not None
    return found
