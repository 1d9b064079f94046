"""Charged releases beside questions: proposed bounds, curves of scores and whole tables.

It also has two published perturbations that no budget covers.

May refuse: KH100, KH201, KH202, KH203, KH310, KH311, KH312, KH313, KH314, KH315, KH316, KH317.
May import: `pipeline` and below.
Read first: `charged.py`.
"""
