"""The accumulating alarm: one standing question about a growing value, looked at many times for little more than once.

May refuse: `Unachievable`.
May import: `threshold`, `release` and below.
Read first: `calibration.py`.
"""
