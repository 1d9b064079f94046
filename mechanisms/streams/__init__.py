"""Published stream mechanisms: counts, window sums and running sums tick by tick, by PeGaSus and its rivals.

May refuse: nothing.
May import: `threshold`, `publishing` and below.
Read first: `stream.py`.
"""
