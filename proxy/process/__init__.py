"""Keyhole up and running: one process or several, a policy that is read again, and the operator's port.

May refuse: KH406.
May import: `endpoint`, `console` and below.
Read first: `single.py`.
"""
