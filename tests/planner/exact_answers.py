"""What a statement shows around an answer without noise, which PostgreSQL gives to its question."""

import re
from typing import Any

import psycopg

from planner.catalog.catalog import Catalog
from planner.extract.outer_query import Asking, write_outer_sql
from planner.scope.embedded import EmbeddedQuestion, name_predicate_column
from planner.statements.classify import classify
from proxy.pipeline.messages import KeySet
from proxy.shadow.array import write_array_literal


def exact_answer(
    sql: str, catalog: Catalog, connection: psycopg.Connection[Any]
) -> tuple[list[tuple[Any, ...]], list[tuple[str, int]]]:
    """The rows and columns around the exact answer to the statement's question, over the rows of a table `sales`: with
    groups of NULL, which no pinned domain has."""
    asking = classify(sql, catalog)
    assert isinstance(asking, Asking)
    (part,) = asking.questions
    relation = _exact_keys(part, connection)
    outer = write_outer_sql(asking, first_parameter=1)
    arrays = {array.number: write_array_literal(relation.arrays[array.column]) for array in outer.arrays}
    written = re.sub(r"\$(\d+)::text\[\]", lambda found: f"{arrays[int(found[1])]}::text[]", outer.sql)
    with connection.execute(written.encode()) as cursor:
        return cursor.fetchall(), list_columns(cursor)


def _exact_keys(part: EmbeddedQuestion, connection: psycopg.Connection[Any]) -> KeySet:
    keys = [key.name for key in part.keys]
    truths = [f"(({one.text}) IS TRUE)::text" for one in part.predicates]
    clauses = [part.tree.args[clause].sql("postgres") for clause in ("where", "having") if part.tree.args.get(clause)]
    where = "".join(one for one in clauses if one.startswith("WHERE"))
    having = "".join(one for one in clauses if one.startswith("HAVING"))
    shown = ", ".join((*(f"{key}::text" for key in keys), *truths))
    sql = f"SELECT {shown} FROM sales AS {part.alias} {where} GROUP BY {', '.join(keys)} {having}"
    names = (*keys, *(name_predicate_column(number) for number in range(len(truths))))
    return KeySet(columns=names, keys=tuple(connection.execute(sql.encode()).fetchall()))


def list_columns(cursor: psycopg.Cursor[Any]) -> list[tuple[str, int]]:
    """The names and types of what a statement shows."""
    return [(one.name, one.type_code) for one in cursor.description or ()]
