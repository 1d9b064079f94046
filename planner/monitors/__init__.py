"""Monitors: from the owner's standing question to its windows, its looks, what they cost, and the SQL of each look.

May refuse: KH303, KH601, KH602, KH603.
May import: `extract`, `plan` and below.
Read first: `build.py`.
"""
