"""The settings that Keyhole gives a database engine: limits on memory and threads, and no skipping of blocks.

The limits come from the policy, or are an equal share for each serving process. Unless the policy allows skipping, an
engine reads each table whole. With skipping, a single row with a unique value would make the engine read more blocks,
and its time would reveal that row.

References: docs/decisions/0017-timing.md.
"""

from pathlib import Path

from mechanisms.side_by_side import count_usable_cores
from planner.policy.sections import SourceSection
from proxy.sources.spill_folder import make_spill_folder

# of the machine's or container's, for all processes together: DuckDB's own default for one
MOST_MEMORY_PERCENT = 80
_BY_VALUES = (
    "statistics_propagation",  # leaves out a test that no value satisfies, and chooses how to group by the keys' range
    "filter_pushdown",  # skips blocks by their least and greatest value
    "join_filter_pushdown",  # likewise, by the other table's
    "row_group_pruner",
    "compressed_materialization",  # packs what is sorted into as many bytes as the values need
)
"""DuckDB's optimizers that decide by the least and greatest value of a column."""

_READ_WHOLE = {
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.parquet.aggregatePushdown": "false",  # counts and greatest values from a file's foot
    "spark.sql.orc.filterPushdown": "false",
    "spark.sql.orc.aggregatePushdown": "false",
    "spark.sql.avro.filterPushdown.enabled": "false",
    "spark.sql.optimizer.runtime.bloomFilter.enabled": "false",
    "spark.sql.optimizer.runtimeFilter.semiJoinReduction.enabled": "false",
    "spark.databricks.delta.stats.skipping": "false",  # of Delta tables, wherever they are read
}
"""Settings of Spark by which it leaves out blocks, files, or rows of a join, as their values are."""


def make_engine_settings(section: SourceSection, *, directory: Path, workers: int) -> dict[str, str]:
    """Return the engine's settings for one of `workers` processes. Relative folders are in `directory`.

    Raise OSError if a folder cannot be made.

    Each process runs its own DuckDB. Data that DuckDB spills to disk is encrypted with a key kept only in memory.
    PostgreSQL and Spark keep their own defaults for most settings.
    """
    if section.kind == "spark":
        return {} if section.skip_blocks else dict(_READ_WHOLE)
    if section.kind == "postgresql":
        wanted = {
            "work_mem": section.work_mem,
            "max_parallel_workers_per_gather": section.max_parallel_workers_per_gather,
            # without it BRIN, which knows blocks by their least and greatest values, cannot be used; other indexes can
            "enable_bitmapscan": None if section.skip_blocks else "off",
            # joins that it expects to give hardly a row: of many rows they would compare each with each
            "enable_nestloop": "off",
        }
        return {name: str(value) for name, value in wanted.items() if value is not None}
    parent = None if section.temp_directory is None else directory / section.temp_directory
    cores = count_usable_cores()
    return {
        "memory_limit": section.memory_limit or f"{max(1, MOST_MEMORY_PERCENT // workers)}%",
        "threads": str(section.threads or max(1, cores // workers)),
        "disabled_optimizers": "" if section.skip_blocks else ",".join(_BY_VALUES),
        "temp_directory": str(make_spill_folder(parent)),
        "temp_file_encryption": "true",
        # DuckDB writes encrypted with a library that it does not ship otherwise; this one has random numbers that are
        # not made for secrets, so the folder's mode is what keeps others out, and this what a disk remembers
        "force_mbedtls_unsafe": "true",
    }
