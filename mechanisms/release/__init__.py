"""Mechanisms whose outcome is a public value instead of an answer: privately found bounds.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `private_bounds.py`.
"""
