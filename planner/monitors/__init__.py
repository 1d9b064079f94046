"""Monitors: the plan of a standing question, its windows and looks, their price, and the SQL of each look.

May refuse: KH303, KH601, KH602, KH603.
May import: `extract`, `plan` and below.
Read first: `build.py`.
"""
