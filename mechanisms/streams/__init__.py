"""Published releases of counts, window sums and running sums tick by tick: PeGaSus, its variants and its rivals.

May refuse: nothing.
May import: `threshold`, `publishing` and below.
Read first: `stream.py`.
"""
