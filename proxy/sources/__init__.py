"""Sources of private data (DuckDB, PostgreSQL, Spark).

May refuse: KH006, KH008, KH501, KH503.
May import: `shadow`, `concurrency` and below.
Read first: `protocol.py`.
"""
