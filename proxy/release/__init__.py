"""Charged releases beside questions: proposed bounds, curves of scores and whole tables.

Two published perturbations, which no budget covers, are also here.

May refuse: KH100, KH201, KH202, KH203, KH310, KH311, KH312, KH313, KH314, KH315, KH316, KH317.
May import: `pipeline` and below.
Read first: `charged.py`.
"""
