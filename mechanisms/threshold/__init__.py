"""Threshold tests on one noisy value or a path of them, calibrated to error rates, and the joint loss of several.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `one_shot.py`.
"""
