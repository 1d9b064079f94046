"""The tables and columns that a relation of PostgreSQL reads, found in its catalog through views and partitions."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from planner.catalog.relation_names import ForeignKey, RelationIdentity
from planner.catalog.sql_types import SourceColumn
from planner.question.plan import ReadRelation
from proxy.sources.read_types import check_after_reading, check_keys, check_types

_READ = """
WITH RECURSIVE read(oid, is_part) AS (
  SELECT %s::regclass::oid, false
  UNION
  SELECT further.oid, further.is_part FROM read CROSS JOIN LATERAL (
    SELECT refobjid AS oid, read.is_part FROM pg_rewrite
      JOIN pg_depend ON classid = 'pg_rewrite'::regclass AND objid = pg_rewrite.oid
    WHERE ev_class = read.oid AND ev_type = '1' AND refclassid = 'pg_class'::regclass AND refobjid <> read.oid
    UNION ALL
    SELECT inhrelid, true FROM pg_inherits WHERE inhparent = read.oid
  ) AS further
)
"""
"""Every relation whose rows one shows, itself among them; its rules of other kinds than SELECT read nothing."""
_HIDES_ROWS = """
pg_class.relrowsecurity AND NOT is_part AND CASE
  WHEN pg_class.oid = shown.oid
    OR coalesce(array_to_string(shown.reloptions, ',') ~ 'security_invoker=(true|on|yes|1)', false)
    THEN row_security_active(pg_class.oid)
  ELSE shown.relkind = 'v' AND NOT (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE oid = shown.relowner)
    AND (pg_class.relforcerowsecurity OR NOT pg_has_role(shown.relowner, pg_class.relowner, 'USAGE'))
END
"""
"""Policies of rows hold: those of a relation for the reader, those of what a view shows for the view's owner. A
partition's own hold for nobody who reads its table."""
RELATION = f"""{_READ}
SELECT pg_class.oid = shown.oid AND NOT is_part, pg_class.relkind IN ('v', 'm'), is_part, pg_class.oid::text,
  current_database(), format('%%I.%%I', nspname, pg_class.relname),
  ftserver::text || coalesce(ftoptions::text, pg_class.oid::text),
  ARRAY(
    SELECT attname::text FROM pg_index JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[0]
    WHERE indrelid = pg_class.oid AND indisunique AND indisvalid AND indpred IS NULL AND indnkeyatts = 1
  ),
  {_HIDES_ROWS},
  CASE WHEN pg_is_in_recovery() THEN current_setting('recovery_min_apply_delay') END,
  ARRAY(
    SELECT attname::text FROM pg_attribute
    WHERE attrelid = pg_class.oid AND attgenerated = 'v' AND NOT attisdropped ORDER BY attnum
  ),
  ARRAY(
    SELECT array_to_json(ARRAY(
      SELECT attname::text FROM unnest(indkey) WITH ORDINALITY AS key(number, place)
        JOIN pg_attribute ON attrelid = indrelid AND attnum = number
      WHERE place <= indnkeyatts
    ))::text
    FROM pg_index
    WHERE indrelid = pg_class.oid AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
      AND indnkeyatts > 1
  ),
  ARRAY(
    SELECT json_build_object(
      'columns', ARRAY(
        SELECT attname::text FROM unnest(conkey) WITH ORDINALITY AS key(number, place)
          JOIN pg_attribute ON attrelid = conrelid AND attnum = number ORDER BY place
      ),
      'relation', (
        SELECT format('%%I.%%I', nspname, relname) FROM pg_class AS other
          JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE other.oid = confrelid
      ),
      'reached', ARRAY(
        SELECT attname::text FROM unnest(confkey) WITH ORDINALITY AS key(number, place)
          JOIN pg_attribute ON attrelid = confrelid AND attnum = number ORDER BY place
      )
    )::text
    FROM pg_constraint WHERE conrelid = pg_class.oid AND contype = 'f' ORDER BY conname
  )
FROM read JOIN pg_class USING (oid) JOIN pg_namespace ON pg_namespace.oid = pg_class.relnamespace
  JOIN pg_class AS shown ON shown.oid = %s::regclass LEFT JOIN pg_foreign_table ON ftrelid = pg_class.oid
WHERE pg_class.relkind IN ('r', 'p', 'v', 'm', 'f')
"""
_COLUMNS = """
WITH RECURSIVE base(attnum, typid, typmod) AS (
  SELECT attnum, atttypid, atttypmod FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0
  UNION ALL
  SELECT attnum, typbasetype, typtypmod FROM base JOIN pg_type ON pg_type.oid = typid WHERE typtype = 'd'
)
SELECT attname, CASE typtype WHEN 'e' THEN 'text' ELSE format_type(typid, typmod) END,
  NOT attnotnull, NOT coalesce(collisdeterministic, true),
  relkind NOT IN ('r', 'p')
    OR EXISTS (SELECT FROM pg_index WHERE indrelid = attrelid AND indkey[0] = attnum)
    OR EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = attrelid AND attnum = ANY (partattrs)),
  typtype = 'e'
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
  JOIN base USING (attnum) JOIN pg_type ON pg_type.oid = typid AND typtype <> 'd'
  LEFT JOIN pg_collation ON pg_collation.oid = attcollation
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped
  AND has_column_privilege(attrelid, attnum, 'SELECT')
ORDER BY attnum
"""
_KEPT_KEYS = """
SELECT ARRAY(
  SELECT attname::text FROM unnest(indkey) WITH ORDINALITY AS key(number, place)
    JOIN pg_attribute ON attrelid = indrelid AND attnum = number
  WHERE place <= indnkeyatts
)
FROM pg_index JOIN pg_class ON pg_class.oid = indrelid
WHERE indrelid = %s::regclass AND indisunique AND indisvalid AND indpred IS NULL AND indexprs IS NULL
  AND (relkind = 'p' OR NOT EXISTS (SELECT FROM pg_inherits WHERE inhparent = indrelid))
"""
"""The columns of each index by which no two rows of a table are equal. A parent's says nothing of what its children
have, unless these are its partitions."""
STATE = f"""{_READ}
SELECT DISTINCT pg_class.oid, pg_relation_filenode(oid), pg_stat_get_tuples_inserted(oid),
  pg_stat_get_tuples_updated(oid), pg_stat_get_tuples_deleted(oid)
FROM read JOIN pg_class USING (oid) WHERE relkind IN ('r', 'm', 'f') ORDER BY pg_class.oid
"""
"""Which file each stored relation is in, and how many of its rows were ever changed. A table that is rewritten without
a change has another file, too."""


