"""The accumulating alarm: one standing question about a growing value. Many looks cost little more than one.

May refuse: `Unachievable`.
May import: `threshold`, `publishing` and below.
Read first: `calibration.py`.
"""
