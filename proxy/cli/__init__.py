"""The `keyhole` command of owners and operators, and the demo.

May refuse: KH002, KH011.
May import: `process` and below.
Read first: `main.py`.
"""
