"""Processes, reloads, and the operator's port.

May refuse: KH406.
May import: `endpoint`, `console` and below.
Read first: `single.py`.
"""