def make_identity(rows: Sequence[tuple[Any, ...]]) -> RelationIdentity:
    """Return a relation's identity from the result rows of the query `RELATION`.

    A materialised view is identified by the tables that it was built from.
    """
    ((_, is_view, _, oid, database, name, _, unique, _, replay_delay, virtual, keys, foreign_keys),) = [
        row for row in rows if row[0]
    ]
    stored = [row for row in rows if not row[1]]
    foreign = {f"foreign {row[6]}" for row in stored if row[6] is not None}
    return RelationIdentity(
        names=(name, f"{database} oid {oid}"),
        bases=frozenset({f"oid {row[3]}" for row in stored} | foreign),
        is_view=is_view,
        is_join=len({row[3] for row in stored if not row[2]}) > 1,
        unique=frozenset(unique),
        hides_rows=any(row[8] for row in rows),
        replay_delay=replay_delay,
        is_foreign=bool(foreign),
        virtual_columns=tuple(virtual),
        keys=frozenset(frozenset(json.loads(columns)) for columns in keys),
        foreign_keys=tuple(map(_read_foreign_key, foreign_keys)),
        can_check_keys=not foreign,
    )


def _read_foreign_key(text: str) -> ForeignKey:
    found = json.loads(text)
    return ForeignKey(tuple(found["columns"]), found["relation"], tuple(found["reached"]))


def read_columns(relation: str, connection: psycopg.Connection[tuple[Any, ...]]) -> tuple[SourceColumn, ...]:
    """Return the relation's columns that the database role may select, from the catalog.

    A domain has its base type, and an enum has type text.
    """
    return tuple(
        SourceColumn(name, declared, nullable, nondeterministic, prunable, enumerated)
        for name, declared, nullable, nondeterministic, prunable, enumerated in connection.execute(
            _COLUMNS, (relation, relation)
        )
    )


@contextmanager
def check_keys_stay_unique(
    relations: Sequence[ReadRelation], connection: psycopg.Connection[tuple[Any, ...]]
) -> Iterator[None]:
    """Check that unique keys, on which the statement relies, stay unique while the block reads the relations.

    PostgreSQL locks a relation that a transaction has read. Until the transaction ends, no constraint can be dropped,
    and an index that is dropped concurrently is still maintained. New child tables may appear, so the keys are checked
    again after the block.

    Raise `MissingKey` before the block and `TypesChanged` after it.
    """
    counted_on = [relation for relation in relations if relation.keys]

    def read_keys(relation: str) -> list[frozenset[str]]:
        return [frozenset(columns) for (columns,) in connection.execute(_KEPT_KEYS, (relation,))]

    for relation in counted_on:
        connection.execute(f"SELECT 1 FROM {relation.relation} LIMIT 0".encode())
    check_keys(counted_on, read_keys)
    yield
    with check_after_reading():
        check_keys(counted_on, read_keys)


def check_locked_types(relations: Sequence[ReadRelation], connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Check that columns of relations, which this transaction has read, have the expected types.

    The transaction has locked the relations, so the types were the same during reading. Raise `TypesChanged`.
    """
    check_types(relations, lambda relation: read_columns(relation, connection))
