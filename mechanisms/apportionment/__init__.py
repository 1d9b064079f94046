"""Apportionment of a question's error rates over its tests: the published rules and Keyhole's.

May refuse: nothing.
May import: `protocol` and below.
Read first: `keyhole.py`.
"""
