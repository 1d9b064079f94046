"""Functionals: integer sums behind aggregates, and their sensitivities.

May refuse: KH005, KH203, KH204, KH206, KH208, KH211, KH220, KH304, KH900.
May import: `scorecard` and below.
Read first: `functional.py`.
"""
