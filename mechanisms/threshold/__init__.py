"""Threshold tests, calibrated to error rates, and the joint loss of several.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `one_shot.py`.
"""
