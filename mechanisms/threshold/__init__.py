"""Tests of a threshold on one noisy value or a path of them, calibrated to given error rates, and what several
tests tell at once.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `one_shot.py`.
"""
