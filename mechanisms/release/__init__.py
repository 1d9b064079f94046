"""Mechanisms whose outcome is a public value and no answer to a question: bounds that are found privately.

May refuse: `Unachievable`.
May import: `noise`, `apportionment`, `three_valued` and below.
Read first: `private_bounds.py`.
"""
