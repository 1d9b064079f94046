"""Monitors: from the owner's standing question to its windows, its looks, what they cost, and the SQL of each look.

May refuse: nothing.
May import: `extract`, `plan` and below.
Read first: `model.py`.
"""
