"""Sources of private data, DuckDB, PostgreSQL or Spark, read through rewritten questions alone.

May refuse: KH006, KH008, KH501, KH503.
May import: `shadow`, `concurrency` and below.
Read first: `protocol.py`.
"""
