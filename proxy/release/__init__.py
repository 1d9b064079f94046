"""Releases that are no question and are charged like one: bounds proposed from the data, and curves of scores.

May refuse: KH201, KH202, KH203, KH310, KH311, KH312, KH313, KH314, KH315.
May import: `pipeline` and below.
Read first: `charged.py`.
"""
