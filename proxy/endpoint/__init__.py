"""The PostgreSQL endpoint: accepts connections within limits, logs analysts in, and ends what takes too long or is
cancelled.

May refuse: KH401, KH406, KH407, KH430, KH900.
May import: `rest`, `session` and below.
Read first: `server.py`.
"""
