"""The PostgreSQL endpoint: connections within limits, logins, timeouts and cancelling.

May refuse: KH401, KH406, KH407, KH430, KH900.
May import: `rest`, `session` and below.
Read first: `server.py`.
"""
