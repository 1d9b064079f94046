"""Expressions of a row as SQL that no row makes fail.

May refuse: nothing; KH900 should a term be none that `predicates` makes.
May import: `planner.lower.dialects` and what `planner.lower` may.
Read first: `term.py`.
"""
