"""PostgreSQL's protocol 3.0 without I/O: bytes to messages, messages to bytes.

May refuse: KH404, KH405.
May import: `security` and below.
Read first: `server_side.py`.
"""
