"""Monitors in a running process: the schedule, each look, and its notifications.

May refuse: KH301, KH302, KH305, KH306, KH309, KH502, KH602, KH604, KH605, KH606.
May import: `pipeline` and below.
Read first: `look.py`.
"""
