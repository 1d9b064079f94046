"""Releases that are no question and are charged like one: bounds proposed from the data, for the owner to publish.

May refuse: KH201, KH202, KH203, KH310, KH311, KH312, KH313.
May import: `pipeline` and below.
Read first: `charged.py`.
"""
