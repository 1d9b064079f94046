"""The data-free PostgreSQL behind every session.

May refuse: KH002, KH006, KH013, KH106, KH202, KH404, KH406.
May import: `wire` and below.
Read first: `relay.py`.
"""
