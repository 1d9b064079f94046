"""Constants as PostgreSQL reads, compares and computes them.

May refuse: KH106, KH109, KH201, KH204, KH212, KH900.
May import: `parser`, `catalog` and below.
Read first: `expressions.py`.
"""
