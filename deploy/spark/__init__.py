"""The demo at the size for which owners keep a lakehouse: its questions over Spark Connect, beside what DuckDB finds.

May import: `deploy.demo`, `proxy`.
Read first: `show.py`.
"""
