"""The demo's data, policy and questions: Online Retail's sale lines as one DuckDB table, with a public list of
countries.

May import: duckdb.
Read first: `build.py`.
"""
