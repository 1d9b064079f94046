"""The `keyhole` command, and the demo.

May refuse: KH002, KH011.
May import: `process` and below.
Read first: `main.py`.
"""
