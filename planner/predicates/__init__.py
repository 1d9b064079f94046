"""WHERE and FILTER as a `Condition` that no row can make fail.

May refuse: KH107, KH205, KH212.
May import: `scope` and below.
Read first: `condition.py`.
"""
