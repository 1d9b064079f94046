"""Expressions of a row's columns, from sqlglot's tree to terms that never fail: one file for each kind of value.

May refuse with KH205.

Read first: `read.py`.
"""
