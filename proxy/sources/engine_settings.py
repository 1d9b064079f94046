"""What an engine may take of the machine: what the policy says, or a fair share for each process that serves."""

import os
from pathlib import Path

from planner.policy.sections import SourceSection
from proxy.sources.spill_folder import spill_folder

# of the machine's or container's, for all processes together: DuckDB's own default for one
MOST_MEMORY_PERCENT = 80


def engine_settings(section: SourceSection, *, directory: Path, workers: int) -> dict[str, str]:
    """The engine's settings for one of so many `workers`; relative folders are in `directory`. Raises OSError.

    DuckDB runs in each of them, and what it spills is encrypted with a key that only its memory holds. A PostgreSQL
    has its own defaults.
    """
    if not section.url.startswith("duckdb:"):
        wanted = {
            "work_mem": section.work_mem,
            "max_parallel_workers_per_gather": section.max_parallel_workers_per_gather,
        }
        return {name: str(value) for name, value in wanted.items() if value is not None}
    parent = None if section.temp_directory is None else directory / section.temp_directory
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        "memory_limit": section.memory_limit or f"{max(1, MOST_MEMORY_PERCENT // workers)}%",
        "threads": str(section.threads or max(1, cores // workers)),
        "temp_directory": str(spill_folder(parent)),
        "temp_file_encryption": "true",
        # DuckDB writes encrypted with a library that it does not ship otherwise; this one has random numbers that are
        # not made for secrets, so the folder's mode is what keeps others out, and this what a disk remembers
        "force_mbedtls_unsafe": "true",
    }
