"""PostgreSQL's protocol 3.0 without any I/O: bytes in give messages, messages give bytes.

May refuse: KH404, KH405.
May import: nothing else of proxy.
Read first: `server.py`.
"""
