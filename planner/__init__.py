"""Text and policy to a `Plan`, without I/O: statement, question, minimal formula, sensitivity, rewriting, EXPLAIN.

May refuse: KH001 to KH432 and KH900, each listed in `docs/errors.md`.
May import: `mechanisms`, sqlglot, pydantic, numpy.
Read first: `errors.py`.
"""
