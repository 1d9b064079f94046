"""The demo's data, policy and questions: Online Retail's sale lines as one DuckDB table, and a list of countries.

May import: duckdb.
Read first: `build.py`.
"""
