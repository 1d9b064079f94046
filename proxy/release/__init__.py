"""Releases that are no question and are charged like one: bounds proposed from the data, curves of scores, and tables
published whole; and two published ways to perturb a table, which no budget covers and which say so for ever.

May refuse: KH100, KH201, KH202, KH203, KH310, KH311, KH312, KH313, KH314, KH315, KH316, KH317.
May import: `pipeline` and below.
Read first: `charged.py`.
"""
