"""The accumulating alarm: one standing question about a growing value, with many looks for little more than the price
of one.

May refuse: `Unachievable`.
May import: `threshold`, `release` and below.
Read first: `calibration.py`.
"""
