"""Keyhole's own mechanisms, the progressive one and the one-shot one, and how they continue on earlier noise.

May refuse: `Unachievable`.
May import: `threshold`, `release` and below.
Read first: `one_shot.py`.
"""
