"""What the data owner decides and reads, once for the command and once for the console: neither computes anything.

May refuse: KH009.
May import: `dashboard`, `release`, `monitors` and below.
Read first: `decisions.py`.
"""
