"""Lowering of a question to one SQL statement: one read, bounded contributions of each unit, integers only.

May refuse: KH005, KH010, KH201, KH203, KH204, KH205, KH212, KH214, KH900.
May import: `rankings` and below.
Read first: `scan.py`.
"""
