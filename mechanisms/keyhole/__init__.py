"""Keyhole's own mechanisms, progressive and one-shot, and earlier noise.

May refuse: `Unachievable`.
May import: `threshold`, `publishing` and below.
Read first: `one_shot.py`.
"""
