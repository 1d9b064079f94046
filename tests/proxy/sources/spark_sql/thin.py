"""An engine that speaks Spark Connect, asked with the thin client alone."""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from pyspark.sql.connect.session import SparkSession

from planner.catalog.key_space import KeySpace
from planner.lower.dialects.dialect import Dialect
from planner.lower.dialects.spark import REQUIRED_SETTINGS
from planner.question.plan import Rewritten
from proxy.sources.alignment import align_groups
from proxy.sources.protocol import TrueAggregates


@dataclass(frozen=True, slots=True)
class Connected:
    """One session of an engine, with the settings that its dialect requires."""

    dialect: Dialect
    session: Any

    def execute(self, sql: str) -> Any:
        """What a statement gives, as an Arrow table."""
        return self.session.sql(sql).toArrow()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What a statement gives, as rows."""
        return [tuple(row.values()) for row in self.execute(sql).to_pylist()]

    def value(self, expression: str, relation: str = "") -> Any:
        """The one value of an expression."""
        ((found,),) = self.rows(f"SELECT {expression} AS found{f' FROM {relation}' if relation else ''}")
        return found

    def read_aggregates(
        self, rewritten: Rewritten, keys: KeySpace, *, functionals: int, timeout_ms: int
    ) -> TrueAggregates:
        """The true aggregates of a question."""
        found = self.execute(rewritten.sql)
        groups = [found.column(f"k{i}").to_pylist() for i in range(len(keys.columns))]
        sums = [found.column(f"f{i}").to_pylist() for i in range(functionals)]
        return TrueAggregates(align_groups(groups, sums, keys))

    @contextmanager
    def tables(self, made: Sequence[str], names: Sequence[str], folder: Path) -> Iterator[Any]:
        """Views of files with what these statements make in DuckDB, and DuckDB with the same tables."""
        with duckdb.connect() as duck:
            for statement in made:
                duck.execute(statement)
            for name in names:
                path = folder / f"{name}{len(list(folder.iterdir()))}.parquet"
                duck.execute(f"COPY {name} TO '{path}'")
                self.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS SELECT * FROM parquet.`{path}`")
            yield duck
        for name in names:
            self.execute(f"DROP VIEW {name}")


def connect(url: str, dialect: Dialect) -> Connected:
    session = SparkSession.builder.remote(url).create()
    session.client.set_retry_policies([])  # else it looks for ten minutes for a server that was ended before it
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Spark warns of a setting that nobody should need, whatever it is set to
        for name, value in REQUIRED_SETTINGS.items():
            session.conf.set(name, value)
    return Connected(dialect, session)
